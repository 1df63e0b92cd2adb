"""How types, literals, parameters, casts, aggregates and leaves are written for DuckDB.

Owns: ``DuckPrinter``. The functions are in ``functions.py``, the casts in ``casts.py``, macros in ``macros.py``.
Knows no
connection. Every expression it prints has, in DuckDB, the type of its SqlType, but for decimals, whose precision may
be less
(DuckDB keeps products of narrow decimals in 18 digits, checked) until the statement's last cast (``engine.conform``).
With ``wide`` decimals are computed in 38 digits throughout: the second attempt where the first one overflowed.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, Final

from sqlglot import exp
from sqlglot.dialects.duckdb import DuckDB
from sqlglot.generator import Generator

from catalog.errors import unsupported
from catalog.types import SqlType
from executor.embedded import arithmetic, casts, functions, windows
from executor.nodes import Build, Expr, function, number, operand, text
from executor.printer import Printer
from planner.algebra import Delta, Scan, Snapshot
from planner.expression import AggregateCall, Call, Cast, Literal, Parameter, ScalarSubquery, WindowCall

#: The attached database that holds the tables.
STORE: Final = "store"
#: Source name of a table's row identity in a scan.
ROW_ID: Final = "__rowid"

_TYPES: Final[dict[str, Any]] = {
    "bool": exp.DataType.Type.BOOLEAN,
    "bytea": exp.DataType.Type.BINARY,
    "int2": exp.DataType.Type.SMALLINT,
    "int4": exp.DataType.Type.INT,
    "int8": exp.DataType.Type.BIGINT,
    "oid": exp.DataType.Type.BIGINT,
    "float4": exp.DataType.Type.FLOAT,
    "float8": exp.DataType.Type.DOUBLE,
    "date": exp.DataType.Type.DATE,
    "time": exp.DataType.Type.TIME,
    "timestamp": exp.DataType.Type.TIMESTAMP,
    "timestamptz": exp.DataType.Type.TIMESTAMPTZ,
    "interval": exp.DataType.Type.INTERVAL,
    **dict.fromkeys(
        ("text", "varchar", "bpchar", "name", "unknown", "void", "json", "jsonb", "uuid"), exp.DataType.Type.VARCHAR
    ),
}


class _Generator(DuckDB.Generator):  # type: ignore[misc]
    """DuckDB's generator; the order of NULLs is always written."""

    def ordered_sql(self, expression: Any) -> str:
        """``x ASC NULLS LAST`` and the like."""
        direction = "DESC" if expression.args.get("desc") else "ASC"
        nulls = "FIRST" if expression.args.get("nulls_first") else "LAST"
        return f"{self.sql(expression, 'this')} {direction} NULLS {nulls}"


def duck_type(sql_type: SqlType) -> Expr:
    """DuckDB's type for an SQL type."""
    if sql_type.element is not None:
        return exp.DataType(this=exp.DataType.Type.ARRAY, expressions=[duck_type(sql_type.element)], nested=True)
    if sql_type.name == "numeric":
        sizes = [exp.DataTypeParam(this=exp.Literal.number(size)) for size in sql_type.modifiers]
        return exp.DataType(this=exp.DataType.Type.DECIMAL, expressions=sizes)
    return exp.DataType(this=_TYPES[sql_type.name])


def type_text(sql_type: SqlType) -> str:
    """DuckDB's type as text, for DDL."""
    written: str = _generator().generate(duck_type(sql_type))
    return written


def _generator() -> Generator:
    return _Generator(dialect=DuckDB(), identify=True)


class DuckPrinter(Printer):
    """Prints algebra for DuckDB; ``timezone`` is the session's, for what timestamptz means locally."""

    functions: ClassVar[Mapping[str, Build]] = functions.FUNCTIONS

    def __init__(self, *, wide: bool = False, timezone: str = "UTC") -> None:
        super().__init__()
        self.wide = wide
        self.timezone = timezone
        #: Types of the parameters met, by index: what EXECUTE must pass, in order.
        self.parameters: dict[int, SqlType] = {}

    def generator(self) -> Generator:
        """DuckDB's."""
        return _generator()

    def type(self, sql_type: SqlType) -> Expr:
        """DuckDB's type."""
        return duck_type(sql_type)

    def literal(self, literal: Literal) -> Expr:
        """A constant; all but int4, bool and text are cast from text."""
        value, name = literal.value, literal.type.name
        if value is None:
            return exp.Cast(this=exp.null(), to=duck_type(literal.type))
        if literal.type.element is not None:
            assert isinstance(value, Sequence)
            items = [self.literal(Literal(item, literal.type.element)) for item in value]
            return exp.Cast(this=exp.Array(expressions=items), to=duck_type(literal.type))
        if name == "bool":
            return exp.true() if value else exp.false()
        if name == "int4":
            assert isinstance(value, int)
            return number(value)
        if isinstance(value, bytes):
            return function("unhex", text(value.hex()))
        if name == "interval":
            return _interval(value)
        written = text(_written(value))
        return (
            written
            if _TYPES.get(name) is exp.DataType.Type.VARCHAR
            else exp.Cast(this=written, to=duck_type(literal.type))
        )

    def parameter(self, parameter: Parameter) -> Expr:
        """$n, cast to its type. DuckDB's own numbering is that of the parameters in use."""
        self.parameters.setdefault(parameter.index, parameter.type)
        place = list(self.parameters).index(parameter.index) + 1
        return exp.Cast(this=exp.Parameter(this=exp.Literal.number(place)), to=duck_type(parameter.type))

    def leaf(self, leaf: Scan | Snapshot | Delta) -> Expr:
        """Tables are in the attached store; all other leaves are registered on the connection."""
        table = super().leaf(leaf)
        if isinstance(leaf, Scan) and leaf.kind == "table":
            table.set("db", exp.Identifier(this="main", quoted=True))
            table.set("catalog", exp.Identifier(this=STORE, quoted=True))
        return table

    def source(self, leaf: Scan | Snapshot | Delta, name: str) -> Expr:
        """A leaf's column; a table's row identity is DuckDB's rowid."""
        own = isinstance(leaf, Scan) and leaf.kind == "table" and name == ROW_ID
        return super().source(leaf, "rowid" if own else name)

    def cast(self, argument: Expr, node: Cast) -> Expr:
        """See ``casts``."""
        return casts.cast(self, argument, node)

    def call(self, node: Call, arguments: list[Expr]) -> Expr:
        """See ``functions``."""
        if any(argument.type.name == "bytea" for argument in node.arguments) and node.function not in functions.BYTEA:
            raise unsupported(f"function {node.function} of bytea")
        return super().call(node, arguments)

    def aggregate(self, node: AggregateCall, arguments: list[Expr], where: Expr | None, order: list[Expr]) -> Expr:
        """An aggregate; what needs several of DuckDB's is made of them."""
        build = _AGGREGATES.get(node.function)
        if build is None:
            raise unsupported(f"aggregate {node.function}")
        return build(self, node, _Aggregation(node.distinct, where, order), arguments)

    def window(self, node: WindowCall, arguments: list[Expr], where: Expr | None, over: Expr) -> Expr:
        """An aggregate over a window is made of the same calls; ``windows`` has the other functions."""
        build = _AGGREGATES.get(node.function)
        if build is None:
            return windows.call(self, node, arguments, over)
        call = AggregateCall(node.function, node.arguments, node.type)
        return build(self, call, _Aggregation(False, where, [], over), arguments)

    def subquery_scalar(self, node: ScalarSubquery, select: Expr) -> Expr:
        """DuckDB raises on a second row by itself (scalar_subquery_error_on_multiple_rows)."""
        return exp.Subquery(this=select)


def _interval(value: object) -> Expr:
    """INTERVAL from (months, days, microseconds)."""
    assert isinstance(value, tuple)
    months, days, micros = value
    parts = [function(name, number(count)) for name, count in (("to_months", months), ("to_days", days))]
    return operand(
        exp.Add(
            this=exp.Add(this=parts[0], expression=parts[1]), expression=function("to_microseconds", number(micros))
        )
    )


def _written(value: object) -> str:
    """A value as DuckDB reads it."""
    if isinstance(value, datetime.datetime) and value.tzinfo is not None:
        return value.astimezone(datetime.UTC).isoformat(sep=" ")
    if isinstance(value, datetime.datetime):
        return value.isoformat(sep=" ")
    return f"{value:f}" if type(value).__name__ == "Decimal" else str(value)


class _Aggregation:
    """What surrounds an aggregate's arguments: DISTINCT, FILTER, ORDER BY, and OVER for one over a window."""

    def __init__(self, distinct: bool, where: Expr | None, order: list[Expr], over: Expr | None = None) -> None:
        self.distinct = distinct
        self.where = where
        self.order = order
        self.over = over

    def call(self, name: str, *arguments: Expr, where: Expr | None = None) -> Expr:
        """name(DISTINCT arguments ORDER BY ...) FILTER (...) OVER (...)."""
        items = list(arguments)
        if self.distinct:
            items = [exp.Distinct(expressions=[items[0]]), *items[1:]]
        if self.order:
            items[-1] = exp.Order(this=items[-1], expressions=self.order)
        conditions = [operand(item.copy()) for item in (self.where, where) if item is not None]
        result = function(name, *items)
        if conditions:
            both = conditions[0] if len(conditions) == 1 else exp.And(this=conditions[0], expression=conditions[1])
            result = exp.Filter(this=result, expression=exp.Where(this=both))
        if self.over is None:
            return result
        over = self.over.copy()
        over.set("this", result)
        return over


Aggregation = Callable[[DuckPrinter, AggregateCall, _Aggregation, list[Expr]], Expr]


def _count(_: DuckPrinter, __: AggregateCall, around: _Aggregation, arguments: list[Expr]) -> Expr:
    return around.call("count", *(arguments or [exp.Star()]))


def _plain(_: DuckPrinter, node: AggregateCall, around: _Aggregation, arguments: list[Expr]) -> Expr:
    return around.call(node.function, *arguments)


def _list(_: DuckPrinter, node: AggregateCall, around: _Aggregation, arguments: list[Expr]) -> Expr:
    """string_agg and array_agg; distinct values come sorted, as PostgreSQL finds them."""
    if around.distinct and not around.order:
        around.order = [exp.Ordered(this=arguments[0].copy(), desc=False, nulls_first=False)]
    return around.call("list" if node.function == "array_agg" else node.function, *arguments)


def _sum(printer: DuckPrinter, node: AggregateCall, around: _Aggregation, arguments: list[Expr]) -> Expr:
    """DuckDB sums integers in hugeint and decimals in 38 digits, both checked; of intervals, the three parts."""
    kind = node.type.name
    if kind == "interval":
        if around.distinct:
            raise unsupported("sum(DISTINCT interval)", "Sum the rows of a SELECT DISTINCT.")
        parts = [function(f"ms_interval_{part}", arguments[0].copy()) for part in ("months", "day", "micros")]
        return function("ms_interval_total", *(around.call("sum", part) for part in parts))
    result = around.call("sum", *arguments)
    if kind == "float8" or (kind == "numeric" and node.arguments[0].type.name == "numeric" and not printer.wide):
        return result
    return exp.Cast(this=result, to=duck_type(node.type))


def _avg(printer: DuckPrinter, node: AggregateCall, around: _Aggregation, arguments: list[Expr]) -> Expr:
    argument = node.arguments[0].type
    if node.type.name != "numeric":
        return around.call("avg", *arguments)
    total = around.call("sum", arguments[0])
    return arithmetic.average(total, around.call("count", arguments[0].copy()), argument)


def _variance(_: DuckPrinter, node: AggregateCall, around: _Aggregation, arguments: list[Expr]) -> Expr:
    """Exact over integers and numerics: of count, sum and sum of squares in hugeint units."""
    argument = node.arguments[0].type
    if node.type.name != "numeric":
        return around.call(node.function, *arguments)
    scale = min(argument.scale if argument.name == "numeric" else 0, arithmetic.SQUARE_SCALE)
    narrow = SqlType("numeric", (38, scale)) if argument.name == "numeric" else argument
    units = arithmetic.units(arithmetic.narrowed(arguments[0], argument, scale), narrow, scale)
    squares = exp.Mul(this=units.copy(), expression=units.copy())
    total = around.call("sum", units)
    if around.distinct:  # x and -x have one square
        zero = exp.Literal.number(0)
        low = around.call("sum", squares.copy(), where=exp.LT(this=units.copy(), expression=zero))
        high = around.call("sum", squares, where=exp.GTE(this=units.copy(), expression=zero.copy()))
        squared: Expr = exp.Add(
            this=function("coalesce", low, exp.Literal.number(0)),
            expression=function("coalesce", high, exp.Literal.number(0)),
        )
    else:
        squared = around.call("sum", squares)
    return arithmetic.variance(node.function, around.call("count", arguments[0].copy()), total, squared, scale)


_AGGREGATES: Final[dict[str, Aggregation]] = {
    "count": _count,
    "sum": _sum,
    "avg": _avg,
    **dict.fromkeys(("min", "max", "bool_and", "bool_or"), _plain),
    **dict.fromkeys(("string_agg", "array_agg"), _list),
    **dict.fromkeys(("stddev_samp", "stddev_pop", "var_samp", "var_pop"), _variance),
}
