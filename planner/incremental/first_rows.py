"""The first row of each group of a stream's rows, as a grouping: DISTINCT ON, and row_number() where it is one.

    Filter(Window(R, n := row_number() OVER (PARTITION BY p ORDER BY o)), n = 1)
        =  the greatest row(o, R's columns) of each p for a descending order, the least for an ascending one

Rows that the order leaves equal are told apart by their columns, where PostgreSQL takes any. Only rows that have come
are compared, so the state has one row a group (thesis 4.2.2: a stream meets a grouping first).
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from typing import Any, Final

from catalog.errors import unsupported
from catalog.types import BOOL, DATE, INT4, INT8, TEXT, numeric, record
from planner.algebra import Aggregate, Filter, Project, Relation, SortKey, Window
from planner.expression import AggregateCall, Call, Column, ColumnRef, Literal, Scalar
from planner.pipelines import Kinds
from planner.rules import rewrite
from planner.rules.prune_columns import prune_columns
from planner.rules.support import Fresh, conjuncts, filtered
from planner.walk import transform, walk

_ONE: Final = Literal(1, INT8)
#: How a filter says of a row number that it is one.
_FIRST: Final = {"eq": 1, "le": 1, "lt": 2}
#: From here days are counted the other way round.
_DAY: Final = Literal(date(2000, 1, 1), DATE)
_SECONDS: Final = numeric(20, 6)


def first_rows(relation: Relation) -> Relation:
    """A plan whose streams' first rows are groupings. Raises 0A000 for an order that no row has."""
    kinds = Kinds()
    if not any(isinstance(node, Filter) and _number(node, kinds) is not None for node in walk(relation)):
        return relation
    relation = rewrite(relation, (prune_columns,))  # what nobody reads is not kept
    fresh, kinds = Fresh(relation), Kinds()

    def change(node: Any) -> Any:
        number = _number(node, kinds) if isinstance(node, Filter) else None
        return node if number is None else _grouped(node, number, fresh)

    changed: Relation = transform(relation, change)
    return changed


def _number(node: Filter, kinds: Kinds) -> Column | None:
    """The row number of which a filter over a stream's rows keeps the first."""
    window = node.input
    if not isinstance(window, Window) or len(window.calls) > 1 or kinds.of(window) != "stream":
        return None
    ((column, call),) = window.calls
    if call.function != "row_number" or not call.partition or kinds.of(window.input) != "stream":
        return None
    return column if any(_is_first(part, column) for part in conjuncts(node.predicate)) else None


def _is_first(part: Scalar, number: Column) -> bool:
    if not isinstance(part, Call) or len(part.arguments) != 2:
        return False
    column, value = part.arguments
    is_number = isinstance(column, ColumnRef) and column.column == number
    return is_number and isinstance(value, Literal) and _FIRST.get(part.function) == value.value


def _grouped(node: Filter, number: Column, fresh: Fresh) -> Relation:
    window = node.input
    assert isinstance(window, Window)
    ((_, call),) = window.calls
    keys = tuple((_key(item, fresh), item) for item in call.partition)
    by_key = {item.column: key for key, item in keys if isinstance(item, ColumnRef)}
    order = [key for key in call.order_by if key.expression not in call.partition]
    function, parts = _ordered(order)
    kept = (ColumnRef(column) for column in window.input.columns if column not in by_key)
    items = (*parts, *(item for item in kept if item not in parts))
    kind = record(*((f"f{place}", item.type) for place, item in enumerate(items, 1)))
    chosen = fresh.column("first_row", kind)
    grouped = Aggregate(window.input, keys, ((chosen, AggregateCall(function, (Call("row", items, kind),), kind)),))

    def value(column: Column) -> Scalar:
        if column == number:
            return _ONE
        if column in by_key:
            return ColumnRef(by_key[column])
        place = Literal(items.index(ColumnRef(column)) + 1, INT4)
        return Call("field", (ColumnRef(chosen), place), column.type)

    rows = Project(grouped, tuple((column, value(column)) for column in window.columns))
    return filtered(rows, (part for part in conjuncts(node.predicate) if not _is_first(part, number)))


def _key(item: Scalar, fresh: Fresh) -> Column:
    return fresh.copy(item.column) if isinstance(item, ColumnRef) else fresh.column("key", item.type)


def _ordered(order: Sequence[SortKey]) -> tuple[str, tuple[Scalar, ...]]:
    """The aggregate that finds the first row, and what it compares: greatest values first, or least ones."""
    for descending in sorted((True, False), key=lambda way: bool(order) and order[0].descending != way):
        values = [_compared(key, descending) for key in order]
        if None not in values:
            return ("max" if descending and order else "min"), tuple(part for parts in values for part in parts or ())
    raise unsupported(
        "the first rows of a stream in an order of texts or the like that both ascends and descends",
        "Let those of no number or time go one way.",
    )


def _compared(key: SortKey, descending: bool) -> tuple[Scalar, ...] | None:
    """What stands for a sort key where rows are compared, in which NULL is the greatest value of all; None where there
    is no such."""
    value = key.expression if key.descending == descending else _reversed(key.expression)
    if value is None:
        return None
    present = Call("is_not_null", (key.expression,), BOOL)
    return (value,) if key.nulls_first == descending else (present, value)


def _reversed(value: Scalar) -> Scalar | None:
    """A value whose order is the other way round; None for a type that has none."""
    kind = value.type
    match kind.name:
        case "int2" | "int4" | "int8":
            return Call("bitnot", (value,), kind)
        case "numeric":
            return Call("neg", (value,), kind)
        case "bool":
            return Call("not", (value,), kind)
        case "date":
            return Call("sub", (_DAY, value), INT4)
        case "timestamp" | "timestamptz":
            return Call("neg", (Call("extract", (Literal("epoch", TEXT), value), _SECONDS),), _SECONDS)
        case _:
            return None
