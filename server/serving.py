"""The running server: the listening socket, threads, caches and the sessions' common parent.

Owns: start and end. The socket listens before the database is open, so that a client gets its first byte at once and
waits for the rest. Knows nothing of messages.
"""

from __future__ import annotations

import asyncio
import contextlib
import datetime
import itertools
import logging
import threading
from collections import deque
from collections.abc import Callable, Coroutine
from concurrent.futures import Executor
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct

from catalog.values.errors import SqlError
from executor.core import descriptors
from server.login.access_files import Access
from server.net.cancel_keys import CancelRegistry
from server.net.connection import Connection
from server.notify.channels import Channels
from server.operations.allocator import leave_out_pandas
from server.operations.config import Chosen, Config
from server.operations.memory_guard import MemoryGuard
from server.operations.own_paths import OwnPaths
from server.plans.answer_cache import ResultCache
from server.workers import Workers

if TYPE_CHECKING:
    from executor.database.database import Database
    from server.notify.view_channels import ViewChannels
    from server.plans.planning import PlanCache
    from server.plans.point_reads import Points
    from server.session.rows import Descriptions

#: Seconds that a client has to take its last messages when the server ends.
_GOODBYE: Final = 5
#: Seconds between two looks at what is still under way.
_DRAIN_STEP: Final = 0.02
SHUTDOWN: Final = SqlError("57P01", "terminating connection due to administrator command")
_TOO_MANY: Final = "sorry, too many clients already"
#: In the data folder: from it salts of nobody's passwords follow, which stay the same like everybody's.
_SECRET_FILE: Final = "login_secret"
#: Clients that may at least be logging in at once.
_STRANGERS: Final = 100

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
            logger.debug("a completion arrived after shutdown")

    def _run(self) -> None:
        with self._lock:
            calls, self._calls = self._calls, deque()
            self._scheduled = False
        for call in calls:
            try:
                call()
            except Exception as error:  # the calls behind it belong to others
                logger.error("unexpected error", exc_info=error)


class Stop:
    """What ends the server: ``asked`` lets what is under way go on for ``drain_timeout``, ``at_once`` no longer."""

    def __init__(self) -> None:
        self.asked = asyncio.Event()
        self.at_once = asyncio.Event()


class Opened(Struct, frozen=True):
    """What is there only once the heavy modules are loaded and the database is open."""

    database: Database
    plans: PlanCache
    points: Points
    descriptions: Descriptions
    view_channels: ViewChannels
    secret: bytes


class CannotStart(Exception):
    """The database does not open, for a reason outside of the program that the message names."""


class Server:
    """Everything that sessions share. Made and used on the event loop's thread. Raises ConfigError."""

    def __init__(self, chosen: Chosen) -> None:
        self.chosen = chosen
        self.config = config = chosen.config
        self.port = config.listen.port
        self.access = Access(config)
        self.own_paths = OwnPaths(config)
        self.loop = asyncio.get_running_loop()
        self.connections: set[Connection] = set()
        #: Those that have not proved who they are, in the order in which they came.
        self._strangers: dict[Connection, None] = {}
        #: Those of them that were dropped, until their sessions have ended.
        self._dropped: set[Connection] = set()
        self.cancels = CancelRegistry()
        self.results = ResultCache(config.result_cache)
        self.completions = Completions(self.loop)
        self.channels = Channels(self.completions.add)
        # A session may wait in its thread for another's lock, so there is one for every session there can be.
        self.workers = Workers(config.max_connections + 1, "session")
        self.parsers = Workers(config.parse_threads, "parse")
        #: Cut what is to be parsed, for which it need not wait until others are parsed.
        self.splitters = Workers(config.parse_threads, "split")
        self._opened: asyncio.Future[Opened] = self.loop.create_future()
        self._failure: CannotStart | None = None
        self._left = asyncio.Event()
        #: Whether sessions end because the server does.
        self.is_ending = False
        self._tasks: asyncio.TaskGroup | None = None
        self.started = datetime.datetime.now(datetime.UTC)
        #: Begin where no server before this one can have come to.
        self.transaction_numbers = itertools.count(int(self.started.timestamp() * 1_000_000))

    @cached_property
    def defaults(self) -> dict[str, str]:
        """What the configuration says of run-time parameters."""
        listen = self.config.listen
        return {
            **self.config.shown(),
            "port": str(self.port),
            "listen_addresses": listen.host,
            "data_directory": str(self.config.data.resolve()),
            "config_file": "" if self.chosen.file is None else str(self.chosen.file.resolve()),
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
    def descriptions(self) -> Descriptions:
        """RowDescriptions of all sessions."""
        return self._opened.result().descriptions

    @property
    def view_channels(self) -> ViewChannels:
        """Who is told of which views."""
        return self._opened.result().view_channels

    @property
    def secret(self) -> bytes:
        """What only this server knows, the same after every start."""
        return self._opened.result().secret

    def spawn(self, coroutine: Coroutine[Any, Any, None], failed: Callable[[BaseException], None]) -> None:
        """Runs a task of a connection. ``failed`` is told what it raises, which ends neither the server nor others."""
        assert self._tasks is not None
        self._tasks.create_task(_contained(coroutine, failed))

    async def run(
        self,
        stop: Stop,
        opened: Callable[[], None] | None = None,
    ) -> None:
        """Serves until ``stop``; ``opened`` is called before the first client is served, on a thread of its own.

        Raises OSError where it cannot listen, and CannotStart.
        """
        address = self.config.listen
        listener = await self.loop.create_server(
            lambda: Connection(self), address.host, address.port, backlog=max(128, self.config.max_connections)
        )
        self.port = listener.sockets[0].getsockname()[1]
        logger.info("listening address=%s port=%d", address.host, self.port)
        try:
            async with asyncio.TaskGroup() as self._tasks:
                try:
                    await self._serve(stop, opened)
                finally:
                    self.is_ending = True
                    listener.close()
                    await self._drain(stop.at_once)
                    await self._end_connections()
        finally:
            await self._close_database()
            self.workers.shutdown()
            self.parsers.shutdown()
            self.splitters.shutdown()
        if self._failure is not None:
            raise self._failure

    async def _serve(self, stop: Stop, then: Callable[[], None] | None) -> None:
        try:
            opened = await self.loop.run_in_executor(None, _open, self.config, self.parsers, self.completions)
            if then is not None:
                await self.loop.run_in_executor(None, then)
        except Exception as error:
            self._opened.set_exception(SqlError("57P03", "the database system cannot start: the server's log says why"))
            self._opened.exception()  # whether or not a client is there to hear it
            if not isinstance(error, SqlError | OSError):
                raise
            self._failure = CannotStart(_reason(error))
            return
        opened.database.appender.serve(self.completions.add)
        opened.database.row_changes.serve(self.loop.call_soon, self.completions.add)
        self._opened.set_result(opened)
        logger.info("database open data=%s", self.config.data)
        end_metrics = self._serve_metrics(opened.database)
        engine = opened.database.engine
        guard = MemoryGuard(self.config.memory, lambda: tuple(self.connections), self.completions.add, engine.give_back)
        guard.start()
        try:
            await stop.asked.wait()
        finally:
            guard.stop()
            end_metrics()

    def _serve_metrics(self, database: Database) -> Callable[[], None]:
        address = self.config.metrics_listen
        if address is None:
            return lambda: None
        from server.operations.metrics import serve_metrics

        logger.info("metrics address=%s port=%d", address.host, address.port)
        return serve_metrics(address, self, database)

    async def _drain(self, at_once: asyncio.Event) -> None:
        """Says goodbye to sessions as soon as they have no statement and no transaction under way, for a while."""
        end = self.loop.time() + self.config.drain_timeout
        while self.connections and not at_once.is_set() and self.loop.time() < end:
            for connection in tuple(self.connections):
                if not connection.is_busy and not connection.handler.is_under_way:
                    connection.end(SHUTDOWN)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_DRAIN_STEP):
                    await at_once.wait()

    async def _end_connections(self) -> None:
        """Cancels what runs, says goodbye, and waits until all sessions have ended."""
        logger.info("shutting down clients=%d", len(self.connections))
        for connection in tuple(self.connections):
            connection.handler.cancel()
            connection.end(SHUTDOWN)
        self._left.clear()
        while self.connections:
            try:
                async with asyncio.timeout(_GOODBYE):
                    await self._left.wait()
            except TimeoutError:
                for connection in tuple(self.connections):
                    connection.abort()
            self._left.clear()

    def met(self, connection: Connection) -> None:
        """Somebody is there. Strangers take no place of clients, and as many as clients may wait: of more, who came
        first has had the longest time to say who it is, and is dropped; so is the newest where it would take the last
        descriptors.
        """
        self.connections.add(connection)
        if descriptors.left() < descriptors.RESERVED // 2:
            self._dropped.add(connection)
            connection.abort()
            return
        self._strangers[connection] = None
        if len(self._strangers) > max(self.config.max_connections, _STRANGERS):
            first = next(iter(self._strangers))
            del self._strangers[first]  # it ends later than the next one comes
            self._dropped.add(first)
            first.abort()

    def admit(self, connection: Connection) -> None:
        """A stranger has proved who it is. Raises 53300."""
        self._strangers.pop(connection, None)
        if len(self.connections) - len(self._strangers) - len(self._dropped) > self.config.max_connections:
            raise SqlError("53300", _TOO_MANY)
        if descriptors.left() < descriptors.RESERVED:
            raise SqlError("53300", _TOO_MANY, "The server has too few file descriptors for one more client.")

    def left(self, connection: Connection) -> None:
        """A connection's session has ended."""
        self.connections.discard(connection)
        self._strangers.pop(connection, None)
        self._dropped.discard(connection)
        self._left.set()

    async def _close_database(self) -> None:
        if self._opened.done() and self._opened.exception() is None:
            await self.loop.run_in_executor(None, self._opened.result().database.close)
            logger.info("database closed")


async def _contained(coroutine: Coroutine[Any, Any, None], failed: Callable[[BaseException], None]) -> None:
    try:
        await coroutine
    except asyncio.CancelledError:
        raise
    except BaseException as error:
        failed(error)


def _reason(error: Exception) -> str:
    """Why the database does not open, and what to do."""
    hint = error.hint if isinstance(error, SqlError) else None
    return f"{error}; {hint}" if hint else str(error)


def _open(config: Config, threads: Executor, completions: Completions) -> Opened:
    """Loads what is heavy, while the socket listens already."""
    leave_out_pandas()
    from executor.commit.files import load_secret
    from executor.database.database import Database
    from server import session  # noqa: F401 -- for the first client
    from server.login.peers import Peers
    from server.notify.view_channels import ViewChannels
    from server.plans.planning import PlanCache
    from server.plans.point_reads import Points
    from server.session.rows import Descriptions

    with contextlib.ExitStack() as failing:
        database = failing.enter_context(contextlib.closing(Database.open(config.options())))
        database.elsewhere.ask = Peers(database.shared.key).ask
        views = ViewChannels(database.view_watch, completions.add)
        secret = load_secret(config.data / _SECRET_FILE)
        failing.pop_all()
    return Opened(database, PlanCache(config.statement_length), Points(threads), Descriptions(), views, secret)
