"""The table writer's lock: which statements wait for it before they begin, and what a transaction may do under it.

Owns: FOR UPDATE, LOCK TABLE, NOWAIT, and how REPEATABLE READ and SERIALIZABLE end a transaction whose snapshot is too
old to write.
There is one lock, so that a transaction that has it sees everything as it is just before its own commit.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from catalog.errors import SqlError
from executor.transaction import OutdatedError, Transaction
from planner.statements import CopyOut, Locking, LockTable, Query

if TYPE_CHECKING:
    from executor.embedded.tables.store import WriteTransaction
    from executor.planned import Planned
    from executor.session import DatabaseSession

#: Seconds that NOWAIT waits; 0 would be without limit.
_AT_ONCE: Final = 1e-6


def begin_write(session: DatabaseSession, nowait: bool = False) -> WriteTransaction:
    """Waits for the one table writer. Raises 40001 where a repeatable snapshot is older than the tables, and 55P03.

    A serializable transaction writes only where nothing at all was committed since its snapshot, streams' rows
    included, for which it takes the lock, too: so all that it has read is still so when it commits.
    """
    database, transaction = session.database, session.transaction
    session.awaits_writer = True
    try:
        writer = database.tables.begin_write(_AT_ONCE if nowait else session.lock_timeout, session.is_cancelled)
    finally:
        session.awaits_writer = False
    snapshot = None if transaction is None else transaction.snapshot
    if snapshot is not None:
        _await_others(writer)
    newest = database.sequencer.visible if session.serializable else database.tables_lsn
    if snapshot is not None and newest > snapshot.lsn:
        writer.rollback()
        raise OutdatedError
    return writer


def _await_others(writer: WriteTransaction) -> None:
    """So that all that was committed before it counts."""
    try:
        writer.await_others()
    except BaseException:
        writer.rollback()
        raise


def lock(session: DatabaseSession, planned: Planned, transaction: Transaction) -> None:
    """Takes the lock that a statement needs before it may begin."""
    if planned.writes_tables or (session.serializable and planned.adds_rows):
        transaction.writer()
    statement = planned.statement
    query = statement.query if isinstance(statement, CopyOut) else statement
    if isinstance(query, Query) and query.locking is not None:
        _lock_rows(query.locking, transaction)


def _lock_rows(locking: Locking, transaction: Transaction) -> None:
    """FOR UPDATE. Raises 55P03 where it may not wait."""
    _take_writer(transaction, locking.nowait, f'could not obtain lock on row in relation "{locking.table}"')


def lock_table(statement: LockTable, transaction: Transaction) -> None:
    """LOCK in a mode that excludes writers. Raises 55P03 where it may not wait."""
    _take_writer(transaction, statement.nowait, f'could not obtain lock on relation "{statement.table}"')


def _take_writer(transaction: Transaction, nowait: bool, message: str) -> None:
    try:
        transaction.writer(nowait)
    except SqlError as error:
        if nowait and error.sqlstate == "55P03":
            raise SqlError("55P03", message) from None
        raise
