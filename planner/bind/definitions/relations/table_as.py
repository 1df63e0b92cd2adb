"""CREATE TABLE AS and SELECT INTO: a new table and the query that fills it.

Owns: the new table's columns, from the query's columns and the given names. See
https://www.postgresql.org/docs/15/sql-createtableas.html.
"""

from __future__ import annotations

from typing import Any

from catalog.catalog import Catalog
from catalog.objects import ColumnDefinition, Table
from catalog.values.errors import SqlError, unsupported
from catalog.values.times.precision import declared
from catalog.values.types import SqlType, plain
from planner.algebra.nodes import ColumnRef, Project, Relation
from planner.bind.conversion.coercion import coerce
from planner.bind.conversion.rows import check_kept
from planner.bind.lookup.dotted_names import names_of
from planner.bind.lookup.relations import is_taken, on_commit, target_schema
from planner.bind.queries.select import bind_query, into_of
from planner.bind.scalars.select_lists import check_columns
from planner.bind.state.environment import Binding
from planner.statements.statement import CreateTableAs, Output, Query


def bind_table_as(binding: Binding, into: Any, query: Any, tolerated: bool) -> CreateTableAs:
    """CREATE TABLE [IF NOT EXISTS] name [(columns)] AS query [WITH [NO] DATA]."""
    found = bind_query(binding, query)
    schema = target_schema(binding, into.rel)
    exists = is_taken(binding, into.rel, schema, tolerated)
    columns = _columns(binding.context.catalog, names_of(into.colNames), found)
    kept = on_commit(into.onCommit, schema)
    if not columns:
        raise unsupported("CREATE TABLE AS of rows without columns", "Name a column.")
    table = Table(binding.context.catalog.next_oid, into.rel.relname, columns, schema=schema, on_commit=kept)
    rows = Query(_fitted(binding, found.relation, columns), found.outputs, found.volatile)
    return CreateTableAs(table, rows, not into.skipData, exists)


def bind_select_into(binding: Binding, node: Any) -> CreateTableAs:
    """SELECT ... INTO name."""
    binding.into = into_of(node)
    return bind_table_as(binding, binding.into, node, False)


def _columns(catalog: Catalog, given: tuple[str, ...], query: Query) -> tuple[ColumnDefinition, ...]:
    if len(given) > len(query.outputs):
        raise SqlError("42601", "too many column names were specified")
    names = given + tuple(output.name for output in query.outputs)[len(given) :]
    check_columns(names)
    for name, output in zip(names, query.outputs, strict=True):
        check_kept(catalog, name, output.type)
    return tuple(ColumnDefinition(name, _type(output)) for name, output in zip(names, query.outputs, strict=True))


def _type(output: Output) -> SqlType:
    """A column's type; the digits of a computed numeric are ours and not declared."""
    return declared(output.type, output.typmod) if output.typmod != -1 else plain(output.type)


def _fitted(binding: Binding, relation: Relation, columns: tuple[ColumnDefinition, ...]) -> Relation:
    """The query's rows in the table's types."""
    outputs = []
    for column, source in zip(columns, relation.columns, strict=True):
        value = coerce(binding, ColumnRef(source), column.type, "assignment")
        assert value is not None, "a column's type is its query's"
        outputs.append((binding.column(column.name, column.type), value))
    return Project(relation, tuple(outputs))
