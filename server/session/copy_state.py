"""The COPY FROM STDIN of a session, from its statement until its data has come or an error ends it.

Owns: which COPY that is. What it does with the data is ``server.query.copy.copying``'s.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Protocol

from catalog.values.errors import SqlError


class Copying(Protocol):
    """A COPY FROM STDIN that has begun."""

    @property
    def held_bytes(self) -> int:
        """Bytes of the rows that have come and are not taken yet."""
        ...

    @property
    def then(self) -> Callable[[], Awaitable[None]] | None:
        """What follows its end, if anything."""
        ...

    def feed(self, data: bytes) -> Awaitable[None] | None:
        """Takes the data of a message."""
        ...

    async def finish(self) -> int:
        """All data has come; how many rows it was."""
        ...

    def cancel(self, error: SqlError) -> None:
        """Ends it with an error."""
        ...

    async def abort(self) -> None:
        """Ends it; its rows are dropped."""
        ...


class CopyState:
    """The COPY whose data the client of one session sends, if there is one."""

    __slots__ = ("running",)

    def __init__(self) -> None:
        self.running: Copying | None = None

    @property
    def held_bytes(self) -> int:
        """Bytes of rows that have come and are not taken yet."""
        return 0 if self.running is None else self.running.held_bytes

    def begin(self, copy: Copying) -> None:
        """The data that comes is that of a COPY."""
        self.running = copy

    def end(self) -> None:
        """All data has come: what is left is a statement like others."""
        self.running = None

    async def abort(self) -> None:
        """Ends the COPY, if there is one; its rows are dropped."""
        copy, self.running = self.running, None
        if copy is None:
            return
        try:
            await copy.abort()
        except BaseException:  # the session closes again later
            self.running = copy
            raise
