"""What the sessions of one server share: its threads, caches and connections, and the database once it is open.

``server.serving`` starts and ends what is here.
"""

from __future__ import annotations

import asyncio
import datetime
import itertools
import logging
import threading
from collections import deque
from collections.abc import Callable, Coroutine
from functools import cached_property
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from server.net.access_files import Access
from server.net.cancel_keys import CancelRegistry
from server.net.clients import Clients
from server.notify.channels import Channels
from server.operations.config import Chosen
from server.operations.own_paths import OwnPaths
from server.plans.answer_cache import ResultCache
from server.workers import Workers

if TYPE_CHECKING:
    from executor.database.database import Database
    from server.notify.change_channels import ChangeChannels
    from server.plans.planning import PlanCache
    from server.plans.point_reads import Points
    from server.plans.rows import Descriptions

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


class Opened(Struct, frozen=True):
    """What is there only once the heavy modules are loaded and the database is open."""

    database: Database
    plans: PlanCache
    points: Points
    descriptions: Descriptions
    change_channels: ChangeChannels
    secret: bytes


class Services:
    """Everything that sessions share. Made and used on the event loop's thread. Raises ConfigError."""

    def __init__(self, chosen: Chosen) -> None:
        self.chosen = chosen
        self.config = config = chosen.config
        self.port = config.listen.port
        self.access = Access(config)
        self.own_paths = OwnPaths(config)
        self.loop = asyncio.get_running_loop()
        self.clients = Clients(config.max_connections)
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
    def change_channels(self) -> ChangeChannels:
        """Who is told of which views."""
        return self._opened.result().change_channels

    @property
    def secret(self) -> bytes:
        """What only this server knows, the same after every start."""
        return self._opened.result().secret

    def spawn(self, coroutine: Coroutine[Any, Any, None], failed: Callable[[BaseException], None]) -> None:
        """Runs a task of a connection. ``failed`` is told what it raises, which ends neither the server nor others."""
        assert self._tasks is not None
        self._tasks.create_task(_contained(coroutine, failed))


async def _contained(coroutine: Coroutine[Any, Any, None], failed: Callable[[BaseException], None]) -> None:
    try:
        await coroutine
    except asyncio.CancelledError:
        raise
    except BaseException as error:
        failed(error)
