"""Statements that give a table arrays with bounds or dimensions of their own, for which its columns are widened first.

Owns: the second try. The first one ends with 0A000 for such an array; what it did is undone, the columns are widened in
the same transaction, and the statement is planned and run again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

from catalog.objects import Table
from catalog.values.errors import SqlError
from catalog.values.nested_texts import is_of_dimensions, no_dimensions
from executor.definitions.definition_locks import definition_needs
from executor.sql import ddl
from executor.sql.environment import Environment
from executor.sql.replanning import Planned
from executor.transactions.result import Result
from executor.transactions.transaction import Transaction
from planner.bind.definitions.alter_table.widened_arrays import may_be_widened, widened
from planner.statements.statement import Explain, Insert, Merge, Modifying, Statement, Update

#: No client's savepoint has an empty name.
_SAVEPOINT: Final = ""


def run_widening(
    session: Environment, planned: Planned, transaction: Transaction, run: Callable[[Planned], Result]
) -> Result:
    """Runs a statement, and where it needs columns to be widened once more, planned again."""
    tables = {table.oid for table in _targets(planned.statement) if any(map(may_be_widened, table.columns))}
    if not tables:
        return run(planned)
    with _savepoint(transaction):
        try:
            return run(planned)
        except SqlError as error:
            if not is_of_dimensions(error):
                raise
            transaction.rollback_to(_SAVEPOINT)
            altered = [_widen(session, transaction, oid) for oid in tables]
            if not any(altered):
                raise no_dimensions() from error
        return run(planned.again())


def _targets(statement: Statement) -> Iterator[Table]:
    """The tables that a statement gives values."""
    match statement:
        case Insert(target=Table() as table) | Update(target=table) | Merge(target=table):
            yield table
        case Modifying(statements=parts):
            for part in parts:
                yield from _targets(part)
        case Explain(analyze=True, statement=within):
            yield from _targets(within)
        case _:
            return


@contextmanager
def _savepoint(transaction: Transaction) -> Iterator[None]:
    transaction.set_savepoint(_SAVEPOINT)
    try:
        yield
    finally:
        transaction.release(_SAVEPOINT)


def _widen(session: Environment, transaction: Transaction, oid: int) -> bool:
    table = session.catalog.objects[oid]
    assert isinstance(table, Table)
    altered = widened(session.catalog, table)
    if altered is None:
        return False
    for target, mode in definition_needs(altered, session.catalog):
        transaction.locks.take(target, mode)
    ddl.define(session, transaction, altered)
    return True
