"""Transactions whose place in the log is fixed, but whose records are not on disk yet.

A transaction that changes rows by key lets the next writer begin as soon as it has its LSN, so that many share one sync
(early lock release: DeWitt et al., "Implementation Techniques for Main Memory Database Systems", 1984). Owns: the
changes of such transactions, for the writers after them, and how these wait for them. Readers see no such change before
it is durable. A writer that has seen one comes after it in the log, fails together with it (``commit/chain``), and
answers nothing before it is settled.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Sequence
from typing import Final

from catalog.values.errors import SqlError
from executor.commit.chain import Chain
from executor.rows.row_shapes import shape_of
from executor.tables.journal import RowsChanged
from executor.traces.index import NO_ROW, Row
from executor.traces.keyed_rows import Columns, Key

_Changed = dict[Key, tuple[int, Row]]


class Unsettled:
    """Transactions that are neither durable nor failed. A transaction that adds or reads a row has locked it.
    ``settle`` runs under the sequencer's lock, or when the chain has failed: never concurrently with an ``add`` that is
    to last."""

    def __init__(self) -> None:
        self._settled: Final = threading.Condition()
        #: By LSN, in ascending order.
        self._journals: dict[int, Sequence[RowsChanged]] = {}
        self._rows: dict[tuple[int, Columns], _Changed] = {}
        self.chain = Chain()

    @property
    def last(self) -> int:
        """The highest LSN among them, 0 if there is none."""
        with self._settled:
            return next(reversed(self._journals), 0)

    def get(self, oid: int, columns: Columns, key: Key) -> tuple[int, Row] | None:
        """The current row for a key of a table and the LSN of its change, if one of the transactions has changed it."""
        changed = self._rows.get((oid, columns))
        return None if changed is None else changed.get(key)

    def add(self, lsn: int, journal: Sequence[RowsChanged]) -> None:
        """A transaction has got its LSN."""
        with self._settled:
            self._journals[lsn] = journal
        for entry in journal:
            rows = entry.came()
            for columns in shape_of(entry.table).keys:
                changed = self._rows.setdefault((entry.table.oid, columns), {})
                went, came = entry.keys(columns)
                changed.update(dict.fromkeys(went, (lsn, NO_ROW)))
                changed.update({key: (lsn, row) for key, row in zip(came, rows, strict=True)})

    def settle(self, lsn: int, error: SqlError | None = None) -> None:
        """A transaction is durable and visible, or has failed. Harmless if it was settled before."""
        with self._settled:
            journal = self._journals.pop(lsn, ())
            if error is not None:
                self.chain.fail(error)
            self._settled.notify_all()
        for entry in journal:
            for columns in shape_of(entry.table).keys:
                changed = self._rows[entry.table.oid, columns]
                for key in itertools.chain(*entry.keys(columns)):
                    if changed.get(key, (0,))[0] == lsn:
                        changed.pop(key, None)

    def wait(self, upto: int, chain: Chain) -> None:
        """Waits until all transactions up to an LSN are settled. Raises the error with which one of a chain failed."""
        with self._settled:
            self._settled.wait_for(lambda: next(iter(self._journals), upto + 1) > upto)
        if chain.error is not None:
            raise chain.error

    def is_over(self, upto: int, chain: Chain) -> bool:
        """Whether ``wait`` would return at once."""
        with self._settled:
            return chain.error is None and next(iter(self._journals), upto + 1) > upto

    def mend(self) -> None:
        """Forgets failed transactions once all are settled; no writer depends on them any more."""
        chain = self.chain
        if chain.error is None:
            return
        with self._settled:
            self._settled.wait_for(lambda: not self._journals)
        self.chain = Chain()
