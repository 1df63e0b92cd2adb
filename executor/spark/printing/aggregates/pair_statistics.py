"""Aggregates of floating point numbers in Spark SQL, for queries: two engines may differ in the last digits.

Owns: ``PAIRS``, statistics of pairs (corr, covar_*, regr_*), made of Spark's sums of squares around the mean as
PostgreSQL's final functions make them (float.c), and ``of_reals``, which adds reals as doubles.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from sqlglot import exp

from executor.printing.nodes import Expr
from executor.spark.printing.aggregates.sums import Around
from executor.spark.printing.nodes import cast, let
from planner.algebra.nodes import AggregateCall

Statistic = Callable[[Any, list[Expr], Around], Expr]

#: The greatest real, and what rounds to it.
_GREATEST: Final = "3.4028235677973366E38D"


def _plain(name: str) -> Statistic:
    def build(dialect: Any, arguments: list[Expr], around: Around) -> Expr:
        return around.call(name, *arguments)

    return build


def _made(body: str, **parts: str) -> Statistic:
    """``body`` over v.<name>, which are calls of these functions over the same pairs."""

    def build(dialect: Any, arguments: list[Expr], around: Around) -> Expr:
        found = {
            name: dialect.generate(around.call(function, *(item.copy() for item in arguments)))
            for name, function in parts.items()
        }
        return exp.Var(this=let(found, body))

    return build


_SUMS: Final = {"x": "REGR_SXX", "y": "REGR_SYY", "xy": "REGR_SXY"}
_MEANS: Final = {"ax": "REGR_AVGX", "ay": "REGR_AVGY"}

PAIRS: Final[Mapping[str, Statistic]] = {
    **{name: _plain(name.upper()) for name in ("covar_pop", "covar_samp", "regr_avgx", "regr_avgy")},
    **{name: _plain(name.upper()) for name in ("regr_sxx", "regr_sxy", "regr_syy")},
    "corr": _made("IF(v.x = 0D OR v.y = 0D, NULL, v.xy / SQRT(v.x * v.y))", **_SUMS),
    "regr_r2": _made("CASE WHEN v.x = 0D THEN NULL WHEN v.y = 0D THEN 1D ELSE v.xy * v.xy / (v.x * v.y) END", **_SUMS),
    "regr_slope": _made("IF(v.x <> 0D, v.xy / v.x, NULL)", **_SUMS),
    "regr_intercept": _made("IF(v.x <> 0D, v.ay - v.ax * v.xy / v.x, NULL)", **_SUMS, **_MEANS),
}


def of_reals(dialect: Any, node: AggregateCall, value: Expr, around: Around) -> Expr:
    """sum or avg; a sum that is no real is an error."""
    arguments = [cast(value, "DOUBLE")]
    if node.distinct:
        arguments = [exp.Distinct(expressions=arguments)]
    found = around.call(node.function.upper(), *arguments)
    if node.type.name != "float4":
        return found
    error = "CAST(RAISE_ERROR('22003:value out of range: overflow') AS FLOAT)"
    wrong = f"ABS(v.s) >= {_GREATEST} AND ABS(v.s) < DOUBLE('Infinity')"
    return exp.Var(this=let({"s": dialect.generate(found)}, f"IF({wrong}, {error}, CAST(v.s AS FLOAT))"))
