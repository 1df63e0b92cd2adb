"""COMMENT ON: the comment is stored in the object's definition.

Owns: the object and column that are meant. Objects that Millstream cannot comment on (roles, ...) raise 0A000. Comments
of functions are in ``routines.altered_functions``.
"""

from __future__ import annotations

from typing import Any, Final, TypeVar

from msgspec.structs import replace
from pglast.enums import ObjectType

from catalog.objects import (
    Check,
    FileTable,
    ForeignKey,
    Index,
    Indexed,
    Sequence,
    Stream,
    SystemView,
    Table,
    UniqueKey,
    View,
)
from catalog.values.errors import SqlError, unsupported
from catalog.values.types import Composite
from planner.bind.definitions.named_objects import constraint_names, find_schema
from planner.bind.definitions.redefinition import redefined
from planner.bind.definitions.relations.indexes import find_index
from planner.bind.definitions.routines.extensions import bind_comment_extension
from planner.bind.definitions.types.domains import bind_comment_constraint
from planner.bind.definitions.types.user_types import bind_comment_type
from planner.bind.definitions.types.user_types import redefined as redefined_type
from planner.bind.lookup.dotted_names import names_of
from planner.bind.lookup.relations import require_named, written
from planner.bind.lookup.type_names import find_type
from planner.bind.state.environment import Binding
from planner.statements.definitions import AlterSchema, AlterTable
from planner.statements.statement import Statement

Part = TypeVar("Part", UniqueKey, Index, ForeignKey, Check)

_KINDS: Final[dict[ObjectType, tuple[type | tuple[type, ...], str]]] = {
    ObjectType.OBJECT_TABLE: (Table, "a table"),
    ObjectType.OBJECT_VIEW: (View, "a view"),
    ObjectType.OBJECT_MATVIEW: (View, "a materialized view"),
    ObjectType.OBJECT_SEQUENCE: (Sequence, "a sequence"),
    ObjectType.OBJECT_FOREIGN_TABLE: ((Stream, FileTable), "a foreign table"),
}


def bind_comment(binding: Binding, node: Any) -> Statement:
    """COMMENT ON kind name IS 'text' or NULL."""
    if node.objtype == ObjectType.OBJECT_COLUMN:
        names = names_of(node.object)
        declared = find_type(binding, names[:-1]) if names[:-1] else None
        if isinstance(declared, Composite) and (declared.schema, declared.name) in binding.context.catalog.types:
            return _on_attribute(binding, declared, names[-1], node.comment)
        return _on_column(_found(binding, names[:-1]), names[-1], node.comment)
    if node.objtype == ObjectType.OBJECT_TABCONSTRAINT:
        names = names_of(node.object)
        table, name = _found(binding, names[:-1]), names[-1]
        if not isinstance(table, Table) or name not in constraint_names(table):
            raise SqlError("42704", f'constraint "{name}" for table "{table.name}" does not exist')
        return _on_part(table, name, node.comment)
    if node.objtype == ObjectType.OBJECT_INDEX:
        name, within = written(node.object)
        table = find_index(binding, name, within)
        if not isinstance(table, Table) or name not in constraint_names(table):
            return _on_part(table, name, node.comment)
        keys = (replace(key, index_comment=node.comment) if key.name == name else key for key in table.keys)
        return AlterTable("COMMENT", table, replace(table, keys=tuple(keys)), renames=True)
    if node.objtype == ObjectType.OBJECT_SCHEMA:
        schema = find_schema(binding.context.catalog, node.object.sval)
        return AlterSchema("COMMENT", schema, replace(schema, comment=node.comment))
    if node.objtype in (ObjectType.OBJECT_TYPE, ObjectType.OBJECT_DOMAIN):
        return bind_comment_type(binding, node)
    if node.objtype == ObjectType.OBJECT_DOMCONSTRAINT:
        return bind_comment_constraint(binding, node)
    if node.objtype == ObjectType.OBJECT_EXTENSION:
        return bind_comment_extension(binding, node)
    if node.objtype not in _KINDS:
        raise unsupported(f"COMMENT ON {ObjectType(node.objtype).name.removeprefix('OBJECT_').replace('_', ' ')}")
    wanted, words = _KINDS[node.objtype]
    found = _found(binding, names_of(node.object))
    if not isinstance(found, wanted):
        raise SqlError("42809", f'"{found.name}" is not {words}')
    return redefined("COMMENT", found, replace(found, comment=node.comment), renames=True)


def _found(binding: Binding, names: tuple[str, ...]) -> Table | View | Sequence | Stream | FileTable:
    if not names:
        raise SqlError("42601", "column name must be qualified")
    *schema, name = names
    found = require_named(binding, name, schema[-1] if schema else None)
    if isinstance(found, SystemView):
        raise SqlError("42501", f"permission denied: view {found.name} belongs to the system")
    return found


def _on_column(found: Table | View | Sequence | Stream | FileTable, name: str, comment: str | None) -> Statement:
    if isinstance(found, Sequence):
        raise SqlError("42809", f'cannot set comment on relation "{found.name}"')
    if all(column.name != name for column in found.columns):
        raise SqlError("42703", f'column "{name}" of relation "{found.name}" does not exist')
    columns = tuple(replace(item, comment=comment) if item.name == name else item for item in found.columns)
    return redefined("COMMENT", found, replace(found, columns=columns), renames=True)


def _on_attribute(binding: Binding, declared: Composite, name: str, comment: str | None) -> Statement:
    """A comment on a field of CREATE TYPE ... AS."""
    if all(name != known for known, _ in declared.fields):
        raise SqlError("42703", f'column "{name}" of relation "{declared.name}" does not exist')
    others = tuple(item for item in declared.comments if item[0] != name)
    comments = (*others, *(((name, comment),) if comment else ()))
    return redefined_type(binding, declared, replace(declared, comments=comments), "COMMENT")


def _on_part(item: Indexed, name: str, comment: str | None) -> Statement:
    """A comment on a constraint of a table, or on an index."""
    after = replace(item, indexes=_told(item.indexes, name, comment))
    if isinstance(after, Table):
        after = replace(
            after,
            keys=_told(after.keys, name, comment),
            foreign_keys=_told(after.foreign_keys, name, comment),
            checks=_told(after.checks, name, comment),
        )
    return redefined("COMMENT", item, after, renames=True)


def _told(parts: tuple[Part, ...], name: str, comment: str | None) -> tuple[Part, ...]:
    return tuple(replace(part, comment=comment) if part.name == name else part for part in parts)
