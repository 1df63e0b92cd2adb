"""What names stand for: schemas, tables, streams, views, sequences and types.

Owns: the objects' definitions. Knows nothing of storage, of SQL text, and of the ``Catalog`` that has them (see
``catalog.catalog``); expressions (defaults, checks) and view definitions are kept as SQL text and bound by the planner
each time.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final, Literal

from msgspec import Struct
from msgspec.structs import replace

from catalog.extensions import BaseType
from catalog.privileges import PUBLIC_SCHEMA, SYSTEM_SCHEMA, Grant, Rights
from catalog.roles import BOOTSTRAP
from catalog.values.errors import SqlError, Subject
from catalog.values.identifiers import quote_name
from catalog.values.nested_types import redeclared
from catalog.values.scales import scale_kind, scale_name
from catalog.values.types import BOOL, INT8, Composite, Enumeration, SqlType

PUBLIC: Final = "public"
PG_CATALOG: Final = "pg_catalog"
#: The schema of a session's own temporary relations, which no other session sees.
PG_TEMP: Final = "pg_temp"
#: oids below this are PostgreSQL's own.
FIRST_OID = 16384


class ColumnDefinition(Struct, frozen=True):
    """A column as declared; ``default`` is SQL text, in which a sequence is called by its oid.

    ``identity`` is '' or 'a' (always) or 'd' (by default); ``sequences`` are those that the default calls.
    ``generated`` is the SQL text of the expression over the row's other columns that is its value. ``type`` is the base
    type of a ``domain`` (its oid), or an array of that one's (the oid of the domain's array type, which is even).
    ``keeps_scale``: each of its numerics has decimals of its own, which are stored in a column beside it
    (``with_scales``). ``collation`` is the oid of a declared one, 0 that of the type. ``grants`` are of this column
    alone. A view's ``is_computed`` column has digits, or a length, that are not declared.
    """

    name: str
    type: SqlType
    not_null: bool = False
    default: str | None = None
    identity: str = ""
    sequences: tuple[int, ...] = ()
    comment: str | None = None
    generated: str | None = None
    domain: int = 0
    keeps_scale: bool = False
    collation: int = 0
    grants: tuple[Grant, ...] = ()
    is_computed: bool = False


def column_grants(column: ColumnDefinition, owner: int = BOOTSTRAP) -> Rights:
    """The rights that are granted on a column alone, in a relation that ``owner`` owns."""
    return Rights(owner, column.grants)


def with_scales(columns: tuple[ColumnDefinition, ...]) -> tuple[ColumnDefinition, ...]:
    """What a row of these columns holds: them, then the scales of those that keep them."""
    kept = (item for item in columns if item.keeps_scale)
    return columns + tuple(ColumnDefinition(scale_name(item.name), scale_kind(item.type)) for item in kept)


class UniqueKey(Struct, frozen=True):
    """PRIMARY KEY or UNIQUE over columns; ``index``: a unique index, and no constraint.

    ``deferrable`` and ``deferred`` as those of a ``ForeignKey``. ``nulls_alike``: NULLS NOT DISTINCT. ``orders`` of an
    index's columns as those of an ``Index``; none where all are the default. ``index_comment`` is on a constraint's
    index, ``comment`` on the constraint.
    """

    name: str
    columns: tuple[str, ...]
    primary: bool = False
    index: bool = False
    deferrable: bool = False
    deferred: bool = False
    comment: str | None = None
    nulls_alike: bool = False
    orders: tuple[str, ...] = ()
    index_comment: str | None = None


class Index(Struct, frozen=True):
    """An index: its name, the texts of its parts, and the columns that they use. (Tables are scanned with zone maps;
    PostgreSQL's clients expect that an index that they made is there.) It enforces nothing unless it is ``unique``,
    which one that is over columns and all rows never is here: that is a ``UniqueKey``.

    ``orders`` are the key parts' as written behind them ('', ' DESC', ' NULLS FIRST', ' DESC NULLS LAST'); the last
    ``included`` parts are INCLUDE's, ``predicate`` is WHERE's text, ``nulls_alike`` NULLS NOT DISTINCT, and ``method``
    USING's. ``labels`` are the names of its columns, and ``shown`` the parts' texts, and behind them the predicate's,
    as PostgreSQL writes them: with each cast; ``types`` are the parts'. All are empty where they were not kept.
    """

    name: str
    parts: tuple[str, ...]
    columns: tuple[str, ...]
    comment: str | None = None
    orders: tuple[str, ...] = ()
    included: int = 0
    predicate: str | None = None
    unique: bool = False
    nulls_alike: bool = False
    method: str = "btree"
    labels: tuple[str, ...] = ()
    shown: tuple[str, ...] = ()
    types: tuple[SqlType, ...] = ()


class ForeignKey(Struct, frozen=True):
    """REFERENCES: each non-null tuple of ``columns`` has a partner in ``target``'s ``target_columns``.

    ``deferrable``: SET CONSTRAINTS chooses when that is checked; ``deferred``: by default when a transaction commits.
    ``validated``: it holds of the rows that were there before it, too. ``full``: MATCH FULL, where all columns are null
    or none. ``delete_columns`` are those that ON DELETE SET NULL or DEFAULT sets, where that names some.
    """

    name: str
    columns: tuple[str, ...]
    target: int  # oid
    target_columns: tuple[str, ...]
    on_delete: str = "a"  # pg_constraint.confdeltype: a no action, r restrict, c cascade, n set null, d set default
    on_update: str = "a"
    deferrable: bool = False
    deferred: bool = False
    validated: bool = True
    comment: str | None = None
    full: bool = False
    delete_columns: tuple[str, ...] = ()


class Check(Struct, frozen=True):
    """CHECK (expression), kept as SQL text; ``validated``: it holds of the rows that were there before it, too."""

    name: str
    expression: str
    validated: bool = True
    comment: str | None = None


class Table(Struct, frozen=True):
    """A table of this server: durable, unless it is temporary. ``on_commit`` is what then becomes of its rows when a
    transaction commits ('delete') or of itself ('drop').
    """

    oid: int
    name: str
    columns: tuple[ColumnDefinition, ...]
    keys: tuple[UniqueKey, ...] = ()
    foreign_keys: tuple[ForeignKey, ...] = ()
    checks: tuple[Check, ...] = ()
    schema: str = PUBLIC
    indexes: tuple[Index, ...] = ()
    comment: str | None = None
    on_commit: Literal["", "delete", "drop"] = ""

    @property
    def stored(self) -> tuple[ColumnDefinition, ...]:
        """What a row holds."""
        return with_scales(self.columns)


class Stream(Struct, frozen=True):
    """An append-only relation that continuous views read: a foreign table of server ``stream`` (thesis 3.2.1).

    ``options`` are the OPTIONS of CREATE FOREIGN TABLE; ``source`` = 'files' makes Spark feed it from a folder. One of
    another server's has ``server`` and ``oid`` beside these, which no statement gives. Once columns came or went,
    ``layout`` are those that records have (scales too), in the order in which they came; one that was dropped has no
    name. ``fills`` are the values that rows from before a column have of it.
    """

    oid: int
    name: str
    columns: tuple[ColumnDefinition, ...]
    options: tuple[tuple[str, str], ...] = ()
    schema: str = PUBLIC
    comment: str | None = None
    layout: tuple[ColumnDefinition, ...] = ()
    fills: tuple[Any, ...] = ()

    @property
    def stored(self) -> tuple[ColumnDefinition, ...]:
        """What a row holds."""
        return with_scales(self.columns)

    @property
    def has_writers(self) -> bool:
        """Whether clients write its rows here: those of others come from a folder, or another server."""
        return not self.option("source") and not self.option("server")

    def option(self, name: str, default: str = "") -> str:
        """One option's value."""
        return dict(self.options).get(name, default)


class FileTable(Struct, frozen=True):
    """A read-only table over files as they are when a query reads them: a foreign table of server ``files``.

    ``options`` are path (a file, a folder or a pattern), format, header, delimiter, null, and partition (names of the
    columns that are in the names of folders) or version (of a Delta table).
    """

    oid: int
    name: str
    columns: tuple[ColumnDefinition, ...]
    options: tuple[tuple[str, str], ...] = ()
    schema: str = PUBLIC
    comment: str | None = None

    def option(self, name: str, default: str = "") -> str:
        """One option's value."""
        return dict(self.options).get(name, default)

    @property
    def partition(self) -> tuple[str, ...]:
        """Columns whose values are in the names of folders."""
        return tuple(name.strip() for name in self.option("partition").split(",") if name.strip())


class View(Struct, frozen=True):
    """A view. ``continuous`` says whether it is maintained as a program over traces (thesis 4.2.6).

    ``options`` are those of WITH (...) or ALTER VIEW ... SET, such as maintenance_engine. ``settings`` are the
    session settings of its creation that its meaning depends on (TimeZone, search_path). ``names`` are the relations
    that the text names, each with the schema as written ('' where there is none) and the oid that it stood for;
    ``types`` are the users' types, likewise. ``reads`` are the relations' columns, by oid: as the text calls them and
    as they are called now. ``moved`` are the columns that a continuous view's program reads and that have another name
    now: oid, name in the program, name now. ``labels`` are the enums of which its program makes text, and
    ``kept_labels`` the oids of those whose text its states hold. ``materialized`` is one that was created so;
    of tables, its rows are computed when it is read, as if it were refreshed each time. ``functions`` are the users'
    functions that it calls, by oid, itself or through others; ``calls`` those that its text names, as ``names``.
    ``indexes`` are those of one created as materialized: clients list them, and they enforce nothing, since the rows
    are computed when the view is read.
    """

    oid: int
    name: str
    columns: tuple[ColumnDefinition, ...]
    definition: str
    continuous: bool
    created_lsn: int
    depends_on: tuple[int, ...] = ()
    options: tuple[tuple[str, str], ...] = ()
    settings: tuple[tuple[str, str], ...] = ()
    schema: str = PUBLIC
    comment: str | None = None
    names: tuple[tuple[str, str, int], ...] = ()
    types: tuple[tuple[str, str, int], ...] = ()
    reads: tuple[tuple[int, tuple[tuple[str, str], ...]], ...] = ()
    moved: tuple[tuple[int, str, str], ...] = ()
    labels: tuple[SqlType, ...] = ()
    kept_labels: tuple[int, ...] = ()
    materialized: bool = False
    functions: tuple[int, ...] = ()
    calls: tuple[tuple[str, str, int], ...] = ()
    indexes: tuple[Index, ...] = ()

    @property
    def stored(self) -> tuple[ColumnDefinition, ...]:
        """What a row of a continuous view holds."""
        return with_scales(self.columns)

    @property
    def time_zone(self) -> str:
        """The TimeZone setting of its creation."""
        return dict(self.settings).get("TimeZone", "UTC")

    @property
    def reads_as_invoker(self) -> bool:
        """Whether the view reads its relations with the privileges of the reading role (security_invoker)."""
        return dict(self.options).get("security_invoker") in ("true", "on", "yes", "1")


#: Relations that have indexes.
Indexed = Table | View


def keys_of(item: Indexed) -> tuple[UniqueKey, ...]:
    """A table's keys; a view has none."""
    return item.keys if isinstance(item, Table) else ()


class Sequence(Struct, frozen=True):
    """A generator of numbers. Its value is no part of a version: it is kept under ``state``
    (executor.tables.sequences), and begins with ``last``, which counts as given when ``called``. A restart takes a new
    state, so it can be undone.
    """

    oid: int
    name: str
    type: SqlType
    start: int
    increment: int
    minimum: int
    maximum: int
    cycle: bool
    cache: int
    state: int
    last: int
    called: bool = False
    owner: tuple[int, str] | None = None  # table's oid and column that it goes with
    schema: str = PUBLIC
    comment: str | None = None

    @property
    def columns(self) -> tuple[ColumnDefinition, ...]:
        """What a SELECT from it shows."""
        return SEQUENCE_COLUMNS


SEQUENCE_COLUMNS: Final = (
    ColumnDefinition("last_value", INT8, True),
    ColumnDefinition("log_cnt", INT8, True),
    ColumnDefinition("is_called", BOOL, True),
)


class SystemView(Struct, frozen=True):
    """A relation that the server computes when it is read, such as millstream.views, or by a definition over others
    (information_schema's views)."""

    oid: int
    schema: str
    name: str
    columns: tuple[ColumnDefinition, ...]
    definition: str = ""


class Schema(Struct, frozen=True):
    """A namespace of relations."""

    oid: int
    name: str
    comment: str | None = None


#: Schemas that are there without being created; all but ``public`` stay.
BUILT_IN: Final = (
    Schema(11, PG_CATALOG, "system catalog schema"),
    Schema(2200, PUBLIC, "standard public schema"),
    Schema(13_207, "information_schema"),
    Schema(14_999, "millstream", "state and progress of streams, views, queries and servers"),
)
SYSTEM_SCHEMAS: Final = frozenset(item.name for item in BUILT_IN) - {PUBLIC}


def initial_rights(schema: str) -> Rights:
    """The rights on a built-in schema."""
    return PUBLIC_SCHEMA if schema == PUBLIC else SYSTEM_SCHEMA


CatalogObject = Table | Stream | FileTable | View | SystemView | Sequence


class Domain(Struct, frozen=True):
    """A type of CREATE DOMAIN: values of ``base`` (and of the domain ``parent``, if any) that its constraints let pass.

    ``parent`` is what a column's domain is: of a domain over an array of another one the oid of that array type.

    In ``checks`` the column ``value`` is the value. ``oid`` is odd, as all users' types have it.
    """

    oid: int
    name: str
    base: SqlType
    parent: int = 0
    default: str | None = None
    not_null: bool = False
    checks: tuple[Check, ...] = ()
    schema: str = PUBLIC
    comment: str | None = None

    def __str__(self) -> str:
        """The name as format_type() prints it."""
        return quote_name(self.name)


UserType = Enumeration | Domain | Composite | BaseType
Kind = Literal["table", "stream", "files", "view", "system"]


def rows_of(item: CatalogObject) -> Composite:
    """The type of a relation's rows."""
    fields = tuple((column.name, column.type) for column in item.columns)
    return Composite(item.oid, item.name, fields, item.schema, domains=domains_of(item.columns))


def domains_of(columns: Iterable[ColumnDefinition]) -> tuple[int, ...]:
    """The domains of a row's fields."""
    found = tuple(column.domain for column in columns)
    return found if any(found) else ()


def is_temporary(item: CatalogObject | Schema) -> bool:
    """Whether an object is a session's own."""
    return not isinstance(item, Schema) and item.schema == PG_TEMP


def subject(item: CatalogObject, column: str | None = None, constraint: str | None = None) -> Subject:
    """What an error of a relation's constraint is about."""
    return Subject(item.schema, item.name, column, constraint)


def null_value(item: CatalogObject, column: str, detail: str | None = None, row: int | None = None) -> SqlError:
    """23502 for a row of a table or a stream; ``row`` is its place among those given."""
    message = f'null value in column "{column}" of relation "{item.name}" violates not-null constraint'
    return SqlError("23502", message, detail, about=subject(item, column), row=row)


def qualified(item: CatalogObject) -> str:
    """A relation's name where no search path says what is meant: with its schema, unless that is ``public``."""
    return item.name if item.schema == PUBLIC else f"{quote_name(item.schema)}.{quote_name(item.name)}"


Typed = CatalogObject | UserType


def retyped(item: Typed, declared: Enumeration | Composite) -> Typed:
    """A relation whose columns of a type are of its new definition, or a domain over it, or rows with fields of it."""
    if isinstance(item, Sequence | Enumeration | BaseType):
        return item
    if isinstance(item, Composite):
        return item.over(lambda kind: redeclared(kind, declared))
    if isinstance(item, Domain):
        base = redeclared(item.base, declared)
        return item if base == item.base else replace(item, base=base)
    columns = tuple(replace(column, type=redeclared(column.type, declared)) for column in item.columns)
    if isinstance(item, View) and item.labels:
        labels = tuple(redeclared(label, declared) for label in item.labels)
        return (
            item if (columns, labels) == (item.columns, item.labels) else replace(item, columns=columns, labels=labels)
        )
    return item if columns == item.columns else replace(item, columns=columns)
