"""Types of a query that began on another server, or some time ago, as a catalog has them now.

Owns: which of a catalog's types is the same as one that was written down elsewhere: whose schema and name it has, and
all labels in their order, or the fields. Labels may have been added since. What a catalog has not is shown as text, so
that no client meets an oid that pg_type has not.
"""

from __future__ import annotations

from collections.abc import Iterable

from msgspec.structs import replace

from catalog.catalog import Catalog
from catalog.objects import rows_of
from catalog.values.types import ARRAYS, OF_EXTENSIONS, OID, TEXT, Composite, Enumeration, SqlType, enum, row


def own_type(catalog: Catalog, kind: SqlType) -> SqlType | None:
    """A catalog's type that is the same as one of before, or of another catalog; None where it has none."""
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
    """The type itself, or the type of the values' texts; for an array by its element type."""
    own = own_type(catalog, kind)
    if own is not None:
        return own
    return replace(kind, element=TEXT) if kind.name in ARRAYS else TEXT


def numbered(kind: SqlType) -> SqlType:
    """The type of another catalog's values: what only tells names for numbers, such as regclass, would tell those that
    others have here."""
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
    """A declared type of rows, or that of a relation's."""
    found = catalog.types.get((schema, name))
    if isinstance(found, Composite):
        return found
    oid = catalog.names.get((schema, name))
    return None if oid is None else rows_of(catalog.objects[oid])


def _has_all(labels: Iterable[str], wanted: Iterable[str]) -> bool:
    """Whether labels have those that are wanted among them, in their order."""
    rest = iter(labels)
    return all(label in rest for label in wanted)
