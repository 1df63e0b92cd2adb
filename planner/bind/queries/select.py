"""SELECT, VALUES and set operations become relations.

Owns: the order of a query's clauses (FROM, WHERE, GROUP BY, HAVING, WINDOW, select list, DISTINCT, ORDER BY, LIMIT)
and what names mean in each. One query becomes, from the inside out::

    Limit(Sort(distinct Aggregate(Project(Unnest(Window(Filter(Aggregate(Filter(joins)))))))))
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import chain
from typing import Any, Final

from msgspec.structs import replace
from pglast.enums import SetOperation as SetKindNode

from catalog.values.errors import SqlError, unsupported
from catalog.values.opaque import check_equality
from catalog.values.types import INT8, SqlType
from planner.algebra.nodes import (
    Column,
    ColumnRef,
    Filter,
    Literal,
    Project,
    Relation,
    Scalar,
    Scan,
    SetKind,
    SetOperation,
    SortKey,
    Unnest,
    Values,
    Window,
    WindowCall,
)
from planner.algebra.walk import is_larger, used_columns, walk
from planner.bind.calls.aggregation.sort_order import direction
from planner.bind.calls.aggregation.window_calls import definitions
from planner.bind.conversion.coercion import common_kind, text_if_unknown
from planner.bind.conversion.query_columns import retyped
from planner.bind.from_items.from_clause import bind_from
from planner.bind.lookup.dotted_names import names_of
from planner.bind.queries.clauses import distinct_on, group_key, named_target, order_item, ordinal, simple_name, twins
from planner.bind.queries.grouping import Grouping
from planner.bind.queries.grouping_sets import grouping_sets
from planner.bind.queries.result_clauses import finish, first_of_each, sorted_and_limited
from planner.bind.queries.row_locking import lock, words_of
from planner.bind.queries.set_function_steps import drawn_by, steps
from planner.bind.scalars.expressions import bind_boolean, unify
from planner.bind.scalars.select_lists import Target, bind_targets, check_entries, item_nodes, typmod_of
from planner.bind.state.collected_calls import Groups, Sets, Windows
from planner.bind.state.environment import Binding, Environment, Level, Scope
from planner.bind.state.from_names import BoundQuery
from planner.bind.state.with_names import Visible
from planner.bind.with_queries.references import references
from planner.bind.with_queries.shared_queries import with_shared
from planner.bind.with_queries.with_clause import with_ctes
from planner.parse.parser import nested_too_deep
from planner.statements.statement import Output, Query

#: Nodes that a query may have, and that each character of its text adds.
_NODES: Final = 50_000
_NODES_OF_A_CHARACTER: Final = 4


def bind_query(binding: Binding, node: Any, shares: bool = False) -> Query:
    """A SELECT or VALUES statement; where it ``shares``, WITH queries that it reads several times may be shared."""
    binding.shares = shares and not _changes_rows(node)
    query = bind_select(Level(binding), node)
    _check_size(binding, query.relation)
    is_volatile = binding.volatile or binding.reads_time
    return Query(with_shared(binding, query.relation), query.outputs, is_volatile, binding.locking)


def _check_size(binding: Binding, relation: Relation) -> None:
    """Raises 54001 for a short text that means a huge query: what repeats its argument, nested in itself."""
    most = _NODES + _NODES_OF_A_CHARACTER * len(binding.raw.text)
    if is_larger(relation, most):
        raise nested_too_deep()


def _changes_rows(node: Any) -> bool:
    """Whether its WITH queries change rows, which may stand at a statement's top only."""
    clause = getattr(node, "withClause", None)
    return clause is not None and any(type(item.ctequery).__name__ != "SelectStmt" for item in clause.ctes)


def bind_select(level: Level, node: Any, resolve_unknown: bool = True) -> BoundQuery:
    """Any query: SELECT, VALUES, TABLE, a set operation, each with WITH, ORDER BY and LIMIT.

    Without ``resolve_unknown``, columns of bare strings, NULLs and parameters stay of type unknown for the caller to
    type.
    """
    if type(node).__name__ != "SelectStmt":
        raise unsupported("INSERT, UPDATE or DELETE as a query", "Run it as a statement.", level.binding.position(node))
    if node.intoClause is not None and node.intoClause is not level.binding.into:
        position = level.binding.position(node.intoClause.rel)
        raise SqlError("42601", "SELECT ... INTO is not allowed here", position=position)
    if node.withClause is not None:
        level = with_ctes(level, node.withClause, references(node) if level.binding.shares else None)
    if node.op != SetKindNode.SETOP_NONE:
        found = _set_operation(level, node)
        if node.lockingClause:
            lock(level.binding, node, Visible(), "UNION/INTERSECT/EXCEPT")
        return found
    if node.valuesLists:
        if node.lockingClause:
            raise SqlError("0A000", f"{words_of(node.lockingClause[0])} cannot be applied to VALUES")
        return _values(level, node, resolve_unknown)
    return _select(level, node, resolve_unknown)


# --- SELECT ----------------------------------------------------------------------------------------------------------


def _select(level: Level, node: Any, resolve_unknown: bool) -> BoundQuery:
    relation, scope = _from(level, node)
    env = Environment(level.binding, scope, "WHERE", level)
    if node.whereClause is not None:
        relation = Filter(relation, bind_boolean(env, node.whereClause, "WHERE"))
    groups, windows, series = Groups(), Windows(definitions(level.binding, node.windowClause)), Sets()
    inner = replace(env, clause="SELECT", groups=groups, windows=windows, sets=series)
    targets = bind_targets(inner, node.targetList)
    if resolve_unknown or node.distinctClause or node.sortClause:
        targets = [target.over(text_if_unknown(inner, target.scalar, target.node)) for target in targets]
    twice = twins(replace(env, sets=series), node.groupClause, targets, groups, windows)
    sets = grouping_sets(
        level.binding,
        node.groupClause,
        bool(node.groupDistinct),
        lambda item: group_key(replace(env, sets=series), item, targets, groups, windows),
    )
    having = (
        bind_boolean(replace(inner, clause="HAVING", windows=None, sets=None), node.havingClause, "HAVING")
        if node.havingClause is not None
        else None
    )
    order = [order_item(inner, item, targets) for item in node.sortClause or ()]
    check_entries(targets, [*chain(*(sets or ())), *(key.expression for key in order)])
    on = distinct_on(inner, node.distinctClause, targets, order)
    calls, unnested = windows.calls, series.calls
    if node.lockingClause:
        lock(level.binding, node, level.ctes, _obstacle(node, groups.is_used, bool(calls), bool(unnested)))
    if sets is not None or groups.is_used or having is not None:
        grouped = {column for keys in sets or () for key in keys for column in used_columns(key)}
        grouped |= {column for _, key in twice for column in used_columns(key)}
        for column, values in reversed(unnested):
            grouped |= used_columns(values) if column in grouped else set()
        for step in steps(item for item in unnested if item[0] in grouped):
            relation = Unnest(relation, step)
        if twice:
            relation = Project(relation, (*((column, ColumnRef(column)) for column in relation.columns), *twice))
        grouping = Grouping(level.binding, scope, relation, sets, groups)
        grouping.check_direct(groups.direct)
        targets = [target.over(grouping.over(target.scalar, target.node)) for target in targets]
        order = [replace(key, expression=grouping.over(key.expression)) for key in order]
        on = [grouping.over(scalar) for scalar in on]
        having = grouping.over(having) if having is not None else None
        calls = [(column, grouping.over(call)) for column, call in calls]
        unnested = [(column, grouping.over(values)) for column, values in unnested if column not in grouped]
        one_row = sets is None and not groups.is_used  # HAVING alone: one row, whatever there is
        relation = Values((), ((),)) if one_row else grouping.relation()
        if having is not None:
            relation = Filter(relation, having)
    if calls:
        relation = Window(relation, tuple(calls))
    if on and order and not drawn_by(unnested, [*on, *(key.expression for key in order)]):
        relation, on = first_of_each(level.binding, relation, tuple(on), tuple(order)), []
    places: tuple[Column, ...] = ()
    keeps_order = bool(order) and not drawn_by(unnested, [key.expression for key in order])
    is_stream = keeps_order and any(isinstance(item, Scan) and item.kind == "stream" for item in walk(relation))
    if keeps_order and not is_stream:  # rows of a stream are not numbered, and in a view of it ORDER BY means nothing
        places = (level.binding.column("row", INT8, False),)
        relation = Window(relation, ((places[0], WindowCall("row_number", (), INT8)),))
    for step in steps(unnested):
        place = level.binding.column("place", INT8, False) if keeps_order else None
        places += () if place is None else (place,)
        relation = Unnest(relation, step, place)
    return finish(level, node, scope, relation, targets, order, on, places)


def _obstacle(node: Any, aggregates: bool, windows: bool, sets: bool) -> str | None:
    """What of a query goes with no FOR UPDATE."""
    found = {
        "DISTINCT clause": node.distinctClause,
        "GROUP BY clause": node.groupClause,
        "HAVING clause": node.havingClause,
        "aggregate functions": aggregates,
        "window functions": windows,
        "set-returning functions in the target list": sets,
    }
    return next((words for words, there in found.items() if there), None)


def _from(level: Level, node: Any) -> tuple[Relation, Scope]:
    if node.fromClause:
        return bind_from(level, node.fromClause)
    return Values((), ((),)), Scope(outer=level.outer)


# --- VALUES and set operations ---------------------------------------------------------------------------------------


def check_widths(env: Environment, rows: Sequence[tuple[Any, ...]]) -> None:
    """Raises 42601 at the first row of VALUES that is not as long as the first one."""
    width = len(rows[0])
    for row in rows:
        if len(row) != width:
            raise env.error("42601", "VALUES lists must all be the same length", row[0])


def _values(level: Level, node: Any, resolve_unknown: bool) -> BoundQuery:
    env = Environment(level.binding, Scope(outer=level.outer), "VALUES", level)
    check_widths(env, node.valuesLists)
    width = len(node.valuesLists[0])
    rows = [[env.bind(item) for item in row] for row in node.valuesLists]
    for index in range(width):
        column = [row[index] for row in rows]
        if not resolve_unknown and all(item.type.name == "unknown" for item in column):
            continue
        for row, scalar in zip(
            rows, unify(env, column, "VALUES", [cells[index] for cells in node.valuesLists]), strict=True
        ):
            row[index] = scalar
    columns = tuple(level.binding.column(f"column{index + 1}", scalar.type) for index, scalar in enumerate(rows[0]))
    relation = Values(columns, tuple(map(tuple, rows)))
    outputs = (
        Output(column.name, column.type, _common_typmod(env, rows, node.valuesLists, place))
        for place, column in enumerate(columns)
    )
    return _ordered_by_outputs(level, node, relation, tuple(outputs))


def _common_typmod(env: Environment, rows: list[list[Scalar]], nodes: Sequence[tuple[Any, ...]], place: int) -> int:
    """The modifier that all cells of a column have."""
    first = typmod_of(env, rows[0][place], nodes[0][place])
    others = ((row[place], cells[place]) for row, cells in zip(rows[1:], nodes[1:], strict=True))
    return first if first != -1 and all(typmod_of(env, *item) == first for item in others) else -1


_SET_KINDS: Final[dict[Any, SetKind]] = {
    SetKindNode.SETOP_UNION: "union",
    SetKindNode.SETOP_INTERSECT: "intersect",
    SetKindNode.SETOP_EXCEPT: "except",
}


def _set_operation(level: Level, node: Any) -> BoundQuery:
    """A chain of set operations on the left is folded in a loop."""
    spine = [node]
    while _is_plain_set(spine[-1].larg):
        spine.append(spine[-1].larg)
    query = bind_select(level, spine[-1].larg, False)
    for item in reversed(spine):
        query = _combine(level, item, query, bind_select(level, item.rarg, False))
    return _ordered_by_outputs(level, node, query.relation, query.outputs)


def _is_plain_set(node: Any) -> bool:
    clauses = (node.sortClause, node.limitCount, node.limitOffset, node.withClause, node.lockingClause)
    return node.op != SetKindNode.SETOP_NONE and not any(clauses)


def _combine(level: Level, node: Any, left: BoundQuery, right: BoundQuery) -> BoundQuery:
    kind = _SET_KINDS[node.op]
    word = kind.upper()
    if len(left.outputs) != len(right.outputs):
        place = next(iter(getattr(node.rarg, "targetList", None) or ()), None)
        message = f"each {word} query must have the same number of columns"
        raise SqlError("42601", message, position=level.binding.position(place))

    left_nodes, right_nodes = (item_nodes(side, len(left.outputs)) for side in (node.larg, node.rarg))
    types = [
        common_kind(pair, word, lambda _, at=place: level.binding.start(at))  # type: ignore[misc]
        for pair, place in zip(
            zip(_scalars(left.relation), _scalars(right.relation), strict=True), right_nodes, strict=True
        )
    ]
    types = [
        _beside_null(kind, left.relation, right.relation, index) if kind.name == "bpchar" else kind
        for index, kind in enumerate(types)
    ]
    if not (kind == "union" and node.all):
        for found, place in zip(types, left_nodes, strict=True):
            check_equality(found, partial(level.binding.start, place))
    columns = tuple(level.binding.column(output.name, kind_) for output, kind_ in zip(left.outputs, types, strict=True))
    relation = SetOperation(
        kind,
        bool(node.all),
        retyped(level.binding, left.relation, types, left_nodes),
        retyped(level.binding, right.relation, types, right_nodes),
        columns,
    )
    outputs = tuple(
        Output(one.name, column.type, one.typmod if one.typmod == other.typmod and one.type == other.type else -1)
        for one, other, column in zip(left.outputs, right.outputs, columns, strict=True)
    )
    return BoundQuery(relation, outputs)


def _scalars(relation: Relation) -> list[Scalar]:
    """What a query's columns are."""
    if isinstance(relation, Project):
        return [scalar for _, scalar in relation.outputs]
    return [ColumnRef(column) for column in relation.columns]


def _beside_null(kind: SqlType, left: Relation, right: Relation, index: int) -> SqlType:
    """A char(n) beside NULL keeps its length, and so shows its blanks, though clients are told of no length."""
    for nulls, side in ((left, right), (right, left)):
        found = _scalars(nulls)[index]
        if isinstance(found, Literal) and found.value is None:
            return side.columns[index].type if side.columns[index].type.name == "bpchar" else kind
    return kind


def _of_values(node: Any) -> str | None:
    """The name of a column of VALUES, which has one itself, as definitions of views show."""
    if type(node).__name__ != "ColumnRef" or any(type(item).__name__ != "String" for item in node.fields):
        return None
    relation, *rest = names_of(node.fields)
    return rest[0] if relation == "*VALUES*" and len(rest) == 1 else None


def _ordered_by_outputs(level: Level, node: Any, relation: Relation, outputs: tuple[Output, ...]) -> BoundQuery:
    """ORDER BY over VALUES or a set operation: only output columns."""
    targets = [Target(output.name, ColumnRef(column)) for output, column in zip(outputs, relation.columns, strict=True)]
    keys = []
    for item in node.sortClause or ():
        name = simple_name(item.node) or (_of_values(item.node) if node.valuesLists else None)
        target = ordinal(level.binding, item.node, targets, "ORDER BY")
        if target is None and name is not None:
            target = named_target(level.binding, name, targets, "ORDER BY", item.node)
            if target is None:
                raise SqlError("42703", f'column "{name}" does not exist', position=level.binding.position(item.node))
        if target is None:
            detail = "Only result column names can be used, not expressions or functions."
            hint = "Add the expression/function to every SELECT, or move the UNION into a FROM clause."
            message = "invalid UNION/INTERSECT/EXCEPT ORDER BY clause"
            raise SqlError("0A000", message, detail, hint, level.binding.start(item.node))
        keys.append(SortKey(target.scalar, *direction(level.binding, item, target.scalar.type)))
    return BoundQuery(sorted_and_limited(level, node, relation, keys), outputs)


def into_of(node: Any) -> Any:
    """The INTO of a SELECT statement: it stands in the first query of a set operation."""
    while node.larg is not None:
        node = node.larg
    return node.intoClause
