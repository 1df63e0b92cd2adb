"""The queries that run pipeline by pipeline now: their progress, and requests to them.

Owns: the registry, and the meeting of two threads: one asks for a query's state, the other runs the query and answers
between two pipelines. A query that ends first answers that there is no state. Safe for many threads.
"""

from __future__ import annotations

import datetime
import math
import secrets
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final, Literal

from msgspec import Struct, field

from catalog.values.errors import SqlError
from executor.queries.client import Client
from planner.separation.carried_state import Way

Wish = Literal["suspend", "checkpoint", "migrate"]
#: The time from one copy of a query's state to the next is at least this many times as long as a copy takes.
_PAUSE: Final = 9


class Request(Struct):
    """A request to a running query; ``target`` is the server to which the query is to migrate.

    ``by_cost``: the query leaves at the moment and with the results that are cheapest; otherwise at the next stop with
    all results.
    """

    wish: Wish
    target: str = ""
    by_cost: bool = True
    #: Whether waiting for the running pipeline was found to be better.
    is_waiting: bool = False
    #: How the query leaves, once it does (``planner/separation/carried_state``).
    way: Way = "move"
    begun: float = field(default_factory=time.monotonic)
    ended: float = 0.0
    _answered: threading.Event = field(default_factory=threading.Event)
    #: Whether the query's state is on storage now.
    done: bool = False
    error: SqlError | None = None

    def answer(self, done: bool, error: SqlError | None = None) -> None:
        """Answers the request: the asking thread continues."""
        self.done, self.error, self.ended = done, error, time.monotonic()
        self._answered.set()

    @property
    def words(self) -> str:
        """How the query has left, in words."""
        return f"wait, then {self.way}" if self.is_waiting else self.way

    @property
    def is_answered(self) -> bool:
        """Whether there is nothing to wait for."""
        return self._answered.is_set()

    def wait(self, is_cancelled: Callable[[], bool], step: float = 0.05) -> bool:
        """Waits for the answer: whether the state is on storage. Raises the error that prevented it, and 57014."""
        while not self._answered.wait(step):
            if is_cancelled():
                raise SqlError("57014", "canceling statement due to user request")
        if self.error is not None:
            raise self.error
        return self.done


class RunningQuery:
    """One running query. ``efforts`` are its pipelines' estimated shares of the work; ``interval`` is the number of
    seconds between copies of its state, 0 for no copies."""

    def __init__(
        self,
        client: Client,
        names: tuple[str, ...],
        efforts: tuple[float, ...],
        query_id: str = "",
        interval: float = 0.0,
    ) -> None:
        self.id = query_id or new_id()
        self.client = client
        self.names = names
        self.started = datetime.datetime.now(datetime.UTC)
        #: The number of finished pipelines, the finished share of the next one, and the size of the results kept now
        #: (``rows``, ``size``).
        self.finished = 0
        self.share = 0.0
        #: The share of the next pipeline that is finished after the current step, and a function for the finished share
        #: of the step.
        self.until = 1.0
        self.measure: Callable[[], float] = unknown
        self._most = 0.0
        self.rows = 0
        self.size = 0
        #: When its state was last copied to storage.
        self.copied: datetime.datetime | None = None
        self._interval = interval
        self._copy: Request | None = None
        self._efforts = efforts
        self._begun = time.monotonic()
        self._lock = threading.Lock()
        self._requests: list[Request] = []
        self._ended = False
        #: Whether the whole rest of it is on storage, for the server that continues it.
        self.is_suspended = False

    @property
    def seconds(self) -> float:
        """How long it has been running."""
        return time.monotonic() - self._begun

    @property
    def seconds_left(self) -> float | None:
        """An estimate of the remaining seconds; None while unknown."""
        done = self.progress
        return self.seconds * (1 - done) / done if done else None

    @property
    def is_leaving(self) -> bool:
        """Whether it will leave after the running pipeline or a later one, because that is cheaper."""
        with self._lock:
            return any(request.is_waiting for request in self._requests)

    @property
    def progress(self) -> float:
        """An estimate of the finished share of the work. It never decreases, although between two statements the
        running share is unknown."""
        efforts, step = self._efforts, (self.finished, self.share, self.until)
        finished, share, until = step
        measured = self.measure()
        if step == (self.finished, self.share, self.until):  # otherwise the step is not known
            share += max(0.0, until - share) * measured
        done = sum(efforts[:finished]) + share * sum(efforts[finished : finished + 1])
        with self._lock:
            if efforts is self._efforts:
                self._most = max(self._most, done / sum(efforts))
            return self._most

    def begin_anew(self, names: tuple[str, ...], efforts: tuple[float, ...]) -> None:
        """Starts again with other steps, without the results so far."""
        with self._lock:
            self.names, self._efforts = names, efforts
            self.finished = self.rows = self.size = 0
            self.share = self._most = 0.0
            self.until = 1.0

    def advance(self, rows: int, size: int) -> None:
        """A pipeline has finished; all kept results together have ``rows`` rows and ``size`` bytes."""
        self.share, self.until = 0.0, 1.0
        self.finished += 1
        self.rows, self.size = rows, size

    def advance_slice(self, share: float, rows: int, size: int) -> None:
        """A share of the running pipeline has finished; all kept results have ``rows`` rows and ``size`` bytes."""
        self.share, self.rows, self.size = share, rows, size

    def ask(self, wish: Wish, target: str = "", by_cost: bool = True) -> Request:
        """Sends a request, which is answered between two pipelines."""
        request = Request(wish, target, by_cost)
        with self._lock:
            if not self._ended:
                self._requests.append(request)
                return request
        request.answer(False)
        return request

    def asked(self) -> list[Request]:
        """The unanswered requests, including a copy that is due; the caller must answer them."""
        with self._lock:
            found, self._requests = self._requests, []
        if self._interval and time.monotonic() >= self._due():
            self._copy = Request("checkpoint")
            found.append(self._copy)
        return found

    def postpone(self, request: Request) -> None:
        """Leaves a request until the next pipeline has ended."""
        request.is_waiting = True
        with self._lock:
            self._requests.append(request)

    def _due(self) -> float:
        """Whether a copy is due: copies that take long are less frequent, and after a failed one there are no more."""
        last = self._copy
        if last is None:
            return self._begun + self._interval
        if last.error is not None:
            return math.inf
        return last.ended + max(self._interval, _PAUSE * (last.ended - last.begun))

    @property
    def copy_error(self) -> SqlError | None:
        """Stops copies, with the reason."""
        return None if self._copy is None else self._copy.error

    def end(self) -> None:
        """The query has ended: its open requests are dismissed."""
        with self._lock:
            self._ended = True
            left, self._requests = self._requests, []
        for request in left:
            self.dismiss(request)

    def dismiss(self, request: Request) -> None:
        """Answers requests that come too late. A request for the state on storage succeeds if an earlier request wrote
        it."""
        if not request.is_answered:
            request.answer(self.is_suspended and request.wish != "migrate")


class RunningQueries:
    """The running queries of one server."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._queries: dict[str, RunningQuery] = {}

    @contextmanager
    def during(self, query: RunningQuery) -> Iterator[None]:
        """Registers the query while it runs. Raises 55006 if it is running already."""
        with self._lock:
            if query.id in self._queries:
                raise SqlError("55006", f'query "{query.id}" is running already')
            self._queries[query.id] = query
        try:
            yield
        finally:
            with self._lock:
                del self._queries[query.id]
            query.end()

    def has(self, query_id: str) -> bool:
        """Whether the query runs now."""
        return query_id in self._queries

    def get(self, query_id: str) -> RunningQuery | None:
        """The query, or None if it does not run."""
        with self._lock:
            return self._queries.get(query_id)

    def all(self) -> tuple[RunningQuery, ...]:
        """The queries that run now."""
        with self._lock:
            return tuple(self._queries.values())

    def of_process(self, process: int) -> RunningQuery | None:
        """The query of a session, None for queries of other servers."""
        return next((query for query in self.all() if query.client.process == process != 0), None)


def unknown() -> float:
    """The finished share of a step that cannot be measured: 0."""
    return 0.0


def new_id() -> str:
    """A new id, unique among all servers; below 2^63 as a number."""
    return f"{secrets.randbits(63):016x}"
