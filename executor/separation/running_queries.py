"""Queries that run pipeline by pipeline now: how far they are, and what others ask of them.

Owns: the registry, and the meeting of two threads: one asks for a query's state, the other runs it and answers between
two pipelines. A query that ends first answers that there is nothing to have. Safe for many threads.
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
#: How many times longer than a copy of its state takes a query runs on before the next one.
_PAUSE: Final = 9


class Request(Struct):
    """Something asked of a running query, until it is answered; ``target`` is the server to which it is to migrate.

    ``by_cost``: at the moment and with the results that make it cheapest, else at the next stop with all.
    """

    wish: Wish
    target: str = ""
    by_cost: bool = True
    #: Whether it was found better to wait for the pipeline that runs now.
    is_waiting: bool = False
    #: By which way the query leaves, once it does (``planner/separation/carried_state``).
    way: Way = "move"
    begun: float = field(default_factory=time.monotonic)
    ended: float = 0.0
    _answered: threading.Event = field(default_factory=threading.Event)
    #: Whether the query's state is on storage now.
    done: bool = False
    error: SqlError | None = None

    def answer(self, done: bool, error: SqlError | None = None) -> None:
        """The asking thread goes on."""
        self.done, self.error, self.ended = done, error, time.monotonic()
        self._answered.set()

    @property
    def words(self) -> str:
        """By which way the query has left."""
        return f"wait, then {self.way}" if self.is_waiting else self.way

    @property
    def is_answered(self) -> bool:
        """Whether there is nothing to wait for."""
        return self._answered.is_set()

    def wait(self, is_cancelled: Callable[[], bool], step: float = 0.05) -> bool:
        """Whether the state is on storage. Raises what prevented it, and 57014."""
        while not self._answered.wait(step):
            if is_cancelled():
                raise SqlError("57014", "canceling statement due to user request")
        if self.error is not None:
            raise self.error
        return self.done


class RunningQuery:
    """One query. ``efforts`` are its pipelines' shares of the work, estimated; ``interval`` are the seconds after which
    its state is copied, 0 for never."""

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
        #: Pipelines that have finished, how much of the next one, and what the results are that are kept now.
        self.finished = 0
        self.share = 0.0
        #: How much of it will have finished after what is computed now, and how much of that is done.
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
        #: Whether all that is left of it is on storage, for the server that goes on with it.
        self.is_suspended = False

    @property
    def seconds(self) -> float:
        """How long it runs."""
        return time.monotonic() - self._begun

    @property
    def seconds_left(self) -> float | None:
        """How long it will take, about; None while that is not known."""
        done = self.progress
        return self.seconds * (1 - done) / done if done else None

    @property
    def is_leaving(self) -> bool:
        """Whether it will leave after the pipeline that runs now, or a later one, since that is cheaper."""
        with self._lock:
            return any(request.is_waiting for request in self._requests)

    @property
    def progress(self) -> float:
        """The share of the work that is done, about. It never goes back, though between two statements there is none
        that could tell how far it is."""
        efforts, step = self._efforts, (self.finished, self.share, self.until)
        finished, share, until = step
        measured = self.measure()
        if step == (self.finished, self.share, self.until):  # else the step is not known
            share += max(0.0, until - share) * measured
        done = sum(efforts[:finished]) + share * sum(efforts[finished : finished + 1])
        with self._lock:
            if efforts is self._efforts:
                self._most = max(self._most, done / sum(efforts))
            return self._most

    def begin_anew(self, names: tuple[str, ...], efforts: tuple[float, ...]) -> None:
        """It has given up what has finished, and runs in other steps."""
        with self._lock:
            self.names, self._efforts = names, efforts
            self.finished = self.rows = self.size = 0
            self.share = self._most = 0.0
            self.until = 1.0

    def advance(self, rows: int, size: int) -> None:
        """A pipeline has finished; all results that are kept have so many rows and bytes."""
        self.share, self.until = 0.0, 1.0
        self.finished += 1
        self.rows, self.size = rows, size

    def advance_slice(self, share: float, rows: int, size: int) -> None:
        """So much of the pipeline that runs now has finished."""
        self.share, self.rows, self.size = share, rows, size

    def ask(self, wish: Wish, target: str = "", by_cost: bool = True) -> Request:
        """Asks for something between two pipelines."""
        request = Request(wish, target, by_cost)
        with self._lock:
            if not self._ended:
                self._requests.append(request)
                return request
        request.answer(False)
        return request

    def asked(self) -> list[Request]:
        """What is asked and not answered, the copy that is due among it: the caller answers."""
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
        """When the next copy is: those that take long come less often, and none after one that failed."""
        last = self._copy
        if last is None:
            return self._begun + self._interval
        if last.error is not None:
            return math.inf
        return last.ended + max(self._interval, _PAUSE * (last.ended - last.begun))

    @property
    def copy_error(self) -> SqlError | None:
        """Why there are no more copies."""
        return None if self._copy is None else self._copy.error

    def end(self) -> None:
        """It runs no more: what is still asked is dismissed."""
        with self._lock:
            self._ended = True
            left, self._requests = self._requests, []
        for request in left:
            self.dismiss(request)

    def dismiss(self, request: Request) -> None:
        """Answers what nobody does any more: who wanted the state on storage has it where somebody else did so, too."""
        if not request.is_answered:
            request.answer(self.is_suspended and request.wish != "migrate")


class RunningQueries:
    """Those of one server."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._queries: dict[str, RunningQuery] = {}

    @contextmanager
    def during(self, query: RunningQuery) -> Iterator[None]:
        """The query runs. Raises 55006 where it does already."""
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
        """Whether this one runs now."""
        return query_id in self._queries

    def get(self, query_id: str) -> RunningQuery | None:
        """The query, if it runs now."""
        with self._lock:
            return self._queries.get(query_id)

    def all(self) -> tuple[RunningQuery, ...]:
        """The queries that run now."""
        with self._lock:
            return tuple(self._queries.values())

    def of_process(self, process: int) -> RunningQuery | None:
        """The query of a session; those of other servers have none."""
        return next((query for query in self.all() if query.client.process == process != 0), None)


def unknown() -> float:
    """How much is done of what is not measured."""
    return 0.0


def new_id() -> str:
    """An id that no other query has, on any server; below 2^63 as a number."""
    return f"{secrets.randbits(63):016x}"
