"""The client for which a query runs, as far as the executor knows one."""

from __future__ import annotations

from msgspec import Struct


class Client(Struct, frozen=True):
    """For whom a query runs: the process number of the session, its role, and the statement's text; whether nobody is
    there any more to take the rows."""

    process: int = 0
    role: str = ""
    text: str = ""
    is_gone: bool = False
