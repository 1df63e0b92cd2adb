"""Types within types: elements of arrays, fields of rows, and the user-defined types among them.

Owns: the walk over the types within a type. Knows nothing of values or of a catalog's types.
"""

from __future__ import annotations

from collections.abc import Callable

from msgspec.structs import replace

from catalog.values.types import ARRAYS, Composite, Enumeration, SqlType, enum, row


def enum_of(kind: SqlType) -> Enumeration | None:
    """The enum of a type, or of an array's element type; None for others."""
    return kind.enum if kind.element is None else enum_of(kind.element)


def delimiter_of(element: SqlType) -> str:
    """The delimiter of an array's elements (pg_type.typdelim)."""
    return ";" if element.name == "box" else ","


def is_declared(kind: SqlType) -> bool:
    """Whether a type, or an array's element type, needs more than its oid to be known: user-defined types, and row
    types."""
    return is_declared(kind.element) if kind.element is not None else kind.enum is not None or kind.row is not None


def holds(kind: SqlType, found: Callable[[SqlType], bool]) -> bool:
    """Whether a predicate is true for a type, for an array's element type, or for a field of a row."""
    if kind.element is not None and kind.name in ARRAYS:
        return found(kind) or holds(kind.element, found)
    return found(kind) or (kind.row is not None and any(holds(field, found) for _, field in kind.row.fields))


def over_enums(kind: SqlType, change: Callable[[Enumeration], Enumeration]) -> SqlType:
    """The type with another enum, if it, or an array's element type, is an enum."""
    if kind.element is not None:
        return replace(kind, element=over_enums(kind.element, change))
    return kind if kind.enum is None else enum(change(kind.enum))


def redeclared(kind: SqlType, declared: Enumeration | Composite) -> SqlType:
    """The type with the new definition of a user-defined type, if it is or contains that type."""
    match kind, declared:
        case SqlType(name="array" | "shaped", element=SqlType() as element), _:
            return replace(kind, element=redeclared(element, declared))
        case SqlType(row=Composite() as known), Composite() if known.oid == declared.oid:
            return row(declared)
        case SqlType(row=Composite() as known), _:
            return row(known.over(lambda field: redeclared(field, declared)))
        case SqlType(enum=Enumeration() as known), Enumeration() if known.oid == declared.oid:
            return enum(declared)
        case _:
            return kind
