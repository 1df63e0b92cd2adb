"""Bytes that compare as rows do in an order within their partition, so that places are found by binary search.

    hash of the partition | for each column of the order: NULL or not, value | hash of the row, where rows that tie
                                                                             | have an order

Values follow PostgreSQL's order: NULLS FIRST and LAST, DESC, NaN above all numbers, zeros of both signs equal, texts by
their bytes. Texts are padded to a width. One that is longer than ``WIDEST`` is cut, and nothing follows it: rows whose
keys are equal then need not tie, but those whose keys differ are in the keys' order.

Owns: the layout. Keys are arrays of NumPy's fixed-width bytes, which compare with zeros behind them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute
from msgspec import Struct
from msgspec.structs import replace

from executor.dataflow.rows.hashing import hashes_of
from executor.dataflow.rows.ordered_values import in_order
from planner.incremental.dataflow.graph import Key, OrderKey

Keys = npt.NDArray[np.bytes_]
_Bytes = npt.NDArray[np.uint8]

#: The most bytes of a text that count.
WIDEST: Final = 64
_SIGN: Final = np.uint64(1 << 63)
_WORD: Final = 8
_MOST: Final = (1 << 64) - 1
_BLOCK: Final = 1 << 16

_compute: Any = pyarrow.compute  # made at its import, where no type checker sees its functions


class Ordering(Struct, frozen=True):
    """How keys are made. ``widths``: by column of the order the bytes of its texts; ``ties``: the columns whose values
    order rows that tie, the other way round where it ``is_reverse``."""

    partition: Key
    order: tuple[OrderKey, ...]
    ties: Key
    widths: tuple[int, ...]
    is_reverse: bool = False

    def fitting(self, rows: pa.Table) -> Ordering:
        """The ordering whose texts are as wide as those of rows need, too."""
        found = [
            max(width, _width(rows.column(item.column))) for item, width in zip(self.order, self.widths, strict=True)
        ]
        return self if tuple(found) == self.widths else replace(self, widths=tuple(found))

    @property
    def cut(self) -> int | None:
        """The place of the column whose texts are cut."""
        return next((place for place, width in enumerate(self.widths) if width > WIDEST), None)

    @property
    def has_ties(self) -> bool:
        """Whether keys end with hashes of rows."""
        return bool(self.ties) and self.cut is None

    @property
    def prefix(self) -> int:
        """The bytes that say the partition."""
        return _WORD if self.partition else 0

    def keys(self, rows: pa.Table) -> Keys:
        """The keys of rows."""
        cut = self.cut
        parts = [_big_endian(hashes_of(rows, self.partition))] if self.partition else []
        for item, width in list(zip(self.order, self.widths, strict=True))[: None if cut is None else cut + 1]:
            parts += _ordered(rows.column(item.column), item, min(width, WIDEST))
        if self.has_ties:
            ties = hashes_of(rows, self.ties) ^ _SIGN
            parts.append(_big_endian(~ties if self.is_reverse else ties))
        return _joined(parts, rows.num_rows)

    def partitions(self, keys: Keys) -> npt.NDArray[np.uint64]:
        """The hash of each key's partition, 0 where all rows are in one."""
        if not self.partition:
            return np.zeros(keys.size, np.uint64)
        found = np.ascontiguousarray(_matrix(keys)[:, :_WORD]).view(">u8").ravel()
        return found.astype(np.uint64)

    def ends(self, keys: Keys) -> tuple[Keys, Keys]:
        """Keys before and behind all of each key's partition."""
        return self._filled(keys, self.prefix, 0), self._filled(keys, self.prefix, 255)

    def beyond(self, size: int, *, behind: bool) -> bytes:
        """A key of so many bytes behind all others, or before them."""
        return (b"\xff" if behind else b"\0") * size

    def peers(self, keys: Keys, *, behind: bool) -> Keys:
        """Keys behind all rows that tie with each, or before them."""
        return self._filled(keys, keys.itemsize - _WORD, 255 * behind) if self.has_ties else keys

    def moved(self, keys: Keys, by: int) -> Keys:
        """Keys of the same partition whose value is so much greater in the order, as far as there are such values. The
        order is one of integers or times, in which rows that tie have one key."""
        found = _matrix(keys).copy()
        place = slice(self.prefix + 1, self.prefix + 1 + _WORD)  # behind whether there is a value
        words = np.ascontiguousarray(found[:, place]).view(">u8").ravel().astype(np.uint64)
        step = np.uint64(min(abs(by), _MOST))
        moved = words + step if by > 0 else words - step
        is_beyond = moved < words if by > 0 else moved > words
        found[:, place] = _big_endian(np.where(is_beyond, np.uint64(_MOST if by > 0 else 0), moved))
        return _as_keys(found)

    def _filled(self, keys: Keys, first: int, value: int) -> Keys:
        found = _matrix(keys).copy()
        found[:, first:] = value
        return _as_keys(found)


def _matrix(keys: Keys) -> _Bytes:
    return np.ascontiguousarray(keys).view(np.uint8).reshape(keys.size, keys.itemsize)


def _as_keys(found: _Bytes) -> Keys:
    return found.view(f"S{found.shape[1]}").ravel()


def _joined(parts: Sequence[_Bytes], count: int) -> Keys:
    if not parts:
        return np.zeros(count, "S1")
    return _as_keys(np.ascontiguousarray(np.concatenate(parts, axis=1)))


def _big_endian(words: npt.NDArray[np.uint64]) -> _Bytes:
    return words.astype(">u8").view(np.uint8).reshape(words.size, _WORD)


def _ordered(column: pa.ChunkedArray, item: OrderKey, width: int) -> list[_Bytes]:
    """One column's bytes: whether a value is there, and the value."""
    array = column.combine_chunks() if column.num_chunks != 1 else column.chunk(0)
    there = array.is_valid().to_numpy(zero_copy_only=False)
    values = _values(array, width)
    if item.descending:
        values = ~values
    if array.null_count:
        values[~there] = 0
    return [(there == item.nulls_first).astype(np.uint8).reshape(-1, 1), values]


def _values(array: Any, width: int) -> _Bytes:
    """Bytes that compare as values do; a NULL's mean nothing."""
    kind = array.type
    if _is_text(kind):
        return _texts(array, width)
    if pa.types.is_floating(kind):
        return _big_endian(_floats(array))
    if pa.types.is_decimal128(kind):
        words = np.frombuffer(array.buffers()[1], np.uint64)[2 * array.offset : 2 * (array.offset + len(array))]
        return np.concatenate([_big_endian(words[1::2] ^ _SIGN), _big_endian(words[0::2])], axis=1)
    if pa.types.is_temporal(kind):
        numbers = in_order(array)[0]
    else:
        numbers = array.cast(pa.int64()).fill_null(0).to_numpy(zero_copy_only=False)
    return _big_endian(numbers.view(np.uint64) ^ _SIGN)


def _floats(array: Any) -> npt.NDArray[np.uint64]:
    """Numbers that compare as doubles do."""
    values = array.cast(pa.float64()).fill_null(0.0).to_numpy(zero_copy_only=False) + 0.0
    bits = np.where(np.isnan(values), np.nan, values).view(np.uint64)
    return np.where(bits & _SIGN, ~bits, bits | _SIGN)


# -- texts -------------------------------------------------------------------------------------------------------------


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def _width(column: pa.ChunkedArray) -> int:
    """The bytes of the longest text, as a power of two; 0 for other values."""
    if not _is_text(column.type):
        return 0
    longest = _compute.max(_compute.binary_length(column)).as_py() or 0
    return _WORD if longest <= _WORD else 1 << (longest - 1).bit_length()


def _texts(array: Any, width: int) -> _Bytes:
    """Texts as so many bytes, zeros behind them."""
    array = array.cast(pa.large_string())
    found = np.zeros((len(array), width), np.uint8)
    data = np.frombuffer(array.buffers()[2] or b"\0", np.uint8)
    offsets = np.frombuffer(array.buffers()[1], np.int64)[array.offset : array.offset + len(array) + 1]
    if not len(array) or not data.size:
        return found
    lengths = np.minimum(np.diff(offsets), width)
    for first in range(0, len(array), _BLOCK):
        block = slice(first, first + _BLOCK)
        places = offsets[:-1][block, None] + np.arange(width)
        inside = np.arange(width) < lengths[block, None]
        found[block] = np.where(inside, data[np.minimum(places, data.size - 1)], 0)
    return found
