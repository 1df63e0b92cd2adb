"""Exact sums of bigints and of numerics that Spark adds as bigints.

Owns: the printed form of these sums, and of those of intervals. A sum of bigints, or of the digits of numerics, may not
fit a bigint, and Spark's decimals of more than 18 digits are objects that every row makes anew. So the upper and lower
32 bits are added apart, each in a bigint, which holds 2^31 rows, and become one decimal per group.
"""

from __future__ import annotations

from typing import Any, Final

from msgspec import Struct
from sqlglot import exp

from catalog.values.types import SqlType
from executor.printing.nodes import Expr, function, operand
from executor.spark.unscaled import UNSCALED

#: Decimals of up to so many digits are bigints for Spark; it adds those of 10 less as bigints itself.
_COMPACT: Final = 18
_ADDED_BY_SPARK: Final = _COMPACT - 10
_UPPER_BITS: Final = 2**26
_LOWER_SUM: Final = 2**58


class Around(Struct, frozen=True):
    """What surrounds an aggregate's arguments: FILTER, and OVER for one over a window."""

    where: Expr | None = None
    over: Expr | None = None

    def call(self, name: str, *arguments: Expr) -> Expr:
        """name(arguments) FILTER (WHERE where) OVER (over)."""
        found = function(name, *arguments)
        if self.where is not None:
            found = exp.Filter(this=found, expression=exp.Where(this=self.where.copy()))
        if self.over is None:
            return found
        over = self.over.copy()
        over.set("this", found)
        return over


def sum_of_bigints(value: Expr, around: Around) -> Expr:
    """The sum as a decimal without a scale."""
    return _whole(*_halves(value, around))


def has_halves(kind: SqlType) -> bool:
    """Whether ``sum_of_numerics`` is the quick way."""
    return kind.name == "numeric" and _ADDED_BY_SPARK < kind.precision <= _COMPACT


def sum_of_numerics(value: Expr, scale: int, around: Around) -> Expr:
    """The sum as a decimal of the values' scale; a small sum needs no large decimal on its way."""
    high, low = _halves(function(UNSCALED, value), around)
    small = exp.And(
        this=exp.Between(this=high.copy(), low=_bigint(-_UPPER_BITS), high=_bigint(_UPPER_BITS)),
        expression=exp.LT(this=low.copy(), expression=_bigint(_LOWER_SUM)),
    )
    shifted = exp.Mul(this=high.copy(), expression=_bigint(2**32))
    added = _decimal(exp.Add(this=shifted, expression=low.copy()), _COMPACT)
    return exp.Case(
        ifs=[exp.If(this=small, true=_scaled(added, scale))],
        default=_scaled(exp.Paren(this=_whole(high, low)), scale),
    )


def _halves(value: Expr, around: Around) -> tuple[Expr, Expr]:
    high = function("SHIFTRIGHT", value.copy(), exp.Literal.number(32))
    low = exp.BitwiseAnd(this=operand(value), expression=_bigint(2**32 - 1))
    return around.call("SUM", high), around.call("SUM", low)


def _whole(high: Expr, low: Expr) -> Expr:
    shifted = exp.Mul(this=_decimal(high, 20), expression=_bigint(2**32))
    return exp.Add(this=shifted, expression=_decimal(low, 20))


def _scaled(digits: Expr, scale: int) -> Expr:
    """Digits with the point put before the last ``scale`` of them."""
    if scale == 0:
        return digits
    unit = exp.Var(this=f"CAST('{'0.' + '1'.zfill(scale)}' AS DECIMAL({scale},{scale}))")
    return exp.Mul(this=digits, expression=unit)


def _decimal(value: Expr, precision: int) -> Expr:
    return exp.Cast(this=value, to=exp.Var(this=f"DECIMAL({precision},0)"))


def _bigint(value: int) -> Expr:
    return exp.Var(this=f"{value}L")


def sum_of_intervals(dialect: Any, value: Expr, around: Around) -> Expr:
    """The sum of intervals as they are carried, part by part; NULL over no rows."""
    text = dialect.generate(value)
    months, days, rest = (
        dialect.generate(around.call("SUM", exp.Var(this=f"({text}).{part}")))
        for part in ("months", "days", "microseconds")
    )
    parts = f"'months', CAST({months} AS INT), 'days', CAST({days} AS INT), 'microseconds', {rest}"
    return exp.Var(this=f"IF({months} IS NULL, NULL, NAMED_STRUCT({parts}))")
