"""What a statement that defines, alters or drops an object means once names and types are resolved.

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
    """TRUNCATE; ``restarts`` are the sequences that begin anew."""

    targets: tuple[Table, ...]
    restarts: tuple[Sequence, ...] = ()


class CreateSchema(Struct, frozen=True):
    """CREATE SCHEMA; ``schema`` has the next free oid; ``owner`` is AUTHORIZATION's role. ``elements`` are statements
    that follow in the new schema, each bound when those before it are done."""

    schema: Schema
    exists: bool = False
    owner: int | None = None
    elements: tuple[Raw, ...] = ()


class AlterSchema(Struct, frozen=True):
    """A schema under another name, which all in it follows, or with a comment."""

    tag: str
    before: Schema
    after: Schema


class CreateTable(Struct, frozen=True):
    """CREATE TABLE; ``table`` has the next free oid, and ``sequences`` of its columns those after it.

    ``exists`` when IF NOT EXISTS met an existing relation.
    """

    table: Table
    exists: bool = False
    sequences: tuple[Sequence, ...] = ()


class CreateSequence(Struct, frozen=True):
    """CREATE SEQUENCE; ``sequence`` has the next free oid and no state yet."""

    sequence: Sequence
    exists: bool = False


class AlterSequence(Struct, frozen=True):
    """ALTER SEQUENCE ... options: the new definition; it begins anew at ``sequence.last`` where ``restarts``."""

    sequence: Sequence
    restarts: bool = False


class AlterTable(Struct, frozen=True):
    """ALTER TABLE: ``table`` instead of ``before``. ``rows`` gives the new rows from the old ones (a Project over a
    Scan; None where columns stay as they are), and ``checks`` by name a relation with the rows that break one.

    ``changes`` are other objects that follow (tables that refer to it, sequences of its columns, views), before and
    after; ``sequences`` those of new columns, from the next free oid on; ``options`` those of identity columns; and
    ``drops`` what goes with it. ``renames``: a column or the table has another name, and nothing else.
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
    """A view, sequence or stream under other names, with a comment, or otherwise altered: ``item`` instead of
    ``before``; ``changes`` as in AlterTable."""

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
    """DROP of relations or schemas; ``oids`` includes what CASCADE takes along, dependents first.

    ``changes`` are the tables and views that lose a constraint, an index or a default by it, each before and after;
    ``types`` and ``extensions`` go with their schema, ``functions`` with it or with the types of the rows that they
    name.
    """

    kind: str  # the command's words, for the tag: 'TABLE', 'FOREIGN TABLE', 'MATERIALIZED VIEW', 'SCHEMA', ...
    oids: tuple[int, ...]
    notices: tuple[str, ...] = ()
    changes: tuple[tuple[Table | View, Table | View], ...] = ()
    types: DropType | None = None
    functions: tuple[Function, ...] = ()
    extensions: tuple[Extension, ...] = ()


class CreateType(Struct, frozen=True):
    """CREATE TYPE and CREATE DOMAIN; ``item`` has the next free oid for types."""

    tag: str
    item: UserType


class AlterType(Struct, frozen=True):
    """ALTER TYPE and ALTER DOMAIN: ``item`` instead of ``before``; ``changes`` are relations with columns of it and
    domains over it, before and after; ``checks`` are relations that must have no row, each with the error that one is;
    ``alterations`` are those of tables whose rows are other ones now.
    """

    tag: str
    before: UserType
    item: UserType
    changes: tuple[tuple[Typed, Typed], ...] = ()
    checks: tuple[tuple[SqlError, Relation], ...] = ()
    alterations: tuple[AlterTable, ...] = ()


class DropType(Struct, frozen=True):
    """DROP TYPE, with domains over them; ``drops`` are views that go with them, and ``alterations`` those of the tables
    that lose columns, defaults and checks, each over what those before it have left.
    """

    kind: str  # the command's word, for the tag
    items: tuple[UserType, ...]
    notices: tuple[str, ...] = ()
    drops: tuple[int, ...] = ()
    alterations: tuple[AlterTable, ...] = ()


class CreateFunction(Struct, frozen=True):
    """CREATE [OR REPLACE] FUNCTION, ALTER FUNCTION and COMMENT; ``before`` is what is replaced."""

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
    """DROP EXTENSION: ``functions`` are its members, ``types`` the others, with all that goes with them."""

    items: tuple[Extension, ...]
    functions: tuple[Function, ...]
    types: DropType


class AlterView(Struct, frozen=True):
    """ALTER VIEW ... SET/RESET (options): ``view`` is the new definition."""

    view: View


class ChangeRoles(Struct, frozen=True):
    """CREATE, ALTER and DROP ROLE, GRANT and REVOKE of roles: ``after`` instead of ``before``. A password that was
    just given is in ``after`` as it was given. ``setting`` is a name and value (None: reset) that a role or the
    database gets, which the server checks."""

    tag: str
    before: Roles
    after: Roles
    notices: tuple[SqlError, ...] = ()
    setting: tuple[str, str | None] | None = None


class ChangeRights(Struct, frozen=True):
    """GRANT, REVOKE and OWNER TO: objects' rights, before and after; ``columns``: relations of whose columns something
    is granted."""

    tag: str
    changes: tuple[tuple[int, Rights, Rights], ...]
    notices: tuple[SqlError, ...] = ()
    columns: tuple[AlterTable | Redefine, ...] = ()


class ChangeDefaults(Struct, frozen=True):
    """ALTER DEFAULT PRIVILEGES: all default rights, before and after."""

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
    | AlterView
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
