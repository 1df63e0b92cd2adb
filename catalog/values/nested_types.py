"""Types within types: elements of arrays, fields of rows, and the users' types among them.

Owns: the walk down a type. Knows nothing of values or of which types a catalog has.
"""

from __future__ import annotations

from collections.abc import Callable

from msgspec.structs import replace

from catalog.values.types import ARRAYS, Composite, Enumeration, SqlType, enum, row


def enum_of(kind: SqlType) -> Enumeration | None:
    """The enum that a type, or an array's element type, is."""
    return kind.enum if kind.element is None else enum_of(kind.element)


def delimiter_of(element: SqlType) -> str:
    """What stands between an array's elements (pg_type.typdelim)."""
    return ";" if element.name == "box" else ","


def is_declared(kind: SqlType) -> bool:
    """Whether a type, or an array's element type, is not told by its oid alone: users' types, and rows."""
    return is_declared(kind.element) if kind.element is not None else kind.enum is not None or kind.row is not None


def holds(kind: SqlType, found: Callable[[SqlType], bool]) -> bool:
    """Whether something is true of a type, of an array's element type, or of a row's fields."""
    if kind.element is not None and kind.name in ARRAYS:
        return found(kind) or holds(kind.element, found)
    return found(kind) or (kind.row is not None and any(holds(field, found) for _, field in kind.row.fields))


def over_enums(kind: SqlType, change: Callable[[Enumeration], Enumeration]) -> SqlType:
    """The type with another enum, where it, or an array's element type, is one."""
    if kind.element is not None:
        return replace(kind, element=over_enums(kind.element, change))
    return kind if kind.enum is None else enum(change(kind.enum))


def redeclared(kind: SqlType, declared: Enumeration | Composite) -> SqlType:
    """The type with a user's type's new definition, where it is, or holds, one of it."""
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
