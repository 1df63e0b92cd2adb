"""A stream's recent rows in memory, and the way back to the log for those that memory has no room for.

Owns which rows are in memory. Rows are batches as they arrived, or values of single rows (the *tail*), of which a batch
is made when they are read or enough have gathered; the two columns that tell their place, ``__lsn`` and ``__ordinal``
(position within the LSN, from 0), are made when they are read. A chunk is a run of rows: *warm* with its batches, or
*cold* where the budget of all traces (``executor.traces.budget``) has no room for them, and then read back from the
log. Large batches are never copied. Small appends are
merged 64 at a time, and those 64 at a time again, so that a row is copied at most three times; single rows become a
chunk 256 at a time, so that ten thousand are some forty.

Does not know the readers; ``release`` says what no view will read again, and the log must keep what is not released. A
scan of the stream has a *bookmark*: what lies behind that stays in memory as long as the budget lets it, and no longer;
the log keeps nothing for it, and no writer waits (thesis 3.2.4).

A stream that keeps its rows has a *history* on storage (``executor.traces.history``): rows that the ring has released
are read there.
"""

from __future__ import annotations

import threading
import weakref
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from operator import itemgetter
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from msgspec import Struct, field

from catalog.values.errors import SqlError
from executor.commit.records import RowValues, Spooled, SpoolReference, StreamRows
from executor.commit.recovery import StreamReader
from executor.traces.bookmark import Bookmark
from executor.traces.budget import TraceBudget, size_of
from executor.traces.history import History, record_schema
from executor.traces.layout import Layout

_FAN_IN: Final = 64
#: Parts of values, after which a batch is made of them: it costs as much as some hundred rows.
_PARTS: Final = 256
#: Appends of at most so many rows are merged, into chunks of at most so many: a writer waits while they are copied.
_SMALL: Final = 256
_MERGED: Final = 16384
#: Rows that are kept as values.
_VALUES: Final = 1024
_READERS: Final = 4

_Integers = npt.NDArray[np.int64]
_Batches = tuple[pa.RecordBatch, ...]


#: A StreamRows or RowValues part: its LSN, and its number among those of this stream in the record.
_Place = tuple[int, int]


class _Chunk(Struct):
    """Rows of consecutive parts: row ``ends[i]`` is the first behind those of part i, whose LSN is ``lsns[i]`` and
    whose first row's ordinal is ``ordinals[i]``.

    ``start`` counts the stream's rows before the chunk. ``load`` reads the batches back. ``level`` says how often the
    rows were merged; -1 is never. ``first`` and ``last`` are the parts' places.
    """

    lsns: _Integers
    ends: _Integers
    ordinals: _Integers
    start: int
    batches: _Batches | None
    size: int
    level: int
    first: _Place
    last: _Place
    load: Callable[[], _Batches]

    @property
    def rows(self) -> int:
        return int(self.ends[-1])

    def rows_upto(self, lsn: int) -> int:
        """How many of the rows have an LSN of at most ``lsn``."""
        at = int(np.searchsorted(self.lsns, lsn, side="right"))
        return int(self.ends[at - 1]) if at else 0

    def places(self, first: int, end: int) -> tuple[_Integers, _Integers]:
        """LSNs and ordinals of rows [first, end)."""
        low = int(np.searchsorted(self.ends, first, side="right"))
        high = int(np.searchsorted(self.ends, end, side="left")) + 1
        starts = np.concatenate(([self.ends[low - 1] if low else 0], self.ends[low : high - 1]))
        counts = np.minimum(self.ends[low:high], end) - np.maximum(starts, first)
        ordinals = np.arange(first, end) + np.repeat(self.ordinals[low:high] - starts, counts)
        return np.repeat(self.lsns[low:high], counts), ordinals


#: Chunks with the batches that memory has, and which of their rows are asked for.
_Chosen = list[tuple[_Chunk, _Batches | None, int, int]]


class _Tail(Struct):
    """RowValues parts that are no chunk yet, and their rows: of each part its place, its rows' first ordinal, and how
    many rows there are up to its last."""

    places: list[_Place] = field(default_factory=list)
    ordinals: list[int] = field(default_factory=list)
    ends: list[int] = field(default_factory=list)
    rows: list[tuple[object, ...]] = field(default_factory=list)


class Ring:
    """One stream's ring. Safe for many threads; ``publish`` must come in LSN order."""

    def __init__(self, layout: Layout, reader: StreamReader, budget: TraceBudget) -> None:
        """``layout`` has the stream's own columns."""
        #: Where the rows of a stream that keeps them are read once they are released: it has all of these.
        self.history: History | None = None
        self._layout = layout
        self._reader = reader
        self._budget = budget
        self._lock = threading.Lock()
        self._chunks: list[_Chunk] = []
        self._lasts: list[int] = []  # the last LSN of each chunk
        self._tail = _Tail()  # behind all chunks
        self._first_warm = 0  # chunks before this index are cold
        self._warm_rows = 0
        self._held = budget.register(self._give_back)
        self._total = 0  # rows ever appended
        self._freed = 0  # what the log need not keep
        self._released = 0  # what is gone
        self._bookmarks: weakref.WeakSet[Bookmark] = weakref.WeakSet()
        self._lsn = 0  # the newest, with its StreamRows and RowValues parts and its rows so far
        self._number = 0
        self._ordinal = 0

    @property
    def bytes(self) -> int:
        """Bytes in memory."""
        return self._held.bytes

    @property
    def layout(self) -> Layout:
        """How records lie and rows are shown: no record so far has more columns."""
        return self._layout

    def lay_out(self, layout: Layout) -> None:
        """The stream's columns have changed: rows are shown so from now on, whenever they came."""
        with self._lock:
            self._settle()
            self._layout = layout

    @property
    def buffered_rows(self) -> int:
        """Rows in memory."""
        with self._lock:
            self._settle()
            return self._warm_rows

    @property
    def total_rows(self) -> int:
        """Rows ever appended."""
        return self._total

    def append(self, lsn: int, batches: Sequence[pa.RecordBatch]) -> int:
        """Adds rows that the log has as one StreamRows part; returns how many."""
        return self.publish(lsn, StreamRows(self._reader.stream, tuple(batches)))

    def publish(self, lsn: int, part: StreamRows | RowValues | Spooled) -> int:
        """Adds a part of this stream; the parts of a record come one by one, in their order. Returns its rows."""
        assert part.stream == self._reader.stream
        with self._lock:
            assert lsn >= self._lsn, "parts come in LSN order"
            if lsn > self._lsn:
                self._lsn, self._number, self._ordinal = lsn, 0, 0
            before = self._total
            if isinstance(part, RowValues):
                self._add_values(lsn, part)
            else:
                self._settle()
                if isinstance(part, StreamRows):
                    self._add_rows(lsn, part)
                else:
                    for reference in part.references:
                        self._add_spooled(lsn, reference)
            added = self._total - before
        self._budget.keep()
        return added

    def rows(self, after: int, upto: int) -> int:
        """How many rows the interval (after, upto] has."""
        with self._lock:
            self._settle()
            older, start = self._older(after, upto)
            found = self._position(upto) - self._position(start)
        return found if older is None else found + older.rows(after, start)

    def cut(self, after: int, upto: int) -> int:
        """Where a job over rows behind an LSN had better end, so that memory holds them."""
        if self.history is None:
            return upto
        with self._lock:
            older, start = self._older(after, upto)
        found = start if older is None else older.cut(after, start)
        return upto if found == start else found

    def rows_after(self, lsn: int) -> int:
        """How many rows that are not released have a higher LSN. Makes no batch of single rows."""
        with self._lock:
            at = bisect_right(self._lasts, lsn)
            if at < len(self._chunks):
                return self._total - self._chunks[at].start - self._chunks[at].rows_upto(lsn)
            seen = bisect_right(self._tail.places, lsn, key=itemgetter(0))
            return len(self._tail.rows) - (self._tail.ends[seen - 1] if seen else 0)

    @property
    def row_bytes(self) -> int | None:
        """Bytes of a row in memory, on average; None where memory has no batches."""
        with self._lock:
            return max(1, self._held.bytes // self._warm_rows) if self._warm_rows else None

    def delta(self, after: int, upto: int, places: bool = True, names: Sequence[str] | None = None) -> pa.Table:
        """The rows of (after, upto] in arrival order, with ``__lsn`` and ``__ordinal``; ``names`` are the other columns
        where not all are asked for.

        Without ``places`` these two are null, for callers that do not need them: making them takes as long as
        aggregating a large delta. Raises 72000 for rows that were released.
        """
        self._held.read()
        with self._lock:
            self._settle()
            older, start = self._older(after, upto)
            layout = self._layout if names is None else self._layout.picked(names)
            chosen = self._chosen(start, upto)
        self._budget.keep()
        result: list[pa.RecordBatch] = []
        for chunk, found, first, stop in _loaded(chosen):
            cut = _cut([layout.seen(batch) for batch in found], first, stop)
            result += layout.placed(cut, *chunk.places(first, stop)) if places else cut
        result = result if places else layout.unplaced(result)
        if older is not None:
            result = [*older.delta(after, start, layout), *result]
        return pa.Table.from_batches(result, layout.with_places)

    def records(self, after: int, upto: int) -> pa.Table:
        """The rows of (after, upto], which are not released, as a history keeps them: each with its place and a
        record's columns."""
        with self._lock:
            self._settle()
            self._check(after, upto)
            layout, chosen = self._layout, self._chosen(after, upto)
        schema = record_schema(layout)
        result: list[pa.RecordBatch] = []
        for chunk, found, first, stop in _loaded(chosen):
            lsns, ordinals = map(pa.array, chunk.places(first, stop))
            at = 0
            for batch in _cut([layout.widened(batch) for batch in found], first, stop):
                places = [column.slice(at, batch.num_rows) for column in (lsns, ordinals)]
                result.append(pa.RecordBatch.from_arrays([*places, *batch.columns], schema=schema))
                at += batch.num_rows
        return pa.Table.from_batches(result, schema)

    def _older(self, after: int, upto: int) -> tuple[History | None, int]:
        """What has the first rows of (after, upto], where the ring has released them, and the LSN up to which it is
        asked for them. The caller has the lock. Raises 72000 where nothing has them."""
        if self.history is None or after >= self._released or upto <= after:
            self._check(after, upto)
            return None, after
        return self.history, max(after, min(upto, self.history.frontier))

    def _chosen(self, after: int, upto: int) -> _Chosen:
        """The chunks with rows of (after, upto], and which rows these are. The caller has the lock."""
        first, end = self._position(after), self._position(upto)
        return [
            (chunk, chunk.batches, max(first - chunk.start, 0), min(end - chunk.start, chunk.rows))
            for chunk in self._chunks[bisect_right(self._lasts, after) :]
            if chunk.start < end and chunk.start + chunk.rows > first
        ]

    def mark(self) -> Bookmark:
        """A bookmark before all rows that are there; its reader moves it forward."""
        with self._lock:
            found = Bookmark(self._released)
            self._bookmarks.add(found)
            return found

    def check(self) -> None:
        """Nothing keeps clients' rows from coming."""

    def close(self) -> None:
        """The stream is no more; its rows count no longer."""
        self._held.close()

    def release(self, upto: int) -> None:
        """No view will ask for rows up to this LSN any more."""
        with self._lock:
            self._settle()
            self._freed = max(self._freed, upto)
            self._drop(min([self._freed, *(bookmark.after for bookmark in self._bookmarks)]))
            cold = bisect_right(self._lasts, self._freed, 0, self._first_warm)
            if cold:  # the log may write over them from now on
                self._drop(self._lasts[cold - 1])

    def _drop(self, upto: int) -> None:
        self._released = max(self._released, upto)
        gone = bisect_right(self._lasts, upto)
        warm = [chunk for chunk in self._chunks[:gone] if chunk.batches is not None]
        self._hold(-sum(chunk.size for chunk in warm), -sum(chunk.rows for chunk in warm))
        del self._chunks[:gone]
        del self._lasts[:gone]
        self._first_warm = max(self._first_warm - gone, 0)

    def _hold(self, size: int, rows: int) -> None:
        """Memory has so many bytes and rows more; fewer, where they are negative."""
        self._held.add(size)
        self._warm_rows += rows

    def _check(self, after: int, upto: int) -> None:
        assert after <= upto
        if after < self._released and upto > after:
            raise SqlError("72000", "the stream's rows were overwritten before they were read")

    def _position(self, lsn: int) -> int:
        """How many rows, ever, have an LSN of at most ``lsn``."""
        at = bisect_right(self._lasts, lsn)
        if at == len(self._chunks):
            return self._total
        return self._chunks[at].start + self._chunks[at].rows_upto(lsn)

    def _add_values(self, lsn: int, part: RowValues) -> None:
        tail, count = self._tail, len(part.rows)
        tail.places.append((lsn, self._number))
        tail.ordinals.append(self._ordinal)
        tail.rows += self._layout.widened_values(part.rows)
        tail.ends.append(len(tail.rows))
        self._number += 1
        self._ordinal += count
        self._total += count
        if len(tail.places) >= _PARTS or len(tail.rows) > _VALUES:
            self._settle()

    def _settle(self) -> None:
        """Makes a chunk of the tail: of as many parts as a merge joins, or more, it is what a merge gives."""
        tail = self._tail
        if not tail.places:
            return
        self._tail = _Tail()
        columns = zip(*tail.rows, strict=True)
        schema = self._layout.schema
        arrays = [pa.array(values, kind) for values, kind in zip(columns, schema.types, strict=True)]
        batch = pa.RecordBatch.from_arrays(arrays, schema=schema)
        first, last = tail.places[0], tail.places[-1]
        level = int(len(tail.places) >= _FAN_IN)
        lsns = [lsn for lsn, _ in tail.places]
        lsn_column, ends, ordinals = (np.array(item, dtype=np.int64) for item in (lsns, tail.ends, tail.ordinals))
        start = self._total - batch.num_rows
        self._chunks.append(
            _Chunk(
                lsn_column,
                ends,
                ordinals,
                start,
                (batch,),
                batch.nbytes,
                level,
                first,
                last,
                lambda: self._read(first, last),
            )
        )
        self._lasts.append(last[0])
        self._hold(batch.nbytes, batch.num_rows)
        while self._merge(level):
            level += 1

    def _add_rows(self, lsn: int, part: StreamRows) -> None:
        batches = tuple(self._layout.widened(batch) for batch in part.batches if batch.num_rows)
        rows = sum(batch.num_rows for batch in batches)
        place = (lsn, self._number)
        self._number += 1
        if not rows:
            return
        level = 0 if rows <= _SMALL else -1
        self._add(place, rows, batches, level, lambda: self._read(place, place))
        while level >= 0 and self._merge(level):
            level += 1

    def _add_spooled(self, lsn: int, reference: SpoolReference) -> None:
        stored = SpoolReference(reference.segment, reference.offset, reference.rows, reference.size)
        batches = None if reference.batch is None else (self._layout.widened(reference.batch),)
        if reference.rows:
            self._add((lsn, -1), reference.rows, batches, -1, lambda: self._reader.spooled(stored))

    def _add(
        self, place: _Place, rows: int, batches: _Batches | None, level: int, load: Callable[[], _Batches]
    ) -> None:
        size = sum(map(size_of, batches)) if batches is not None else 0
        lsns, ends, ordinals = (np.array([value], dtype=np.int64) for value in (place[0], rows, self._ordinal))
        self._chunks.append(_Chunk(lsns, ends, ordinals, self._total, batches, size, level, place, place, load))
        self._lasts.append(place[0])
        self._ordinal += rows
        self._total += rows
        self._hold(size, 0 if batches is None else rows)

    def _merge(self, level: int) -> bool:
        """Makes one chunk of the last 64 of a level, if there are so many; whether it did."""
        last = self._chunks[-_FAN_IN:]
        if len(last) < _FAN_IN or last[0].level != level or sum(chunk.rows for chunk in last) > _MERGED:
            return False
        if any(chunk.batches is None or chunk.level != level for chunk in last):
            return False
        merged = pa.concat_batches([self._layout.widened(batch) for chunk in last for batch in chunk.batches or ()])
        first, end = last[0].first, last[-1].last
        joined = _Chunk(
            lsns=np.concatenate([chunk.lsns for chunk in last]),
            ends=np.concatenate([chunk.ends + (chunk.start - last[0].start) for chunk in last]),
            ordinals=np.concatenate([chunk.ordinals for chunk in last]),
            start=last[0].start,
            batches=(merged,),
            size=merged.nbytes,
            level=level + 1,
            first=first,
            last=end,
            load=lambda: self._read(first, end),
        )
        self._hold(joined.size - sum(chunk.size for chunk in last), 0)
        self._chunks[-_FAN_IN:] = [joined]
        self._lasts[-_FAN_IN:] = [end[0]]
        return True

    def _read(self, first: _Place, last: _Place) -> _Batches:
        """Reads rows back that were not written ahead."""
        found = self._reader.rows(first[0] - 1, last[0])
        return tuple(batch for lsn, number, own in found if first <= (lsn, number) <= last for batch in own)

    def _give_back(self, size: int) -> None:
        """Gives up the batches of the oldest chunks."""
        with self._lock:
            least = self._held.bytes - size
            while self._held.bytes > least and self._first_warm < len(self._chunks):
                chunk = self._chunks[self._first_warm]
                if chunk.batches is not None:
                    chunk.batches = None
                    self._hold(-chunk.size, -chunk.rows)
                self._first_warm += 1


def _cut(batches: Sequence[pa.RecordBatch], first: int, end: int) -> list[pa.RecordBatch]:
    """Rows [first, end) of batches in a row, without copying."""
    result, start = [], 0
    for batch in batches:
        low, high = max(first - start, 0), min(end - start, batch.num_rows)
        if low < high:
            result.append(batch if high - low == batch.num_rows else batch.slice(low, high - low))
        start += batch.num_rows
    assert start >= end, "the log has the rows that the ring counted"
    return result


def _loaded(chosen: _Chosen) -> Iterator[tuple[_Chunk, _Batches, int, int]]:
    """Chunks with their batches, those that memory lacks read back."""
    loaded = _load([chunk for chunk, batches, _, _ in chosen if batches is None])
    for chunk, batches, first, stop in chosen:
        yield chunk, next(loaded) if batches is None else batches, first, stop


def _load(chunks: Sequence[_Chunk]) -> Iterator[_Batches]:
    """The cold chunks' batches, in order; decompressed by several threads."""
    if len(chunks) <= 1:
        return iter([chunk.load() for chunk in chunks])
    with ThreadPoolExecutor(_READERS) as pool:
        return iter(list(pool.map(lambda chunk: chunk.load(), chunks)))
