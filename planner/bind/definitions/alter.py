"""ALTER TABLE: its actions, in PostgreSQL's order of passes.

Owns: which action is whose, and those of constraints; ``altered_columns`` has those of columns, ``alteration`` the end.
``altered_streams`` has streams'.
RENAME is ``planner.bind.definitions.renames``.

https://www.postgresql.org/docs/15/sql-altertable.html
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final

from pglast.enums import AlterTableType, ConstrType, DropBehavior, ObjectType

from catalog.errors import SqlError, unsupported
from catalog.objects import Stream, Table, View
from planner.bind.context import Binding
from planner.bind.definitions import altered_columns
from planner.bind.definitions.alteration import (
    Alteration,
    drop_views,
    finish,
    interim,
    release,
    start,
    take_constraints,
)
from planner.bind.definitions.altered_streams import bind_alter_stream
from planner.bind.definitions.constraints import add_table_constraint
from planner.bind.definitions.renames import constraint_names
from planner.bind.definitions.views import bind_alter_view
from planner.bind.relations import look_up, require_object
from planner.statements import NoOperation, Statement

#: What has no meaning here: owners, storage and statistics.
_NOTHING: Final = frozenset(
    (
        *(AlterTableType.AT_ChangeOwner, AlterTableType.AT_SetStatistics, AlterTableType.AT_SetStorage),
        *(AlterTableType.AT_SetRelOptions, AlterTableType.AT_ResetRelOptions, AlterTableType.AT_ReplicaIdentity),
        *(AlterTableType.AT_ClusterOn, AlterTableType.AT_SetLogged, AlterTableType.AT_ValidateConstraint),
    )
)


def bind_alter(binding: Binding, node: Any) -> Statement:
    """ALTER TABLE, VIEW, INDEX and so on, but for RENAME."""
    if node.objtype in (ObjectType.OBJECT_VIEW, ObjectType.OBJECT_MATVIEW):
        return bind_alter_view(binding, node) or NoOperation("ALTER VIEW")
    words = ObjectType(node.objtype).name.removeprefix("OBJECT_").replace("_", " ")
    name = node.relation
    if node.missing_ok and look_up(binding, name.relname, name.schemaname) is None:
        return NoOperation(f"ALTER {words}", (f'relation "{name.relname}" does not exist, skipping',))
    found = require_object(binding, name)
    if all(command.subtype in _NOTHING for command in node.cmds):
        return NoOperation(f"ALTER {words}")
    if isinstance(found, View):
        return bind_alter_view(binding, node) or NoOperation("ALTER VIEW")
    if isinstance(found, Stream) and node.objtype in (ObjectType.OBJECT_TABLE, ObjectType.OBJECT_FOREIGN_TABLE):
        return bind_alter_stream(binding, node, found, words)
    if not isinstance(found, Table):
        raise unsupported(f"this form of ALTER {words}", "Drop it and create it again.", binding.position(name))
    if node.objtype != ObjectType.OBJECT_TABLE:
        raise SqlError("42809", f'"{found.name}" is not a {words.lower()}')
    change = start(binding, found)
    for command in sorted(node.cmds, key=_pass):
        _act(change, command)
    return finish(change, "ALTER TABLE")


def _pass(command: Any) -> int:
    """PostgreSQL's order of actions (tablecmds.c, AlterTablePass)."""
    kind = command.subtype
    if kind == AlterTableType.AT_AddConstraint:
        return 4 if command.def_.contype in (ConstrType.CONSTR_PRIMARY, ConstrType.CONSTR_UNIQUE) else 5
    if kind == AlterTableType.AT_ColumnDefault and command.def_ is None:
        return 0
    return _ACTIONS[kind][0] if kind in _ACTIONS else 6


def _act(change: Alteration, command: Any) -> None:
    change.cascade = command.behavior == DropBehavior.DROP_CASCADE
    if command.subtype in _NOTHING:
        return
    if command.subtype not in _ACTIONS:
        words = AlterTableType(command.subtype).name.removeprefix("AT_")
        raise unsupported(f"ALTER TABLE ({words})", position=change.binding.position(command.def_))
    _ACTIONS[command.subtype][1](change, command)


def _add_constraint(change: Alteration, command: Any) -> None:
    node = command.def_
    if node.indexname is not None:
        raise unsupported("USING INDEX", "Name the columns.", change.binding.position(node))
    if node.skip_validation and not node.initially_valid:
        raise unsupported("NOT VALID", "Leave it out.", change.binding.position(node))
    known, keys = len(change.parts.checks), len(change.parts.foreign)
    add_table_constraint(change.binding, change.parts, node, False)
    take_constraints(change, known, keys)


def _alter_constraint(change: Alteration, command: Any) -> None:
    """ALTER CONSTRAINT name [[NOT] DEFERRABLE] [INITIALLY DEFERRED | IMMEDIATE]: what is not said is not so."""
    node, table = command.def_, change.before
    names = [key.name for key in change.foreign]
    if node.conname not in names:
        words = f'constraint "{node.conname}" of relation "{table.name}"'
        if node.conname in constraint_names(interim(change)):
            raise SqlError("42809", f"{words} is not a foreign key constraint")
        raise SqlError("42704", f"{words} does not exist")
    place = names.index(node.conname)
    deferrable, deferred = bool(node.deferrable), bool(node.initdeferred)
    change.foreign[place] = replace(change.foreign[place], deferrable=deferrable, deferred=deferred)


def _drop_constraint(change: Alteration, command: Any) -> None:
    name, table = command.name, change.before
    if name not in constraint_names(interim(change)):
        message = f'constraint "{name}" of relation "{table.name}" does not exist'
        if not command.missing_ok:
            raise SqlError("42704", message)
        change.notices.append(f"{message}, skipping")
        return
    key = next((key for key in change.parts.keys if key.name == name), None)
    change.parts.keys = [item for item in change.parts.keys if item.name != name]
    change.foreign = [item for item in change.foreign if item.name != name]
    change.checks = [item for item in change.checks if item.name != name]
    change.parts.names.discard(name)
    if key is None:
        return
    change.lost_keys = True
    rest = change.parts.keys
    what = f"constraint {name} on table {table.name}"
    release(change, what, lambda used: all(set(used.target_columns) != set(item.columns) for item in rest))
    drop_views(change, what)


_Action = Callable[[Alteration, Any], None]
_ACTIONS: Final[dict[AlterTableType, tuple[int, _Action]]] = {
    AlterTableType.AT_DropColumn: (0, altered_columns.drop),
    AlterTableType.AT_DropConstraint: (0, _drop_constraint),
    AlterTableType.AT_DropNotNull: (0, altered_columns.not_null),
    AlterTableType.AT_DropIdentity: (0, altered_columns.identity),
    AlterTableType.AT_AlterColumnType: (1, altered_columns.change_type),
    AlterTableType.AT_AddColumn: (2, altered_columns.add),
    AlterTableType.AT_ColumnDefault: (3, altered_columns.default),
    AlterTableType.AT_SetNotNull: (3, altered_columns.not_null),
    AlterTableType.AT_AddIdentity: (3, altered_columns.identity),
    AlterTableType.AT_SetIdentity: (3, altered_columns.identity),
    AlterTableType.AT_AddConstraint: (5, _add_constraint),
    AlterTableType.AT_AlterConstraint: (5, _alter_constraint),
}
