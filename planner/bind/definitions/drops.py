"""DROP and TRUNCATE.

Owns: what depends on what is dropped, PostgreSQL's errors (2BP01, 42809, 42P01) and the order in which CASCADE drops.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

from pglast.enums import DropBehavior, ObjectType

from catalog.errors import SqlError, unsupported
from catalog.objects import Catalog, CatalogObject, FileTable, Sequence, Stream, SystemView, Table, View
from planner.bind.context import Binding
from planner.bind.definitions.dependents import describe
from planner.bind.definitions.indexes import bind_drop_index
from planner.bind.definitions.sequences import identity_column
from planner.bind.definitions.user_types import bind_drop_type
from planner.bind.sources import find_object
from planner.bind.typenames import names_of
from planner.definitions import Drop, DropType, Truncate

_KINDS: Final[dict[ObjectType, tuple[str, type | tuple[type, ...]]]] = {
    ObjectType.OBJECT_TABLE: ("TABLE", Table),
    ObjectType.OBJECT_FOREIGN_TABLE: ("FOREIGN TABLE", (Stream, FileTable)),
    ObjectType.OBJECT_VIEW: ("VIEW", View),
    ObjectType.OBJECT_MATVIEW: ("MATERIALIZED VIEW", View),
    ObjectType.OBJECT_SEQUENCE: ("SEQUENCE", Sequence),
}


def bind_drop(binding: Binding, node: Any) -> Drop | DropType:
    """DROP TABLE, FOREIGN TABLE, VIEW, MATERIALIZED VIEW [IF EXISTS] names [CASCADE]."""
    if node.removeType == ObjectType.OBJECT_INDEX:
        return bind_drop_index(binding, node)
    if node.removeType in (ObjectType.OBJECT_TYPE, ObjectType.OBJECT_DOMAIN):
        return bind_drop_type(binding, node)
    if node.removeType not in _KINDS:
        words = ObjectType(node.removeType).name.removeprefix("OBJECT_").replace("_", " ")
        raise unsupported(f"DROP {words}")
    kind, wanted = _KINDS[node.removeType]
    catalog = binding.context.catalog
    named: list[CatalogObject] = []
    notices: list[str] = []
    for item in node.objects:
        *schema, name = names_of(item)
        found = catalog.find(name, schema[-1] if schema else None, binding.context.search_path)
        if found is None:
            message = f'{kind.lower()} "{name}" does not exist'
            if not node.missing_ok:
                raise SqlError("42P01", message)
            notices.append(f"{message}, skipping")
            continue
        _require_kind(found, kind, wanted)
        _require_free(catalog, found)
        if found not in named:
            named.append(found)
    order, cascade, changes = _with_dependents(catalog, named, node.behavior == DropBehavior.DROP_CASCADE)
    return Drop(kind, tuple(item.oid for item in order), (*notices, *cascade), changes)


def _require_free(catalog: Catalog, item: CatalogObject) -> None:
    """An identity column's sequence goes with the column only."""
    identity = identity_column(catalog, item) if isinstance(item, Sequence) else None
    if identity is not None:
        column = f"column {identity[1].name} of table {identity[0].name}"
        message = f"cannot drop sequence {item.name} because {column} requires it"
        raise SqlError("2BP01", message, hint=f"You can drop {column} instead.")


def _require_kind(item: CatalogObject, kind: str, wanted: type | tuple[type, ...]) -> None:
    if isinstance(item, SystemView):
        raise SqlError("42501", f"permission denied: view {item.name} belongs to the system")
    if not isinstance(item, wanted):
        word = {
            "TABLE": "a table",
            "FOREIGN TABLE": "a foreign table",
            "VIEW": "a view",
            "MATERIALIZED VIEW": "a materialized view",
            "SEQUENCE": "a sequence",
        }
        right = {
            Table: "DROP TABLE to remove a table",
            Stream: "DROP FOREIGN TABLE to remove a foreign table",
            FileTable: "DROP FOREIGN TABLE to remove a foreign table",
            Sequence: "DROP SEQUENCE to remove a sequence",
        }
        hint = f"Use {right.get(type(item), 'DROP VIEW to remove a view')}."
        raise SqlError("42809", f'"{item.name}" is not {word[kind]}', hint=hint)


def _with_dependents(
    catalog: Catalog, named: list[CatalogObject], cascade: bool
) -> tuple[list[CatalogObject], list[str], tuple[tuple[Table, Table], ...]]:
    """The objects to drop, dependents first, the notice about what CASCADE adds, and the tables that it changes."""
    found: list[CatalogObject] = list(named)
    lines: list[str] = []
    extra: list[str] = []
    changes: dict[int, Table] = {}
    for item in found:  # grows while it is walked
        found += [sequence for sequence in catalog.owned(item.oid) if sequence not in found]
        for dependent in catalog.dependents(item.oid):
            if dependent in found:
                continue
            if isinstance(dependent, Table):
                parts = _parts_of(dependent, item)
                lines += [f"{part} depends on {describe(item)}" for part in parts]
                changes[dependent.oid] = _without(changes.get(dependent.oid, dependent), item.oid)
                extra += parts
                continue
            lines.append(f"{describe(dependent)} depends on {describe(item)}")
            extra.append(describe(dependent))
            found.append(dependent)
    if lines and not cascade:
        what = describe(named[0]) if len(named) == 1 else "desired object(s)"
        hint = "Use DROP ... CASCADE to drop the dependent objects too."
        raise SqlError("2BP01", f"cannot drop {what} because other objects depend on it", "\n".join(lines), hint)
    lasting = {oid: catalog.objects[oid] for oid in changes if all(item.oid != oid for item in found)}
    kept = tuple((before, changes[oid]) for oid, before in lasting.items() if isinstance(before, Table))
    return _dependents_first(catalog, found), _cascade_notice(extra), kept


def _parts_of(table: Table, item: CatalogObject) -> list[str]:
    """What of a table depends on something, described."""
    keys = [f"constraint {key.name} on table {table.name}" for key in table.foreign_keys if key.target == item.oid]
    columns = [column.name for column in table.columns if item.oid in column.sequences]
    return keys + [f"default value for column {name} of table {table.name}" for name in columns]


def _without(table: Table, oid: int) -> Table:
    """A table without the foreign keys and defaults that need an object."""
    columns = tuple(
        replace(column, default=None, sequences=()) if oid in column.sequences else column for column in table.columns
    )
    return replace(table, columns=columns, foreign_keys=tuple(key for key in table.foreign_keys if key.target != oid))


def _dependents_first(catalog: Catalog, items: list[CatalogObject]) -> list[CatalogObject]:
    left, order = list(items), list[CatalogObject]()
    while left:
        free = [item for item in left if not any(other in left for other in catalog.dependents(item.oid))]
        for item in free or left[:1]:
            left.remove(item)
            order.append(item)
    return order


def _cascade_notice(extra: list[str]) -> list[str]:
    if not extra:
        return []
    if len(extra) == 1:
        return [f"drop cascades to {extra[0]}"]
    return [f"drop cascades to {len(extra)} other objects"]


def bind_truncate(binding: Binding, node: Any) -> Truncate:
    """TRUNCATE tables; referencing tables must be named too, or CASCADE adds them."""
    catalog = binding.context.catalog
    targets: list[Table] = []
    for item in node.relations:
        found = find_object(binding, item)
        if not isinstance(found, Table):
            raise SqlError("42809", f'"{found.name}" is not a table')
        if found not in targets:
            targets.append(found)
    for target in targets:  # grows while it is walked
        for dependent in catalog.dependents(target.oid):
            if not isinstance(dependent, Table) or dependent in targets:
                continue
            if node.behavior != DropBehavior.DROP_CASCADE:
                detail = f'Table "{dependent.name}" references "{target.name}".'
                hint = f'Truncate table "{dependent.name}" at the same time, or use TRUNCATE ... CASCADE.'
                raise SqlError("0A000", "cannot truncate a table referenced in a foreign key constraint", detail, hint)
            targets.append(dependent)
    restarts = [sequence for target in targets for sequence in catalog.owned(target.oid)] if node.restart_seqs else ()
    return Truncate(tuple(targets), tuple(restarts))
