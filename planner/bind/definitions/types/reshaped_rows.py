"""Tables with columns of a composite type whose attributes change.

Owns: the tables that are rewritten: each value keeps the fields that remain, and has NULL for a new attribute.
"""

from __future__ import annotations

from collections.abc import Iterator, Set

from msgspec.structs import replace

from catalog.objects import Table, View, as_plain
from catalog.values.errors import unsupported
from catalog.values.types import BOOL, INT4, SqlType
from planner.algebra.nodes import Call, Case, ColumnRef, Literal, Project, Scalar
from planner.bind.definitions.dependents import readers
from planner.bind.from_items.from_clause import scan_object
from planner.bind.state.environment import Binding
from planner.statements.definitions import AlterTable, AlterType

_INSTEAD = "Drop the column or view first, and create it again."


def reshaped(binding: Binding, statement: AlterType, kept: Set[str]) -> AlterType:
    """The statement with the rows of the tables that follow; ``kept`` are the attributes that there were before.

    Raises 0A000 where arrays of rows are stored, and where the program of a continuous view over streams knows fields
    by their place; other continuous views are computed at each read from now on.
    """
    tables = [(old, new) for old, new in statement.changes if isinstance(old, Table) and isinstance(new, Table)]
    others = tuple(pair for pair in statement.changes if not isinstance(pair[0], Table))
    for table, _ in tables:
        for view in readers(binding.context.catalog, table.oid):
            if view.keeps_rows:
                raise unsupported(f"changing a type that continuous view {view.name} reads", _INSTEAD)
    found = tuple(_table(binding, statement.before.oid, old, new, kept) for old, new in tables)
    derived = {
        view.oid: view
        for table, _ in tables
        for view in readers(binding.context.catalog, table.oid)
        if view.derived and all(before.oid != view.oid for before, _ in others)
    }
    plain = tuple((view, as_plain(view)) for view in derived.values())
    others = tuple((old, as_plain(new) if isinstance(new, View) and new.oid in derived else new) for old, new in others)
    return replace(statement, changes=(*others, *plain), alterations=found)


def _table(binding: Binding, oid: int, old: Table, new: Table, kept: Set[str]) -> AlterTable:
    scan, _ = scan_object(binding, old, None, False)
    outputs = (
        (binding.column(column.name, column.type), _value(ColumnRef(known), column.type, oid, kept))
        for known, column in zip(scan.columns, new.columns, strict=True)
    )
    return AlterTable("ALTER TYPE", old, new, Project(scan, tuple(outputs)))


def _value(value: Scalar, target: SqlType, oid: int, kept: Set[str]) -> Scalar:
    """A value of a type as it was, in the type as it is."""
    if value.type == target:
        return value
    if value.type.row is None:
        raise unsupported("changing the attributes of a type of which arrays are stored", _INSTEAD)
    built = Call("row", tuple(_fields(value, target, oid, kept)), target)
    return Case(((Call("is_null", (value,), BOOL), Literal(None, target)),), built, target)


def _fields(value: Scalar, target: SqlType, oid: int, kept: Set[str]) -> Iterator[Scalar]:
    before, after = value.type.row, target.row
    assert before is not None
    assert after is not None
    places = {name: (place, kind) for place, (name, kind) in enumerate(before.fields, 1)}
    for name, kind in after.fields:
        if before.oid == oid and name not in kept:
            yield Literal(None, kind)
        else:
            place, known = places[name]
            yield _value(Call("field", (value, Literal(place, INT4)), known), kind, oid, kept)
