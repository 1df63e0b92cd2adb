"""ALTER ... RENAME: relations, columns and constraints under other names.

Owns: the other definitions that contain the name: CHECKs of the table, foreign keys of other tables, owners of
sequences. A view refers to relations by oid and keeps the current names of their columns
(``planner.incremental.programs.renaming``).
"""

from __future__ import annotations

import re
from typing import Any, Final

from msgspec.structs import replace
from pglast.enums import ObjectType

from catalog.catalog import Catalog
from catalog.objects import CatalogObject, ForeignKey, Index, Sequence, SystemView, Table, UniqueKey, View
from catalog.values.errors import SqlError, duplicate_table, unsupported
from catalog.values.identifiers import quote_name
from planner.algebra.nodes import ColumnRef, Project
from planner.bind.definitions.dependents import readers
from planner.bind.definitions.named_objects import RELATIONS, constraint_names, relation_words, require_relation
from planner.bind.definitions.relations.indexes import bind_rename_index
from planner.bind.definitions.types.composites import bind_rename_attribute
from planner.bind.definitions.types.domains import bind_rename_domain, bind_rename_domain_constraint
from planner.bind.definitions.types.user_types import bind_rename_type
from planner.bind.from_items.from_clause import scan_object
from planner.bind.lookup.columns import SYSTEM_COLUMNS
from planner.bind.lookup.relations import look_up
from planner.bind.state.environment import Binding
from planner.incremental.programs.renaming import follow_rename
from planner.parse.parser import nodes, parse
from planner.statements.definitions import AlterTable, Redefine
from planner.statements.statement import NoOperation, Statement

#: A column's name as a text has it.
_NAME: Final = re.compile(r'"(?:[^"]|"")+"|[^\W\d][\w$]*')
#: An object before and after.
Follower = tuple[Table | Sequence | View, Table | Sequence | View]


def bind_rename(binding: Binding, node: Any) -> Statement:
    """ALTER kind [IF EXISTS] name RENAME [COLUMN a | CONSTRAINT a] TO b."""
    kind = node.relationType if node.renameType == ObjectType.OBJECT_COLUMN else node.renameType
    if kind == ObjectType.OBJECT_TABCONSTRAINT:
        kind = ObjectType.OBJECT_TABLE
    if kind == ObjectType.OBJECT_INDEX:
        return bind_rename_index(binding, node)
    if kind == ObjectType.OBJECT_DOMAIN:
        return bind_rename_domain(binding, node)
    if kind == ObjectType.OBJECT_DOMCONSTRAINT:
        return bind_rename_domain_constraint(binding, node)
    if kind == ObjectType.OBJECT_ATTRIBUTE:
        return bind_rename_attribute(binding, node)
    if kind == ObjectType.OBJECT_TYPE:
        return bind_rename_type(binding, node)
    words = relation_words(kind)
    if kind not in RELATIONS:
        raise unsupported(f"ALTER {words} RENAME")
    name, tag = node.relation, f"ALTER {words}"
    if node.missing_ok and look_up(binding, name.relname, name.schemaname) is None:
        return NoOperation(tag, (f'relation "{name.relname}" does not exist, skipping',))
    found = require_relation(binding, name, kind)
    if node.renameType == ObjectType.OBJECT_COLUMN:
        return _rename_column(binding, found, node.subname, node.newname, tag)
    if node.renameType == ObjectType.OBJECT_TABCONSTRAINT:
        return _rename_constraint(found, node.subname, node.newname, tag)
    return _rename_relation(binding, found, node.newname, tag)


def _rename_relation(binding: Binding, found: CatalogObject, name: str, tag: str) -> Statement:
    catalog = binding.context.catalog
    if catalog.at(found.schema, name) is not None:
        raise duplicate_table(name)
    if isinstance(found, Table):
        return AlterTable(tag, found, replace(found, name=name), renames=True)
    assert not isinstance(found, SystemView)
    return Redefine(tag, found, replace(found, name=name))


def _rename_constraint(found: CatalogObject, old: str, new: str, tag: str) -> AlterTable:
    if not isinstance(found, Table):
        raise SqlError("42809", f'"{found.name}" is not a table')
    names = constraint_names(found)
    if old not in names:
        raise SqlError("42704", f'constraint "{old}" for table "{found.name}" does not exist')
    if new in names:
        raise SqlError("42710", f'constraint "{new}" for relation "{found.name}" already exists')
    table = replace(
        found,
        keys=tuple(replace(item, name=new) if item.name == old else item for item in found.keys),
        foreign_keys=tuple(replace(item, name=new) if item.name == old else item for item in found.foreign_keys),
        checks=tuple(replace(item, name=new) if item.name == old else item for item in found.checks),
    )
    return AlterTable(tag, found, table, renames=not _may_wait(found, old))


def _may_wait(table: Table, name: str) -> bool:
    """Whether a constraint can be deferred: its checks that wait name it."""
    constraints: tuple[UniqueKey | ForeignKey, ...] = (*table.keys, *table.foreign_keys)
    return any(item.name == name and item.deferrable for item in constraints)


def _rename_column(binding: Binding, found: CatalogObject, old: str, new: str, tag: str) -> AlterTable | Redefine:
    if not isinstance(found, Table | View):
        raise unsupported("renaming a column of something other than a table or view", "Create it again.")
    names = [column.name for column in found.columns]
    if old not in names:
        raise SqlError("42703", f'column "{old}" does not exist')
    if new in names:
        raise SqlError("42701", f'column "{new}" of relation "{found.name}" already exists')
    if isinstance(found, Table) and new in SYSTEM_COLUMNS:
        raise SqlError("42701", f'column name "{new}" conflicts with a system column name')
    catalog = binding.context.catalog
    if isinstance(found, View):
        columns = tuple(replace(item, name=new) if item.name == old else item for item in found.columns)
        after = replace(found, columns=columns, indexes=_renamed_in(found.indexes, old, new))
        return Redefine(tag, found, after, _views(catalog, found.oid, old, new))
    table = _renamed(found, old, new)
    scan, _ = scan_object(binding, found, None, False)
    outputs = tuple(
        (binding.column(definition.name, definition.type), ColumnRef(column))
        for definition, column in zip(table.columns, scan.columns, strict=True)
    )
    changes = (*_followers(catalog, found, old, new), *_views(catalog, found.oid, old, new))
    return AlterTable(tag, found, table, Project(scan, outputs), changes=changes, renames=True)


def _views(catalog: Catalog, oid: int, old: str, new: str) -> tuple[Follower, ...]:
    """The views that read a relation of which a column has another name."""
    pairs = ((view, follow_rename(view, oid, old, new)) for view in readers(catalog, oid))
    return tuple((before, after) for before, after in pairs if before != after)


def _renamed(table: Table, old: str, new: str) -> Table:
    def among(columns: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(new if name == old else name for name in columns)

    def referring(key: ForeignKey) -> ForeignKey:
        own = among(key.target_columns) if key.target == table.oid else key.target_columns
        named = among(key.delete_columns)
        return replace(key, columns=among(key.columns), target_columns=own, delete_columns=named)

    return replace(
        table,
        columns=tuple(
            replace(
                item,
                name=new if item.name == old else item.name,
                generated=None if item.generated is None else _in_text(item.generated, old, new),
            )
            for item in table.columns
        ),
        keys=tuple(replace(key, columns=among(key.columns)) for key in table.keys),
        indexes=_renamed_in(table.indexes, old, new),
        foreign_keys=tuple(map(referring, table.foreign_keys)),
        checks=tuple(replace(item, expression=_in_text(item.expression, old, new)) for item in table.checks),
    )


def _renamed_in(indexes: tuple[Index, ...], old: str, new: str) -> tuple[Index, ...]:
    return tuple(
        replace(
            item,
            columns=tuple(new if name == old else name for name in item.columns),
            parts=tuple(_in_text(part, old, new) for part in item.parts),
            predicate=None if item.predicate is None else _in_text(item.predicate, old, new),
            shown=tuple(_in_text(part, old, new) for part in item.shown),
        )
        for item in indexes
    )


def _in_text(expression: str, old: str, new: str) -> str:
    """The text of a CHECK or of a generated column, which has no other names than the table's columns."""
    text = f"SELECT {expression}"
    columns = [node for node in nodes(parse(text)[0].node.targetList[0].val) if type(node).__name__ == "ColumnRef"]
    places = [node.location for node in columns if [getattr(item, "sval", None) for item in node.fields] == [old]]
    for place in sorted(places, reverse=True):
        text = text[:place] + _NAME.sub(lambda _: quote_name(new), text[place:], count=1)
    return text.removeprefix("SELECT ")


def _followers(catalog: Catalog, table: Table, old: str, new: str) -> tuple[Follower, ...]:
    """Other tables' keys that name the column, and its sequences."""
    found: list[Follower] = []
    for item in catalog.objects.values():
        other = isinstance(item, Table) and item.oid != table.oid
        if isinstance(item, Table) and other and any(_names(key, table, old) for key in item.foreign_keys):
            keys = tuple(
                replace(key, target_columns=tuple(new if name == old else name for name in key.target_columns))
                if _names(key, table, old)
                else key
                for key in item.foreign_keys
            )
            found.append((item, replace(item, foreign_keys=keys)))
        if isinstance(item, Sequence) and item.owner == (table.oid, old):
            found.append((item, replace(item, owner=(table.oid, new))))
    return tuple(found)


def _names(key: ForeignKey, table: Table, column: str) -> bool:
    return key.target == table.oid and column in key.target_columns
