"""The services of a database that the steps of moving views use."""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Struct

from executor.core.core import Core
from executor.key_access.view_indexes import ViewIndexes
from executor.replicas.replica import Replicas
from executor.transactions.transaction import Transaction


class MovingServices(Struct, frozen=True):
    """What exists in the database, the replicas of other servers' streams, the key indexes of views, and the function
    that commits a transaction."""

    core: Core
    replicas: Replicas
    indexes: ViewIndexes
    commit: Callable[[Transaction], None]
