"""Columns of a few thousand rows as numpy arrays, and back.

Owns: ``Vector``, and its conversion from and to Arrow columns. Exact numbers are 64-bit counts of their last decimal.
Each vector has a limit on their size, so that an operation knows beforehand whether it can overflow. A value that does
not fit 64 bits, or is not a finite number, raises ``Unusual``, and the engine computes the rows.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from executor.small.values import Unusual

#: The largest count in a vector.
LARGEST: Final = 2**63 - 1
#: The digits that always fit in 64 bits.
_WORD_DIGITS: Final = 18

_INTEGERS: Final[dict[int, np.dtype[Any]]] = {8: np.dtype(np.int64), 4: np.dtype(np.int32), 2: np.dtype(np.int16)}
_FLOATS: Final[dict[int, np.dtype[Any]]] = {8: np.dtype(np.float64), 4: np.dtype(np.float32)}

Values = npt.NDArray[Any]
Nulls = npt.NDArray[np.bool_] | None


class Vector(NamedTuple):
    """One value for each row, or one value for all rows.

    ``values`` are counts, floats or booleans. Where ``null`` is set they have no meaning but keep the limit.
    """

    values: Values
    null: Nulls
    limit: int = 0


def vector_of(array: pa.Array) -> Vector:
    """A column of numbers, booleans, dates or timestamps as a vector. Raises Unusual."""
    null = nulls_of(array)
    values = _values(array)
    if null is not None:
        values = np.where(null, values.dtype.type(0), values)
    if values.dtype != np.int64:
        if values.dtype == np.float64 and not np.isfinite(values).all():
            raise Unusual
        return Vector(values, null)
    return Vector(values, null, size_of(values))


def _values(array: pa.Array) -> Values:
    kind, count, start = array.type, len(array), array.offset
    data = array.buffers()[1]
    if pa.types.is_boolean(kind):
        return _bits(data, start, count)
    if pa.types.is_decimal128(kind):
        words = np.frombuffer(data, np.int64, 2 * count, 16 * start)
        low: Values = np.ascontiguousarray(words[0::2])
        if kind.precision > _WORD_DIGITS and not (words[1::2] == low >> 63).all():
            raise Unusual
        return low
    width = kind.bit_width // 8
    if pa.types.is_floating(kind):
        return np.frombuffer(data, _FLOATS[width], count, width * start).astype(np.float64)
    return np.frombuffer(data, _INTEGERS[width], count, width * start).astype(np.int64)


def nulls_of(array: pa.Array) -> Nulls:
    """A mask of the NULLs in any column; None if there are none."""
    return ~_bits(array.buffers()[0], array.offset, len(array)) if array.null_count else None


def _bits(data: pa.Buffer, start: int, count: int) -> npt.NDArray[np.bool_]:
    packed = np.frombuffer(data, np.uint8)
    return np.unpackbits(packed, count=start + count, bitorder="little")[start:].view(np.bool_)


def size_of(values: Values) -> int:
    """The largest absolute value of the counts."""
    return max(int(values.max()), -int(values.min())) if values.size else 0


def scaled(vector: Vector, power: int) -> Vector:
    """Counts in a unit that is ``power`` times smaller. Raises Unusual."""
    if power == 1:
        return vector
    limit = vector.limit * power
    if limit > LARGEST:
        raise Unusual
    return Vector(vector.values * np.int64(power), vector.null, limit)


def either(left: Nulls, right: Nulls) -> Nulls:
    """A mask of the rows in which either vector is NULL."""
    if left is None or right is None:
        return left if right is None else right
    return left | right


def column_of(values: Values, null: Nulls, kind: pa.DataType) -> pa.Array:
    """A vector as a column of a type; a decimal's counts must be in units of the type's scale."""
    if values.dtype == np.float64 and not np.isfinite(values).all():
        raise Unusual
    if pa.types.is_boolean(kind):
        return pa.array(values, kind, mask=null)
    valid = None if null is None else pa.py_buffer(np.packbits(~null, bitorder="little"))
    if pa.types.is_decimal128(kind):
        stored: Values = np.empty((len(values), 2), np.int64)
        stored[:, 0] = values
        np.right_shift(values, 63, out=stored[:, 1])
    else:
        width = kind.bit_width // 8
        stored = values.astype(_FLOATS[width] if pa.types.is_floating(kind) else _INTEGERS[width])
    return pa.Array.from_buffers(kind, len(values), [valid, pa.py_buffer(stored)])
