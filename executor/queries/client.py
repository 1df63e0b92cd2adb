"""The client of a running query, as system relations, privileges and servers that continue the query see it."""

from __future__ import annotations

from datetime import UTC, datetime

from msgspec import Struct, field


class Client(Struct, frozen=True):
    """The session's process number and role, the statement's text, whether the client has gone, so that nothing takes
    the rows any more, and the time of its transaction."""

    process: int = 0
    role: str = ""
    text: str = ""
    is_gone: bool = False
    time: datetime = field(default_factory=lambda: datetime.now(UTC))
