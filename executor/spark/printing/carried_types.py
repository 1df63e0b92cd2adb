"""Types that Spark lacks, as a query's SQL has them (``executor.carriers``): names, constants, the order of intervals.

Owns: ``spark_name``, ``constant`` and ``printed_length``. A time is its number of microseconds, so that it compares,
groups and orders as a number, and a reference to a catalog object is its oid. An interval is a struct, which does not
compare as PostgreSQL's: a month counts as 30 days and a day as 24 hours, so comparisons of intervals, or of arrays of
them, compare lengths (``planner/lowering/intervals``), and what cannot is refused (``holds_interval``). Rows and arrays
of several dimensions are structs, too, which group as they do but order NULLs first (``is_struct``).
"""

from __future__ import annotations

import datetime as dt
from typing import Any, Final

from sqlglot import exp

from catalog.values.errors import SqlError, unsupported
from catalog.values.nested_types import holds
from catalog.values.types import TYPES, SqlType
from executor.printing.nodes import Expr
from executor.spark.printing.dialect import spark_type
from executor.spark.printing.nodes import once
from planner.algebra.nodes import Call, Literal

_CARRIERS: Final = {
    "interval": "STRUCT<months: INT, days: INT, microseconds: BIGINT>",
    "time": "BIGINT",
    **dict.fromkeys((name for name in TYPES if name.startswith("reg")), "BIGINT"),
}
_IN_MICROSECONDS: Final = (
    "((CAST({0}.months AS BIGINT) * 30 + {0}.days) * CAST(86400000000 AS DECIMAL(12,0)) + {0}.microseconds)"
)


def spark_name(kind: SqlType) -> str:
    """The name of a type or of its carrier. Raises 0A000 for a type that a query on Spark does not hold."""
    if kind.row is not None and kind.row.fields:
        names = (f"f{place}: {spark_name(field)}" for place, (_, field) in enumerate(kind.row.fields, 1))
        return f"STRUCT<{', '.join(names)}>"
    if kind.element is not None:
        items = f"ARRAY<{spark_name(kind.element)}>"
        return f"STRUCT<items: {items}, shape: ARRAY<INT>>" if kind.name == "shaped" else items
    return _CARRIERS.get(kind.name) or spark_type(kind)


def is_held(kind: SqlType) -> bool:
    """Whether ``spark_name`` has a name for a type."""
    try:
        spark_name(kind)
    except SqlError:
        return False
    return True


def holds_interval(kind: SqlType) -> bool:
    """Whether values of a type compare otherwise than their carriers."""
    return holds(kind, lambda item: item.name == "interval")


def is_struct(kind: SqlType) -> bool:
    """Whether values of a type hold rows or arrays of several dimensions: only the kernel computes with them."""
    return holds(kind, lambda item: item.row is not None or item.name == "shaped")


def printed_length(dialect: Any, arguments: list[Expr], node: Call) -> Expr:
    """An interval's length in Spark's SQL, or the array of those of an array's elements."""
    if node.arguments[0].type.element is not None:
        length = f"CAST({_IN_MICROSECONDS.format('x')} AS DECIMAL(38,0))"
        return exp.Var(this=f"TRANSFORM({dialect.generate(arguments[0])}, x -> {length})")
    return exp.Cast(this=once(dialect, arguments, node, _IN_MICROSECONDS), to=exp.Var(this="DECIMAL(38,0)"))


def constant(literal: Literal) -> str | None:
    """A constant that is not NULL as its carrier; None for what Spark has itself."""
    match literal.value:
        case (months, days, microseconds) if literal.type.name == "interval":
            return f"NAMED_STRUCT('months', {months}, 'days', {days}, 'microseconds', {microseconds}L)"
        case dt.time() as time:
            day = dt.timedelta(hours=time.hour, minutes=time.minute, seconds=time.second, microseconds=time.microsecond)
            return f"{day // dt.timedelta(microseconds=1)}L"
        case _:
            return None


def require_groups(kind: SqlType) -> None:
    """Raises 0A000 for a type whose equal values Spark would not find equal."""
    if holds_interval(kind):
        raise unsupported(f"grouping by {kind}")


def require_compared(kind: SqlType) -> None:
    """The same for a type of which a subquery's values are looked up."""
    require_groups(kind)
    if is_struct(kind):
        raise unsupported(f"IN (subquery) of {kind}")
