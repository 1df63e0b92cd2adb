"""Multiranges in DuckDB: BLOBs (``catalog.values.multiranges``), which macros split into lists of ranges and join
again.

Owns: ``OF_COLUMNS``, the union of ranges over a batch (``catalog.values.multiranges``), and ``STATEMENTS``, which
express all other operations by unions and complements. All macros return NULL for NULL.
"""

from __future__ import annotations

from functools import partial
from typing import Final

import numpy as np
import pyarrow as pa

from catalog.values.multiranges import united
from executor.embedded.functions.batches import ColumnFunctions

#: The size in bytes from which on digits are split instead of sliced, since a lambda copies captured values for each
#: element.
_LONG: Final = 2000


def _united(width: int, column: pa.ChunkedArray) -> pa.Array:
    """The multiranges of ranges that are concatenated in any order."""
    parts = pa.concat_arrays([chunk.cast(pa.binary()) for chunk in column.chunks] or [pa.array([], pa.binary())])
    whole = parts.fill_null(b"") if parts.null_count else parts
    bounds = np.frombuffer(whole.buffers()[1], "<i4")[whole.offset : whole.offset + len(whole) + 1]
    data = np.frombuffer(whole.buffers()[2] or b"", np.uint8)[bounds[0] : bounds[-1]]
    united_data, lengths = united(data.reshape(-1, width), np.diff(bounds) // width)
    ends = np.append(0, np.cumsum(lengths)).astype("<i4")
    present = pa.array(parts.is_valid().to_numpy(zero_copy_only=False)).buffers()[1] if parts.null_count else None
    buffers = [present, pa.py_buffer(ends), pa.py_buffer(np.ascontiguousarray(united_data))]
    return pa.Array.from_buffers(pa.binary(), len(whole), buffers)


OF_COLUMNS: Final[ColumnFunctions] = {
    f"multiranges_united_{width}": (partial(_united, 2 * width + 4), "BLOB") for width in (8, 16)
}

#: Macros that are the same for bounds of any width.
_COMMON: Final = """
CREATE MACRO ms_multirange_of(r) AS CASE WHEN ms_range_is_empty(r) THEN ''::BLOB ELSE r END;
CREATE MACRO ms_multirange_laid(parts) AS unhex(array_to_string(list_transform(parts, lambda part: hex(part)), ''));
"""


def _of_width(width: int) -> str:
    """The macros of multiranges with bounds of this number of bytes."""
    half, zeros = width + 2, r"\x00" * (width + 1)
    below, above, empty = rf"'\x01{zeros}'::BLOB", rf"'\x03{zeros}'::BLOB", rf"'\x00{zeros}\x00{zeros}'::BLOB"
    return f"""
CREATE MACRO ms_multirange_parts_{width}(m) AS CASE WHEN octet_length(m) < {_LONG}
    THEN list_transform(range(0, octet_length(m), {2 * half}), lambda place: m[place + 1:place + {2 * half}])
    ELSE list_transform(regexp_extract_all(hex(m), '.{{{4 * half}}}'), lambda digits: unhex(digits)) END;
CREATE MACRO ms_multirange_make_{width}(parts) AS CASE WHEN len(list_filter(parts, lambda part: part IS NULL)) > 0
    THEN error('!22004!multirange values cannot contain null members')
    ELSE multiranges_united_{width}(ms_multirange_laid(parts)) END;
CREATE MACRO ms_multirange_last_{width}(m) AS m[octet_length(m) - {half - 1}:octet_length(m)];
CREATE MACRO ms_multirange_span_{width}(m) AS CASE WHEN m = ''::BLOB THEN {empty}
    ELSE m[1:{half}] || ms_multirange_last_{width}(m) END;
CREATE MACRO ms_multirange_between_{width}(m, open_below, open_above) AS ({below} || m || {above})[
    CASE WHEN open_below THEN {2 * half} ELSE 0 END + 1
    :octet_length(m) + CASE WHEN open_above THEN 0 ELSE {2 * half} END];
CREATE MACRO ms_multirange_complement_{width}(m) AS list_transform([m], lambda whole: ms_multirange_between_{width}(
    whole::BLOB, whole[1:1] = '\\x01'::BLOB, ms_multirange_last_{width}(whole::BLOB)[1:1] = '\\x03'::BLOB))[1];
CREATE MACRO ms_multirange_union_{width}(a, b) AS multiranges_united_{width}(a || b);
CREATE MACRO ms_multirange_minus_{width}(a, b) AS
    ms_multirange_complement_{width}(ms_multirange_union_{width}(ms_multirange_complement_{width}(a), b));
CREATE MACRO ms_multirange_intersect_{width}(a, b) AS
    ms_multirange_minus_{width}(a, ms_multirange_complement_{width}(b));
CREATE MACRO ms_multirange_contains_{width}(a, b) AS ms_multirange_union_{width}(a, b) = a;
CREATE MACRO ms_multirange_overlaps_{width}(a, b) AS
    CASE WHEN a[1:{half}] < ms_multirange_last_{width}(b) AND b[1:{half}] < ms_multirange_last_{width}(a)
    THEN ms_multirange_intersect_{width}(a, b) <> ''::BLOB WHEN a IS NOT NULL AND b IS NOT NULL THEN false END;
CREATE MACRO ms_multirange_contains_value_{width}(m, n) AS CASE WHEN n IS NOT NULL THEN
    len(list_filter(ms_multirange_parts_{width}(m), lambda part: ms_range_contains_{width}(part::BLOB, n))) > 0 END;
"""


STATEMENTS: Final = _COMMON + _of_width(8) + _of_width(16)
