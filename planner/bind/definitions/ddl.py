"""Definitions by kind of parse node: tables, streams, views, DROP and TRUNCATE."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from pglast.enums import ObjectType

from catalog.errors import SqlError, unsupported
from planner.bind.context import Binding
from planner.bind.definitions.alter import bind_alter
from planner.bind.definitions.altered_functions import bind_alter_function, bind_move_function, bind_rename_function
from planner.bind.definitions.comments import bind_comment
from planner.bind.definitions.composites import bind_create_composite
from planner.bind.definitions.domains import bind_alter_domain, bind_create_domain
from planner.bind.definitions.drops import bind_drop, bind_truncate
from planner.bind.definitions.enums import bind_alter_enum, bind_create_enum
from planner.bind.definitions.functions import bind_create_function
from planner.bind.definitions.indexes import bind_create_index
from planner.bind.definitions.owners import bind_alter_owner
from planner.bind.definitions.renames import bind_rename
from planner.bind.definitions.roles import bind_rename_role
from planner.bind.definitions.schemas import bind_create_schema, bind_rename_schema, bind_set_schema
from planner.bind.definitions.sequences import bind_alter_sequence, bind_create_sequence
from planner.bind.definitions.tables import SERVERS, bind_create_stream, bind_create_table
from planner.bind.definitions.user_types import refuse_range
from planner.bind.definitions.views import bind_create_as, bind_create_view, bind_refresh
from planner.statements import Statement


def _create_server(binding: Binding, node: Any) -> Statement:
    """The thesis (4.2.6) keeps the server name for streams."""
    if node.servername in SERVERS:
        message = f'server name "{node.servername}" is reserved'
        raise SqlError(
            "42939", message, hint="Streams need no CREATE SERVER: use CREATE FOREIGN TABLE ... SERVER stream."
        )
    raise unsupported("CREATE SERVER", "Use the built-in server named stream.")


def _rename(binding: Binding, node: Any) -> Statement:
    match node.renameType:
        case ObjectType.OBJECT_SCHEMA:
            return bind_rename_schema(binding, node)
        case ObjectType.OBJECT_ROLE:
            return bind_rename_role(binding, node)
        case ObjectType.OBJECT_FUNCTION | ObjectType.OBJECT_ROUTINE:
            return bind_rename_function(binding, node)
        case _:
            return bind_rename(binding, node)


def _set_schema(binding: Binding, node: Any) -> Statement:
    if node.objectType in (ObjectType.OBJECT_FUNCTION, ObjectType.OBJECT_ROUTINE):
        return bind_move_function(binding, node)
    return bind_set_schema(binding, node)


HANDLERS: Final[dict[str, Callable[[Binding, Any], Statement]]] = {
    "CreateSchemaStmt": bind_create_schema,
    "AlterObjectSchemaStmt": _set_schema,
    "AlterOwnerStmt": bind_alter_owner,
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
    "CommentStmt": bind_comment,
    "DropStmt": bind_drop,
    "CreateFunctionStmt": bind_create_function,
    "AlterFunctionStmt": bind_alter_function,
    "CreateEnumStmt": bind_create_enum,
    "AlterEnumStmt": bind_alter_enum,
    "CreateDomainStmt": bind_create_domain,
    "AlterDomainStmt": bind_alter_domain,
    "CompositeTypeStmt": bind_create_composite,
    "CreateRangeStmt": refuse_range,
    "TruncateStmt": bind_truncate,
}
