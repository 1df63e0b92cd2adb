"""What one client does to the database: statements in, results out, transactions in between.

Owns: the meaning of every statement class of planner.statements that touches data or catalog. In which transaction
each runs is ``executor/sql/transaction_block``'s. Knows nothing of wire formats, settings or prepared statements
(server/). Calls block; the server makes them from worker threads, one at a time per session.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import TYPE_CHECKING

import pyarrow as pa
from msgspec.structs import replace

from catalog.catalog import Catalog
from catalog.objects import PG_TEMP, Stream, Table, View
from catalog.system.rows import Own
from catalog.values.errors import SqlError, undefined_table
from executor.embedded.connection import NOTHING, Bindings, Evaluate, plainly
from executor.locks.held import TransactionLocks
from executor.locks.manager import Owner
from executor.locks.modes import Mode
from executor.locks.targets import Relation as RelationLock
from executor.moving.change_guards import require_changeable
from executor.queries.reader import ATTEMPTS, Reader
from executor.queries.stream_query import ArrivingQuery
from executor.sql import ddl
from executor.sql import modifications as changing
from executor.sql.advisory_locks import EXCLUSIVE, SHARED, Holder
from executor.sql.array_widening import run_widening
from executor.sql.copy_from import CopySink
from executor.sql.explain import explain
from executor.sql.inline_statements import AtOnce
from executor.sql.replanning import Planned
from executor.sql.skip_locked import run as skip_locked
from executor.sql.skip_locked import skipping
from executor.sql.statement_locks import begin_write, is_sharing, lock, lock_table, see_rows
from executor.sql.transaction_block import Block
from executor.subscriptions.arrival_scan import Notify, Patience
from executor.tables import effect_calls as drawing
from executor.tables.effect_calls import Caller
from executor.tables.sequences import SessionSequences
from executor.tables.temporary import Temporary, drop_temporary
from executor.transactions.result import Result
from executor.transactions.transaction import OutdatedError, Transaction
from planner.algebra.relations import Relation
from planner.algebra.scalars import Value
from planner.statements.definitions import CreateTableAs, CreateView, Truncate
from planner.statements.statement import (
    CopyIn,
    CopyOut,
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

if TYPE_CHECKING:
    from executor.database.database import Database


class DatabaseSession:
    """One client's session. Thread-safe only in ``cancel``."""

    def __init__(self, database: Database, user: str, name: str) -> None:
        self.database = database
        self.name = name
        self.synchronous_commit = True
        self.lock_timeout = database.options.lock_timeout
        self.serializable = False
        #: Who maintains the continuous views that this session creates, where they do not say it.
        self.maintenance_engine: str = database.options.maintenance_engine
        self._block = Block(self._new, self._commit)
        #: What it does without waiting.
        self.at_once = AtOnce(self, self._block)
        self.sequences = SessionSequences(database.sequences)
        self.temporary = Temporary()
        self.read_only = False
        self._cancelled = threading.Event()
        self.locks = database.tables.locks
        #: What it is for the lock manager.
        self.owner = Owner()
        self.advisory = Holder(self.locks, self.owner, self.is_cancelled)
        #: Takes the notifications that statements make.
        self.notify: drawing.Notify = lambda channel, payload: None
        self.ask: drawing.Ask = lambda function, arguments: None
        #: Takes what statements say meanwhile.
        self.warn: Notify = lambda notice: None
        #: Reads in the session's transactions.
        self.reader = Reader(database, self.is_cancelled)
        self.user = user

    @property
    def transaction(self) -> Transaction | None:
        """The open one, a statement's own included."""
        return self._block.current

    def is_cancelled(self) -> bool:
        """Whether the running statement has been cancelled."""
        return self._cancelled.is_set()

    @property
    def time_zone(self) -> str:
        """The session's TimeZone setting."""
        return self.reader.time_zone

    @time_zone.setter
    def time_zone(self, name: str) -> None:
        self.reader.time_zone = name

    @property
    def query_engine(self) -> str:
        """The session's query_engine setting: where its queries run."""
        return self.reader.query_engine

    @query_engine.setter
    def query_engine(self, name: str) -> None:
        self.reader.query_engine = name

    @property
    def search_path(self) -> tuple[str, ...]:
        """Schemas in which a sequence's name is looked up when a statement runs, and which texts do not name."""
        return self.reader.search_path

    @search_path.setter
    def search_path(self, path: tuple[str, ...]) -> None:
        self.reader.search_path = path

    @property
    def user(self) -> str:
        """The current role."""
        return self.reader.user

    @user.setter
    def user(self, name: str) -> None:
        self.reader.user = name

    def role_of(self, catalog: Catalog) -> int:
        """The current role's oid. Raises 42704 where it has been dropped."""
        found = catalog.roles.find(self.user)
        if found is None:
            raise SqlError("42704", f'role "{self.user}" does not exist')
        return found.oid

    def describe_itself(self, own: Own) -> None:
        """What only this session knows, as relations."""
        self.reader.own = own

    def await_rows(self, patience: Patience, notify: Notify) -> None:
        """How this session's queries of streams wait, and whom they tell how far they are."""
        self.reader.patience, self.reader.notify = patience, notify
        self.warn = notify

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

    @property
    def catalog(self) -> Catalog:
        """The catalog that this session's next statement sees, its own uncommitted DDL included."""
        transaction = self._block.current
        if transaction is None:
            return self.temporary.over(self.database.catalog)
        if transaction.catalog is not None and not transaction.running:
            transaction.rebase(self.database.catalog)
        return transaction.sees(self.database.catalog)

    def _new(self, explicit: bool) -> Transaction:
        locks = TransactionLocks(self.locks, self.owner, lambda: self.lock_timeout, self.is_cancelled)
        return Transaction(explicit, partial(begin_write, self), self.temporary, locks)

    def _commit(self, transaction: Transaction) -> None:
        try:
            ddl.end_temporary(self.database, transaction)
        except BaseException:
            transaction.rollback()
            raise
        self.database.commit(transaction, self.synchronous_commit)
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

    def admit(self, target: Stream, is_cancelled: Callable[[], bool] = lambda: False) -> None:
        """Waits until a writer of a stream may go on. Raises 57014."""
        self.database.admission.wait(target.oid, target.name, lambda: self.is_cancelled() or is_cancelled())

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
            transaction.rebase(self.database.catalog)
            return self.run(statement, parameters, transaction)

    def execute_planned(self, planned: Planned, parameters: tuple[Value, ...] = ()) -> Result:
        """Runs a statement, planned again where what it means has changed by the time when it may begin."""
        with self._statement() as transaction:
            for attempt in range(ATTEMPTS):
                planned = self._locked(planned, transaction, parameters)
                self.reader.planned = planned.catalog
                try:
                    return self._run_planned(planned, parameters, transaction)
                except OutdatedError:
                    if transaction.write is not None or attempt + 1 == ATTEMPTS:
                        raise
                finally:
                    self.reader.planned = None
            raise AssertionError("unreachable")

    def _locked(self, planned: Planned, transaction: Transaction, parameters: tuple[Value, ...] = ()) -> Planned:
        """A statement, planned for the present catalog, with the locks that it needs: no other transaction changes what
        it names from here on."""
        for _ in range(ATTEMPTS):
            lock(self, planned.statement, transaction, parameters)
            transaction.rebase(self.database.catalog)
            if planned.catalog is self.catalog:
                return planned
            planned = planned.again()
        raise OutdatedError

    def _run_planned(self, planned: Planned, parameters: tuple[Value, ...], transaction: Transaction) -> Result:
        """Runs a statement, for which columns may have to be widened; then it is planned once more."""

        def run(statement: Statement) -> Result:
            return self.run(statement, parameters, transaction)

        def again() -> Statement:
            new = planned.again()
            self.reader.planned = new.catalog
            return new.statement

        return run_widening(self, planned.statement, transaction, run, again)

    def run(self, statement: Statement, parameters: tuple[Value, ...], transaction: Transaction) -> Result:
        """Runs a statement within a transaction, whose end is the caller's."""
        match statement:
            case Query():
                return self._query(statement, parameters, transaction)
            case DeclareCursor(query=query):
                return self._query(query, parameters, transaction)
            case CopyOut(query=query):
                return replace(self.run(query, parameters, transaction), tag="COPY")
            case Insert():
                return changing.insert(self, statement, parameters, transaction)
            case Update() | Delete() | Merge() | Modifying():
                return changing.change(self, statement, parameters, transaction)
            case Truncate():
                ddl.truncate(self, transaction, statement)
                return Result("TRUNCATE TABLE")
            case CreateTableAs():
                return changing.create_as(self, statement, parameters, transaction)
            case Explain():
                return explain(self, statement, parameters, transaction)
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
        locking, found = statement.locking, skipping(statement, self.database.tables.definitions)
        if locking is not None and found is not None:
            mode = Mode.SHARE if is_sharing(locking) else Mode.EXCLUSIVE
            rows = skip_locked(self, found, parameters, transaction, mode, partial(see_rows, self, transaction))
            return Result("SELECT", statement.outputs, rows.to_batches())
        evaluate = self.evaluator(transaction) if statement.volatile else plainly
        batches = self.reader.batches(statement, parameters, transaction, evaluate)
        return Result("SELECT", statement.outputs, batches, live=isinstance(batches, ArrivingQuery))

    def evaluator(self, transaction: Transaction) -> Evaluate:
        """How relations are evaluated that may call sequences' functions."""
        drawings, catalog = self.database.drawings, transaction.sees(self.database.catalog)
        return Caller(
            drawings,
            self.sequences,
            self.notify,
            catalog,
            self.search_path,
            self._sleep,
            self.ask,
            partial(self._lock, transaction),
            self.is_cancelled,
            self.read_only,
            self.user,
        ).evaluate

    def _lock(self, transaction: Transaction, function: str, numbers: list[int]) -> bool:
        """A function of advisory locks. Raises 40P01, 55P03 and 57014."""
        done = self.advisory.call(function, numbers, transaction, self.lock_timeout)
        if not done and "unlock" in function:
            mode = SHARED if function.endswith("_shared") else EXCLUSIVE
            self.warn(SqlError("01000", f"you don't own a lock of type {mode}"))
        return done

    def _sleep(self, seconds: float) -> None:
        """pg_sleep(). Raises 57014 where the statement is cancelled meanwhile."""
        if seconds > 0 and self._cancelled.wait(min(seconds, threading.TIMEOUT_MAX)):
            raise SqlError("57014", "canceling statement due to user request")

    def evaluated(
        self, relation: Relation, transaction: Transaction, schema: pa.Schema, bindings: Bindings = NOTHING
    ) -> pa.Table:
        """The rows of a relation for a table, which may take values of sequences."""
        writer = transaction.writer()

        def run(part: Relation, more: Bindings) -> pa.Table:
            return writer.query(part, {**bindings, **more}, (), self.time_zone)

        found = self.evaluator(transaction)(relation, run)
        return pa.Table.from_arrays(found.columns, schema=schema)

    def require(self, target: Table | Stream | View) -> None:
        """Raises 42P01 for what another transaction has dropped."""
        if target.oid not in self.catalog.objects:
            raise undefined_table(target.name)

    def _define(self, statement: ddl.Definition, transaction: Transaction) -> Result:
        transaction.writer()
        if isinstance(statement, CreateView):
            statement = replace(statement, view=self._with_engine(statement.view))
        before = self.catalog
        result = ddl.define(self, transaction, statement)
        require_changeable(self.database, self.database.view_moving.keeping.end, before, self.catalog)
        return result

    def _with_engine(self, view: View) -> View:
        """A continuous view without an engine of its own keeps the session's, where that is not the server's."""
        engine, name = self.maintenance_engine, "maintenance_engine"
        if not view.continuous or engine == self.database.options.maintenance_engine or name in dict(view.options):
            return view
        return replace(view, options=(*view.options, (name, engine)))

    # COPY -------------------------------------------------------------------------------------------------------

    def copy_in(self, planned: Planned) -> CopySink:
        """COPY ... FROM STDIN: where the parsed rows go. The statement ends with ``finish`` or ``abort``; it is planned
        again where what it means has changed by the time when it may begin."""
        self._cancelled.clear()
        transaction = self._block.start()
        try:
            statement = self._locked(planned, transaction).statement
            assert isinstance(statement, CopyIn)
            self.require(statement.target)
            return CopySink(self, statement, transaction)
        except BaseException:
            self._block.fail()
            raise

    def end_copy(self, error: bool) -> None:
        """Called by the sink: the statement is over."""
        if error:
            self._block.fail()
        else:
            self._block.finish()

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
            self.database.temporary.drop(self.temporary.tables)
