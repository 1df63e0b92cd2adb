"""Writes analysed queries as text (ruleutils.c, get_query_def): each clause on its own line, with PostgreSQL's line
breaks."""

from __future__ import annotations

from collections.abc import Sequence

from catalog.values.identifiers import quote_name
from planner.bind.deparsing.item_names import named, shows_columns
from planner.bind.deparsing.printer import JOIN, STANDARD, VARIABLE, Printer
from planner.bind.deparsing.trees import (
    Const,
    FromItem,
    GroupingSet,
    JoinItem,
    Merged,
    Node,
    Query,
    SetTree,
    Source,
    Target,
    Var,
)

_ANONYMOUS = "?column?"
#: The names that a view gives its columns; None if they are the query's own.
Names = Sequence[str] | None


def show_query(to: Printer, query: Query, names: Names = None, names_shown: bool = True) -> None:
    """Writes a query. ``names_shown``: whether its columns' names matter."""
    outer, indent = to.named, to.indent
    to.named = named(query, outer)
    if query.ctes:
        _with(to, query)
    if query.sets is not None:
        _sets(to, query.sets, names, names_shown)
    else:
        _select(to, query, names, names_shown)
    if query.order:
        to.line(" ORDER BY ", -STANDARD, STANDARD, 1)
        to.order(query.order, by_number=query.sets is not None)
    if query.offset is not None:
        to.line(" OFFSET ", -STANDARD, STANDARD)
        to.show(query.offset, False)
    if query.limit is not None:
        _limit(to, query.limit, query.ties)
    to.named, to.indent = outer, indent


def _limit(to: Printer, count: Node, ties: bool) -> None:
    to.line(" FETCH FIRST (" if ties else " LIMIT ", -STANDARD, STANDARD)
    if isinstance(count, Const) and count.text is None:
        to.add("ALL")
    else:
        to.show(count, False)
    to.add(") ROWS WITH TIES" if ties else "")


def _with(to: Printer, query: Query) -> None:
    to.indent += STANDARD
    to.add(" WITH RECURSIVE " if query.recursive else " WITH ")
    for index, item in enumerate(query.ctes):
        to.add(", " if index else "")
        columns = f"({', '.join(map(quote_name, item.columns))})" if item.columns else ""
        to.add(f"{quote_name(item.name)}{columns} AS {item.words + ' ' if item.words else ''}(")
        to.line("")
        show_query(to, item.query)
        to.line(")")
    to.indent -= STANDARD
    to.line("")


def _sets(to: Printer, side: SetTree | Query, names: Names, names_shown: bool) -> None:
    """UNION and similar; a different operation on the left and any operation on the right is put in parentheses."""
    if isinstance(side, Query):
        needs = bool(side.ctes or side.order or side.offset is not None or side.limit is not None)
        to.add("(" if needs else "")
        show_query(to, side, names, names_shown)
        to.add(")" if needs else "")
        return
    left, right = side.left, side.right
    needs = isinstance(left, SetTree) and (left.word, left.all) != (side.word, side.all)
    if needs:
        to.add("(")
        to.line("", STANDARD)
    _sets(to, left, names, names_shown)
    to.line(") " if needs else "", -STANDARD if needs else 0)
    to.add(f"{side.word} {'ALL ' if side.all else ''}")
    is_tree = isinstance(right, SetTree)
    to.add("(" if is_tree else "")
    to.line("", STANDARD if is_tree else 0)
    _sets(to, right, names, False)
    to.indent -= STANDARD if is_tree else 0
    if is_tree:
        to.line(")")


def _select(to: Printer, query: Query, names: Names, names_shown: bool) -> None:
    to.indent += STANDARD
    to.add(" ")
    if (source := _only_values(query, names)) is not None:
        _values(to, source)
        return
    to.add("SELECT")
    if query.distinct_on:
        to.add(" DISTINCT ON (")
        for index, node in enumerate(query.distinct_on):
            to.add(", " if index else "")
            to.sort_key(node)
        to.add(")")
    to.add(" DISTINCT" if query.distinct else "")
    _targets(to, query.targets, names, names_shown)
    _from(to, query.items)
    if query.where is not None:
        to.line(" WHERE ", -STANDARD, STANDARD, 1)
        to.show(query.where, False)
    if query.grouped:
        to.line(" GROUP BY ", -STANDARD, STANDARD, 1)
        to.add("DISTINCT " if query.group_distinct else "")
        for index, item in enumerate(query.grouped):
            to.add(", " if index else "")
            _grouped(to, item, True)
    if query.having is not None:
        to.line(" HAVING ", -STANDARD, STANDARD)
        to.show(query.having, False)
    for index, frame in enumerate(query.windows):
        if index:
            to.add(", ")
        else:
            to.line(" WINDOW ", -STANDARD, STANDARD, 1)
        to.add(f"{quote_name(frame.name or '')} AS ")
        to.window(frame)


def _grouped(to: Printer, item: GroupingSet | Node, bare: bool) -> None:
    """An item of GROUP BY; a single expression is ``bare`` except within GROUPING SETS (get_rule_groupingset)."""
    if not isinstance(item, GroupingSet):
        to.add("" if bare else "(")
        to.sort_key(item)
        to.add("" if bare else ")")
        return
    to.add(f"{item.word} (" if item.word == "GROUPING SETS" else f"{item.word}(")
    for index, part in enumerate(item.items):
        to.add(", " if index else "")
        _grouped(to, part, item.word != "GROUPING SETS")
    to.add(")")


def _only_values(query: Query, names: Names) -> Source | None:
    """The rows of a query that is only VALUES, if its columns have their default names (get_simple_values_rte)."""
    found = query.sources[0] if len(query.sources) == 1 and query.sources[0].kind == "values" else None
    if found is None or (names is not None and tuple(names) != found.real):
        return None
    return found


def _values(to: Printer, source: Source) -> None:
    to.add("VALUES ")
    for index, row in enumerate(source.rows):
        to.add(", (" if index else "(")
        for place, node in enumerate(row):
            to.add("," if place else "")
            to.show(node, False)
        to.add(")")


# --- lists that break into lines -------------------------------------------------------------------------------------


def _targets(to: Printer, targets: Sequence[Target], names: Names, names_shown: bool) -> None:
    """The select list, one item per line (get_target_list)."""
    was_long = False
    for index, item in enumerate(targets):
        to.add(", " if index else " ")
        shown = to.apart(lambda node=item.node: to.show(node))  # type: ignore[misc]
        natural = _ANONYMOUS if not names_shown else None
        if isinstance(item.node, Var | Merged):
            natural = _own_name(to, item.node)
        name = item.name if names is None else names[index]
        if name != natural:
            shown += f" AS {quote_name(name)}"
        if shown.startswith("\n"):
            to.text = to.text.rstrip(" ")
        elif index and (shown or was_long):
            to.line("", -STANDARD, STANDARD, VARIABLE)
        was_long = "\n" in shown.removeprefix("\n")
        to.add(shown)


def _own_name(to: Printer, node: Var | Merged) -> str:
    if isinstance(node, Merged):
        return node.name
    return to.named.columns.get(id(node.source), node.source.real)[node.place]


def _from(to: Printer, items: Sequence[FromItem]) -> None:
    for index, item in enumerate(items):
        if not index:
            to.line(" FROM ", -STANDARD, STANDARD, 2)
            _item(to, item)
            continue
        to.add(", ")
        shown = to.apart(lambda found=item: _item(to, found))  # type: ignore[misc]
        if shown.startswith("\n"):
            to.text = to.text.rstrip(" ")
        else:
            to.line("", -STANDARD, STANDARD, VARIABLE)
        to.add(shown)


def _item(to: Printer, item: FromItem) -> None:
    """An item of FROM (get_from_clause_item)."""
    if isinstance(item, JoinItem):
        _join(to, item)
        return
    name = to.named.names[id(item)]
    to.add("LATERAL " if item.lateral else "")
    match item.kind:
        case "subquery":
            assert item.query is not None
            to.add("(")
            show_query(to, item.query)
            to.add(")")
        case "values":
            to.add("(")
            _values(to, item)
            to.add(")")
        case "function":
            assert item.call is not None
            to.show(item.call)
            to.add(" WITH ORDINALITY" if item.ordinality else "")
        case "relation":
            hidden = item.relation in to.named.ctes
            to.add(f"{quote_name(item.schema)}." if hidden else item.prefix)
            to.add(quote_name(item.relation))
        case "cte":
            to.add(quote_name(item.relation))
    is_other = item.kind in ("function", "values") or (bool(item.relation) and name != item.relation)
    if item.has_alias or is_other or shows_columns(item, to.named.columns[id(item)], to.named.columns):
        to.add(f" {quote_name(name)}")
    _columns(to, item)


def _columns(to: Printer, source: Source) -> None:
    """Column aliases, if an item's columns have other names than their own."""
    columns = to.named.columns[id(source)]
    if shows_columns(source, columns, to.named.columns):
        to.add(f"({', '.join(map(quote_name, columns))})")


def _join(to: Printer, item: JoinItem) -> None:
    is_bare = not item.using and item.condition is None
    alias = item.alias
    to.add("(" if alias is not None and to.pretty else "")
    to.opened()
    _item(to, item.left)
    word = ("CROSS JOIN" if is_bare else "JOIN") if item.word == "INNER" else f"{item.word} JOIN"
    to.line(f" {word} ", -STANDARD, STANDARD, JOIN)
    needs = to.pretty and isinstance(item.right, JoinItem) and item.right.alias is None
    to.add("(" if needs else "")
    _item(to, item.right)
    to.add(")" if needs else "")
    if item.using:
        to.add(f" USING ({', '.join(map(quote_name, item.using))})")
        to.add(f" AS {quote_name(item.using_alias)}" if item.using_alias else "")
    elif item.condition is not None:
        to.add(" ON ")
        to.opened()
        to.show(item.condition, False)
        to.closed()
    elif item.word != "INNER":
        to.add(" ON TRUE")
    to.closed()
    if alias is not None:
        to.add(f"{')' if to.pretty else ''} {quote_name(to.named.names[id(alias)])}")
        _columns(to, alias)
