"""Quotients and averages of numerics as PostgreSQL rounds them, in Spark's decimals.

Owns: the printed form of numeric / numeric, of avg, and of the decimals that a quotient shows. PostgreSQL chooses its
scale by its operands' values (numeric.c, select_div_scale); ``executor/embedded/printing/numbers/arithmetic`` is the
model. Everything is exact: the quotient comes in pieces of four digits by integer division, whose remainders Spark
computes without loss, and is rounded once.

    magnitude(x) = 10000 * w + d   where x = d.ddd * 10000^w, 1 <= d < 10000: the operand's first digit in base 10000
    scale(a / b) = 16 - 4 * floor((magnitude(a) - magnitude(b) - 1) / 10000), at least the operands' own, at most 20

A value that is used more than once is bound to a name (``nodes.let``).
"""

from __future__ import annotations

from typing import Final

from sqlglot import exp

from catalog.values.types import MAX_PRECISION, QUOTIENT, SqlType
from executor.printing.nodes import Expr
from executor.spark.printing.nodes import let

#: Decimals of every quotient as it is stored.
_SCALE: Final = QUOTIENT[1]
_TYPE: Final = f"DECIMAL({QUOTIENT[0]},{_SCALE})"
#: Digits that one step of the division gives, and how often it is made.
_STEP: Final = 4
_STEPS: Final = _SCALE // _STEP
#: A quotient from here on does not fit 38 digits with 20 decimals, and one below it fits a bigint.
_TOO_LARGE: Final = "5E18D"


def quotient(left: str, right: str, a: SqlType, b: SqlType) -> Expr:
    """left / right, two printed decimals of these types (numeric), rounded to PostgreSQL's scale."""
    places = _places(str(max(_shown_scale(a), _shown_scale(b))), a, b)
    rounded = let({"n": "v.n", "q": _rounded()}, "IF(v.n, -v.q, v.q)")
    divided = let({"n": "v.n", "d": _divided(), "p": places}, rounded)
    positive = let({"n": "(v.a < 0) <> (v.b < 0)", "a": "ABS(v.a)", "b": "ABS(v.b)"}, divided)
    signed = let({"a": left, "b": right}, positive)
    return exp.Var(this=f"CAST({signed} AS {_TYPE})")


def decimals(left: str, right: str, least: str, a: SqlType, b: SqlType) -> Expr:
    """How many decimals the quotient shows, at least as many as ``least`` says; NULL of NULL and where right is 0."""
    places = f"IF(v.a IS NULL OR v.b IS NULL OR v.b = 0, CAST(NULL AS INT), {_places('v.least', a, b)})"
    sides = {"a": f"ABS({left})", "b": f"ABS({right})", "least": f"COALESCE({least}, 0)"}
    return exp.Var(this=let(sides, places))


def average(total: str, count: str, argument: SqlType) -> Expr:
    """avg of integers or numerics from its printed sum and count; NULL over no rows."""
    scale = argument.scale if argument.name == "numeric" else 0
    counted = f"CAST(NULLIF({count}, 0L) AS DECIMAL(19,0))"
    return quotient(total, counted, SqlType("numeric", (MAX_PRECISION, scale)), SqlType("numeric", (19, 0)))


def _places(least: str, a: SqlType, b: SqlType) -> str:
    """The scale of v.a / v.b, neither negative."""
    lead = f"({_magnitude('v.a', a.scale)} - {_magnitude('v.b', b.scale)} - 1)"
    return f"LEAST({_SCALE}, GREATEST({least}, 16 - 4 * CAST(FLOOR({lead} / 10000D) AS INT)))"


def _shown_scale(kind: SqlType) -> int:
    """PostgreSQL's display scale where the type tells it."""
    return 0 if kind.is_loose else min(kind.scale, _SCALE)


def _magnitude(value: str, scale: int) -> str:
    """That of a value that is not negative; 1 for zero, whose quotient is zero at any scale."""
    branches = []
    for weight in range((MAX_PRECISION - scale - 1) // 4, -((scale + 3) // 4) - 1, -1):
        unit = _power(4 * weight)
        first = f"{10000 * weight}L + {value} DIV {unit}"
        least = unit if -4 * weight <= scale else _power(-scale)
        branches.append(f"WHEN {value} >= {least} THEN {first}")
    return f"CASE {' '.join(branches)} ELSE 1L END"


def _power(exponent: int) -> str:
    """10 to some power as a decimal of just its digits."""
    if exponent >= 0:
        return f"CAST('1{'0' * exponent}' AS DECIMAL({exponent + 1},0))"
    return f"CAST('0.{'1'.zfill(-exponent)}' AS DECIMAL({-exponent},{-exponent}))"


def _divided() -> str:
    """v.a / v.b, both positive: q with 20 decimals, cut off, and the remainder r in units of its last one."""
    whole = (
        f"IF(CAST(v.a AS DOUBLE) / NULLIF(CAST(v.b AS DOUBLE), 0D) >= {_TOO_LARGE},"
        " CAST(RAISE_ERROR('22003:numeric field overflow') AS BIGINT), v.a DIV v.b)"
    )
    step = f"NAMED_STRUCT('q', CAST({whole} AS {_TYPE}), 'r', v.a % v.b, 'b', v.b)"
    for index in range(1, _STEPS + 1):
        digits = "CAST((v.s.r * 10000) DIV v.s.b AS DECIMAL(4,0))"
        total = f"CAST(v.s.q + {digits} * {_power(-_STEP * index)} AS {_TYPE})"
        step = let({"s": step}, f"NAMED_STRUCT('q', {total}, 'r', (v.s.r * 10000) % v.s.b, 'b', v.s.b)")
    return step


def _rounded() -> str:
    """The quotient v.d with v.p decimals, half away from zero."""
    last = f"v.d.q + IF((v.d.r * 2) DIV v.d.b >= 1, {_power(-_SCALE)}, CAST('0' AS DECIMAL({_SCALE},{_SCALE})))"
    place = f"LEAST(v.p, {_SCALE - 1})"
    added = f"v.d.q + {_table(place, '5', 1)}"
    cut = let({"x": added, "t": _table(place, "1", 0)}, "v.x - v.x % v.t")
    return f"CAST(IF(v.p = {_SCALE}, {last}, {cut}) AS {_TYPE})"


def _table(place: str, digit: str, shift: int) -> str:
    """digit * 10^-(place + shift), for places below the last one."""
    items = (f"CAST('{digit}E-{index + shift}' AS DECIMAL({_SCALE + 1},{_SCALE}))" for index in range(_SCALE))
    return f"ARRAY({', '.join(items)})[{place}]"
