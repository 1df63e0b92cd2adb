"""Rows of a home's tables for the guests of this server that read them whenever they are read.

Owns: for how long an answer of the home holds. An answer has the home's LSN of its rows. The replica follows the home's
log, which has each change of a table, so an answer of LSN a is the table at each position p >= a of the replica, as
long as the table has not changed behind a. So the home is asked once for each change, and a view whose tables do not
change is read without its home::

    a <= p, no change in (a, p]     ->     table(p) = table(a) = the answer

A read uses the position that it took with its LSN, under the sequencer's lock: the view's states then have the streams'
rows up to that position, too. A table may change all the time, so the replica goes no further than an answer until the
read has its LSN (``steady``). A change is also a record here, without rows, which gives the view another version
(``executor/core/versions``), so that no cached result outlives it. The home answers from its tables alone
(``executor.moving.answers``), so the questions of two servers never wait for each other. Knows nothing of connections:
``remote_views`` sends the questions.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

import pyarrow as pa
from msgspec import Struct

from catalog.values.errors import SqlError
from executor.core.core import Core
from executor.remote_reads.messages import Asking, Question, Unwanted, decode_answer, encode_question
from executor.remote_reads.remote_views import Elsewhere
from executor.replicas.replica import Replica, Replicas, replica_of
from executor.views.location import Lent
from executor.views.runtime import ViewRuntime
from planner.algebra.nodes import Scan
from planner.incremental.names import stored_name
from planner.incremental.programs.program import Borrowed

#: Seconds until the home must show all records of its log, and between two looks.
_PATIENCE: Final = 5.0
_WAIT: Final = 0.02


class Lending(Struct, frozen=True):
    """The rows of the home's tables that a view reads at a moment, by the names of leaves; other rows have another
    ``version``."""

    rows: Mapping[str, pa.Table]
    version: int


class Borrowing:
    """Reads tables of homes for the guests of this server. Safe for many threads."""

    def __init__(self, core: Core, replicas: Replicas, elsewhere: Elsewhere) -> None:
        self._core, self._replicas, self._elsewhere = core, replicas, elsewhere

    def fetch(self, views: Iterable[int], reader: Asking) -> None:
        """Asks homes for the tables that have changed, of these continuous views and those below them. Raises 08001
        where a home cannot be reached, 57014. The caller holds no view's lock."""
        for replica, runtime in self._borrowers(views):
            for item in runtime.program.borrowed:
                self._fetch(runtime, replica, item, reader)

    def _fetch(self, runtime: ViewRuntime, replica: Replica, item: Borrowed, reader: Asking) -> None:
        if _holds(runtime, replica, item):
            return
        while not runtime.loans.asking.acquire(timeout=_WAIT):  # one request for all waiting readers
            _require_wanted(reader)
        try:
            if not _holds(runtime, replica, item):
                found = self._asked(runtime, replica, item, reader)
                runtime.loans.take({item.name: found})
        finally:
            runtime.loans.asking.release()

    def _asked(self, runtime: ViewRuntime, replica: Replica, item: Borrowed, reader: Asking) -> Lent:
        """A table's rows now, at an LSN that the replica has not passed: the replica will see each later change."""
        sources = tuple(column.name for column in item.columns)
        question = encode_question(Question("", Scan(item.table, item.called, "table", item.columns, sources), "UTC"))
        deadline = time.monotonic() + _PATIENCE
        while True:
            least, address = replica.position, self._core.registry.address(replica.home)
            try:
                answer = decode_answer(self._elsewhere.ask(address, question, reader.is_cancelled))
            except Unwanted:
                raise SqlError("57014", "canceling statement due to user request") from None
            except OSError as error:
                raise _unreachable(runtime, replica.home, item, error) from error
            if answer.at >= least:
                return Lent(answer.at, _checked(item, answer.rows))
            if time.monotonic() > deadline:
                raise SqlError("55000", f'server "{replica.home}" does not show all rows of its log yet')
            time.sleep(_WAIT)  # it has logged what it does not show yet

    @contextlib.contextmanager
    def steady(self, views: Iterable[int], reader: Asking) -> Iterator[None]:
        """A context in which the replicas of views that read tables stay at a position at which the tables' rows are
        known, if there is one: each table is asked for once. The caller holds no view's lock, and has called ``fetch``,
        so that others do not wait for a home. Raises as ``fetch``."""
        with contextlib.ExitStack() as stack:
            for replica, runtime in sorted(self._borrowers(views), key=lambda item: item[0].home):  # one order for all
                stack.enter_context(replica.lock)
                self._settle(runtime, replica, reader)
            yield

    def _borrowers(self, views: Iterable[int]) -> Iterator[tuple[Replica, ViewRuntime]]:
        """The views that read tables of their homes, of these views and those below them, with their replicas."""
        for oid in self._core.views_below(tuple(views)) if self._replicas.all() else ():
            runtime = self._core.view(oid)
            replica = replica_of(self._replicas, runtime) if runtime.program.borrowed else None
            if replica is not None and runtime.error is None:
                yield replica, runtime

    def _settle(self, runtime: ViewRuntime, replica: Replica, reader: Asking) -> None:
        """Brings a view's replica to the LSN of the tables' rows; the caller has the replica's lock."""
        replica.catch_up()
        for item in runtime.program.borrowed:
            if not _holds(runtime, replica, item):
                runtime.loans.take({item.name: self._asked(runtime, replica, item, reader)})
        wanted, deadline = max(lent.at for lent in runtime.loans.lent.values()), time.monotonic() + _PATIENCE
        while replica.position < wanted:
            replica.catch_up(wanted)
            if replica.position < wanted:
                if time.monotonic() > deadline:
                    raise SqlError("55000", f'the log of server "{replica.home}" lacks rows that the server shows')
                time.sleep(_WAIT)

    def at(self, views: Iterable[int], lsn: int | None = None) -> dict[int, Lending]:
        """The tables' rows of these views now, or at an earlier LSN of this server, as far as they are known. The
        caller has the sequencer's lock."""
        found = {}
        for oid in views:
            runtime = self._core.view(oid)
            if runtime.program.borrowed and (lsn is None or self._core.versions.last(oid) <= lsn):
                lending = self._at(runtime)
                if lending is not None:
                    found[oid] = lending
        return found

    def _at(self, runtime: ViewRuntime) -> Lending | None:
        replica, lent = replica_of(self._replicas, runtime), runtime.loans.lent
        if replica is None:
            return None
        for item in runtime.program.borrowed:
            if not _holds(runtime, replica, item) or lent[item.name].at > replica.position:
                return None
        rows = {f"s_{name}": known.rows for name, known in lent.items()}
        return Lending(rows, sum(known.at for known in lent.values()))


def _holds(runtime: ViewRuntime, replica: Replica, item: Borrowed) -> bool:
    """Whether a table has not changed since its answer, as far as the replica knows."""
    known = runtime.loans.lent.get(item.name)
    return known is not None and replica.changed.get(item.table, 0) <= known.at


def _checked(item: Borrowed, rows: pa.Table) -> pa.Table:
    names = [column.name for column in item.columns]
    if rows.column_names != names or rows.schema.types != [column.type.arrow for column in item.columns]:
        raise SqlError("08P01", f'the answer of another server has other columns than table "{item.called}"')
    return rows.rename_columns([stored_name(column) for column in item.columns])


def _require_wanted(reader: Asking) -> None:
    if reader.is_cancelled():
        raise SqlError("57014", "canceling statement due to user request")


def _unreachable(runtime: ViewRuntime, home: str, item: Borrowed, error: OSError) -> SqlError:
    message = (
        f'view "{runtime.view.name}" reads table "{item.called}" of server "{home}", which cannot be reached: {error}'
    )
    return SqlError("08001", message, hint="Only that server has the table: start it, and read the view again.")
