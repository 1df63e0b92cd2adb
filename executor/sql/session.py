"""What one client does to the database: statements in, results out, transactions in between.

Owns: the meaning of every statement class of planner.statements that touches data or catalog. In which transaction
each runs is ``executor/sql/transaction_block``'s. Knows nothing of wire formats, settings or prepared statements
(server/). Calls block; the server makes them from worker threads, one at a time per session.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator
from functools import partial

from msgspec.structs import replace

from catalog.objects import PG_TEMP
from catalog.values.errors import SqlError
from executor.database.database import Database
from executor.embedded.connection import plainly
from executor.locks.held import TransactionLocks
from executor.locks.modes import Mode
from executor.locks.targets import Relation as RelationLock
from executor.moving.change_guards import require_changeable
from executor.queries.moments import ATTEMPTS
from executor.queries.stream_query import ArrivingQuery
from executor.sql import ddl, modifications
from executor.sql.array_widening import run_widening
from executor.sql.copy_from import CopySink
from executor.sql.environment import Environment
from executor.sql.explain import explain
from executor.sql.inline_statements import AtOnce
from executor.sql.replanning import Planned
from executor.sql.skip_locked import run as skip_locked
from executor.sql.skip_locked import skipping
from executor.sql.statement_locks import begin_snapshot, begin_write, is_sharing, lock, lock_table, see_rows
from executor.sql.transaction_block import Block
from executor.sql.view_plans import with_engine
from executor.tables.temporary import drop_temporary
from executor.transactions.result import Result
from executor.transactions.transaction import OutdatedError, Transaction
from planner.algebra.nodes import Value
from planner.statements.definitions import Truncate
from planner.statements.statement import (
    AlterView,
    CopyIn,
    CopyOut,
    CreateTableAs,
    CreateView,
    DeclareCursor,
    Delete,
    Explain,
    Insert,
    LockTable,
    Merge,
    Modifying,
    NoOperation,
    Query,
    SetConstraints,
    Statement,
    TransactionControl,
    Update,
)


class DatabaseSession(Environment):
    """One client's session. Thread-safe only in ``cancel``."""

    def __init__(self, database: Database, user: str, name: str) -> None:
        super().__init__(database, user, name, Block(self._new, self._commit))
        #: What it does without waiting.
        self.at_once = AtOnce(self, self._block)

    # Transactions -----------------------------------------------------------------------------------------------

    @property
    def status(self) -> str:
        """ReadyForQuery's transaction status: I idle, T in a block, E in a failed block."""
        return self._block.status

    @property
    def has_begun(self) -> bool:
        """Whether a statement of the open block has seen the data."""
        return self._block.has_begun

    @property
    def reads_committed(self) -> bool:
        """Whether a statement that begins now sees what is committed, and nothing of its transaction's own."""
        return self._block.reads_committed

    def begins_reading(self, oids: Iterable[int]) -> None:
        """A statement that needs no transaction reads relations in the open one, if any."""
        self._block.begins()
        transaction = self._block.current
        if transaction is None:
            return
        for oid in oids:
            transaction.locks.try_take(RelationLock(oid), Mode.ACCESS_SHARE)

    def isolate(self, level: str) -> None:
        """SET TRANSACTION ISOLATION LEVEL. Raises 25001 where it comes too late."""
        self._block.isolate(level)

    def _new(self, explicit: bool) -> Transaction:
        locks = TransactionLocks(self.locks, self.owner, lambda: self.lock_timeout, self.is_cancelled)
        return Transaction(explicit, partial(begin_write, self), self.temporary, locks)

    def _commit(self, transaction: Transaction) -> None:
        try:
            ddl.end_temporary(self.core, transaction)
        except BaseException:
            transaction.rollback()
            raise
        self.database.committer.commit(transaction, self.synchronous_commit)
        self.temporary.commit(transaction.catalog)

    def begin_implicit(self) -> None:
        """Statements until ``commit_implicit`` are one transaction, unless a block is open or begins."""
        self._block.is_implicit = True

    def commit_implicit(self) -> None:
        """Ends the implicit transaction. Raises what the commit raises."""
        self._block.is_implicit = False
        self._block.finish()

    def taking_savepoints(self) -> contextlib.AbstractContextManager[None]:
        """Within, the implicit transaction takes savepoints."""
        return self._block.taking_savepoints()

    def fail(self) -> None:
        """Something outside ``execute`` failed (a portal, the client's data): the transaction cannot commit."""
        self._block.fail()

    @contextlib.contextmanager
    def _statement(self) -> Iterator[Transaction]:
        """A statement's transaction; commits when it is the whole of it, marks it failed on an error."""
        self._cancelled.clear()
        transaction = self._block.start()
        try:
            yield transaction
            if transaction.write is not None and (transaction.explicit or self._block.is_implicit):
                transaction.write.await_others()  # its answer leaves before its commit
        except BaseException:
            write = transaction.write
            self._block.fail()
            if write is not None:
                with contextlib.suppress(SqlError):  # an error tells what it has seen, too
                    write.await_others()
            raise
        self._block.finish()

    # Statements -------------------------------------------------------------------------------------------------

    def execute(self, statement: Statement, parameters: tuple[Value, ...] = ()) -> Result:
        """Runs a statement. Settings, prepared statements and COPY with the client are the server's own matters."""
        if isinstance(statement, TransactionControl):
            return self._block.control(statement)
        with self._statement() as transaction:
            lock(self, statement, transaction, parameters)
            transaction.rebase(self.core.catalog)
            return self.run(statement, parameters, transaction)

    def execute_planned(self, planned: Planned, parameters: tuple[Value, ...] = ()) -> Result:
        """Runs a statement, planned again where what it means has changed by the time when it may begin."""
        with self._statement() as transaction:
            for attempt in range(ATTEMPTS):
                planned = self._locked(planned, transaction, parameters)
                try:
                    return self._run_planned(planned, parameters, transaction)
                except OutdatedError:
                    if transaction.write is not None or attempt + 1 == ATTEMPTS:
                        raise
            raise AssertionError("unreachable")

    def _locked(self, planned: Planned, transaction: Transaction, parameters: tuple[Value, ...] = ()) -> Planned:
        """A statement, planned for the present catalog, with the locks that it needs: no other transaction changes what
        it names from here on."""
        for _ in range(ATTEMPTS):
            lock(self, planned.statement, transaction, parameters)
            transaction.rebase(self.core.catalog)
            if planned.catalog is self.catalog:
                return planned
            planned = planned.again()
        raise OutdatedError

    def _run_planned(self, planned: Planned, parameters: tuple[Value, ...], transaction: Transaction) -> Result:
        """Runs a statement, for which columns may have to be widened; then it is planned once more."""

        def run(planned: Planned) -> Result:
            with self.reader.moments.planned_for(planned.catalog):
                return self.run(planned.statement, parameters, transaction)

        return run_widening(self, planned, transaction, run)

    def run(self, statement: Statement, parameters: tuple[Value, ...], transaction: Transaction) -> Result:
        """Runs a statement within a transaction, whose end is the caller's."""
        if isinstance(statement, Insert | Explain):
            begin_snapshot(self, transaction)
        match statement:
            case Query():
                return self._query(statement, parameters, transaction)
            case DeclareCursor(query=query):
                return self._query(query, parameters, transaction)
            case CopyOut(query=query):
                return replace(self.run(query, parameters, transaction), tag="COPY")
            case Insert():
                return modifications.insert(self, statement, parameters, transaction)
            case Update() | Delete() | Merge() | Modifying():
                return modifications.change(self, statement, parameters, transaction)
            case Truncate():
                ddl.truncate(self, transaction, statement)
                return Result("TRUNCATE TABLE")
            case CreateTableAs():
                return modifications.create_as(self, statement, parameters, transaction)
            case Explain():
                return explain(
                    self, statement, parameters, transaction, partial(self.run, statement.statement, parameters)
                )
            case SetConstraints(named=named, deferred=deferred):
                transaction.set_constraints(named, deferred)
                warning = SqlError("25P01", "SET CONSTRAINTS can only be used in transaction blocks")
                alone = not transaction.explicit and not self._block.is_implicit
                return Result("SET CONSTRAINTS", notices=(warning,) if alone else ())
            case LockTable():
                if not transaction.explicit and not self._block.is_implicit:
                    raise SqlError("25P01", "LOCK TABLE can only be used in transaction blocks")
                lock_table(statement, transaction)
                return Result("LOCK TABLE")
            case NoOperation(tag=tag, notices=notices, alone=alone):
                if alone and transaction.explicit:
                    raise SqlError("25001", f"{alone} cannot run inside a transaction block")
                return Result(tag, notices=tuple(SqlError("00000", text) for text in notices))
            case _ if isinstance(statement, ddl.Definition):
                return self._define(statement, transaction)
            case _:
                raise AssertionError(f"{type(statement).__name__} is the server's")

    def _query(self, statement: Query, parameters: tuple[Value, ...], transaction: Transaction) -> Result:
        locking, found = statement.locking, skipping(statement, self.core.tables.definitions)
        if locking is not None and found is not None:
            mode = Mode.SHARE if is_sharing(locking) else Mode.EXCLUSIVE
            rows = skip_locked(self, found, parameters, transaction, mode, partial(see_rows, self, transaction))
            return Result("SELECT", statement.outputs, rows.to_batches())
        evaluate = self.evaluator(transaction) if statement.volatile else plainly
        batches = self.reader.batches(statement, parameters, transaction, evaluate)
        return Result("SELECT", statement.outputs, batches, live=isinstance(batches, ArrivingQuery))

    def _define(self, statement: ddl.Definition, transaction: Transaction) -> Result:
        transaction.writer()
        if isinstance(statement, CreateView) or (isinstance(statement, AlterView) and statement.tag == "CREATE VIEW"):
            statement = replace(statement, view=with_engine(self, statement.view))
        before = self.catalog
        result = ddl.define(self, transaction, statement)
        require_changeable(self.core, self.database.view_migration.automatic_copies.end, before, self.catalog)
        return result

    # COPY -------------------------------------------------------------------------------------------------------

    def copy_in(self, planned: Planned) -> CopySink:
        """COPY ... FROM STDIN: where the parsed rows go. The statement ends with ``finish`` or ``abort``; it is planned
        again where what it means has changed by the time when it may begin."""
        self._cancelled.clear()
        transaction = self._block.start()
        try:
            statement = self._locked(planned, transaction).statement
            begin_snapshot(self, transaction)
            assert isinstance(statement, CopyIn)
            self.require(statement.target)
            return CopySink(self, statement, transaction)
        except BaseException:
            self._block.fail()
            raise

    # Other ------------------------------------------------------------------------------------------------------

    def cancel(self) -> None:
        """Interrupts what runs now; may be called from any thread."""
        self._cancelled.set()
        self.reader.cancel()
        transaction = self._block.current
        if transaction is not None and transaction.write is not None:
            transaction.write.interrupt()

    def discard_temporary(self) -> None:
        """DISCARD TEMP: drops the session's own relations."""
        drop = drop_temporary(self.catalog.contents(PG_TEMP), self.catalog)
        if drop.oids:
            self.execute(drop)

    def close(self) -> None:
        """Ends the session; an open transaction is rolled back."""
        self._block.rollback()
        self.advisory.give_back_all()
        if self.temporary.tables:
            self.core.temporary.drop(self.temporary.tables)
