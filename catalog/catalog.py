"""All objects at one version, immutable: look-ups by name and oid, and the changes of DDL statements.

A DDL statement makes a new ``Catalog``; the old one stays unchanged as the snapshot of running statements.
``catalog.objects`` defines the objects.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Final

from msgspec import Struct, field
from msgspec.structs import replace

from catalog.default_privileges import DefaultRights
from catalog.extensions import BaseType, Extension, is_member
from catalog.objects import (
    BUILT_IN,
    FIRST_OID,
    PG_CATALOG,
    PG_TEMP,
    CatalogObject,
    Domain,
    Schema,
    Sequence,
    SystemView,
    Table,
    Typed,
    UserType,
    View,
    initial_rights,
    is_temporary,
    retyped,
    rows_of,
)
from catalog.privileges import DATABASE, DATABASE_RIGHTS, OF_SCHEMA, Rights
from catalog.roles import Roles
from catalog.routines import NONE, Function, Functions, by_name, every
from catalog.values.errors import SqlError, duplicate_table, undefined_table
from catalog.values.oids import FIRST_ROW, row_oid
from catalog.values.types import Composite, Enumeration, SqlType, array, enum, row

_SHARED: Final = (
    "A relation has an associated type of the same name, so you must use a name that doesn't conflict with any existing"
    " type."
)


_NOBODY_ELSES: Final = Rights()


class Catalog(Struct, frozen=True):
    """All objects at one version. ``version`` grows with every DDL statement and is part of the keys of plan caches.

    ``schemas`` are found by name, and objects refer to them by name. ``types`` are user-defined types, by schema and
    name; relations share their names, since a relation is also a type (of its rows). ``rights`` has, by oid, the
    privileges of objects for which they are not those of an object that only the first superuser has used.
    ``functions`` are user-defined functions, by name. ``extensions`` are the created ones, by name; their members are
    among types and functions. ``defaults`` are the default privileges of new objects. ``temporary`` is the number of
    temporary relations.
    """

    objects: Mapping[int, CatalogObject] = field(default_factory=lambda: MappingProxyType({}))
    names: Mapping[tuple[str, str], int] = field(default_factory=lambda: MappingProxyType({}))
    version: int = 0
    next_oid: int = FIRST_OID
    schemas: Mapping[str, Schema] = field(
        default_factory=lambda: MappingProxyType({item.name: item for item in BUILT_IN})
    )
    types: Mapping[tuple[str, str], UserType] = field(default_factory=lambda: MappingProxyType({}))
    roles: Roles = field(default_factory=Roles)
    rights: Mapping[int, Rights] = field(
        default_factory=lambda: MappingProxyType({item.oid: initial_rights(item.name) for item in BUILT_IN})
    )
    functions: Functions = field(default_factory=lambda: NONE)
    extensions: Mapping[str, Extension] = field(default_factory=lambda: MappingProxyType({}))
    defaults: tuple[DefaultRights, ...] = ()
    temporary: int = 0

    def with_defaults(self, defaults: tuple[DefaultRights, ...]) -> Catalog:
        """A catalog with other default privileges."""
        next_oid = max(self.next_oid, *(item.oid + 1 for item in defaults), 0)
        return replace(self, defaults=defaults, version=self.version + 1, next_oid=next_oid)

    def function(self, oid: int) -> Function | None:
        """The user-defined function with an oid."""
        return next((item for item in every(self.functions) if item.oid == oid), None)

    def put_function(self, item: Function) -> Catalog:
        """A catalog with a function, which replaces the one with its oid."""
        kept = (known for known in every(self.functions) if known.oid != item.oid)
        return replace(
            self,
            functions=by_name((*kept, item)),
            version=self.version + 1,
            next_oid=self._after(item.oid),
        )

    def drop_function(self, oid: int) -> Catalog:
        """A catalog without one function."""
        kept = by_name(item for item in every(self.functions) if item.oid != oid)
        return replace(self, functions=kept, rights=self._without(oid), version=self.version + 1)

    def _after(self, oid: int) -> int:
        """The next free oid after ``oid`` is taken; oids of extension members are in another range."""
        return self.next_oid if is_member(oid) else max(self.next_oid, oid + 1)

    def with_extension(self, item: Extension) -> Catalog:
        """A catalog with an extension, which replaces the one of its name."""
        return replace(
            self,
            extensions=MappingProxyType({**self.extensions, item.name: item}),
            version=self.version + 1,
            next_oid=max(self.next_oid, item.oid + 1),
        )

    def without_extension(self, name: str) -> Catalog:
        """A catalog without one extension."""
        kept = {known: item for known, item in self.extensions.items() if known != name}
        rights = self._without(self.extensions[name].oid)
        return replace(self, extensions=MappingProxyType(kept), rights=rights, version=self.version + 1)

    def with_roles(self, roles: Roles) -> Catalog:
        """A catalog with other roles."""
        next_oid = max(self.next_oid, *(item.oid + 1 for item in roles.items))
        return replace(self, roles=roles, version=self.version + 1, next_oid=next_oid)

    def rights_of(self, oid: int) -> Rights:
        """The owner of an object and its grants."""
        return self.rights.get(oid, DATABASE_RIGHTS if oid == DATABASE else _NOBODY_ELSES)

    def with_rights(self, oid: int, rights: Rights) -> Catalog:
        """A catalog in which an object has other privileges."""
        return replace(self, rights=MappingProxyType({**self.rights, oid: rights}), version=self.version + 1)

    def declared(self, oid: int) -> UserType | None:
        """The user-defined type with an oid."""
        return next((item for item in self.types.values() if item.oid == oid), None)

    def type_of(self, oid: int) -> SqlType | None:
        """The SqlType of a user-defined type or of its array type, by oid."""
        for item in self.types.values() if oid >= FIRST_OID else ():
            if isinstance(item, Domain | BaseType):
                continue
            kind = enum(item) if isinstance(item, Enumeration) else row(item)
            if oid in (kind.oid, kind.array_oid):
                return kind if oid == kind.oid else array(kind)
        for relation in self.objects.values() if oid >= FIRST_ROW else ():
            if row_oid(relation.oid) == oid | 1:
                kind = row(rows_of(relation))
                return kind if oid == kind.oid else array(kind)
        return None

    def domain(self, oid: int) -> Domain:
        """A domain by its oid."""
        return next(item for item in self.types.values() if isinstance(item, Domain) and item.oid == oid)

    def type_oid(self) -> int:
        """The oid of the next type. It is odd; the one before it belongs to the array type."""
        return self.next_oid + 1 + self.next_oid % 2

    def add_type(self, item: UserType) -> Catalog:
        """A catalog with one more type. Raises 42710 if the name is taken."""
        key = (item.schema, item.name)
        if isinstance(item, Composite) and key in self.names:
            raise duplicate_table(item.name)
        if key in self.types or key in self.names:
            hint = None if key in self.types else _SHARED
            raise SqlError("42710", f'type "{item.name}" already exists', hint=hint)
        return replace(
            self,
            types=MappingProxyType({**self.types, key: item}),
            version=self.version + 1,
            next_oid=self._after(item.oid),
        )

    def drop_type(self, oid: int) -> Catalog:
        """A catalog without one type."""
        types = {key: item for key, item in self.types.items() if item.oid != oid}
        return replace(self, types=MappingProxyType(types), rights=self._without(oid), version=self.version + 1)

    def change_type(self, item: UserType) -> Catalog:
        """A catalog with one type's definition replaced (same oid; the name may differ)."""
        return replace(self.drop_type(item.oid).add_type(item), rights=self.rights, version=self.version + 1)

    def at(self, schema: str, name: str) -> CatalogObject | None:
        """The relation of a name in one schema, or None."""
        oid = self.names.get((schema, name))
        return None if oid is None else self.objects[oid]

    def find(self, name: str, path: tuple[str, ...]) -> CatalogObject | None:
        """The relation that an unqualified name means with a search path, or None."""
        found = (self.at(schema, name) for schema in whole_path(path))
        return next((item for item in found if item is not None), None)

    def require(self, schema: str, name: str) -> CatalogObject:
        """The relation of a name in one schema. Raises 3F000 and 42P01."""
        found = self.at(schema, name)
        if found is None:
            raise self.missing(name, schema)
        return found

    def missing(self, name: str, schema: str | None) -> SqlError:
        """The error for a name, qualified if it has a schema, without a relation."""
        if schema not in (None, PG_TEMP, *self.schemas):
            return SqlError("3F000", f'schema "{schema}" does not exist')
        return undefined_table(f"{schema}.{name}" if schema else name)

    def usable(self, path: tuple[str, ...], reader: int | None) -> tuple[str, ...]:
        """A search path without the schemas that a role may not use. None for the role means a superuser."""
        if reader is None:
            return path
        return tuple(name for name in path if name not in self.schemas or self._may_use(self.schemas[name], reader))

    def _may_use(self, schema: Schema, reader: int) -> bool:
        return self.rights_of(schema.oid).allows(self.roles, reader, "U", OF_SCHEMA)

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
        """A catalog with one more object. Raises 42P07 and 42P06 if the name is taken."""
        next_oid = self.next_oid if is_temporary(item) else max(self.next_oid, item.oid + 1)
        if isinstance(item, Schema):
            if item.name in self.schemas:
                raise SqlError("42P06", f'schema "{item.name}" already exists')
            schemas = MappingProxyType({**self.schemas, item.name: item})
            return replace(self, schemas=schemas, version=self.version + 1, next_oid=next_oid)
        key = (item.schema, item.name)
        if key in self.names:
            raise duplicate_table(item.name)
        if isinstance(self.types.get(key), Composite):
            raise duplicate_table(item.name)
        if key in self.types:
            raise SqlError("42710", f'type "{item.name}" already exists', hint=_SHARED)
        objects, names = {**self.objects, item.oid: item}, {**self.names, key: item.oid}
        return replace(
            self,
            objects=MappingProxyType(objects),
            names=MappingProxyType(names),
            version=self.version + 1,
            next_oid=next_oid,
            temporary=self.temporary + is_temporary(item),
        )

    def with_system(self, items: Iterable[SystemView]) -> Catalog:
        """A catalog with the server's own relations, which does not count as a change."""
        found = tuple(items)
        return replace(
            self,
            objects=MappingProxyType({**self.objects, **{item.oid: item for item in found}}),
            names=MappingProxyType({**self.names, **{(item.schema, item.name): item.oid for item in found}}),
        )

    def drop(self, oid: int) -> Catalog:
        """A catalog without one object. A schema must be empty."""
        schema = None if oid in self.objects else self.schema(oid)
        if schema is not None:
            assert next(self.contents(schema.name), None) is None
            schemas = {name: item for name, item in self.schemas.items() if item is not schema}
            defaults = tuple(item for item in self.defaults if item.schema != oid)
            rights = self._without(oid)
            return replace(
                self, schemas=MappingProxyType(schemas), rights=rights, defaults=defaults, version=self.version + 1
            )
        item = self.objects[oid]
        temporary = self.temporary - is_temporary(item)
        objects = {key: value for key, value in self.objects.items() if key != oid}
        names = {key: value for key, value in self.names.items() if value != oid}
        return replace(
            self,
            objects=MappingProxyType(objects),
            names=MappingProxyType(names),
            rights=self._without(oid),
            version=self.version + 1,
            temporary=temporary,
        )

    def _without(self, oid: int) -> Mapping[int, Rights]:
        if oid not in self.rights:
            return self.rights
        return MappingProxyType({key: item for key, item in self.rights.items() if key != oid})

    def change(self, item: CatalogObject | Schema) -> Catalog:
        """A catalog with one object's definition replaced (same oid; the name may differ)."""
        if isinstance(item, Schema):
            kept = {name: known for name, known in self.schemas.items() if known.oid != item.oid}
            return replace(self, schemas=MappingProxyType(kept), version=self.version).add(item)
        return replace(self.drop(item.oid).add(item), rights=self.rights, version=self.version + 1)

    def dependents(self, oid: int) -> Iterator[View | Table]:
        """The views that read an object, and the tables that refer to it or call it in a default."""
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
        """The sequences that are dropped together with a table's columns."""
        for item in self.objects.values():
            if isinstance(item, Sequence) and item.owner is not None and item.owner[0] == oid:
                yield item


def following(catalog: Catalog, declared: Enumeration | Composite) -> tuple[tuple[Typed, Typed], ...]:
    """The objects with columns, a base type or fields of a type, before and after the type's change."""
    types = (item for item in catalog.types.values() if item.oid != declared.oid)
    objects = (item for item in catalog.objects.values() if not isinstance(item, SystemView))
    found = ((item, retyped(item, declared)) for item in (*types, *objects))
    return tuple((item, new) for item, new in found if new != item)


@functools.lru_cache(256)
def whole_path(search_path: tuple[str, ...]) -> tuple[str, ...]:
    """The schemas in which a relation's name is looked up. The temporary and the system schema come first, unless the
    path contains them."""
    return tuple(name for name in (PG_TEMP, PG_CATALOG) if name not in search_path) + search_path
