"""What one client does to the database: statements in, results out, transactions in between.

Owns: the meaning of every statement class of planner.statements that touches data or catalog. In which transaction
each runs is ``executor/block``'s. Knows nothing of wire formats, settings or prepared statements (server/). Calls
block; the server makes them from worker threads, one at a time per session.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

import pyarrow as pa

from catalog.catalog import Catalog
from catalog.errors import SqlError, undefined_table, unsupported
from catalog.objects import PG_TEMP, PUBLIC, Stream, Table, View
from catalog.system.rows import Own
from executor import ddl
from executor.arriving import ArrivingQuery, Notify, Patience
from executor.block import Block
from executor.commit.records import StreamRows
from executor.copying import CopySink
from executor.drawing import Caller
from executor.embedded.changes import Changes
from executor.embedded.connection import NOTHING, Bindings, Evaluate, plainly
from executor.embedded.effects import Modification, parts_of
from executor.embedded.tables import WriteTransaction
from executor.explaining import explain
from executor.planned import Planned
from executor.points import PointReader, point_reader
from executor.queries import ATTEMPTS, Reader
from executor.result import Result, changed
from executor.row_values import row_values
from executor.sequences import SessionSequences
from executor.temporary import Temporary, drop_temporary
from executor.trace.layout import stored_rows
from executor.transaction import OutdatedError, Transaction
from planner.algebra import Relation
from planner.definitions import (
    AlterSchema,
    AlterSequence,
    AlterTable,
    AlterType,
    AlterView,
    CreateSchema,
    CreateSequence,
    CreateStream,
    CreateTable,
    CreateTableAs,
    CreateType,
    CreateView,
    Drop,
    DropType,
    Redefine,
    Truncate,
)
from planner.expression import Value
from planner.statements import (
    CopyIn,
    CopyOut,
    Delete,
    Explain,
    Insert,
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
    from executor.database import Database


class DatabaseSession:
    """One client's session. Thread-safe only in ``cancel``."""

    def __init__(self, database: Database, user: str, name: str) -> None:
        self.database = database
        self.user = user
        self.name = name
        self.synchronous_commit = True
        self.lock_timeout = database.options.lock_timeout
        #: Who maintains the continuous views that this session creates, where they do not say it.
        self.maintenance_engine: str = database.options.maintenance_engine
        self._block = Block(self._new, self._commit)
        self.sequences = SessionSequences(database.sequences)
        self.temporary = Temporary()
        #: Schemas in which a sequence's name is looked up when a statement runs.
        self.search_path: tuple[str, ...] = (PUBLIC,)
        self.read_only = False
        self._cancelled = threading.Event()
        self._reader = Reader(database, self._cancelled.is_set)

    @property
    def time_zone(self) -> str:
        """The session's TimeZone setting."""
        return self._reader.time_zone

    @time_zone.setter
    def time_zone(self, name: str) -> None:
        self._reader.time_zone = name

    @property
    def query_engine(self) -> str:
        """The session's query_engine setting: where its queries run."""
        return self._reader.query_engine

    @query_engine.setter
    def query_engine(self, name: str) -> None:
        self._reader.query_engine = name

    def describe_itself(self, own: Own) -> None:
        """What only this session knows, as relations."""
        self._reader.own = own

    def await_rows(self, patience: Patience, notify: Notify) -> None:
        """How this session's queries of streams wait, and whom they tell how far they are."""
        self._reader.patience, self._reader.notify = patience, notify

    # Transactions -----------------------------------------------------------------------------------------------

    @property
    def status(self) -> str:
        """ReadyForQuery's transaction status: I idle, T in a block, E in a failed block."""
        return self._block.status

    @property
    def has_begun(self) -> bool:
        """Whether a statement of the open block has seen the data."""
        return self._block.has_begun

    def isolate(self, level: str) -> None:
        """SET TRANSACTION ISOLATION LEVEL. Raises 25001 where it comes too late."""
        self._block.isolate(level)

    @property
    def catalog(self) -> Catalog:
        """The catalog that this session's next statement sees, its own uncommitted DDL included."""
        transaction = self._block.current
        return (self.temporary.over if transaction is None else transaction.sees)(self.database.catalog)

    def _new(self, explicit: bool) -> Transaction:
        return Transaction(explicit, self._begin_write, self.temporary)

    def _begin_write(self) -> WriteTransaction:
        """Waits for the one table writer. Raises 40001 where a repeatable snapshot is older than the tables."""
        writer = self.database.tables.begin_write(self.lock_timeout, self._cancelled.is_set)
        transaction = self._block.current
        snapshot = None if transaction is None else transaction.snapshot
        if snapshot is not None and self.database.tables_lsn > snapshot[0]:
            writer.rollback()
            raise OutdatedError
        return writer

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

    def fail(self) -> None:
        """Something outside ``execute`` failed (a portal, the client's data): the transaction cannot commit."""
        self._block.fail()

    def admit(self, target: Stream, is_cancelled: Callable[[], bool] = lambda: False) -> None:
        """Waits until a writer of a stream may go on. Raises 57014."""
        self.database.admission.wait(target.oid, target.name, lambda: self._cancelled.is_set() or is_cancelled())

    @contextlib.contextmanager
    def _statement(self) -> Iterator[Transaction]:
        """A statement's transaction; commits when it is the whole of it, marks it failed on an error."""
        self._cancelled.clear()
        transaction = self._block.start()
        try:
            yield transaction
        except BaseException:
            self._block.fail()
            raise
        self._block.finish()

    # Statements -------------------------------------------------------------------------------------------------

    def execute(self, statement: Statement, parameters: tuple[Value, ...] = ()) -> Result:
        """Runs a statement. Settings, prepared statements and COPY with the client are the server's own matters."""
        if isinstance(statement, TransactionControl):
            return self._block.control(statement)
        with self._statement() as transaction:
            return self._run(statement, parameters, transaction)

    def execute_planned(self, planned: Planned, parameters: tuple[Value, ...] = ()) -> Result:
        """Runs a statement, planned again where what it means has changed by the time when it may begin."""
        with self._statement() as transaction:
            if planned.writes_tables:
                transaction.writer()
            for attempt in range(ATTEMPTS):
                if planned.catalog is not self.catalog:
                    planned = planned.again()
                self._reader.planned = planned.catalog
                try:
                    return self._run(planned.statement, parameters, transaction)
                except OutdatedError:
                    if transaction.write is not None or attempt + 1 == ATTEMPTS:
                        raise
                finally:
                    self._reader.planned = None
            raise AssertionError("unreachable")

    def _run(self, statement: Statement, parameters: tuple[Value, ...], transaction: Transaction) -> Result:
        match statement:
            case Query():
                return self._query(statement, parameters, transaction)
            case Insert():
                return self._insert(statement, parameters, transaction)
            case Update() | Delete() | Merge() | Modifying():
                return self._change(statement, parameters, transaction)
            case Truncate():
                ddl.truncate(self, transaction, statement)
                return Result("TRUNCATE TABLE")
            case CreateTableAs():
                return self._create_as(statement, parameters, transaction)
            case CreateSchema() | CreateTable() | CreateStream() | CreateView() | CreateSequence() | Drop():
                return self._define(statement, transaction)
            case CreateType() | AlterType() | DropType():
                return self._define(statement, transaction)
            case AlterSchema() | AlterView() | AlterSequence() | AlterTable() | Redefine():
                return self._define(statement, transaction)
            case Explain():
                return explain(self._reader, statement, parameters, transaction)
            case CopyOut():
                raise unsupported("COPY TO a file on the server", "use COPY ... TO STDOUT, or psql's \\copy")
            case SetConstraints(named=named, deferred=deferred):
                transaction.set_constraints(named, deferred)
                warning = SqlError("25P01", "SET CONSTRAINTS can only be used in transaction blocks")
                alone = not transaction.explicit and not self._block.is_implicit
                return Result("SET CONSTRAINTS", notices=(warning,) if alone else ())
            case NoOperation(tag=tag, notices=notices):
                return Result(tag, notices=tuple(SqlError("00000", text) for text in notices))
            case _:
                raise AssertionError(f"{type(statement).__name__} is the server's")

    def _query(self, statement: Query, parameters: tuple[Value, ...], transaction: Transaction) -> Result:
        evaluate = self._evaluate(transaction) if statement.volatile else plainly
        batches = self._reader.batches(statement, parameters, transaction, evaluate)
        return Result("SELECT", statement.outputs, batches, live=isinstance(batches, ArrivingQuery))

    def copy_out(self, statement: CopyOut) -> Result:
        """COPY ... TO STDOUT: the rows; the server formats them."""
        with self._statement() as transaction:
            result = self._query(statement.query, (), transaction)
            return replace(result, tag="COPY")

    def _insert(self, statement: Insert, parameters: tuple[Value, ...], transaction: Transaction) -> Result:
        target = statement.target
        self._require(target)
        if isinstance(target, Table):
            bindings = self._reader.bindings(statement, transaction, parameters)
            changes = self._changes(statement, parameters, transaction, bindings)
            return changed(f"INSERT 0 {changes.count}", statement.returning, changes.returned)
        if statement.returning is not None:
            raise unsupported("RETURNING from a stream", "leave RETURNING out: a stream keeps no rows")
        self.admit(target)
        batch = self._stream_rows(statement, parameters, transaction, target)
        if batch.num_rows:
            transaction.parts.append(StreamRows(target.oid, stored_rows(target, batch.to_batches())))
        return Result(f"INSERT 0 {batch.num_rows}")

    def _stream_rows(
        self, statement: Insert, parameters: tuple[Value, ...], transaction: Transaction, target: Stream
    ) -> pa.Table:
        if target.option("source"):
            raise SqlError("42809", f'stream "{target.name}" is fed from files and takes no INSERT')
        runtime = self.database.streams.get(target.oid)
        columns = runtime.schema if runtime is not None and runtime.stream is target else ddl.schema_of(target)
        rows = None if statement.literals is None else row_values(statement.literals, parameters, target)
        if rows is not None:
            arrays = [
                pa.array(values, field.type) for values, field in zip(zip(*rows, strict=True), columns, strict=True)
            ]
            return pa.Table.from_arrays(arrays, schema=columns)
        table = self._reader.table(statement.source, parameters, transaction, self._evaluate(transaction))
        table = pa.Table.from_arrays(table.columns, schema=columns)
        ddl.check_not_null(target, table)
        return table

    def _change(
        self, statement: Update | Delete | Merge | Modifying, parameters: tuple[Value, ...], transaction: Transaction
    ) -> Result:
        for part in parts_of(statement):
            self._require(part.target)
        bindings = self._reader.bindings(statement, transaction, parameters)
        changes = self._changes(statement, parameters, transaction, bindings)
        main = statement.main if isinstance(statement, Modifying) else statement
        if isinstance(main, Query):
            return Result("SELECT", main.outputs, () if changes.returned is None else changes.returned.to_batches())
        word = "INSERT 0" if isinstance(main, Insert) else type(main).__name__.upper()
        returning = None if isinstance(main, Merge) else main.returning
        return changed(f"{word} {changes.count}", returning, changes.returned)

    def _changes(
        self, statement: Modification, parameters: tuple[Value, ...], transaction: Transaction, bindings: Bindings
    ) -> Changes:
        writer, evaluate = transaction.writer(), self._evaluate(transaction)
        return writer.change(statement, parameters, bindings, self.time_zone, evaluate)

    def _evaluate(self, transaction: Transaction) -> Evaluate:
        """How relations are evaluated that may call sequences' functions."""
        drawings, catalog = self.database.drawings, transaction.sees(self.database.catalog)
        return Caller(drawings, self.sequences, catalog, self.search_path, self.read_only).evaluate

    def evaluated(
        self, relation: Relation, transaction: Transaction, schema: pa.Schema, bindings: Bindings = NOTHING
    ) -> pa.Table:
        """The rows of a relation for a table, which may take values of sequences."""
        writer = transaction.writer()

        def run(part: Relation, more: Bindings) -> pa.Table:
            return writer.query(part, {**bindings, **more}, (), self.time_zone)

        found = self._evaluate(transaction)(relation, run)
        return pa.Table.from_arrays(found.columns, schema=schema)

    def _require(self, target: Table | Stream | View) -> None:
        if target.oid not in self.catalog.objects:
            raise undefined_table(target.name)

    def _define(self, statement: ddl.Definition, transaction: Transaction) -> Result:
        transaction.writer()  # one DDL statement at a time, and none beside a table writer
        if isinstance(statement, CreateView):
            statement = replace(statement, view=self._with_engine(statement.view))
        return ddl.define(self, transaction, statement)

    def _create_as(self, statement: CreateTableAs, parameters: tuple[Value, ...], transaction: Transaction) -> Result:
        writer = transaction.writer()
        filled = statement.filled and not statement.exists
        evaluate, relation = self._evaluate(transaction), statement.query.relation
        rows = self._reader.answer(relation, parameters, transaction, evaluate) if filled else None
        created = ddl.define(self, transaction, CreateTable(statement.table, statement.exists))
        if rows is None:
            return replace(created, tag="CREATE TABLE AS")
        found = self.catalog.find(statement.table.name, statement.table.schema)
        assert isinstance(found, Table)
        return Result(f"SELECT {writer.append(found, rows).count}")

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
            if planned.writes_tables:
                transaction.writer()
            if planned.catalog is not self.catalog:
                planned = planned.again()
            statement = planned.statement
            assert isinstance(statement, CopyIn)
            self._require(statement.target)
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

    def append_rows(
        self, insert: Insert, rows: list[tuple[Value, ...]], done: Callable[[SqlError | None], None]
    ) -> bool:
        """Rows of an autocommitted INSERT into a stream, without blocking; ``done`` is called when they are durable.

        False when this INSERT cannot go that way, or must wait. ``rows`` are parameter tuples; raises SqlError for a
        bad value.
        """
        if self._block.current is not None or not isinstance(insert.target, Stream) or insert.literals is None:
            return False
        if not self.database.admission.is_open(insert.target.oid):
            return False
        return self.database.appender.append(insert, rows, self.synchronous_commit, done)

    def check_row(self, insert: Insert, parameters: tuple[Value, ...]) -> None:
        """Raises what an INSERT that is appended later would raise for a bad value."""
        self.database.appender.check(insert, parameters)

    def point_reader(self, query: Query) -> PointReader | None:
        """The reader of a query that looks one group of a continuous view up; None for every other."""
        return None if self._block.current is not None else point_reader(self.database, query)

    def cancel(self) -> None:
        """Interrupts what runs now; may be called from any thread."""
        self._cancelled.set()
        self._reader.cancel()
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
        if self.temporary.tables:
            self.database.temporary.drop(self.temporary.tables)
