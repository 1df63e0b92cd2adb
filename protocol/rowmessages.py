"""Messages of one row each, out of encoded columns: DataRow and CopyData.

Owns: the assembly, column by column; no Python runs per row or value. Such a message is one of::

    kind  int32 length  int16 fields  (int32 length, bytes) ...
    kind  int32 length  bytes  (delimiter, bytes) ...  end

Parts with the same width in every row (the head, length prefixes, fixed-width fields without nulls) form one numpy
record array between two fields of varying width. One gather takes these parts in turns (``interleaved``) and makes the
rows; if no field varies in width, one record array holds whole rows. Does not know what fields mean.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Final

import numpy as np
import pyarrow as pa

from catalog.values.errors import SqlError
from protocol.values.codec import Vector, offsets
from protocol.values.framing import field_lengths, fixed_binaries, interleaved, is_fixed, without_nulls

#: The most bytes that one Arrow array can hold.
_LIMIT: Final = 2**31
_HEAD_SIZE: Final = 4 + 2
#: The most rows joined at once, and parts of rows: a limit for intermediate memory, which also keeps the work in the
#: cache.
_ROWS: Final = 16_384
_PARTS: Final = 16 * _ROWS

#: Items of a record array: each one's storage type, and its values in all rows or the one value of all rows.
_Run = list[tuple[str, Vector | int | bytes]]


def slice_rows(fields: int) -> int:
    """How many rows with this number of fields are assembled at once."""
    return max(1, min(_ROWS, _PARTS // (2 * fields + 1)))


def row_messages(kind: bytes, columns: Sequence[pa.Array], count: int) -> tuple[memoryview, Vector]:
    """The messages of ``count`` rows, and the length of each. Raises 54000 for a row of 2 GB."""
    sizes = [field_lengths(column) for column in columns]
    lengths = np.full(count, _HEAD_SIZE + 4 * len(columns), np.int64)
    for column, size in zip(columns, sizes, strict=True):
        lengths += np.maximum(size, 0) if column.null_count else size
    if int(lengths.sum()) + count >= _LIMIT:
        return _halves(partial(row_messages, kind), columns, count)
    run: _Run = [("S1", kind), (">i4", lengths), (">i2", len(columns))]
    parts: list[pa.Array] = []
    for column, size in zip(columns, sizes, strict=True):
        run.append((">i4", size))
        if is_fixed(column):
            run.append(_values(column))
        else:
            parts += (fixed_binaries(_records(run, count)), without_nulls(column))
            run = []
    rest = _records(run, count) if run else None
    if not parts:
        assert rest is not None
        return rest.view(np.uint8).data, lengths + 1
    return interleaved(parts if rest is None else [*parts, fixed_binaries(rest)]), lengths + 1


def line_messages(
    kind: bytes, delimiter: bytes, end: bytes, columns: Sequence[pa.Array], count: int
) -> tuple[memoryview, Vector]:
    """The messages of ``count`` lines, of binary arrays without nulls, and the length of each."""
    lengths = np.full(count, 4 + len(delimiter) * (len(columns) - 1) + len(end), np.int64)
    for column in columns:
        lengths += np.diff(offsets(column))
    if int(lengths.sum()) + count >= _LIMIT:
        return _halves(partial(line_messages, kind, delimiter, end), columns, count)
    parts = [fixed_binaries(_records([("S1", kind), (">i4", lengths)], count))]
    for place, column in enumerate(columns):
        behind = end if place == len(columns) - 1 else delimiter
        parts += (column, fixed_binaries(np.full(count, behind, f"S{len(behind)}")))
    return interleaved(parts), lengths + 1


def _values(column: pa.Array) -> tuple[str, Vector]:
    width = column.type.byte_width
    return f"V{width}", np.frombuffer(column.buffers()[1], f"V{width}", len(column), column.offset * width)


def _records(run: _Run, count: int) -> Vector:
    records = np.empty(count, [(str(place), dtype) for place, (dtype, _) in enumerate(run)])
    for place, (_, values) in enumerate(run):
        records[str(place)] = values
    return records


def _halves(
    make: Callable[[Sequence[pa.Array], int], tuple[memoryview, Vector]], columns: Sequence[pa.Array], count: int
) -> tuple[memoryview, Vector]:
    """Rows that do not fit in one Arrow array, in two halves. Raises 54000 for a single row of 2 GB, which cannot be
    sent."""
    if count == 1:
        raise SqlError("54000", "row is too large for a message")
    middle = count // 2
    first, first_lengths = make([column.slice(0, middle) for column in columns], middle)
    second, second_lengths = make([column.slice(middle) for column in columns], count - middle)
    return memoryview(b"".join((first, second))), np.concatenate([first_lengths, second_lengths])
