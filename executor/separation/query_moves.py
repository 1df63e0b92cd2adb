"""Queries that move between servers: sent, waited for, received, and taken over from a failed server.

Owns: the thread that renews this server's lease and serves requests of other servers. Servers exchange messages only
through their storage: a claim that is **ordered** is a query to begin, an entry that is ``draining`` tells its server
to give away its running queries, and rows return as the artifact of a finished query. So a failure of either server at
any moment loses nothing, and rows without a waiting client stay on the storage, where they can be read by the query's
id.
"""

from __future__ import annotations

import contextlib
import itertools
import logging
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Final, Protocol

import pyarrow as pa

from catalog.os_errors import UNREADABLE
from catalog.values.errors import SqlError
from executor.cluster.claims import Claims
from executor.cluster.registry import LOOKS, Member
from executor.core.core import Core
from executor.core.periodic import Pace
from executor.failpoints import failpoint
from executor.queries.client import Client
from executor.queries.reader import OwnReader, Reader
from executor.separation.query_artifact import SeparatedQueries, SeparatedQuery
from executor.separation.running_queries import Request, RunningQueries
from executor.separation.step_runner import Moved

if TYPE_CHECKING:
    from executor.views.runtime import ViewRuntime

#: Seconds between two checks of the storage, by the thread and by sessions that wait for a query.
_LOOK: Final = 0.1
_WAIT: Final = 0.02
#: The most queries of other servers that run concurrently.
_AT_ONCE: Final = 8
#: A query to begin is running already.
_IS_RUNNING: Final = "55006"

_LOGGER = logging.getLogger(__name__)


class OwnQueries(Protocol):
    """One server's separable queries, from which a moving query comes or which it joins."""

    @property
    def claims(self) -> Claims:
        """The leases on queries."""
        ...

    @property
    def stored(self) -> SeparatedQueries:
        """The queries on storage."""
        ...

    @property
    def running(self) -> RunningQueries:
        """The queries that run here."""
        ...

    def rest(self, reader: Reader, query: SeparatedQuery) -> pa.Table:
        """The rows of a stored query, computed here."""
        ...

    def go_on(self, reader: Reader, query: SeparatedQuery, keep: bool = False) -> None:
        """Runs a stored query to its end on this server."""
        ...


class MovingViews(Protocol):
    """The continuous views that leave a server while it is drained."""

    left: int

    def leaving(self) -> Sequence[ViewRuntime]:
        """The views that have not left yet."""
        ...


class Moving:
    """The queries that move to and from one server."""

    def __init__(self, core: Core, separation: OwnQueries, reader: Callable[[], OwnReader], views: MovingViews) -> None:
        """``reader`` creates a reader of this server, ``views`` are the views that leave together with the queries."""
        self._core = core
        self._separation = separation
        self._reader = reader
        self._views = views
        self._registry = core.registry
        self._claims = separation.claims
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._serve, name="cluster", daemon=True)
        self._workers = ThreadPoolExecutor(_AT_ONCE, "moved")
        #: Queries of other servers that this server has begun.
        self._begun: dict[str, OwnReader] = {}
        #: During a drain: the requests to its queries, the queries that cannot leave, and those that have left. A query
        #: that its target gives up comes back, and leaves again.
        self._drained: dict[str, Request] = {}
        self._staying: set[str] = set()
        self._left: set[str] = set()
        self._draining = False

    def start(self) -> None:
        """Starts the thread that renews the lease."""
        if self._core.options.storage:
            self._core.shared.pulse.start()
        self._thread.start()

    def close(self) -> None:
        """Hands the storage over to the other servers: the queries of others that run here are cancelled and left to
        them."""
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join()
        while self._begun:
            for reader in tuple(self._begun.values()):
                reader.cancel()
            time.sleep(_WAIT)
        self._workers.shutdown()
        self._registry.close()
        self._core.shared.pulse.close()

    # For sessions -----------------------------------------------------------------------------------------------

    def rows(self, reader: Reader, query_id: str) -> pa.Table:
        """The rows of a query that continues on another server, once it has ended there; if no server runs the query
        any more, it is computed here.

        Raises 57014; the query then ends on the other server too, unless the client only disconnected. While the
        storage cannot be read, the end of the query is not noticed.
        """
        while True:
            self._wait(reader, query_id)
            failpoint("ended")
            try:
                return self._separation.rest(reader, self._separation.stored.get(query_id))
            except SqlError as error:
                if error.sqlstate != _IS_RUNNING:  # unless the server's own thread took it over first
                    raise

    def _wait(self, reader: Reader, query_id: str) -> None:
        """Waits until no server runs the query. Raises 57014."""
        while self._is_claimed(query_id) or self._separation.running.has(query_id):
            if reader.is_cancelled():
                if not reader.client().is_gone:
                    with contextlib.suppress(SqlError):
                        self._claims.free(query_id)
                raise SqlError("57014", "canceling statement due to user request")
            time.sleep(_WAIT)

    def _is_claimed(self, query_id: str) -> bool:
        try:
            return self._claims.get(query_id) is not None
        except SqlError as error:
            if error.sqlstate not in UNREADABLE:
                raise
            return True

    def drain(self, name: str, is_cancelled: Callable[[], bool], tell: Callable[[int], None]) -> int:
        """Drains a server: everything that can leaves it, and it gets nothing from others until it starts again.

        Returns how many queries and views have left; ``tell`` is called with these numbers meanwhile. Raises 42704,
        55000, 57014.
        """
        member = self._registry.require(name)
        if all(other.name == name or other.state != "up" for other in self._registry.all()):
            raise SqlError("55000", f'no server can take over the queries of server "{name}"')
        self._registry.mark(name, "draining")
        told = 0
        while True:
            now = self._registry.require(name)
            if now.moved > told:
                told = now.moved
                tell(told)
            if now.state == "drained":
                return now.moved
            if now.epoch != member.epoch or not now.is_living:
                raise SqlError("55000", f'server "{name}" has ended')
            if is_cancelled():
                raise SqlError("57014", "canceling statement due to user request")
            time.sleep(_WAIT)

    # The server's own thread ------------------------------------------------------------------------------------

    def _serve(self) -> None:
        beat, others = Pace(self._registry.pause), Pace(LOOKS)
        is_well = True
        while not self._stop.wait(_LOOK):
            try:
                if beat.is_due() and not self._registry.beat():
                    _LOGGER.critical("the lease was taken over: nothing is written to the storage until a restart")
                    return
                if others.is_due():
                    self._take_over()
                self._look()
                if not is_well:
                    _LOGGER.info("the storage can be used again")
                is_well = True
            except Exception as error:  # whatever the error: without its heartbeat the server counts as lost
                if is_well:
                    is_known = isinstance(error, OSError | SqlError)
                    _LOGGER.warning("the storage cannot be used: %s", error, exc_info=not is_known)
                is_well = False

    def _take_over(self) -> None:
        """Continues queries of lost servers from their state on storage, including queries of a server that another one
        declared lost before it failed itself."""
        for member in self._registry.silent():
            if self._registry.take_over(member):
                _LOGGER.warning("server %s is lost: its queries are taken over", member.name)
                failpoint("lost")
        ended = {member.name: member.epoch for member in self._registry.all() if member.state == "lost"}
        for query_id, claim in self._claims.all().items():
            if claim.epoch < ended.get(claim.server, 0) and self._claims.inherit(query_id, claim):
                failpoint("inherited")

    def _look(self) -> None:
        own = self._registry.require(self._registry.name)
        begun = dict(self._begun)  # before the claims: a query that ends meanwhile is not begun again
        claims = self._claims.all()
        mine = {query_id: claim for query_id, claim in claims.items() if self._claims.is_mine(claim)}
        for query_id, reader in begun.items():
            if query_id not in mine:
                reader.cancel()  # the query was deleted
        for query_id, claim in mine.items():
            if not claim.ordered and not self._claims.holds(query_id):
                self._claims.drop_unheld(query_id)  # a claim whose release has failed
        ordered = [query_id for query_id, claim in mine.items() if claim.ordered and query_id not in begun]
        if own.state == "up":
            for query_id in ordered:
                self._begin(query_id)
        elif own.is_living:
            self._drain(own, ordered)

    def _begin(self, query_id: str) -> None:
        reader = self._begun[query_id] = self._reader()
        self._workers.submit(self._run, query_id, reader)

    def _run(self, query_id: str, reader: Reader) -> None:
        """Continues a query of another server; afterwards its rows, or the rest of the query, are on storage."""
        try:
            with contextlib.suppress(Moved):
                self._finish(query_id, reader)
                self._claims.decline(query_id)
        except Exception as error:  # whatever the error: the session that waits for the query continues it
            if isinstance(error, SqlError) and error.sqlstate == _IS_RUNNING:
                return  # the session that waits for the query continues it already
            _LOGGER.warning("query %s of another server cannot continue: %s", query_id, error)
            with contextlib.suppress(SqlError):
                self._claims.decline(query_id)
        finally:
            del self._begun[query_id]

    def _finish(self, query_id: str, reader: Reader) -> None:
        if self._stop.is_set():
            return
        query = self._separation.stored.get(query_id)
        reader.client = lambda: Client(0, query.role, query.text)
        self._separation.go_on(reader, query, keep=True)
        failpoint("kept")

    def _drain(self, own: Member, ordered: list[str]) -> None:
        if own.state == "draining" and not self._draining:
            self._draining = True
            self._left.clear()
        targets = itertools.cycle(member.name for member in self._registry.targets())
        for query_id, request in tuple(self._drained.items()):
            if request.is_answered:
                del self._drained[query_id]
                if request.done:
                    self._left.add(query_id)
                elif request.error is not None and request.error.sqlstate == "0A000":
                    self._staying.add(query_id)
                    self._left.discard(query_id)
        running = [query for query in self._separation.running.all() if query.id not in self._staying]
        for query, target in zip(running, targets, strict=False):
            if query.id not in self._drained:
                self._drained[query.id] = query.ask("migrate", target)
        for query_id, target in zip(ordered, targets, strict=False):
            self._claims.give(query_id, target)
            self._left.add(query_id)
        views = self._views
        is_empty = not running and not ordered and not self._drained and not views.leaving()
        state, moved = "drained" if is_empty else own.state, len(self._left) + views.left
        if (own.state, own.moved) != (state, moved):
            self._draining = self._draining and not is_empty
            self._registry.mark(own.name, state, moved)
