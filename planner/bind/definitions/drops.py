"""DROP and TRUNCATE.

Owns: the dependents of what is dropped, PostgreSQL's errors (2BP01, 42809, 42P01) and the order in which CASCADE drops.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import Any, Final

from msgspec import Struct, field
from msgspec.structs import replace
from pglast.enums import DropBehavior, ObjectType

from catalog.catalog import Catalog
from catalog.extensions import BaseType, Extension
from catalog.objects import (
    PG_TEMP,
    SYSTEM_SCHEMAS,
    CatalogObject,
    FileTable,
    Schema,
    Sequence,
    Stream,
    SystemView,
    Table,
    View,
)
from catalog.routines import Function, every
from catalog.values.errors import SqlError, unsupported
from catalog.values.oids import row_oid
from planner.bind.binder import new_binding
from planner.bind.definitions.relations.indexes import bind_drop_index
from planner.bind.definitions.routines.extensions import bind_drop_extension
from planner.bind.definitions.routines.functions import bind_drop_function, dependents_of
from planner.bind.definitions.sequences import identity_column
from planner.bind.definitions.types.type_drops import bind_drop_type, drop_types
from planner.bind.lookup.dotted_names import names_of
from planner.bind.lookup.functions import signature
from planner.bind.lookup.relations import describe, look_up, require_object, shown, written
from planner.bind.privileges import require_droppable
from planner.bind.state.context import within
from planner.bind.state.environment import Binding
from planner.statements.definitions import Drop, Truncate
from planner.statements.statement import NoOperation, Statement

_KINDS: Final[dict[ObjectType, tuple[str, type | tuple[type, ...]]]] = {
    ObjectType.OBJECT_TABLE: ("TABLE", Table),
    ObjectType.OBJECT_FOREIGN_TABLE: ("FOREIGN TABLE", (Stream, FileTable)),
    ObjectType.OBJECT_VIEW: ("VIEW", View),
    ObjectType.OBJECT_MATVIEW: ("MATERIALIZED VIEW", View),
    ObjectType.OBJECT_SEQUENCE: ("SEQUENCE", Sequence),
}


#: What belongs to a relation and no relation has.
_OF_TABLES: Final = (ObjectType.OBJECT_TRIGGER, ObjectType.OBJECT_POLICY, ObjectType.OBJECT_RULE)


def _drop_of_table(binding: Binding, node: Any, words: str) -> NoOperation:
    """DROP TRIGGER, POLICY or RULE, of which there are none: a notice with IF EXISTS. Raises 42704, 42P01 and 3F000."""
    names = names_of(node.objects[0])
    *schema, table, name = names
    place, tag = schema[-1] if schema else None, f"DROP {words}"
    if look_up(binding, table, place) is None:
        if not node.missing_ok:
            raise binding.context.catalog.missing(table, place)
        if place is not None and place not in binding.context.catalog.schemas:
            return NoOperation(tag, (f'schema "{place}" does not exist, skipping',))
        return NoOperation(tag, (f'relation "{table}" does not exist, skipping',))
    what = f'{words.lower()} "{name}" for'
    if not node.missing_ok:
        kind = "relation" if node.removeType == ObjectType.OBJECT_RULE else "table"
        raise SqlError("42704", f'{what} {kind} "{table}" does not exist')
    return NoOperation(tag, (f'{what} relation "{table}" does not exist, skipping',))


def bind_drop(binding: Binding, node: Any) -> Statement:
    """DROP TABLE, FOREIGN TABLE, VIEW, MATERIALIZED VIEW, SEQUENCE, INDEX, SCHEMA [IF EXISTS] names [CASCADE]."""
    if node.removeType == ObjectType.OBJECT_INDEX:
        return bind_drop_index(binding, node)
    if node.removeType in (ObjectType.OBJECT_TYPE, ObjectType.OBJECT_DOMAIN):
        return bind_drop_type(binding, node)
    if node.removeType in (ObjectType.OBJECT_FUNCTION, ObjectType.OBJECT_ROUTINE):
        return bind_drop_function(binding, node)
    if node.removeType == ObjectType.OBJECT_SCHEMA:
        return _drop_schemas(binding, node)
    if node.removeType == ObjectType.OBJECT_EXTENSION:
        return bind_drop_extension(binding, node)
    if node.removeType not in _KINDS:
        words = ObjectType(node.removeType).name.removeprefix("OBJECT_").replace("_", " ")
        if node.removeType in _OF_TABLES:
            return _drop_of_table(binding, node, words)
        raise unsupported(f"DROP {words}")
    kind, wanted = _KINDS[node.removeType]
    catalog = binding.context.catalog
    named: list[CatalogObject] = []
    notices: list[str] = []
    for item in node.objects:
        name, schema = written(item)
        found = look_up(binding, name, schema)
        if found is None:
            known = schema in (None, PG_TEMP, *catalog.schemas)
            message = f'{kind.lower()} "{name}" does not exist' if known else f'schema "{schema}" does not exist'
            if not node.missing_ok:
                raise SqlError("42P01" if known else "3F000", message)
            notices.append(f"{message}, skipping")
            continue
        _require_kind(found, kind, wanted)
        require_droppable(binding, found)
        _require_free(binding, found)
        if found not in named:
            named.append(found)
    reach = _Reach(binding, {item.oid: item for item in named})
    what = describe(binding, named[0]) if len(named) == 1 else "desired object(s)"
    return _dropped(reach, kind, what, node, notices)


def _drop_schemas(binding: Binding, node: Any) -> Drop:
    """DROP SCHEMA: what is in one depends on it. Raises 2BP01 and 3F000."""
    catalog, reach = binding.context.catalog, _Reach(binding, {})
    schemas: dict[int, Schema] = {}
    notices: list[str] = []
    for item in node.objects:
        schema = catalog.schemas.get(item.sval)
        if schema is None:
            message = f'schema "{item.sval}" does not exist'
            if not node.missing_ok:
                raise SqlError("3F000", message)
            notices.append(f"{message}, skipping")
            continue
        if schema.name in SYSTEM_SCHEMAS:
            message = f"cannot drop schema {schema.name} because it is required by the database system"
            raise SqlError("2BP01", message)
        require_droppable(binding, schema)
        schemas[schema.oid] = schema
    for schema in schemas.values():
        for item in sorted(catalog.contents(schema.name), key=lambda found: found.oid):
            if not isinstance(item, Sequence) or item.owner is None:
                reach.add(item, f"schema {schema.name}")
    names = {schema.name for schema in schemas.values()}
    extensions = [item for item in catalog.extensions.values() if item.schema in names]
    members = tuple(_reach_extensions(reach, extensions))
    types = [item for item in catalog.types.values() if item.schema in names]
    for declared in (item for item in types if not isinstance(item, BaseType)):
        reach.lines.append(f"type {declared} depends on schema {declared.schema}")
        reach.extra.append(f"type {declared}")
    functions = [item for item in every(catalog.functions) if item.schema in names and item not in members]
    reach.functions += functions
    for function in functions:
        _reach_functions(reach, [function], f"schema {function.schema}")
    what = f"schema {next(iter(names))}" if len(names) == 1 else "desired object(s)"
    dropped = _dropped(reach, "SCHEMA", what, node, notices)
    left = functools.reduce(Catalog.change, (table for _, table in dropped.changes), catalog)
    left = functools.reduce(Catalog.drop, dropped.oids, left)
    left = functools.reduce(Catalog.drop_function, (item.oid for item in dropped.functions), left)
    rest = drop_types(
        new_binding(within(binding.context, catalog=left), binding.raw), "TYPE", types, [], True, None, members
    )
    oids, told = (*dropped.oids, *schemas), (*dropped.notices, *rest.notices)
    return replace(dropped, oids=oids, notices=told, types=rest, extensions=tuple(extensions))


def _reach_extensions(reach: _Reach, extensions: list[Extension]) -> Iterator[Function]:
    """Extensions go with their schema, and with them the views that call their functions, which it yields."""
    catalog = reach.binding.context.catalog
    for extension in extensions:
        reach.lines.append(f"extension {extension.name} depends on schema {extension.schema}")
        reach.extra.append(f"extension {extension.name}")
        members = [item for item in every(catalog.functions) if item.extension == extension.name]
        reach.functions += members
        oids = {item.oid for item in members}
        for item in catalog.objects.values():
            if isinstance(item, View) and not oids.isdisjoint(item.functions) and item.oid not in reach.found:
                reach.add(item, f"extension {extension.name}")
        yield from members


def _reach_functions(reach: _Reach, functions: list[Function], below: str) -> None:
    """Functions that go with what they need, and the views that call them. Raises 0A000 of what else does."""
    catalog = reach.binding.context.catalog
    for function in functions:
        reach.lines.append(f"function {signature(catalog, function)} depends on {below}")
        reach.extra.append(f"function {signature(catalog, function)}")
        for item in catalog.objects.values():
            if isinstance(item, View) and function.oid in item.functions and item.oid not in reach.found:
                reach.add(item, f"function {signature(catalog, function)}")
    gone = {describe(reach.binding, item) for item in reach.found.values()}
    for words, name in dependents_of(reach.binding, functions):
        if not any(words.endswith(item) for item in gone):
            raise unsupported(f"dropping function {name} with {below}, which {words} needs,", "Drop that first.")


def _require_free(binding: Binding, item: CatalogObject) -> None:
    """An identity column's sequence goes with the column only."""
    identity = identity_column(binding.context.catalog, item) if isinstance(item, Sequence) else None
    if identity is not None:
        column = f"column {identity[1].name} of {describe(binding, identity[0])}"
        message = f"cannot drop {describe(binding, item)} because {column} requires it"
        raise SqlError("2BP01", message, hint=f"You can drop {column} instead.")


def _require_kind(item: CatalogObject, kind: str, wanted: type | tuple[type, ...]) -> None:
    if isinstance(item, SystemView):
        raise SqlError("42501", f"permission denied: view {item.name} belongs to the system")
    made_so = kind == "MATERIALIZED VIEW"  # continuous views of either kind are dropped so
    is_other = isinstance(item, View) and item.materialized != made_so and not (made_so and item.continuous)
    if is_other or not isinstance(item, wanted):
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
        is_materialized = isinstance(item, View) and item.materialized
        view = (
            "DROP MATERIALIZED VIEW to remove a materialized view" if is_materialized else "DROP VIEW to remove a view"
        )
        hint = f"Use {right.get(type(item), view)}."
        raise SqlError("42809", f'"{item.name}" is not {word[kind]}', hint=hint)


class _Reach(Struct):
    """What a DROP takes along: relations by oid, ``lines`` that say why, ``extra`` beside what it names, and the tables
    that it changes.
    """

    binding: Binding
    found: dict[int, CatalogObject]
    lines: list[str] = field(default_factory=list)
    extra: list[str] = field(default_factory=list)
    changes: dict[int, Table] = field(default_factory=dict)
    functions: list[Function] = field(default_factory=list)

    def add(self, item: CatalogObject, below: str) -> None:
        """A relation goes because something goes that it needs."""
        self.found[item.oid] = item
        self.lines.append(f"{describe(self.binding, item)} depends on {below}")
        self.extra.append(describe(self.binding, item))

    def follow(self) -> None:
        """Adds what needs what goes, until nothing does."""
        catalog = self.binding.context.catalog
        pending = list(self.found.values())
        for item in pending:  # grows while it is walked
            for sequence in catalog.owned(item.oid):
                if sequence.oid not in self.found:
                    self.found[sequence.oid] = sequence
                    pending.append(sequence)
            pending += self._add_functions(item)
            for dependent in catalog.dependents(item.oid):
                if dependent.oid in self.found:
                    continue
                if isinstance(dependent, Table):
                    self._release(dependent, item)
                else:
                    self.add(dependent, describe(self.binding, item))
                    pending.append(dependent)

    def _add_functions(self, item: CatalogObject) -> list[CatalogObject]:
        """Functions of a relation's rows; the views that go with them."""
        kind, known = row_oid(item.oid), set(self.found)
        for function in every(self.binding.context.catalog.functions):
            if function not in self.functions and kind in {oid | 1 for oid in function.named_types}:
                self.functions.append(function)
                _reach_functions(self, [function], f"type {shown(self.binding, item)}")
        return [found for oid, found in self.found.items() if oid not in known]

    def _release(self, table: Table, item: CatalogObject) -> None:
        """A table stays, without the foreign keys and defaults that need what goes."""
        parts = _parts_of(self.binding, table, item)
        self.lines += [f"{part} depends on {describe(self.binding, item)}" for part in parts]
        self.extra += parts
        self.changes[table.oid] = without(self.changes.get(table.oid, table), item.oid)


def _dropped(reach: _Reach, kind: str, what: str, node: Any, notices: list[str]) -> Drop:
    """The statement, dependents first. Raises 2BP01 where something needs what goes and there is no CASCADE."""
    reach.follow()
    catalog = reach.binding.context.catalog
    if reach.lines and node.behavior != DropBehavior.DROP_CASCADE:
        hint = "Use DROP ... CASCADE to drop the dependent objects too."
        lines = "\n".join(reach.lines)
        raise SqlError("2BP01", f"cannot drop {what} because other objects depend on it", lines, hint)
    lasting = {oid: catalog.objects[oid] for oid in reach.changes if oid not in reach.found}
    changes = tuple((before, reach.changes[oid]) for oid, before in lasting.items() if isinstance(before, Table))
    order = _dependents_first(catalog, list(reach.found.values()))
    notices = [*notices, *_cascade_notice(reach.extra)]
    oids = tuple(item.oid for item in order)
    return Drop(kind, oids, tuple(notices), changes, functions=tuple(reach.functions))


def _parts_of(binding: Binding, table: Table, item: CatalogObject) -> list[str]:
    """What of a table depends on something, described."""
    name = describe(binding, table)
    keys = [f"constraint {key.name} on {name}" for key in table.foreign_keys if key.target == item.oid]
    columns = [column.name for column in table.columns if item.oid in column.sequences]
    return keys + [f"default value for column {column} of {name}" for column in columns]


def without(table: Table, oid: int) -> Table:
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
        found = require_object(binding, item)
        if isinstance(found, Stream):
            instead = "Rows of a stream are never deleted. To empty its views, drop them and create them again."
            if found.keeps_rows:
                instead = f"{instead} To empty its history, drop the stream's option history and add it again."
            raise SqlError("0A000", f'cannot truncate stream "{found.name}"', hint=instead)
        if isinstance(found, FileTable):
            instead = "Its rows come from files: remove the files."
            raise SqlError("0A000", f'cannot truncate foreign table "{found.name}"', hint=instead)
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
    return Truncate(tuple(target for target in targets if target.columns), tuple(restarts))
