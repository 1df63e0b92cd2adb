"""Statements that give a table arrays with bounds or dimensions of their own, for which its columns are widened first.

Owns: the second try. The first one ends with 0A000 for such an array; what it did is undone, the columns are widened in
the same transaction, and the statement is planned and run again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from catalog.catalog import Catalog
from catalog.errors import SqlError
from catalog.nested import is_of_dimensions
from catalog.objects import Table
from executor.definitions import ddl
from executor.result import Result
from executor.transaction import Transaction
from planner.bind.definitions.widened_arrays import may_be_widened, widened
from planner.statements import Insert, Merge, Statement, Update

if TYPE_CHECKING:
    from executor.session import DatabaseSession

#: No client's savepoint has an empty name.
_SAVEPOINT: Final = ""


def run_widening(
    session: DatabaseSession,
    statement: Statement,
    transaction: Transaction,
    run: Callable[[Statement], Result],
    again: Callable[[], Statement],
) -> Result:
    """Runs a statement, and where it needs columns to be widened once more, planned ``again``."""
    table = _target(statement)
    if table is None:
        return run(statement)
    with _savepoint(transaction):
        try:
            return run(statement)
        except SqlError as error:
            if not is_of_dimensions(error):
                raise
            transaction.rollback_to(_SAVEPOINT)
            if not _widen(session, transaction, session.catalog, table.oid):
                raise
        return run(again())


def _target(statement: Statement) -> Table | None:
    """The table that a statement changes, where it has columns that could be widened."""
    match statement:
        case Insert(target=Table() as table) | Update(target=table) | Merge(target=table):
            return table if any(map(may_be_widened, table.columns)) else None
        case _:
            return None


@contextmanager
def _savepoint(transaction: Transaction) -> Iterator[None]:
    transaction.set_savepoint(_SAVEPOINT)
    try:
        yield
    finally:
        transaction.release(_SAVEPOINT)


def _widen(session: DatabaseSession, transaction: Transaction, catalog: Catalog, oid: int) -> bool:
    table = catalog.objects[oid]
    assert isinstance(table, Table)
    altered = widened(catalog, table)
    if altered is None:
        return False
    ddl.define(session, transaction, altered)
    return True
