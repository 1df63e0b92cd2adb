"""A view's definition as pg_get_viewdef() shows it: in PostgreSQL's words (``deparsing``), or as it was written, with
the current names of its relations and types.

Owns: these texts. Creating a view from the text gives an equal view, whatever has been renamed since. A relation or
type is shown with its schema if the reader's search path does not find it. A relation whose columns have changed since
the view was created is shown as a subquery that gives them their old names::

    SELECT a FROM t   -- a was renamed b, and c was added   ->   SELECT a FROM (SELECT b AS a FROM public.t) t
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any, Final

from msgspec import Struct, field
from pglast import ast
from pglast.stream import IndentedStream

from catalog.catalog import Catalog
from catalog.objects import PG_TEMP, CatalogObject, View
from catalog.postgres import functions
from catalog.system.own_objects import MARK
from catalog.values.identifiers import quote_name
from planner.bind.deparsing import AsWrittenError
from planner.bind.deparsing.texts import deparsed_view
from planner.bind.lookup.output_names import output_name
from planner.parse.parser import parse

_BUILT_IN: Final = ("pg_catalog", PG_TEMP)
#: Views whose texts are remembered.
_KEPT: Final = 4096
_Names = frozenset[str]
_QUOTED: Final = re.compile(rf'"{MARK}((?:[^"]|"")*)"')


class ViewTexts(Struct, frozen=True):
    """A view's definition as pg_get_viewdef() shows it, ``pretty`` and not, with ``MARK`` before schemas."""

    plain: str
    pretty: str


def view_texts(catalog: Catalog, view: View) -> ViewTexts:
    """A view's definition, in PostgreSQL's words where every detail is known, else as it was written."""
    objects = tuple(catalog.objects.get(oid) for _, _, oid in view.names)
    return _texts(_Known(view, (*objects, catalog.types, catalog.functions), catalog))


class _Known(Struct, frozen=True):
    """A view and what its text depends on (``below``): equal ones have equal texts, whatever else changed."""

    view: View
    below: tuple[object, ...]
    catalog: Catalog

    def __hash__(self) -> int:
        return hash((self.view.oid, self.view.name))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Known) and (self.view, self.below) == (other.view, other.below)


@lru_cache(_KEPT)
def _texts(known: _Known) -> ViewTexts:
    try:
        plain, pretty = deparsed_view(known.catalog, known.view)
    except AsWrittenError:
        text = _as_written(known.catalog, known.view)
        plain = pretty = " " + _QUOTED.sub(lambda match: MARK + quote_name(match[1].replace('""', '"')), text)
    return ViewTexts(f"{plain};", f"{pretty};")


def _as_written(catalog: Catalog, view: View) -> str:
    """A view's query as somebody wrote it, but for the names in it."""
    (raw,) = parse(view.definition)
    printing = _Printing(catalog, view)
    try:
        natural = _natural(printing, raw.node)
        node = printing.changed(raw.node, frozenset())
        wanted = tuple(column.name for column in view.columns)
        is_named = natural == wanted or _name_targets(node, wanted)
        text = _printed(node)
    except RecursionError:  # nested too deep for the printer: as it was written
        return view.definition.strip().rstrip(";")
    if is_named:
        return text
    called = f"{quote_name(view.name)}({', '.join(map(quote_name, wanted))})"
    return _printed(parse(f"SELECT * FROM ({text}) {called}")[0].node)


def _printed(node: Any) -> str:
    return str(IndentedStream(comma_at_eoln=True)(node))


class _Printing(Struct):
    """One view's text on its way; ``moved``: relations that stand as something else, as the text calls them."""

    catalog: Catalog
    view: View
    moved: set[tuple[str, str]] = field(default_factory=set)

    def relation(self, node: Any, hidden: _Names) -> CatalogObject | None:
        """What a name in FROM stands for; None where it is a WITH query's."""
        written = (node.schemaname or "", node.relname)
        if not written[0] and node.relname in hidden:
            return None
        oid = next((oid for schema, name, oid in self.view.names if (schema, name) == written), None)
        return None if oid is None else self.catalog.objects.get(oid)

    def columns(self, item: CatalogObject) -> tuple[tuple[str, str], ...]:
        """A relation's columns: as the text calls them, and as they are called now."""
        reads = dict(self.view.reads)
        return reads.get(item.oid, tuple((column.name, column.name) for column in item.columns))

    def changed(self, node: Any, hidden: _Names) -> Any:
        """The tree with today's names; ``hidden`` are the WITH queries' of where it stands."""
        match node:
            case tuple():
                return tuple(self.changed(item, hidden) for item in node)
            case ast.SelectStmt():
                self._select(node, hidden)
            case ast.RangeVar():
                return self._range(node, hidden)
            case ast.TypeName():
                self._type(node)
            case ast.FuncCall():
                self._function(node)
                self._fields(node, hidden, ("funcname",))
            case ast.ColumnRef():
                parts: tuple[Any, ...] = node.fields or ()
                if tuple(getattr(part, "sval", "") for part in parts[:2]) in self.moved and len(parts) > 2:
                    node.fields = parts[1:]
            case ast.Node():
                self._fields(node, hidden)
        return node

    def _select(self, node: Any, hidden: _Names) -> None:
        """What is in FROM comes first: columns may be called by it."""
        clause = node.withClause
        if clause is not None:
            names = [item.ctename for item in clause.ctes]
            for place, item in enumerate(clause.ctes):
                known = names if clause.recursive else names[:place]
                item.ctequery = self.changed(item.ctequery, hidden.union(known))
            hidden = hidden.union(names)
        node.fromClause = self.changed(node.fromClause, hidden)
        self._fields(node, hidden, ("withClause", "fromClause"))

    def _fields(self, node: Any, hidden: _Names, but: tuple[str, ...] = ()) -> None:
        for name in node:
            value = getattr(node, name)
            if isinstance(value, ast.Node | tuple) and name not in but:
                setattr(node, name, self.changed(value, hidden))

    def _range(self, node: Any, hidden: _Names) -> Any:
        item = self.relation(node, hidden)
        if item is None:
            return node
        written = (node.schemaname or "", node.relname)
        schema = None if item.schema in _BUILT_IN else MARK + item.schema
        columns = self.columns(item)
        if [old for old, _ in columns] != [column.name for column in item.columns]:
            self.moved.add(written)
            return _as_subquery(node, schema, item.name, columns)
        if item.name != node.relname and node.alias is None:
            self.moved.add(written)
            node.alias = ast.Alias(aliasname=node.relname)
        elif written[0] not in ("", item.schema):
            self.moved.add(written)
        node.schemaname, node.relname = schema, item.name
        return node

    def _function(self, node: Any) -> None:
        """A user's function with its schema, unless PostgreSQL has one of the name, too."""
        *schema, name = (part.sval for part in node.funcname)
        written = (schema[-1] if schema else "", name)
        oid = next((oid for place, called, oid in self.view.calls if (place, called) == written), None)
        found = None if oid is None else self.catalog.function(oid)
        if found is not None and (schema or not functions(found.name)):
            node.funcname = (ast.String(sval=MARK + found.schema), ast.String(sval=found.name))

    def _type(self, node: Any) -> None:
        *schema, name = (part.sval for part in node.names)
        written = (schema[0] if schema else "", name)
        oid = next((oid for place, called, oid in self.view.types if (place, called) == written), None)
        found = None if oid is None else self.catalog.declared(oid)
        if found is not None:
            parts = (found.name,) if found.schema in _BUILT_IN else (MARK + found.schema, found.name)
            node.names = tuple(ast.String(sval=part) for part in parts)


def _as_subquery(node: Any, schema: str | None, name: str, columns: tuple[tuple[str, str], ...]) -> Any:
    """A relation as a subquery of the columns that the text knows."""
    targets = ", ".join(f"{quote_name(now)} AS {quote_name(old)}" for old, now in columns)
    place = quote_name(name) if schema is None else f"{quote_name(schema)}.{quote_name(name)}"
    (raw,) = parse(f"SELECT FROM (SELECT {targets} FROM {place}) {quote_name(node.relname)}")
    (found,) = raw.node.fromClause
    found.alias = node.alias or found.alias
    return found


def _leaf(node: Any) -> Any:
    """The SELECT that names the columns: the first of a UNION's."""
    while node.larg is not None:
        node = node.larg
    return node


def _natural(printing: _Printing, node: Any) -> tuple[str, ...] | None:
    """The names that a query gives its columns; None where a star is not of one relation."""
    leaf = _leaf(node)
    names: list[str] = []
    for target in leaf.targetList or ():
        if not _is_star(target):
            names.append(target.name or output_name(target.val))
            continue
        (only, *others) = leaf.fromClause
        found = None if others else _columns(printing, only, frozenset(_with(node)))
        if found is None:
            return None
        names += found
    return tuple(names)


def _columns(printing: _Printing, node: Any, hidden: _Names) -> list[str] | None:
    """The names that something in FROM gives its columns, as far as it tells."""
    called = getattr(getattr(node, "alias", None), "colnames", None)
    if called or not isinstance(node, ast.RangeVar):
        return [name.sval for name in called] if called else None
    item = printing.relation(node, hidden)
    return None if item is None else [old for old, _ in printing.columns(item)]


def _with(node: Any) -> list[str]:
    return [] if node.withClause is None else [item.ctename for item in node.withClause.ctes]


def _is_star(target: Any) -> bool:
    value: Any = target.val
    return isinstance(value, ast.ColumnRef) and isinstance((value.fields or (None,))[-1], ast.A_Star)


def _name_targets(node: Any, names: tuple[str, ...]) -> bool:
    """Names a query's columns; False where it cannot be: there is a star, or other clauses may use their names."""
    leaf = _leaf(node)
    targets = leaf.targetList or ()
    sorts = node.sortClause or leaf.groupClause or leaf.distinctClause
    if sorts or len(targets) != len(names) or any(map(_is_star, targets)):
        return False
    for target, name in zip(targets, names, strict=True):
        if (target.name or output_name(target.val)) != name:
            target.name = name
    return True
