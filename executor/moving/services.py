"""What the steps by which views go and come need of a database."""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Struct

from executor.core.core import Core
from executor.key_access.view_indexes import ViewIndexes
from executor.replicas.replica import Replicas
from executor.transactions.transaction import Transaction


class MovingServices(Struct, frozen=True):
    """What exists, the replicas of other servers' streams, the views' key indexes, and how a transaction commits."""

    core: Core
    replicas: Replicas
    indexes: ViewIndexes
    commit: Callable[[Transaction], None]
