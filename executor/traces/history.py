"""The rows of a stream that are kept on storage: durable runs behind its ring.

    shared/streams/<oid>/history/    manifest.json (executor/traces/manifest) and a Parquet file for each run

A run is the rows of an interval of LSNs in the order of their arrival, each with its place and the columns of a record
(executor/traces/layout): a file of before a column has fewer columns, and its rows are widened when they are read. The
ring writes a run once rows have gathered (``executor.upkeep.history_jobs``), and asks for rows that it has released.

Owns: which runs there are, and which are merged or leave. Runs of about one size become one when ``FAN_IN`` of them
have gathered, so that a row is written a few times at most; whole runs leave, the oldest first, once the rest is all
that the bound asks for. So more is kept than the bound asks for: at most about an eighth, and what a view still reads.
"""

from __future__ import annotations

import shutil
import threading
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import pairwise, takewhile
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from catalog.objects import Stream
from catalog.stream_history import HistoryBound
from catalog.values.errors import SqlError
from executor.commit.files import sync_folder
from executor.traces.layout import LSN, ORDINAL, Layout
from executor.traces.manifest import Manifest, NewRun, StateSchema, StoredRun
from executor.traces.parquet import read_table, write_table

#: Runs of about one size that become one.
FAN_IN: Final = 8
#: Bytes of files from which on a run is not merged.
LARGE: Final = 32 * 1024 * 1024
#: Rows that one job of a view's takes from here, about.
SLICE_ROWS: Final = 1_000_000
#: A run is at most about this part of what the bound asks for.
_PARTS: Final = 8
#: The LSN behind which a view has all rows that are there.
BEGINNING: Final = -1
_STATE: Final = "rows"
_PATH: Final = 0


class History:
    """One stream's. ``append``, ``compact`` and ``trim`` are for one thread; all else is safe for many."""

    def __init__(self, folder: Path, since: int, manifest: Manifest | None, damage: SqlError | None = None) -> None:
        """For ``create`` and ``open``. ``since``: the LSN behind which rows are kept."""
        self.folder, self.since = folder, since
        self._manifest = manifest
        #: Why the rows cannot be read; XX001.
        self.damage = damage
        self.is_dropped = False
        self._lock = threading.Lock()
        self._readers = 0
        #: Runs that are no longer named and that a reader may still read.
        self._gone: list[StoredRun] = []
        self._written = 0

    @classmethod
    def create(cls, folder: Path, stream: Stream, owner: str) -> History:
        """A stream's history as it begins. Raises 53100, 58030."""
        since = stream.kept_since
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        states = {_STATE: StateSchema("concatenate", (), ())}
        manifest = Manifest.create(folder, _called(stream), owner, None, states, {_PATH: since})
        sync_folder(folder.parent.parent)
        return cls(folder, since, manifest)

    @classmethod
    def open(cls, folder: Path, stream: Stream, owner: str, forgotten: int) -> History:
        """A stream's history at a start. It begins anew where the log has all of its rows. ``forgotten`` is the LSN up
        to which the log may have lost rows: a history that does not reach so far is damaged."""
        since = stream.kept_since
        try:
            manifest = Manifest.open(folder)
            if manifest.content.view != _called(stream):
                raise SqlError("XX001", "its manifest is of another time")
            if manifest.content.frontiers[_PATH] < forgotten:
                raise SqlError("XX001", '"manifest.json" is an older copy, and the log no longer has the rows after it')
        except SqlError as error:
            if error.sqlstate != "XX001":
                raise
            if forgotten <= since:
                return cls.create(folder, stream, owner)
            return cls(folder, since, None, _damaged(stream, error))
        return cls(folder, since, manifest)

    def require(self) -> Manifest:
        """What names the runs. Raises XX001 where the files are damaged."""
        if self.damage is not None:
            raise replace(self.damage)
        assert self._manifest is not None
        return self._manifest

    # What is there ----------------------------------------------------------------------------------------------

    @property
    def runs(self) -> tuple[StoredRun, ...]:
        """The runs, in order."""
        return () if self._manifest is None else self._manifest.content.runs[_STATE]

    @property
    def frontier(self) -> int:
        """The LSN up to which rows are kept; all of them where the files are damaged, so that nothing waits for it."""
        return (1 << 62) if self._manifest is None else self._manifest.content.frontiers[_PATH]

    @property
    def start(self) -> int:
        """The LSN behind which no row has left."""
        runs = self.runs
        return runs[0].after if runs else self.frontier

    @property
    def bytes(self) -> int:
        """Bytes of files."""
        return sum(run.bytes for run in self.runs)

    @property
    def total_rows(self) -> int:
        """How many rows are there."""
        return sum(run.rows for run in self.runs)

    def covers(self, after: int) -> bool:
        """Whether all rows behind an LSN are there, or all that ever were."""
        return self.damage is None and self.start <= max(after, self.since)

    def rows(self, after: int, upto: int) -> int:
        """How many rows of (after, upto] are there. Raises XX001."""
        with self._reading() as manifest:
            return sum(self._count(manifest, run, after, upto) for run in _within(self.runs, after, upto))

    def cut(self, after: int, upto: int) -> int:
        """The end of the first runs of (after, upto] that together have about as many rows as a job should take."""
        rows = 0
        for run in _within(self.runs, after, upto):
            rows += run.rows
            if rows >= SLICE_ROWS:
                return min(run.upto, upto)
        return upto

    def delta(self, after: int, upto: int, layout: Layout) -> Iterator[pa.RecordBatch]:
        """The rows of (after, upto], shown with their places. Of the files no other columns are read. Raises XX001."""
        with self._reading() as manifest:
            for run in _within(self.runs, after, upto):
                table = _between(_read(manifest, run, layout, layout.places), after, upto)
                places = [place for place in layout.places if f"c{place}" in table.column_names]
                for batch in table.combine_chunks().to_batches():
                    given = {place: batch.column(f"c{place}") for place in places}
                    columns = [*layout.seen_of(given, batch.num_rows), batch.column(0), batch.column(1)]
                    yield pa.RecordBatch.from_arrays(columns, schema=layout.with_places)

    def _count(self, manifest: Manifest, run: StoredRun, after: int, upto: int) -> int:
        if after <= run.after and run.upto <= upto:
            return run.rows
        lsns = pq.read_table(manifest.verify(run)[0], columns=[LSN])
        return int(_between(lsns, after, upto).num_rows)

    @contextmanager
    def _reading(self) -> Iterator[Manifest]:
        """A context in which the files of runs that are named now stay."""
        with self._lock:
            manifest = self.require()
            self._readers += 1
        try:
            yield manifest
        finally:
            with self._lock:
                self._readers -= 1
                self._delete()

    # Changes ----------------------------------------------------------------------------------------------------

    def append(self, upto: int, records: pa.Table, at: int) -> None:
        """Keeps the rows behind the frontier up to an LSN, with their places before a record's columns; ``at`` is the
        time, in microseconds since 1970. Raises 53100, 58030."""
        manifest = self.require()
        path = self._new_file(upto)
        write_table(path, records)
        manifest.commit(_PATH, self.frontier, {_STATE: NewRun((path,), records.num_rows, at)}, upto)

    def compact(self, bound: HistoryBound, layout: Layout) -> None:
        """Makes one run of the newest ones of about one size. Raises XX001, 53100, 58030."""
        manifest = self.require()
        while old := _mergeable(self.runs, bound):
            places = range(len(layout.schema))
            table = pa.concat_tables(_widened(_read(manifest, run, layout, places), layout) for run in old)
            path = self._new_file(old[-1].upto)
            write_table(path, table)
            manifest.replace_runs(_STATE, old, (path,), table.num_rows)
            self._forget(old)

    def trim(self, bound: HistoryBound, read: Callable[[], int], now: int) -> None:
        """Whole runs leave that the bound does not ask for, up to the LSN ``read()``, behind which a view still needs
        rows. ``now`` is in microseconds since 1970. Raises XX001, 53100, 58030."""
        old = tuple(_leaving(self.runs, bound, now))
        if old:
            upto = read()
            old = tuple(takewhile(lambda run: run.upto <= upto, old))
        if old:
            self.require().remove_runs(_STATE, old)
            self._forget(old)

    def drop(self) -> None:
        """The rows are no longer kept. A job that is at work fails, and sees why by ``is_dropped``."""
        self.is_dropped = True
        if self._manifest is not None:
            self._manifest.drop()
        shutil.rmtree(self.folder, ignore_errors=True)

    def _new_file(self, upto: int) -> Path:
        self._written += 1
        path = self.folder / f"{upto:016x}-{self._written:x}.parquet"
        while path.exists():
            path = path.with_name("x" + path.name)
        return path

    def _forget(self, old: Sequence[StoredRun]) -> None:
        with self._lock:
            self._gone += old
            self._delete()

    def _delete(self) -> None:
        """Deletes the files of runs that are gone, once there is no reader. The caller has the lock."""
        if self._gone and not self._readers and not self.is_dropped:
            self.require().delete(tuple(self._gone))
            self._gone.clear()


def record_schema(layout: Layout) -> pa.Schema:
    """The columns of a run's file: the place of a row, and then a record's columns by their places."""
    own = [pa.field(f"c{place}", kind) for place, kind in enumerate(layout.schema.types)]
    return pa.schema([pa.field(LSN, pa.int64()), pa.field(ORDINAL, pa.int64()), *own])


def _read(manifest: Manifest, run: StoredRun, layout: Layout, places: Iterable[int]) -> pa.Table:
    """A run's rows, with those of some columns of a record that the stream had when they came."""
    (path,) = manifest.verify(run)
    known = set(pq.read_schema(path).names)
    schema = record_schema(layout)
    names = [LSN, ORDINAL, *(name for name in (f"c{place}" for place in places) if name in known)]
    return read_table((path,), pa.schema([schema.field(name) for name in names]), whole=False)


def _widened(table: pa.Table, layout: Layout) -> pa.Table:
    """A run's rows with all columns that a record has now."""
    schema = record_schema(layout)
    if table.num_columns == len(schema):
        return table
    fields = list(layout.schema)[: table.num_columns - 2]
    records = (pa.RecordBatch.from_arrays(batch.columns[2:], schema=pa.schema(fields)) for batch in table.to_batches())
    pairs = zip(table.to_batches(), map(layout.widened, records), strict=True)
    batches = [pa.RecordBatch.from_arrays([*at.columns[:2], *own.columns], schema=schema) for at, own in pairs]
    return pa.Table.from_batches(batches, schema)


def _within(runs: Sequence[StoredRun], after: int, upto: int) -> Sequence[StoredRun]:
    """The runs that may have rows of (after, upto]."""
    first = bisect_right(runs, after, key=lambda run: run.upto)
    return list(takewhile(lambda run: run.after < upto, runs[first:]))


def _between(table: pa.Table, after: int, upto: int) -> pa.Table:
    """Of rows in the order of their LSNs those of (after, upto]."""
    lsns = table.column(LSN).to_numpy()
    first, end = (int(np.searchsorted(lsns, lsn, side="right")) for lsn in (after, upto))
    return table if end - first == len(lsns) else table.slice(first, end - first)


def _mergeable(runs: Sequence[StoredRun], bound: HistoryBound) -> tuple[StoredRun, ...]:
    """The newest runs that are of one size, or smaller, where there are so many of them, and they are one within what
    the bound allows; else none."""
    large = LARGE if bound.size is None else min(LARGE, bound.size // _PARTS)
    level = 1
    while level <= large:
        level *= FAN_IN
        newest = _newest(runs, min(level, large))
        if bound.age is not None:
            newest = tuple(run for run in newest if newest[-1].at - run.at <= bound.age // _PARTS)
        if len(newest) >= FAN_IN:
            assert all(left.upto <= right.after for left, right in pairwise(newest))
            return newest
    return ()


def _newest(runs: Sequence[StoredRun], size: int) -> tuple[StoredRun, ...]:
    """The newest runs that all have fewer bytes."""
    return tuple(takewhile(lambda run: run.bytes < size, reversed(runs)))[::-1]


def _leaving(runs: Sequence[StoredRun], bound: HistoryBound, now: int) -> Iterator[StoredRun]:
    """The oldest runs that a bound does not ask for."""
    left = sum(run.bytes for run in runs)
    for run in runs:
        left -= run.bytes
        is_old = bound.age is not None and run.at < now - bound.age
        is_beyond = bound.size is not None and left >= bound.size
        if not (is_old or is_beyond):
            return
        yield run


def _called(stream: Stream) -> str:
    """What a manifest says of whose it is."""
    return f"s{stream.oid} since {stream.kept_since}"


def _damaged(stream: Stream, error: SqlError) -> SqlError:
    hint = "Restore the data folder, or drop the stream's option history and add it again."
    return SqlError("XX001", f'the history of stream "{stream.name}" is damaged: {error.message}', hint=hint)
