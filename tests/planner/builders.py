"""Algebra by hand: short spellings for tests of rules, pipelines and programs."""

from __future__ import annotations

from decimal import Decimal
from itertools import count
from typing import Any

from catalog.values.types import BOOL, INT4, INT8, QUOTIENT, SqlType, array, numeric
from planner.algebra.nodes import (
    Aggregate,
    AggregateCall,
    Call,
    Column,
    ColumnRef,
    Exists,
    Filter,
    InSubquery,
    Join,
    JoinKind,
    Limit,
    Literal,
    Project,
    Relation,
    Scalar,
    ScalarSubquery,
    Scan,
    SetOperation,
    Sort,
    SortKey,
    Values,
    Window,
    WindowCall,
)
from planner.statements.statement import Output, Query

_ids = count(1)
_COMPARISONS = ("eq", "ne", "lt", "le", "gt", "ge", "and", "or", "not", "is_null", "is_not_null")


def fresh(name: str, type_: SqlType = INT4, nullable: bool = True) -> Column:
    """A new column."""
    return Column(next(_ids), name, type_, nullable)


class Leaf:
    """A scan with its columns as attributes: ``t.k`` is a reference."""

    def __init__(self, kind: Any, name: str, columns: str | dict[str, SqlType], oid: int, not_null: str = "") -> None:
        types = dict.fromkeys(columns.split(), INT4) if isinstance(columns, str) else columns
        produced = tuple(fresh(item, type_, item not in not_null.split()) for item, type_ in types.items())
        self.scan = Scan(oid, name, kind, produced, tuple(types))

    def __getattr__(self, name: str) -> ColumnRef:
        return ColumnRef(self.scan.columns[self.scan.sources.index(name)])


def oid_of(name: str) -> int:
    """A fixed oid for a name."""
    return 16384 + sum(ord(letter) * (place + 1) for place, letter in enumerate(name))


def table(name: str, columns: str | dict[str, SqlType], not_null: str = "") -> Leaf:
    """A table's scan."""
    return Leaf("table", name, columns, oid_of(name), not_null)


def stream(name: str, columns: str | dict[str, SqlType], not_null: str = "") -> Leaf:
    """A stream's scan."""
    return Leaf("stream", name, columns, oid_of(name), not_null)


def lit(value: Any, type_: SqlType | None = None) -> Literal:
    """A literal: int4, boolean or a numeric with its digits, unless a type is given."""
    if type_ is None and isinstance(value, Decimal):
        exponent = value.as_tuple().exponent
        assert isinstance(exponent, int)
        type_ = numeric(len(value.as_tuple().digits), -exponent)
    return Literal(value, type_ or (BOOL if isinstance(value, bool) else INT4))


def call(function: str, *arguments: Any, type_: SqlType | None = None) -> Call:
    """A call; comparisons are boolean, other results have the first argument's type."""
    items = tuple(item if not isinstance(item, int | Decimal) else lit(item) for item in arguments)
    return Call(function, items, type_ or (BOOL if function in _COMPARISONS else items[0].type))


def eq(left: Any, right: Any) -> Call:
    return call("eq", left, right)


def both(*parts: Scalar) -> Scalar:
    return Call("and", parts, BOOL)


def either(*parts: Scalar) -> Scalar:
    return Call("or", parts, BOOL)


def negate(part: Scalar) -> Scalar:
    return Call("not", (part,), BOOL)


def where(relation: Any, predicate: Scalar) -> Filter:
    return Filter(rel(relation), predicate)


def rel(item: Any) -> Relation:
    return item.scan if isinstance(item, Leaf) else item


def cross(left: Any, right: Any) -> Join:
    return Join("inner", rel(left), rel(right), None)


def join(kind: JoinKind, left: Any, right: Any, predicate: Scalar | None) -> Join:
    return Join(kind, rel(left), rel(right), predicate)


def project(relation: Any, **outputs: Scalar) -> Project:
    return Project(rel(relation), tuple((fresh(name, value.type), value) for name, value in outputs.items()))


def agg(function: str, *arguments: Any, type_: SqlType | None = None, **more: Any) -> AggregateCall:
    """An aggregate call with PostgreSQL's result type."""
    quotient = SqlType("numeric", QUOTIENT)
    default = {"count": INT8, "avg": quotient, "var_samp": quotient, "var_pop": quotient}.get(function)
    if default is None:
        kind = arguments[0].type
        default = INT8 if function == "sum" and kind.name in ("int2", "int4") else kind
        if function == "sum" and kind.name in ("int8", "numeric"):
            default = numeric(38, kind.scale if kind.name == "numeric" else 0)
    return AggregateCall(function, tuple(arguments), type_ or default, **more)


def group(relation: Any, keys: dict[str, Scalar] | None = None, **aggregates: AggregateCall) -> Aggregate:
    """An Aggregate; unnamed keys get the name of their column."""
    return Aggregate(
        rel(relation),
        tuple((fresh(name, value.type), value) for name, value in (keys or {}).items()),
        tuple((fresh(name, item.type), item) for name, item in aggregates.items()),
    )


def ref(relation: Relation, name: str) -> ColumnRef:
    """A reference to a relation's column by name."""
    return ColumnRef(next(column for column in relation.columns if column.name == name))


def scalar(relation: Relation) -> ScalarSubquery:
    return ScalarSubquery(relation)


def exists(relation: Any) -> Exists:
    return Exists(rel(relation))


def member(argument: Scalar, relation: Relation) -> InSubquery:
    return InSubquery(argument, relation)


def order(relation: Any, *keys: Scalar) -> Sort:
    return Sort(rel(relation), tuple(SortKey(key) for key in keys))


def limit(relation: Any, rows: int) -> Limit:
    return Limit(rel(relation), lit(rows), None)


def union(kind: Any, all_: bool, left: Any, right: Any) -> SetOperation:
    columns = tuple(fresh(column.name, column.type) for column in rel(left).columns)
    return SetOperation(kind, all_, rel(left), rel(right), columns)


def values(names: str, *rows: tuple[Any, ...]) -> Values:
    columns = tuple(fresh(name) for name in names.split())
    return Values(columns, tuple(tuple(lit(item) for item in row) for row in rows))


def in_list(value: Scalar, **more: Any) -> AggregateCall:
    return agg("array_agg", value, type_=array(value.type), **more)


def numbered(relation: Relation, **calls: WindowCall) -> Relation:
    return Window(relation, tuple((fresh(name, item.type), item) for name, item in calls.items()))


def query(relation: Relation) -> Query:
    """The relation as a bound query."""
    return Query(relation, tuple(Output(column.name, column.type) for column in relation.columns))
