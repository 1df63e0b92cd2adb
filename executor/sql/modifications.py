"""Statements that change rows: INSERT into tables and streams, UPDATE, DELETE, MERGE, several of them in WITH, and
CREATE TABLE AS.

Owns: what each answers, and the rows that an INSERT brings into a stream. A table's changes are made by its store
(``executor/tables/transaction``), a stream's rows wait in the transaction for its commit.
"""

from __future__ import annotations

import pyarrow as pa
from msgspec.structs import replace

from catalog.objects import Stream, Table
from executor.commit.records import StreamRows
from executor.embedded.connection import Bindings
from executor.rows.literal_rows import row_values
from executor.sql import ddl
from executor.sql.environment import Environment
from executor.streams.runtime import fed_otherwise
from executor.tables.changes import Changes
from executor.tables.statements.effects import Modification, parts_of
from executor.traces.layout import schema_of, stored_rows
from executor.transactions.result import Result, changed
from executor.transactions.transaction import Transaction
from planner.algebra.nodes import Value
from planner.statements.definitions import CreateTable
from planner.statements.statement import CreateTableAs, Delete, Insert, Merge, Modifying, Query, Update

Parameters = tuple[Value, ...]


def insert(session: Environment, statement: Insert, parameters: Parameters, transaction: Transaction) -> Result:
    """INSERT into a table or a stream. Raises what the rows raise; 0A000 and 42809 for what a stream does not take."""
    target = statement.target
    session.require(target)
    if isinstance(target, Table):
        bindings = session.reader.bindings(statement, transaction, parameters)
        changes = _changes(session, statement, parameters, transaction, bindings)
        return changed(f"INSERT 0 {changes.count}", statement.returning, changes.returned)
    session.admit(target)
    batch = _stream_rows(session, statement, parameters, transaction, target)
    if batch.num_rows:
        transaction.parts.append(StreamRows(target.oid, stored_rows(target, batch.to_batches())))
    return Result(f"INSERT 0 {batch.num_rows}")


def _stream_rows(
    session: Environment, statement: Insert, parameters: Parameters, transaction: Transaction, target: Stream
) -> pa.Table:
    if not target.has_writers:
        raise fed_otherwise(target, "INSERT")
    runtime = session.core.streams.get(target.oid)
    columns = runtime.schema if runtime is not None and runtime.stream is target else schema_of(target)
    rows = None if statement.literals is None else row_values(statement.literals, parameters, target)
    if rows is not None:
        arrays = [pa.array(values, field.type) for values, field in zip(zip(*rows, strict=True), columns, strict=True)]
        return pa.Table.from_arrays(arrays, schema=columns)
    table = session.reader.table(statement.source, parameters, transaction, session.evaluator(transaction))
    table = pa.Table.from_arrays(table.columns, schema=columns)
    ddl.check_not_null(target, table)
    return table


def change(
    session: Environment,
    statement: Update | Delete | Merge | Modifying,
    parameters: Parameters,
    transaction: Transaction,
) -> Result:
    """UPDATE, DELETE, MERGE, and changes in WITH. Raises what the rows raise."""
    for part in parts_of(statement):
        session.require(part.target)
    bindings = session.reader.bindings(statement, transaction, parameters)
    changes = _changes(session, statement, parameters, transaction, bindings)
    main = statement.main if isinstance(statement, Modifying) else statement
    if isinstance(main, Query):
        return Result("SELECT", main.outputs, () if changes.returned is None else changes.returned.to_batches())
    word = "INSERT 0" if isinstance(main, Insert) else type(main).__name__.upper()
    returning = None if isinstance(main, Merge) else main.returning
    return changed(f"{word} {changes.count}", returning, changes.returned)


def create_as(
    session: Environment, statement: CreateTableAs, parameters: Parameters, transaction: Transaction
) -> Result:
    """CREATE TABLE AS: the table, and the query's rows as of before it."""
    writer = transaction.writer()
    filled = statement.filled and not statement.exists
    evaluate, relation = session.evaluator(transaction), statement.query.relation
    rows = session.reader.answer(relation, parameters, transaction, evaluate) if filled else None
    created = ddl.define(session, transaction, CreateTable(statement.table, statement.exists))
    if rows is None:
        return replace(created, tag="CREATE TABLE AS")
    found = session.catalog.at(statement.table.schema, statement.table.name)
    assert isinstance(found, Table)
    return Result(f"SELECT {writer.append(found, rows, session.time_zone).count}")


def _changes(
    session: Environment,
    statement: Modification,
    parameters: Parameters,
    transaction: Transaction,
    bindings: Bindings,
) -> Changes:
    writer, evaluate = transaction.writer(), session.evaluator(transaction)
    return writer.change(statement, parameters, bindings, session.time_zone, evaluate, session.catalog)
