"""DuckDB macros of floating point numbers: PostgreSQL's domains, constants and range errors.

Owns: their SQL text. ``numeric_macros`` explains how a macro evaluates its arguments once and how it raises errors; its
macros must be created before these.
"""

from __future__ import annotations

from typing import Final

from executor.embedded.functions.numbers.numeric_macros import let
from executor.printing.floats import quotient

#: float8: domain errors, and PostgreSQL's constants.
_FLOATS: Final = """
CREATE MACRO ms_bounded(x) AS CASE WHEN isinf(x) THEN error('!22003!input is out of range') ELSE x END;
CREATE MACRO ms_within_one(x) AS CASE WHEN abs(x) > 1 AND NOT isnan(x)
    THEN error('!22003!input is out of range') ELSE x END;
CREATE MACRO ms_sin(x) AS sin(ms_bounded(x));
CREATE MACRO ms_cos(x) AS cos(ms_bounded(x));
CREATE MACRO ms_tan(x) AS tan(ms_bounded(x));
CREATE MACRO ms_cot(x) AS CASE WHEN x = 0 THEN 'Infinity'::DOUBLE ELSE 1::DOUBLE / tan(ms_bounded(x)) END;
CREATE MACRO ms_asin(x) AS asin(ms_within_one(x));
CREATE MACRO ms_acos(x) AS acos(ms_within_one(x));
CREATE MACRO ms_atanh(x) AS atanh(ms_within_one(x));
CREATE MACRO ms_acosh(x) AS acosh(CASE WHEN x < 1 THEN error('!22003!input is out of range') ELSE x END);
CREATE MACRO ms_degrees(x) AS CASE WHEN isinf(x) THEN x ELSE ms_finite(x / 0.0174532925199432957692::DOUBLE) END;
CREATE MACRO ms_radians(x) AS x * 0.0174532925199432957692::DOUBLE;
CREATE MACRO ms_cbrt_near(x, y) AS CASE WHEN x = 0 OR isinf(x) OR isnan(x) THEN x
    ELSE y - (y * y * y - x) / (3 * y * y) END;
CREATE MACRO ms_cbrt(x) AS ms_cbrt_near(x, cbrt(x));
CREATE MACRO ms_bucket_float(x, low, high, n) AS CASE
    WHEN x IS NULL OR low IS NULL OR high IS NULL OR n IS NULL THEN NULL
    WHEN n <= 0 THEN error('!2201G!count must be greater than zero')
    WHEN isnan(x) OR isnan(low) OR isnan(high)
    THEN error('!2201G!operand, lower bound, and upper bound cannot be NaN')
    WHEN isinf(low) OR isinf(high) THEN error('!2201G!lower and upper bounds must be finite')
    WHEN low = high THEN error('!2201G!lower bound cannot equal upper bound')
    WHEN low < high AND x < low OR low > high AND x > low THEN 0
    WHEN low < high AND x >= high OR low > high AND x <= high THEN n::BIGINT + 1
    WHEN n * ((x - low) / (high - low)) >= n THEN n ELSE floor(n * ((x - low) / (high - low)))::BIGINT + 1 END;
"""

_OVERFLOW: Final = "error('!22003!value out of range: overflow')"
_UNDERFLOW: Final = "error('!22003!value out of range: underflow')"


def _checked(name: str, result: str, overflows: str, underflows: str = "FALSE") -> str:
    """An operation on x and y; its result is infinite or zero only for operands that justify that (float.h)."""
    return (
        f"CREATE MACRO ms_float_{name}(x, y) AS CASE WHEN isinf({result}) AND {overflows} THEN {_OVERFLOW}"
        f" WHEN {result} = 0 AND {underflows} THEN {_UNDERFLOW} ELSE {result} END;\n"
    )


def _read(name: str, kind: str, written: str) -> str:
    """A text as a float."""
    body = let(
        f"s: s, x: CAST(s AS {kind})",
        "CASE WHEN isinf(v.x) AND NOT contains(lower(v.s), 'inf') OR v.x = 0 AND regexp_matches(v.s, '^[^eE]*[1-9]')"
        f" THEN error('!22003!\"' || v.s || '\" is out of range for type {written}') ELSE v.x END",
    )
    return f"CREATE MACRO {name}(s) AS {body};\n"


#: Operations that raise, the cast to real, and an aggregate's result checked by its largest argument.
_CHECKED: Final = (
    _checked("add", "x + y", "NOT isinf(x) AND NOT isinf(y)")
    + _checked("sub", "x - y", "NOT isinf(x) AND NOT isinf(y)")
    + _checked("mul", "x * y", "NOT isinf(x) AND NOT isinf(y)", "x <> 0 AND y <> 0")
    + _checked("div", quotient("x", "y"), "NOT isinf(x)", "x <> 0 AND NOT isinf(y)")
    + _read("ms_read_float4", "FLOAT", "real")
    + _read("ms_read_float8", "DOUBLE", "double precision")
    + f"""
CREATE MACRO ms_float_real(x) AS CASE WHEN abs(x) < 1e-44::DOUBLE AND x <> 0 AND x::FLOAT = 0 THEN {_UNDERFLOW}
    ELSE x::FLOAT END;
CREATE MACRO ms_float_finite(x, greatest) AS CASE WHEN NOT isfinite(x) AND isfinite(greatest) THEN {_OVERFLOW}
    ELSE x END;
"""
)

#: Doubles as integers: counted in units where their size is at least ``least`` and below ``bound``.
_UNITS: Final = """
CREATE MACRO ms_float_units(x, least, bound, units) AS CASE WHEN abs(x) >= least AND abs(x) < bound
    THEN CAST(CAST(x * units AS HUGEINT) AS DECIMAL(38, 0)) WHEN x IS NOT NULL THEN 0 END;
CREATE MACRO ms_float_is_outside(x, least, bound) AS x <> 0 AND NOT (abs(x) >= least AND abs(x) < bound);
CREATE MACRO ms_float_of_units(a, b, c, unit_a, unit_b, unit_c) AS
    CAST(a AS DOUBLE) * unit_a + CAST(b AS DOUBLE) * unit_b + CAST(c AS DOUBLE) * unit_c;
"""

STATEMENTS: Final = _FLOATS + _CHECKED + _UNITS
