"""Queries with one part less: without a condition, a column, a side of a join or of a set operation.

Orders stay as they are, since the rows of a query may be determined by them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final

from pglast import ast, parse_sql
from pglast.stream import RawStream

#: Parts of nodes that can be left out.
_OPTIONAL: Final[dict[type, tuple[str, ...]]] = {
    ast.SelectStmt: (
        "whereClause", "havingClause", "distinctClause", "groupClause", "limitOffset", "limitCount", "withClause",
    ),
    ast.FuncCall: ("agg_filter",),
    ast.DeleteStmt: ("whereClause", "usingClause", "returningList"),
    ast.UpdateStmt: ("whereClause", "returningList"),
}  # fmt: skip
#: Lists of nodes, of which each item may be left out.
_LISTS: Final[dict[type, tuple[str, ...]]] = {
    ast.SelectStmt: ("targetList", "fromClause", "groupClause"),
    ast.UpdateStmt: ("targetList",),
    ast.WithClause: ("ctes",),
    ast.GroupingSet: ("content",),
}
#: Nodes that one of their own parts may stand for.
_INSTEAD: Final[dict[type, tuple[str, ...]]] = {
    ast.SelectStmt: ("larg", "rarg"),
    ast.JoinExpr: ("larg", "rarg"),
    ast.BoolExpr: ("args",),
    ast.CoalesceExpr: ("args",),
    ast.MinMaxExpr: ("args",),
    ast.CaseExpr: ("defresult",),
    ast.A_Expr: ("lexpr", "rexpr"),
    ast.FuncCall: ("args",),
    ast.GroupingSet: ("content",),
}

Edit = Callable[[], None]


def simpler(query: str) -> Iterator[str]:
    """The texts of simpler queries, the largest parts left out first."""
    number = 0
    while True:
        (raw,) = parse_sql(query)
        edit = next((edit for place, edit in enumerate(_edits(raw, "stmt")) if place == number), None)
        if edit is None:
            return
        edit()
        number += 1
        try:
            yield RawStream()(raw)
        except Exception:  # some trees have no text
            continue


def _edits(parent: Any, name: str, place: int | None = None) -> Iterator[Edit]:
    """What can be done with a node and everything below it."""
    value = getattr(parent, name)
    node = value if place is None else value[place]
    if isinstance(node, tuple):
        if place is None:
            for item in range(len(node)):
                yield from _edits(parent, name, item)
        else:  # a row of VALUES
            for item in node:
                for part in item if isinstance(item, ast.Node) else ():
                    yield from _edits(item, part)
        return
    if not isinstance(node, ast.Node):
        return
    for part in _INSTEAD.get(type(node), ()):
        found = getattr(node, part)
        for other in found if isinstance(found, tuple) else (found,):
            if other is not None:
                yield _replacing(parent, name, place, other)
    for part in _OPTIONAL.get(type(node), ()):
        if getattr(node, part, None) is not None:
            yield _setting(node, part, None)
    for part in _LISTS.get(type(node), ()):
        items = getattr(node, part, None) or ()
        for at in range(len(items)):
            if len(items) > 1:
                yield _setting(node, part, items[:at] + items[at + 1 :])
    for part in node:
        yield from _edits(node, part)


def _setting(node: Any, name: str, value: object) -> Edit:
    return lambda: setattr(node, name, value)


def _replacing(parent: Any, name: str, place: int | None, other: object) -> Edit:
    if place is None:
        return _setting(parent, name, other)
    items = getattr(parent, name)
    return _setting(parent, name, (*items[:place], other, *items[place + 1 :]))
