"""Analyses queries (analyze.c, parse_clause.c): the names in each clause."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from msgspec.structs import replace
from pglast.enums import GroupingSetKind, LimitOption, SetOperation

from planner.bind.conversion.resolution import UNKNOWN
from planner.bind.deparsing import AsWrittenError
from planner.bind.deparsing.analysis_scope import Place
from planner.bind.deparsing.calls import frame
from planner.bind.deparsing.coercion import agreed, as_text, coerce, outputs_of, typmod_of
from planner.bind.deparsing.expressions import analyse, condition, sorted_by
from planner.bind.deparsing.from_items import analyse_from, entries_of, merged_names
from planner.bind.deparsing.trees import (
    ColumnOf,
    Const,
    GroupingSet,
    Node,
    Query,
    SetTree,
    Source,
    Target,
    WithItem,
)
from planner.bind.lookup.dotted_names import names_of
from planner.bind.lookup.output_names import output_name
from planner.bind.state.with_names import Clause, Visible
from planner.bind.with_queries.references import read_first

_INT8: Final = 20
_SETS: Final = {
    SetOperation.SETOP_UNION: "UNION",
    SetOperation.SETOP_INTERSECT: "INTERSECT",
    SetOperation.SETOP_EXCEPT: "EXCEPT",
}
_MATERIALIZED: Final = {"Always": "MATERIALIZED", "Never": "NOT MATERIALIZED"}


def analyse_query(place: Place, node: Any, is_leaf: bool = False) -> Query:
    """Analyses any query, at a place of its own. In an input of a set operation, string literals keep the unknown
    type."""
    if type(node).__name__ != "SelectStmt" or node.intoClause is not None or node.lockingClause:
        raise AsWrittenError
    recursive, ctes = _with(place, node.withClause)
    if node.op != SetOperation.SETOP_NONE:
        found = _set_operation(place, node)
    elif node.valuesLists:
        found = _values(place, node, is_leaf)
    else:
        found = _select(place, node, is_leaf)
    offset, limit = (
        None if item is None else coerce(place, analyse(place, item), _INT8)
        for item in (node.limitOffset, node.limitCount)
    )
    ties = node.limitOption == LimitOption.LIMIT_OPTION_WITH_TIES
    return replace(found, recursive=recursive, ctes=ctes, offset=offset, limit=limit, ties=ties)


# --- WITH ------------------------------------------------------------------------------------------------------------


def _with(place: Place, clause: Any) -> tuple[bool, tuple[WithItem, ...]]:
    """The queries of WITH, which the rest of the query sees afterwards; RECURSIVE ones are ordered after those that
    they read."""
    if clause is None:
        return False, ()
    found: list[WithItem] = []
    items = read_first(place.binding, clause.ctes) if clause.recursive else clause.ctes
    names = Clause(place.ctes, (item.ctename for item in items))
    for item in items:
        if item.search_clause is not None or item.cycle_clause is not None:
            raise AsWrittenError
        given = names_of(item.aliascolnames)
        inside = Place(place.binding, place.analysis, place.is_kept, place.outer, ctes=Visible(names))
        if clause.recursive and item.ctequery.op == SetOperation.SETOP_UNION:  # the name means its first part's rows
            first = Place(place.binding, place.analysis, place.is_kept, place.outer, ctes=inside.ctes)
            columns = _renamed(outputs_of(analyse_query(first, item.ctequery.larg)), given)
            inside.ctes = inside.ctes.also(item.ctename, columns)
        query = analyse_query(inside, item.ctequery)
        names.bind(item.ctename, _renamed(outputs_of(query), given))
        words = _MATERIALIZED.get(item.ctematerialized.name.removeprefix("CTEMaterialize"), "")
        found.append(WithItem(item.ctename, given, words, query))
    place.ctes = Visible(names)
    return bool(clause.recursive), tuple(found)


def _renamed(columns: Sequence[ColumnOf], given: Sequence[str]) -> tuple[ColumnOf, ...]:
    names = (*given, *(item.name for item in columns[len(given) :]))
    return tuple(replace(item, name=name) for item, name in zip(columns, names, strict=True))


# --- SELECT ----------------------------------------------------------------------------------------------------------


def _select(place: Place, node: Any, is_leaf: bool) -> Query:
    items = analyse_from(place, node.fromClause or ())
    for item in node.windowClause or ():
        place.windows.append(frame(place, item))
    targets = [found for item in node.targetList or () for found in _targets(place, item)]
    if not is_leaf:
        targets = [Target(as_text(item.node), item.name) for item in targets]
    where = None if node.whereClause is None else condition(place, node.whereClause)
    having = None if node.havingClause is None else condition(place, node.havingClause)
    order = tuple(sorted_by(item, *_ordered(place, item.node, targets)) for item in node.sortClause or ())
    distinct_on = tuple(item for item in node.distinctClause or () if item is not None)
    return Query(
        targets=tuple(targets),
        sources=tuple(place.sources),
        items=items,
        merged=merged_names(place),
        distinct=node.distinctClause is not None and not distinct_on,
        distinct_on=tuple(_ordered(place, item, targets)[0] for item in distinct_on),
        where=where,
        grouped=tuple(_grouped(place, item, targets) for item in node.groupClause or ()),
        group_distinct=bool(node.groupDistinct),
        having=having,
        windows=tuple(place.windows),
        order=order,
    )


def _targets(place: Place, item: Any) -> list[Target]:
    """One item of a select list; for a star, its columns."""
    value = item.val
    if type(value).__name__ != "ColumnRef" or type(value.fields[-1]).__name__ != "A_Star":
        return [Target(analyse(place, value), item.name or output_name(value))]
    if len(value.fields) == 1:
        return [Target(node, name) for name, node in place.visible]
    level: Place | None = place
    (name,) = names_of(value.fields[:-1]) if len(value.fields) == 2 else ("",)
    while level is not None and name not in level.named:
        level = level.outer
    if level is None:
        raise AsWrittenError
    return [Target(node, label) for label, node in level.named[name]]


def _ordinal(node: Any) -> int | None:
    is_number = type(node).__name__ == "A_Const" and type(node.val).__name__ == "Integer"
    return (node.val.ival or 0) if is_number else None


def _simple(node: Any) -> str | None:
    """The name of a column reference without a qualifier, else None."""
    if type(node).__name__ != "ColumnRef" or len(node.fields) != 1 or type(node.fields[0]).__name__ != "String":
        return None
    return str(node.fields[0].sval)


def _ordered(place: Place, node: Any, targets: Sequence[Target]) -> tuple[Node, int]:
    """An item of ORDER BY or DISTINCT ON, by column number, column name or expression, with its number."""
    number, name = _ordinal(node), _simple(node)
    if number is not None:
        return targets[number - 1].node, number
    for index, item in enumerate(targets if name is not None else ()):
        if item.name == name:
            return item.node, index + 1
    return as_text(analyse(place, node)), 0


_KINDS: Final = {
    GroupingSetKind.GROUPING_SET_ROLLUP: "ROLLUP",
    GroupingSetKind.GROUPING_SET_CUBE: "CUBE",
    GroupingSetKind.GROUPING_SET_SETS: "GROUPING SETS",
    GroupingSetKind.GROUPING_SET_EMPTY: "",
}


def _grouped(place: Place, node: Any, targets: Sequence[Target]) -> GroupingSet | Node:
    """An item of GROUP BY, in which names of FROM columns come before names of the select list."""
    match type(node).__name__:
        case "GroupingSet":
            items = tuple(_grouped(place, item, targets) for item in node.content or ())
            return GroupingSet(_KINDS[node.kind], items)
        case "RowExpr":
            return GroupingSet("", tuple(_grouped(place, item, targets) for item in node.args))
    number, name = _ordinal(node), _simple(node)
    if number is not None:
        return targets[number - 1].node
    if name is not None and all(label != name for label, _ in place.visible):
        for item in targets:
            if item.name == name:
                return item.node
    return as_text(analyse(place, node))


# --- VALUES and set operations ---------------------------------------------------------------------------------------


def _values(place: Place, node: Any, is_leaf: bool) -> Query:
    rows = [[analyse(place, item) for item in row] for row in node.valuesLists]
    columns = []
    for index in range(len(rows[0])):
        cells = [row[index] for row in rows]
        oid = UNKNOWN if is_leaf and all(item.oid == UNKNOWN for item in cells) else agreed(place, cells)
        columns.append([item if oid == UNKNOWN else coerce(place, item, oid) for item in cells])
    known = []
    for index, cells in enumerate(columns):
        typmods = {typmod_of(item) for item in cells}
        typmod = typmods.pop() if len(typmods) == 1 else -1
        known.append(ColumnOf(f"column{index + 1}", cells[0].oid, typmod))
    names = tuple(item.name for item in known)
    rows_now = tuple(zip(*columns, strict=True))
    source = Source("values", "*VALUES*", tuple(known), names, rows=rows_now, has_alias=False)
    place.sources.append(source)
    place.named[source.name] = entries_of(source)
    targets = [Target(item, name) for name, item in entries_of(source)]
    order = tuple(sorted_by(item, *_ordered(place, item.node, targets)) for item in node.sortClause or ())
    return Query(targets=tuple(targets), sources=(source,), items=(source,), order=order)


def _set_operation(place: Place, node: Any) -> Query:
    tree, columns = _combined(place, node)
    order = []
    for item in node.sortClause or ():
        number, name = _ordinal(item.node), _simple(item.node)
        if number is None:
            number = next((index + 1 for index, target in enumerate(columns) if target.name == name), None)
        if number is None:
            raise AsWrittenError
        order.append(sorted_by(item, columns[number - 1].node, number))
    return Query(targets=tuple(columns), sets=tree, order=tuple(order))


def _sets(place: Place, node: Any) -> tuple[SetTree | Query, list[Target]]:
    """A tree of set operations, and its result columns; string literals get the other side's type."""
    is_query = node.op == SetOperation.SETOP_NONE or any((node.sortClause, node.limitCount, node.limitOffset))
    if is_query or (node.withClause is not None):
        query = analyse_query(
            Place(place.binding, place.analysis, place.is_kept, place.outer, ctes=place.ctes), node, is_leaf=True
        )
        return query, list(query.targets)
    return _combined(place, node)


def _combined(place: Place, node: Any) -> tuple[SetTree, list[Target]]:
    """One set operation of two sides."""
    (left, first), (right, second) = _sets(place, node.larg), _sets(place, node.rarg)
    kinds = [agreed(place, [one.node, other.node]) for one, other in zip(first, second, strict=True)]
    targets = []
    for one, other, oid in zip(first, second, kinds, strict=True):
        same = one.node.oid == other.node.oid and typmod_of(one.node) == typmod_of(other.node)
        targets.append(Target(Const("", oid, typmod_of(one.node) if same else -1), one.name))
    return SetTree(_SETS[node.op], bool(node.all), _typed(place, left, kinds), _typed(place, right, kinds)), targets


def _typed(place: Place, side: SetTree | Query, kinds: Sequence[int]) -> SetTree | Query:
    """An input whose string literals are read as the set operation's types."""
    if isinstance(side, SetTree):
        return side
    targets = []
    for item, oid in zip(side.targets, kinds, strict=True):
        is_open = item.node.oid == UNKNOWN
        targets.append(Target(coerce(place, item.node, oid), item.name) if is_open else item)
    return replace(side, targets=tuple(targets))
