"""WHERE CURRENT OF: the row of a table that a cursor is on, by the table's primary key.

Owns: which cursors show rows of one table, and the condition. A changed row gets another place, so a cursor carries the
keys of its rows beside the columns that it shows. A row is found again after a change, as PostgreSQL finds its newest
version, unless the change was of its key.
https://www.postgresql.org/docs/15/sql-declare.html
"""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from catalog.objects import Table
from catalog.values.errors import unsupported
from catalog.values.types import BOOL, INT4, INT8, TEXT
from planner.algebra.nodes import Call, Column, ColumnRef, Filter, Limit, Literal, Project, Relation, Scalar, Scan, Sort
from planner.bind.state.environment import Binding
from planner.statements.statement import Output, Query


def current_rows(binding: Binding, query: Query) -> tuple[Query, int, int]:
    """A cursor's query with the key of the row that each of its rows shows, the table's oid, and how many columns the
    key has; the query alone and zeros where no such row can be told."""
    above: list[Project | Filter | Sort | Limit] = []
    leaf: Relation = query.relation
    while isinstance(leaf, Project | Filter | Sort | Limit):
        above.append(leaf)
        leaf = leaf.input
    table = binding.context.catalog.objects.get(leaf.oid) if isinstance(leaf, Scan) else None
    key = _key_of(table) if isinstance(table, Table) else ()
    if not isinstance(table, Table) or not key or not any(isinstance(item, Project) for item in above):
        return query, 0, 0
    by_name = {item.name: column for item, column in zip(table.columns, leaf.columns, strict=False)}
    carried = tuple(by_name[name] for name in key)
    whole: Relation = leaf
    for item in reversed(above):
        if isinstance(item, Project):
            passed = tuple((binding.column(column.name, column.type), ColumnRef(column)) for column in carried)
            carried = tuple(column for column, _ in passed)
            whole = Project(whole, (*item.outputs, *passed))
        else:
            whole = replace(item, input=whole)
    outputs = tuple(Output(column.name, column.type) for column in carried)
    return replace(query, relation=whole, outputs=(*query.outputs, *outputs)), table.oid, len(carried)


def _key_of(table: Table) -> tuple[str, ...]:
    """The columns of the primary key, if there is one."""
    return next((key.columns for key in table.keys if key.primary), ())


def is_current(binding: Binding, target: Table, row: tuple[Column, ...], node: Any) -> Scalar:
    """The condition that a row is the cursor's. Raises 0A000 for tables without a primary key."""
    key = _key_of(target)
    if not key:
        instead = "Give the table a primary key, or name the row by its columns."
        raise unsupported("WHERE CURRENT OF of a table without a primary key", instead, binding.position(node))
    columns = {item.name: column for item, column in zip(target.columns, row, strict=False)}
    found: Scalar | None = None
    for place, name in enumerate(key):
        cursor, oid = Literal(node.cursor_name, TEXT), Literal(target.oid, INT8)
        value = Call("current_of", (cursor, oid, Literal(place, INT4)), columns[name].type)
        same = Call("eq", (ColumnRef(columns[name]), value), BOOL)
        found = same if found is None else Call("and", (found, same), BOOL)
    assert found is not None
    return found
