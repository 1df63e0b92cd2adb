"""Analysis of FROM (parse_clause.c, parse_relation.c): relations, subqueries, functions and joins with their
columns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from msgspec.structs import replace
from pglast.enums import JoinType

from catalog.system.own_objects import prefix
from planner.bind.conversion.resolution import category
from planner.bind.deparsing import AsWrittenError
from planner.bind.deparsing.analysis_scope import Named, Place, columns_of
from planner.bind.deparsing.coercion import agreed, coerce, outputs_of, typmod_of
from planner.bind.deparsing.expressions import analyse, condition
from planner.bind.deparsing.trees import (
    Call,
    ColumnOf,
    FromItem,
    JoinItem,
    Merged,
    Node,
    SessionValue,
    Source,
    Var,
    variables,
)
from planner.bind.lookup.dotted_names import names_of
from planner.bind.lookup.output_names import output_name
from planner.bind.lookup.relations import look_up

_INT8: Final = 20
_RECORD: Final = 2249
_WORDS: Final = {
    JoinType.JOIN_INNER: "INNER",
    JoinType.JOIN_LEFT: "LEFT",
    JoinType.JOIN_RIGHT: "RIGHT",
    JoinType.JOIN_FULL: "FULL",
}


def analyse_from(place: Place, nodes: Sequence[Any]) -> tuple[FromItem, ...]:
    """Analyses the items of FROM and adds their names to the place."""
    found = []
    for node in nodes:
        item, columns = _item(place, node)
        place.visible += columns
        found.append(item)
    return tuple(found)


def entries_of(source: Source) -> list[Named]:
    """An item's columns as expressions refer to them."""
    return [(item.name, Var(source, index, item.oid, item.typmod)) for index, item in enumerate(source.columns)]


def _item(place: Place, node: Any) -> tuple[FromItem, list[Named]]:
    """An item, and the columns that it offers without a qualifier."""
    match type(node).__name__:
        case "RangeVar":
            source = _named(place, node)
            return source, _known(place, source, node.relname if node.alias is None else source.name)
        case "RangeSubselect":
            source = _subquery(place, node)
        case "RangeFunction":
            source = _function(place, node)
        case "JoinExpr":
            return _join(place, node)
        case _:
            raise AsWrittenError
    return source, _known(place, source, source.name)


def _known(place: Place, source: Source, called: str) -> list[Named]:
    """An item's columns by the names that the text ``called`` them, whatever the relation's names are now."""
    columns = entries_of(source)
    if called in place.named:
        raise AsWrittenError
    place.named[called] = columns
    place.sources.append(source)
    return columns


def _aliases(node: Any, columns: Sequence[ColumnOf]) -> tuple[tuple[str, ...], tuple[ColumnOf, ...]]:
    """Column aliases, and the columns by these names."""
    given = names_of(node.alias.colnames) if node.alias is not None else ()
    labels = (*given, *(item.name for item in columns[len(given) :]))
    return given, tuple(ColumnOf(label, item.oid, item.typmod) for label, item in zip(labels, columns, strict=True))


def _named(place: Place, node: Any) -> Source:
    """A relation or a WITH query."""
    alias = None if node.alias is None else node.alias.aliasname
    if node.schemaname is None and (found := place.ctes.get(node.relname)) is not None:
        given, columns = _aliases(node, found)
        real = tuple(item.name for item in columns)
        return Source("cte", alias or node.relname, columns, real, alias is not None, given, node.relname)
    item = look_up(place.binding, node.relname, node.schemaname)
    if item is None or not node.inh:
        raise AsWrittenError
    known = columns_of(item)
    pairs = place.binding.context.reads.get(item.oid) or [(name, name) for name in known]
    if any(now not in known for _, now in pairs):
        raise AsWrittenError
    listed = [ColumnOf(old, known[now].oid, known[now].typmod) for old, now in pairs]
    given, columns = _aliases(node, listed)
    listed_now = {now for _, now in pairs}
    later = tuple(name for name in known if name not in listed_now) if place.binding.context.names is not None else ()
    return Source(
        "relation",
        alias or item.name,
        columns,
        (*(now for _, now in pairs), *later),
        alias is not None,
        given,
        item.name,
        schema=item.schema,
        prefix=prefix(item.schema),
    )


def _subquery(place: Place, node: Any) -> Source:
    # LATERAL sees the items before it; other items see only the outer levels.
    outer = place if node.lateral else place.outer
    inside = Place(place.binding, place.analysis, place.is_kept, outer, ctes=place.ctes)
    query = place.analysis.query(inside, node.subquery)
    given, columns = _aliases(node, outputs_of(query))
    name = "unnamed_subquery" if node.alias is None else node.alias.aliasname
    if node.alias is None:
        raise AsWrittenError
    real = tuple(item.name for item in columns)
    return Source("subquery", name, columns, real, True, given, query=query, lateral=bool(node.lateral))


def _function(place: Place, node: Any) -> Source:
    if len(node.functions) != 1 or node.coldeflist or node.functions[0][1]:
        raise AsWrittenError
    tree = node.functions[0][0]
    call = analyse(place, tree)
    if not isinstance(call, Call | SessionValue) or call.oid == _RECORD or _has_columns(place, call, tree):
        raise AsWrittenError
    alias = None if node.alias is None else node.alias.aliasname
    name = alias or output_name(tree)
    listed = [ColumnOf(name, call.oid)] + ([ColumnOf("ordinality", _INT8)] if node.ordinality else [])
    given, columns = _aliases(node, listed)
    own = set(map(id, place.sources))
    lateral = bool(node.lateral) or any(id(item.source) in own for item in variables(call))
    real = tuple(item.name for item in columns)
    return Source(
        "function", name, columns, real, alias is not None, given, call=call, lateral=lateral,
        ordinality=bool(node.ordinality),
    )  # fmt: skip


def _has_columns(place: Place, call: Node, tree: Any) -> bool:
    """Whether a function returns rows of several columns."""
    names = names_of(tree.funcname) if type(tree).__name__ == "FuncCall" else ()
    is_many = len(getattr(tree, "args", None) or ()) > 1 and names[-1:] == ("unnest",)
    return is_many or category(place.base(call.oid)) in ("C", "P") or call.oid >= 16384


# --- joins -----------------------------------------------------------------------------------------------------------


def _join(place: Place, node: Any) -> tuple[FromItem, list[Named]]:
    item, columns, merged = _joined(place, node)
    if node.join_using_alias is not None:
        item = replace(item, using_alias=node.join_using_alias.aliasname)
        place.named[item.using_alias] = merged
    if node.alias is None:
        return item, columns
    nodes = tuple(part for _, part in columns)
    if any(isinstance(part, Var) and len(part.source.real) > len(part.source.columns) for part in nodes):
        raise AsWrittenError  # the join has more columns now
    real = tuple(label for label, _ in columns)
    given, known = _aliases(node, [ColumnOf(label, part.oid, typmod_of(part)) for label, part in columns])
    source = Source("join", node.alias.aliasname, known, real, True, given, parts=nodes)
    return replace(item, alias=source), _known(place, source, source.name)


def _joined(place: Place, node: Any) -> tuple[JoinItem, list[Named], list[Named]]:
    """A join, the columns that it offers, and the columns that USING merges."""
    left, first = _item(place, node.larg)
    before = place.visible
    place.visible = [*before, *first]  # what LATERAL sees
    right, second = _item(place, node.rarg)
    word = _WORDS[node.jointype]
    if node.isNatural or node.usingClause:
        common = {name for name, _ in second}
        names = names_of(node.usingClause) or tuple(dict.fromkeys(name for name, _ in first if name in common))
        place.visible = before
        merged = [_merged(place, word, name, first, second) for name in names]
        rest = [item for item in (*first, *second) if item[0] not in names]
        for side in (left, right):
            _avoid(side, names)
        return JoinItem(word, left, right, names), [*merged, *rest], merged
    place.visible = [*first, *second]
    found = None if node.quals is None else condition(place, node.quals)
    place.visible = before
    return JoinItem(word, left, right, (), found), [*first, *second], []


def _merged(place: Place, word: str, name: str, first: Sequence[Named], second: Sequence[Named]) -> Named:
    """A column merged by USING: one side's column, unless the value may come from either side or is cast
    (buildMergedJoinVar)."""
    sides = []
    for side in (first, second):
        found = [node for label, node in side if label == name]
        if len(found) != 1:
            raise AsWrittenError
        sides.append(found[0])
        _call(found[0], name)
    oid = agreed(place, sides)
    left, right = (coerce(place, item, oid) for item in sides)
    typmod = typmod_of(left) if typmod_of(left) == typmod_of(right) else -1
    prefers_right = word == "RIGHT" or (word == "INNER" and not isinstance(left, Var | Merged))
    kept = right if prefers_right and (word == "RIGHT" or isinstance(right, Var | Merged)) else left
    is_one = word != "FULL" and isinstance(kept, Var | Merged) and kept.typmod == typmod
    merged = kept if is_one else Merged(name, oid, typmod)
    same = [parts for label, parts in place.merges if label == name and any(part in parts for part in sides)]
    for parts in same[:1]:
        parts += [*sides, merged]
    if not same:
        place.merges.append((name, [*sides, merged]))
    return name, merged


def _avoid(item: FromItem, names: Sequence[str]) -> None:
    """Keeps other columns in a join from having the names of its USING columns."""
    pending = [item]
    while pending:
        found = pending.pop()
        if isinstance(found, Source):
            found.avoided.update(names)
        else:
            pending += [found.left, found.right, *([] if found.alias is None else [found.alias])]


def _call(column: Node, name: str) -> None:
    """Gives a column the name that USING needs."""
    if not isinstance(column, Var):
        return
    source, place = column.source, column.place
    now = source.given[place] if place < len(source.given) else source.real[place]
    if source.kind == "join" and now != name:
        raise AsWrittenError  # an item within the join must have that name
    source.using[place] = name


def merged_names(place: Place) -> frozenset[str]:
    """The names of merged columns without a qualifier, in a query with such columns those of all USING clauses. All
    must differ."""
    if not any(isinstance(part, Merged) for _, parts in place.merges for part in parts):
        return frozenset()
    names = [name for name, _ in place.merges]
    if len(names) > len(set(names)):
        raise AsWrittenError  # one of them needs another name
    return frozenset(names)
