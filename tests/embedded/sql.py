"""SQL text to the embedded engine, without a server: parse, bind, run."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pyarrow as pa

from catalog.catalog import Catalog
from catalog.objects import Table
from executor.embedded.engine import EmbeddedEngine
from executor.tables.store import Changes, TableStore
from executor.tables.transaction import WriteTransaction
from planner.bind.state.context import Context
from planner.bind.statement import bind
from planner.parse.parser import parse
from planner.rules import rewrite
from planner.rules.row_order.order_lists import order_lists
from planner.statements.definitions import CreateTable, Truncate
from planner.statements.statement import Delete, Insert, Query, Statement, Update


def bound(text: str, catalog: Catalog | None = None, time_zone: str = "UTC") -> Statement:
    """One statement."""
    (raw,) = parse(text)
    return bind(raw, Context(catalog or Catalog(), time_zone=time_zone)).statement


def query(text: str, catalog: Catalog | None = None, time_zone: str = "UTC") -> Query:
    """A SELECT."""
    statement = bound(text, catalog, time_zone)
    assert isinstance(statement, Query)
    return statement


def evaluate(engine: EmbeddedEngine, text: str, time_zone: str = "UTC") -> list[tuple[Any, ...]]:
    """A SELECT's rows as Python values; a numeric with its own display scale is carried as text."""
    statement = query(text, None, time_zone)
    relation = rewrite(statement.relation, (order_lists,))  # errors that engines do not raise
    columns = [
        [None if value is None else Decimal(value) for value in column.to_pylist()]
        if output.type.name == "numeric" and pa.types.is_string(column.type)
        else column.to_pylist()
        for output, column in zip(statement.outputs, engine.query(relation, {}, (), time_zone).columns, strict=False)
    ]
    return list(zip(*columns, strict=True))


def rows_of(table: pa.Table) -> list[tuple[Any, ...]]:
    """An Arrow table's rows."""
    return list(zip(*(column.to_pylist() for column in table.columns), strict=True))


class Tables:
    """A store with the catalog of its tables."""

    def __init__(self, store: TableStore) -> None:
        self.store = store
        self.catalog = Catalog()
        self.lsn = store.applied_lsn

    def create(self, text: str) -> Table:
        """CREATE TABLE in a transaction of its own."""
        statement = bound(text, self.catalog)
        assert isinstance(statement, CreateTable)
        write = self.store.begin_write()
        write.create(statement.table)
        self.catalog = self.catalog.add(statement.table)
        self.commit(write)
        return statement.table

    def commit(self, write: WriteTransaction) -> None:
        """Commits under the next LSN."""
        self.lsn += 1
        write.commit(self.lsn)

    def run(self, write: WriteTransaction, text: str) -> Changes:
        """A statement that changes rows."""
        statement = bound(text, self.catalog)
        match statement:
            case Insert() | Update() | Delete():
                return write.change(statement, (), {}, "UTC")
            case Truncate():
                return write.truncate(statement.targets)
            case _:
                raise AssertionError(statement)

    def execute(self, *texts: str) -> Changes:
        """Statements in one transaction that is committed, or rolled back on an error."""
        write = self.store.begin_write()
        try:
            for text in texts:
                changes = self.run(write, text)
        except BaseException:
            write.rollback()
            raise
        self.commit(write)
        return changes

    def read(self, text: str, write: WriteTransaction | None = None) -> list[tuple[Any, ...]]:
        """A SELECT's rows, as a transaction or a new snapshot sees them."""
        relation = query(text, self.catalog).relation
        if write is not None:
            return rows_of(write.query(relation, {}, (), "UTC"))
        snapshot = self.store.snapshot()
        try:
            return rows_of(snapshot.query(relation, {}, (), "UTC"))
        finally:
            snapshot.close()
