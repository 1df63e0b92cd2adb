"""USAGE of the types in what a statement creates: columns, domains, composite types and functions (aclchk.c).

Owns: which users' types those are. A query needs no privilege for the types of its values.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator

from catalog.objects import ColumnDefinition, Domain
from catalog.privileges import OF_TYPE
from catalog.values.errors import SqlError
from catalog.values.types import ARRAYS, Composite, SqlType
from planner.bind.state.environment import Binding
from planner.statements.definitions import AlterTable, AlterType, CreateFunction, CreateStream, CreateTable, CreateType
from planner.statements.statement import CreateTableAs, CreateView, Statement


def require_types(binding: Binding, statement: Statement, role: int) -> None:
    """Raises 42501 where a role may not use a type that is new in something."""
    catalog = binding.context.catalog
    for oid in _used(statement):
        declared = catalog.declared(oid)
        if declared is not None and not catalog.rights_of(oid).allows(catalog.roles, role, "U", OF_TYPE):
            raise SqlError("42501", f"permission denied for type {declared}")


def _used(statement: Statement) -> Iterator[int]:
    match statement:
        case CreateTable(table=table) | CreateTableAs(table=table):
            yield from _of_columns(table.columns)
        case CreateStream(stream=stream):
            yield from _of_columns(stream.columns)
        case AlterTable(before=before, table=after):
            known = {column.name: (column.type, column.domain) for column in before.columns}
            yield from _of_columns(item for item in after.columns if known.get(item.name) != (item.type, item.domain))
        case CreateView(view=view):
            yield from _of_columns(view.columns)
        case CreateType(item=Domain() as domain):
            yield from (domain.parent | 1,) if domain.parent else _declared(domain.base)
        case CreateType(item=Composite() as composite):
            yield from _of_fields(composite, composite.fields)
        case AlterType(before=Composite() as old, item=Composite() as new):
            yield from _of_fields(new, [field for field in new.fields if field not in old.fields])
        case CreateFunction(function=function, before=None):
            yield from (oid + 1 - oid % 2 for oid in function.named_types)
        case _:
            pass


def _of_columns(columns: Iterable[ColumnDefinition]) -> Iterator[int]:
    for column in columns:
        yield from (column.domain | 1,) if column.domain else _declared(column.type)


def _of_fields(declared: Composite, fields: Collection[tuple[str, SqlType]]) -> Iterator[int]:
    for place, field in enumerate(declared.fields):
        if field in fields:
            domain = declared.domain(place)
            yield from (domain | 1,) if domain else _declared(field[1])


def _declared(kind: SqlType) -> Iterator[int]:
    """The oid of a user's type, or of that of an array's elements."""
    if kind.element is not None and kind.name in ARRAYS:
        yield from _declared(kind.element)
    elif (declared := kind.enum or kind.row) is not None:
        yield declared.oid
