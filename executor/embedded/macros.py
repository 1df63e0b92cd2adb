"""DuckDB macros that compute what PostgreSQL's functions do where DuckDB's own differ.

Owns: their SQL text; every connection creates them as temporary macros (``engine.connect``). Numbers are exact: decimals
become hugeint units (``ms_units``), are computed with, and come back (``ms_decimal``); what leaves 38 digits raises.
``error()`` messages start with ``!SQLSTATE!``, which ``errors.py`` reads.

``ms_let`` style: a macro's argument is pasted wherever it is named, so whatever is used more than once is bound by a lambda
over a list of one element.
"""

from __future__ import annotations

from typing import Final


def _let(bindings: str, body: str) -> str:
    """body with v.<name> bound by 'name: expression, ...', each evaluated once."""
    return f"list_transform([{{{bindings}}}], lambda v: {body})[1]"


#: PostgreSQL's select_div_scale (numeric.c) over hugeint units of one scale: digits after the point of a / b.
#: A weight is the exponent in base 10000, where the first digit lies.
_DIGITS: Final = """
CREATE OR REPLACE TEMP MACRO ms_weight(units, scale) AS CAST(floor((length(CAST(units AS VARCHAR)) - 1 - scale) / 4.0) AS INTEGER);
CREATE OR REPLACE TEMP MACRO ms_lead(units, length) AS CAST(rpad(left(CAST(units AS VARCHAR), length), length, '0') AS INTEGER);
CREATE OR REPLACE TEMP MACRO ms_first(units, scale) AS
    ms_lead(units, CAST(length(CAST(units AS VARCHAR)) - scale - 4 * ms_weight(units, scale) AS INTEGER));
CREATE OR REPLACE TEMP MACRO ms_div_scale(a, b, scale, least_scale) AS least(20, greatest(least_scale, 0, 16 - 4 * (
    ms_weight(a, scale) - ms_weight(b, scale) - CAST(ms_first(a, scale) <= ms_first(b, scale) AS INTEGER))));
"""


def _long_division() -> str:
    """a / b with 20 decimals, as units of 10^-20 (q) and remainder (r); five steps of four digits keep within hugeint."""
    body = "{'q': v.q, 'r': v.r}"
    for _ in range(5):
        body = _let("q: v.q * 10000 + (v.r * 10000) // v.b, r: (v.r * 10000) % v.b, b: v.b", body)
    return _let("q: a // b, r: a % b, b: b", body)


_QUOTIENT: Final = f"""
CREATE OR REPLACE TEMP MACRO ms_long_division(a, b) AS CASE WHEN b < 1000000000000000000
    THEN {{'q': (a // b) * 100000000000000000000::HUGEINT + ((a % b) * 100000000000000000000::HUGEINT) // b,
           'r': ((a % b) * 100000000000000000000::HUGEINT) % b}}
    ELSE {_long_division()} END;
CREATE OR REPLACE TEMP MACRO ms_round_units(q, r, b, digits) AS CASE WHEN digits >= 20
    THEN q + CASE WHEN r >= b - r THEN 1 ELSE 0 END
    ELSE ((q + ms_ten(20 - digits) // 2) // ms_ten(20 - digits)) * ms_ten(20 - digits) END;
CREATE OR REPLACE TEMP MACRO ms_divide_positive(a, b, digits) AS
    {_let("d: ms_long_division(a, b), n: digits, b: b", "ms_round_units(v.d.q, v.d.r, v.b, v.n)")};
CREATE OR REPLACE TEMP MACRO ms_divide(a, b, scale, least_scale) AS {
    _let(
        "a: abs(a), b: abs(b), s: CASE WHEN (a < 0) <> (b < 0) THEN -1 ELSE 1 END",
        "CASE WHEN v.b = 0 THEN error('!22012!division by zero') WHEN v.a = 0 THEN CAST(0 AS DECIMAL(38, 20))"
        " ELSE ms_decimal20(v.s * ms_divide_positive(v.a, v.b, ms_div_scale(v.a, v.b, scale, least_scale))) END",
    )
};
"""

_UNITS: Final = """
CREATE OR REPLACE TEMP MACRO ms_ten(n) AS CAST(power(10::DOUBLE, n) AS HUGEINT);
CREATE OR REPLACE TEMP MACRO ms_units(value) AS CAST(replace(CAST(value AS VARCHAR), '.', '') AS HUGEINT);
CREATE OR REPLACE TEMP MACRO ms_decimal20(units) AS CAST(units // 100000000000000000000::HUGEINT AS DECIMAL(38, 20))
    + CAST(units % 100000000000000000000::HUGEINT AS DECIMAL(20, 0)) * CAST('0.00000000000000000001' AS DECIMAL(20, 20));
CREATE OR REPLACE TEMP MACRO ms_decimal18(units) AS CAST(units // 1000000000000000000::HUGEINT AS DECIMAL(38, 18))
    + CAST(units % 1000000000000000000::HUGEINT AS DECIMAL(18, 0)) * CAST('0.000000000000000001' AS DECIMAL(18, 18));
"""

#: a * b rounded half away from zero to 18 decimals, for factors whose scales together exceed that (units of 10^-sa and
#: 10^-sb). Integral and fractional parts multiply apart, and a's fraction is split once more, so that no partial
#: product leaves 38 digits before the result does. What is cut off is gathered in units of 10^-(sa + sb).
_PRODUCT: Final = f"""
CREATE OR REPLACE TEMP MACRO ms_product_fraction(a, b, cut) AS {
    _let(
        "x: (a // 10000000000) * b, y: (a % 10000000000) * b, c: cut",
        "CASE WHEN v.c < 10 THEN {'q': (v.x * 10000000000 + v.y) // ms_ten(v.c), 'r': (v.x * 10000000000 + v.y) % ms_ten(v.c)}"
        " ELSE {'q': v.x // ms_ten(v.c - 10) + (v.x % ms_ten(v.c - 10) * 10000000000 + v.y) // ms_ten(v.c),"
        " 'r': (v.x % ms_ten(v.c - 10) * 10000000000 + v.y) % ms_ten(v.c)} END",
    )
};
CREATE OR REPLACE TEMP MACRO ms_product_positive(a, b, sa, sb) AS {
    _let(
        "ah: a // ms_ten(sa), bh: b // ms_ten(sb), ab: (a // ms_ten(sa)) * (b % ms_ten(sb)),"
        " ba: (b // ms_ten(sb)) * (a % ms_ten(sa)), f: ms_product_fraction(a % ms_ten(sa), b % ms_ten(sb), sa + sb - 18)",
        "v.ah * v.bh * ms_ten(18) + v.ab // ms_ten(greatest(sb - 18, 0)) * ms_ten(greatest(18 - sb, 0))"
        " + v.ba // ms_ten(greatest(sa - 18, 0)) * ms_ten(greatest(18 - sa, 0)) + v.f.q"
        " + (v.ab % ms_ten(greatest(sb - 18, 0)) * ms_ten(sa) + v.ba % ms_ten(greatest(sa - 18, 0)) * ms_ten(sb) + v.f.r"
        " + ms_ten(sa + sb - 18) // 2) // ms_ten(sa + sb - 18)",
    )
};
CREATE OR REPLACE TEMP MACRO ms_product18(a, b, sa, sb) AS {
    _let(
        "a: abs(a), b: abs(b), s: CASE WHEN (a < 0) <> (b < 0) THEN -1 ELSE 1 END",
        "ms_decimal18(v.s * ms_product_positive(v.a, v.b, sa, sb))",
    )
};
"""

#: PostgreSQL's numeric_stddev_internal: (n * sum2 - sum * sum) / (n * (n - 1) or n * n), units of 10^-scale (sum) and
#: 10^-2*scale (sum2). The root is a double's, corrected by the exact remainder of its square.
_VARIANCE: Final = f"""
CREATE OR REPLACE TEMP MACRO ms_variance(n, s1, s2, scale, sample) AS CASE
    WHEN n = 0 OR (sample AND n = 1) THEN CAST(NULL AS DECIMAL(38, 20))
    ELSE {
    _let(
        "x: CAST(n AS HUGEINT) * s2 - s1 * s1, d: CAST(n AS HUGEINT) * (n - CASE WHEN sample THEN 1 ELSE 0 END)",
        "CASE WHEN v.x <= 0 THEN CAST(0 AS DECIMAL(38, 20)) ELSE ms_divide(v.x, v.d * ms_ten(2 * scale), 2 * scale, 2 * scale) END",
    )
} END;
CREATE OR REPLACE TEMP MACRO ms_root_digits(value) AS least(20, greatest(0, 16 - 4 * CAST(floor((length(CAST(
    CAST(trunc(value) AS HUGEINT) AS VARCHAR)) - 1) / 4.0) AS INTEGER)));
CREATE OR REPLACE TEMP MACRO ms_cut(value, digits) AS {
    _let(
        "u: abs(ms_units(value)), s: CASE WHEN value < 0 THEN -1 ELSE 1 END, t: ms_ten(20 - digits)",
        "ms_decimal20(v.s * ((v.u + v.t // 2) // v.t * v.t))",
    )
};
CREATE OR REPLACE TEMP MACRO ms_root(value, digits) AS {
    _let(
        "x: value, y: CAST(sqrt(CAST(value AS DOUBLE)) AS DECIMAL(20, 10)), n: digits",
        "CASE WHEN v.y = 0 THEN CAST(sqrt(CAST(v.x AS DOUBLE)) AS DECIMAL(38, 20)) ELSE "
        + _let(
            "y: v.y, n: v.n, r: CAST(CAST(v.x AS DECIMAL(38, 20)) - CAST(v.y * v.y AS DECIMAL(38, 20)) AS DOUBLE)",
            "ms_cut(CAST(v.y AS DECIMAL(38, 20)) + CAST(v.r / (2 * CAST(v.y AS DOUBLE))"
            " - v.r * v.r / (8 * CAST(v.y AS DOUBLE) * CAST(v.y AS DOUBLE) * CAST(v.y AS DOUBLE)) AS DECIMAL(38, 20)), v.n)",
        )
        + " END",
    )
};
CREATE OR REPLACE TEMP MACRO ms_deviation(n, s1, s2, scale, sample) AS
    {_let("d: ms_variance(n, s1, s2, scale, sample), c: scale",
          "CASE WHEN v.d = 0 THEN v.d ELSE ms_root(v.d, greatest(2 * v.c, ms_root_digits(v.d))) END")};
"""
