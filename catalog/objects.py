"""Objects of the catalog: schemas, tables, streams, views, sequences and types.

Owns: the objects' definitions. Knows nothing of storage, of SQL text, or of the ``Catalog`` that contains them
(``catalog.catalog``); expressions (defaults, checks) and view definitions are kept as SQL text and bound by the planner
each time.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final, Literal, get_args

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
#: The schema of a session's own temporary relations, which are hidden from other sessions.
PG_TEMP: Final = "pg_temp"
#: oids below this number are PostgreSQL's own.
FIRST_OID = 16384


class ColumnDefinition(Struct, frozen=True):
    """A column as declared; ``default`` is SQL text that names sequences by oid.

    ``identity`` is '' or 'a' (always) or 'd' (by default); ``sequences`` are those called by the default. ``generated``
    is the SQL text of a generated column's expression over the row's other columns. ``type`` is the base type of a
    ``domain`` (its oid), or an array of that base type (``domain`` is then the oid of the domain's array type, which is
    even). ``keeps_scale``: each of its numerics has its own display scale, which is stored in a column beside it
    (``with_scales``). ``collation`` is the oid of a declared collation, or 0 for the type's. ``grants`` are on this
    column only. ``is_computed``: a column of a view whose digits or length are not declared.
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
    """The privileges on a column alone, in a relation of ``owner``."""
    return Rights(owner, column.grants)


def with_scales(columns: tuple[ColumnDefinition, ...]) -> tuple[ColumnDefinition, ...]:
    """The stored columns of a row: these columns, then the scales of the columns that keep them."""
    kept = (item for item in columns if item.keeps_scale)
    return columns + tuple(ColumnDefinition(scale_name(item.name), scale_kind(item.type)) for item in kept)


class UniqueKey(Struct, frozen=True):
    """PRIMARY KEY or UNIQUE over columns; ``index``: a unique index that is not a constraint.

    ``deferrable`` and ``deferred`` are as in a ``ForeignKey``. ``nulls_alike``: NULLS NOT DISTINCT. ``orders`` are as
    in an ``Index``; empty if all are the default. ``index_comment`` is the comment on a constraint's index, ``comment``
    the one on the constraint.
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
    """An index: its name, the texts of its parts, and the columns that they use. (Tables are scanned with zone maps,
    but PostgreSQL's clients expect to find an index that they have created.)

    It enforces nothing unless it is ``unique``. A unique index over columns and all rows is never an ``Index`` but a
    ``UniqueKey``.

    ``orders`` are the texts after the key parts ('', ' DESC', ' NULLS FIRST', ' DESC NULLS LAST'); the last
    ``included`` parts are INCLUDE's, ``predicate`` is WHERE's text, ``nulls_alike`` means NULLS NOT DISTINCT, and
    ``method`` is USING's. ``labels`` are the names of its columns. ``shown`` are the texts of the parts and then of the
    predicate as PostgreSQL writes them, with each cast; ``types`` are the parts' types. The last three are empty for an
    index for which they were not stored.
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

    ``deferrable``: SET CONSTRAINTS may defer the check; ``deferred``: by default it is made at COMMIT. ``validated``:
    the constraint also holds for the rows that existed before it. ``full``: MATCH FULL, where either all columns are
    null or none. ``delete_columns`` are the columns that ON DELETE SET NULL or DEFAULT sets, if it names some.
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
    """CHECK (expression), kept as SQL text; ``validated``: it also holds for the rows that existed before it."""

    name: str
    expression: str
    validated: bool = True
    comment: str | None = None


class Table(Struct, frozen=True):
    """A table of this server: durable, unless it is temporary. For a temporary table, ``on_commit`` says what COMMIT
    does: delete its rows ('delete') or drop it ('drop')."""

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
        """The stored columns of a row."""
        return with_scales(self.columns)


class Stream(Struct, frozen=True):
    """An append-only relation that continuous views read: a foreign table of server ``stream`` (thesis 3.2.1).

    ``options`` are the OPTIONS of CREATE FOREIGN TABLE; with ``source`` = 'files', Spark feeds it from a folder. A copy
    of another server's stream has the options ``server`` and ``oid`` in addition, which no statement sets. Once columns
    were added or dropped, ``layout`` are the columns of the log's records (and their scales) in the order of their
    creation; a dropped column has no name. ``fills`` are the values of a column for rows older than the column.
    ``kept_since`` is the LSN behind which rows are kept, where the stream has a history (``catalog.stream_history``),
    and -1 until the record that begins it has an LSN.
    """

    oid: int
    name: str
    columns: tuple[ColumnDefinition, ...]
    options: tuple[tuple[str, str], ...] = ()
    schema: str = PUBLIC
    comment: str | None = None
    layout: tuple[ColumnDefinition, ...] = ()
    fills: tuple[Any, ...] = ()
    kept_since: int = -1

    @property
    def stored(self) -> tuple[ColumnDefinition, ...]:
        """The stored columns of a row."""
        return with_scales(self.columns)

    @property
    def keeps_rows(self) -> bool:
        """Whether this server keeps its rows. A copy of another server's stream has the option, too."""
        return bool(self.option("history")) and self.has_writers

    @property
    def has_writers(self) -> bool:
        """Whether clients of this server insert its rows; otherwise they come from a folder or another server."""
        return not self.option("source") and not self.option("server")

    def option(self, name: str, default: str = "") -> str:
        """One option's value."""
        return dict(self.options).get(name, default)


class FileTable(Struct, frozen=True):
    """A read-only table over files as each query finds them: a foreign table of server ``files``.

    ``options`` are path (a file, a folder or a pattern), format, header, delimiter, null, and partition (the columns
    that are in the names of folders) or version (of a Delta table).
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
        """The columns whose values are in the names of folders."""
        return tuple(name.strip() for name in self.option("partition").split(",") if name.strip())


#: What becomes of a row on which an expression fails: the view, the value or the row goes.
RowPolicy = Literal["fail", "null", "skip"]
ROW_POLICIES: Final[tuple[RowPolicy, ...]] = get_args(RowPolicy)


class View(Struct, frozen=True):
    """A view. ``continuous`` says whether it is maintained as a program over traces (thesis 4.2.6).

    ``options`` are those of WITH (...) or ALTER VIEW ... SET, such as maintenance_engine. ``settings`` are the session
    settings at its creation on which its meaning depends (TimeZone, search_path). ``names`` are the relations that the
    text names, each with the schema as written ('' if there is none) and the oid that the name meant; ``types`` are the
    user-defined types in the same form. ``reads`` are the columns of these relations, by oid: their names in the text
    and their current names. ``moved`` are the columns read by a continuous view's program that were renamed since: oid,
    name in the program, current name. ``labels`` are the enums that its program converts to text, and ``kept_labels``
    the oids of those whose text is in its states. ``materialized``: it was created as a materialized view; its rows
    are always as if it had been refreshed just now. ``functions`` are the oids of the user-defined functions that it
    calls, directly or through others; ``calls`` are the functions that its text names, in the form of ``names``.
    ``indexes`` are those of a materialized view: clients list them, and they enforce nothing. ``derived``: a continuous
    view that reads no stream itself. Its program has no states, and says what its text says. ``populated``: a
    materialized view may be read; not so WITH NO DATA, until REFRESH. ``timed``: the rows of a continuous view depend
    on when it is read (now(), the system catalogs). ``files_since``: by the oid of a stream that has rows of before the
    view's creation, files of its folder or a history, the LSN behind which these count; rows of other streams count
    from ``created_lsn`` on. ``program`` names the program that a change of its options has given a continuous view; ''
    for that of its creation.
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
    derived: bool = False
    populated: bool = True
    timed: bool = False
    files_since: tuple[tuple[int, int], ...] = ()
    program: str = ""

    def since(self, stream: int) -> int:
        """The LSN behind which the rows of a stream count."""
        return dict(self.files_since).get(stream, self.created_lsn)

    @property
    def keeps_rows(self) -> bool:
        """Whether it is a continuous view over streams: its states keep rows that nothing else keeps."""
        return self.continuous and not self.derived

    @property
    def stored(self) -> tuple[ColumnDefinition, ...]:
        """The stored columns of a continuous view's row."""
        return with_scales(self.columns)

    @property
    def time_zone(self) -> str:
        """The TimeZone setting of its creation."""
        return dict(self.settings).get("TimeZone", "UTC")

    @property
    def on_error(self) -> RowPolicy:
        """What a view over streams does where an expression fails on a row."""
        found = dict(self.options).get("on_error")
        return "null" if found == "null" else "skip" if found == "skip" else "fail"

    @property
    def reads_as_invoker(self) -> bool:
        """Whether the view reads its relations with the privileges of the reading role (security_invoker)."""
        return dict(self.options).get("security_invoker") in ("true", "on", "yes", "1")


def as_plain(view: View) -> View:
    """A view that is computed from its text at each read, as it may be where nothing is kept for it alone."""
    assert not view.keeps_rows
    columns = tuple(replace(column, keeps_scale=False) for column in view.columns)
    return replace(view, columns=columns, continuous=False, derived=False, moved=(), labels=(), kept_labels=())


#: Relations that may have indexes.
Indexed = Table | View


def keys_of(item: Indexed) -> tuple[UniqueKey, ...]:
    """The keys of a table; a view has none."""
    return item.keys if isinstance(item, Table) else ()


class Sequence(Struct, frozen=True):
    """A generator of numbers.

    Its value does not belong to a catalog version: it is stored under ``state`` (executor.tables.sequences), and begins
    with ``last``, which counts as given out if ``called``. A restart takes a new state, so it can be undone.
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
    owner: tuple[int, str] | None = None  # oid of the table, and the column, with which it is dropped
    schema: str = PUBLIC
    comment: str | None = None

    @property
    def columns(self) -> tuple[ColumnDefinition, ...]:
        """The columns of a SELECT from it."""
        return SEQUENCE_COLUMNS


SEQUENCE_COLUMNS: Final = (
    ColumnDefinition("last_value", INT8, True),
    ColumnDefinition("log_cnt", INT8, True),
    ColumnDefinition("is_called", BOOL, True),
)


class SystemView(Struct, frozen=True):
    """A relation that the server computes when it is read, such as millstream.views, or that is defined over others
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


#: Schemas that exist without being created; all except ``public`` cannot be dropped.
BUILT_IN: Final = (
    Schema(11, PG_CATALOG, "system catalog schema"),
    Schema(2200, PUBLIC, "standard public schema"),
    Schema(13_207, "information_schema"),
    Schema(14_999, "millstream", "state and progress of streams, views, queries and servers"),
)
SYSTEM_SCHEMAS: Final = frozenset(item.name for item in BUILT_IN) - {PUBLIC}


def initial_rights(schema: str) -> Rights:
    """The privileges on a built-in schema."""
    return PUBLIC_SCHEMA if schema == PUBLIC else SYSTEM_SCHEMA


CatalogObject = Table | Stream | FileTable | View | SystemView | Sequence


class Domain(Struct, frozen=True):
    """A type of CREATE DOMAIN: the values of ``base`` (and of the domain ``parent``, if any) that meet its constraints.

    ``parent`` has the form of a column's domain: for a domain over an array of another domain, it is the oid of that
    domain's array type. In ``checks``, the column ``value`` is the value. ``oid`` is odd, as for all user-defined
    types.
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
    """Whether an object is temporary."""
    return not isinstance(item, Schema) and item.schema == PG_TEMP


def subject(item: CatalogObject, column: str | None = None, constraint: str | None = None) -> Subject:
    """The fields of a constraint error that name a relation."""
    return Subject(item.schema, item.name, column, constraint)


def null_value(item: CatalogObject, column: str, detail: str | None = None, row: int | None = None) -> SqlError:
    """The error 23502 for a row of a table or a stream; ``row`` is its place among the given rows."""
    message = f'null value in column "{column}" of relation "{item.name}" violates not-null constraint'
    return SqlError("23502", message, detail, about=subject(item, column), row=row)


def qualified(item: CatalogObject) -> str:
    """A relation's name outside of any search path: with its schema, unless that is ``public``."""
    return item.name if item.schema == PUBLIC else f"{quote_name(item.schema)}.{quote_name(item.name)}"


Typed = CatalogObject | UserType


def retyped(item: Typed, declared: Enumeration | Composite) -> Typed:
    """A relation after a type was redefined: its columns of the type, of a domain over it, or of rows with such fields
    get the new definition."""
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
