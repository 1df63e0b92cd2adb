"""The running server: the listening socket, threads, caches and the sessions' common parent.

Owns: start and end. The socket listens before the database is open, so that a client gets its first byte at once and
waits for the rest. Knows nothing of messages.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable
from concurrent.futures import Executor
from functools import partial
from typing import TYPE_CHECKING, Final

from catalog.values.errors import SqlError
from server.login.startup import Startup
from server.net.connection import Connection
from server.operations.allocator import leave_out_pandas
from server.operations.config import Chosen, Config
from server.operations.memory_guard import MemoryGuard
from server.services import Completions, Opened, Services

if TYPE_CHECKING:
    from executor.database.database import Database

#: In the data folder: the salts of missing roles' passwords are computed from it, so that they stay as constant as
#: those of others.
_SECRET_FILE: Final = "login_secret"

logger = logging.getLogger(__name__)


class Stop:
    """What ends the server: ``asked`` lets what is under way go on for ``drain_timeout``, ``at_once`` no longer."""

    def __init__(self) -> None:
        self.asked = asyncio.Event()
        self.at_once = asyncio.Event()


class CannotStart(Exception):
    """The database does not open, for a reason outside of the program that the message names."""


class Server(Services):
    """Listens, opens the database and ends. Made and used on the event loop's thread. Raises ConfigError."""

    def __init__(self, chosen: Chosen) -> None:
        super().__init__(chosen)
        self._failure: CannotStart | None = None

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
            lambda: Connection(self, partial(Startup, server=self)),
            address.host,
            address.port,
            backlog=max(128, self.config.max_connections),
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
                    await self.clients.drain(stop.at_once, self.config.drain_timeout)
                    logger.info("shutting down clients=%d", len(self.clients))
                    await self.clients.end()
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
        opened.database.appender.serve(self.loop.call_soon, self.completions.add)
        opened.database.row_changes.serve(self.loop.call_soon, self.completions.add)
        self._opened.set_result(opened)
        logger.info("database open data=%s", self.config.data)
        end_metrics = self._serve_metrics(opened.database)
        engine = opened.database.core.engine
        guard = MemoryGuard(self.config.memory, lambda: tuple(self.clients), self.completions.add, engine.give_back)
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
        return serve_metrics(address, self.clients, self.config.max_connections, database)

    async def _close_database(self) -> None:
        if self._opened.done() and self._opened.exception() is None:
            await self.loop.run_in_executor(None, self._opened.result().database.close)
            logger.info("database closed")


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
    from server.notify.change_channels import ChangeChannels
    from server.plans.planning import PlanCache
    from server.plans.point_reads import Points
    from server.plans.rows import Descriptions

    with contextlib.ExitStack() as failing:
        database = failing.enter_context(contextlib.closing(Database.open(config.options())))
        database.elsewhere.ask = Peers(database.core.shared.key).ask
        views = ChangeChannels(database.change_watch, completions.add)
        secret = load_secret(config.data / _SECRET_FILE)
        failing.pop_all()
    return Opened(database, PlanCache(config.statement_length), Points(threads), Descriptions(), views, secret)
