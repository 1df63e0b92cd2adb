"""DuckDB macros of functions that DuckDB lacks, or whose edge cases differ from PostgreSQL's.

Owns: their SQL text, by family. ``numeric_macros`` explains how a macro evaluates its arguments once and how it raises
errors; its macros must be created before these.
"""

from __future__ import annotations

from typing import Final

from executor.embedded.functions.numbers import float_macros
from executor.embedded.functions.numbers.numeric_macros import let

#: Integers and numerics. ``u...`` are hugeint units of one scale.
_NUMBERS: Final = """
CREATE MACRO ms_wrapped(x, size) AS CASE WHEN (x % size + size) % size >= size // 2
    THEN (x % size + size) % size - size ELSE (x % size + size) % size END;
CREATE MACRO ms_shift_left(x, n, bits, mask) AS
    ms_wrapped(x::HUGEINT * (1::HUGEINT << (n & mask)::HUGEINT), 1::HUGEINT << bits::HUGEINT);
CREATE MACRO ms_shift_right(x, n, mask) AS x::BIGINT >> (n & mask)::BIGINT;
CREATE MACRO ms_julian(x) AS
    ms_divide(epoch_us(x)::HUGEINT + 210866803200000000, 86400000000::HUGEINT, 0, 20);
CREATE MACRO ms_factorial(n) AS CASE WHEN n < 0 THEN error('!22003!factorial of a negative number is undefined')
    WHEN n > 33 THEN error('!22003!value out of range: more than 38 digits') ELSE factorial(n::INTEGER) END;
CREATE MACRO ms_whole_quotient(a, b) AS CASE WHEN b = 0 AND a IS NOT NULL
    THEN error('!22012!division by zero') ELSE a // b END;
CREATE MACRO ms_bucket(x, low, high, n) AS CASE
    WHEN x IS NULL OR low IS NULL OR high IS NULL OR n IS NULL THEN NULL
    WHEN n <= 0 THEN error('!2201G!count must be greater than zero')
    WHEN low = high THEN error('!2201G!lower bound cannot equal upper bound')
    WHEN low < high AND x < low OR low > high AND x > low THEN 0
    WHEN low < high AND x >= high OR low > high AND x <= high THEN n::BIGINT + 1
    ELSE (x - low) * n::HUGEINT // (high - low) + 1 END;
CREATE MACRO ms_sqrt_scale(weight, shown) AS least(20, greatest(shown, 0, 16 - CASE WHEN weight >= 0
    THEN (weight + 1) * 2 - 1 ELSE 1 - (1 - weight) * 2 END));
CREATE MACRO ms_sqrt(x, scale, shown) AS CASE
    WHEN x < 0 THEN error('!2201F!cannot take square root of a negative number')
    WHEN x = 0 THEN CAST(0 AS DECIMAL(38, 20))
    ELSE ms_root(CAST(x AS DECIMAL(38, 20)), ms_ten(20 - ms_sqrt_scale(ms_weight(ms_units(x), scale), shown))) END;
"""

_TEXTS: Final = r"""
CREATE MACRO ms_overlay(s, new, start, n) AS CASE WHEN s IS NULL OR new IS NULL OR n IS NULL THEN NULL
    WHEN start <= 0 THEN error('!22011!negative substring length not allowed')
    ELSE left(s, start - 1) || new || ms_substring_from(s, CAST(start::BIGINT + n AS INTEGER)) END;
CREATE MACRO ms_delimited(items) AS CASE WHEN items IS NOT NULL THEN items[1].v || array_to_string(
    list_transform(list_slice(items, 2, len(items)), lambda item: item.d || item.v), '') END;
CREATE MACRO ms_too_long(s, n) AS strlen(s)::HUGEINT * n >= 1073741820;
CREATE MACRO ms_limited(size, s) AS CASE WHEN size >= 1073741820 THEN error('!54000!requested length too large')
    ELSE s END;
CREATE MACRO ms_times_found(s, old) AS (strlen(s) - strlen(replace(s, old, ''))) // greatest(strlen(old), 1);
CREATE MACRO ms_outgrows(s, old, new) AS ms_too_long(new, strlen(s)) AND ms_too_long(new, ms_times_found(s, old));
CREATE MACRO ms_replace(s, old, new) AS CASE WHEN ms_outgrows(s, old, new)
    THEN error('!54000!requested length too large')
    ELSE replace(s, old, CASE WHEN ms_outgrows(s, old, new) THEN '' ELSE new END) END;
CREATE MACRO ms_repeat(s, n) AS CASE WHEN ms_too_long(s, n) THEN error('!54000!requested length too large')
    WHEN n > 65536 THEN repeat(repeat(s, CASE WHEN n > 65536 THEN 4096 ELSE 0 END),
        CASE WHEN ms_too_long(s, n) THEN 0 ELSE n // 4096 END) || repeat(s, n % 4096)
    ELSE repeat(s, CASE WHEN ms_too_long(s, n) OR n > 65536 THEN 0 ELSE n END) END;
CREATE MACRO ms_right(s, n) AS CASE WHEN n = -2147483648 THEN s ELSE right(s, n) END;
CREATE MACRO ms_quote_literal(s) AS CASE WHEN contains(s, '\') THEN 'E' ELSE '' END
    || '''' || replace(replace(s, '\', '\\'), '''', '''''') || '''';
CREATE MACRO ms_quote_ident(s, words) AS CASE
    WHEN regexp_full_match(s, '[a-z_][a-z0-9_]*') AND NOT contains(words, ' ' || s || ' ') THEN s
    ELSE '"' || replace(s, '"', '""') || '"' END;
CREATE MACRO ms_base64(b) AS regexp_replace(base64(b), '([^=]{76})', '\1' || chr(10), 'g');
CREATE MACRO ms_blank_free(s) AS translate(s, ' ' || chr(9) || chr(10) || chr(13), '');
CREATE MACRO ms_hex_bytes(s) AS CASE
    WHEN NOT regexp_full_match(s, '[0-9A-Fa-f]*') THEN error('!22023!invalid hexadecimal digit: "'
        || regexp_extract(s, '[^0-9A-Fa-f]') || '"')
    WHEN length(s) % 2 = 1 THEN error('!22023!invalid hexadecimal data: odd number of digits') ELSE unhex(s) END;
CREATE MACRO ms_unhex(s) AS ms_hex_bytes(ms_blank_free(s));
CREATE MACRO ms_base64_bytes(s) AS CASE
    WHEN NOT regexp_full_match(s, '[0-9A-Za-z+/=]*') THEN error('!22023!invalid symbol "'
        || regexp_extract(s, '[^0-9A-Za-z+/=]') || '" found while decoding base64 sequence')
    WHEN NOT regexp_full_match(s, '([0-9A-Za-z+/]{4})*([0-9A-Za-z+/]{3}=|[0-9A-Za-z+/]{2}==)?')
    THEN error('!22023!invalid base64 end sequence') ELSE from_base64(s) END;
CREATE MACRO ms_unbase64(s) AS ms_base64_bytes(ms_blank_free(s));
"""


def _justified(days: str, months: str) -> str:
    """The last step of justify_hours and justify_interval: gives days and time the same sign."""
    return (
        "CASE WHEN v.d > 0 AND v.t < 0"
        f" THEN ms_interval_total({months}, {days} - 1, v.t + 86400000000)"
        " WHEN v.d < 0 AND v.t > 0"
        f" THEN ms_interval_total({months}, {days} + 1, v.t - 86400000000)"
        f" ELSE ms_interval_total({months}, {days}, v.t) END"
    )


_MONTHS: Final = "m: ms_interval_months(x), d: ms_interval_day(x), t: ms_interval_micros(x)"
#: timestamp.c, interval_justify_interval, after time was carried to days and days to months.
_ONE_SIGN: Final = let(
    "m: v.m + v.d // 30, d: v.d % 30, t: v.t",
    let(
        "m: CASE WHEN v.m > 0 AND (v.d < 0 OR v.d = 0 AND v.t < 0) THEN v.m - 1"
        " WHEN v.m < 0 AND (v.d > 0 OR v.d = 0 AND v.t > 0) THEN v.m + 1 ELSE v.m END,"
        " d: CASE WHEN v.m > 0 AND (v.d < 0 OR v.d = 0 AND v.t < 0) THEN v.d + 30"
        " WHEN v.m < 0 AND (v.d > 0 OR v.d = 0 AND v.t > 0) THEN v.d - 30 ELSE v.d END, t: v.t",
        _justified("v.d", "v.m"),
    ),
)

_TIMES: Final = f"""
CREATE MACRO ms_justify_hours(x) AS {
    let(_MONTHS, let("m: v.m, d: v.d + v.t // 86400000000, t: v.t % 86400000000", _justified("v.d", "v.m")))
};
CREATE MACRO ms_justify_days(x) AS {
    let(
        _MONTHS,
        let(
            "m: v.m + v.d // 30, d: v.d % 30, t: v.t",
            "CASE WHEN v.m > 0 AND v.d < 0 THEN ms_interval_total(v.m - 1, v.d + 30, v.t)"
            " WHEN v.m < 0 AND v.d > 0 THEN ms_interval_total(v.m + 1, v.d - 30, v.t)"
            " ELSE ms_interval_total(v.m, v.d, v.t) END",
        ),
    )
};
CREATE MACRO ms_justify_interval(x) AS {
    let(_MONTHS, let("m: v.m, d: v.d + v.t // 86400000000, t: v.t % 86400000000", _ONE_SIGN))
};
CREATE MACRO ms_interval_sum(items) AS ms_interval_total(
    list_sum(list_transform(items, lambda i: ms_interval_months(i))),
    list_sum(list_transform(items, lambda i: ms_interval_day(i))),
    list_sum(list_transform(items, lambda i: ms_interval_micros(i))));
CREATE MACRO ms_interval_shown(x) AS CASE WHEN ms_interval_micros(x) NOT BETWEEN -9223372036854775 AND 9223372036854775
    THEN error('!0A000!an interval of more than 2562047 hours is not supported') ELSE x END;
CREATE MACRO ms_make_interval(y, mon, w, d, h, mi, s) AS CASE
    WHEN NOT isfinite(s) THEN error('!22008!interval out of range')
    ELSE ms_interval_total(ms_wrapped(y::BIGINT * 12 + mon, 4294967296), ms_wrapped(w::BIGINT * 7 + d, 4294967296),
    h::BIGINT * 3600000000 + mi::BIGINT * 60000000 + round_even(s * 1e6, 0)) END;
CREATE MACRO ms_make_date(y, m, d) AS CASE WHEN y = 0 AND m IS NOT NULL AND d IS NOT NULL
    THEN error('!22008!date field value out of range: ' || y || '-' || lpad(m::VARCHAR, 2, '0') || '-'
        || lpad(d::VARCHAR, 2, '0'))
    WHEN y < 0 THEN error('!0A000!a date before Christ is not supported') ELSE make_date(y, m, d) END;
CREATE MACRO ms_make_time(h, m, s) AS CASE
    WHEN h IS NULL OR m IS NULL OR s IS NULL THEN NULL
    WHEN h < 0 OR h > 24 OR m < 0 OR m > 59 OR s < 0 OR s > 60 OR isnan(s) OR h = 24 AND (m > 0 OR s > 0)
    THEN error('!22008!time field value out of range: ' || h || ':' || lpad(m::VARCHAR, 2, '0') || ':' || s)
    WHEN h::BIGINT * 3600000000 + m::BIGINT * 60000000 + round_even(s * 1e6, 0) >= 86400000000
    THEN error('!0A000!the time 24:00:00 is not supported')
    ELSE CAST('00:00' AS TIME)
    + to_microseconds(h::BIGINT * 3600000000 + m::BIGINT * 60000000 + round_even(s * 1e6, 0)::BIGINT) END;
CREATE MACRO ms_make_timestamp(y, mon, d, h, m, s) AS CASE
    WHEN y IS NULL OR mon IS NULL OR d IS NULL OR h IS NULL OR m IS NULL OR s IS NULL THEN NULL
    WHEN h < 0 OR h > 24 OR m < 0 OR m > 59 OR s < 0 OR s > 60 OR isnan(s) OR h = 24 AND (m > 0 OR s > 0)
    THEN error('!22008!time field value out of range: ' || h || ':' || lpad(m::VARCHAR, 2, '0') || ':' || s)
    WHEN y < 0 THEN error('!0A000!a timestamp before Christ is not supported')
    WHEN y = 0 OR try_cast(y || '-' || mon || '-' || d AS DATE) IS NULL
    THEN error('!22008!date field value out of range: ' || y || '-' || lpad(mon::VARCHAR, 2, '0') || '-'
        || lpad(d::VARCHAR, 2, '0'))
    ELSE make_date(y, mon, d)::TIMESTAMP
    + to_microseconds(h::BIGINT * 3600000000 + m::BIGINT * 60000000 + round_even(s * 1e6, 0)::BIGINT) END;
CREATE MACRO ms_overlaps_ordered(a, b, c, d) AS CASE
    WHEN a > c THEN CASE WHEN d IS NULL THEN NULL WHEN a < d THEN TRUE WHEN b IS NULL THEN NULL ELSE FALSE END
    WHEN a < c THEN CASE WHEN b IS NULL THEN NULL WHEN c < b THEN TRUE WHEN d IS NULL THEN NULL ELSE FALSE END
    WHEN a = c THEN CASE WHEN b IS NULL OR d IS NULL THEN NULL ELSE TRUE END END;
CREATE MACRO ms_overlaps(a, b, c, d) AS ms_overlaps_ordered(
    CASE WHEN a IS NULL THEN b WHEN b IS NULL OR a <= b THEN a ELSE b END,
    CASE WHEN a IS NULL THEN a WHEN b IS NULL OR a <= b THEN b ELSE a END,
    CASE WHEN c IS NULL THEN d WHEN d IS NULL OR c <= d THEN c ELSE d END,
    CASE WHEN c IS NULL THEN c WHEN d IS NULL OR c <= d THEN d ELSE c END);
CREATE MACRO ms_to_timestamp(x) AS CASE
    WHEN isnan(x) THEN error('!22008!timestamp cannot be NaN')
    WHEN isinf(x) THEN CASE WHEN x > 0 THEN 'infinity'::TIMESTAMPTZ ELSE '-infinity'::TIMESTAMPTZ END
    WHEN (x < -62135596800 OR x >= 253402300800) AND x >= -210866803200 AND x < 9224318016000
    THEN error('!0A000!a timestamp before Christ or beyond the year 9999 is not supported')
    WHEN x < -62135596800 OR x >= 253402300800
    THEN error('!22008!timestamp out of range: "' || x || '"')
    ELSE make_timestamptz(round_even(x * 1e6, 0)::BIGINT) END;
"""

#: Statistics from sums of squares, and from a group's values in order without NULLs (orderedsetaggs.c).
_AGGREGATES: Final = f"""
CREATE MACRO ms_covar_samp(sxy, n) AS CASE WHEN n > 1 THEN sxy / (n - 1) END;
CREATE MACRO ms_corr(sxx, syy, sxy) AS CASE WHEN sxx = 0 OR syy = 0 THEN NULL ELSE sxy / sqrt(sxx * syy) END;
CREATE MACRO ms_regr_r2(sxx, syy, sxy) AS CASE WHEN sxx = 0 THEN NULL WHEN syy = 0 THEN 1
    ELSE sxy * sxy / (sxx * syy) END;
CREATE MACRO ms_regr_slope(sxx, syy, sxy) AS CASE WHEN sxx <> 0 THEN sxy / sxx END;
CREATE MACRO ms_regr_intercept(sxx, syy, sxy, x, y) AS CASE WHEN sxx <> 0 THEN y - x * sxy / sxx END;
CREATE MACRO ms_percentile_disc(s, q) AS CASE WHEN q IS NOT NULL
    THEN s[greatest(ceil(q * len(s))::BIGINT, 1)] END;
CREATE MACRO ms_percentile_between(low, high, share) AS CASE WHEN low = high THEN low
    ELSE low + share * (high - low) END;
CREATE MACRO ms_percentile_cont(s, q) AS {
    let(
        "s: s, r: q * (len(s) - 1)",
        "ms_percentile_between(v.s[floor(v.r)::BIGINT + 1], v.s[ceil(v.r)::BIGINT + 1], v.r - floor(v.r))",
    )
};
CREATE MACRO ms_fraction(q) AS CASE WHEN q < 0 OR q > 1
    THEN CAST(error('!22003!percentile value ' || ms_float_text(q, 6) || ' is not between 0 and 1') AS DOUBLE)
    ELSE q END;
CREATE MACRO ms_percentile_cont_at(s, q) AS ms_percentile_cont(s, ms_fraction(q));
CREATE MACRO ms_percentile_disc_at(s, q) AS ms_percentile_disc(s, ms_fraction(q));
CREATE MACRO ms_mode(s, x) AS {
    let(
        "s: s, x: x, n: map_entries(list_histogram(s))",
        let(
            "s: v.s, x: v.x, n: v.n, m: list_max(list_transform(v.n, lambda e: e.value))",
            "v.x[list_min(list_transform(list_filter(v.n, lambda e: e.value = v.m),"
            " lambda e: list_position(v.s, e.key)))]",
        ),
    )
};
"""

#: Parts of to_char(); ``s`` is a number as text, with its decimals.
_FORMATS: Final = """
CREATE MACRO ms_ordinal_suffix(s) AS CASE WHEN right(s, 2) IN ('11', '12', '13') THEN 'th'
    WHEN right(s, 1) = '1' THEN 'st' WHEN right(s, 1) = '2' THEN 'nd' WHEN right(s, 1) = '3' THEN 'rd' ELSE 'th' END;
CREATE MACRO ms_ordinal(s, suffix) AS s || CASE WHEN suffix = 'TH' THEN upper(ms_ordinal_suffix(s))
    ELSE ms_ordinal_suffix(s) END;
CREATE MACRO ms_roman_month(month) AS
    (['I', 'II', 'III', 'IV', 'V', 'VI', 'VII', 'VIII', 'IX', 'X', 'XI', 'XII'])[month];
CREATE MACRO ms_char_certain(x, digits) AS NOT isnan(x) AND abs(x) < power(10::DOUBLE, digits);
CREATE MACRO ms_char_digits(s) AS CASE WHEN split_part(ltrim(s, '-'), '.', 1) = '0' THEN ''
    ELSE split_part(ltrim(s, '-'), '.', 1) END;
CREATE MACRO ms_char_fits(s, digits) AS length(split_part(ltrim(s, '-'), '.', 1)) <= digits;
CREATE MACRO ms_char_ordinal(s, digits, suffix) AS CASE WHEN starts_with(s, '-') OR NOT ms_char_fits(s, digits) THEN ''
    ELSE substring(ms_ordinal(split_part(s, '.', 1), suffix), length(split_part(s, '.', 1)) + 1) END;
CREATE MACRO ms_char_shifted(s) AS regexp_replace(replace(s, '.', ''), '^(-?)0+([0-9])', '\\1\\2');
CREATE MACRO ms_char_whole(s, digits, forced, decimals) AS CASE
    WHEN NOT ms_char_fits(s, digits) THEN repeat('#', digits)
    WHEN ms_char_digits(s) = '' AND forced = 0 AND decimals = 0 THEN '0'
    ELSE lpad(ms_char_digits(s), greatest(length(ms_char_digits(s)), forced)::INTEGER, '0') END;
CREATE MACRO ms_char_decimals(s, digits, decimals) AS CASE WHEN NOT ms_char_fits(s, digits)
    THEN repeat('#', decimals) ELSE split_part(s, '.', 2) END;
CREATE MACRO ms_char_kept(d, kept) AS left(d, kept) || rtrim(substring(d, kept + 1), '0');
CREATE MACRO ms_char_zero(whole, decimals) AS CASE WHEN whole = '' AND decimals = '' THEN '0' ELSE whole END;
CREATE MACRO ms_char_grouped(s, place) AS CASE WHEN length(s) > place
    THEN left(s, length(s) - place) || ',' || right(s, place) ELSE s END;
CREATE MACRO ms_char_sign(s, plus) AS CASE WHEN starts_with(s, '-') THEN '-'
    WHEN s IS NOT NULL THEN plus END;
"""

#: Parts of to_timestamp().
_READING: Final = """
CREATE MACRO ms_month_number(name) AS (strpos('janfebmaraprmayjunjulaugsepoctnovdec', lower(name)) + 2) // 3;
CREATE MACRO ms_half_day(hour, noon) AS hour % 12 + CASE WHEN lower(noon) = 'pm' THEN 12 ELSE 0 END;
CREATE MACRO ms_read_day(y, mon, d) AS CASE WHEN d <= 28 OR month(make_date(y, mon, 1) + (d - 1)) = mon
    THEN make_date(y, mon, 1) + (d - 1) END;
CREATE MACRO ms_read_moment(y, mon, d, micros) AS ms_read_day(y, mon, d) + to_microseconds(micros);
CREATE MACRO ms_read_micros(h, m, s, millis, micros) AS
    ((h::BIGINT * 60 + m) * 60 + s) * 1000000 + millis * 1000 + micros;
"""

STATEMENTS: Final = float_macros.STATEMENTS + _AGGREGATES + _NUMBERS + _TEXTS + _TIMES + _FORMATS + _READING
