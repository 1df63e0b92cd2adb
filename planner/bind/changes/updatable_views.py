"""Views through which rows can be changed: each shows rows of one table, directly or through other such views.

Owns: which views can be changed (55000 for all others), and which of the table's columns their columns are. A change of
the view becomes a change of the table, restricted to the rows that the view shows.
https://www.postgresql.org/docs/15/sql-createview.html#SQL-CREATEVIEW-UPDATABLE-VIEWS
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace
from pglast import ast
from pglast.enums import SetOperation

from catalog.objects import CatalogObject, Table, View
from catalog.values.errors import SqlError, unsupported
from catalog.values.types import BOOL
from planner.algebra.construction import SUBQUERIES
from planner.algebra.nodes import Call, Column, ColumnRef, Filter, Literal, Relation, Scalar, Scan
from planner.algebra.walk import replace_columns, walk
from planner.bind.from_items.from_clause import in_view, labels_of, scan_object, schema_of
from planner.bind.from_items.item_scopes import renamed
from planner.bind.lookup.relations import find_object
from planner.bind.scalars.expressions import bind_boolean
from planner.bind.scalars.select_lists import Target, bind_targets
from planner.bind.state.collected_calls import Groups, Sets, Windows
from planner.bind.state.environment import Binding, Environment, Level, Scope, source_of
from planner.bind.state.from_names import Entry
from planner.parse.parser import nodes
from planner.statements.statement import Checks, OfView

#: What a view's query must not have, and what PostgreSQL calls it.
_CLAUSES: Final = (
    ("distinctClause", "DISTINCT"),
    ("groupClause", "GROUP BY"),
    ("havingClause", "HAVING"),
    ("withClause", "WITH"),
    ("limitCount", "LIMIT or OFFSET"),
    ("limitOffset", "LIMIT or OFFSET"),
)
#: What the row is called that ON CONFLICT keeps from being inserted.
EXCLUDED: Final = "excluded"
#: What a view's owner needs of what the view reads.
_LETTERS: Final = {"insert into": "a", "update": "w", "delete from": "d"}
_SINGLE: Final = "Views that do not select from a single table or view are not automatically updatable."


class Layer(Struct, frozen=True):
    """One of the views that a view is made of: its name, its WHERE, and its CHECK OPTION ('', local or cascaded)."""

    name: str
    predicate: Scalar | None
    option: str


class Through(Struct, frozen=True):
    """A view over one table's rows: ``names[i]`` is what ``values[i]`` is called, an expression over the ``scan``.

    ``layers`` are the views below and itself, the lowest first.
    """

    view: View
    table: Table
    scan: Scan
    names: tuple[str, ...]
    values: tuple[Scalar, ...]
    typmods: tuple[int, ...]
    layers: tuple[Layer, ...] = ()

    @property
    def predicates(self) -> tuple[Scalar, ...]:
        """What holds of the rows that it shows."""
        return tuple(layer.predicate for layer in self.layers if layer.predicate is not None)

    def checks(self, row: Sequence[Column]) -> Checks:
        """What WITH CHECK OPTION demands of a row of the table, the lowest view's first: nothing may be unknown."""
        over: dict[Column, Scalar] = {old: ColumnRef(new) for old, new in zip(self.scan.columns, row, strict=False)}
        found: list[tuple[str, Scalar]] = []
        cascades = False
        for layer in reversed(self.layers):
            cascades |= layer.option == "cascaded"
            if layer.predicate is not None and (cascades or layer.option == "local"):
                known = Call("coalesce", (replace_columns(layer.predicate, over), Literal(False, BOOL)), BOOL)
                found.append((OfView(layer.name), known))
        return tuple(reversed(found))

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

    def need(self, binding: Binding, alias: Any, letter: str, changed: Iterable[str], *read: Any) -> None:
        """Notes the privileges on the view that a change of its rows, under an alias, needs: on the columns
        ``changed``, and SELECT on those that the parse trees ``read`` name. The view's owner needs those on what the
        view reads.
        """
        if binding.reader is None:
            return
        if letter != _LETTERS["delete from"]:
            binding.give(self.view.oid, letter, changed)
        binding.need(self.view.oid, letter)
        rows = (self.view.name if alias is None else alias.aliasname, EXCLUDED)
        names = {name for tree in read if tree is not None for name in _named(tree, rows, self.names)}
        if names:
            binding.give(self.view.oid, "r", self.names if "*" in names else names)
            binding.need(self.view.oid, "r")

    def assigned(self, binding: Binding, items: tuple[Any, ...], verb: str = "update") -> tuple[Any, ...]:
        """A SET list by the names of the table's columns. DEFAULT is the view's, which is NULL.

        Raises 42703 and 0A000.
        """
        found = []
        for item in items:
            name = self.table.columns[self._index(item.name, verb, binding.position(item))].name
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


def _named(tree: Any, rows: Collection[str], columns: Collection[str]) -> Iterator[str]:
    """Those of the ``rows``' columns that a parse tree, or several, may name; '*' for all, as of a row as a whole."""
    for node in nodes(tree):
        match type(node).__name__:
            case "ColumnRef":
                *before, name = (getattr(field, "sval", "*") for field in node.fields)
                if before[-1] in rows if before else name in {*columns, *rows, "*"}:
                    yield name if name in columns else "*"
            case "IndexElem" if node.name in columns:
                yield node.name


def through_view(binding: Binding, node: Any, verb: str, letters: str = "") -> Through | None:
    """The ordinary view that a change's target names; None where it is none. ``letters``: what its owner needs of what
    it reads beside what the ``verb`` says. Raises 55000.
    """
    found = find_object(binding, node)
    if not isinstance(found, View) or found.continuous or found.materialized:
        return None
    return _through(binding, found, verb, letters)


def require_checkable(binding: Binding, view: View) -> None:
    """A view WITH CHECK OPTION takes changes, and asks nothing of other relations. Raises 0A000."""
    try:
        found = _through(binding, view, "insert into")
    except SqlError as error:
        message = "WITH CHECK OPTION is supported only on automatically updatable views"
        raise SqlError("0A000", message, hint=error.detail) from None
    if any(isinstance(item, SUBQUERIES) for predicate in found.predicates for item in walk(predicate)):
        raise unsupported("WITH CHECK OPTION of a view with a subquery in WHERE", "Leave it out.")


def changed_places(binding: Binding, view: View) -> Iterator[int]:
    """Columns of a view, from 1 on, through which its table's are changed, behind 0 where rows are at all."""
    if view.continuous or view.materialized:
        return
    try:
        found = _through(binding, view, "delete from")
    except SqlError:
        return
    yield 0
    yield from (place for place, value in enumerate(found.values, 1) if isinstance(value, ColumnRef))


def _through(binding: Binding, view: View, verb: str, letters: str = "") -> Through:
    binding.depends_on[view.oid] = None
    labels = labels_of(binding, view.oid, tuple(column.name for column in view.columns))
    with in_view(binding, view) as query:
        item = _single(query, view, verb)
        below = find_object(binding, item)
        for letter in _LETTERS[verb] + letters + ("" if verb == "insert into" else "r"):
            # what others give tells no columns of views, and nothing of what this one reads
            binding.need(below.oid, letter).whole = letter == "r" or not isinstance(below, Table)
        table, scan, scope, layers = _below(binding, below, item, view, verb, letters)
        scope = renamed(binding, scope, item.alias, item)
        env = Environment(binding, scope, "WHERE", Level(binding))
        predicate = None if query.whereClause is None else bind_boolean(env, query.whereClause, "WHERE")
        layers = (*layers, Layer(view.name, predicate, dict(view.options).get("check_option", "")))
        targets = _targets(env, query, view, verb)
    shown = [targets[place] for _, place in labels]
    values, typmods = tuple(target.scalar for target in shown), tuple(target.typmod for target in shown)
    return Through(view, table, scan, tuple(name for name, _ in labels), values, typmods, layers)


def _below(
    binding: Binding, found: CatalogObject, item: Any, view: View, verb: str, letters: str
) -> tuple[Table, Scan, Scope, tuple[Layer, ...]]:
    """What a view reads: the table, its scan, the names that the view's query sees, and the views below."""
    alias = None if item.alias is None else item.alias.aliasname
    if isinstance(found, View) and not (found.continuous or found.materialized):
        inner = _through(binding, found, verb, letters)
        scope = inner.scope(inner.scan.columns, item.alias, item.relname)
        return inner.table, inner.scan, _within_text(binding, scope, item, found), inner.layers
    if not isinstance(found, Table):
        raise _refused(view, verb, _SINGLE)
    binding.depends_on[found.oid] = None
    scan, scope = scan_object(binding, found, alias, False, item.relname)
    return found, scan, _within_text(binding, scope, item, found), ()


def _within_text(binding: Binding, scope: Scope, item: Any, found: CatalogObject) -> Scope:
    """The names of what a view's text reads, under the schema that this has there."""
    if item.alias is not None:
        return scope
    return replace(scope, sources=(replace(scope.sources[0], schema=schema_of(binding, item, found)),))


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
    inner = Environment(env.binding, env.scope, "SELECT", env.level, groups, windows=windows, sets=sets)
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
