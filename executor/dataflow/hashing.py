"""Hashes of many keys at once.

Rows with equal keys have equal hashes. Rows with other keys may, too: what is found by a hash is a superset, and its
users evaluate the condition again. Columns of a type that has no hash here (lists, structs, intervals) do not count,
so that a key of nothing else finds all rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

Hashes = npt.NDArray[np.uint64]
NO_HASHES: Final[Hashes] = np.empty(0, np.uint64)

_NULL: Final = np.uint64(0x9E3779B97F4A7C15)
_FACTORS: Final = (np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB))
_SHIFTS: Final = (np.uint64(30), np.uint64(27), np.uint64(31))
_WORD: Final = 8


def hashes_of(table: pa.Table, columns: Sequence[str]) -> Hashes:
    """The hash of each row's key."""
    found: Hashes = np.zeros(table.num_rows, np.uint64)
    for place, name in enumerate(columns, 1):
        values = _values(table.column(name))
        if values is not None:
            found = _mixed(found * _FACTORS[0] + values + np.uint64(place))
    return found


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
