"""The running server: the listening socket, threads, caches and the sessions' common parent.

Owns: start and end. The socket listens before the database is open, so that a client gets its first byte at once and
waits for the rest. Knows nothing of messages.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections import deque
from collections.abc import Callable, Coroutine
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from catalog.errors import SqlError
from server.caches import ResultCache
from server.cancel import CancelRegistry
from server.config import Config
from server.connection import Connection

if TYPE_CHECKING:
    from executor.database import Database
    from server.planning import Bounded, PlanCache
    from server.points import Points

#: Seconds that a client has to take its last messages when the server ends.
_GOODBYE: Final = 5
#: RowDescriptions kept.
_DESCRIPTIONS: Final = 4096

logger = logging.getLogger(__name__)


class Completions:
    """Calls made on other threads that are carried out on the loop's thread, many for one wake-up."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._calls: deque[Callable[[], None]] = deque()
        self._lock = threading.Lock()
        self._scheduled = False

    def add(self, call: Callable[[], None]) -> None:
        """Any thread: ``call`` runs on the loop soon."""
        with self._lock:
            self._calls.append(call)
            if self._scheduled:
                return
            self._scheduled = True
        try:
            self._loop.call_soon_threadsafe(self._run)
        except RuntimeError:  # the loop has ended: nobody waits any more
            logger.debug("a completion came after the end")

    def _run(self) -> None:
        with self._lock:
            calls, self._calls = self._calls, deque()
            self._scheduled = False
        for call in calls:
            call()


@dataclass(frozen=True, slots=True)
class Opened:
    """What is there only once the heavy modules are loaded and the database is open."""

    database: Database
    plans: PlanCache
    points: Points
    descriptions: Bounded[bytes]


class Server:
    """Everything that sessions share. Made and used on the event loop's thread."""

    def __init__(self, config: Config) -> None:
        self.config = config
        self.loop = asyncio.get_running_loop()
        self.connections: set[Connection] = set()
        self.cancels = CancelRegistry()
        self.results = ResultCache(config.result_cache_bytes)
        self.completions = Completions(self.loop)
        # A session may wait in its thread for another's lock, so there is one for every session there can be.
        self.workers = ThreadPoolExecutor(config.max_connections + 1, "session")
        self.parsers = ThreadPoolExecutor(config.parse_threads, "parse")
        self._opened: asyncio.Future[Opened] = self.loop.create_future()
        self._left = asyncio.Event()
        self._tasks: asyncio.TaskGroup | None = None

    @property
    def defaults(self) -> dict[str, str]:
        """What the configuration says of run-time parameters."""
        config = self.config
        return {
            "max_connections": str(config.max_connections),
            "maintenance_engine": config.maintenance_engine,
            "synchronous_commit": "on" if config.synchronous_commit else "off",
            "lock_timeout": str(round(config.lock_timeout * 1000)),
            "statement_timeout": str(round(config.statement_timeout * 1000)),
        }

    async def wait_open(self) -> Database:
        """The database, once it is open."""
        return (await asyncio.shield(self._opened)).database

    @property
    def plans(self) -> PlanCache:
        """Parsed texts and plans of all sessions."""
        return self._opened.result().plans

    @property
    def points(self) -> Points:
        """Point reads of all sessions."""
        return self._opened.result().points

    @property
    def descriptions(self) -> Bounded[bytes]:
        """RowDescriptions by plan and formats."""
        return self._opened.result().descriptions

    def spawn(self, coroutine: Coroutine[Any, Any, None]) -> None:
        """Runs a task of a session; it must not raise."""
        assert self._tasks is not None
        self._tasks.create_task(coroutine)

    async def run(
        self,
        stop: asyncio.Event,
        listening: Callable[[int], None] | None = None,
        opened: Callable[[], None] | None = None,
    ) -> None:
        """Serves until ``stop``; ``listening`` is told the port, and ``opened`` called before the first client is
        served, on a thread of its own."""
        address = self.config.listen
        listener = await self.loop.create_server(
            lambda: Connection(self), address.host, address.port, backlog=max(128, self.config.max_connections)
        )
        port = listener.sockets[0].getsockname()[1]
        logger.info("listening address=%s port=%d", address.host, port)
        if listening is not None:
            listening(port)
        try:
            async with asyncio.TaskGroup() as self._tasks:
                try:
                    await self._serve(stop, opened)
                finally:
                    listener.close()
                    await self._end_connections()
        finally:
            await self._close_database()
            self.workers.shutdown()
            self.parsers.shutdown()

    async def _serve(self, stop: asyncio.Event, then: Callable[[], None] | None) -> None:
        try:
            opened = await self.loop.run_in_executor(None, _open, self.config, self.parsers)
            if then is not None:
                await self.loop.run_in_executor(None, then)
        except Exception:
            self._opened.set_exception(SqlError("57P03", "the database system cannot start: the server's log says why"))
            self._opened.exception()  # whether or not a client is there to hear it
            raise
        opened.database.appender.serve(self.loop.call_soon, self.completions.add, self.loop.add_reader)
        self._opened.set_result(opened)
        logger.info("database open data=%s", self.config.data)
        await stop.wait()

    async def _end_connections(self) -> None:
        """Cancels what runs, says goodbye, and waits until all sessions have ended."""
        logger.info("shutting down clients=%d", len(self.connections))
        for connection in tuple(self.connections):
            connection.handler.cancel()
            connection.end(SqlError("57P01", "terminating connection due to administrator command"))
        self._left.clear()
        while self.connections:
            try:
                async with asyncio.timeout(_GOODBYE):
                    await self._left.wait()
            except TimeoutError:
                for connection in tuple(self.connections):
                    connection.abort()
            self._left.clear()

    def left(self, connection: Connection) -> None:
        """A connection's session has ended."""
        self.connections.discard(connection)
        self._left.set()

    async def _close_database(self) -> None:
        if self._opened.done() and self._opened.exception() is None:
            await self.loop.run_in_executor(None, self._opened.result().database.close)
            logger.info("database closed")


def _open(config: Config, threads: Executor) -> Opened:
    """Loads what is heavy, while the socket listens already."""
    from executor.database import Database
    from server import session  # noqa: F401 -- for the first client
    from server.planning import Bounded, PlanCache
    from server.points import Points

    return Opened(Database.open(config.options()), PlanCache(), Points(threads), Bounded(_DESCRIPTIONS))
