"""A transaction that changes tables: statements, savepoints, net changes.

Owns: INSERT, UPDATE, DELETE, TRUNCATE, COPY and DDL within one DuckDB transaction, and its journal. As long as it has
only changed rows by key (``keyed``), there is no DuckDB transaction: the journal alone is committed, and DuckDB gets
the rows together with those of others (``backlog``). Before a statement changes a table, its locks are taken
(``needs``, ``row_locks``), so that no two transactions change the same row. A DuckDB transaction's snapshot is as old
as the transaction; it has no savepoints and ends at any error. To see later commits of others, or to return to a
savepoint, it is rolled back, and the journal is replayed in a new one, up to its end or to the savepoint. A statement
is checked completely before any of it is applied.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Final

import pyarrow as pa

from catalog.catalog import Catalog
from catalog.objects import Stream, Table, is_temporary
from catalog.values.errors import SqlError, failed_transaction
from executor.commit.records import TableChange, TableValues
from executor.embedded.connection import NOTHING, Bindings, Connection, Evaluate, Parameters, plainly
from executor.embedded.printing.dialect import STORE
from executor.embedded.results import OpenRows
from executor.locks.held import TransactionLocks
from executor.locks.modes import Mode
from executor.locks.targets import Keys, Relation, Rows
from executor.locks.targets import Row as RowTarget
from executor.tables import changes as tools
from executor.tables.backlog import NetRows, net_of
from executor.tables.changes import Change, Changes
from executor.tables.constraints.checks import Checker, refuse_referenced
from executor.tables.constraints.deferral import Deferred, Settled, Timing, require_settled, settle, waiting
from executor.tables.definitions import catalog_documents
from executor.tables.definitions.altering import Step, Verifier
from executor.tables.definitions.catalog_documents import Documents
from executor.tables.journal import (
    Altered,
    Changed,
    ChangedRow,
    Created,
    Defined,
    DefinitionChange,
    Dropped,
    Entry,
    Rebuilt,
    RowsChanged,
    gathered,
)
from executor.tables.own_definitions import OwnDefinitions
from executor.tables.row_locks import RowLocks, has_rows_by_key, is_small
from executor.tables.savepoints import Savepoints
from executor.tables.statements.changes_by_key import KeyedWriter, NotByKey, Store
from executor.tables.statements.effects import Arguments, Effect, Effects, Modification, OverRows, parts_of, typed
from executor.tables.statements.follower_rows import Following
from executor.tables.statements.lock_needs import Need, needs, neighbours, of_insertion
from executor.tables.statements.row_plans import RowPlan
from executor.traces.index import Row
from executor.traces.keyed_rows import Columns, Key
from planner.algebra.nodes import Column, Scalar
from planner.algebra.nodes import Relation as Algebra
from planner.lowering.effects import calls_of
from planner.statements.statement import Generated, Insert
from planner.statements.walk import roots

_NO_CATALOG: Final = Catalog()
#: Journal entries that change no rows.
_CHECKS: Final = (Deferred, Settled)
#: How often a statement is computed again because others changed its rows, before it locks all rows.
_TRIES: Final = 3


class WriteTransaction:
    """A transaction that may change tables. Used by one thread at a time, except that any thread may call
    ``interrupt``."""

    def __init__(
        self,
        store: Store,
        locks: TransactionLocks,
        ended: Callable[[WriteTransaction, int | None], None],
        relations: OverRows,
        counts: dict[int, tools.Counts],
        fixed: tuple[Connection, int] | None = None,
        is_alone: bool = False,
    ) -> None:
        """``fixed``: the connection and the LSN of a snapshot that all statements read. ``is_alone``: all locks are
        released with the transaction."""
        self._store = store
        self.locks = locks
        self._is_alone = is_alone
        self._connection: Connection | None = None
        self._fixed = fixed
        #: The LSN up to which its DuckDB transaction sees all commits.
        self._at = 0
        self._own = OwnDefinitions(lambda: store.definitions)
        self._rows = RowLocks(locks, lambda: self.definitions, self.lock)
        #: The catalog that it stores, if any.
        self.catalog: Documents | None = None
        #: Tables that its record contains with all rows (known after ``changes``).
        self.rebuilt: set[int] = set()
        #: The foreign keys whose checks are deferred to the commit.
        self.timing = Timing()
        self._ended = ended
        #: The changes so far.
        self.journal: list[Entry] = []
        self._savepoints: Savepoints[int] = Savepoints()  # the journal's length at each savepoint
        self._broken = False
        self._open = True
        self._relations = relations
        self._counts = counts
        self._keyed = KeyedWriter(store, relations)
        self._net: list[NetRows] = []
        #: The LSN up to which its DuckDB transaction has seen changes that may not be on disk yet.
        self._before, self.chain = 0, store.unsettled.chain
        #: Its LSN, if the next writer began before its record was on disk.
        self._lsn: int | None = None

    @property
    def is_over(self) -> bool:
        """Whether it was committed or rolled back."""
        return not self._open

    @property
    def is_open(self) -> bool:
        """Whether it has a DuckDB transaction; a transaction that has only changed rows by key has none."""
        return self._connection is not None

    @property
    def is_by_key(self) -> bool:
        """Whether it has only changed rows by key and can be committed."""
        return self._connection is None and not self._broken

    @property
    def is_settled(self) -> bool:
        """Whether all changes that it has seen are durable and visible."""
        return self._store.unsettled.is_over(self._stands_on, self.chain)

    @property
    def _stands_on(self) -> int:
        """The LSN of the last change that it has seen."""
        return max(self._before, self._keyed.found)

    @property
    def definitions(self) -> Mapping[int, Table]:
        """The tables' definitions as this transaction sees them."""
        return self._own.seen

    @property
    def own_definitions(self) -> Mapping[int, Table | None]:
        """Tables whose definitions it has changed, by oid; None for dropped tables."""
        return self._own.changed

    @property
    def touched(self) -> set[int]:
        """The durable tables whose rows or columns it has changed."""
        return {table.oid for table in self._changed_tables if not is_temporary(table)}

    @property
    def _changed_tables(self) -> Iterable[Table]:
        """The tables whose rows or columns it has changed, with their definitions at the change."""
        return {id(entry.table): entry.table for entry in self.journal if not isinstance(entry, _CHECKS)}.values()

    @property
    def connection(self) -> Connection:
        """A connection that sees the tables with the transaction's own changes."""
        if self._connection is None:
            self.stand()
            self.await_others()
            if self._fixed is None:
                self._at = self._store.applied_lsn  # before the snapshot is taken, which may then contain more
                self._connection = self._store.connect()
            else:
                self._connection, self._at = self._fixed
            self._begin()
        return self._connection

    def _begin(self) -> None:
        """Begins the DuckDB transaction, and replays this one's changes in it."""
        assert self._connection is not None
        if self._connection.makes_nothing:
            raise SqlError(
                "40001", "could not serialize access: a statement has failed over the transaction's snapshot"
            )
        self._connection.may_be_left = False  # the changes must be rolled back at an error
        if not self._connection.in_transaction:
            self._connection.begin()  # takes the snapshot
        self._connection.expect_own_rows()
        for entry in self.journal:
            self._replay(entry)

    def _begin_again(self) -> None:
        """Begins the DuckDB transaction again, which then sees all later commits."""
        assert self._connection is not None
        self._connection.rollback()
        self._at = self._store.applied_lsn
        self._store.backlog.apply()
        self._own.forget()
        self._begin()
        if self._fixed is not None and max(self._store.changed.values(), default=0) > self._fixed[1]:
            raise SqlError("40001", "could not serialize access: rows have changed since the snapshot was taken")

    # Locks ------------------------------------------------------------------------------------------------------

    def see(self, oids: Iterable[int]) -> None:
        """A statement that reads or changes these tables begins: it must see what others have committed in them. If the
        transaction reads a snapshot, only commits before it are seen."""
        if self._fixed is None and self.is_behind(oids):
            with self._statement():
                self.stand()
                self.await_others()
                self._begin_again()

    def is_behind(self, oids: Iterable[int]) -> bool:
        """Whether others have committed changes of these tables since the DuckDB transaction began."""
        if self._connection is None:
            return False
        self.await_others()  # so that the changes that it has seen are committed
        changed, at = self._store.changed, self._at
        return any(changed.get(oid, 0) > at for oid in oids)

    def lock(self, found: Iterable[Need]) -> bool:
        """Takes locks, and from then on sees the changes of their last owners; returns whether a lock is new. Raises
        40P01, 55P03, 57014, and 40001 if a table has changed since the snapshot that the transaction reads."""
        locks = self.locks
        taken = [locks.take(target, mode) for target, mode in found]
        if any(taken):
            self.stand()
        if self._fixed is not None:
            self.await_others()
            tables = {target.oid for target, _ in found if isinstance(target, Relation | Rows | Keys)}
            if any(self._store.changed.get(oid, 0) > self._fixed[1] for oid in tables):
                raise SqlError("40001", "could not serialize access due to concurrent update")
        return any(taken)

    @property
    def _finds_by_key(self) -> bool:
        """Whether the rows that are in memory by key are the rows that the transaction sees."""
        return self._connection is None and self._fixed is None

    def stand(self) -> None:
        """Locks were taken: from now on the transaction sees the changes of others whose place in the log is fixed."""
        self._before = max(self._before, self._store.unsettled.last)

    @property
    def _computing(self) -> Connection:
        """A context for a statement that changes nothing. If there are no changes to undo, the statement may be left
        running."""
        connection = self.connection
        connection.may_be_left = not self.journal
        return connection

    @property
    def _effects(self) -> Effects:
        return Effects(self._computing.query, self._relations, self.connection)

    def await_others(self) -> None:
        """Waits until all changes that it has seen are durable and visible; nothing is answered before. Raises the
        error if they never will be."""
        self._store.unsettled.wait(self._stands_on, self.chain)

    # Statements -------------------------------------------------------------------------------------------------

    def query(self, relation: Algebra, bindings: Bindings, parameters: Parameters, timezone: str) -> pa.Table:
        """A relation's rows; the transaction sees its own changes."""
        with self._statement():
            found = self._of_keys(relation, bindings, parameters, timezone)
            return self._computing.query(relation, bindings, parameters, timezone) if found is None else found

    def open(self, relation: Algebra, bindings: Bindings, parameters: Parameters, timezone: str) -> pa.Table | OpenRows:
        """Opens a result, which is computed while it is read if it is large. An error at any time breaks the
        transaction."""
        with self._statement():
            found = self._of_keys(relation, bindings, parameters, timezone)
            if found is not None:
                return found
            rows = self._computing.open(relation, bindings, parameters, timezone)
        if isinstance(rows, OpenRows):
            rows.at_failure(self._break)
        return rows

    def _of_keys(self, relation: Algebra, bindings: Bindings, parameters: Parameters, timezone: str) -> pa.Table | None:
        """The rows of a query that reads few rows by key; None if the engine must find them."""
        if not self._finds_by_key:
            return None
        return self._keyed.query(relation, bindings, parameters, timezone, self.definitions)

    def _break(self) -> None:
        self._broken = True

    def change(
        self,
        statement: Modification,
        parameters: Parameters,
        bindings: Bindings,
        timezone: str,
        evaluate: Evaluate = plainly,
        catalog: Catalog = _NO_CATALOG,
    ) -> Changes:
        """INSERT, UPDATE, DELETE, MERGE, or several in WITH.

        An error undoes the whole statement. Rows of other tables that foreign key actions change are checked with those
        tables' constraints in ``catalog``.
        """
        with self._statement():
            targets = [part.target for part in parts_of(statement)]
            tables = [table for table in targets if isinstance(table, Table)]
            self.lock(needs(statement, self.definitions))
            for target in targets:
                self._require_current(target)
            arguments = Arguments(parameters, bindings, timezone, evaluate)
            effect, mark = None, self.locks.mark()
            if self._finds_by_key and self._keyed.suits(statement, self.definitions):
                effect = self._by_key(statement, arguments, tables)
                if effect is not None and self._keyed.takes(effect, self.definitions):
                    self._note(effect.changes)
                    return Changes(effect.count, effect.returned)
                self.locks.release_after(mark)  # to wait for all rows, it must hold no lock that others wait for
            if effect is None or not isinstance(statement, Insert):  # the row ids of other tables are unknown
                effect = self._by_query(statement, arguments, tables)
            else:
                self._rows.arriving(*tables, effect=effect)
                self.see(neighbours({table.oid for table in tables}, self.definitions))
            self._apply(dict(effect.changes), Following(self._effects, arguments, catalog))
            return Changes(effect.count, effect.returned)

    def _by_key(self, statement: Modification, arguments: Arguments, tables: list[Table]) -> Effect | None:
        """A statement's effect on rows in memory, which it has locked; None if the engine must find the rows."""
        self.lock([(Rows(table.oid), Mode.ROW_EXCLUSIVE) for table in tables])
        effect = self._keyed.effect(statement, arguments, self.definitions)
        for _ in range(_TRIES):
            if effect is None or not self._rows.of(effect) or isinstance(statement, Insert):
                return effect
            effect = self._keyed.effect(statement, arguments, self.definitions)
        return None

    def _by_query(self, statement: Modification, arguments: Arguments, tables: list[Table]) -> Effect:
        """A statement's effect on rows that the engine finds, after locking these rows if they are few, or all rows of
        their tables. If others have changed the rows meanwhile, the effect is computed again."""
        connected = neighbours({table.oid for table in tables}, self.definitions)
        if isinstance(statement, Insert) and statement.conflict is None:
            self.see(connected)
            effect = self._effects.of(statement, arguments)  # only once, as it may take values of sequences
            self._rows.arriving(*tables, effect=effect)
            self.see(connected)
            return effect
        if self._fixed is None and all(map(has_rows_by_key, tables)) and not _draws(statement):
            mark = self.locks.mark()
            for _ in range(_TRIES):
                self.lock([(Rows(table.oid), Mode.ROW_EXCLUSIVE) for table in tables])
                self.see(connected)
                effect = self._effects.of(statement, arguments)
                if not is_small(effect):
                    break
                if not self._rows.of(effect) or not self.is_behind(connected):
                    return effect
            self.locks.release_after(mark)
        self._rows.all(*tables)
        self.see(connected)
        return self._effects.of(statement, arguments)

    def change_row(self, plan: RowPlan, parameters: Parameters, timezone: str) -> None:
        """Changes one row without waiting. Raises NotByKey, or the error of a value, with nothing changed."""
        if self._may_queue(plan.table):
            raise NotByKey
        oid, locks, find = plan.table.oid, self.locks, self._keyed.find_at_once
        shared = (Relation(oid), Mode.ROW_EXCLUSIVE), (Rows(oid), Mode.ROW_EXCLUSIVE)
        first = plan.key(parameters)
        if first is None:
            if not locks.try_all(shared):
                raise NotByKey
            change = self._change_found(plan, parameters, timezone)
        else:
            row = () if self._rows.has_all(oid) else ((RowTarget(oid, *first), Mode.EXCLUSIVE),)
            if not locks.try_all((*shared, *row)):
                raise NotByKey
            change = plan.change(find, parameters, timezone)
        self._take(change, change.old is not None and change.new is not None)

    def _may_queue(self, table: Table) -> bool:
        """Whether a change that keeps all keys may leave a check waiting: that of a row which the transaction made."""
        return any(self.timing.waits(table, key) for key in table.foreign_keys) and self.has_changed(table)

    def _change_found(self, plan: RowPlan, parameters: Parameters, timezone: str) -> ChangedRow:
        """A change of a row whose keys are known only once the row is found, after locking them."""
        find = self._keyed.find_at_once
        change = plan.change(find, parameters, timezone)
        keys = plan.keys(change)
        if self._rows.try_rows(plan.table.oid, keys):
            change = plan.change(find, parameters, timezone)
            if plan.keys(change) != keys:  # another row has the key by now
                raise NotByKey
        return change

    def find_row(self, table: Table, columns: Columns, key: Key) -> Row | None:
        """The row with a key as the transaction sees it; None if finding it takes time."""
        try:
            row = self._keyed.find_at_once(table, columns, key) if self.is_by_key else None
        except NotByKey:
            return None
        return row if self.is_settled else None

    def append(
        self,
        table: Table,
        rows: pa.Table,
        timezone: str,
        checks: tuple[tuple[str, Scalar], ...] = (),
        row: tuple[Column, ...] = (),
        generated: Generated = (),
    ) -> Changes:
        """COPY: appends rows in the table's column order. ``checks`` and ``generated`` are over ``row``, as for
        INSERT."""
        with self._statement():
            self.lock(of_insertion(table))
            self._require_current(table)
            self._rows.arriving(table)
            self.see(neighbours({table.oid}, self.definitions))
            arguments = Arguments((), NOTHING, timezone)
            rows = self._effects.complete(table, generated, row, rows, arguments)
            self._effects.check(table, checks, row, rows, arguments)
            self._apply({table.oid: tools.insertion(table, rows)})
            return Changes(rows.num_rows)

    def truncate(self, targets: Iterable[Table]) -> Changes:
        """TRUNCATE: deletes all rows. Raises PostgreSQL's error 0A000 if another table refers to the tables."""
        targets = list(targets)
        oids = {table.oid for table in targets}
        with self._statement():
            self.lock([(Relation(table.oid), Mode.ACCESS_EXCLUSIVE) for table in targets])
            self.see(oids)
            for table in targets:
                self.require_settled(table, "TRUNCATE")
            for table in targets:
                refuse_referenced(self.definitions, table, oids)
                rows = tools.rows_of(self.connection, table)
                self.connection.rows(f"DELETE FROM {tools.stored(table)}")
                self.journal.append(Changed(table, rows, rows.slice(0, 0)))
            return Changes(0)

    # Definitions ------------------------------------------------------------------------------------------------

    def create(self, table: Table) -> None:
        """CREATE TABLE."""
        self._define(lambda: Created(table))

    def drop(self, oid: int) -> None:
        """DROP TABLE; objects that refer to the table must have been dropped before."""
        self._define(lambda: Dropped(self.definitions[oid]))

    def define(self, table: Table) -> None:
        """Gives a table another definition with the same columns; its rows must have been checked against it."""
        self._define(lambda: Defined(table))

    def alter(self, table: Table, steps: tuple[Step, ...]) -> None:
        """Drops, renames or adds columns in place."""
        self._define(lambda: Altered(table, steps))

    def rebuild(self, table: Table, rows: pa.Table) -> None:
        """Gives a table another definition and all of its rows anew."""
        self._define(lambda: Rebuilt(table, typed(table, rows)))

    def _define(self, change: Callable[[], DefinitionChange]) -> None:
        with self._statement():
            entry = change()
            self._own.apply(self.connection, entry)
            self.journal.append(entry)

    def verify(self, before: Table, table: Table, rewritten: bool) -> None:
        """Checks stored rows against the new parts of a definition. Raises 23502, 23503 and 23505."""
        with self._statement():
            Verifier(self.connection, self.definitions).verify(before, table, rewritten)

    def save_catalog(self, lsn: int, changes: Sequence[str]) -> None:
        """Stores changes of the server's catalog with the transaction, which has an LSN."""
        with self._statement():
            self.catalog = catalog_documents.save(self.connection, self._store.catalog, lsn, changes)

    # Changes ----------------------------------------------------------------------------------------------------

    def _require_current(self, table: Table | Stream) -> None:
        """Raises 40001 if a statement was planned with a definition that another transaction has changed."""
        known = self.definitions.get(table.oid)
        if known is not table and known != table:
            raise SqlError("40001", "could not serialize access due to concurrent update")

    def _apply(self, statement: dict[int, Change], following: Following | None = None) -> None:
        """Checks one statement's changes, and applies them together with those of foreign key actions."""
        checker = Checker(self.connection, self.definitions, statement, self.timing, following)
        checker.check()
        self.journal += checker.deferred
        self.connection.may_be_left = False
        for oid, change in checker.changes.items():
            table = self.definitions[oid]
            names = tools.bound(self.connection, table, change)
            tools.apply_by_id(self.connection, table, change)
            self.connection.unbind(names)
        self._note(checker.changes)

    def _note(self, changes: Mapping[int, Change]) -> None:
        for oid, change in changes.items():
            self._take(Changed(self.definitions[oid], change.deleted, change.inserted), change.updated)

    def _take(self, entry: RowsChanged, updated: int) -> None:
        self.journal.append(entry)
        if not self.is_open:
            self._keyed.note(entry)
        oid = entry.table.oid
        self._counts[oid] = self._counts.get(oid, tools.Counts()).plus(*entry.counts, updated)

    def settle(self, everything: bool = False) -> None:
        """Checks constraints that were deferred and are not any more, before a commit all. Raises 23503 and 23505."""
        items = waiting(self.journal)
        if not everything:
            items = [item for item in items if not self.timing.holds(self.definitions, item)]
        if items:
            self.see(neighbours({oid for item in items for oid in (item.changed, item.child)}, self.definitions))
            with self._statement():
                settle(self.connection, self.definitions, items)
            self.journal.append(Settled(frozenset((item.child, item.name) for item in items)))

    def require_settled(self, table: Table, command: str) -> None:
        """Raises 55006 if a table with deferred checks is to be altered."""
        require_settled(self.journal, table, command)

    def record(self) -> list[TableChange | TableValues]:
        """The net changes of durable tables that still exist, for the log record.

        The rows of one statement are not compared with each other, so rows that it rewrote with equal values are
        included.
        """
        if self.is_open:
            return [TableChange(*change) for change in self._changes()]
        parts = [(net, net.part()) for net in net_of(self.journal)]
        self._net = [net for net, part in parts if part is not None]
        return [part for _, part in parts if part is not None]

    def _changes(self) -> list[tuple[int, pa.Table, pa.Table]]:
        """(table's oid, inserted, deleted)."""
        found, self.rebuilt = gathered(self.journal)
        with self._statement():
            kept = {oid: both for oid, both in found.items() if oid not in self.rebuilt}
            net = [(oid, *tools.net(self.connection, self.definitions[oid], *both)) for oid, both in kept.items()]
            every = sorted(net + [self._whole(oid) for oid in self.rebuilt], key=lambda change: change[0])
        return [change for change in every if change[1].num_rows or change[2].num_rows]

    @property
    def has_temporary(self) -> bool:
        """Whether temporary tables were changed."""
        return any(map(is_temporary, self._changed_tables))

    def has_changed(self, table: Table) -> bool:
        """Whether rows of a table were changed."""
        return any(isinstance(entry, RowsChanged) and entry.table.oid == table.oid for entry in self.journal)

    def _whole(self, oid: int) -> tuple[int, pa.Table, pa.Table]:
        """All rows of a table that is logged anew."""
        table = self.definitions[oid]
        rows = tools.rows_of(self.connection, table)
        return oid, rows, rows.slice(0, 0)

    def apply(self, changes: Iterable[tuple[int, pa.Table | None, pa.Table | None]]) -> None:
        """Recovery: applies a log record's (oid, inserted, deleted) without checks."""
        with self._statement():
            for oid, inserted, deleted in changes:
                table = self.definitions[oid]
                tools.apply_by_value(self.connection, table, typed(table, deleted), typed(table, inserted))

    # Savepoints and the end -------------------------------------------------------------------------------------

    @contextlib.contextmanager
    def _statement(self) -> Iterator[None]:
        """After an error, only a return to a savepoint or the end is possible."""
        if self._broken:
            raise failed_transaction()
        try:
            yield
        except BaseException:
            self._broken = True
            raise

    def savepoint(self, name: str) -> None:
        """SAVEPOINT."""
        self._savepoints.add(name, len(self.journal))

    def release(self, name: str) -> None:
        """RELEASE SAVEPOINT."""
        self._savepoints.release(name)

    def rollback_to(self, name: str) -> None:
        """ROLLBACK TO SAVEPOINT: undoes what came after it; the savepoint stays."""
        length = self._savepoints.return_to(name)
        if not self._broken and length == len(self.journal):
            return
        del self.journal[length:]
        self._broken = False
        if self._connection is not None and self._connection.is_lost:
            self._store.release(self._connection)
            self._connection = None
        if self._connection is None:
            self._keyed.renew(self.journal)
            return
        with self._statement():
            self._begin_again()

    def _replay(self, entry: Entry) -> None:
        match entry:
            case Changed() | ChangedRow():
                table, deleted, inserted = entry.table, entry.deleted, entry.inserted
                tools.apply_by_value(self.connection, table, deleted, inserted)
            case Deferred() | Settled():
                pass
            case _:
                self._own.apply(self.connection, entry)

    def let_go(self, lsn: int) -> bool:
        """Lets the next writer begin before this transaction's record is on disk, if its place in the log is fixed and
        it has only changed rows by key."""
        if self._connection is not None:
            return False
        self._lsn = lsn
        self._store.unsettled.add(lsn, [entry for entry in self.journal if isinstance(entry, RowsChanged)])
        self.locks.release_rows()
        return True

    def commit(self, lsn: int | None, then: Callable[[], None] | None = None) -> None:
        """Commits at an LSN, which the same DuckDB transaction records, and releases the locks on rows. ``lsn`` None:
        it has only changed temporary tables, and was not logged."""
        if self._broken:
            raise failed_transaction()
        if self._connection is None:
            if lsn is not None:
                self._store.backlog.add(lsn, self._net)
            self._end(lsn, then=then)
            return
        try:
            if lsn is not None:
                self._store.backlog.apply()  # earlier commits come first
                if self.catalog is None:  # otherwise the changes of the catalog are stored with their LSN
                    note = f"INSERT INTO {STORE}.main.__millstream VALUES ('applied_lsn', '{lsn}')"
                    self._connection.execute(note)
            self._connection.commit()
        except BaseException:
            self.rollback()
            raise
        self._end(lsn, then=then, committed=True)

    def rollback(self, error: SqlError | None = None) -> None:
        """Undoes all changes and releases the locks on rows; harmless after the end. With an ``error``, transactions
        that have seen its changes since its commit began fail as well."""
        if self._open:
            if self._connection is not None:
                self._connection.drop_rows()
                self._connection.rollback()
            self._end(None, error)

    def _end(
        self,
        lsn: int | None,
        error: SqlError | None = None,
        then: Callable[[], None] | None = None,
        committed: bool = False,
    ) -> None:
        self._open = False
        if self._connection is not None and self._fixed is None:  # otherwise its snapshot returns the connection
            self._store.release(self._connection)
        if committed or lsn is not None:
            self._ended(self, lsn)
        try:
            if then is not None:
                then()
        finally:
            if self._lsn is not None:
                self._store.unsettled.settle(self._lsn, error)
            if self._is_alone:
                self.locks.release_all()
            else:
                self.locks.release_rows()

    def interrupt(self) -> None:
        """Makes the running statement raise 57014."""
        if self._connection is not None:
            self._connection.interrupt()


def _draws(statement: Modification) -> bool:
    """Whether a statement calls functions with an effect, which must not be called twice."""
    return any(calls_of(root) for root in roots(statement))
