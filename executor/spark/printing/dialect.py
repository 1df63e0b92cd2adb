"""Spark SQL with PostgreSQL's meaning: types, literals, casts and aggregates (functions are in ``functions.scalar``).

Owns: the printer's dialect for Spark 4.3 under the settings of ``settings.SEMANTICS`` (ANSI mode, UTC, decimals that
keep their scale). The dialect is an allow-list: what Spark does not compute exactly as PostgreSQL does is refused with
a reason, and the embedded engine does that work. Integers are computed as bigint and cast back, so that an overflow
names its type.

    int2, int4, int8        SMALLINT, INT, BIGINT      timestamp       TIMESTAMP_NTZ
    numeric(p,s)            DECIMAL(p,s)               timestamptz     TIMESTAMP (session time zone UTC)
    text and its like       STRING, by code point      bytea           BINARY
    timetz, enums           BIGINT, as they are carried                ranges          BINARY, likewise
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator, Mapping
from typing import Any, ClassVar, Final

from msgspec.structs import replace
from sqlglot import exp
from sqlglot.dialects.spark import Spark
from sqlglot.generator import Generator

from catalog.values.errors import unsupported
from catalog.values.nested_types import holds
from catalog.values.times.precision import expressed, is_fitted
from catalog.values.types import SPANS, SqlType
from executor.printing.nodes import Build, Expr, digits, function
from executor.printing.printer import Printer
from executor.printing.selects import Block, Selects
from executor.spark.printing.aggregates.spreads import SPREADS
from executor.spark.printing.aggregates.sums import Around, has_halves, sum_of_bigints, sum_of_numerics
from executor.spark.printing.functions.overflows import is_long
from executor.spark.printing.functions.quotients import average
from executor.spark.printing.functions.scalar import FUNCTIONS
from executor.spark.printing.functions.temporal import rounded
from planner.algebra.nodes import (
    AggregateCall,
    Call,
    Cast,
    Delta,
    Join,
    Limit,
    Literal,
    Parameter,
    Relation,
    Scalar,
    ScalarSubquery,
    Scan,
    Snapshot,
    SortKey,
    Values,
)
from planner.algebra.walk import RELATIONS, children, walk
from planner.incremental.programs.labels import shows, writes

STRINGS: Final = frozenset(("text", "varchar", "bpchar", "name"))
INTEGERS: Final[dict[str, int]] = {"int2": 5, "int4": 10, "int8": 19}  # decimal digits
_TYPES: Final[dict[str, str]] = {
    "bool": "BOOLEAN",
    "int2": "SMALLINT",
    "int4": "INT",
    "int8": "BIGINT",
    "oid": "BIGINT",
    "enum": "BIGINT",
    "float4": "FLOAT",
    "float8": "DOUBLE",
    "text": "STRING",
    "varchar": "STRING",
    "bpchar": "STRING",
    "name": "STRING",
    "json": "STRING",
    "jsonb": "STRING",
    "jsonpath": "STRING",
    "uuid": "STRING",
    "bytea": "BINARY",
    **dict.fromkeys(SPANS, "BINARY"),
    "date": "DATE",
    "timetz": "BIGINT",
    "timestamp": "TIMESTAMP_NTZ",
    "timestamptz": "TIMESTAMP",
}
#: Types whose values have an order of PostgreSQL's, beside numerics.
_ORDERED: Final = frozenset(_TYPES) - {"bool", "json", "jsonb", "jsonpath", "bytea"} - SPANS
#: Conversions without loss and without an error: to -> from.
_WIDENED: Final[Mapping[str, tuple[str, ...]]] = {
    "int4": ("int2", "bool"),
    "int8": ("int2", "int4"),
    "float8": ("int2", "int4", "int8", "float4"),
    "timestamp": ("date",),
    "date": ("timestamp",),
}


def _is_coded(kind: SqlType) -> bool:
    return holds(kind, lambda item: item.name == "timetz" or item.name in SPANS)


class _Generator(Spark.Generator):  # type: ignore[misc]
    """Spark's generator; the order of NULLs is always written."""

    def ordered_sql(self, expression: Expr) -> str:
        """``x ASC NULLS LAST`` and the like."""
        direction = "DESC" if expression.args.get("desc") else "ASC"
        nulls = "FIRST" if expression.args.get("nulls_first") else "LAST"
        return f"{self.sql(expression, 'this')} {direction} NULLS {nulls}"


def spark_type(sql_type: SqlType) -> str:
    """Spark's name of a type. Raises 0A000 for a type that Spark does not hold."""
    if sql_type.name == "shaped":
        raise unsupported("an array of more than one dimension")
    if sql_type.element is not None:
        return f"ARRAY<{spark_type(sql_type.element)}>"
    if sql_type.name == "numeric":
        return f"DECIMAL({sql_type.precision},{sql_type.scale})"
    if sql_type.name not in _TYPES:
        raise unsupported(f"type {sql_type}")
    return _TYPES[sql_type.name]


def is_ordered(kind: SqlType) -> bool:
    """Whether min and max of a type's values are PostgreSQL's."""
    return kind.name in _ORDERED or kind.name == "numeric"


def cast_to(value: Expr, name: str) -> Expr:
    """CAST(value AS name)."""
    return exp.Cast(this=value, to=exp.Var(this=name))


def string(value: str) -> Expr:
    """A string literal: Spark reads backslashes."""
    return exp.Var(this="'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'")


class SparkPrinter(Printer):
    """Prints one statement; see ``executor.printing.printer``."""

    functions: ClassVar[Mapping[str, Build]] = FUNCTIONS
    quote: ClassVar[str] = "`"
    #: Those that take arrays.
    of_arrays: ClassVar[frozenset[str]] = frozenset(("is_null", "is_not_null", "coalesce"))
    #: Those that take intervals; these do as constants.
    of_intervals: ClassVar[frozenset[str]] = frozenset(("add", "sub", "date_bin"))

    def __init__(self, *, has_unscaled: bool = True) -> None:
        """``has_unscaled``: whether the session that runs it knows ``unscaled.UNSCALED``; none behind Connect does."""
        super().__init__()
        self.has_unscaled = has_unscaled

    def _visit(self, node: Any, below: list[tuple[Any, int]]) -> tuple[Any, int]:
        """A value of an enum is its label's place, a timetz a number, a range bytes: no function of Spark's knows
        their text."""
        if self.shows(node):
            raise unsupported("the text of an enum, of timetz or of a range")
        return Printer._visit(self, node, below)

    def shows(self, node: object) -> bool:
        """Whether a node of Spark's makes text of an enum's values, of timetz or of ranges."""
        return shows(node) or writes(node, _is_coded)

    def generator(self) -> Generator:
        """Spark's, with every name in backticks."""
        return _Generator(dialect=Spark(), identify=True)

    def require(self, kind: SqlType) -> None:
        """Raises 0A000 for a type that the printed statement may not have."""
        if kind.element is not None:
            raise unsupported(f"type {kind}")
        if kind.name != "interval":
            spark_type(kind)

    def name_of(self, kind: SqlType) -> str:
        """Spark's name of a type."""
        return spark_type(kind)

    def type(self, sql_type: SqlType) -> Expr:
        """An exp.Var: the printer only hands it to CAST."""
        return exp.Var(this=self.name_of(sql_type))

    def prepared(self, relation: Relation) -> Relation:
        """A statement's relation as it is printed. Raises 0A000 for what would keep Spark's planner busy."""
        for node in walk(relation):
            own = (item for item in children(node) if isinstance(node, RELATIONS) and not isinstance(item, RELATIONS))
            if any(is_long(walk(item)) for item in own):
                raise unsupported("an expression of floating point numbers of this length")
        return relation

    def parameter(self, parameter: Parameter) -> Expr:
        """Programs have none."""
        raise unsupported("parameter")

    def leaf(self, leaf: Scan | Snapshot | Delta) -> str:
        """Jobs read a stream's delta and statics, never a table as it is now."""
        if isinstance(leaf, Scan):
            raise unsupported(f"reading {leaf.kind} {leaf.name}")
        for column in leaf.columns:
            self.require(column.type)
        return Printer.leaf(self, leaf)

    def join(self, node: Join, right: Expr, on: Expr | None) -> Expr:
        """Spark takes correlated scalar subqueries in no join's condition; those of inner joins stand in WHERE."""
        if node.predicate is not None and has_scalar_subquery(node.predicate):
            raise unsupported(f"a subquery in the condition of a join that is {node.kind}")
        return Printer.join(self, node, right, on)

    def values(self, node: Values, rows: list[list[Expr]], alias: str) -> Expr:
        """Rows as Spark takes them: those of VALUES are constants, so that others are SELECTs."""
        if all(isinstance(item, Literal) for row in node.rows for item in row):
            return Printer.values(self, node, rows, alias)
        selects = [self._clauses(list(map(self._named, row, node.columns)), None) for row in rows]
        union = exp.Var(this=" UNION ALL ".join(map(self.generate, selects)))
        return exp.Subquery(this=union, alias=exp.TableAlias(this=exp.Identifier(this=alias, quoted=True)))

    def _sort_key(self, key: SortKey, value: Expr) -> Expr:
        """Documents and arrays have orders of their own in PostgreSQL."""
        if key.expression.type.element is not None or key.expression.type.name in ("json", "jsonb"):
            raise unsupported(f"ORDER BY {key.expression.type}")
        return Printer._sort_key(self, key, value)

    def _limit(self, node: Limit, block: Block, rest: Iterator[Any]) -> Block:
        """Numbers of rows are int constants in Spark."""
        count, offset = (_rows(item) for item in (node.count, node.offset))
        node = replace(
            node, count=None if count is None else node.count, offset=None if offset is None else node.offset
        )
        return Selects._limit(self, node, block, iter([item for item in (count, offset) if item is not None]))

    def literal(self, literal: Literal) -> Expr:
        """A constant of exactly its type. An interval prints as NULL: only functions that know it take it."""
        value, name = literal.value, literal.type.name
        if name == "interval":
            return exp.null()
        self.require(literal.type)
        kind = self.name_of(literal.type)
        if value is None:
            return cast_to(exp.null(), kind)
        match value:
            case tuple() if literal.type.element is not None:
                items = (self.generate(self.literal(Literal(item, literal.type.element))) for item in value)
                return cast_to(exp.Var(this=f"ARRAY({', '.join(items)})"), kind)
            case bool():
                return exp.true() if value else exp.false()
            case int() if name == "int4" and value >= 0:
                return exp.Literal.number(value)
            case str() if kind == "STRING":
                return string(value.rstrip(" ") if name == "bpchar" else value)
            case bytes():
                return exp.Var(this=f"X'{value.hex()}'")
            case float() if name in ("date", "timestamp", "timestamptz"):
                raise unsupported(f"an infinite {name}")
            case dt.datetime():
                return _timestamp(value, kind)
            case dt.date():
                return exp.Var(this=f"DATE'{value.isoformat()}'")
            case _:
                return cast_to(string(_number_text(value)), kind)

    def cast(self, argument: Expr, node: Cast) -> Expr:
        """A conversion that Spark makes as PostgreSQL does."""
        source, target = node.argument.type, node.type
        if expressed(source) == target:
            return argument
        if is_fitted(target):
            return rounded(self, self.cast(argument, replace(node, type=expressed(target))), node)
        printed = self._cast_numbers(argument, source, target)
        if printed is None:
            printed = self._cast_strings(argument, node)
        if printed is None and source.name in _WIDENED.get(target.name, ()):
            printed = cast_to(argument, spark_type(target))
        if printed is None:
            raise unsupported(f"cast of {source} to {target}")
        return printed

    def _cast_numbers(self, argument: Expr, source: SqlType, target: SqlType) -> Expr | None:
        """Numbers: numeric rounds half away from zero, doubles half to even; out of range is 22003."""
        kind = spark_type(target)
        match source.name, target.name:
            case ("numeric" | "int2" | "int4" | "int8", "numeric"):
                return cast_to(argument, kind)
            case ("int4" | "int8", "int2" | "int4"):
                return cast_to(argument, kind)
            case ("numeric", "int2" | "int4" | "int8"):
                return cast_to(function("ROUND", argument, exp.Literal.number(0)), kind)
            case ("float4" | "float8", "int2" | "int4" | "int8"):
                return cast_to(function("RINT", cast_to(argument, "DOUBLE")), kind)
            case ("numeric", "float8"):
                return cast_to(argument, kind)
            case _:
                return None

    def _cast_strings(self, argument: Expr, node: Cast) -> Expr | None:
        """Strings: an explicit cast cuts; bpchar is kept without its trailing blanks."""
        source, target = node.argument.type, node.type
        if target.name not in STRINGS:
            return None
        if self._has_plain_text(source) and not target.modifiers and target.name != "bpchar":
            return cast_to(argument, "STRING")
        if source.name not in STRINGS or target.name == "name":
            return None
        if target.modifiers and not (
            source.name == target.name and source.modifiers <= target.modifiers and source.modifiers
        ):
            if not node.explicit:
                return None  # 22001 where only blanks may be cut
            argument = function("LEFT", argument, exp.Literal.number(target.modifiers[0]))
        return function("RTRIM", argument) if target.name == "bpchar" else argument

    def _has_plain_text(self, kind: SqlType) -> bool:
        """Whether Spark prints the type as PostgreSQL does; of numerics, those whose declared scale is what shows."""
        return kind.name in ("int2", "int4", "int8", "bool", "uuid", "json") or (
            kind.name == "numeric" and kind.typmod != -1
        )

    def call(self, node: Call, arguments: list[Expr]) -> Expr:
        """A function of the allow-list; none takes an interval but as a literal that it knows."""
        for item in node.arguments:
            if item.type.element is not None and node.function not in self.of_arrays:
                raise unsupported(f"function {node.function} of an array")
            if item.type.name != "interval":
                self.name_of(item.type)
            elif node.function not in self.of_intervals:
                raise unsupported("type interval")
        self.require(node.type)
        return Printer.call(self, node, arguments)

    def aggregate(self, node: AggregateCall, arguments: list[Expr], where: Expr | None, order: list[Expr]) -> Expr:
        """A state's aggregates."""
        return self.aggregated(node, arguments, Around(where))

    def aggregated(self, node: AggregateCall, arguments: list[Expr], around: Around) -> Expr:
        """An aggregate of a group or over a window. Sums are exact (see ``sums``)."""
        kinds = [item.type for item in node.arguments]
        match node.function:
            case "count":
                counted = arguments or [exp.Star()]
                return around.call("COUNT", *distinct(counted, node.distinct))
            case "sum":
                return self._sum(arguments[0], kinds[0], node, around)
            case "avg":
                return self._average(arguments[0], kinds[0], node, around)
            case "min" | "max" if is_ordered(kinds[0]):
                return around.call(node.function.upper(), arguments[0])
            case "bool_and" | "bool_or" | "bit_and" | "bit_or" | "bit_xor" if (
                not node.distinct and kinds[0].name != "bit"
            ):
                return around.call(node.function.upper(), arguments[0])
            case name if name in SPREADS:
                return SPREADS[name](self, arguments, around)
            case _:
                raise unsupported(f"aggregate {node.function}({', '.join(map(str, kinds))})")

    def _sum(self, value: Expr, kind: SqlType, node: AggregateCall, around: Around) -> Expr:
        target = spark_type(node.type)
        if kind.name == "int8" and node.type.name == "numeric" and not node.distinct:
            return cast_to(sum_of_bigints(value, around), target)
        if self.has_unscaled and has_halves(kind) and not node.distinct:
            return cast_to(sum_of_numerics(value, kind.scale, around), target)
        if kind.name == "int8" and node.type.name == "numeric":
            value = cast_to(value, "DECIMAL(19,0)")
        elif kind.name not in ("int2", "int4", "int8", "numeric", "float8"):
            raise unsupported(f"aggregate sum({kind})")
        total = around.call("SUM", *distinct([value], node.distinct))
        return cast_to(total, target) if node.type.name == "numeric" else total

    def _average(self, value: Expr, kind: SqlType, node: AggregateCall, around: Around) -> Expr:
        if kind.name == "float8":
            return around.call("AVG", *distinct([value], node.distinct))
        if node.type.name != "numeric" or kind.name not in ("numeric", *INTEGERS):
            raise unsupported(f"aggregate avg({kind})")
        if kind.name != "numeric":
            value = cast_to(value, f"DECIMAL({INTEGERS[kind.name]},0)")
            kind = SqlType("numeric", (INTEGERS[kind.name], 0))
        total = self._sum(value.copy(), kind, replace(node, type=SqlType("numeric", (38, kind.scale))), around)
        count = around.call("COUNT", *distinct([value.copy()], node.distinct))
        return average(self.generate(total), self.generate(count), kind)


def _rows(value: Scalar | None) -> Expr | None:
    """A LIMIT or OFFSET as Spark takes it; None where there is none."""
    while isinstance(value, Cast):
        value = value.argument
    if value is None:
        return None
    if not isinstance(value, Literal):
        raise unsupported("LIMIT or OFFSET that is not constant")
    if value.value is None:
        return None
    assert isinstance(value.value, int)
    if not 0 <= value.value < 1 << 31:
        raise unsupported(f"LIMIT or OFFSET {value.value}")
    return exp.Literal.number(value.value)


def has_scalar_subquery(value: Scalar) -> bool:
    """Whether an expression has a scalar subquery."""
    return any(isinstance(item, ScalarSubquery) for item in walk(value))


def _timestamp(value: dt.datetime, kind: str) -> Expr:
    if kind == "TIMESTAMP":
        value = value.astimezone(dt.UTC)
    return exp.Var(this=f"{kind}'{value.isoformat(sep=' ')}'")


def _number_text(value: Any) -> str:
    """Digits of an int, Decimal or float; Spark reads NaN and Infinity too."""
    if isinstance(value, float):
        return {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}.get(repr(value), repr(value))
    return digits(value) if not isinstance(value, int) else str(value)


def distinct(values: list[Expr], is_distinct: bool) -> list[Expr]:
    """An aggregate's arguments, of distinct values alone where that is asked."""
    return [exp.Distinct(expressions=values)] if is_distinct else values
