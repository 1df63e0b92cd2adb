"""The statements that a read-only transaction refuses.

Owns: which ones these are. Rows of a temporary table are no part of the database, so that changing them is allowed.
"""

from __future__ import annotations

from typing import Final

from catalog.objects import is_temporary
from catalog.values.errors import SqlError
from planner.statements.definitions import (
    AlterExtension,
    AlterSchema,
    AlterSequence,
    AlterTable,
    AlterType,
    ChangeDefaults,
    ChangeRights,
    ChangeRoles,
    CreateExtension,
    CreateFunction,
    CreateSchema,
    CreateSequence,
    CreateStream,
    CreateTable,
    CreateType,
    Drop,
    DropExtension,
    DropFunction,
    DropType,
    Redefine,
    Truncate,
)
from planner.statements.statement import (
    AlterView,
    CopyIn,
    CopyOut,
    CreateTableAs,
    CreateView,
    Delete,
    Explain,
    Insert,
    Merge,
    Modifying,
    Query,
    RowChange,
    Statement,
    Update,
)

#: Statements that change something, with the word for the error.
_WRITES: Final[dict[type, str]] = {
    Insert: "INSERT",
    Update: "UPDATE",
    Delete: "DELETE",
    Merge: "MERGE",
    Modifying: "SELECT",
    Truncate: "TRUNCATE TABLE",
    CreateSchema: "CREATE SCHEMA",
    AlterSchema: "ALTER SCHEMA",
    CreateTable: "CREATE TABLE",
    CreateTableAs: "CREATE TABLE AS",
    CreateSequence: "CREATE SEQUENCE",
    AlterSequence: "ALTER SEQUENCE",
    AlterTable: "ALTER TABLE",
    Redefine: "ALTER TABLE",
    CreateStream: "CREATE FOREIGN TABLE",
    CreateView: "CREATE VIEW",
    Drop: "DROP",
    AlterView: "ALTER VIEW",
    CreateType: "CREATE TYPE",
    AlterType: "ALTER TYPE",
    DropType: "DROP TYPE",
    CreateFunction: "CREATE FUNCTION",
    DropFunction: "DROP FUNCTION",
    CreateExtension: "CREATE EXTENSION",
    AlterExtension: "COMMENT",
    DropExtension: "DROP EXTENSION",
    ChangeRoles: "ALTER ROLE",
    ChangeRights: "GRANT",
    ChangeDefaults: "ALTER DEFAULT PRIVILEGES",
    CopyIn: "COPY FROM",
}


def check_read_only(statement: Statement) -> None:
    """Raises 25006 where a read-only transaction refuses the statement."""
    match statement:
        case CopyOut(query=within) | Explain(analyze=True, statement=within):
            statement = within
        case _:
            pass
    if isinstance(statement, tuple(_WRITES)) and not _is_of_temporary(statement):
        raise SqlError("25006", f"cannot execute {_WRITES[type(statement)]} in a read-only transaction")
    if isinstance(statement, Query) and statement.locking is not None:
        raise SqlError("25006", f"cannot execute SELECT {statement.locking.words} in a read-only transaction")


def _is_of_temporary(statement: Statement) -> bool:
    """Whether a statement changes rows of a temporary table."""
    return isinstance(statement, RowChange | CopyIn) and is_temporary(statement.target)
