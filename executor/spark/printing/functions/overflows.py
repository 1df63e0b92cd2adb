"""Doubles in Spark that raise 22003 where PostgreSQL's do: the engine's part of ``executor.printing.floats``.

Owns: ``CHECKER``, ``FINITE``, the errors, and ``is_long``. A chain of operations is bound to names inside names, which
Spark's planner takes apart again and again, so long chains are not printed.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from executor.printing import floats
from executor.spark.printing.nodes import let
from planner.algebra.nodes import Call

#: Operations of one expression that Spark plans in milliseconds.
_MOST: Final = 24
INFINITE: Final = "DOUBLE('Infinity')"


def is_long(nodes: Iterable[object]) -> bool:
    """Whether an expression, given by its nodes, has more operations on doubles than Spark is given to plan."""
    kinds = ("float4", "float8")
    return (
        sum(isinstance(item, Call) and item.function in floats.SYMBOLS and item.type.name in kinds for item in nodes)
        > _MOST
    )


def raised(state: str, message: str) -> str:
    """An error in place of a double."""
    return f"CAST(RAISE_ERROR('{state}:{message}') AS DOUBLE)"


OVERFLOW: Final = raised("22003", "value out of range: overflow")
UNDERFLOW: Final = raised("22003", "value out of range: underflow")


def _is_finite(value: str) -> str:
    """NaN is above every number."""
    return f"ABS({value}) < {INFINITE}"


#: An aggregate's result, given the greatest size of what it was made of.
FINITE: Final = f"CASE WHEN NOT {_is_finite('{0}')} AND {_is_finite('{1}')} THEN {OVERFLOW} ELSE {{0}} END"

#: When an infinite result is an overflow, and a result of nothing an underflow.
_CONDITIONS: Final = {
    "add": (f"ABS({{0}}) <> {INFINITE} AND ABS({{1}}) <> {INFINITE}", "FALSE"),
    "sub": (f"ABS({{0}}) <> {INFINITE} AND ABS({{1}}) <> {INFINITE}", "FALSE"),
    "mul": (f"ABS({{0}}) <> {INFINITE} AND ABS({{1}}) <> {INFINITE}", "{0} <> 0D AND {1} <> 0D"),
    "div": (f"ABS({{0}}) <> {INFINITE}", f"{{0}} <> 0D AND ABS({{1}}) <> {INFINITE}"),
}


class _Checker(floats.Checker):
    """Spark's names."""

    def double(self, digits: str, kind: str) -> str:
        """A literal of a double; no view has arithmetic of reals."""
        return f"{digits}D"

    def exact(self, name: str, left: str, right: str, are_short: bool) -> str:
        """One operation, and what it made."""
        names = (left, right) if are_short else ("v.a", "v.b")
        result = floats.quotient(*names) if name == "div" else f"({names[0]} {floats.SYMBOLS[name]} {names[1]})"
        overflows, underflows = (item.format(*names) for item in _CONDITIONS[name])
        body = (
            f"CASE WHEN ABS({result}) = {INFINITE} AND {overflows} THEN {OVERFLOW}"
            f" WHEN {result} = 0D AND {underflows} THEN {UNDERFLOW} ELSE {result} END"
        )
        return body if are_short else let({"a": left, "b": right}, body)

    def bound(self, values: dict[str, str], body: str) -> str:
        """By a lambda."""
        return let(values, body)

    def variable(self, name: str) -> str:
        """A field of what the lambda is given."""
        return f"v.{name}"


CHECKER: Final = _Checker()
