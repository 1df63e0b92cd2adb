"""What of a query's rows SQL leaves open: their order, and where only some are taken, which.

The parse tree decides. As much is compared as is certain: all rows as a bag, and the keys of ORDER BY in their order,
where all of these are columns of the result.
"""

from __future__ import annotations

from enum import Enum, auto
from typing import Any, Final

from msgspec import Struct, field
from pglast import ast
from pglast.enums import SetOperation

from catalog.values.errors import SqlError
from planner.parse.parser import nodes, parse
from tests.sql.test_scripts import Outcome

#: Window functions of rows' places.
_PLACES: Final = frozenset(("row_number", "ntile", "lag", "lead", "first_value", "last_value", "nth_value"))


class Certain(Enum):
    """How much of rows is certain."""

    ORDER = auto()
    BAG = auto()
    COUNT = auto()
    COLUMNS = auto()


class Rows(Struct, frozen=True):
    """What a statement's rows have to be: ``query`` gives them, ``certain`` says how much of them is fixed."""

    query: ast.SelectStmt | None = None
    certain: Certain = Certain.BAG

    def are_same(self, here: Outcome, there: Outcome) -> bool:
        """Whether two outcomes are equal in what is certain."""
        if here == there:
            return True
        if here.error is not None or there.error is not None or here.columns != there.columns:
            return False
        if self.certain in (Certain.COLUMNS, Certain.COUNT):
            return self.certain is Certain.COLUMNS or len(here.rows) == len(there.rows)
        names = [name for name, _ in here.columns]
        keys = [] if self.query is None else _keys(self.query, names)
        if keys is None or here.tag != there.tag:
            return False
        in_order = [[tuple(row[key] for key in keys) for row in of.rows] for of in (here, there)]
        free = set() if self.query is None else _placed(self.query)
        fixed = [i for i, name in enumerate(names) if name not in free]
        bags = [sorted(repr([row[i] for i in fixed]) for row in of.rows) for of in (here, there)]
        return in_order[0] == in_order[1] and bags[0] == bags[1]


class Queries(Struct):
    """Remembers the queries of cursors and of prepared statements."""

    named: dict[str, Any] = field(default_factory=dict)

    def rows(self, statement: str) -> Rows:
        """Of a statement."""
        try:
            tree = parse(statement)[0].node
        except (SqlError, IndexError):
            return Rows()
        match tree:
            case ast.DeclareCursorStmt():
                self.named[str(tree.portalname)] = tree.query
            case ast.PrepareStmt():
                self.named[str(tree.name)] = tree.query
            case ast.FetchStmt():
                return _rows(self.named.get(str(tree.portalname)), is_cut=True)
            case ast.ExecuteStmt():
                return _rows(self.named.get(str(tree.name)), is_cut=False)
            case ast.SelectStmt():
                return _rows(tree, is_cut=False)
        return Rows()


def _rows(query: Any, *, is_cut: bool) -> Rows:
    if not isinstance(query, ast.SelectStmt):
        return Rows()
    if any(isinstance(node, ast.RangeTableSample) for node in nodes(query)):
        return Rows(query, Certain.COLUMNS)
    if query.sortClause is not None:
        return Rows(query, Certain.ORDER)
    is_cut = is_cut or any((query.limitCount, query.limitOffset, query.distinctClause and query.distinctClause[0]))
    return Rows(query, Certain.COUNT if is_cut and not _is_alone(query) else Certain.BAG)


def _placed(query: ast.SelectStmt) -> set[str]:
    """The names of columns that depend on the places of rows within a window, which ties in its order leave open."""
    items: tuple[Any, ...] = query.targetList or ()
    return {str(item.name or _called(call)) for item in items for call in nodes(item) if _called(call) in _PLACES}


def _called(node: Any) -> str | None:
    """The name of a window function where a node calls one."""
    if not isinstance(node, ast.FuncCall) or node.over is None:
        return None
    names: tuple[Any, ...] = node.funcname or ()
    return str(names[-1].sval)


def _is_alone(query: ast.SelectStmt) -> bool:
    """Whether nothing is read, so that the order of the rows is that in which they are written."""
    return query.fromClause is None and query.op == SetOperation.SETOP_NONE


def _keys(query: ast.SelectStmt, names: list[str]) -> list[int] | None:
    """The keys of ORDER BY as columns of the result; None where one is none."""
    keys = []
    for item in query.sortClause or ():
        match item.node:
            case ast.A_Const(val=ast.Integer(ival=int(place))) if place <= len(names):
                keys.append(place - 1)
            case ast.ColumnRef(fields=(*_, ast.String(sval=str(name)))) if names.count(name) == 1:
                keys.append(names.index(name))
            case _:
                return None
    return keys
