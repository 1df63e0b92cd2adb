"""The clauses after a query's select list: DISTINCT, DISTINCT ON, ORDER BY, LIMIT, OFFSET and FETCH ... WITH TIES.

Owns: the relations that these clauses become. DISTINCT ON and WITH TIES are windows and filters::

    DISTINCT ON (a) ... ORDER BY a, b        Filter(Window(row_number() over (partition by a order by a, b)), = 1)
    ORDER BY a FETCH FIRST 3 ROWS WITH TIES  Filter(Window(rank() over (order by a)), <= 3)
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, Final

from msgspec.structs import replace
from pglast.enums import LimitOption

from catalog.values.errors import SqlError, unsupported
from catalog.values.opaque import check_equality
from catalog.values.types import BOOL, INT8
from planner.algebra.construction import has_subquery
from planner.algebra.nodes import (
    Aggregate,
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
    Window,
    WindowCall,
)
from planner.algebra.walk import used_columns, walk
from planner.bind.calls.overloading.call_forms import is_fixed
from planner.bind.conversion.coercion import coerce
from planner.bind.conversion.requirements import required
from planner.bind.lookup.type_names import display
from planner.bind.scalars.select_lists import Target
from planner.bind.state.environment import Binding, Environment, Level, Scope
from planner.bind.state.from_names import BoundQuery

#: More rows than there are.
_MANY: Final = 1 << 62


def finish(
    level: Level,
    node: Any,
    scope: Scope,
    relation: Relation,
    targets: list[Target],
    order: list[SortKey],
    on: list[Scalar],
    places: Sequence[Column],
) -> BoundQuery:
    """The query over its rows. What only ORDER BY and DISTINCT ON (``on``) need is computed beside, and dropped.

    ``places`` are where a row is among those of ``relation`` before sets in the select list made several of one, and
    among these: PostgreSQL makes them of sorted rows, so they stay together and in order.
    """
    binding = level.binding
    outputs = [(_output_column(binding, target), target.scalar) for target in targets]
    shown = len(outputs)
    distinct = bool(node.distinctClause) and node.distinctClause[0] is None
    keys = []
    for key, item in zip(order, node.sortClause or (), strict=True):
        if distinct and not any(scalar == key.expression for _, scalar in outputs):
            message = "for SELECT DISTINCT, ORDER BY expressions must appear in select list"
            raise SqlError("42P10", message, position=binding.start(item.node))
        keys.append(replace(key, expression=_computed(binding, outputs, key.expression, "order")))
    partition = tuple(_computed(binding, outputs, scalar, "distinct") for scalar in on)
    within = [SortKey(_computed(binding, outputs, ColumnRef(column), column.name)) for column in places if not distinct]
    relation = Project(relation, tuple(outputs))
    if partition:
        relation = first_of_each(binding, relation, partition, tuple(keys))
    elif distinct:
        for target in targets:
            check_equality(target.scalar.type, partial(binding.start, target.node))
        relation, keys = _distinct(binding, relation, keys)
    relation = sorted_and_limited(level, node, relation, keys, scope, within)
    if shown < len(relation.columns):
        kept = relation.columns[:shown]
        relation = Project(relation, tuple((replace_id(binding, column), ColumnRef(column)) for column in kept))
    return BoundQuery(relation, tuple(target.output() for target in targets))


def _computed(binding: Binding, outputs: list[tuple[Column, Scalar]], scalar: Scalar, name: str) -> ColumnRef:
    """The output of an expression, added if it is none yet."""
    column = next((column for column, known in outputs if known == scalar), None)
    if column is None:
        column = binding.column(name, scalar.type)
        outputs.append((column, scalar))
    return ColumnRef(column)


def replace_id(binding: Binding, column: Column) -> Column:
    """A new column like another."""
    return binding.column(column.name, column.type, column.nullable)


def _output_column(binding: Binding, target: Target) -> Column:
    nullable = not (
        (isinstance(target.scalar, ColumnRef) and not target.scalar.column.nullable)
        or (isinstance(target.scalar, Literal) and target.scalar.value is not None)
    )
    return binding.column(target.name, target.scalar.type, nullable)


def _distinct(binding: Binding, relation: Relation, keys: list[SortKey]) -> tuple[Relation, list[SortKey]]:
    """SELECT DISTINCT is a grouping by all columns."""
    renamed = {column: replace_id(binding, column) for column in relation.columns}
    found = Aggregate(relation, tuple((new, ColumnRef(old)) for old, new in renamed.items()), ())
    moved = []
    for key in keys:
        assert isinstance(key.expression, ColumnRef)
        moved.append(replace(key, expression=ColumnRef(renamed[key.expression.column])))
    return found, moved


def first_of_each(
    binding: Binding, relation: Relation, partition: tuple[Scalar, ...], keys: tuple[SortKey, ...]
) -> Relation:
    """SELECT DISTINCT ON: the first row in the query's order of each group of equal values."""
    number = binding.column("number", INT8, False)
    call = WindowCall("row_number", (), INT8, partition, keys)
    return Filter(Window(relation, ((number, call),)), Call("eq", (ColumnRef(number), Literal(1, INT8)), BOOL))


def sorted_and_limited(
    level: Level,
    node: Any,
    relation: Relation,
    keys: list[SortKey],
    scope: Scope | None = None,
    within: Sequence[SortKey] = (),
) -> Relation:
    """ORDER BY, LIMIT and OFFSET; these may use columns of enclosing queries, and none of the query's ``scope``.

    ``within`` orders rows of equal ``keys``, which tie nevertheless.
    """
    count = _limit(level, node.limitCount, "LIMIT", scope)
    offset = _limit(level, node.limitOffset, "OFFSET", scope)
    is_null = type(node.limitCount).__name__ == "A_Const" and node.limitCount.isnull
    if node.limitOption == LimitOption.LIMIT_OPTION_WITH_TIES and is_null:
        raise SqlError("2201W", "row count cannot be null in FETCH FIRST ... WITH TIES clause")
    if node.limitOption == LimitOption.LIMIT_OPTION_WITH_TIES and count is not None:
        if not all(item is None or is_fixed(item) for item in (count, offset)):
            instead = "Give both as constants or parameters."
            raise unsupported("WITH TIES after a computed number of rows", instead, level.binding.position(node))
        count = _known(count, _MANY, "2201W", "LIMIT")
        offset = None if offset is None else _known(offset, 0, "2201X", "OFFSET")
        columns = relation.columns
        relation = _with_ties(level.binding, relation, keys, count, offset)
        relation = Sort(relation, (*keys, *within))
        return Project(relation, tuple((column, ColumnRef(column)) for column in columns))
    if keys:
        relation = Sort(relation, (*keys, *within))
    if count is not None and has_subquery(count):
        count = _known(count, _MANY, "2201W", "LIMIT")
    if offset is not None and has_subquery(offset):
        offset = _known(offset, 0, "2201X", "OFFSET")
    return Limit(relation, count, offset) if count is not None or offset is not None else relation


def _with_ties(
    binding: Binding, relation: Relation, keys: list[SortKey], count: Scalar, offset: Scalar | None
) -> Relation:
    """The first rows with all that tie with the last of them, from one of the skipped ones on."""
    rank, number = (binding.column(name, INT8, False) for name in ("rank", "number"))
    calls = tuple(
        (column, WindowCall(function, (), INT8, (), tuple(keys)))
        for column, function in ((rank, "rank"), (number, "row_number"))
    )
    last = count if offset is None else Call("add", (count, offset), INT8)
    found = Filter(Window(relation, calls), Call("le", (ColumnRef(rank), last), BOOL))
    return found if offset is None else Filter(found, Call("gt", (ColumnRef(number), offset), BOOL))


def _known(count: Scalar, default: int, sqlstate: str, clause: str) -> Scalar:
    """A number of rows, checked when the statement runs; NULL is none given."""
    if isinstance(count, Literal):
        return count
    positive = Call("ge", (count, Literal(0, INT8)), BOOL)
    checked = required(positive, count, sqlstate, f"{clause} must not be negative")
    return Call("coalesce", (checked, Literal(default, INT8)), INT8)


def _limit(level: Level, node: Any, clause: str, scope: Scope | None) -> Scalar | None:
    if node is None or (type(node).__name__ == "A_Const" and node.isnull):
        return None
    env = Environment(level.binding, scope or Scope(outer=level.outer), clause, level)
    scalar = env.bind(node)
    own = {column for entry in env.scope.entries for column in used_columns(entry.scalar)}
    for item in walk(scalar):
        if isinstance(item, ColumnRef) and item.column in own:
            position, _ = level.binding.origin(item)
            raise SqlError("42P10", f"argument of {clause} must not contain variables", position=position)
    found = coerce(level.binding, scalar, INT8, "assignment", node)
    if found is None:
        raise env.error_at("42804", f"argument of {clause} must be type bigint, not type {display(scalar.type)}", node)
    if isinstance(found, Literal) and isinstance(found.value, int) and found.value < 0:
        raise SqlError("2201W" if clause == "LIMIT" else "2201X", f"{clause} must not be negative")
    return None if isinstance(found, Literal) and found.value is None else found
