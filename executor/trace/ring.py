"""A stream's recent rows in memory, and the way back to the log for those that memory has no room for.

Owns which rows are in memory. Rows are batches as they arrived; the two columns that tell their place, ``__lsn`` and
``__ordinal`` (position within the LSN, from 0), are made when somebody asks. A chunk is a run of rows: *warm* with its
batches, or *cold* when the budget is exceeded, and then read back from the log. Large batches are never copied. Small
appends are merged 64 at a time, and those 64 at a time again, so that a row is copied at most three times and ten
thousand one-row appends are some fifty chunks.

Does not know who reads; ``release`` says what nobody will ask for again, and the log must keep what is not released.
"""

from __future__ import annotations

import threading
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from catalog.errors import SqlError
from executor.commit.records import Spooled, SpoolReference, StreamRows, TransactionRecord
from executor.commit.recovery import StreamReader

BUDGET: Final = 1024 * 1024 * 1024
LSN: Final = "__lsn"
ORDINAL: Final = "__ordinal"

_FAN_IN: Final = 64
#: Appends of at most so many rows are merged, into chunks of at most so many.
_SMALL: Final = 1024
_MERGED: Final = 65536
_READERS: Final = 4

_Integers = npt.NDArray[np.int64]
_Batches = tuple[pa.RecordBatch, ...]


@dataclass(slots=True)
class _Chunk:
    """Rows of consecutive LSNs: row ``ends[i]`` is the first behind those of ``lsns[i]``.

    ``start`` counts the stream's rows before the chunk. ``ordinal`` is that of the first row (only a chunk of one LSN
    has another than 0). ``load`` reads the batches back. ``level`` says how often the rows were merged; -1 is never.
    """

    lsns: _Integers
    ends: _Integers
    start: int
    ordinal: int
    batches: _Batches | None
    size: int
    level: int
    load: Callable[[], _Batches]

    @property
    def rows(self) -> int:
        return int(self.ends[-1])

    @property
    def last(self) -> int:
        return int(self.lsns[-1])

    def rows_upto(self, lsn: int) -> int:
        """How many of the rows have an LSN of at most ``lsn``."""
        at = int(np.searchsorted(self.lsns, lsn, side="right"))
        return int(self.ends[at - 1]) if at else 0

    def places(self, first: int, end: int) -> tuple[_Integers, _Integers]:
        """LSNs and ordinals of rows [first, end)."""
        if len(self.lsns) == 1:
            ordinals = np.arange(self.ordinal + first, self.ordinal + end, dtype=np.int64)
            return np.full(end - first, self.lsns[0]), ordinals
        counts = np.diff(self.ends, prepend=0)
        starts = np.repeat(self.ends - counts, counts)
        return np.repeat(self.lsns, counts)[first:end], (np.arange(self.rows, dtype=np.int64) - starts)[first:end]


class Ring:
    """One stream's ring. Safe for many threads; ``append`` and ``publish`` must come in LSN order."""

    def __init__(self, stream: int, schema: pa.Schema, reader: StreamReader, budget: int = BUDGET) -> None:
        """``schema`` are the stream's own columns; ``budget`` is in bytes."""
        self._stream = stream
        self._schema = schema
        self._placed = schema.append(pa.field(LSN, pa.int64())).append(pa.field(ORDINAL, pa.int64()))
        self._reader = reader
        self._budget = budget
        self._lock = threading.Lock()
        self._chunks: list[_Chunk] = []
        self._lasts: list[int] = []  # the last LSN of each chunk
        self._first_warm = 0  # chunks before this index are cold
        self._bytes = 0
        self._total = 0  # rows ever appended
        self._released = 0

    @property
    def bytes(self) -> int:
        """Bytes in memory."""
        return self._bytes

    @property
    def buffered_rows(self) -> int:
        """Rows in memory."""
        with self._lock:
            return sum(chunk.rows for chunk in self._chunks[self._first_warm :] if chunk.batches is not None)

    @property
    def total_rows(self) -> int:
        """Rows ever appended."""
        return self._total

    def append(self, lsn: int, batches: Sequence[pa.RecordBatch]) -> None:
        """Adds a record's rows, which the log has as one StreamRows part."""
        self.publish(lsn, (StreamRows(self._stream, tuple(batches)),))

    def publish(self, lsn: int, record: TransactionRecord) -> None:
        """Adds what a record has for this stream; a publisher for the sequencer, and for replay."""
        own = [
            (index, part)
            for index, part in enumerate(record)
            if isinstance(part, StreamRows | Spooled) and part.stream == self._stream
        ]
        if not own:
            return
        with self._lock:
            ordinal = 0
            for index, part in own:
                if isinstance(part, StreamRows):
                    ordinal += self._add_rows(lsn, index, part, ordinal, len(own) == 1)
                else:
                    for reference in part.references:
                        ordinal += self._add_spooled(lsn, reference, ordinal)
            self._evict()

    def rows(self, after: int, upto: int) -> int:
        """How many rows the interval (after, upto] has."""
        with self._lock:
            self._check(after, upto)
            return self._position(upto) - self._position(after)

    def delta(self, after: int, upto: int, places: bool = True) -> pa.Table:
        """The rows of (after, upto] in arrival order, with ``__lsn`` and ``__ordinal`` unless ``places`` is false.

        Raises 72000 for rows that were released.
        """
        with self._lock:
            self._check(after, upto)
            first, end = self._position(after), self._position(upto)
            chosen = [
                (chunk, chunk.batches, max(first - chunk.start, 0), min(end - chunk.start, chunk.rows))
                for chunk in self._chunks[bisect_right(self._lasts, after) :]
                if chunk.start < end and chunk.start + chunk.rows > first
            ]
        loaded = _load([chunk for chunk, batches, _, _ in chosen if batches is None])
        result: list[pa.RecordBatch] = []
        for chunk, batches, start, stop in chosen:
            found = next(loaded) if batches is None else batches
            cut = _cut([self._conform(batch) for batch in found], start, stop)
            result += self._place(cut, *chunk.places(start, stop)) if places else cut
        return pa.Table.from_batches(result, self._placed if places else self._schema)

    def release(self, upto: int) -> None:
        """Nobody will ask for rows up to this LSN any more."""
        with self._lock:
            self._released = max(self._released, upto)
            gone = bisect_right(self._lasts, upto)
            self._bytes -= sum(chunk.size for chunk in self._chunks[:gone] if chunk.batches is not None)
            del self._chunks[:gone]
            del self._lasts[:gone]
            self._first_warm = max(self._first_warm - gone, 0)

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

    def _add_rows(self, lsn: int, part_index: int, part: StreamRows, ordinal: int, alone: bool) -> int:
        batches = tuple(self._conform(batch) for batch in part.batches if batch.num_rows)
        rows = sum(batch.num_rows for batch in batches)
        if rows:
            level = 0 if alone and rows <= _SMALL else -1
            self._add(lsn, rows, ordinal, batches, level, lambda: self._read(lsn, lsn, part_index))
        return rows

    def _add_spooled(self, lsn: int, reference: SpoolReference, ordinal: int) -> int:
        if reference.rows:
            stored = SpoolReference(reference.segment, reference.offset, reference.rows, reference.size)
            batches = None if reference.batch is None else (self._conform(reference.batch),)
            self._add(lsn, reference.rows, ordinal, batches, -1, lambda: self._reader.spooled(stored))
        return reference.rows

    def _add(
        self, lsn: int, rows: int, ordinal: int, batches: _Batches | None, level: int, load: Callable[[], _Batches]
    ) -> None:
        size = sum(batch.nbytes for batch in batches) if batches is not None else 0
        ends = np.array([rows], dtype=np.int64)
        lsns = np.array([lsn], dtype=np.int64)
        self._chunks.append(_Chunk(lsns, ends, self._total, ordinal, batches, size, level, load))
        self._lasts.append(lsn)
        self._total += rows
        self._bytes += size
        while level >= 0 and self._merge(level):
            level += 1

    def _merge(self, level: int) -> bool:
        """Makes one chunk of the last 64 of a level, if there are so many; whether it did."""
        last = self._chunks[-_FAN_IN:]
        mergeable = len(last) == _FAN_IN and last[0].level == level and last[-1].level == level
        if not mergeable or any(chunk.batches is None or chunk.level != level for chunk in last):
            return False
        if sum(chunk.rows for chunk in last) > _MERGED:
            return False
        merged = pa.concat_batches([batch for chunk in last for batch in chunk.batches or ()])
        first_lsn, last_lsn = int(last[0].lsns[0]), last[-1].last
        bases = np.array([chunk.start - last[0].start for chunk in last], dtype=np.int64)
        ends = np.concatenate([chunk.ends + base for chunk, base in zip(last, bases, strict=True)])
        lsns = np.concatenate([chunk.lsns for chunk in last])
        size = merged.nbytes
        self._bytes += size - sum(chunk.size for chunk in last)
        self._chunks[-_FAN_IN:] = [
            _Chunk(
                lsns, ends, last[0].start, 0, (merged,), size, level + 1, lambda: self._read(first_lsn, last_lsn, None)
            )
        ]
        self._lasts[-_FAN_IN:] = [last_lsn]
        self._first_warm = min(self._first_warm, len(self._chunks) - 1)
        return True

    def _read(self, first: int, last: int, part_index: int | None) -> _Batches:
        """Reads rows back that were not written ahead."""
        found = self._reader.rows(first - 1, last)
        return tuple(b for _, index, batches in found if part_index in (None, index) for b in batches)

    def _evict(self) -> None:
        """Gives up the batches of the oldest chunks until the budget holds."""
        while self._bytes > self._budget and self._first_warm < len(self._chunks):
            chunk = self._chunks[self._first_warm]
            if chunk.batches is not None:
                chunk.batches = None
                self._bytes -= chunk.size
            self._first_warm += 1

    def _conform(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """The batch under the stream's own names and nullability, which the log's small frames do not keep."""
        if batch.schema is self._schema or batch.schema.equals(self._schema):
            return batch
        return pa.RecordBatch.from_arrays(batch.columns, schema=self._schema)

    def _place(self, batches: list[pa.RecordBatch], lsns: _Integers, ordinals: _Integers) -> list[pa.RecordBatch]:
        placed = []
        position = 0
        lsn_column, ordinal_column = pa.array(lsns), pa.array(ordinals)
        for batch in batches:
            places = [column.slice(position, batch.num_rows) for column in (lsn_column, ordinal_column)]
            placed.append(pa.RecordBatch.from_arrays([*batch.columns, *places], schema=self._placed))
            position += batch.num_rows
        return placed


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


def _load(chunks: Sequence[_Chunk]) -> Iterator[_Batches]:
    """The cold chunks' batches, in order; decompressed by several threads."""
    if len(chunks) <= 1:
        return iter([chunk.load() for chunk in chunks])
    with ThreadPoolExecutor(_READERS) as pool:
        return iter(list(pool.map(lambda chunk: chunk.load(), chunks)))
