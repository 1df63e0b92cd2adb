"""Statements that define, alter or drop objects, with resolved names and types.

Owns: one frozen class per kind of such statement, and their alias ``Definition``. See ``planner.statements.statement``.
"""

from __future__ import annotations

from msgspec import Struct

from catalog.default_privileges import DefaultRights
from catalog.extensions import BaseType, Extension
from catalog.objects import FileTable, Schema, Sequence, Stream, Table, Typed, UserType, View
from catalog.privileges import Rights
from catalog.roles import Roles
from catalog.routines import Function
from catalog.values.errors import SqlError
from planner.algebra.nodes import Relation
from planner.parse.parser import Raw


class Truncate(Struct, frozen=True):
    """TRUNCATE; ``restarts`` are the sequences that restart."""

    targets: tuple[Table, ...]
    restarts: tuple[Sequence, ...] = ()


class CreateSchema(Struct, frozen=True):
    """CREATE SCHEMA. ``schema`` has the next free oid; ``owner`` is AUTHORIZATION's role. ``elements`` are the
    statements that create objects in the new schema; each is bound after the one before it has run."""

    schema: Schema
    exists: bool = False
    owner: int | None = None
    elements: tuple[Raw, ...] = ()


class AlterSchema(Struct, frozen=True):
    """ALTER SCHEMA: a schema with another name, which its objects follow, or with a comment."""

    tag: str
    before: Schema
    after: Schema


class CreateTable(Struct, frozen=True):
    """CREATE TABLE. ``table`` has the next free oid, and the ``sequences`` of its columns have the oids after it.

    ``exists``: IF NOT EXISTS found a relation of this name.
    """

    table: Table
    exists: bool = False
    sequences: tuple[Sequence, ...] = ()


class CreateSequence(Struct, frozen=True):
    """CREATE SEQUENCE; ``sequence`` has the next free oid and no state yet."""

    sequence: Sequence
    exists: bool = False


class AlterSequence(Struct, frozen=True):
    """ALTER SEQUENCE ... options: the new definition. If ``restarts``, the sequence restarts at ``sequence.last``."""

    sequence: Sequence
    restarts: bool = False


class AlterTable(Struct, frozen=True):
    """ALTER TABLE: ``table`` replaces ``before``.

    ``rows`` computes the new rows from the old ones (a Project over a Scan; None if no column changes). ``checks`` has,
    by constraint name, a relation of the rows that violate the constraint. ``changes`` are other objects that change
    too, before and after: tables that refer to this one, sequences of its columns, views. ``sequences`` are those of
    new columns, from the next free oid on; ``options`` change sequences of identity columns; ``drops`` are objects
    dropped with it. ``renames``: only names, comments or privileges change.
    """

    tag: str
    before: Table
    table: Table
    rows: Relation | None = None
    checks: tuple[tuple[str, Relation], ...] = ()
    changes: tuple[tuple[Table | Sequence | View, Table | Sequence | View], ...] = ()
    sequences: tuple[Sequence, ...] = ()
    options: tuple[AlterSequence, ...] = ()
    drops: tuple[int, ...] = ()
    notices: tuple[str, ...] = ()
    renames: bool = False


class Redefine(Struct, frozen=True):
    """A view, sequence or stream with another name or comment, or otherwise altered: ``item`` replaces ``before``;
    ``changes`` as in AlterTable."""

    tag: str
    before: View | Sequence | Stream | FileTable
    item: View | Sequence | Stream | FileTable
    changes: tuple[tuple[Table | Sequence | View, Table | Sequence | View], ...] = ()
    notices: tuple[str, ...] = ()


class CreateStream(Struct, frozen=True):
    """CREATE FOREIGN TABLE ... SERVER stream (PipelineDB's spelling too) or SERVER files."""

    stream: Stream | FileTable
    exists: bool = False


class Drop(Struct, frozen=True):
    """DROP of relations or schemas; ``oids`` includes the objects that CASCADE drops, dependents first.

    ``changes`` are the tables and views that lose a constraint, an index or a default, each before and after. ``types``
    and ``extensions`` are dropped with their schema; ``functions`` with their schema or with the row types that they
    use.
    """

    kind: str  # the command's words for the tag: 'TABLE', 'FOREIGN TABLE', 'MATERIALIZED VIEW', 'SCHEMA', ...
    oids: tuple[int, ...]
    notices: tuple[str, ...] = ()
    changes: tuple[tuple[Table | View, Table | View], ...] = ()
    types: DropType | None = None
    functions: tuple[Function, ...] = ()
    extensions: tuple[Extension, ...] = ()


class CreateType(Struct, frozen=True):
    """CREATE TYPE and CREATE DOMAIN. ``item`` has the next free oid for types."""

    tag: str
    item: UserType


class AlterType(Struct, frozen=True):
    """ALTER TYPE and ALTER DOMAIN: ``item`` replaces ``before``.

    ``changes`` are relations with columns of the type, and domains over it, before and after. ``checks`` are relations
    that must be empty, each with the error to raise if it is not. ``alterations`` change the tables whose rows must be
    rewritten.
    """

    tag: str
    before: UserType
    item: UserType
    changes: tuple[tuple[Typed, Typed], ...] = ()
    checks: tuple[tuple[SqlError, Relation], ...] = ()
    alterations: tuple[AlterTable, ...] = ()


class DropType(Struct, frozen=True):
    """DROP TYPE, with the domains over the types. ``drops`` are views dropped with them. ``alterations`` change the
    tables that lose columns, defaults and checks; each builds on the result of those before it."""

    kind: str  # the command's word, for the tag
    items: tuple[UserType, ...]
    notices: tuple[str, ...] = ()
    drops: tuple[int, ...] = ()
    alterations: tuple[AlterTable, ...] = ()


class CreateFunction(Struct, frozen=True):
    """CREATE [OR REPLACE] FUNCTION, ALTER FUNCTION and COMMENT; ``before`` is the function that is replaced."""

    function: Function
    before: Function | None = None
    tag: str = "CREATE FUNCTION"


class DropFunction(Struct, frozen=True):
    """DROP FUNCTION."""

    items: tuple[Function, ...]
    notices: tuple[str, ...] = ()


class CreateExtension(Struct, frozen=True):
    """CREATE EXTENSION: ``item`` and its members."""

    item: Extension
    types: tuple[BaseType, ...]
    functions: tuple[Function, ...]


class AlterExtension(Struct, frozen=True):
    """COMMENT ON EXTENSION."""

    tag: str
    before: Extension
    item: Extension


class DropExtension(Struct, frozen=True):
    """DROP EXTENSION: ``functions`` and ``types`` are its members, and ``drops`` are the objects that depend on
    them."""

    items: tuple[Extension, ...]
    functions: tuple[Function, ...]
    types: DropType


class ChangeRoles(Struct, frozen=True):
    """CREATE, ALTER and DROP ROLE, GRANT and REVOKE of roles: ``after`` replaces ``before``.

    A new password is in ``after`` as the client sent it. ``setting`` is the name and value (None: reset) of a setting
    for a role or the database; the server checks it.
    """

    tag: str
    before: Roles
    after: Roles
    notices: tuple[SqlError, ...] = ()
    setting: tuple[str, str | None] | None = None


class ChangeRights(Struct, frozen=True):
    """GRANT, REVOKE and OWNER TO: objects' privileges, before and after. ``columns``: the relations on whose columns
    privileges are granted."""

    tag: str
    changes: tuple[tuple[int, Rights, Rights], ...]
    notices: tuple[SqlError, ...] = ()
    columns: tuple[AlterTable | Redefine, ...] = ()


class ChangeDefaults(Struct, frozen=True):
    """ALTER DEFAULT PRIVILEGES: all default privileges, before and after."""

    before: tuple[DefaultRights, ...]
    after: tuple[DefaultRights, ...]


Definition = (
    CreateSchema
    | AlterSchema
    | CreateTable
    | CreateSequence
    | AlterSequence
    | AlterTable
    | Redefine
    | CreateStream
    | Drop
    | CreateType
    | AlterType
    | DropType
    | CreateFunction
    | DropFunction
    | CreateExtension
    | AlterExtension
    | DropExtension
    | ChangeRoles
    | ChangeRights
    | ChangeDefaults
)
