"""Maps the types of a query from another server, or from an earlier time, to the types of a catalog.

Owns: the rule when a type in a catalog is the same as one that was stored elsewhere: it has the same schema and name,
and all labels in their order, or the same fields. Labels may have been added since. Values of types that a catalog
lacks are shown as text, so that no client receives an oid that is not in pg_type.
"""

from __future__ import annotations

from collections.abc import Iterable

from msgspec.structs import replace

from catalog.catalog import Catalog
from catalog.objects import rows_of
from catalog.values.types import ARRAYS, OF_EXTENSIONS, OID, TEXT, Composite, Enumeration, SqlType, enum, row


def own_type(catalog: Catalog, kind: SqlType) -> SqlType | None:
    """The type in a catalog that is the same as a stored one; None if there is none."""
    if kind.element is not None:
        element = own_type(catalog, kind.element)
        return None if element is None else replace(kind, element=element)
    if kind.enum is not None:
        found = catalog.types.get((kind.enum.schema, kind.enum.name))
        return enum(found) if isinstance(found, Enumeration) and _has_all(found.labels, kind.enum.labels) else None
    if kind.row is not None:
        return _own_row(catalog, kind.row)
    return None if kind.name in OF_EXTENSIONS and catalog.declared(kind.oid) is None else kind


def shown_type(catalog: Catalog, kind: SqlType) -> SqlType:
    """The type itself, or the type of its values' texts; for an array, by its element type."""
    own = own_type(catalog, kind)
    if own is not None:
        return own
    return replace(kind, element=TEXT) if kind.name in ARRAYS else TEXT


def numbered(kind: SqlType) -> SqlType:
    """A type from another catalog without names for numbers: regclass and similar types would show the names of this
    catalog's objects."""
    if kind.element is not None:
        return replace(kind, element=numbered(kind.element))
    if kind.row is not None:
        return row(kind.row.over(numbered))
    return OID if kind.name.startswith("reg") else kind


def _own_row(catalog: Catalog, known: Composite) -> SqlType | None:
    fields = tuple((name, own_type(catalog, kind)) for name, kind in known.fields)
    if any(kind is None for _, kind in fields):
        return None
    if not known.oid:
        return row(replace(known, fields=fields))
    found = _rows(catalog, known.schema, known.name)
    return row(found) if found is not None and found.fields == fields else None


def _rows(catalog: Catalog, schema: str, name: str) -> Composite | None:
    """The type of a declared row type, or of a relation's rows."""
    found = catalog.types.get((schema, name))
    if isinstance(found, Composite):
        return found
    oid = catalog.names.get((schema, name))
    return None if oid is None else rows_of(catalog.objects[oid])


def _has_all(labels: Iterable[str], wanted: Iterable[str]) -> bool:
    """Whether the labels include the wanted ones, in their order."""
    rest = iter(labels)
    return all(label in rest for label in wanted)
