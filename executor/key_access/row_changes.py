"""Changes of single table rows by key, grouped: many sessions' changes become one log record and one fsync.

Owns: the write transaction that collects changes while the disk is busy with the one before (group commit), and its way
to the log's writer thread and back to the event loop's thread, which never waits.
``executor/tables/statements/row_plans`` decides which changes these are. Rows of streams go through
``executor/streams/appender``.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Final

from msgspec import Struct, field

from catalog.catalog import Catalog
from catalog.values.errors import SqlError
from executor.core.core import Core
from executor.small.values import FAILURES
from executor.tables.statements.changes_by_key import NotByKey
from executor.tables.statements.row_plans import RowChange, RowPlan, row_plan
from executor.tables.transaction import WriteTransaction
from planner.algebra.nodes import Value

if TYPE_CHECKING:
    from executor.transactions.transaction import Transaction

Done = Callable[[SqlError | None], None]
#: Schedules a callback: soon, or from another thread.
Caller = Callable[[Callable[[], None]], object]
#: Commits changes; arguments: the changes, whether to sync, the callback, and a fallback.
CommitRows = Callable[[WriteTransaction, bool, Callable[[Exception | None], None], Caller], None]

_PLANS: Final = 1024
_LOGGER: Final = logging.getLogger(__name__)


class _Group(Struct):
    """Changes that are committed together."""

    write: WriteTransaction
    done: list[Done] = field(default_factory=list)
    sync: bool = False


class RowChanges:
    """Collects changes of rows by key, on an event loop's thread. Takes no changes before ``serve`` is called."""

    def __init__(self, core: Core, commit_rows: CommitRows) -> None:
        self._core, self._commit_rows = core, commit_rows
        self._soon: Caller | None = None
        self._later: Caller | None = None
        self._plans: dict[int, tuple[RowChange, Catalog, RowPlan | None]] = {}
        self._group: _Group | None = None
        #: Whether a group is being written to disk.
        self._commits = False

    def serve(self, soon: Caller, later: Caller) -> None:
        """``soon`` schedules a callback on the calling thread once it is idle, ``later`` does so from any other
        thread."""
        self._soon, self._later = soon, later

    @property
    def is_served(self) -> bool:
        """Whether an event loop has called ``serve``."""
        return self._soon is not None

    def change(
        self, statement: RowChange, parameters: tuple[Value, ...], time_zone: str, sync: bool, done: Done
    ) -> bool:
        """Changes one row; ``done`` is called once the change is durable.

        Returns False, with nothing changed, if the change is not simple enough, another transaction is writing, or the
        row does not exist. Raises the errors of values.
        """
        plan = None if self._soon is None else self._plan_of(statement)
        if plan is None:
            return False
        group = self._group
        write = self._core.tables.begin_at_once() if group is None else group.write
        if write is None:
            return False
        try:
            write.change_row(plan, parameters, time_zone)
        except BaseException as error:
            if group is None:
                write.rollback()
            if isinstance(error, (NotByKey, *FAILURES)):
                return False
            raise
        if group is None:
            group = self._group = _Group(write)
            if not self._commits:
                assert self._soon is not None
                self._soon(self._flush)
        group.done.append(done)
        group.sync |= sync
        return True

    def is_by_key(self, statement: RowChange) -> bool:
        """Whether a statement changes one row by key."""
        return self._soon is not None and self._plan_of(statement) is not None

    def change_within(
        self, transaction: Transaction, statement: RowChange, parameters: tuple[Value, ...], time_zone: str
    ) -> bool:
        """Changes one row within an open transaction. Returns False, with nothing changed, if the change is not simple
        enough or would have to wait."""
        plan = None if self._soon is None else self._plan_of(statement)
        if plan is None:
            return False
        write, is_first = transaction.write, transaction.write is None
        if write is None:
            write = self._core.tables.begin_at_once(transaction.locks)
            if write is None:
                return False
            transaction.write_with(write)
        try:
            if write.is_by_key:  # its commit waits for the transactions whose changes it has seen
                write.change_row(plan, parameters, time_zone)
                return True
        except (NotByKey, SqlError, *FAILURES):  # the general way raises the error
            pass
        if is_first:
            transaction.write = None  # nothing was changed; the locks belong to the block
        return False

    def commit(self, write: WriteTransaction, sync: bool, done: Done) -> None:
        """Commits a transaction that has changed rows by key, without waiting; ``done`` is told when it is durable, or
        the error. ``serve`` must have been called."""

        def ended(error: Exception | None) -> None:
            done(None if error is None else _known(error))

        try:
            self._commit_rows(write, sync, ended, self._call)
        except Exception as error:
            write.rollback()
            assert self._soon is not None
            self._soon(partial(ended, error))

    def _plan_of(self, statement: RowChange) -> RowPlan | None:
        catalog = self._core.catalog
        known = self._plans.get(id(statement))
        if known is None or known[0] is not statement or known[1] is not catalog:
            if len(self._plans) >= _PLANS:  # the oldest: statements with now() differ each time
                del self._plans[next(iter(self._plans))]
            plan = row_plan(statement, self._core.tables.definitions)
            known = self._plans[id(statement)] = (statement, catalog, plan)
        return known[2]

    def _flush(self) -> None:
        """Submits the collected changes for commit and lets the next writer begin."""
        group, self._group = self._group, None
        if group is None:
            return
        self._commits = True
        try:
            self._commit_rows(group.write, group.sync, partial(self._committed, group), self._call)
        except Exception as error:
            group.write.rollback()
            self._committed(group, error)

    def _call(self, call: Callable[[], None]) -> None:
        assert self._later is not None
        self._later(call)

    def _committed(self, group: _Group, error: Exception | None) -> None:
        """Starts the next disk write before answering the clients of this record."""
        self._commits = False
        self._flush()
        for done in group.done:
            try:
                done(None if error is None else _known(error))
            except Exception:  # an error that concerns its own client only
                _LOGGER.exception("an answer to a change failed")

    def close(self) -> None:
        """Submits the collected changes; the end of the sequencer makes them durable."""
        self._flush()


def _known(error: Exception) -> SqlError:
    return error if isinstance(error, SqlError) else SqlError("XX000", str(error))
