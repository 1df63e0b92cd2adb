"""What a statement finds of its session: the database, a reader, settings, locks, and the open transaction.

Owns: the state of a session that the statements of ``executor/sql`` share, and how expressions with effects, such as
nextval(), are evaluated for them. The session itself (``executor/sql/session``) decides which statement runs when.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import partial

import pyarrow as pa

from catalog.catalog import Catalog
from catalog.objects import Stream, Table, View
from catalog.system.rows import Own
from catalog.values.errors import SqlError, undefined_table
from executor.database.database import Database
from executor.embedded.connection import NOTHING, Bindings, Evaluate
from executor.locks.manager import Owner
from executor.queries.reader import Reader
from executor.sql.advisory_locks import EXCLUSIVE, SHARED, Holder
from executor.sql.transaction_block import Block
from executor.subscriptions.arrival_scan import Notify, Patience
from executor.tables.sequences import SessionSequences
from executor.tables.statements import effect_calls as drawing
from executor.tables.statements.effect_calls import Caller
from executor.tables.temporary import Temporary
from executor.transactions.transaction import Transaction
from planner.algebra.nodes import Relation


class Environment:
    """One session's. Thread-safe only in ``is_cancelled``."""

    def __init__(self, database: Database, user: str, name: str, block: Block) -> None:
        self.database, self.core = database, database.core
        self.name = name
        self.synchronous_commit = True
        self.lock_timeout = self.core.options.lock_timeout
        self.serializable = False
        #: Who maintains the continuous views that this session creates, where they do not say it.
        self.maintenance_engine: str = self.core.options.maintenance_engine
        #: Its transactions.
        self._block = block
        self.sequences = SessionSequences(self.core.sequences)
        self.temporary = Temporary()
        self.read_only = False
        self._cancelled = threading.Event()
        self.locks = self.core.tables.locks
        #: What it is for the lock manager.
        self.owner = Owner()
        self.advisory = Holder(self.locks, self.owner, self.is_cancelled)
        #: Takes the notifications that statements make.
        self.notify: drawing.Notify = lambda channel, payload: None
        self.ask: drawing.Ask = lambda function, arguments: None
        #: Takes what statements say meanwhile.
        self.warn: Notify = lambda notice: None
        #: Reads in the session's transactions.
        self.reader = Reader(database.read_services, self.is_cancelled)
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

    @property
    def catalog(self) -> Catalog:
        """The catalog that this session's next statement sees, its own uncommitted DDL included."""
        transaction = self._block.current
        if transaction is None:
            return self.temporary.over(self.core.catalog)
        if transaction.catalog is not None and not transaction.running:
            transaction.rebase(self.core.catalog)
        return transaction.sees(self.core.catalog)

    def evaluator(self, transaction: Transaction) -> Evaluate:
        """How relations are evaluated that may call sequences' functions."""
        drawings, catalog = self.database.drawings, transaction.sees(self.core.catalog)
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

    def admit(self, target: Stream, is_cancelled: Callable[[], bool] = lambda: False) -> None:
        """Waits until a writer of a stream may go on. Raises 57014."""
        self.database.admission.wait(target.oid, target.name, lambda: self.is_cancelled() or is_cancelled())

    def end_copy(self, error: bool) -> None:
        """Called by the sink: the statement is over."""
        if error:
            self._block.fail()
        else:
            self._block.finish()
