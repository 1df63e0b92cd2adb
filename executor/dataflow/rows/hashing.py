"""Hashes of many keys at once.

Rows with equal keys have equal hashes. Rows with other keys may, too: what is found by a hash is a superset, and its
users evaluate the condition again. Columns of a type that has no hash here (lists, structs, intervals) do not count,
so that a key of nothing else finds all rows.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from executor.small import AnyTable, SmallTable
from executor.small.values import EXACT

Hashes = npt.NDArray[np.uint64]
NO_HASHES: Final[Hashes] = np.empty(0, np.uint64)

_NULL: Final = np.uint64(0x9E3779B97F4A7C15)
_FACTORS: Final = (np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB))
_SHIFTS: Final = (np.uint64(30), np.uint64(27), np.uint64(31))
_WORD: Final = 8

_MASK: Final = (1 << 64) - 1
_NULL_NUMBER: Final = int(_NULL)
_ODD: Final = tuple(map(int, _FACTORS))
_BITS: Final = struct.Struct("<d"), struct.Struct("<Q")
_Number = Callable[[Any], int]


def hashes_of(table: AnyTable, columns: Sequence[str]) -> Hashes:
    """The hash of each row's key."""
    if isinstance(table, SmallTable):
        return _few_hashes(table, columns)
    found: Hashes = np.zeros(table.num_rows, np.uint64)
    for place, name in enumerate(columns, 1):
        values = _values(table.column(name))
        if values is not None:
            found = _mixed(found * _FACTORS[0] + values + np.uint64(place))
    return found


def _few_hashes(table: SmallTable, columns: Sequence[str]) -> Hashes:
    """``hashes_of`` a few rows, without numpy's calls."""
    found = [0] * table.num_rows
    for place, name in enumerate(columns, 1):
        at = table.column_names.index(name)
        number = _NUMBERS[table.types[at].id](table.types[at])
        for row, value in enumerate(table.cells[at]):
            own = _NULL_NUMBER if value is None else number(value)
            found[row] = _mixed_number((found[row] * _ODD[0] + own + place) & _MASK)
    return np.array(found, np.uint64)


def _mixed_number(value: int) -> int:
    """``_mixed`` of one number."""
    value = ((value ^ (value >> 30)) * _ODD[0]) & _MASK
    value = ((value ^ (value >> 27)) * _ODD[1]) & _MASK
    return value ^ (value >> 31)


def _whole(kind: pa.DataType) -> _Number:
    return lambda value: int(value) & _MASK


def _float(kind: pa.DataType) -> _Number:
    def number(value: float) -> int:
        (found,) = _BITS[1].unpack(_BITS[0].pack(value + 0.0))
        return int(found)

    return number


def _decimal(kind: pa.DataType) -> _Number:
    def number(value: Decimal) -> int:
        units = int(EXACT.scaleb(value, kind.scale))
        return (units & _MASK) ^ ((units >> 64) * _ODD[1] & _MASK)

    return number


def _text(kind: pa.DataType) -> _Number:
    return lambda value: _of_bytes(value.encode())


def _binary(kind: pa.DataType) -> _Number:
    return _of_bytes


def _of_bytes(value: bytes) -> int:
    """``_bytes`` of one value."""
    found = len(value)
    for start in range(0, len(value), _WORD):
        word = int.from_bytes(value[start : start + _WORD], "little")
        found = _mixed_number((found * _ODD[1] + word) & _MASK)
    return found


#: By the types of small tables, the number of a value.
_NUMBERS: Final[Mapping[int, Callable[[pa.DataType], _Number]]] = {
    **{kind.id: _whole for kind in (pa.bool_(), pa.int16(), pa.int32(), pa.int64(), pa.date32(), pa.timestamp("us"))},
    **{kind.id: _float for kind in (pa.float32(), pa.float64())},
    **{kind.id: _text for kind in (pa.string(), pa.large_string())},
    **{kind.id: _binary for kind in (pa.binary(), pa.large_binary())},
    pa.decimal128(1).id: _decimal,
}


def _mixed(values: Hashes) -> Hashes:
    """The finaliser of SplitMix64 (Steele, Lea and Flood, 2014)."""
    values = (values ^ (values >> _SHIFTS[0])) * _FACTORS[0]
    values = (values ^ (values >> _SHIFTS[1])) * _FACTORS[1]
    mixed: Hashes = values ^ (values >> _SHIFTS[2])
    return mixed


def _values(column: pa.ChunkedArray) -> Hashes | None:
    """A number for each value, NULL included; None for a type without hash."""
    array = column.combine_chunks() if column.num_chunks != 1 else column.chunk(0)
    numbers = _numbers(array)
    if numbers is not None and array.null_count:
        numbers = np.where(array.is_valid().to_numpy(zero_copy_only=False), numbers, _NULL)
    return numbers


def _numbers(array: Any) -> Hashes | None:
    kind = array.type
    if pa.types.is_int64(kind):
        return _integers(array)
    if pa.types.is_integer(kind):
        return _integers(array.cast(pa.int64()))
    if pa.types.is_boolean(kind):
        return _integers(array.cast(pa.int64()))
    if pa.types.is_date32(kind):
        return _integers(array.view(pa.int32()).cast(pa.int64()))
    if pa.types.is_timestamp(kind) or pa.types.is_time64(kind):
        return _integers(array.view(pa.int64()))
    if pa.types.is_floating(kind):
        return _floats(array)
    if pa.types.is_decimal128(kind):
        return _decimals(array)
    if pa.types.is_string(kind) or pa.types.is_binary(kind):
        return _bytes(array, np.int32)
    if pa.types.is_large_string(kind) or pa.types.is_large_binary(kind):
        return _bytes(array, np.int64)
    return None


def _integers(array: Any) -> Hashes:
    filled = array.fill_null(0) if array.null_count else array
    return filled.to_numpy().astype(np.int64, copy=False).view(np.uint64)  # type: ignore[no-any-return]


def _floats(array: Any) -> Hashes:
    """Zeros are one value, and so are all NaN."""
    filled = array.cast(pa.float64())
    values = (filled.fill_null(0.0) if filled.null_count else filled).to_numpy() + 0.0
    return np.where(np.isnan(values), np.nan, values).view(np.uint64)


def _decimals(array: Any) -> Hashes:
    words = np.frombuffer(array.buffers()[1], np.uint64)[2 * array.offset : 2 * (array.offset + len(array))]
    found: Hashes = words[0::2] ^ (words[1::2] * _FACTORS[1])
    return found


def _bytes(array: Any, offset: type[np.int32 | np.int64]) -> Hashes:
    """Of each value's bytes, in words of eight. A NULL's are not looked at."""
    if not len(array):
        return np.empty(0, np.uint64)
    offsets = np.frombuffer(array.buffers()[1], offset)[array.offset : array.offset + len(array) + 1].astype(np.int64)
    data = array.buffers()[2]
    padded = np.concatenate(
        [np.frombuffer(data, np.uint8) if data else np.empty(0, np.uint8), np.zeros(_WORD, np.uint8)]
    )
    words: Any = np.ndarray((len(padded) - _WORD + 1,), np.uint64, padded.data, strides=(1,))
    starts, lengths = offsets[:-1], np.diff(offsets)
    found = lengths.astype(np.uint64)
    rows = np.flatnonzero(lengths)
    word = 0
    while rows.size:
        left = lengths[rows] - word * _WORD
        values = words[starts[rows] + word * _WORD]
        partial = left < _WORD
        masks = (np.uint64(1) << (left[partial].astype(np.uint64) * np.uint64(8))) - np.uint64(1)
        values[partial] &= masks
        found[rows] = _mixed(found[rows] * _FACTORS[1] + values)
        rows = rows[left > _WORD]
        word += 1
    return found
