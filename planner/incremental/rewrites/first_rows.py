"""The first rows of a stream's rows, or of each group of them, as a grouping: DISTINCT ON, row_number() of which the
first ones are kept, and ORDER BY with LIMIT.

    Filter(Window(R, n := row_number() OVER (PARTITION BY p ORDER BY o)), n <= m)
    Limit(Sort(R, o), m)
        =  the m greatest row(o, R's columns) of each p for a descending order, the least for an ascending one

Values that an engine orders otherwise than PostgreSQL, such as documents, are compared by sort keys. Rows that the
order leaves equal are told apart by their columns, where PostgreSQL takes any. Only rows that have come are compared,
so the state has m rows a group (thesis 4.2.2: a stream meets a grouping first).
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from catalog.values.errors import unsupported
from catalog.values.types import BOOL, DATE, INT4, INT8, TEXT, array, numeric, record
from planner.algebra.construction import Fresh, conjuncts
from planner.algebra.nodes import (
    Aggregate,
    AggregateCall,
    Call,
    Column,
    ColumnRef,
    Filter,
    Limit,
    Literal,
    Project,
    Relation,
    Scalar,
    Sort,
    SortKey,
    Unnest,
    Window,
    WindowCall,
)
from planner.algebra.walk import free_columns, transform, walk
from planner.incremental.properties import Kinds
from planner.incremental.rewrites.orders import below_projections
from planner.lowering.orders import by_keys
from planner.lowering.outer_values import has_equal_values
from planner.rules import rewrite
from planner.rules.projections.prune_columns import prune_columns

#: As many rows of a group are kept in one value of its state.
_MOST: Final = 1000
#: From here days are counted the other way round.
_DAY: Final = Literal(date(2000, 1, 1), DATE)
_SECONDS: Final = numeric(20, 6)


class _Wanted(Struct, frozen=True):
    """So many first rows of each group, with their ``number`` in it, if anybody reads that."""

    relation: Relation
    partition: tuple[Scalar, ...]
    order: tuple[SortKey, ...]
    count: int
    number: Column | None = None


def first_rows(relation: Relation) -> Relation:
    """A plan whose streams' first rows are groupings. Raises 0A000 for an order that no row has."""
    kinds = Kinds()
    places = sum(_wanted(node, kinds) is not None for node in walk(relation))
    if not places:
        return relation
    if places == 1:  # several may be those of one query of WITH, which are to be the same rows also among equals
        relation = rewrite(relation, (prune_columns,))  # unused columns are not kept
    fresh, kinds = Fresh(relation), Kinds()
    changed: Relation = transform(relation, lambda node: _changed(node, kinds, fresh))
    return changed


def _changed(node: Any, kinds: Kinds, fresh: Fresh) -> Any:
    wanted = _wanted(node, kinds)
    if wanted is None:
        return node
    rows = _grouped(wanted, fresh)
    if isinstance(node, Filter):
        return replace(node, input=rows)
    wanted_rows = wanted.relation
    return transform(node, lambda item: rows if item is wanted_rows else item)


def _wanted(node: Any, kinds: Kinds) -> _Wanted | None:
    """What a filter or a limit wants of a stream's rows, which are the same for all rows of other relations."""
    found = None
    if isinstance(node, Filter):
        found = _of_filter(node)
    elif isinstance(node, Limit):
        found = _of_limit(node)
    if found is None or not 0 < found.count <= _MOST or free_columns(found.relation):
        return None
    return found if kinds.of(found.relation) == kinds.of(node) == "stream" else None


def _of_filter(node: Filter) -> _Wanted | None:
    match node.input:
        case Window(input=below, calls=((number, WindowCall(function="row_number") as call),)):
            counts = [count for part in conjuncts(node.predicate) if (count := _bound(part, number)) is not None]
            return _Wanted(below, call.partition, call.order_by, min(counts, default=0), number)
        case _:
            return None


def _of_limit(node: Limit) -> _Wanted | None:
    below = below_projections(node.input)
    count, passed = _number(node.count), 0 if node.offset is None else _number(node.offset)
    if count is None or passed is None or not isinstance(below, Sort):
        return None
    return _Wanted(below.input, (), below.keys, count + passed)


def _bound(part: Scalar, number: Column) -> int | None:
    """The greatest row number for which a condition holds."""
    match part:
        case Call(function="eq" | "le" | "lt" as function, arguments=(ColumnRef(column=column), value)):
            found = _number(value)
            return None if found is None or column != number else found - (function == "lt")
        case _:
            return None


def _number(scalar: Scalar | None) -> int | None:
    """A constant's value."""
    return scalar.value if isinstance(scalar, Literal) and isinstance(scalar.value, int) else None


def _grouped(wanted: _Wanted, fresh: Fresh) -> Relation:
    """The relation's first rows, beside their numbers."""
    below = wanted.relation
    keys = tuple((_key(item, fresh), item) for item in wanted.partition)
    by_key = {item.column: key for key, item in keys if isinstance(item, ColumnRef) and not has_equal_values(item.type)}
    order = [by_keys(key, fresh) for key in wanted.order if key.expression not in wanted.partition]
    function, parts = _ordered(order)
    kept = (ColumnRef(column) for column in below.columns if column not in by_key)
    items: tuple[Scalar, ...] = (*parts, *(item for item in kept if item not in parts))
    items = items or (Literal(True, BOOL),)  # files hold no rows without columns
    kind = record(*((f"f{place}", item.type) for place, item in enumerate(items, 1)))
    row = Call("row", items, kind)
    first, rows = fresh.column("first_row", kind), fresh.column("first_rows", array(kind))
    found: Relation
    if wanted.count == 1 and keys:  # without keys there is a group, though there may be no row
        found = Aggregate(below, keys, ((first, AggregateCall(function, (row,), kind)),))
    else:
        gathered = AggregateCall(f"{function}_rows", (row, Literal(wanted.count, INT8)), rows.type)
        ordinality = wanted.number or fresh.column("number", INT8, False)
        found = Unnest(Aggregate(below, keys, ((rows, gathered),)), ((first, ColumnRef(rows)),), ordinality)

    def value(column: Column) -> Scalar:
        if column in by_key:
            return ColumnRef(by_key[column])
        place = Literal(items.index(ColumnRef(column)) + 1, INT4)
        return Call("field", (ColumnRef(first), place), column.type)

    outputs = [(column, value(column)) for column in below.columns]
    if wanted.number is not None:
        outputs.append((wanted.number, ColumnRef(wanted.number) if isinstance(found, Unnest) else Literal(1, INT8)))
    return Project(found, tuple(outputs))


def _key(item: Scalar, fresh: Fresh) -> Column:
    return fresh.copy(item.column) if isinstance(item, ColumnRef) else fresh.column("key", item.type)


def _ordered(order: Sequence[SortKey]) -> tuple[str, tuple[Scalar, ...]]:
    """The aggregate that finds the first row, and what it compares: greatest values first, or least ones."""
    for descending in sorted((True, False), key=lambda way: bool(order) and order[0].descending != way):
        values = [_compared(key, descending) for key in order]
        if None not in values:
            return ("max" if descending and order else "min"), tuple(part for parts in values for part in parts or ())
    raise unsupported(
        "the first rows of a stream ordered by texts in both directions",
        "Order by all columns that are not numbers or times in one direction.",
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
