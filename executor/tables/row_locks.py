"""The locks of one transaction on rows, by their keys or all of a table.

Owns: which locks the rows of a statement need: few rows are locked one by one, by all of their keys, many as a whole.
How a lock is taken, and what the transaction sees from then on, is ``executor.tables.transaction``'s.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Final

from catalog.objects import Table
from executor.locks.held import TransactionLocks
from executor.locks.modes import Mode
from executor.locks.targets import Relation, Row, Rows
from executor.rows.row_shapes import identity_of, keys_of
from executor.tables.statements.changes_by_key import NotByKey
from executor.tables.statements.effects import Effect
from executor.tables.statements.lock_needs import Need
from executor.traces.keyed_rows import Columns, Key, keys_in

#: The most rows of a statement that are locked one by one.
_FEW: Final = 64
#: The number of a transaction's locks at which they would take more memory than their rows.
_MANY_LOCKS: Final = 10_000


class RowLocks:
    """Those of one transaction."""

    def __init__(
        self,
        locks: TransactionLocks,
        definitions: Callable[[], Mapping[int, Table]],
        lock: Callable[[Iterable[Need]], bool],
    ) -> None:
        """``definitions`` are those that the transaction sees; ``lock`` waits for locks and takes them, and returns
        whether one is new."""
        self._locks, self._definitions, self._lock = locks, definitions, lock

    def arriving(self, *tables: Table, effect: Effect | None = None) -> None:
        """Locks the keys of new rows if they are few, otherwise all rows of a table with keys."""
        are_few = effect is not None and is_small(effect)
        for table in tables:
            is_whole = _has_unique_keys(table) and not (are_few and has_rows_by_key(table))
            self._lock([(Rows(table.oid), Mode.SHARE_ROW_EXCLUSIVE if is_whole else Mode.ROW_EXCLUSIVE)])
        if effect is not None:
            self.of(effect)

    def all(self, *tables: Table) -> bool:
        """Locks all rows of the tables that a query reads without a key; returns whether a lock is new."""
        return self._lock([(Rows(table.oid), Mode.SHARE_ROW_EXCLUSIVE) for table in tables])

    def of(self, effect: Effect) -> bool:
        """Locks the rows that an effect changes, by all of their keys; returns whether a lock is new."""
        if not is_small(effect):
            return False
        found: dict[Need, None] = {}
        for oid, change in effect.changes.items():
            if self.has_all(oid):
                continue
            for columns in keys_of(self._definitions()[oid]):
                for key in (*keys_in(change.deleted, columns), *keys_in(change.inserted, columns)):
                    if None not in key:
                        found[Row(oid, columns, key), Mode.EXCLUSIVE] = None
        return self._lock(list(found))

    def try_rows(self, oid: int, keys: Iterable[tuple[Columns, Key]]) -> bool:
        """Locks rows by keys without waiting; returns whether a lock is new. Raises NotByKey."""
        if self.has_all(oid):
            return False
        mark = self._locks.mark()
        if not self._locks.try_all([(Row(oid, *each), Mode.EXCLUSIVE) for each in keys]):
            raise NotByKey
        return self._locks.mark() > mark

    def has_all(self, oid: int) -> bool:
        """Whether it has locked all rows of a table: a transaction that has locked very many rows also locks the
        others, if no other transaction has locked any."""
        rows, locks = (Rows(oid), Mode.SHARE_ROW_EXCLUSIVE), self._locks
        if locks.has(*rows):
            return True
        if locks.mark() <= _MANY_LOCKS or not locks.has(Relation(oid), Mode.ROW_EXCLUSIVE):  # the larger lock first
            return False
        refused = locks.refused
        has_it = locks.try_take(*rows)
        locks.refused = refused  # no transaction waits for these locks
        return has_it


def has_rows_by_key(table: Table) -> bool:
    """Whether every constraint that makes a table's rows unique is a key by which rows are locked."""
    keys = keys_of(table)
    return (
        identity_of(table) is not None
        and not any(index.unique for index in table.indexes)
        and all(key.columns in keys and not key.deferrable and not key.nulls_alike for key in table.keys)
    )


def is_small(effect: Effect) -> bool:
    """Whether an effect has few rows."""
    rows: int = sum(max(change.deleted.num_rows, change.inserted.num_rows) for change in effect.changes.values())
    return rows <= _FEW


def _has_unique_keys(table: Table) -> bool:
    return bool(table.keys) or any(index.unique for index in table.indexes)
