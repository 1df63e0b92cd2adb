"""CREATE, ALTER and DROP INDEX.

Owns: which indexes have an effect. A unique index over columns is a key, and a unique index over expressions or a part
of the rows is enforced as well. Any other index is only a name: tables are scanned with zone maps, and the rows of a
materialized view are computed when it is read.
"""

from __future__ import annotations

import itertools
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace
from pglast.enums import DropBehavior, SortByDir, SortByNulls

from catalog.catalog import Catalog
from catalog.objects import Index, Indexed, Table, UniqueKey, View, keys_of
from catalog.values.errors import SqlError, duplicate_table, unsupported
from catalog.values.identifiers import made_name, quote_name
from catalog.values.types import BOOL, SqlType
from planner.algebra.construction import volatility
from planner.algebra.nodes import Cast, Exists, InSubquery, ScalarSubquery
from planner.algebra.walk import used_columns, walk
from planner.bind.binder import index_parts
from planner.bind.changes.index_expressions import labels_of
from planner.bind.conversion.coercion import coerce
from planner.bind.definitions.expression_texts import expression_text, kept_text
from planner.bind.definitions.redefinition import redefined
from planner.bind.definitions.relations.operator_classes import check_indexed
from planner.bind.from_items.from_clause import scan_object
from planner.bind.lookup.dotted_names import names_of
from planner.bind.lookup.relations import require_named, require_object, written
from planner.bind.lookup.search_path import searched
from planner.bind.lookup.type_names import display
from planner.bind.privileges import require_droppable
from planner.bind.scalars.stored_expressions import bind_tree, row_of, unqualified
from planner.bind.state.environment import Binding
from planner.parse.parser import parse
from planner.statements.definitions import Drop
from planner.statements.statement import NoOperation, Statement

_METHODS: Final = ("btree", "hash", "gist", "gin", "spgist", "brin")


def bind_create_index(binding: Binding, node: Any) -> Statement:
    """CREATE [UNIQUE] INDEX [CONCURRENTLY] [[IF NOT EXISTS] name] ON table (parts)."""
    relation, context = node.relation, binding.context
    table = require_object(binding, relation)
    if isinstance(table, View) and table.continuous and not table.materialized:
        return _of_view(table, node)
    if not isinstance(table, Table) and not (isinstance(table, View) and table.materialized):
        detail = "Only tables and materialized views have indexes."
        raise SqlError("42809", f'cannot create index on relation "{table.name}"', detail)
    if node.accessMethod not in _METHODS:
        raise SqlError("42704", f'access method "{node.accessMethod}" does not exist')
    if node.unique and node.accessMethod != _METHODS[0]:
        raise SqlError("0A000", f'access method "{node.accessMethod}" does not support unique indexes')
    found = _parts(binding, table, node)
    labels = found.shown[: len(found.texts)]
    catalog = context.catalog
    name = node.idxname or _chosen_name(catalog, table, labels)
    if _is_taken(catalog, name, table.schema):
        if not node.if_not_exists:
            raise duplicate_table(name)
        return NoOperation("CREATE INDEX", (f'relation "{name}" already exists, skipping',))
    alike = bool(node.nulls_not_distinct)
    is_key = node.unique and found.predicate is None and all(item.name is not None for item in node.indexParams)
    notices: tuple[str, ...] = ()
    if is_key and isinstance(table, Table):
        ordered = {item.name: _order(item) for item in reversed(node.indexParams)}  # the first of one name counts
        columns = tuple(dict.fromkeys(item.name for item in node.indexParams))
        orders = tuple(ordered[column] for column in columns)
        key = UniqueKey(name, columns, index=True, nulls_alike=alike, orders=orders if any(orders) else ())
        after: Indexed = replace(table, keys=(*table.keys, key))
    else:
        index = Index(
            name,
            found.texts,
            found.columns,
            orders=tuple(map(_order, node.indexParams)),
            included=len(node.indexIncludingParams or ()),
            predicate=found.predicate,
            unique=bool(node.unique),
            nulls_alike=alike,
            method=node.accessMethod,
            labels=labels_of(labels),
            shown=found.shown,
            types=found.types,
        )
        if node.unique and isinstance(table, Table):
            _require_bound(binding, table, index, node)
        elif node.unique:
            words = "its rows are computed when it is read, and are not checked"
            notices = (f'unique index "{name}" of materialized view "{table.name}" is kept as a name: {words}',)
        after = replace(table, indexes=(*table.indexes, index))
    return redefined("CREATE INDEX", table, after, notices)


def _of_view(view: View, node: Any) -> NoOperation:
    """An index on a continuous view, in PostgreSQL a plain one: its columns must be there. Raises 42703."""
    names = {column.name for column in view.columns}
    missing = next((item.name for item in node.indexParams if item.name is not None and item.name not in names), None)
    if missing is not None:
        raise SqlError("42703", f'column "{missing}" does not exist')
    return NoOperation("CREATE INDEX", (f'continuous view "{view.name}" is read without indexes, skipping',))


def _order(item: Any) -> str:
    """What stands behind a part: its order and its NULLs' place, where they are not the default."""
    descending = item.ordering == SortByDir.SORTBY_DESC
    nulls = {SortByNulls.SORTBY_NULLS_FIRST: True, SortByNulls.SORTBY_NULLS_LAST: False}
    first = nulls.get(item.nulls_ordering, descending)
    place = "" if first == descending else f" NULLS {'FIRST' if first else 'LAST'}"
    return f"{' DESC' if descending else ''}{place}"


class _Parts(Struct, frozen=True):
    """The ``texts`` of what is indexed, the ``columns`` that they and the ``predicate`` use, its text, how PostgreSQL
    writes all of these (``shown``), and the parts' ``types``."""

    texts: tuple[str, ...]
    columns: tuple[str, ...]
    predicate: str | None
    shown: tuple[str, ...]
    types: tuple[SqlType, ...]


def _parts(binding: Binding, table: Indexed, node: Any) -> _Parts:
    """What is indexed. Raises 42703."""
    scan, _ = scan_object(binding, table, None, False)
    texts: list[str] = []
    shown: list[str] = []
    types: list[SqlType] = []
    row = row_of(table.columns)
    used: dict[str, None] = {}
    where = unqualified(node.whereClause, table.name)
    names = {column.name for column in table.columns}
    for item in (*node.indexParams, *(node.indexIncludingParams or ())):
        if item.name is not None:
            if item.name not in names:
                raise SqlError("42703", f'column "{item.name}" does not exist')
            used[item.name] = None
            kind = next(column.type for column in table.columns if column.name == item.name)
            texts.append(quote_name(item.name))
            shown.append(texts[-1])
            types.append(kind)
        else:
            tree = unqualified(item.expr, table.name)
            text, kind = _expression(binding, tree, scan.columns, used)
            texts.append(text)
            types.append(kind)
            shown.append(expression_text(binding, tree, row))
        if item in node.indexParams:
            check_indexed(kind, node.accessMethod, names_of(item.opclass))
    predicate = None
    if where is not None:
        predicate, _ = _expression(binding, where, scan.columns, used, "predicate")
        shown.append(expression_text(binding, where, row))
    return _Parts(tuple(texts), tuple(used), predicate, tuple(shown), tuple(types))


def _expression(
    binding: Binding, tree: Any, columns: Any, used: dict[str, None], what: str = "expression"
) -> tuple[str, SqlType]:
    """An expression's text and type. Raises 0A000 and 42P17."""
    scalar = bind_tree(binding, tree, columns, None, "index")
    if what == "predicate" and coerce(binding, scalar, BOOL, "implicit", tree) is None:
        message = f"argument of WHERE must be type boolean, not type {display(scalar.type)}"
        raise SqlError("42804", message, position=binding.start(tree))
    if any(isinstance(item, ScalarSubquery | Exists | InSubquery) for item in walk(scalar)):
        raise SqlError("0A000", f"cannot use subquery in index {what}", position=binding.start(tree))
    if volatility(scalar) != "immutable":
        raise SqlError("42P17", f"functions in index {what} must be marked IMMUTABLE")
    if binding.functions:
        instead = "Index a generated column of that value."
        raise unsupported(f"a user's function in an index {what}", instead, binding.start(tree))
    used.update(dict.fromkeys(column.name for column in used_columns(scalar)))
    return kept_text(binding, tree), scalar.type


def rebuilt(binding: Binding, table: Table, index: Index) -> Index:
    """An index over columns of other types. Raises what binding its expressions raises."""
    scan, _ = scan_object(binding, table, None, False)
    row, shown, types = row_of(table.columns), list[str](), list[SqlType]()
    with binding.without_positions():
        texts = index.parts if index.predicate is None else (*index.parts, index.predicate)
        for place, text in enumerate(texts):
            tree = parse(f"SELECT {text}")[0].node.targetList[0].val
            what = "predicate" if place == len(index.parts) else "expression"
            _, kind = _expression(binding, tree, scan.columns, {}, what)
            is_column = type(tree).__name__ == "ColumnRef"
            shown.append(text if is_column and what == "expression" else expression_text(binding, tree, row))
            types.append(kind)
    return replace(index, shown=tuple(shown), types=tuple(types[: len(index.parts)]))


def _require_bound(binding: Binding, table: Table, index: Index, node: Any) -> None:
    """Raises 0A000 for a unique index that cannot be bound, or has no comparable values, without the catalog."""
    position = binding.position(node.relation)
    try:
        bound = index_parts(table, index)
    except SqlError:
        raise unsupported("a unique index with a type of a user's in an expression", position=position) from None
    shows = {item.name for item in table.columns if item.keeps_scale and item.type.name != "bpchar"}
    texts = (
        item for part in bound.unique for item in walk(part) if isinstance(item, Cast) and item.type.category == "S"
    )
    if any(shows.intersection(column.name for column in used_columns(text)) for text in texts):
        raise unsupported("a unique index over the text of a numeric without digits", position=position)


def _chosen_name(catalog: Catalog, table: Indexed, parts: tuple[str, ...]) -> str:
    names = (made_name(table.name, "_".join(labels_of(parts)), f"idx{number or ''}") for number in itertools.count())
    return next(name for name in names if not _is_taken(catalog, name, table.schema))


def _is_taken(catalog: Catalog, name: str, schema: str) -> bool:
    return catalog.at(schema, name) is not None or _in_schema(catalog, name, schema) is not None


def index_names(item: Indexed) -> tuple[str, ...]:
    """The names of the indexes of a table, those of its keys included, or of a view."""
    return (*(key.name for key in keys_of(item)), *(index.name for index in item.indexes))


def _in_schema(catalog: Catalog, name: str, schema: str) -> Indexed | None:
    """The table or view of a schema with an index, or a key, of a name."""
    for item in catalog.objects.values():  # all tables: no names are gathered
        if isinstance(item, Table | View) and item.schema == schema and _has_index(item, name):
            return item
    return None


def _has_index(item: Indexed, name: str) -> bool:
    return any(index.name == name for index in item.indexes) or any(key.name == name for key in keys_of(item))


def _search(binding: Binding, name: str, schema: str | None) -> Indexed | None:
    """The table or view with the index that a possibly unqualified name means."""
    found = (_in_schema(binding.context.catalog, name, each) for each in searched(binding, schema))
    return next((table for table in found if table is not None), None)


def find_index(binding: Binding, name: str, schema: str | None) -> Indexed:
    """The table or view of an index. Raises 3F000, 42P01, and 42809 for another kind of relation."""
    found = _search(binding, name, schema)
    if found is None:
        require_named(binding, name, schema)
        raise SqlError("42809", f'"{name}" is not an index')
    return found


def bind_rename_index(binding: Binding, node: Any) -> Statement:
    """ALTER INDEX [IF EXISTS] name RENAME TO name; a constraint goes by the name of its index."""
    old, new, catalog = node.relation.relname, node.newname, binding.context.catalog
    if node.missing_ok and _search(binding, old, node.relation.schemaname) is None:
        return NoOperation("ALTER INDEX", (f'relation "{old}" does not exist, skipping',))
    table = find_index(binding, old, node.relation.schemaname)
    if _is_taken(catalog, new, table.schema):
        raise duplicate_table(new)
    after = replace(
        table, indexes=tuple(replace(item, name=new) if item.name == old else item for item in table.indexes)
    )
    may_wait = False  # checks that wait name their constraint
    if isinstance(after, Table):
        may_wait = any(key.name == old and key.deferrable for key in after.keys)
        after = replace(after, keys=tuple(replace(key, name=new) if key.name == old else key for key in after.keys))
    return redefined("ALTER INDEX", table, after, renames=not may_wait)


def bind_drop_index(binding: Binding, node: Any) -> Drop:
    """DROP INDEX [CONCURRENTLY] [IF EXISTS] names [CASCADE]."""
    changes: dict[int, tuple[Indexed, Indexed]] = {}
    notices: list[str] = []
    for item in node.objects:
        name, schema = written(item)
        if node.missing_ok and _search(binding, name, schema) is None:
            notices.append(f'index "{name}" does not exist, skipping')
            continue
        try:
            before = find_index(binding, name, schema)
        except SqlError as error:
            if error.sqlstate == "42P01":
                raise SqlError("42704", f'index "{name}" does not exist') from None
            raise
        require_droppable(binding, before, f"index {name}")
        after = changes.get(before.oid, (before, before))[1]
        changes[before.oid] = (before, _without(binding, after, name, node.behavior == DropBehavior.DROP_CASCADE))
    return Drop("INDEX", (), tuple(notices), tuple(changes.values()))


def _without(binding: Binding, item: Indexed, name: str, cascade: bool) -> Indexed:
    table = replace(item, indexes=tuple(index for index in item.indexes if index.name != name))
    if not isinstance(table, Table):
        return table
    key = next((key for key in table.keys if key.name == name), None)
    if key is not None and not key.index:
        message = f"cannot drop index {name} because constraint {name} on table {table.name} requires it"
        hint = f"You can drop constraint {name} on table {table.name} instead."
        raise SqlError("2BP01", message, hint=hint)
    keys = tuple(item for item in table.keys if item.name != name)
    if key is not None and not any(set(item.columns) == set(key.columns) for item in keys):
        for other in binding.context.catalog.objects.values():
            for used in other.foreign_keys if isinstance(other, Table) else ():
                if used.target == table.oid and set(used.target_columns) == set(key.columns):
                    if cascade:
                        raise unsupported(f"CASCADE to constraint {used.name}", "Drop the constraint first.")
                    detail = f"constraint {used.name} on table {other.name} depends on index {name}"
                    message = f"cannot drop index {name} because other objects depend on it"
                    raise SqlError("2BP01", message, detail, "Use DROP ... CASCADE to drop the dependent objects too.")
    return replace(table, keys=keys)
