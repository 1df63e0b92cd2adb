"""Spreads of doubles in Spark SQL: the states of variances and of statistics of pairs, in views and sliced queries.

Owns: ``SPREADS``, how a state is made of Spark's aggregates and how two states merge (float8_combine and
float8_regr_combine in PostgreSQL's float.c). ``executor/embedded/functions/numbers/spread_macros.py`` is the embedded
engine's counterpart.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from sqlglot import exp

from executor.printing.nodes import Expr
from executor.spark.printing.aggregates.sums import Around
from executor.spark.printing.nodes import cast

Spread = Callable[[Any, list[Expr], Around], Expr]


def _of_values(dialect: Any, arguments: list[Expr], around: Around) -> Expr:
    """[N, Sx, Sxx]."""
    value = cast(arguments[0], "DOUBLE")
    n, total, spread = (_part(dialect, name, [value], around) for name in ("COUNT", "SUM", "VAR_POP"))
    return exp.Var(this=f"ARRAY(CAST({n} AS DOUBLE), COALESCE({total}, 0D), COALESCE({spread} * {n}, 0D))")


def _of_pairs(dialect: Any, arguments: list[Expr], around: Around) -> Expr:
    """[N, Sx, Sxx, Sy, Syy, Sxy] of (Y, X)."""
    n, x, xx, y, yy, xy = (
        _part(dialect, f"REGR_{name}", arguments, around) for name in ("COUNT", "AVGX", "SXX", "AVGY", "SYY", "SXY")
    )
    parts = ", ".join(f"COALESCE({part}, 0D)" for part in (f"{x} * {n}", xx, f"{y} * {n}", yy, xy))
    return exp.Var(this=f"ARRAY(CAST({n} AS DOUBLE), {parts})")


def _part(dialect: Any, name: str, arguments: list[Expr], around: Around) -> str:
    text: str = dialect.generate(around.call(name, *(item.copy() for item in arguments)))
    return text


def _added(place: int) -> str:
    return f"v[{place}] + w[{place}]"


def _between(left: int, right: int) -> str:
    """What two states' means add to a sum of products of distances, of the sums at these places."""
    distances = " * ".join(f"(v[{place}] / v[0] - w[{place}] / w[0])" for place in (left, right))
    return f"v[0] * w[0] * {distances} / (v[0] + w[0])"


def _merged(*items: str) -> Spread:
    """A fold over a group's states; one without a value does not count."""
    none = f"ARRAY({', '.join(['0D'] * len(items))})"
    step = f"(v, w) -> CASE WHEN w[0] = 0D THEN v WHEN v[0] = 0D THEN w ELSE ARRAY({', '.join(items)}) END"

    def build(dialect: Any, arguments: list[Expr], around: Around) -> Expr:
        states = _part(dialect, "COLLECT_LIST", arguments, around)
        return exp.Var(this=f"AGGREGATE({states}, {none}, {step})")

    return build


_VALUES: Final = (_added(0), _added(1), f"{_added(2)} + {_between(1, 1)}")
_PAIRS: Final = (_added(3), f"{_added(4)} + {_between(3, 3)}", f"{_added(5)} + {_between(1, 3)}")

SPREADS: Final[Mapping[str, Spread]] = {
    "spread": _of_values,
    "paired_spread": _of_pairs,
    "merged_spread": _merged(*_VALUES),
    "merged_paired_spread": _merged(*_VALUES, *_PAIRS),
}
