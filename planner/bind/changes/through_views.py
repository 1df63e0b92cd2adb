"""Views through which rows are changed: those that show rows of one table as they are, be it through other views.

Owns: which views these are (55000 for all others), what their columns are of the table's rows, and the table's columns
that a statement means by theirs. A change becomes one of the table, of the rows that the view shows.
https://www.postgresql.org/docs/15/sql-createview.html#SQL-CREATEVIEW-UPDATABLE-VIEWS
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

from msgspec import Struct
from pglast import ast
from pglast.enums import SetOperation

from catalog.catalog import Catalog
from catalog.errors import SqlError, unsupported
from catalog.objects import CatalogObject, Table, View
from planner.algebra import Filter, Relation, Scan
from planner.bind.context import Binding, Context
from planner.bind.environment import Environment, Groups, Sets, Windows
from planner.bind.expressions import bind_boolean
from planner.bind.levels import Level, renamed
from planner.bind.relations import find_object
from planner.bind.scope import Entry, Scope, source_of
from planner.bind.select import subquery_binder
from planner.bind.sources import in_view, labels_of, scan_object
from planner.bind.targets import Target, bind_targets
from planner.expression import Column, ColumnRef, Scalar
from planner.parse import Raw
from planner.walk import replace_columns

#: What a view's query must not have, and what PostgreSQL calls it.
_CLAUSES: Final = (
    ("distinctClause", "DISTINCT"),
    ("groupClause", "GROUP BY"),
    ("havingClause", "HAVING"),
    ("withClause", "WITH"),
    ("limitCount", "LIMIT or OFFSET"),
    ("limitOffset", "LIMIT or OFFSET"),
)
#: What a view's owner needs of what the view reads.
_LETTERS: Final = {"insert into": "a", "update": "w", "delete from": "d"}
_SINGLE: Final = "Views that do not select from a single table or view are not automatically updatable."


class Through(Struct, frozen=True):
    """A view over one table's rows: ``names[i]`` is what ``values[i]`` is called, an expression over the ``scan``.

    ``predicates`` hold of the rows that it shows.
    """

    view: View
    table: Table
    scan: Scan
    names: tuple[str, ...]
    values: tuple[Scalar, ...]
    typmods: tuple[int, ...]
    predicates: tuple[Scalar, ...] = ()

    def shown(self, scan: Scan) -> Relation:
        """The rows of the table's scan that the view shows."""
        relation: Relation = scan
        for predicate in self.predicates:
            relation = Filter(relation, predicate)
        return relation

    def scope(self, row: Sequence[Column], alias: Any, called: str | None = None) -> Scope:
        """The view's names for a row of the table; a text may have ``called`` the view otherwise."""
        over: dict[Column, Scalar] = {old: ColumnRef(new) for old, new in zip(self.scan.columns, row, strict=False)}
        entries = [
            Entry(name, replace_columns(value, over), self.view.oid, place, typmod)
            for place, (name, value, typmod) in enumerate(zip(self.names, self.values, self.typmods, strict=True), 1)
        ]
        name = (called or self.view.name) if alias is None else alias.aliasname
        return source_of(name, entries, self.view.schema if alias is None else None)

    def indexes(self, binding: Binding, items: tuple[Any, ...] | None, width: int) -> list[int]:
        """Places of the table's columns that an INSERT of so many values means. Raises 42703, 42701, 42601, 0A000."""
        names = [item.name for item in items] if items else self.names[:width]
        places = [binding.position(item) for item in items] if items else [None] * len(names)
        found = [self._index(name, "insert into", place) for name, place in zip(names, places, strict=True)]
        for number, (name, place) in enumerate(zip(names, places, strict=True)):
            if name in names[:number]:
                raise SqlError("42701", f'column "{name}" specified more than once', position=place)
            if found[number] in found[:number]:
                column = self.table.columns[found[number]].name
                raise SqlError("42601", f'multiple assignments to same column "{column}"')
        if items and any(item.indirection for item in items):
            raise unsupported("a part of a view's column as target", "Change the table.", places[0])
        return found

    def assigned(self, binding: Binding, items: tuple[Any, ...]) -> tuple[Any, ...]:
        """A SET list by the names of the table's columns. DEFAULT is the view's, which is NULL.

        Raises 42703 and 0A000.
        """
        found = []
        for item in items:
            name = self.table.columns[self._index(item.name, "update", binding.position(item))].name
            value = _without_default(item.val)
            found.append(ast.ResTarget(name=name, indirection=item.indirection, val=value, location=item.location))
        return tuple(found)

    def _index(self, name: str, verb: str, position: int | None) -> int:
        if name not in self.names:
            message = f'column "{name}" of relation "{self.view.name}" does not exist'
            raise SqlError("42703", message, position=position)
        value = self.values[self.names.index(name)]
        if not isinstance(value, ColumnRef):
            detail = "View columns that are not columns of their base relation are not updatable."
            raise SqlError("0A000", f'cannot {verb} column "{name}" of view "{self.view.name}"', detail)
        return self.scan.columns.index(value.column)


def _without_default(node: Any) -> Any:
    """An assigned value with NULL for DEFAULT, be it one of a row's."""
    match type(node).__name__:
        case "SetToDefault":
            return ast.A_Const(isnull=True)
        case "MultiAssignRef" if type(node.source).__name__ == "RowExpr":
            values = tuple(map(_without_default, node.source.args))
            row = ast.RowExpr(args=values, row_format=node.source.row_format, location=node.source.location)
            return ast.MultiAssignRef(source=row, colno=node.colno, ncolumns=node.ncolumns)
        case _:
            return node


def through_view(binding: Binding, node: Any, verb: str) -> Through | None:
    """The ordinary view that a change's target names; None where it is none. Raises 55000 and 0A000."""
    found = find_object(binding, node)
    if not isinstance(found, View) or found.continuous:
        return None
    if binding.reader is not None:
        hint = "Change the table."
        raise unsupported("a change through a view by who is no superuser", hint, binding.position(node))
    return _through(binding, found, verb)


def changed_places(catalog: Catalog, view: View) -> Iterator[int]:
    """Columns of a view, from 1 on, through which its table's are changed, behind 0 where rows are at all."""
    if view.continuous:
        return
    try:
        found = _through(Binding(Raw(None, "", 0), Context(catalog)), view, "delete from")
    except SqlError:
        return
    yield 0
    yield from (place for place, value in enumerate(found.values, 1) if isinstance(value, ColumnRef))


def _through(binding: Binding, view: View, verb: str) -> Through:
    binding.depends_on[view.oid] = None
    labels = labels_of(binding, view.oid, tuple(column.name for column in view.columns))
    with in_view(binding, view) as query:
        item = _single(query, view, verb)
        below = find_object(binding, item)
        binding.need(below.oid, _LETTERS[verb])
        table, scan, scope, predicates = _below(binding, below, item, view, verb)
        scope = renamed(binding, scope, item.alias, item)
        env = Environment(binding, scope, "WHERE", subquery_binder(Level(binding)))
        if query.whereClause is not None:
            predicates = (*predicates, bind_boolean(env, query.whereClause, "WHERE"))
        targets = _targets(env, query, view, verb)
    shown = [targets[place] for _, place in labels]
    values, typmods = tuple(target.scalar for target in shown), tuple(target.typmod for target in shown)
    return Through(view, table, scan, tuple(name for name, _ in labels), values, typmods, predicates)


def _below(
    binding: Binding, found: CatalogObject, item: Any, view: View, verb: str
) -> tuple[Table, Scan, Scope, tuple[Scalar, ...]]:
    """What a view reads: the table, its scan, the names that the view's query sees, and what holds of the rows."""
    alias = None if item.alias is None else item.alias.aliasname
    if isinstance(found, View) and not found.continuous:
        inner = _through(binding, found, verb)
        return inner.table, inner.scan, inner.scope(inner.scan.columns, item.alias, item.relname), inner.predicates
    if not isinstance(found, Table):
        raise _refused(view, verb, _SINGLE)
    binding.depends_on[found.oid] = None
    scan, scope = scan_object(binding, found, alias, False, item.relname)
    return found, scan, scope, ()


def _single(query: Any, view: View, verb: str) -> Any:
    """The one item of FROM. Raises 55000."""
    if query.op != SetOperation.SETOP_NONE:
        raise _refused(view, verb, "Views containing UNION, INTERSECT, or EXCEPT are not automatically updatable.")
    for name, words in _CLAUSES:
        if getattr(query, name):
            raise _refused(view, verb, f"Views containing {words} are not automatically updatable.")
    items: Sequence[Any] = query.fromClause or ()
    if len(items) != 1 or type(items[0]).__name__ == "JoinExpr":
        raise _refused(view, verb, _SINGLE)
    if type(items[0]).__name__ == "RangeTableSample":
        raise _refused(view, verb, "Views containing TABLESAMPLE are not automatically updatable.")
    if type(items[0]).__name__ != "RangeVar":
        raise _refused(view, verb, _SINGLE)
    return items[0]


def _targets(env: Environment, query: Any, view: View, verb: str) -> list[Target]:
    groups, windows, sets = Groups(), Windows(), Sets()
    inner = Environment(env.binding, env.scope, "SELECT", env.subquery, groups, windows=windows, sets=sets)
    targets = bind_targets(inner, query.targetList)
    kinds = (
        (groups.is_used, "aggregate functions"),
        (windows.calls, "window functions"),
        (sets.calls, "set-returning functions"),
    )
    for used, words in kinds:
        if used:
            raise _refused(view, verb, f"Views that return {words} are not automatically updatable.")
    if verb != "delete from" and not any(isinstance(target.scalar, ColumnRef) for target in targets):
        raise _refused(view, verb, "Views that have no updatable columns are not automatically updatable.")
    return targets


def _refused(view: View, verb: str, detail: str) -> SqlError:
    return SqlError("55000", f'cannot {verb} view "{view.name}"', detail, "Change the table that it reads.")
