"""DROP and TRUNCATE.

Owns: what depends on what is dropped, PostgreSQL's errors (2BP01, 42809, 42P01) and the order in which CASCADE drops.
"""

from __future__ import annotations

from typing import Any, Final

from pglast.enums import DropBehavior, ObjectType

from catalog.errors import SqlError, unsupported
from catalog.objects import Catalog, CatalogObject, Stream, SystemView, Table, View
from planner.bind.context import Binding
from planner.bind.sources import find_object
from planner.bind.typenames import names_of
from planner.statements import Drop, Truncate

_KINDS: Final = {
    ObjectType.OBJECT_TABLE: ("TABLE", Table),
    ObjectType.OBJECT_FOREIGN_TABLE: ("FOREIGN TABLE", Stream),
    ObjectType.OBJECT_VIEW: ("VIEW", View),
    ObjectType.OBJECT_MATVIEW: ("MATERIALIZED VIEW", View),
}


def _describe(item: CatalogObject) -> str:
    word = {Table: "table", Stream: "foreign table", View: "view", SystemView: "view"}[type(item)]
    return f"{word} {item.name}"


def bind_drop(binding: Binding, node: Any) -> Drop:
    """DROP TABLE, FOREIGN TABLE, VIEW, MATERIALIZED VIEW [IF EXISTS] names [CASCADE]."""
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
        if found not in named:
            named.append(found)
    order, cascade = _with_dependents(catalog, named, node.behavior == DropBehavior.DROP_CASCADE)
    return Drop(kind, tuple(item.oid for item in order), (*notices, *cascade))


def _require_kind(item: CatalogObject, kind: str, wanted: type) -> None:
    if isinstance(item, SystemView):
        raise SqlError("42501", f"permission denied: view {item.name} belongs to the system")
    if not isinstance(item, wanted):
        word = {
            "TABLE": "a table",
            "FOREIGN TABLE": "a foreign table",
            "VIEW": "a view",
            "MATERIALIZED VIEW": "a materialized view",
        }
        right = {Table: "DROP TABLE to remove a table", Stream: "DROP FOREIGN TABLE to remove a foreign table"}
        hint = f"Use {right.get(type(item), 'DROP VIEW to remove a view')}."
        raise SqlError("42809", f'"{item.name}" is not {word[kind]}', hint=hint)


def _with_dependents(
    catalog: Catalog, named: list[CatalogObject], cascade: bool
) -> tuple[list[CatalogObject], list[str]]:
    """The objects to drop, dependents first, and the notice about those that CASCADE adds."""
    found: list[CatalogObject] = list(named)
    lines: list[str] = []
    extra: list[CatalogObject] = []
    for item in found:  # grows while it is walked
        for dependent in catalog.dependents(item.oid):
            if dependent in found:
                continue
            if isinstance(dependent, Table):
                keys = [key.name for key in dependent.foreign_keys if key.target == item.oid]
                lines += [f"constraint {key} on table {dependent.name} depends on {_describe(item)}" for key in keys]
                if cascade:
                    raise unsupported(f"CASCADE to constraint {keys[0]}", f"Drop table {dependent.name} first.")
                continue
            lines.append(f"{_describe(dependent)} depends on {_describe(item)}")
            extra.append(dependent)
            found.append(dependent)
    if lines and not cascade:
        what = _describe(named[0]) if len(named) == 1 else "desired object(s)"
        hint = "Use DROP ... CASCADE to drop the dependent objects too."
        raise SqlError("2BP01", f"cannot drop {what} because other objects depend on it", "\n".join(lines), hint)
    return _dependents_first(catalog, found), _cascade_notice(extra)


def _dependents_first(catalog: Catalog, items: list[CatalogObject]) -> list[CatalogObject]:
    left, order = list(items), list[CatalogObject]()
    while left:
        free = [item for item in left if not any(other in left for other in catalog.dependents(item.oid))]
        for item in free or left[:1]:
            left.remove(item)
            order.append(item)
    return order


def _cascade_notice(extra: list[CatalogObject]) -> list[str]:
    if not extra:
        return []
    if len(extra) == 1:
        return [f"drop cascades to {_describe(extra[0])}"]
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
    return Truncate(tuple(targets))
