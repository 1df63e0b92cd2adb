"""What names stand for: schemas, tables, streams, views, sequences and types, in an immutable catalog with a version.

Owns: the objects' definitions and name look-up. Knows nothing of storage or SQL text; expressions (defaults,
checks) and view definitions are kept as SQL text and bound by the planner each time.
A DDL statement makes a new ``Catalog``; whoever holds the old one goes on seeing it (a statement's snapshot).
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any, Final, Literal

from catalog.errors import SqlError, duplicate_table, undefined_table
from catalog.names import quote_name
from catalog.types import BOOL, INT8, Enumeration, SqlType, array, enum, redeclared

PUBLIC: Final = "public"
PG_CATALOG: Final = "pg_catalog"
#: The schema of a session's own temporary relations, which no other session sees.
PG_TEMP: Final = "pg_temp"
#: oids below this are PostgreSQL's own.
FIRST_OID = 16384


@dataclass(frozen=True, slots=True)
class ColumnDefinition:
    """A column as declared; ``default`` is SQL text, in which a sequence is called by its oid.

    ``identity`` is '' or 'a' (always) or 'd' (by default); ``sequences`` are those that the default calls.
    ``generated`` is the SQL text of the expression over the row's other columns that is its value. ``type`` is the base
    type of a ``domain`` (its oid).
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


@dataclass(frozen=True, slots=True)
class UniqueKey:
    """PRIMARY KEY or UNIQUE over columns; ``index``: a unique index, and no constraint.

    ``deferrable`` and ``deferred`` as those of a ``ForeignKey``.
    """

    name: str
    columns: tuple[str, ...]
    primary: bool = False
    index: bool = False
    deferrable: bool = False
    deferred: bool = False
    comment: str | None = None


@dataclass(frozen=True, slots=True)
class Index:
    """An index that enforces nothing: its name, the texts of its parts, and the columns that they use. (Tables are
    scanned with zone maps; PostgreSQL's clients expect that an index that they made is there.)
    """

    name: str
    parts: tuple[str, ...]
    columns: tuple[str, ...]
    comment: str | None = None


@dataclass(frozen=True, slots=True)
class ForeignKey:
    """REFERENCES: each non-null tuple of ``columns`` has a partner in ``target``'s ``target_columns``.

    ``deferrable``: SET CONSTRAINTS chooses when that is checked; ``deferred``: by default when a transaction commits.
    ``validated``: it holds of the rows that were there before it, too.
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


@dataclass(frozen=True, slots=True)
class Check:
    """CHECK (expression), kept as SQL text; ``validated``: it holds of the rows that were there before it, too."""

    name: str
    expression: str
    validated: bool = True
    comment: str | None = None


@dataclass(frozen=True, slots=True)
class Table:
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


@dataclass(frozen=True, slots=True)
class Stream:
    """An append-only relation that continuous views read: a foreign table of server ``stream`` (thesis 3.2.1).

    ``options`` are the OPTIONS of CREATE FOREIGN TABLE; ``source`` = 'files' makes Spark feed it from a folder. Once
    columns came or went, ``layout`` are those that records have, in the order in which they came; one that was dropped
    has no name. ``fills`` are the values that rows from before a column have of it.
    """

    oid: int
    name: str
    columns: tuple[ColumnDefinition, ...]
    options: tuple[tuple[str, str], ...] = ()
    schema: str = PUBLIC
    comment: str | None = None
    layout: tuple[ColumnDefinition, ...] = ()
    fills: tuple[Any, ...] = ()

    def option(self, name: str, default: str = "") -> str:
        """One option's value."""
        return dict(self.options).get(name, default)


@dataclass(frozen=True, slots=True)
class FileTable:
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


@dataclass(frozen=True, slots=True)
class View:
    """A view. ``continuous`` says whether it is maintained as a program over traces (thesis 4.2.6).

    ``options`` are those of WITH (...) or ALTER VIEW ... SET, such as maintenance_engine. ``settings`` are the
    session settings of its creation that its meaning depends on (TimeZone, search_path). ``names`` are the relations
    that the text names, each with the schema as written ('' where there is none) and the oid that it stood for;
    ``types`` are the users' types, likewise. ``reads`` are the relations' columns, by oid: as the text calls them and
    as they are called now. ``moved`` are the columns that a continuous view's program reads and that have another name
    now: oid, name in the program, name now. ``labels`` are the enums of which its program makes text, and
    ``kept_labels`` the oids of those whose text its states hold.
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


@dataclass(frozen=True, slots=True)
class Sequence:
    """A generator of numbers. Its value is no part of a version: it is kept under ``state`` (executor.sequences), and
    begins with ``last``, which counts as given when ``called``. A restart takes a new state, so it can be undone.
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


@dataclass(frozen=True, slots=True)
class SystemView:
    """A relation that the server computes when it is read, such as millstream.views, or by a definition over others
    (information_schema's views)."""

    oid: int
    schema: str
    name: str
    columns: tuple[ColumnDefinition, ...]
    definition: str = ""


@dataclass(frozen=True, slots=True)
class Schema:
    """A namespace of relations."""

    oid: int
    name: str
    comment: str | None = None


#: Schemas that are there without being created; all but ``public`` stay.
BUILT_IN: Final = (
    Schema(11, PG_CATALOG, "system catalog schema"),
    Schema(2200, PUBLIC, "standard public schema"),
    Schema(13_207, "information_schema"),
    Schema(14_999, "millstream", "what runs, how far it is, and what it costs"),
)
SYSTEM_SCHEMAS: Final = frozenset(item.name for item in BUILT_IN) - {PUBLIC}

CatalogObject = Table | Stream | FileTable | View | SystemView | Sequence


@dataclass(frozen=True, slots=True)
class Domain:
    """A type of CREATE DOMAIN: values of ``base`` (and of the domain ``parent``, if any) that its constraints let pass.

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


UserType = Enumeration | Domain
Kind = Literal["table", "stream", "files", "view", "system"]


@dataclass(frozen=True, slots=True)
class Catalog:
    """All objects at one version. ``version`` grows with every DDL statement and keys plan caches.

    ``schemas`` are by name, and so are objects' references to them. ``types`` are those that users declared, by schema
    and name. A relation is a type, too (of its rows), so that both share their names.
    """

    objects: Mapping[int, CatalogObject] = field(default_factory=lambda: MappingProxyType({}))
    names: Mapping[tuple[str, str], int] = field(default_factory=lambda: MappingProxyType({}))
    version: int = 0
    next_oid: int = FIRST_OID
    schemas: Mapping[str, Schema] = field(
        default_factory=lambda: MappingProxyType({item.name: item for item in BUILT_IN})
    )
    types: Mapping[tuple[str, str], UserType] = field(default_factory=lambda: MappingProxyType({}))

    def find_type(
        self, name: str, schema: str | None = None, search_path: tuple[str, ...] = (PUBLIC,)
    ) -> UserType | None:
        """The user's type that a possibly unqualified name means, or None."""
        for candidate in (schema,) if schema is not None else search_path:
            found = self.types.get((candidate, name))
            if found is not None:
                return found
        return None

    def declared(self, oid: int) -> UserType | None:
        """The user's type with an oid."""
        return next((item for item in self.types.values() if item.oid == oid), None)

    def type_of(self, oid: int) -> SqlType | None:
        """The values' type of a user's type or of its arrays, by oid."""
        for item in self.types.values() if oid >= FIRST_OID else ():
            if isinstance(item, Enumeration) and oid in (item.oid, item.oid - 1):
                return enum(item) if oid == item.oid else array(enum(item))
        return None

    def domain(self, oid: int) -> Domain:
        """A domain by its oid."""
        return next(item for item in self.types.values() if isinstance(item, Domain) and item.oid == oid)

    def type_oid(self) -> int:
        """The oid of the next type: odd, and the one before it is for its array type."""
        return self.next_oid + 1 + self.next_oid % 2

    def add_type(self, item: UserType) -> Catalog:
        """A catalog with one type more. Raises 42710 when the name is taken."""
        key = (item.schema, item.name)
        if key in self.types or key in self.names:
            hint = "A relation has an associated type of the same name, so you must use a name that doesn't conflict "
            raise SqlError(
                "42710",
                f'type "{item.name}" already exists',
                hint=None if key in self.types else f"{hint}with any existing type.",
            )
        return replace(
            self,
            types=MappingProxyType({**self.types, key: item}),
            version=self.version + 1,
            next_oid=max(self.next_oid, item.oid + 1),
        )

    def drop_type(self, oid: int) -> Catalog:
        """A catalog without one type."""
        types = {key: item for key, item in self.types.items() if item.oid != oid}
        return replace(self, types=MappingProxyType(types), version=self.version + 1)

    def change_type(self, item: UserType) -> Catalog:
        """A catalog with one type's definition replaced (same oid; the name may differ)."""
        return replace(self.drop_type(item.oid).add_type(item), version=self.version + 1)

    def find(
        self, name: str, schema: str | None = None, search_path: tuple[str, ...] = (PUBLIC,)
    ) -> CatalogObject | None:
        """The object that a possibly unqualified name means, or None."""
        for candidate in (schema,) if schema is not None else whole_path(search_path):
            oid = self.names.get((candidate, name))
            if oid is not None:
                return self.objects[oid]
        return None

    def require(self, name: str, schema: str | None = None, search_path: tuple[str, ...] = (PUBLIC,)) -> CatalogObject:
        """The object that a name means. Raises 3F000 and 42P01."""
        found = self.find(name, schema, search_path)
        if found is not None:
            return found
        if schema not in (None, PG_TEMP, *self.schemas):
            raise SqlError("3F000", f'schema "{schema}" does not exist')
        raise undefined_table(f"{schema}.{name}" if schema else name)

    def permanent(self) -> Catalog:
        """The catalog without temporary relations."""
        catalog = self
        for item in list(self.contents(PG_TEMP)):
            catalog = catalog.drop(item.oid)
        return catalog

    def contents(self, schema: str) -> Iterator[CatalogObject]:
        """The relations in a schema."""
        return (item for item in self.objects.values() if item.schema == schema)

    def schema(self, oid: int) -> Schema | None:
        """The schema with an oid."""
        return next((item for item in self.schemas.values() if item.oid == oid), None)

    def add(self, item: CatalogObject | Schema) -> Catalog:
        """A catalog with one object more. Raises 42P07 and 42P06 when the name is taken."""
        next_oid = self.next_oid if is_temporary(item) else max(self.next_oid, item.oid + 1)
        if isinstance(item, Schema):
            if item.name in self.schemas:
                raise SqlError("42P06", f'schema "{item.name}" already exists')
            schemas = MappingProxyType({**self.schemas, item.name: item})
            return replace(self, schemas=schemas, version=self.version + 1, next_oid=next_oid)
        key = (item.schema, item.name)
        if key in self.names:
            raise duplicate_table(item.name)
        if key in self.types:
            hint = "A relation has an associated type of the same name, so you must use a name that doesn't conflict "
            raise SqlError("42710", f'type "{item.name}" already exists', hint=f"{hint}with any existing type.")
        objects, names = {**self.objects, item.oid: item}, {**self.names, key: item.oid}
        return replace(
            self,
            objects=MappingProxyType(objects),
            names=MappingProxyType(names),
            version=self.version + 1,
            next_oid=next_oid,
        )

    def with_system(self, items: Iterable[SystemView]) -> Catalog:
        """A catalog with the server's own relations, which are no change of it."""
        found = tuple(items)
        return replace(
            self,
            objects=MappingProxyType({**self.objects, **{item.oid: item for item in found}}),
            names=MappingProxyType({**self.names, **{(item.schema, item.name): item.oid for item in found}}),
        )

    def drop(self, oid: int) -> Catalog:
        """A catalog without one object; of a schema nothing may be left."""
        schema = None if oid in self.objects else self.schema(oid)
        if schema is not None:
            assert next(self.contents(schema.name), None) is None
            schemas = {name: item for name, item in self.schemas.items() if item is not schema}
            return replace(self, schemas=MappingProxyType(schemas), version=self.version + 1)
        item = self.objects[oid]
        objects = {key: value for key, value in self.objects.items() if key != oid}
        names = {key: value for key, value in self.names.items() if value != oid}
        assert item.oid == oid
        return replace(self, objects=MappingProxyType(objects), names=MappingProxyType(names), version=self.version + 1)

    def change(self, item: CatalogObject | Schema) -> Catalog:
        """A catalog with one object's definition replaced (same oid; the name may differ)."""
        if isinstance(item, Schema):
            kept = {name: known for name, known in self.schemas.items() if known.oid != item.oid}
            return replace(self, schemas=MappingProxyType(kept), version=self.version).add(item)
        return replace(self.drop(item.oid).add(item), version=self.version + 1)

    def dependents(self, oid: int) -> Iterator[View | Table]:
        """Views that read an object, tables that reference it or call it in a default."""
        for item in self.objects.values():
            match item:
                case View() if oid in item.depends_on:
                    yield item
                case Table() if item.oid != oid and any(key.target == oid for key in item.foreign_keys):
                    yield item
                case Table() if any(oid in column.sequences for column in item.columns):
                    yield item
                case _:
                    pass

    def owned(self, oid: int) -> Iterator[Sequence]:
        """Sequences that go with a table's columns."""
        for item in self.objects.values():
            if isinstance(item, Sequence) and item.owner is not None and item.owner[0] == oid:
                yield item


def is_temporary(item: CatalogObject | Schema) -> bool:
    """Whether an object is a session's own."""
    return not isinstance(item, Schema) and item.schema == PG_TEMP


def qualified(item: CatalogObject) -> str:
    """A relation's name where no search path says what is meant: with its schema, unless that is ``public``."""
    return item.name if item.schema == PUBLIC else f"{quote_name(item.schema)}.{quote_name(item.name)}"


Typed = CatalogObject | UserType


def following(catalog: Catalog, declared: Enumeration) -> tuple[tuple[Typed, Typed], ...]:
    """The relations with columns of an enum, and the domains over it, before and after its new definition."""
    found = ((item, retyped(item, declared)) for item in (*catalog.types.values(), *catalog.objects.values()))
    return tuple((item, new) for item, new in found if new != item)


def retyped(item: Typed, declared: Enumeration) -> Typed:
    """A relation whose columns of an enum are of its new definition, or a domain over it."""
    if isinstance(item, Sequence | Enumeration):
        return item
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


@functools.lru_cache(256)
def whole_path(search_path: tuple[str, ...]) -> tuple[str, ...]:
    """The schemas in which a relation's name is looked up: what a path leaves out of these two comes first."""
    return tuple(name for name in (PG_TEMP, PG_CATALOG) if name not in search_path) + search_path
