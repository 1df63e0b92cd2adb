"""What a session does on an event loop's thread, waiting for nothing: single rows, and blocks of no more than these.

Owns: whether the session's transaction allows it. How rows become records is ``executor/streams/appender``'s and
``executor/key_access/row_changes``'; whatever is refused here goes the ordinary way, by ``executor.sql.session`` in a
worker thread.
"""

from __future__ import annotations

from collections.abc import Callable

from catalog.objects import Stream
from catalog.values.errors import SqlError
from executor.locks.manager import Request
from executor.locks.modes import Mode
from executor.locks.targets import Relation
from executor.rows.point_reads import PointReader
from executor.sql.environment import Environment
from executor.sql.transaction_block import Block
from executor.tables.statements.row_plans import RowChange
from executor.traces.index import Row
from planner.algebra.nodes import Value
from planner.statements.statement import Insert

#: Called when something is durable, or with why it is not.
Done = Callable[[SqlError | None], None]


class AtOnce:
    """One session's. False and None mean that it must wait, or is not so plain, and that nothing happened."""

    def __init__(self, session: Environment, block: Block) -> None:
        self._session = session
        self._database = session.database
        self._block = block

    # Alone --------------------------------------------------------------------------------------------------------

    def append(self, insert: Insert, rows: list[tuple[Value, ...]], done: Done) -> bool:
        """Rows of an autocommitted INSERT into a stream. ``rows`` are parameter tuples. Raises SqlError for a bad
        value."""
        if self._block.current is not None or not isinstance(insert.target, Stream) or insert.literals is None:
            return False
        if not self._database.admission.is_open(insert.target.oid):
            return False
        return self._database.appender.append(insert, rows, self._session.synchronous_commit, done)

    def check(self, insert: Insert, parameters: tuple[Value, ...]) -> None:
        """Raises what an INSERT that is appended later would raise for a bad value."""
        self._database.appender.check(insert, parameters)

    def change(self, statement: RowChange, parameters: tuple[Value, ...], done: Done) -> bool:
        """An autocommitted change of one row of a table by key. False also where it changes none. Raises SqlError for a
        bad value."""
        session = self._session
        if self._block.current is not None or session.serializable:
            return False
        changes = self._database.row_changes
        return changes.change(statement, parameters, session.time_zone, session.synchronous_commit, done)

    # In a block ---------------------------------------------------------------------------------------------------

    def awaits_turn(self, statement: RowChange) -> bool:
        """Whether ``change_within`` may be possible as soon as those end that hold the lock which it was refused."""
        session, transaction = self._session, self._block.current
        if transaction is None or transaction.repeatable or session.serializable or transaction.locks.refused is None:
            return False
        return not session.lock_timeout and self._database.row_changes.is_by_key(statement)

    def ask(self, granted: Callable[[], object]) -> Request | None:
        """Waits for the lock that ``change_within`` was refused; ``granted`` is called, on any thread, when the block
        has it. None where it has it now. Raises 40P01."""
        transaction = self._block.current
        assert transaction is not None and transaction.locks.refused is not None
        target, mode = transaction.locks.refused
        return self._session.locks.ask(self._session.owner, target, mode, granted)

    def answer(self, request: Request | None) -> bool:
        """A wait is over; whether the block has the lock."""
        transaction, has_it = self._block.current, request is None or self._session.locks.withdraw(request)
        assert transaction is not None and transaction.locks.refused is not None
        if has_it:
            transaction.locks.note(*transaction.locks.refused)
        return has_it

    def change_within(self, statement: RowChange, parameters: tuple[Value, ...]) -> bool:
        """A change of one row by key, which the block's commit makes durable."""
        session, transaction = self._session, self._block.current
        if transaction is None or transaction.failed or transaction.repeatable or session.serializable:
            return False
        transaction.locks.refused = None
        changed = self._database.row_changes.change_within(transaction, statement, parameters, session.time_zone)
        transaction.begun |= changed
        return changed

    def read_within(self, reader: PointReader, parameters: tuple[Value, ...]) -> Row | None:
        """The row of a point read as the block sees it."""
        transaction = self._block.current
        if transaction is None or transaction.failed or transaction.repeatable or transaction.catalog is not None:
            return None
        if not transaction.locks.try_take(Relation(reader.relation), Mode.ACCESS_SHARE):
            return None
        transaction.begun = True
        return reader.peek(parameters) if transaction.write is None else reader.within(transaction.write, parameters)

    def ends(self, action: str) -> bool:
        """Whether COMMIT or ROLLBACK has nothing to wait for."""
        transaction = self._block.current
        if transaction is None or transaction.snapshot is not None or self._session.temporary.tables:
            return False
        if action == "commit" and not transaction.failed:
            return transaction.is_empty
        return transaction.write is None or not transaction.write.is_open

    def commit(self, done: Done) -> bool:
        """COMMIT of a block that has changed no more than rows by key."""
        transaction = self._block.current
        write = None if transaction is None else transaction.write
        if transaction is None or not transaction.is_by_key or self._session.temporary.tables:
            return False
        if not self._database.row_changes.is_served:
            return False
        if write is None or not write.journal:  # there is nothing to log
            return False
        self._block.current = None

        def ended(error: SqlError | None) -> None:
            transaction.locks.release_all()
            done(error)

        self._database.row_changes.commit(write, self._session.synchronous_commit, ended)
        return True
