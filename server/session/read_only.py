"""The statements that a read-only transaction refuses."""

from __future__ import annotations

from typing import Final

from planner.statements.definitions import (
    AlterExtension,
    AlterSchema,
    AlterSequence,
    AlterTable,
    AlterType,
    AlterView,
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
    CopyIn,
    CreateTableAs,
    CreateView,
    Delete,
    Insert,
    Merge,
    Modifying,
    Update,
)

#: Statements that change something, with the word for the error.
WRITES: Final[dict[type, str]] = {
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
