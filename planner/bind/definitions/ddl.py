"""CREATE, ALTER, DROP, RENAME, COMMENT and TRUNCATE by kind of parse node."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from pglast.enums import ObjectType

from catalog.values.errors import SqlError, unsupported
from planner.bind.definitions.access.default_privileges import bind_default_privileges
from planner.bind.definitions.access.owners import bind_alter_owner
from planner.bind.definitions.access.roles import bind_rename_role
from planner.bind.definitions.alter import bind_alter
from planner.bind.definitions.comments import bind_comment
from planner.bind.definitions.drops import bind_drop, bind_truncate
from planner.bind.definitions.relations.indexes import bind_create_index
from planner.bind.definitions.relations.tables import SERVERS, bind_create_stream, bind_create_table
from planner.bind.definitions.renames import bind_rename
from planner.bind.definitions.routines.altered_functions import (
    FUNCTIONS,
    bind_alter_function,
    bind_comment_function,
    bind_function_owner,
    bind_move_function,
    bind_rename_function,
)
from planner.bind.definitions.routines.functions import bind_create_function
from planner.bind.definitions.schemas import bind_create_schema, bind_rename_schema, bind_set_schema
from planner.bind.definitions.sequences import bind_alter_sequence, bind_create_sequence
from planner.bind.definitions.types.composites import bind_create_composite
from planner.bind.definitions.types.domains import bind_alter_domain, bind_create_domain
from planner.bind.definitions.types.enums import bind_alter_enum, bind_create_enum
from planner.bind.definitions.types.user_types import refuse_range
from planner.bind.definitions.view_definitions.derived_views import bind_refresh
from planner.bind.definitions.view_definitions.views import bind_create_as, bind_create_view
from planner.bind.state.environment import Binding
from planner.statements.statement import Statement


def _create_server(binding: Binding, node: Any) -> Statement:
    """The thesis (4.2.6) keeps the server name for streams."""
    if node.servername in SERVERS:
        message = f'server name "{node.servername}" is reserved'
        raise SqlError(
            "42939", message, hint="Streams need no CREATE SERVER: use CREATE FOREIGN TABLE ... SERVER stream."
        )
    raise unsupported("CREATE SERVER", "Use the built-in server named stream.")


def _rename(binding: Binding, node: Any) -> Statement:
    if node.renameType in FUNCTIONS:
        return bind_rename_function(binding, node)
    match node.renameType:
        case ObjectType.OBJECT_SCHEMA:
            return bind_rename_schema(binding, node)
        case ObjectType.OBJECT_ROLE:
            return bind_rename_role(binding, node)
        case _:
            return bind_rename(binding, node)


def _set_schema(binding: Binding, node: Any) -> Statement:
    return (bind_move_function if node.objectType in FUNCTIONS else bind_set_schema)(binding, node)


def _alter_owner(binding: Binding, node: Any) -> Statement:
    return (bind_function_owner if node.objectType in FUNCTIONS else bind_alter_owner)(binding, node)


def _comment(binding: Binding, node: Any) -> Statement:
    return (bind_comment_function if node.objtype in FUNCTIONS else bind_comment)(binding, node)


HANDLERS: Final[dict[str, Callable[[Binding, Any], Statement]]] = {
    "CreateSchemaStmt": bind_create_schema,
    "AlterObjectSchemaStmt": _set_schema,
    "AlterOwnerStmt": _alter_owner,
    "AlterFunctionStmt": bind_alter_function,
    "CreateStmt": bind_create_table,
    "CreateSeqStmt": bind_create_sequence,
    "AlterSeqStmt": bind_alter_sequence,
    "CreateForeignTableStmt": bind_create_stream,
    "CreateForeignServerStmt": _create_server,
    "ViewStmt": bind_create_view,
    "CreateTableAsStmt": bind_create_as,
    "RefreshMatViewStmt": bind_refresh,
    "AlterTableStmt": bind_alter,
    "RenameStmt": _rename,
    "IndexStmt": bind_create_index,
    "CommentStmt": _comment,
    "DropStmt": bind_drop,
    "CreateFunctionStmt": bind_create_function,
    "CreateEnumStmt": bind_create_enum,
    "AlterEnumStmt": bind_alter_enum,
    "CreateDomainStmt": bind_create_domain,
    "AlterDomainStmt": bind_alter_domain,
    "CompositeTypeStmt": bind_create_composite,
    "CreateRangeStmt": refuse_range,
    "TruncateStmt": bind_truncate,
    "AlterDefaultPrivilegesStmt": bind_default_privileges,
}
