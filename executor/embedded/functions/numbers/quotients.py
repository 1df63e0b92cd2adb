"""The decimals of quotients as functions of the engine, over columns.

Owns: ``quotient_decimals``, PostgreSQL's select_div_scale (numeric.c), and ``quotient_shown``, the text of a quotient
with its decimals. In SQL, each of them would take DuckDB's planner several milliseconds.

    magnitude(x)    = 10000 * w + d   where x = d.ddd * 10000^w, 1 <= d < 10000; 0 for zero
    decimals(a / b) = 16 - 4 * floor((magnitude(a) - magnitude(b) - 1) / 10000), at least ``least``, at most 20
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute

from catalog.values.types import QUOTIENT
from executor.embedded.functions.batches import ColumnFunctions
from executor.small.vectors import Values

_compute: Any = pyarrow.compute  # created when pyarrow is imported, so type checkers do not see its functions
#: The decimals with which a quotient is stored.
_MOST: Final = QUOTIENT[1]
_UNITS: Final = pa.decimal128(38, 0)
_POWERS: Final = 10 ** np.arange(19, dtype=np.int64)


def _decimals(a: pa.ChunkedArray, b: pa.ChunkedArray, scale: pa.ChunkedArray, least: pa.ChunkedArray) -> pa.Array:
    """The decimals of a / b, both counts of 10^-scale, one scale for all rows; NULL for NULL and if b is 0."""
    numbers = [_filled(column, _UNITS) for column in (a, b)]
    own = scale[0].as_py() if len(scale) else 0
    above, below = (_magnitudes(item, own) for item in numbers)
    wanted = 16 - 4 * ((above - below - 1) // 10000)
    wanted = np.clip(np.maximum(wanted, _filled(least, pa.int32()).to_numpy()), 0, _MOST).astype(np.int32)
    nulls = [column.is_null().to_numpy() for column in (a, b, least) if column.null_count]
    zeros = _compute.equal(numbers[1], pa.scalar(0, _UNITS)).to_numpy(zero_copy_only=False)
    return pa.array(wanted, mask=np.logical_or.reduce([zeros, *nulls]))


def _filled(column: pa.ChunkedArray, kind: pa.DataType) -> pa.Array:
    """A column as one array, with zeros for NULLs."""
    whole = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    whole = whole if whole.type == kind else whole.cast(kind)
    return _compute.coalesce(whole, pa.scalar(0, kind)) if whole.null_count else whole


def _magnitudes(units: pa.Array, scale: int) -> Values:
    """The magnitude of each count of 10^-scale."""
    words = np.frombuffer(units.buffers()[1], np.int64, 2 * len(units), 16 * units.offset)
    low, high = words[0::2], words[1::2]
    if ((high == low >> 63) & (-_POWERS[18] < low) & (low < _POWERS[18])).all():
        values = np.abs(low)
        sizes = np.searchsorted(_POWERS, values, "right")
        heads = values * _POWERS[np.maximum(4 - sizes, 0)] // _POWERS[np.maximum(sizes - 4, 0)]
    else:
        digits = _compute.utf8_ltrim(units.cast(pa.string()), "-")
        sizes = _compute.utf8_length(digits).to_numpy()
        heads = _compute.utf8_slice_codeunits(_compute.utf8_rpad(digits, 4, "0"), 0, 4).cast(pa.int64()).to_numpy()
    places = sizes - 1 - scale
    firsts = heads // _POWERS[3 - places % 4]
    magnitudes: Values = np.where(heads == 0, 0, 10000 * (places // 4) + firsts)
    return magnitudes


def _shown(texts: pa.ChunkedArray, decimals: pa.ChunkedArray) -> pa.Array:
    """The texts of quotients, stored with all decimals. If a quotient's number of decimals is unknown, it is the number
    expected for its value. Only zeros are left out."""
    written = texts.combine_chunks() if isinstance(texts, pa.ChunkedArray) else texts
    sizes = _lengths(written)
    places = _filled(decimals, pa.int32()).to_numpy()
    if decimals.null_count:
        unknown = decimals.is_null().to_numpy()
        places = np.where(unknown, _expected(written), places)
    places = np.maximum(places, _lengths(_compute.utf8_rtrim(written, "0")) - sizes + _MOST)
    found = written
    for place in np.unique(places[places < _MOST]).tolist():
        cut = _compute.utf8_slice_codeunits(written, 0, place - _MOST - (place == 0))
        found = _compute.if_else(pa.array(places == place), cut, found)
    return found


def _lengths(texts: pa.Array) -> Values:
    lengths: Values = _filled(_compute.binary_length(texts), pa.int32()).to_numpy()
    return lengths


def _expected(written: pa.Array) -> Values:
    """The expected decimals: 16 for a value with up to four digits before its point, 4 fewer for every four more; 4
    more for zero, and for a power of 10000, which results from numbers that begin with the same digits."""
    whole = _compute.utf8_ltrim(_compute.utf8_slice_codeunits(written, 0, -_MOST - 1), "-")
    alike = _compute.match_substring_regex(written, r"^-?(0\.|1(0000)*\.0*$)")
    more = _compute.coalesce(alike, pa.scalar(False)).to_numpy(zero_copy_only=False)
    expected: Values = np.clip(16 - 4 * ((_lengths(whole) - 1) // 4) + 4 * more, 0, _MOST)
    return expected


COLUMNS: Final[ColumnFunctions] = {
    "quotient_decimals": (_decimals, "INTEGER"),
    "quotient_shown": (_shown, "VARCHAR"),
}
