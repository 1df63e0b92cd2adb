"""Ranges in DuckDB: BLOBs (``catalog.values.ranges``), which macros split and compare.

Owns: ``FUNCTIONS`` and ``STATEMENTS``. Cuts are slices of the bytes and compare as bytes do. The cuts of the empty
range are below all others, so most comparisons need no test for it. All macros return NULL for NULL.
"""

from __future__ import annotations

from typing import Final

from catalog.values import ranges
from catalog.values.times.timestamps import INFINITE_DAYS, INFINITE_MICROSECONDS
from catalog.values.types import by_name
from executor.embedded.functions.batches import Functions
from planner.bind.conversion.literals import value_of


def _read(written: str, name: str, time_zone: str) -> bytes:
    return value_of(written, by_name(name), time_zone)  # type: ignore[return-value]


FUNCTIONS: Final[Functions] = {"ranges_read": (_read, "BLOB")}

_BIGGEST: Final = 10**ranges.SCALE
_LEAST: Final = -(2**127)

_ZEROS_9: Final = r"\x00" * 9
_ZEROS_17: Final = r"\x00" * 17
_EMPTY_8: Final = r"\x00" * 20
_EMPTY_16: Final = r"\x00" * 36

STATEMENTS: Final = f"""
CREATE MACRO ms_range_lower_cut(r) AS r[1:octet_length(r) // 2];
CREATE MACRO ms_range_upper_cut(r) AS r[octet_length(r) // 2 + 1:octet_length(r)];
CREATE MACRO ms_range_is_empty(r) AS r[1:1] = '\\x00'::BLOB;
CREATE MACRO ms_range_lower_inf(r) AS r[1:1] = '\\x01'::BLOB;
CREATE MACRO ms_range_upper_inf(r) AS r[octet_length(r) // 2 + 1:octet_length(r) // 2 + 1] = '\\x03'::BLOB;
CREATE MACRO ms_range_lower_inc(r) AS r[1:1] = '\\x02'::BLOB
    AND r[octet_length(r) // 2:octet_length(r) // 2] = '\\x00'::BLOB;
CREATE MACRO ms_range_upper_inc(r) AS r[octet_length(r):octet_length(r)] = '\\x01'::BLOB;
CREATE MACRO ms_range_contains(a, b) AS (ms_range_is_empty(b) AND a IS NOT NULL)
    OR (ms_range_lower_cut(a) <= ms_range_lower_cut(b) AND ms_range_upper_cut(a) >= ms_range_upper_cut(b));
CREATE MACRO ms_range_contained(a, b) AS ms_range_contains(b, a);
CREATE MACRO ms_range_overlaps(a, b) AS
    ms_range_lower_cut(a) < ms_range_upper_cut(b) AND ms_range_lower_cut(b) < ms_range_upper_cut(a);
CREATE MACRO ms_range_before(a, b) AS CASE WHEN b IS NOT NULL
    THEN NOT ms_range_is_empty(a) AND ms_range_upper_cut(a) <= ms_range_lower_cut(b) END;
CREATE MACRO ms_range_after(a, b) AS ms_range_before(b, a);
CREATE MACRO ms_range_overleft(a, b) AS CASE WHEN b IS NOT NULL
    THEN NOT ms_range_is_empty(a) AND ms_range_upper_cut(a) <= ms_range_upper_cut(b) END;
CREATE MACRO ms_range_overright(a, b) AS CASE WHEN a IS NOT NULL
    THEN NOT ms_range_is_empty(b) AND ms_range_lower_cut(a) >= ms_range_lower_cut(b) END;
CREATE MACRO ms_range_adjacent(a, b) AS CASE WHEN b IS NOT NULL THEN NOT ms_range_is_empty(a)
    AND (ms_range_upper_cut(a) = ms_range_lower_cut(b) OR ms_range_upper_cut(b) = ms_range_lower_cut(a)) END;
CREATE MACRO ms_range_merge(a, b) AS CASE WHEN a IS NULL OR b IS NULL THEN NULL
    WHEN ms_range_is_empty(a) THEN b WHEN ms_range_is_empty(b) THEN a
    ELSE least(ms_range_lower_cut(a), ms_range_lower_cut(b))
        || greatest(ms_range_upper_cut(a), ms_range_upper_cut(b)) END;
CREATE MACRO ms_range_union(a, b) AS CASE WHEN a IS NULL OR b IS NULL THEN NULL
    WHEN ms_range_is_empty(a) OR ms_range_is_empty(b)
        OR ms_range_overlaps(a, b) OR ms_range_adjacent(a, b) THEN ms_range_merge(a, b)
    ELSE error('!22000!result of range union would not be contiguous') END;
CREATE MACRO ms_range_none(r) AS unhex(repeat('00', octet_length(r)));
CREATE MACRO ms_range_between(lower_cut, upper_cut, otherwise) AS
    CASE WHEN lower_cut < upper_cut THEN lower_cut || upper_cut ELSE otherwise END;
CREATE MACRO ms_range_intersect(a, b) AS CASE WHEN a IS NOT NULL AND b IS NOT NULL
    THEN ms_range_between(greatest(ms_range_lower_cut(a), ms_range_lower_cut(b)),
    least(ms_range_upper_cut(a), ms_range_upper_cut(b)), ms_range_none(a)) END;
CREATE MACRO ms_range_minus(a, b) AS CASE WHEN NOT ms_range_overlaps(a, b) THEN a
    WHEN ms_range_contains(b, a) THEN ms_range_none(a)
    WHEN ms_range_lower_cut(a) < ms_range_lower_cut(b) AND ms_range_upper_cut(a) > ms_range_upper_cut(b)
    THEN error('!22000!result of range difference would not be contiguous')
    WHEN ms_range_lower_cut(a) < ms_range_lower_cut(b) THEN ms_range_lower_cut(a) || ms_range_lower_cut(b)
    ELSE ms_range_upper_cut(b) || ms_range_upper_cut(a) END;

CREATE MACRO ms_range_key_8(n) AS CAST(CAST(xor(n, (-9223372036854775808)::BIGINT) AS BIT) AS BLOB);
CREATE MACRO ms_range_key_16(n) AS CAST(CAST(xor(n, ({_LEAST})::HUGEINT) AS BIT) AS BLOB);
CREATE MACRO ms_range_number_8(k) AS xor(CAST(CAST(k AS BIT) AS BIGINT), (-9223372036854775808)::BIGINT);
CREATE MACRO ms_range_number_16(k) AS xor(CAST(CAST(k AS BIT) AS HUGEINT), ({_LEAST})::HUGEINT);
CREATE MACRO ms_range_cut_8(n, none, side) AS CASE WHEN n IS NULL THEN none || '{_ZEROS_9}'::BLOB
    ELSE '\\x02'::BLOB || ms_range_key_8(n) || side END;
CREATE MACRO ms_range_cut_16(n, none, side) AS CASE WHEN n IS NULL THEN none || '{_ZEROS_17}'::BLOB
    ELSE '\\x02'::BLOB || ms_range_key_16(n) || side END;
CREATE MACRO ms_range_side(is_above) AS CASE WHEN is_above THEN '\\x01'::BLOB ELSE '\\x00'::BLOB END;
CREATE MACRO ms_range_checked(l, u, f, none, made) AS CASE
    WHEN f IS NULL THEN error('!22000!range constructor flags argument must not be null')
    WHEN f NOT IN ('[]', '[)', '(]', '()') THEN error('!42601!invalid range bound flags')
    WHEN l > u THEN error('!22000!range lower bound must be less than or equal to range upper bound')
    WHEN l = u AND f <> '[]' THEN none
    ELSE made END;
CREATE MACRO ms_range_make_8(l, u, f) AS ms_range_checked(l, u, f, '{_EMPTY_8}'::BLOB,
    ms_range_cut_8(l, '\\x01'::BLOB, ms_range_side(f[1:1] = '('))
    || ms_range_cut_8(u, '\\x03'::BLOB, ms_range_side(f[2:2] = ']')));
CREATE MACRO ms_range_make_16(l, u, f) AS ms_range_checked(l, u, f, '{_EMPTY_16}'::BLOB,
    ms_range_cut_16(l, '\\x01'::BLOB, ms_range_side(f[1:1] = '('))
    || ms_range_cut_16(u, '\\x03'::BLOB, ms_range_side(f[2:2] = ']')));
CREATE MACRO ms_range_next(n, largest, message) AS CASE WHEN n >= largest THEN error(message) ELSE n + 1 END;
CREATE MACRO ms_range_moves(n, beside, infinite) AS beside AND coalesce(n NOT IN (infinite, -infinite), true);
CREATE MACRO ms_range_make_discrete(l, u, f, largest, message, infinite) AS
    ms_range_checked(l, u, f, '{_EMPTY_8}'::BLOB, ms_range_between(
        CASE WHEN l IS NOT NULL AND ms_range_moves(l, f[1:1] = '(', infinite)
            THEN ms_range_cut_8(ms_range_next(l, largest, message), '\\x01'::BLOB, '\\x00'::BLOB)
            ELSE ms_range_cut_8(l, '\\x01'::BLOB, ms_range_side(f[1:1] = '(')) END,
        CASE WHEN u IS NOT NULL AND ms_range_moves(u, f[2:2] = ']', infinite)
            THEN ms_range_cut_8(ms_range_next(u, largest, message), '\\x03'::BLOB, '\\x00'::BLOB)
            ELSE ms_range_cut_8(u, '\\x03'::BLOB, ms_range_side(f[2:2] = ']')) END,
        '{_EMPTY_8}'::BLOB));
CREATE MACRO ms_range_lower_8(r) AS CASE WHEN r[1:1] = '\\x02'::BLOB THEN ms_range_number_8(r[2:9]) END;
CREATE MACRO ms_range_upper_8(r) AS CASE WHEN r[11:11] = '\\x02'::BLOB THEN ms_range_number_8(r[12:19]) END;
CREATE MACRO ms_range_lower_16(r) AS CASE WHEN r[1:1] = '\\x02'::BLOB THEN ms_range_number_16(r[2:17]) END;
CREATE MACRO ms_range_upper_16(r) AS CASE WHEN r[19:19] = '\\x02'::BLOB THEN ms_range_number_16(r[20:35]) END;
CREATE MACRO ms_range_contains_cut(r, c) AS
    ms_range_lower_cut(r) <= c || '\\x00'::BLOB AND ms_range_upper_cut(r) >= c || '\\x01'::BLOB;
CREATE MACRO ms_range_contains_8(r, n) AS ms_range_contains_cut(r, '\\x02'::BLOB || ms_range_key_8(n));
CREATE MACRO ms_range_contains_16(r, n) AS ms_range_contains_cut(r, '\\x02'::BLOB || ms_range_key_16(n));
CREATE MACRO ms_range_bound_text(t) AS CASE WHEN t IS NULL THEN ''
    WHEN contains(t, ' ') THEN '"' || t || '"' ELSE t END;
CREATE MACRO ms_range_text(r, lower_text, upper_text) AS CASE WHEN r IS NULL THEN NULL
    WHEN ms_range_is_empty(r) THEN 'empty'
    ELSE CASE WHEN ms_range_lower_inc(r) THEN '[' ELSE '(' END || ms_range_bound_text(lower_text)
        || ',' || ms_range_bound_text(upper_text) || CASE WHEN ms_range_upper_inc(r) THEN ']' ELSE ')' END END;

CREATE MACRO ms_range_of_micros(x) AS CASE WHEN isfinite(x) THEN epoch_us(x)
    WHEN x > '2000-01-01' THEN {INFINITE_MICROSECONDS} WHEN x IS NOT NULL THEN {-INFINITE_MICROSECONDS} END;
CREATE MACRO ms_range_moment(n) AS CASE n WHEN {INFINITE_MICROSECONDS} THEN 'infinity'::TIMESTAMP
    WHEN {-INFINITE_MICROSECONDS} THEN '-infinity'::TIMESTAMP ELSE make_timestamp(n) END;
CREATE MACRO ms_range_of_numeric(x) AS CAST(trunc(x) AS HUGEINT) * {_BIGGEST}
    + CAST((x - trunc(x)) * {_BIGGEST} AS HUGEINT);
CREATE MACRO ms_range_of_date(x) AS CASE WHEN isfinite(x) THEN CAST(x - DATE '1970-01-01' AS BIGINT)
    WHEN x > '2000-01-01' THEN {INFINITE_DAYS}::BIGINT WHEN x IS NOT NULL THEN {-INFINITE_DAYS}::BIGINT END;
CREATE MACRO ms_range_numeric(n) AS CAST(n // {_BIGGEST} AS DECIMAL(38, 18))
    + CAST(CAST(n % {_BIGGEST} AS DECIMAL(18, 0)) * 0.000000000000000001::DECIMAL(18, 18) AS DECIMAL(38, 18));
CREATE MACRO ms_range_date(n) AS CASE n WHEN {INFINITE_DAYS} THEN 'infinity'::DATE
    WHEN {-INFINITE_DAYS} THEN '-infinity'::DATE ELSE DATE '1970-01-01' + CAST(n AS INTEGER) END;
"""
