"""The table writer's transaction: statements, savepoints, net changes.

Owns: what INSERT, UPDATE, DELETE, TRUNCATE, COPY and DDL do within one DuckDB transaction, and the journal of it. As
long as it has changed no more than rows by key (``keyed``) there is no such transaction: the journal alone is
committed, and DuckDB gets the rows together with others' (``backlog``). DuckDB has no savepoints and ends a transaction
at any error, so going back to a savepoint is a rollback and the journal's replay up to it, under the same writer's lock
(architecture, section 4). A statement is checked whole before anything of it is applied.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Final

import pyarrow as pa

from catalog.catalog import Catalog
from catalog.errors import SqlError, failed_transaction
from catalog.objects import Stream, Table, is_temporary
from executor.commit.records import TableChange, TableValues
from executor.embedded.connection import NOTHING, Bindings, Connection, Evaluate, Parameters, plainly
from executor.embedded.printing.dialect import STORE
from executor.embedded.tables import changes as tools
from executor.embedded.tables import documents
from executor.embedded.tables.altering import Step, Verifier, apply_step
from executor.embedded.tables.backlog import NetRows, net_of
from executor.embedded.tables.changes import Change, Changes
from executor.embedded.tables.constraints import Checker, refuse_referenced
from executor.embedded.tables.deferral import Deferred, Settled, Timing, require_settled, settle, waiting
from executor.embedded.tables.defining import create_table, define_table, drop_table, require_storable
from executor.embedded.tables.documents import Documents
from executor.embedded.tables.effects import Arguments, Effects, Modification, OverRows, parts_of, typed
from executor.embedded.tables.following import Following
from executor.embedded.tables.journal import (
    Altered,
    Changed,
    ChangedRow,
    Created,
    Defined,
    Dropped,
    Entry,
    Rebuilt,
    RowsChanged,
    gathered,
)
from executor.embedded.tables.keyed import KeyedWriter, NotByKey, Store
from executor.embedded.tables.row_plans import RowPlan
from executor.savepoints import Savepoints
from executor.tables.shapes import Columns, Key
from executor.trace.index import Row
from planner.algebra import Relation
from planner.expression import Column, Scalar
from planner.statements import Generated, Insert

_NO_CATALOG: Final = Catalog()


class WriteTransaction:
    """One transaction that may change tables. Used by one thread at a time; ``interrupt`` by any."""

    def __init__(
        self,
        store: Store,
        definitions: Mapping[int, Table],
        ended: Callable[[WriteTransaction, int | None], None],
        relations: OverRows,
        counts: dict[int, tools.Counts],
    ) -> None:
        self._store = store
        self._connection: Connection | None = None
        #: The tables as this transaction sees them.
        self.definitions = dict(definitions)
        #: The catalog that it stores, if any.
        self.catalog: Documents | None = None
        #: Tables whose record holds all of their rows (known after ``changes``).
        self.rebuilt: set[int] = set()
        #: Which foreign keys wait for the commit.
        self.timing = Timing()
        self._start = dict(definitions)
        self._ended = ended
        #: What it has done so far.
        self.journal: list[Entry] = []
        self._savepoints: Savepoints[int] = Savepoints()  # the journal's length at each
        self._broken = False
        self._open = True
        self._relations = relations
        self._counts = counts
        self._keyed = KeyedWriter(store, relations)
        self._net: list[NetRows] = []
        #: What it stands on that the disk does not have yet: all up to an LSN.
        self._before, self.chain = store.unsettled.last, store.unsettled.chain
        #: Its LSN, where the next writer came before the disk had it.
        self._lsn: int | None = None

    @property
    def is_over(self) -> bool:
        """Whether it was committed or undone."""
        return not self._open

    @property
    def is_open(self) -> bool:
        """Whether it has a transaction of DuckDB's; one that has changed no more than rows by key has none."""
        return self._connection is not None

    @property
    def is_by_key(self) -> bool:
        """Whether it has changed no more than rows by key, and can be committed."""
        return self._connection is None and not self._broken

    @property
    def is_alone(self) -> bool:
        """Whether all that it stands on is durable and visible."""
        return self._store.unsettled.is_over(self._before, self.chain)

    @property
    def connection(self) -> Connection:
        """Where it sees the tables, with what it has done itself."""
        if self._connection is None:
            self.await_others()
            self._connection = self._store.connect()
            self._connection.begin()
            for entry in self.journal:
                self._replay(entry)
        return self._connection

    @property
    def _effects(self) -> Effects:
        return Effects(self.connection.query, self._relations, self.connection)

    def await_others(self) -> None:
        """Returns when all that it stands on is durable and visible: nothing is answered before. Raises why it never
        will be."""
        self._store.unsettled.wait(self._before, self.chain)

    # Statements -------------------------------------------------------------------------------------------------

    def query(self, relation: Relation, bindings: Bindings, parameters: Parameters, timezone: str) -> pa.Table:
        """A relation's rows; the transaction sees its own changes."""
        with self._statement():
            found = None
            if not self.is_open:
                found = self._keyed.query(relation, bindings, parameters, timezone, self.definitions)
            return self.connection.query(relation, bindings, parameters, timezone) if found is None else found

    def change(
        self,
        statement: Modification,
        parameters: Parameters,
        bindings: Bindings,
        timezone: str,
        evaluate: Evaluate = plainly,
        catalog: Catalog = _NO_CATALOG,
    ) -> Changes:
        """INSERT, UPDATE, DELETE, MERGE, or several in WITH. An error leaves nothing of the statement. Rows of other
        tables that follow by foreign keys are checked by what their tables' checks mean in ``catalog``."""
        with self._statement():
            for part in parts_of(statement):
                self._require_current(part.target)
            arguments = Arguments(parameters, bindings, timezone, evaluate)
            effect = None if self.is_open else self._keyed.effect(statement, arguments, self.definitions)
            if effect is not None and self._keyed.takes(effect, self.definitions):
                self._note(effect.changes)
                return Changes(effect.count, effect.returned)
            if effect is None or not isinstance(statement, Insert):  # of the others, row ids are unknown
                effect = self._effects.of(statement, arguments)
            self._apply(dict(effect.changes), Following(self._effects, arguments, catalog))
            return Changes(effect.count, effect.returned)

    def change_row(self, plan: RowPlan, parameters: Parameters, timezone: str) -> None:
        """A change of one row that takes no time. Raises NotByKey, or what a value raises, where it was not made."""
        change = plan.change(self._keyed.find_at_once, parameters, timezone)
        self._take(change, change.old is not None and change.new is not None)

    def find_row(self, table: Table, columns: Columns, key: Key) -> Row | None:
        """The row with a key as the transaction sees it; None where that takes time."""
        try:
            return self._keyed.find_at_once(table, columns, key) if self.is_by_key and self.is_alone else None
        except NotByKey:
            return None

    def append(
        self,
        table: Table,
        rows: pa.Table,
        timezone: str,
        checks: tuple[tuple[str, Scalar], ...] = (),
        row: tuple[Column, ...] = (),
        generated: Generated = (),
    ) -> Changes:
        """COPY: rows in the table's column order. ``checks`` and ``generated`` are over ``row``, as an INSERT's."""
        with self._statement():
            self._require_current(table)
            arguments = Arguments((), NOTHING, timezone)
            rows = self._effects.complete(table, generated, row, rows, arguments)
            self._effects.check(table, checks, row, rows, arguments)
            self._apply({table.oid: tools.insertion(table, rows)})
            return Changes(rows.num_rows)

    def truncate(self, targets: Iterable[Table]) -> Changes:
        """TRUNCATE: all rows go, unless another table refers to them (0A000, as PostgreSQL says it)."""
        targets = list(targets)
        oids = {table.oid for table in targets}
        with self._statement():
            for table in targets:
                refuse_referenced(self.definitions, table, oids)
                self.require_settled(table, "TRUNCATE")
                rows = tools.rows_of(self.connection, table)
                self.connection.rows(f"DELETE FROM {tools.stored(table)}")
                self.journal.append(Changed(table, rows, rows.slice(0, 0)))
            return Changes(0)

    # Definitions ------------------------------------------------------------------------------------------------

    def create(self, table: Table) -> None:
        """CREATE TABLE."""
        with self._statement():
            self._create(table)
            self.journal.append(Created(table))

    def drop(self, oid: int) -> None:
        """DROP TABLE; what refers to it was dropped before."""
        with self._statement():
            table = self.definitions[oid]
            self._drop(table)
            self.journal.append(Dropped(table))

    def define(self, table: Table) -> None:
        """Another definition of a table over the same columns; its rows were checked against it."""
        with self._statement():
            self._define(table)
            self.journal.append(Defined(table))

    def _define(self, table: Table) -> None:
        define_table(self.connection, table)
        self.definitions[table.oid] = table

    def alter(self, table: Table, steps: tuple[Step, ...]) -> None:
        """Columns dropped, renamed or added in place."""
        with self._statement():
            self._alter(table, steps)
            self.journal.append(Altered(table, steps))

    def _alter(self, table: Table, steps: tuple[Step, ...]) -> None:
        require_storable(table)
        for step in steps:
            apply_step(self.connection, table, step)
        self._define(table)

    def rebuild(self, table: Table, rows: pa.Table) -> None:
        """Another definition of a table, and all of its rows."""
        with self._statement():
            rows = typed(table, rows)
            self._rebuild(table, rows)
            self.journal.append(Rebuilt(table, rows))

    def _rebuild(self, table: Table, rows: pa.Table) -> None:
        self._drop(self.definitions[table.oid])
        self._create(table)
        tools.apply_by_value(self.connection, table, rows.slice(0, 0), rows)

    def verify(self, before: Table, table: Table, rewritten: bool) -> None:
        """Checks the stored rows against what is new in a definition. Raises 23502, 23503 and 23505."""
        with self._statement():
            Verifier(self.connection, self.definitions).verify(before, table, rewritten)

    def _create(self, table: Table) -> None:
        create_table(self.connection, table)
        self.definitions[table.oid] = table

    def _drop(self, table: Table) -> None:
        drop_table(self.connection, table)
        del self.definitions[table.oid]

    def save_catalog(self, lsn: int, changes: Sequence[str], whole: Callable[[], str]) -> None:
        """Stores changes of the server's catalog, or sometimes the ``whole``, with the transaction, which is at an
        LSN."""
        with self._statement():
            self.catalog = documents.save(self.connection, self._store.catalog, lsn, changes, whole)

    # Changes ----------------------------------------------------------------------------------------------------

    def _require_current(self, table: Table | Stream) -> None:
        """Raises 40001 where a statement was planned against a definition that another transaction has changed."""
        known = self.definitions.get(table.oid)
        if known is not table and known != table:
            raise SqlError("40001", "could not serialize access due to concurrent update")

    def _apply(self, statement: dict[int, Change], following: Following | None = None) -> None:
        """Checks one statement's changes and applies them with what foreign keys add."""
        checker = Checker(self.connection, self.definitions, statement, self.timing, following)
        checker.check()
        self.journal += checker.deferred
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
        """Checks what waits of constraints that no longer do, or before a commit of all. Raises 23503 and 23505."""
        items = waiting(self.journal)
        if not everything:
            items = [item for item in items if not self.timing.holds(self.definitions, item)]
        if items:
            with self._statement():
                settle(self.connection, self.definitions, items)
            self.journal.append(Settled(frozenset((item.child, item.name) for item in items)))

    def require_settled(self, table: Table, command: str) -> None:
        """Raises 55006 where a table is to be changed of which something waits."""
        require_settled(self.journal, table, command)

    def record(self) -> list[TableChange | TableValues]:
        """The net changes of durable tables that still exist, for the log record.

        What one statement did stands as it is, rows that it wrote without changing them included.
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
        entries = (entry for entry in self.journal if not isinstance(entry, Deferred | Settled))
        return any(is_temporary(entry.table) for entry in entries)

    def has_changed(self, table: Table) -> bool:
        """Whether rows of a table were changed."""
        return any(isinstance(entry, RowsChanged) and entry.table.oid == table.oid for entry in self.journal)

    def _whole(self, oid: int) -> tuple[int, pa.Table, pa.Table]:
        """All rows of a table that is logged anew."""
        table = self.definitions[oid]
        rows = tools.rows_of(self.connection, table)
        return oid, rows, rows.slice(0, 0)

    def apply(self, changes: Iterable[tuple[int, pa.Table | None, pa.Table | None]]) -> None:
        """Recovery: a log record's (oid, inserted, deleted), taken as they are."""
        with self._statement():
            for oid, inserted, deleted in changes:
                table = self.definitions[oid]
                tools.apply_by_value(self.connection, table, typed(table, deleted), typed(table, inserted))

    # Savepoints and the end -------------------------------------------------------------------------------------

    @contextlib.contextmanager
    def _statement(self) -> Iterator[None]:
        """After an error nothing but going back to a savepoint, or the end, is possible."""
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
        if self._connection is None:
            self._keyed.renew(self.journal)
            return
        self._connection.rollback()
        self._connection.begin()
        self.definitions = dict(self._start)
        with self._statement():
            for entry in self.journal:
                self._replay(entry)

    def _replay(self, entry: Entry) -> None:
        match entry:
            case Created(table=table):
                self._create(table)
            case Dropped(table=table):
                self._drop(table)
            case Defined(table=table):
                self._define(table)
            case Altered(table=table, steps=steps):
                self._alter(table, steps)
            case Rebuilt(table=table, rows=rows):
                self._rebuild(table, rows)
            case Changed() | ChangedRow():
                table, deleted, inserted = entry.table, entry.deleted, entry.inserted
                tools.apply_by_value(self.connection, table, deleted, inserted)
            case Deferred() | Settled():
                pass

    def let_go(self, lsn: int) -> bool:
        """Its place in the log is fixed: lets the next writer in before the disk has it, where it has changed no more
        than rows by key."""
        if self._connection is not None:
            return False
        self._lsn = lsn
        self._store.unsettled.add(lsn, [entry for entry in self.journal if isinstance(entry, RowsChanged)])
        self._store.unlock()
        return True

    def commit(self, lsn: int, then: Callable[[], None] | None = None) -> None:
        """Commits with ``applied_lsn`` = lsn in the same transaction, and lets the next writer in."""
        if self._broken:
            raise failed_transaction()
        if self._connection is None:
            self._store.backlog.add(lsn, self._net)
            self._end(lsn)
            return
        try:
            if self.catalog is None or self.catalog.lsn != lsn:  # else the changes of the catalog say it
                update = f"UPDATE {STORE}.main.__millstream SET value = '{lsn}' WHERE key = 'applied_lsn'"
                self.connection.execute(update)
            self.connection.commit()
        except BaseException:
            self.rollback()
            raise
        self._end(lsn, then=then)

    def rollback(self, error: SqlError | None = None) -> None:
        """Undoes everything and lets the next writer in; harmless after the end. With ``error`` those fail, too, that
        have seen it since its commit began."""
        if self._open:
            if self._connection is not None:
                self._connection.rollback()
            self._end(None, error)

    def _end(self, lsn: int | None, error: SqlError | None = None, then: Callable[[], None] | None = None) -> None:
        self._open = False
        if self._connection is not None:
            self._store.release(self._connection)
        self._ended(self, lsn)
        try:
            if then is not None:
                then()
        finally:
            if self._lsn is None:
                self._store.unlock()
            else:
                self._store.unsettled.settle(self._lsn, error)

    def interrupt(self) -> None:
        """Makes the running statement raise 57014."""
        if self._connection is not None:
            self._connection.interrupt()
