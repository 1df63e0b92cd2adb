"""The client of a running query, as system relations, privileges and servers that continue the query see it."""

from __future__ import annotations

from msgspec import Struct


class Client(Struct, frozen=True):
    """The session's process number and role, the statement's text, and whether the client has gone, so that nothing
    takes the rows any more."""

    process: int = 0
    role: str = ""
    text: str = ""
    is_gone: bool = False
