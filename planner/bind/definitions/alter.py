"""ALTER TABLE: its actions, in PostgreSQL's order of passes.

Owns: the function for each action, the actions without an effect, and those that are refused. ``alter_table`` has the
actions and their end; RENAME is in ``planner.bind.definitions.renames``.

https://www.postgresql.org/docs/15/sql-altertable.html
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from pglast.enums import AlterTableType, ConstrType, DropBehavior, ObjectType

from catalog.objects import Stream, SystemView, Table, View
from catalog.values.errors import SqlError, unsupported
from planner.bind.definitions.access.owners import bind_owner, new_owner
from planner.bind.definitions.alter_table import altered_columns, altered_constraints
from planner.bind.definitions.alter_table.alteration import (
    Alteration,
    finish,
    start,
)
from planner.bind.definitions.alter_table.altered_streams import bind_alter_stream
from planner.bind.definitions.named_objects import relation_words
from planner.bind.definitions.relations.indexes import find_index
from planner.bind.definitions.types.composites import bind_alter_composite
from planner.bind.definitions.view_definitions.views import bind_alter_view
from planner.bind.lookup.relations import look_up, require_object
from planner.bind.state.environment import Binding
from planner.statements.statement import NoOperation, Statement

#: What has no meaning here: owners, storage, statistics, and what there is none of.
_NOTHING: Final = frozenset(
    (
        *(AlterTableType.AT_ChangeOwner, AlterTableType.AT_SetRelOptions, AlterTableType.AT_ResetRelOptions),
        *(AlterTableType.AT_ReplicaIdentity, AlterTableType.AT_ClusterOn, AlterTableType.AT_DropCluster),
        *(AlterTableType.AT_SetLogged, AlterTableType.AT_SetUnLogged, AlterTableType.AT_DropOids),
        *(AlterTableType.AT_EnableTrigAll, AlterTableType.AT_EnableTrigUser, AlterTableType.AT_DisableTrigUser),
        *(AlterTableType.AT_DisableRowSecurity, AlterTableType.AT_NoForceRowSecurity),
    )
)
#: The same of columns.
_NOTHING_OF_COLUMNS: Final = frozenset(
    (
        *(AlterTableType.AT_SetStatistics, AlterTableType.AT_SetStorage, AlterTableType.AT_SetCompression),
        *(AlterTableType.AT_SetOptions, AlterTableType.AT_ResetOptions),
    )
)
#: What is refused: its words, and what to do instead.
_REFUSED: Final = {
    AlterTableType.AT_SetTableSpace: ("SET TABLESPACE", "Leave it out: there are no tablespaces."),
    AlterTableType.AT_DisableTrigAll: (
        "DISABLE TRIGGER ALL",
        "Foreign keys are always checked: fill the tables in their order, or make the keys DEFERRABLE.",
    ),
    AlterTableType.AT_EnableTrig: ("ENABLE TRIGGER", "There are no triggers."),
    AlterTableType.AT_DisableTrig: ("DISABLE TRIGGER", "There are no triggers."),
    AlterTableType.AT_EnableRule: ("ENABLE RULE", "There are no rules."),
    AlterTableType.AT_DisableRule: ("DISABLE RULE", "There are no rules."),
    AlterTableType.AT_EnableRowSecurity: ("ENABLE ROW LEVEL SECURITY", "Grant on views of the rows."),
    AlterTableType.AT_ForceRowSecurity: ("FORCE ROW LEVEL SECURITY", "Grant on views of the rows."),
    AlterTableType.AT_AddInherit: ("INHERIT", "Use a view with UNION ALL over the tables."),
    AlterTableType.AT_DropInherit: ("NO INHERIT", "There is no inheritance."),
    AlterTableType.AT_AddOf: ("OF type", "Declare the columns."),
    AlterTableType.AT_DropOf: ("NOT OF", "There are no typed tables."),
    AlterTableType.AT_AttachPartition: ("ATTACH PARTITION", "Use one table."),
    AlterTableType.AT_DetachPartition: ("DETACH PARTITION", "There are no partitions."),
}


def bind_alter(binding: Binding, node: Any) -> Statement:
    """ALTER TABLE, VIEW, INDEX and so on, but for RENAME."""
    if node.objtype in (ObjectType.OBJECT_VIEW, ObjectType.OBJECT_MATVIEW) and new_owner(node.cmds) is None:
        return bind_alter_view(binding, node) or NoOperation(f"ALTER {relation_words(node.objtype)}")
    if node.objtype == ObjectType.OBJECT_TYPE:
        return bind_alter_composite(binding, node)
    words = relation_words(node.objtype)
    name = node.relation
    is_index = node.objtype == ObjectType.OBJECT_INDEX
    if node.missing_ok and not is_index and look_up(binding, name.relname, name.schemaname) is None:
        return NoOperation(f"ALTER {words}", (f'relation "{name.relname}" does not exist, skipping',))
    if is_index:
        return _alter_index(binding, node)
    found = require_object(binding, name)
    owner = new_owner(node.cmds)
    if owner is not None:
        return bind_owner(binding, found, owner, f"ALTER {words}")
    if all(command.subtype in _NOTHING for command in node.cmds):
        return NoOperation(f"ALTER {words}")
    if isinstance(found, View):
        return bind_alter_view(binding, node) or NoOperation(f"ALTER {words}")
    if isinstance(found, Stream) and node.objtype in (ObjectType.OBJECT_TABLE, ObjectType.OBJECT_FOREIGN_TABLE):
        return bind_alter_stream(binding, node, found, words)
    if isinstance(found, SystemView):
        raise SqlError("42501", f'permission denied: "{found.name}" is a system catalog')
    if not isinstance(found, Table):
        raise unsupported(f"this form of ALTER {words}", "Drop it and create it again.", binding.position(name))
    if node.objtype != ObjectType.OBJECT_TABLE:
        raise SqlError("42809", f'"{found.name}" is not a {words.lower()}')
    change = start(binding, found)
    for command in sorted(node.cmds, key=_pass):
        _act(change, command)
    return finish(change, "ALTER TABLE")


def _alter_index(binding: Binding, node: Any) -> Statement:
    """ALTER INDEX: options and statistics mean nothing."""
    find_index(binding, node.relation.relname, node.relation.schemaname)
    for command in node.cmds:
        if command.subtype not in _NOTHING | _NOTHING_OF_COLUMNS:
            words, instead = _REFUSED.get(command.subtype, (AlterTableType(command.subtype).name[3:], None))
            raise unsupported(f"ALTER INDEX ... {words}", instead, binding.position(command.def_))
    return NoOperation("ALTER INDEX")


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
    if command.subtype in _NOTHING_OF_COLUMNS and command.name is not None:
        change.index(command.name)
    if command.subtype in _NOTHING | _NOTHING_OF_COLUMNS:
        return
    if command.subtype not in _ACTIONS:
        words, instead = _REFUSED.get(command.subtype, (AlterTableType(command.subtype).name[3:], None))
        raise unsupported(f"ALTER TABLE ... {words}", instead, change.binding.position(command.def_))
    _ACTIONS[command.subtype][1](change, command)


_Action = Callable[[Alteration, Any], None]
_ACTIONS: Final[dict[AlterTableType, tuple[int, _Action]]] = {
    AlterTableType.AT_DropColumn: (0, altered_columns.drop),
    AlterTableType.AT_DropConstraint: (0, altered_constraints.drop),
    AlterTableType.AT_DropNotNull: (0, altered_columns.not_null),
    AlterTableType.AT_DropIdentity: (0, altered_columns.identity),
    AlterTableType.AT_AlterColumnType: (1, altered_columns.change_type),
    AlterTableType.AT_AddColumn: (2, altered_columns.add),
    AlterTableType.AT_ColumnDefault: (3, altered_columns.default),
    AlterTableType.AT_SetNotNull: (3, altered_columns.not_null),
    AlterTableType.AT_AddIdentity: (3, altered_columns.identity),
    AlterTableType.AT_SetIdentity: (3, altered_columns.identity),
    AlterTableType.AT_DropExpression: (0, altered_columns.drop_expression),
    AlterTableType.AT_ValidateConstraint: (6, altered_constraints.validate),
    AlterTableType.AT_AddConstraint: (5, altered_constraints.add),
    AlterTableType.AT_AlterConstraint: (5, altered_constraints.alter),
}
