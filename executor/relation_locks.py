"""Which relations a session keeps others from dropping or changing, in the words of pg_locks.

Owns: what is read of a running statement and of an open transaction. These are no locks of their own: who writes holds
the one lock of all writers, and a statement reads a snapshot. But a relation stands here while it is used, so that who
looks for blockers finds what a transaction has changed.

https://www.postgresql.org/docs/15/explicit-locking.html#LOCKING-TABLES
"""

from __future__ import annotations

from typing import Final

from executor.embedded.tables.journal import RowsChanged
from executor.transaction import Transaction
from planner.algebra import Scan
from planner.statements import CopyOut, DeclareCursor, Delete, Insert, Merge, Query, Statement, Update
from planner.walk import walk

READS: Final = "AccessShareLock"
WRITES: Final = "RowExclusiveLock"


def relation_locks(running: Statement | None, transaction: Transaction | None) -> set[tuple[int, str]]:
    """Oids of relations with the mode that PostgreSQL would hold: of what runs, and what the transaction changed."""
    found = set() if running is None else _of_statement(running)
    write = None if transaction is None else transaction.write
    for entry in () if write is None else tuple(write.journal):
        if isinstance(entry, RowsChanged):
            found.add((entry.table.oid, WRITES))
    return found


def _of_statement(statement: Statement) -> set[tuple[int, str]]:
    match statement:
        case CopyOut(query=query) | DeclareCursor(query=query):
            return _of_statement(query)
        case Query(relation=relation):
            return {(item.oid, READS) for item in walk(relation) if isinstance(item, Scan) and item.oid}
        case Insert(target=target) | Update(target=target) | Delete(target=target) | Merge(target=target):
            return {(target.oid, WRITES)}
    return set()
