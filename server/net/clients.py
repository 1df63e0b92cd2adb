"""The connections of one server: how many there may be, and how they end with it.

Owns: which connections there are, and which of them have not proved who they are: these take no place of clients.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from catalog.values.errors import SqlError
from executor.core import descriptors
from server.net.connection import SHUTDOWN

if TYPE_CHECKING:
    from server.net.connection import Connection

_TOO_MANY: Final = "sorry, too many clients already"
#: Clients that may at least be logging in at once.
_STRANGERS: Final = 100
#: Seconds that a client has to take its last messages when the server ends.
_GOODBYE: Final = 5
#: Seconds between two looks at what is still under way.
_DRAIN_STEP: Final = 0.02


class Clients:
    """The connections of one server. On the event loop's thread, but for iterating."""

    def __init__(self, most: int) -> None:
        """``most`` have a place; as many, or some more, may be logging in."""
        self._most = most
        self._connections: set[Connection] = set()
        #: Those that have not proved who they are, in the order in which they came.
        self._strangers: dict[Connection, None] = {}
        #: Those of them that were dropped, until their sessions have ended.
        self._dropped: set[Connection] = set()
        self._left = asyncio.Event()

    def __iter__(self) -> Iterator[Connection]:
        """All connections that there are now."""
        return iter(tuple(self._connections))

    def __len__(self) -> int:
        return len(self._connections)

    def met(self, connection: Connection) -> None:
        """A connection has come. As many strangers as clients may wait: of more, the first has had the longest time to
        say who it is, and is dropped; so is the newest where it would take the last descriptors.
        """
        self._connections.add(connection)
        if descriptors.left() < descriptors.RESERVED // 2:
            self._dropped.add(connection)
            connection.abort()
            return
        self._strangers[connection] = None
        if len(self._strangers) > max(self._most, _STRANGERS):
            first = next(iter(self._strangers))
            del self._strangers[first]  # it ends later than the next one comes
            self._dropped.add(first)
            first.abort()

    def admit(self, connection: Connection) -> None:
        """A stranger has proved who it is. Raises 53300."""
        self._strangers.pop(connection, None)
        if len(self) - len(self._strangers) - len(self._dropped) > self._most:
            raise SqlError("53300", _TOO_MANY)
        if descriptors.left() < descriptors.RESERVED:
            raise SqlError("53300", _TOO_MANY, "The server has too few file descriptors for one more client.")

    def left(self, connection: Connection) -> None:
        """A connection's session has ended."""
        self._connections.discard(connection)
        self._strangers.pop(connection, None)
        self._dropped.discard(connection)
        self._left.set()

    # -- the server's end --------------------------------------------------------------------------------------

    async def drain(self, at_once: asyncio.Event, seconds: float) -> None:
        """Says goodbye to sessions as soon as they have no statement and no transaction under way, for so long or
        until ``at_once``."""
        loop = asyncio.get_running_loop()
        end = loop.time() + seconds
        while self._connections and not at_once.is_set() and loop.time() < end:
            for connection in self:
                if not connection.is_busy and not connection.handler.is_under_way:
                    connection.end(SHUTDOWN)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_DRAIN_STEP):
                    await at_once.wait()

    async def end(self) -> None:
        """Cancels what runs, says goodbye, and waits until all sessions have ended."""
        for connection in self:
            connection.handler.cancel()
            connection.end(SHUTDOWN)
        self._left.clear()
        while self._connections:
            try:
                async with asyncio.timeout(_GOODBYE):
                    await self._left.wait()
            except TimeoutError:
                for connection in self:
                    connection.abort()
            self._left.clear()
