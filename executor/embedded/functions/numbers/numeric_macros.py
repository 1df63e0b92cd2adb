"""DuckDB macros that compute PostgreSQL's results where DuckDB's functions differ.

Owns: their SQL text; ``instance.Instance`` creates them in the in-memory catalog of all connections. Numbers are exact:
decimals become hugeint units (``ms_units``), are computed, and are converted back (``ms_decimal20``); a result of more
than 38 digits raises. Messages of ``error()`` start with ``!SQLSTATE!``, which ``errors.py`` reads.

A macro's argument is pasted wherever it is named. So a value that is used several times is bound by a lambda over a
list of one element (``let``), and callers bind arguments other than columns (``nodes.macro``).
"""

from __future__ import annotations

from typing import Final


def let(bindings: str, body: str) -> str:
    """body with v.<name> bound by 'name: expression, ...', each expression evaluated once."""
    return f"list_transform([{{{bindings}}}], lambda v: {body})[1]"


#: ``quotient_decimals`` gives a quotient's display scale (``quotients``); digits beyond it, up to the 20th decimal, are
#: cut off by a power of ten.
_DIGITS: Final = """
CREATE MACRO ms_weight(units, scale) AS (length(CAST(units AS VARCHAR)) + 3999 - scale) // 4 - 1000;
CREATE MACRO ms_cut_off(a, b, scale, least_scale) AS
    CAST(power(10::DOUBLE, 20 - quotient_decimals(a, b, scale, least_scale)) AS HUGEINT);
CREATE MACRO ms_scaled_text(written, shown, own) AS rtrim(left(written, CAST(CASE WHEN own = 0 THEN length(written)
    ELSE greatest(length(rtrim(written, '0')), length(written) - own + least(coalesce(shown, 0), own)) END AS BIGINT)),
    '.') || CASE WHEN shown > own THEN CASE WHEN own = 0 THEN '.' ELSE '' END || repeat('0', shown - own) ELSE '' END;
CREATE MACRO ms_padded(s, shown) AS s || repeat(' ', coalesce(shown, 0) - length(s));
CREATE MACRO ms_shown_scale(s) AS CAST(CASE WHEN contains(s, '.') THEN length(s) - strpos(s, '.')
    WHEN s IS NOT NULL THEN 0 END AS INTEGER);
CREATE MACRO ms_written_scale(s) AS CAST(CASE WHEN s IS NULL THEN NULL ELSE greatest(0, least(18,
    length(regexp_extract(s, '\\.([0-9]*)', 1))
    - coalesce(TRY_CAST(regexp_extract(s, '[eE]([+-]?[0-9]+)', 1) AS INTEGER), 0))) END AS INTEGER);
"""


#: a / b, both positive: q in units of 10^-20 and the remainder r. Five steps of four digits stay within hugeint. It is
#: a reduction over the start and five more elements of its type, since nested lambdas take long to plan.
_LONG_DIVISION: Final = (
    "list_reduce(list_transform([0, 1, 2, 3, 4, 5], lambda i: {'q': a // b, 'r': a % b, 'b': b}),"
    " lambda v, w: {'q': v.q * 10000 + (v.r * 10000) // v.b, 'r': (v.r * 10000) % v.b, 'b': v.b})"
)

#: One step if b < 10^18, which is so for counts.
_SHORT_DIVISION: Final = let(
    "q: a // b * 100000000000000000000::HUGEINT, r: (a % b) * 100000000000000000000::HUGEINT, b: b",
    "{'q': v.q + v.r // v.b, 'r': v.r % v.b, 'b': v.b}",
)


def _division(name: str, division: str) -> str:
    """A macro name(a, b, scale, least_scale) that divides units of one scale, with PostgreSQL's errors and rounding.

    The engine itself raises for a division by zero: it treats error() as volatile, and would compute a correlated
    subquery with it again for each outer row, even for equal values.
    """
    quotient = let(
        "d: (SELECTED), t: ms_cut_off(a, b, scale, least_scale)".replace("(SELECTED)", division),
        "CASE WHEN v.t > 1 THEN (v.d.q + v.t // 2) // v.t * v.t"
        " WHEN v.d.r >= v.d.b - v.d.r THEN v.d.q + 1 ELSE v.d.q END",
    )
    positive = f"CREATE MACRO {name}_positive(a, b, scale, least_scale) AS {quotient};\n"
    signed = let(
        "a: abs(a), b: abs(b), s: CASE WHEN (a < 0) <> (b < 0) THEN -1 ELSE 1 END",
        "CASE WHEN v.b = 0 THEN CAST(v.a // v.b AS DECIMAL(38, 20))"
        " WHEN v.a = 0 AND v.b IS NOT NULL THEN CAST(0 AS DECIMAL(38, 20))"
        f" ELSE ms_decimal20(v.s * {name}_positive(v.a, v.b, scale, least_scale)) END",
    )
    return positive + f"CREATE MACRO {name}(a, b, scale, least_scale) AS {signed};\n"


_QUOTIENT: Final = _division("ms_divide", _LONG_DIVISION) + _division("ms_divide_short", _SHORT_DIVISION)

#: a / b, b below 10^18, as units of 10^-16 (``LARGE_QUOTIENT``).
_LARGE_QUOTIENT: Final = f"""
CREATE MACRO ms_divide_large_positive(a, b, scale, least_scale) AS {
    let(
        "q: a // b * 10000000000000000::HUGEINT + (a % b) * 10000000000000000::HUGEINT // b,"
        " r: (a % b) * 10000000000000000::HUGEINT % b, b: b, a: a,"
        " t: ms_cut_off(a, b, scale, least_scale) // 10000::HUGEINT",
        "CASE WHEN v.r = 0 AND v.t <= 1 THEN v.q"
        " WHEN v.a < v.b OR v.t = 0 THEN CAST(error('!22003!numeric field overflow') AS HUGEINT)"
        " WHEN v.t > 1 THEN (v.q + v.t // 2) // v.t * v.t WHEN v.r >= v.b - v.r THEN v.q + 1 ELSE v.q END",
    )
};
CREATE MACRO ms_divide_large(a, b, scale, least_scale) AS {
    let(
        "a: abs(a), b: abs(b), s: CASE WHEN (a < 0) <> (b < 0) THEN -1 ELSE 1 END",
        "CASE WHEN v.b = 0 THEN CAST(v.a // v.b AS DECIMAL(38, 16))"
        " WHEN v.a = 0 AND v.b IS NOT NULL THEN CAST(0 AS DECIMAL(38, 16))"
        " WHEN v.b >= 1000000000000000000::HUGEINT"
        " THEN CAST(error('!22003!numeric field overflow') AS DECIMAL(38, 16))"
        " ELSE ms_decimal16(v.s * ms_divide_large_positive(v.a, v.b, scale, least_scale)) END",
    )
};
"""

_UNITS: Final = """
CREATE MACRO ms_ten(n) AS CASE WHEN n <= 22 THEN CAST(power(10::DOUBLE, n) AS HUGEINT)
    ELSE CAST(power(10::DOUBLE, n - 22) AS HUGEINT) * 10000000000000000000000::HUGEINT END;
CREATE MACRO ms_scaled(units, digits) AS units * ms_ten(digits);
CREATE MACRO ms_narrow6(value) AS CASE WHEN value <> CAST(value AS DECIMAL(38, 6))
    THEN error('!22003!numeric has too many decimals for an exact square') ELSE CAST(value AS DECIMAL(38, 6)) END;
CREATE MACRO ms_narrow12(value) AS CASE WHEN value <> CAST(value AS DECIMAL(38, 12))
    THEN error('!22003!numeric has too many decimals for an exact square') ELSE CAST(value AS DECIMAL(38, 12)) END;
CREATE MACRO ms_narrow18(value) AS CASE WHEN value <> CAST(value AS DECIMAL(38, 18))
    THEN error('!22003!value overflows numeric format') ELSE CAST(value AS DECIMAL(38, 18)) END;
CREATE MACRO ms_units(value) AS CAST(replace(CAST(value AS VARCHAR), '.', '') AS HUGEINT);
CREATE MACRO ms_decimal20(units) AS
    CAST(units AS DECIMAL(38, 0)) * CAST('0.00000000000000000001' AS DECIMAL(20, 20));
CREATE MACRO ms_decimal18(units) AS CAST(units AS DECIMAL(38, 0)) * CAST('0.000000000000000001' AS DECIMAL(18, 18));
CREATE MACRO ms_decimal16(units) AS CAST(units AS DECIMAL(38, 0)) * CAST('0.0000000000000001' AS DECIMAL(16, 16));
"""

#: a * b rounded half away from zero to 18 decimals, for factors whose scales together exceed 18 (units of 10^-sa and
#: 10^-sb). Integral and fractional parts are multiplied separately, and a's fraction is split once more, so that no
#: partial product exceeds 38 digits before the result does. The digits to be cut off are summed in units of 10^-(sa +
#: sb).
_PRODUCT: Final = f"""
CREATE MACRO ms_product_fraction(a, b, cut) AS {
    let(
        "x: (a // 10000000000) * b, y: (a % 10000000000) * b, c: cut",
        "CASE WHEN v.c < 10"
        " THEN {'q': (v.x * 10000000000 + v.y) // ms_ten(v.c), 'r': (v.x * 10000000000 + v.y) % ms_ten(v.c)}"
        " ELSE {'q': v.x // ms_ten(v.c - 10) + (v.x % ms_ten(v.c - 10) * 10000000000 + v.y) // ms_ten(v.c),"
        " 'r': (v.x % ms_ten(v.c - 10) * 10000000000 + v.y) % ms_ten(v.c)} END",
    )
};
CREATE MACRO ms_product_positive(a, b, sa, sb) AS {
    let(
        "ah: a // ms_ten(sa), bh: b // ms_ten(sb), ab: (a // ms_ten(sa)) * (b % ms_ten(sb)),"
        " ba: (b // ms_ten(sb)) * (a % ms_ten(sa)),"
        " f: ms_product_fraction(a % ms_ten(sa), b % ms_ten(sb), sa + sb - 18)",
        "v.ah * v.bh * ms_ten(18) + v.ab // ms_ten(greatest(sb - 18, 0)) * ms_ten(greatest(18 - sb, 0))"
        " + v.ba // ms_ten(greatest(sa - 18, 0)) * ms_ten(greatest(18 - sa, 0)) + v.f.q"
        " + (v.ab % ms_ten(greatest(sb - 18, 0)) * ms_ten(sa) + v.ba % ms_ten(greatest(sa - 18, 0)) * ms_ten(sb)"
        " + v.f.r + ms_ten(sa + sb - 18) // 2) // ms_ten(sa + sb - 18)",
    )
};
CREATE MACRO ms_product18(a, b, sa, sb) AS {
    let(
        "a: abs(a), b: abs(b), s: CASE WHEN (a < 0) <> (b < 0) THEN -1 ELSE 1 END",
        "ms_decimal18(v.s * ms_product_positive(v.a, v.b, sa, sb))",
    )
};
"""

#: PostgreSQL's numeric_stddev_internal: (n * sum2 - sum * sum) / (n * (n - 1) or n * n), units of 10^-scale (sum) and
#: 10^-2*scale (sum2). The root is a double's, corrected by the exact remainder of its square.
_VARIANCE: Final = f"""
CREATE MACRO ms_deviates(n, s1, s2) AS CAST(n AS HUGEINT) * s2 - s1 * s1;
CREATE MACRO ms_freedom(n, sample) AS CAST(n AS HUGEINT) * (n - CASE WHEN sample THEN 1 ELSE 0 END);
CREATE MACRO ms_variance(n, s1, s2, scale, sample) AS CASE
    WHEN n = 0 OR (sample AND n = 1) THEN CAST(NULL AS DECIMAL(38, 20))
    ELSE {
    let(
        "x: ms_deviates(n, s1, s2), d: ms_scaled(ms_freedom(n, sample), 2 * scale)",
        "CASE WHEN v.x <= 0 THEN CAST(0 AS DECIMAL(38, 20)) ELSE ms_divide(v.x, v.d, 2 * scale, 2 * scale) END",
    )
} END;
CREATE MACRO ms_rounded(value, t) AS {let("u: ms_units(value), t: t", "ms_decimal20((v.u + v.t // 2) // v.t * v.t)")};
CREATE MACRO ms_rounded_root(y, rest, t) AS ms_decimal20((ms_units(y) + t // 2
    + CAST(CASE WHEN t = 1 THEN round(rest * 1e20) ELSE floor(rest * 1e20) END AS HUGEINT)) // t * t);
CREATE MACRO ms_root(value, t) AS {
    let(
        "x: value, y: CAST(sqrt(CAST(value AS DOUBLE)) AS DECIMAL(20, 10)), t: t",
        "CASE WHEN v.y = 0 THEN CAST(sqrt(CAST(v.x AS DOUBLE)) AS DECIMAL(38, 20)) ELSE "
        + let(
            "y: CAST(v.y AS DECIMAL(38, 20)), d: CAST(v.y AS DOUBLE), t: v.t,"
            " r: CAST(CAST(v.x AS DECIMAL(38, 20)) - CAST(v.y * v.y AS DECIMAL(38, 20)) AS DOUBLE)",
            "ms_rounded_root(v.y, v.r / (2 * v.d) - v.r * v.r / (8 * v.d * v.d * v.d), v.t)",
        )
        + " END",
    )
};
CREATE MACRO ms_deviation(n, s1, s2, scale, sample) AS CASE
    WHEN n = 0 OR (sample AND n = 1) THEN CAST(NULL AS DECIMAL(38, 20))
    ELSE {
    let(
        "x: ms_deviates(n, s1, s2), d: ms_scaled(ms_freedom(n, sample), 2 * scale)",
        "CASE WHEN v.x <= 0 THEN CAST(0 AS DECIMAL(38, 20)) ELSE"
        " ms_root(ms_divide(v.x, v.d, 2 * scale, 2 * scale), ms_cut_off(v.x, v.d, 2 * scale, 2 * scale)) END",
    )
} END;
"""

#: Text functions whose edge cases differ from DuckDB's. A length that is too large is also removed from the branch that
#: is not taken, since DuckDB computes constant branches anyway.
_TEXT: Final = """
CREATE MACRO ms_substring_from(s, f) AS substring(s, CASE WHEN f < 1 THEN 1 ELSE f END);
CREATE MACRO ms_substring(s, f, n) AS CASE WHEN s IS NULL OR f IS NULL OR n IS NULL THEN NULL
    WHEN n < 0 THEN error('!22011!negative substring length not allowed')
    ELSE substring(s, greatest(CAST(f AS BIGINT), 1),
        greatest(CAST(f AS BIGINT) + n - greatest(CAST(f AS BIGINT), 1), 0)) END;
CREATE MACRO ms_initcap(s) AS array_to_string(list_transform(
    regexp_extract_all(s, '[\\p{L}\\p{N}]+|[^\\p{L}\\p{N}]+'), lambda w: upper(w[1]) || lower(w[2:])), '');
CREATE MACRO ms_lpad(s, n, fill) AS CASE WHEN s IS NULL OR fill IS NULL THEN NULL WHEN n <= 0 THEN ''
    WHEN n > 268435454 THEN error('!54000!requested length too large')
    WHEN fill = '' OR length(s) >= n THEN left(s, n)
    ELSE lpad(s, CASE WHEN n > 268435454 THEN 0 ELSE n END, CASE WHEN fill = '' THEN ' ' ELSE fill END) END;
CREATE MACRO ms_rpad(s, n, fill) AS CASE WHEN s IS NULL OR fill IS NULL THEN NULL WHEN n <= 0 THEN ''
    WHEN n > 268435454 THEN error('!54000!requested length too large')
    WHEN fill = '' OR length(s) >= n THEN left(s, n)
    ELSE rpad(s, CASE WHEN n > 268435454 THEN 0 ELSE n END, CASE WHEN fill = '' THEN ' ' ELSE fill END) END;
CREATE MACRO ms_split_part(s, d, n) AS CASE WHEN n = 0 THEN error('!22023!field position must not be zero')
    WHEN d = '' THEN CASE WHEN n IN (1, -1) THEN s ELSE '' END ELSE split_part(s, d, n) END;
CREATE MACRO ms_chr(n) AS CASE WHEN n = 0 THEN error('!54000!null character not permitted')
    WHEN n < 0 THEN error('!22023!character number must be positive')
    WHEN n > 1114111 THEN error('!54000!requested character too large for encoding: ' || n)
    WHEN n BETWEEN 55296 AND 57343 THEN error('!54000!requested character not valid for encoding: ' || n)
    ELSE chr(n) END;
CREATE MACRO ms_bool(s) AS CASE WHEN s IS NULL THEN NULL
    WHEN lower(trim(s, e' \\t\\n\\r')) IN ('t', 'tr', 'tru', 'true', 'y', 'ye', 'yes', 'on', '1') THEN TRUE
    WHEN lower(trim(s, e' \\t\\n\\r')) IN ('f', 'fa', 'fal', 'fals', 'false', 'n', 'no', 'of', 'off', '0') THEN FALSE
    ELSE CAST(error('!22P02!invalid input syntax for type boolean: "' || s || '"') AS BOOLEAN) END;
CREATE MACRO ms_integer(s, name) AS CASE WHEN s IS NULL OR regexp_full_match(s, '\\s*[+-]?[0-9]+\\s*') THEN s
    ELSE error('!22P02!invalid input syntax for type ' || name || ': "' || s || '"') END;
CREATE MACRO ms_written_decimals(s) AS length(rtrim(regexp_extract(s, '[.]([0-9]*)', 1), '0'))
    + coalesce(TRY_CAST(regexp_extract(s, '[eE]-([0-9]{1,5})', 1) AS INTEGER), 0);
CREATE MACRO ms_numeric(s) AS CAST(CASE
    WHEN (length(s) > 18 OR contains(lower(s), 'e-')) AND ms_written_decimals(s) > 18
    THEN error('!22003!value overflows numeric format') ELSE s END AS DECIMAL(38, 18));
CREATE MACRO ms_bytea(s) AS CASE WHEN contains(s, '\\') THEN octets_read(s) ELSE encode(s) END;
CREATE MACRO ms_date(d) AS CASE WHEN d IS NULL OR isinf(d) THEN d
    WHEN d BETWEEN DATE '4714-11-24 (BC)' AND DATE '5874897-12-31' THEN d ELSE error('!22008!date out of range') END;
CREATE MACRO ms_days(a, b) AS CASE WHEN isinf(a) OR isinf(b) THEN error('!22008!cannot subtract infinite dates')
    ELSE CAST(a - b AS INTEGER) END;
CREATE MACRO ms_infinite_number(moment) AS
    CASE WHEN isinf(moment) THEN CAST('!0A000!an infinite numeric is not supported' AS BIGINT) END;
CREATE MACRO ms_require(condition, value, words) AS CASE WHEN condition IS FALSE THEN error(words) ELSE value END;
CREATE MACRO ms_enum(s, found, name) AS CASE WHEN s IS NULL OR found IS NOT NULL THEN found
    ELSE error('!22P02!invalid input value for enum ' || name || ': "' || s || '"') END;
CREATE MACRO ms_varchar(s, n, name) AS CASE WHEN s IS NULL OR length(s) <= n THEN s
    WHEN rtrim(substring(s, n + 1), ' ') = '' THEN left(s, n)
    ELSE error('!22001!value too long for type ' || name || '(' || n || ')') END;
CREATE MACRO ms_trim_zeros(s) AS CASE WHEN contains(s, '.') THEN rtrim(rtrim(s, '0'), '.') ELSE s END;
CREATE MACRO ms_quotient_groups(w, f) AS CASE WHEN w = '0' THEN -1
    ELSE (length(w) - 1) // 4 - CASE WHEN f = '' AND regexp_full_match(w, '1(0000)*') THEN 1 ELSE 0 END END;
CREATE MACRO ms_quotient_padded(s, w, f) AS CASE WHEN ms_quotient_groups(ltrim(w, '-'), f) > 3 THEN s
    ELSE w || '.' || rpad(f, CAST(16 - 4 * ms_quotient_groups(ltrim(w, '-'), f) AS INTEGER), '0') END;
CREATE MACRO ms_quotient_text(s) AS ms_quotient_padded(
    ms_trim_zeros(s), split_part(s, '.', 1), rtrim(split_part(s, '.', 2), '0'));
CREATE MACRO ms_integral(x) AS CAST(TRY_CAST(abs(x) AS HUGEINT) AS VARCHAR);
CREATE MACRO ms_float_text(x, digits) AS CASE WHEN isnan(x) THEN 'NaN'
    WHEN isinf(x) THEN CASE WHEN x > 0 THEN 'Infinity' ELSE '-Infinity' END
    WHEN abs(x) >= power(10::DOUBLE, digits) AND abs(x) < 1e16 THEN CASE WHEN x < 0 THEN '-' ELSE '' END
        || ms_trim_zeros(left(ms_integral(x), 1) || '.' || substring(ms_integral(x), 2))
        || 'e+' || lpad(CAST(length(ms_integral(x)) - 1 AS VARCHAR), 2, '0')
    ELSE regexp_replace(CAST(x AS VARCHAR), '\\.0$', '') END;
CREATE MACRO ms_upper(s) AS CASE WHEN contains(s, 'ß')
    THEN array_to_string(list_transform(string_split(s, 'ß'), lambda part: upper(part)), 'ß') ELSE upper(s) END;
CREATE MACRO ms_interval_time(x) AS to_microseconds(CAST(
    datepart('hour', x::INTERVAL) * 3600000000 + datepart('minute', x::INTERVAL) * 60000000
    + datepart('microsecond', x::INTERVAL) AS BIGINT));
CREATE MACRO ms_greater(x, y) AS CASE WHEN y IS NULL OR x >= y THEN x ELSE y END;
CREATE MACRO ms_lesser(x, y) AS CASE WHEN y IS NULL OR x <= y THEN x ELSE y END;
CREATE MACRO ms_greater_jsonb(x, y) AS CASE WHEN y IS NULL OR doc_order(x) >= doc_order(y) THEN x ELSE y END;
CREATE MACRO ms_lesser_jsonb(x, y) AS CASE WHEN y IS NULL OR doc_order(x) <= doc_order(y) THEN x ELSE y END;
CREATE MACRO ms_interval_months(x) AS datepart('year', x::INTERVAL) * 12 + datepart('month', x::INTERVAL);
CREATE MACRO ms_interval_day(x) AS datepart('day', x::INTERVAL);
CREATE MACRO ms_interval_micros(x) AS epoch_us(ms_interval_time(x));
CREATE MACRO ms_interval_length(x) AS
    ((ms_interval_months(x) * 30 + ms_interval_day(x))::HUGEINT * 86400000000 + ms_interval_micros(x))::DECIMAL(38, 0);
CREATE MACRO ms_interval_count(n) AS CASE WHEN n BETWEEN -2147483648 AND 2147483647 THEN CAST(n AS INTEGER)
    WHEN n IS NOT NULL THEN CAST(error('!22008!interval out of range') AS INTEGER) END;
CREATE MACRO ms_interval_total(months, days, micros) AS to_months(ms_interval_count(months))
    + to_days(ms_interval_count(days)) + to_microseconds(CAST(micros AS BIGINT));
CREATE MACRO ms_interval_days(x) AS to_months(CAST(datepart('year', x) * 12 + datepart('month', x) AS INTEGER))
    + to_days(CAST(datepart('day', x) AS INTEGER));
CREATE MACRO ms_interval_is_mixed(x) AS least(ms_interval_months(x), ms_interval_day(x), ms_interval_micros(x)) < 0
    AND greatest(ms_interval_months(x), ms_interval_day(x), ms_interval_micros(x)) > 0;
CREATE MACRO ms_interval_is_time(x) AS datepart('year', x) = 0 AND datepart('month', x) = 0 AND datepart('day', x) = 0;
CREATE MACRO ms_interval_part(n, before, unit) AS CASE WHEN n = 0 THEN NULL ELSE
    CASE WHEN n > 0 AND before < 0 THEN '+' ELSE '' END || n || ' ' || unit || CASE WHEN n = 1 THEN '' ELSE 's' END END;
CREATE MACRO ms_interval_rest(y, m, d, t) AS CASE
    WHEN t = to_microseconds(0) AND (y <> 0 OR m <> 0 OR d <> 0) THEN NULL
    WHEN t > to_microseconds(0) AND CASE WHEN d <> 0 THEN d WHEN m <> 0 THEN m ELSE y END < 0
    THEN '+' || CAST(t AS VARCHAR) ELSE CAST(t AS VARCHAR) END;
CREATE MACRO ms_interval_join(y, m, d, t) AS array_to_string(list_filter([
    ms_interval_part(y, 0, 'year'), ms_interval_part(m, y, 'mon'),
    ms_interval_part(d, CASE WHEN m <> 0 THEN m ELSE y END, 'day'), ms_interval_rest(y, m, d, t)],
    lambda part: part IS NOT NULL), ' ');
CREATE MACRO ms_interval_text(x) AS CASE WHEN x IS NULL THEN NULL
    ELSE ms_interval_join(datepart('year', x), datepart('month', x), datepart('day', x), ms_interval_time(x)) END;
CREATE MACRO ms_era_text(s) AS CASE WHEN contains(s, ' (BC)') THEN replace(s, ' (BC)', '') || ' BC' ELSE s END;
CREATE MACRO ms_offset_text(minutes) AS CASE WHEN minutes < 0 THEN '-' ELSE '+' END
    || lpad(CAST(abs(minutes) // 60 AS VARCHAR), 2, '0')
    || CASE WHEN minutes % 60 = 0 THEN '' ELSE ':' || lpad(CAST(abs(minutes) % 60 AS VARCHAR), 2, '0') END;
CREATE MACRO ms_row_item(s) AS CASE WHEN s IS NULL THEN ''
    WHEN s = '' OR regexp_matches(s, '[(),"\\\\ \t\n\v\f\r]')
        THEN concat('"', replace(replace(s, '\\', '\\\\'), '"', '""'), '"')
    ELSE s END;
CREATE MACRO ms_json_lines(items) AS array_to_string(list_transform(items,
    lambda d, i: CASE WHEN i = 1 OR d = 'null' THEN d ELSE e'\\n ' || d END), ', ');
CREATE MACRO ms_array_item(s) AS CASE WHEN s IS NULL THEN 'NULL'
    WHEN s = '' OR lower(s) = 'null' OR regexp_matches(s, '[{}",\\\\\\s]')
    THEN '"' || replace(replace(s, '\\', '\\\\'), '"', '\\"') || '"' ELSE s END;
CREATE MACRO ms_power(x, y) AS CASE WHEN x < 0 AND y <> trunc(y) AND NOT isinf(y)
    THEN error('!2201F!a negative number raised to a non-integer power yields a complex result')
    WHEN isfinite(x) AND isfinite(y) AND isinf(power(x, y)) THEN error('!22003!value out of range: overflow')
    WHEN x <> 0 AND isfinite(x) AND isfinite(y) AND power(x, y) = 0 THEN error('!22003!value out of range: underflow')
    ELSE power(x, y) END;
CREATE MACRO ms_float_variance(n, s1, s2, sample) AS CASE WHEN n = 0 OR (sample AND n = 1) THEN NULL
    WHEN NOT isfinite(s1) OR NOT isfinite(s2) THEN 'NaN'::DOUBLE
    ELSE greatest(s2 - s1 / CAST(n AS DOUBLE) * s1, 0) / CAST(n - CASE WHEN sample THEN 1 ELSE 0 END AS DOUBLE) END;
CREATE MACRO ms_spread_of_one(n, x, spread) AS CASE WHEN n = 1 AND NOT isfinite(x) THEN 'NaN'::DOUBLE ELSE spread END;
CREATE MACRO ms_interval_epoch(x) AS datepart('year', x)::HUGEINT * 31557600000000
    + datepart('month', x) * 2592000000000 + datepart('day', x)::HUGEINT * 86400000000 + epoch_us(ms_interval_time(x));
CREATE MACRO ms_row_version(h) AS CAST(3 + h % 4294967293 AS BIGINT);
CREATE MACRO ms_row_hash(h) AS CAST(h >> 1 AS BIGINT);
CREATE MACRO ms_row_place(h, n) AS '(' || CAST(((h >> 31) + (n - 1) // 65535) % 4294967296 AS VARCHAR)
    || ',' || CAST((n - 1) % 65535 + 1 AS VARCHAR) || ')';
CREATE MACRO ms_hashed_chance(x, seed) AS CAST(hash(x, seed) >> 11 AS DOUBLE) / 9007199254740992;
CREATE MACRO ms_finite(x) AS CASE WHEN isinf(x) THEN error('!22003!value out of range: overflow') ELSE x END;
CREATE MACRO ms_exp(x) AS CASE WHEN exp(x) = 0 AND NOT isinf(x) THEN error('!22003!value out of range: underflow')
    WHEN isinf(x) THEN exp(x) ELSE ms_finite(exp(x)) END;
CREATE MACRO ms_oid(x) AS CASE WHEN x < 0 THEN CAST(x AS BIGINT) + 4294967296 ELSE CAST(x AS BIGINT) END;
CREATE MACRO ms_oid_wide(x) AS CASE WHEN x BETWEEN 0 AND 4294967295 THEN x
    WHEN x IS NOT NULL THEN CAST(error('!22003!OID out of range') AS BIGINT) END;
CREATE MACRO ms_ascii(n) AS CASE WHEN n = 0 THEN '' WHEN n < 128 THEN chr(n)
    WHEN n IS NOT NULL THEN error('!0A000!a "char" beyond ASCII is not supported') END;
CREATE MACRO ms_number_char(n) AS CASE WHEN n < -128 OR n > 127 THEN error('!22003!"char" out of range')
    ELSE ms_ascii(n & 255) END;
CREATE MACRO ms_char_number(s) AS CASE WHEN s IS NOT NULL THEN CAST(greatest(unicode(s), 0) AS INTEGER) END;
CREATE MACRO ms_oid_number(x) AS CAST(CASE WHEN x > 2147483647 THEN x - 4294967296 ELSE x END AS INTEGER);
CREATE MACRO ms_char(s) AS CASE WHEN regexp_full_match(s, '\\\\[0-7]{3}')
    THEN ms_ascii((CAST(s[2] AS INTEGER) * 64 + CAST(s[3] AS INTEGER) * 8 + CAST(s[4] AS INTEGER)) % 256)
    WHEN s = '' THEN s ELSE ms_ascii(unicode(s)) END;
CREATE MACRO ms_remainder(x, y) AS x % CASE WHEN y = -1 THEN 1 ELSE y END;
CREATE MACRO ms_beyond(x, n) AS (x % n + n) % n;
CREATE MACRO ms_floored(x, n) AS x - ms_beyond(x, n);
CREATE MACRO ms_date_bin(stride, source, origin) AS CASE
    WHEN stride IS NULL OR source IS NULL OR origin IS NULL THEN NULL
    WHEN isinf(source) THEN source WHEN isinf(origin) THEN error('!22008!origin out of range')
    WHEN datepart('year', stride) <> 0 OR datepart('month', stride) <> 0
    THEN error('!0A000!timestamps cannot be binned into intervals containing months or years')
    WHEN abs(datepart('day', stride)::BIGINT) > 106751991 THEN error('!22008!interval out of range')
    WHEN epoch_us(stride) <= 0 THEN error('!22008!stride must be greater than zero')
    ELSE origin + to_microseconds(ms_floored(epoch_us(source) - epoch_us(origin), epoch_us(stride))) END;
CREATE MACRO ms_hop_start(slide, source, origin, number) AS
    origin + to_microseconds(
        ms_floored(epoch_us(source) - epoch_us(origin), epoch_us(slide)) - number * epoch_us(slide)
    );
"""

#: Lists as PostgreSQL's arrays: NULL is an element like any other, except for @> and &&.
_ARRAYS: Final = """
CREATE MACRO ms_any(results) AS CASE WHEN list_contains(results, TRUE) THEN TRUE
    WHEN list_count(results) = len(results) THEN FALSE END;
CREATE MACRO ms_all(results) AS CASE WHEN list_contains(results, FALSE) THEN FALSE
    WHEN list_count(results) = len(results) THEN TRUE END;
CREATE MACRO ms_subscript(a, i) AS CASE WHEN i > 0 THEN list_extract(a, i) END;
CREATE MACRO ms_slice(a, low, high) AS CASE WHEN a IS NULL OR low IS NULL OR high IS NULL THEN NULL
    WHEN high < greatest(low, 1) THEN list_slice(a, 1, 0) ELSE list_slice(a, greatest(low, 1), high) END;
CREATE MACRO ms_array_ndims(a) AS CASE WHEN len(a) > 0 THEN 1 END;
CREATE MACRO ms_array_dims(a) AS CASE WHEN len(a) > 0 THEN '[1:' || len(a) || ']' END;
CREATE MACRO ms_array_length(a, d) AS CASE WHEN d = 1 AND len(a) > 0 THEN len(a) END;
CREATE MACRO ms_array_lower(a, d) AS CASE WHEN d = 1 AND len(a) > 0 THEN 1 END;
CREATE MACRO ms_array_cat(a, b) AS CASE WHEN a IS NULL THEN b WHEN b IS NULL THEN a ELSE list_concat(a, b) END;
CREATE MACRO ms_array_remove(a, x) AS list_filter(a, lambda e: e IS DISTINCT FROM x);
CREATE MACRO ms_array_replace(a, x, y) AS
    list_transform(a, lambda e: CASE WHEN e IS NOT DISTINCT FROM x THEN y ELSE e END);
CREATE MACRO ms_scales_without(s, a, x) AS list_filter(s, lambda e, i: a[i] IS DISTINCT FROM x);
CREATE MACRO ms_scales_with(s, a, x, y) AS
    list_transform(s, lambda e, i: CASE WHEN a[i] IS NOT DISTINCT FROM x THEN y ELSE e END);
CREATE MACRO ms_scales_alike(a, scale) AS list_transform(a, lambda e: CAST(scale AS INTEGER));
CREATE MACRO ms_scales_once(s, a) AS list_filter(s, lambda e, i: i = 1 OR a[i] IS DISTINCT FROM a[i - 1]);
CREATE MACRO ms_array_position(a, x) AS list_position(a, x);
CREATE MACRO ms_array_position_from(a, x, i) AS CASE WHEN i IS NULL
    THEN error('!22004!initial position must not be null')
    ELSE list_position(list_slice(a, greatest(i, 1), len(a)), x) + greatest(i, 1) - 1 END;
CREATE MACRO ms_array_positions(a, x) AS
    list_filter(generate_series(1, len(a)), lambda i: a[i] IS NOT DISTINCT FROM x);
CREATE MACRO ms_bucket_of(x, a) AS CASE WHEN x IS NULL OR a IS NULL THEN NULL
    WHEN len(list_filter(a, lambda e: e IS NULL)) > 0 THEN error('!22004!thresholds array must not contain NULLs')
    ELSE len(list_filter(a, lambda e: e <= x)) END;
CREATE MACRO ms_array_joined(items, d) AS
    substring(array_to_string(list_transform(items, lambda e: d || e), ''), length(d) + 1);
CREATE MACRO ms_array_to_string(items, d, shown) AS ms_array_joined(
    list_filter(list_transform(items, lambda e: coalesce(e, shown)), lambda e: e IS NOT NULL), d);
CREATE MACRO ms_string_to_array(s, d, missing) AS list_transform(CASE WHEN s = '' THEN CAST([] AS VARCHAR[])
    WHEN d IS NULL THEN string_split(s, '') WHEN d = '' THEN CASE WHEN s IS NOT NULL THEN [s] END
    ELSE string_split(s, d) END, lambda e: nullif(e, missing));
CREATE MACRO ms_trim_array(a, n) AS CASE WHEN n < 0 OR n > len(a)
    THEN error('!2202E!number of elements to trim must be between 0 and ' || len(a))
    ELSE list_slice(a, 1, len(a) - n) END;
CREATE MACRO ms_too_many(distance, step) AS distance * sign(step) > 134217727::HUGEINT * abs(step);
CREATE MACRO ms_series(a, b, step) AS CASE WHEN step = 0 THEN error('!22023!step size cannot equal zero')
    WHEN ms_too_many(CAST(b AS HUGEINT) - a, step) THEN error('!54000!a series has more than 134217727 values')
    ELSE generate_series(CAST(a AS BIGINT), CAST(CASE WHEN ms_too_many(CAST(b AS HUGEINT) - a, step) THEN a ELSE b END
        AS BIGINT), CAST(step AS BIGINT)) END;
CREATE MACRO ms_too_many_moments(a, b, step) AS isfinite(a) AND isfinite(b)
    AND ms_too_many(CAST(epoch_us(b) AS HUGEINT) - epoch_us(a), ms_interval_length(step));
CREATE MACRO ms_zoned_moments(a, b, step, zone) AS CASE WHEN NOT isfinite(a) OR NOT isfinite(b)
    THEN error('!0A000!a series without an end is not supported')
    WHEN ms_too_many_moments(a, b, step) THEN error('!54000!a series has more than 134217727 values')
    ELSE list_transform(moments_series(epoch_us(a), epoch_us(b), ms_interval_months(step), ms_interval_day(step),
        ms_interval_micros(step), zone), lambda m: make_timestamptz(m)) END;
CREATE MACRO ms_moments(a, b, step) AS CASE WHEN step = to_microseconds(0)
    THEN error('!22023!step size cannot equal zero')
    WHEN ms_interval_is_mixed(step) THEN ms_zoned_moments(a, b, step, 'UTC')
    WHEN ms_too_many_moments(a, b, step) THEN error('!54000!a series has more than 134217727 values')
    ELSE generate_series(a, CASE WHEN ms_too_many_moments(a, b, step) THEN a ELSE b END,
        CASE WHEN NOT ms_interval_is_mixed(step) THEN step END) END;
CREATE MACRO ms_numeric_series(a, b, step) AS CASE WHEN step = 0 THEN error('!22023!step size cannot equal zero')
    WHEN (b - a) * sign(step) < 0 THEN []
    WHEN ms_units(b - a) // ms_units(step) > 134217727 THEN error('!54000!a series has more than 134217727 values')
    ELSE list_transform(generate_series(0, least(134217727, CAST(ms_units(b - a) // ms_units(step) AS BIGINT))),
        lambda i: a + CAST(i AS DECIMAL(18, 0)) * step) END;
CREATE MACRO ms_array_subscripts(a, d, backwards, low) AS CASE WHEN d = 1 AND backwards
    THEN list_reverse(generate_series(low, len(a) - 1 + low))
    WHEN d = 1 AND NOT backwards THEN generate_series(low, len(a) - 1 + low) END;
CREATE MACRO ms_array_contains(a, b) AS CASE WHEN a IS NULL OR b IS NULL THEN NULL
    ELSE list_count(b) = len(b) AND list_has_all(a, b) END;
"""

#: In the order of creation, since a macro's body is bound on creation.
STATEMENTS: Final = _UNITS + _DIGITS + _QUOTIENT + _LARGE_QUOTIENT + _PRODUCT + _VARIANCE + _TEXT + _ARRAYS
