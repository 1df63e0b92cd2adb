"""How types, literals, parameters, casts, aggregates and leaves are written for DuckDB.

Owns: ``DuckPrinter``. The functions are in ``scalar_functions.py``, the casts in ``casts.py``, macros in
``executor.embedded.functions``. Knows no connection. Every printed expression has the type of its SqlType in DuckDB,
except for decimals, whose precision may be smaller (DuckDB keeps products of narrow decimals in 18 digits, with checks)
until the statement's last cast (``connection.conform``).

With ``wide``, decimals are computed with 38 digits throughout: the second attempt after an overflow. With ``apart``,
each join's rows are materialized before they are read: the second attempt after a failure within DuckDB, whose joins
(2.0.0) raise if one gets the dictionaries of another through a join by other than equality
(https://github.com/duckdb/duckdb/issues/24807).
"""

from __future__ import annotations

import datetime
import math
import threading
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from types import MappingProxyType
from typing import Any, ClassVar, Final

from sqlglot import exp
from sqlglot.dialects.duckdb import DuckDB
from sqlglot.generator import Generator

from catalog.values.errors import unsupported
from catalog.values.nested_types import holds
from catalog.values.scales import is_padded
from catalog.values.types import INT4, OIDS, OPAQUE, SPANS, SqlType, array
from executor.embedded.printing import casts, parquet_scan, set_functions, windows
from executor.embedded.printing.aggregates import AGGREGATES, Surroundings
from executor.embedded.printing.composites import array_shapes, documents, rows
from executor.embedded.printing.generator import DuckGenerator
from executor.embedded.printing.nodes import INTEGERS, bound, each
from executor.embedded.printing.scalar_functions import BYTEA, FUNCTIONS
from executor.files.file_tables import FileRows
from executor.printing.nodes import (
    Build,
    Expr,
    digits,
    function,
    leaf_name,
    number,
    operand,
    reference,
    text,
)
from executor.printing.printer import Printer
from executor.printing.selects import Block
from planner.algebra.nodes import (
    ROW_ID,
    AggregateCall,
    Call,
    Cast,
    Delta,
    Join,
    Limit,
    Literal,
    Parameter,
    Relation,
    ScalarSubquery,
    Scan,
    Snapshot,
    SortKey,
    Unnest,
    Window,
    WindowCall,
    With,
)
from planner.algebra.walk import free_columns
from planner.lowering.long_predicates import close_conditions
from planner.lowering.outer_values import separate_outer_values
from planner.scales.nested import given_kind, written_kind

#: The attached database that holds the tables.
STORE: Final = "store"
#: A number larger than any number of rows.
_ALL: Final = (1 << 63) - 1

_TYPES: Final[dict[str, Any]] = {
    "bool": exp.DataType.Type.BOOLEAN,
    "bytea": exp.DataType.Type.BINARY,
    "int2": exp.DataType.Type.SMALLINT,
    "int4": exp.DataType.Type.INT,
    "int8": exp.DataType.Type.BIGINT,
    "enum": exp.DataType.Type.BIGINT,
    "float4": exp.DataType.Type.FLOAT,
    "float8": exp.DataType.Type.DOUBLE,
    "date": exp.DataType.Type.DATE,
    "time": exp.DataType.Type.TIME,
    "timetz": exp.DataType.Type.BIGINT,
    "timestamp": exp.DataType.Type.TIMESTAMP,
    "timestamptz": exp.DataType.Type.TIMESTAMPTZ,
    "interval": exp.DataType.Type.INTERVAL,
    **dict.fromkeys(SPANS, exp.DataType.Type.BINARY),
    **dict.fromkeys(OIDS | {"xid", "cid", "xid8", "money"}, exp.DataType.Type.BIGINT),
    **dict.fromkeys(OPAQUE, exp.DataType.Type.VARCHAR),
    **dict.fromkeys(
        ("char", "text", "varchar", "bpchar", "name", "unknown", "void", "json", "jsonb", "jsonpath", "uuid"),
        exp.DataType.Type.VARCHAR,
    ),
}


#: Integers whose literals need a cast.
_WIDE: Final = (exp.DataType.Type.SMALLINT, exp.DataType.Type.BIGINT)


def duck_type(sql_type: SqlType) -> Expr:
    """DuckDB's type for an SQL type."""
    if sql_type.name == "shaped" and sql_type.element is not None:
        return array_shapes.shaped_type(duck_type(array(sql_type.element)), duck_type(array(INT4)))
    if sql_type.element is not None:
        return exp.DataType(this=exp.DataType.Type.ARRAY, expressions=[duck_type(sql_type.element)], nested=True)
    if sql_type.row is not None:
        return rows.struct_type([duck_type(kind) for _, kind in sql_type.row.fields])
    if sql_type.name == "numeric":
        sizes = [exp.DataTypeParam(this=exp.Literal.number(size)) for size in (sql_type.precision, sql_type.scale)]
        return exp.DataType(this=exp.DataType.Type.DECIMAL, expressions=sizes)
    return exp.DataType(this=_TYPES[sql_type.name])


def type_text(sql_type: SqlType) -> str:
    """DuckDB's type as text, for DDL."""
    written: str = _generator().generate(duck_type(sql_type))
    return written


def _generator() -> Generator:
    """This thread's generator: making one takes several times as long as printing a node."""
    found: Generator | None = getattr(_own, "generator", None)
    if found is None:
        found = _own.generator = DuckGenerator(dialect=DuckDB(), identify=True)
    return found


_own = threading.local()


class DuckPrinter(Printer):
    """Prints algebra for DuckDB; ``timezone`` is the session's, for the local time of a timestamptz."""

    functions: ClassVar[Mapping[str, Build]] = FUNCTIONS

    def __init__(
        self,
        *,
        wide: bool = False,
        timezone: str = "UTC",
        read: Mapping[str, FileRows] = MappingProxyType({}),
        apart: bool = False,
        planned_once: bool = False,
    ) -> None:
        """``planned_once``: the statement is planned only at PREPARE; each of its parameters must occur once."""
        super().__init__()
        self.wide = wide
        self._apart = apart
        self._planned_once = planned_once
        self.timezone = timezone
        #: Leaves that are read from files, by their engine names.
        self._read = read
        #: Types of the parameters that occur, by index: EXECUTE passes them in this order.
        self.parameters: dict[int, SqlType] = {}

    def print_relation(self, relation: Relation) -> str:
        """The text of a statement. An interval leaves the engine in nanoseconds; 0A000 if its time does not fit."""
        if not isinstance(relation, With):  # its parts are counted separately
            relation = close_conditions(separate_outer_values(relation))
        printed = super().print_relation(relation)
        if not any(holds(column.type, _is_interval) for column in relation.columns):
            return printed
        shown = []
        for column in relation.columns:
            name = self.generate(reference(column))
            written = self.generate(_checked(reference(column), column.type))
            shown.append(name if written == name else f"{written} AS {name}")
        return f"SELECT {', '.join(shown)} FROM ({printed})"

    def in_zone(self, name: str) -> str:
        """Sets the zone that is passed to DuckDB's functions."""
        before, self.timezone = self.timezone, name
        return before

    def generator(self) -> Generator:
        """DuckDB's generator."""
        return _generator()

    def _join(self, node: Join, left: Block, right: Block, on: Expr | None) -> Block:
        block = super()._join(node, left, right, on)
        return self._kept(block) if self._apart and not free_columns(node) else block

    def type(self, sql_type: SqlType) -> Expr:
        """DuckDB's type."""
        return duck_type(sql_type)

    def literal(self, literal: Literal) -> Expr:
        """A constant; all types except int4, bool and text are cast from text."""
        value, name = literal.value, literal.type.name
        if value is None:
            return exp.Cast(this=exp.null(), to=duck_type(literal.type))
        if literal.type.element is not None:
            assert isinstance(value, Sequence)
            if literal.type.name == "shaped":
                parts = zip(value, (array(literal.type.element), array(INT4)), strict=True)
                made = array_shapes.struct([self.literal(Literal(part, kind)) for part, kind in parts])
                return exp.Cast(this=made, to=duck_type(literal.type))
            items = self._items(value, literal.type.element)
            return exp.Cast(this=exp.Array(expressions=items), to=duck_type(literal.type))
        if literal.type.row is not None:
            assert isinstance(value, Sequence)
            pairs = zip(value, literal.type.row.fields, strict=True)
            return rows.struct([self.literal(Literal(item, kind)) for item, (_, kind) in pairs])
        if name == "bool":
            return exp.true() if value else exp.false()
        if name == "int4":
            assert isinstance(value, int)
            return number(value)
        if isinstance(value, bytes):
            return function("unhex", text(value.hex()))
        if name == "interval":
            return _interval(value)
        written = text(_written(value).rstrip(" ") if name == "bpchar" else _written(value))
        return (
            written
            if _TYPES.get(name) is exp.DataType.Type.VARCHAR
            else exp.Cast(this=written, to=duck_type(literal.type))
        )

    def _items(self, values: Sequence[Any], element: SqlType) -> list[Expr]:
        """Constants in a list that is cast as a whole, in which integers need no cast."""
        if all(type(item) is int for item in values) and duck_type(element).this in _WIDE:
            return [number(item) for item in values]
        return [self.literal(Literal(item, element)) for item in values]

    def parameter(self, parameter: Parameter) -> Expr:
        """$n, cast to its type. DuckDB numbers the parameters that are used. A numeric of undeclared scale is passed as
        text, so that its decimals can be counted, and a jsonpath as the client wrote it."""
        self.parameters.setdefault(parameter.index, written_kind(parameter.type))
        place = list(self.parameters).index(parameter.index) + 1
        value = exp.Cast(this=exp.Parameter(this=exp.Literal.number(place)), to=duck_type(parameter.type))
        if holds(parameter.type, is_padded):
            return casts.cast(self, value, Cast(Literal(None, given_kind(parameter.type)), parameter.type))
        return function("doc_jsonpath", value) if parameter.type.name == "jsonpath" else value

    def _orders_by_columns(self, keys: tuple[SortKey, ...]) -> bool:
        """Also not by what takes the place of a column in ORDER BY."""
        values = ((exp.Null(), key.expression.type) for key in keys)
        return super()._orders_by_columns(keys) and all(documents.sort_key(*each) is each[0] for each in values)

    def _sort_key(self, key: SortKey, value: Expr) -> Expr:
        value = documents.sort_key(value, key.expression.type)
        return exp.Ordered(this=value, desc=key.descending, nulls_first=key.nulls_first)

    def _window(self, node: Window, block: Block, rest: Iterator[Any]) -> Block:
        """A window call. DuckDB collects the first rows of groups as structs, which must not contain -0.0; a computed
        number prevents this."""
        hides = not isinstance(node.input, Scan) and _has_float(node.input)
        numbers = (
            function("abs", value) if hides and call.function == "row_number" else value
            for (_, call), value in zip(node.calls, rest, strict=True)
        )
        return super()._window(node, block, numbers)

    def _limit(self, node: Limit, block: Block, rest: Iterator[Any]) -> Block:
        """A lateral item's LIMIT. DuckDB collects its first row in the same way, unless OFFSET is written."""
        block = super()._limit(node, block, rest)
        if block.limit is not None and block.offset is None and _has_float(node):
            block.offset = number(0)
        return block

    def leaf(self, leaf: Scan | Snapshot | Delta) -> str:
        """Tables are in the attached database, files are read; all other leaves are registered on the connection, as
        are tables in queries that read files."""
        own = super().leaf(leaf)
        read = self._read.get(leaf_name(leaf))
        if read is not None:
            return f"({parquet_scan.select(read, type_text)}) AS {own}"
        is_table = isinstance(leaf, Scan) and leaf.kind == "table" and not self._read
        if is_table:
            return f"{self.name(STORE)}.{self.name('main')}.{own}"
        # If DuckDB moves a condition with parameters to a scan, it plans the statement at each EXECUTE; no condition
        # moves below a LIMIT.
        return f"{own} LIMIT {_ALL}" if self._planned_once else own

    def source(self, leaf: Scan | Snapshot | Delta, name: str) -> str:
        """A leaf's column. The row identity of a table, or of a kept result, is DuckDB's rowid."""
        own = name == ROW_ID and leaf_name(leaf) not in self._read
        return super().source(leaf, "rowid" if own else name)

    def cast(self, argument: Expr, node: Cast) -> Expr:
        """A cast, see ``casts``."""
        return casts.cast(self, argument, node)

    def to_text(self, value: Expr, kind: SqlType) -> Expr:
        """A cast to text, see ``casts``."""
        return casts.to_text(self, value, kind)

    def shown(self, value: Expr, kind: SqlType) -> Expr:
        """An output function, see ``casts``."""
        return casts.shown(self, value, kind)

    def call(self, node: Call, arguments: list[Expr]) -> Expr:
        """A function call, see ``scalar_functions``."""
        if node.function not in BYTEA and any(item.type.name == "bytea" for item in node.arguments):
            raise unsupported(f"function {node.function} of bytea")
        return super().call(node, arguments)

    def aggregate(self, node: AggregateCall, arguments: list[Expr], where: Expr | None, order: list[Expr]) -> Expr:
        """An aggregate, which may consist of several of DuckDB's."""
        build = AGGREGATES.get(node.function)
        if build is None:
            raise unsupported(f"aggregate {node.function}")
        return build(self, node, Surroundings(node.distinct, where, order), arguments)

    def window(self, node: WindowCall, arguments: list[Expr], where: Expr | None, over: Expr) -> Expr:
        """An aggregate over a window uses the same calls; ``windows`` has the other functions.

        Distances in RANGE frames are added to integers in a type that none of the sums overflows.
        """
        if node.mode == "range" and node.offsets and node.order_by[0].expression.type.name in INTEGERS:
            (key,) = over.args["order"].expressions
            key.set("this", exp.cast(operand(key.this), "int128"))
        build = AGGREGATES.get(node.function)
        if build is None:
            return windows.call(self, node, arguments, over)
        call = AggregateCall(node.function, node.arguments, node.type)
        return build(self, call, Surroundings(False, where, [], over), arguments)

    def unnest(self, items: Expr) -> Expr:
        """unnest(list)."""
        return function("unnest", items)

    def places(self, items: list[Expr]) -> Expr:
        """A list of the numbers from 1."""
        lengths = [function("coalesce", function("len", item), exp.Literal.number(0)) for item in items]
        last = lengths[0] if len(lengths) == 1 else function("greatest", *lengths)
        return function("generate_series", exp.Literal.number(1), last)

    def series(self, node: Unnest, alias: str) -> Expr | None:
        """A FROM item for generate_series, see ``set_functions``."""
        return set_functions.table(self, node, alias)

    def subquery_scalar(self, node: ScalarSubquery, select: Expr) -> Expr:
        """A scalar subquery. DuckDB itself raises on a second row (scalar_subquery_error_on_multiple_rows)."""
        return exp.Subquery(this=select)


def _has_float(relation: Relation) -> bool:
    return any(holds(column.type, lambda kind: kind.name in ("float4", "float8")) for column in relation.columns)


def _is_interval(kind: SqlType) -> bool:
    return kind.name == "interval"


def _checked(value: Expr, kind: SqlType) -> Expr:
    """A value, checked that the intervals in it fit in nanoseconds."""
    if not holds(kind, _is_interval):
        return value
    if kind.row is not None:
        own = kind
        return bound(value, lambda row: rows.unless_null(row, rows.struct(_fields_checked(row, own))))
    if kind.element is not None:
        element = kind.element
        if kind.name == "shaped":
            return array_shapes.over_items(value, lambda items: _checked(items, array(element)))
        return each(value, lambda item: _checked(item, element))
    return function("ms_interval_shown", value)


def _fields_checked(row: Expr, kind: SqlType) -> list[Expr]:
    return [_checked(value, each_kind) for _, each_kind, value in rows.fields(row, kind)]


def _interval(value: object) -> Expr:
    """An INTERVAL from (months, days, microseconds)."""
    assert isinstance(value, tuple)
    months, days, micros = value
    parts = [function(name, number(count)) for name, count in (("to_months", months), ("to_days", days))]
    return operand(
        exp.Add(
            this=exp.Add(this=parts[0], expression=parts[1]), expression=function("to_microseconds", number(micros))
        )
    )


def _written(value: object) -> str:
    """A value in the form that DuckDB reads."""
    if isinstance(value, datetime.datetime) and value.tzinfo is not None:
        return value.astimezone(datetime.UTC).isoformat(sep=" ")
    if isinstance(value, datetime.datetime):
        return value.isoformat(sep=" ")
    if isinstance(value, float) and math.isinf(value):
        return "infinity" if value > 0 else "-infinity"
    return digits(value) if isinstance(value, Decimal) else str(value)
