"""The table writer's transaction: statements, savepoints, net changes.

Owns: what INSERT, UPDATE, DELETE, TRUNCATE, COPY and DDL do within one DuckDB transaction, and the journal of it.
DuckDB has no savepoints and ends a transaction at any error, so going back to a savepoint is a rollback and the
journal's replay up to it, under the same writer's lock (architecture, section 4). A statement is checked whole before
anything of it is applied.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass

import pyarrow as pa

from catalog.codec import encode
from catalog.errors import SqlError, failed_transaction, unsupported
from catalog.objects import ForeignKey, Stream, Table, UniqueKey, is_temporary
from executor.embedded import changes as tools
from executor.embedded.altering import Step, Verifier, apply_step
from executor.embedded.changes import Change, Changes
from executor.embedded.connection import NOTHING, Bindings, Connection, Evaluate, Parameters, plainly
from executor.embedded.constraints import Checker
from executor.embedded.deferral import Deferred, Settled, Timing, require_settled, settle, waiting
from executor.embedded.dialect import STORE, type_text
from executor.embedded.effects import Arguments, Effects, Modification, OverRows, parts_of, typed
from planner.algebra import Relation
from planner.expression import Column, Scalar
from planner.statements import Generated


@dataclass(frozen=True, slots=True)
class Created:
    """A table was created."""

    table: Table


@dataclass(frozen=True, slots=True)
class Dropped:
    """A table was dropped."""

    table: Table


@dataclass(frozen=True, slots=True)
class Changed:
    """Rows of a table went and came."""

    table: Table
    deleted: pa.Table
    inserted: pa.Table


@dataclass(frozen=True, slots=True)
class Defined:
    """A table has another definition over the same columns: of constraints, defaults or its name."""

    table: Table


@dataclass(frozen=True, slots=True)
class Altered:
    """A table's columns were changed in place."""

    table: Table
    steps: tuple[Step, ...]


@dataclass(frozen=True, slots=True)
class Rebuilt:
    """A table got other columns, and all of its rows anew."""

    table: Table
    rows: pa.Table


Entry = Created | Dropped | Changed | Defined | Altered | Rebuilt | Deferred | Settled


class WriteTransaction:
    """One transaction that may change tables. Used by one thread at a time; ``interrupt`` by any."""

    def __init__(
        self,
        connection: Connection,
        definitions: Mapping[int, Table],
        ended: Callable[[WriteTransaction, int | None], None],
        relations: OverRows,
    ) -> None:
        self.connection = connection
        #: The tables as this transaction sees them.
        self.definitions = dict(definitions)
        #: The catalog that it stores, if any.
        self.catalog: str | None = None
        #: Tables whose record holds all of their rows (known after ``changes``).
        self.rebuilt: set[int] = set()
        #: Which foreign keys wait for the commit.
        self.timing = Timing()
        self._start = dict(definitions)
        self._ended = ended
        self._journal: list[Entry] = []
        self._savepoints: list[tuple[str, int]] = []
        self._broken = False
        self._open = True
        self._effects = Effects(connection, relations)
        connection.begin()

    # Statements -------------------------------------------------------------------------------------------------

    def query(
        self, relation: Relation, bindings: Bindings, parameters: Parameters = (), timezone: str = "UTC"
    ) -> pa.Table:
        """A relation's rows; the transaction sees its own changes."""
        with self._statement():
            return self.connection.query(relation, bindings, parameters, timezone)

    def change(
        self,
        statement: Modification,
        parameters: Parameters = (),
        bindings: Bindings = NOTHING,
        timezone: str = "UTC",
        evaluate: Evaluate = plainly,
    ) -> Changes:
        """INSERT, UPDATE, DELETE, MERGE, or several in WITH. An error leaves nothing of the statement."""
        with self._statement():
            for part in parts_of(statement):
                self._require_current(part.target)
            effect = self._effects.of(statement, Arguments(parameters, bindings, timezone, evaluate))
            self._apply(dict(effect.changes))
            return Changes(effect.count, effect.returned)

    def append(
        self,
        table: Table,
        rows: pa.Table,
        checks: tuple[tuple[str, Scalar], ...] = (),
        row: tuple[Column, ...] = (),
        generated: Generated = (),
    ) -> Changes:
        """COPY: rows in the table's column order. ``checks`` and ``generated`` are over ``row``, as an INSERT's."""
        with self._statement():
            self._require_current(table)
            rows = self._effects.complete(table, generated, row, rows, Arguments())
            self._effects.check(table, checks, row, rows, Arguments())
            self._apply({table.oid: tools.insertion(table, rows)})
            return Changes(rows.num_rows)

    def truncate(self, targets: Iterable[Table]) -> Changes:
        """TRUNCATE: all rows go, unless another table refers to them (0A000, as PostgreSQL says it)."""
        targets = list(targets)
        oids = {table.oid for table in targets}
        with self._statement():
            for table in targets:
                self._refuse_referenced(table, oids)
                self.require_settled(table, "TRUNCATE")
                rows = self.connection.table(f"SELECT * FROM {tools.stored(table)}", tools.schema_of(table))
                self.connection.rows(f"DELETE FROM {tools.stored(table)}")
                self._journal.append(Changed(table, rows, rows.slice(0, 0)))
            return Changes(0)

    def _refuse_referenced(self, table: Table, together: set[int]) -> None:
        for other in self.definitions.values():
            if other.oid not in together and any(key.target == table.oid for key in other.foreign_keys):
                detail = f'Table "{other.name}" references "{table.name}".'
                hint = f'Truncate table "{other.name}" at the same time, or use TRUNCATE ... CASCADE.'
                raise SqlError("0A000", "cannot truncate a table referenced in a foreign key constraint", detail, hint)

    # Definitions ------------------------------------------------------------------------------------------------

    def create(self, table: Table) -> None:
        """CREATE TABLE."""
        with self._statement():
            self._create(table)
            self._journal.append(Created(table))

    def drop(self, oid: int) -> None:
        """DROP TABLE; what refers to it was dropped before."""
        with self._statement():
            table = self.definitions[oid]
            self._drop(table)
            self._journal.append(Dropped(table))

    def define(self, table: Table) -> None:
        """Another definition of a table over the same columns; its rows were checked against it."""
        with self._statement():
            self._define(table)
            self._journal.append(Defined(table))

    def _define(self, table: Table) -> None:
        definition = json.dumps(encode(table)).replace("'", "''")
        self.connection.execute(f"UPDATE {STORE}.main.__tables SET definition = '{definition}' WHERE oid = {table.oid}")
        self.definitions[table.oid] = table

    def alter(self, table: Table, steps: tuple[Step, ...]) -> None:
        """Columns dropped, renamed or added in place."""
        with self._statement():
            self._alter(table, steps)
            self._journal.append(Altered(table, steps))

    def _alter(self, table: Table, steps: tuple[Step, ...]) -> None:
        _require_storable(table)
        for step in steps:
            apply_step(self.connection, table, step)
        self._define(table)

    def rebuild(self, table: Table, rows: pa.Table) -> None:
        """Another definition of a table, and all of its rows."""
        with self._statement():
            rows = typed(table, rows)
            self._rebuild(table, rows)
            self._journal.append(Rebuilt(table, rows))

    def _rebuild(self, table: Table, rows: pa.Table) -> None:
        self._drop(self.definitions[table.oid])
        self._create(table)
        tools.apply_by_value(self.connection, table, rows.slice(0, 0), rows)

    def verify(self, before: Table, table: Table, rewritten: bool) -> None:
        """Checks the stored rows against what is new in a definition. Raises 23502, 23503 and 23505."""
        with self._statement():
            Verifier(self.connection, self.definitions).verify(before, table, rewritten)

    def _create(self, table: Table) -> None:
        _require_storable(table)
        columns = ", ".join(f"{tools.quoted(column.name)} {type_text(column.type)}" for column in table.columns)
        self.connection.execute(f"CREATE TABLE {tools.stored(table)}({columns})")
        definition = json.dumps(encode(table)).replace("'", "''")
        self.connection.execute(f"INSERT INTO {STORE}.main.__tables VALUES ({table.oid}, '{definition}')")
        self.definitions[table.oid] = table

    def _drop(self, table: Table) -> None:
        self.connection.execute(f"DROP TABLE {tools.stored(table)}")
        self.connection.execute(f"DELETE FROM {STORE}.main.__tables WHERE oid = {table.oid}")
        del self.definitions[table.oid]

    def save_catalog(self, document: str) -> None:
        """Stores the server's catalog with the transaction."""
        with self._statement():
            quoted = document.replace("'", "''")
            self.connection.execute(f"DELETE FROM {STORE}.main.__millstream WHERE key = 'catalog'")
            self.connection.execute(f"INSERT INTO {STORE}.main.__millstream VALUES ('catalog', '{quoted}')")
            self.catalog = document

    # Changes ----------------------------------------------------------------------------------------------------

    def _require_current(self, table: Table | Stream) -> None:
        """Raises 40001 where a statement was planned against a definition that another transaction has changed."""
        known = self.definitions.get(table.oid)
        if known is not table and known != table:
            raise SqlError("40001", "could not serialize access due to concurrent update")

    def _apply(self, statement: dict[int, Change]) -> None:
        """Checks one statement's changes and applies them with what foreign keys add."""
        checker = Checker(self.connection, self.definitions, statement, self.timing)
        checker.check()
        self._journal += checker.deferred
        for oid, change in checker.changes.items():
            table = self.definitions[oid]
            names = tools.bound(self.connection, table, change)
            tools.apply_by_id(self.connection, table, change)
            self.connection.unbind(names)
            self._journal.append(Changed(table, change.deleted, change.inserted))

    def settle(self, everything: bool = False) -> None:
        """Checks what waits of constraints that no longer do, or before a commit of all. Raises 23503 and 23505."""
        items = waiting(self._journal)
        if not everything:
            items = [item for item in items if not self._still_waits(item)]
        if items:
            with self._statement():
                settle(self.connection, self.definitions, items)
            self._journal.append(Settled(frozenset((item.child, item.name) for item in items)))

    def _still_waits(self, item: Deferred) -> bool:
        table = self.definitions.get(item.child)
        if table is None:
            return False
        constraints: list[ForeignKey | UniqueKey] = [*table.foreign_keys, *table.keys]
        return any(key.name == item.name and self.timing.waits(table, key) for key in constraints)

    def require_settled(self, table: Table, command: str) -> None:
        """Raises 55006 where a table is to be changed of which something waits."""
        require_settled(self._journal, table, command)

    def changes(self) -> list[tuple[int, pa.Table, pa.Table]]:
        """(table's oid, inserted, deleted): the net changes of durable tables that still exist, for the log record.

        What one statement did stands as it is, rows that it wrote without changing them included.
        """
        gathered: dict[int, tuple[list[pa.Table], list[pa.Table]]] = {}
        self.rebuilt.clear()
        for entry in self._journal:
            match entry:
                case Created() | Dropped() | Changed() | Defined() | Altered() | Rebuilt() if is_temporary(entry.table):
                    pass
                case Changed():
                    inserted, deleted = gathered.setdefault(entry.table.oid, ([], []))
                    inserted.append(entry.inserted)
                    deleted.append(entry.deleted)
                case Dropped():
                    gathered.pop(entry.table.oid, None)
                    self.rebuilt.discard(entry.table.oid)
                case Rebuilt():
                    self.rebuilt.add(entry.table.oid)
                case Altered() if entry.table.oid in gathered:  # by value, its older changes mean nothing any more
                    self.rebuilt.add(entry.table.oid)
                case Created() | Defined() | Altered() | Deferred() | Settled():
                    pass
        with self._statement():
            net = [(oid, *self._net(oid, *both)) for oid, both in gathered.items() if oid not in self.rebuilt]
            found = sorted(net + [self._whole(oid) for oid in self.rebuilt], key=lambda change: change[0])
        return [change for change in found if change[1].num_rows or change[2].num_rows]

    @property
    def has_temporary(self) -> bool:
        """Whether temporary tables were changed."""
        entries = (entry for entry in self._journal if not isinstance(entry, Deferred | Settled))
        return any(is_temporary(entry.table) for entry in entries)

    def has_changed(self, table: Table) -> bool:
        """Whether rows of a table were changed."""
        return any(isinstance(entry, Changed) and entry.table.oid == table.oid for entry in self._journal)

    def _whole(self, oid: int) -> tuple[int, pa.Table, pa.Table]:
        """All rows of a table that is logged anew."""
        table = self.definitions[oid]
        rows = self.connection.table(f"SELECT * FROM {tools.stored(table)}", tools.schema_of(table))
        return oid, rows, rows.slice(0, 0)

    def _net(self, oid: int, inserted: list[pa.Table], deleted: list[pa.Table]) -> tuple[pa.Table, pa.Table]:
        table = self.definitions[oid]
        if len(inserted) == 1:
            return inserted[0], deleted[0]
        return tools.net(self.connection, table, pa.concat_tables(deleted), pa.concat_tables(inserted))

    def apply(self, changes: Iterable[tuple[int, pa.Table, pa.Table]]) -> None:
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
        """SAVEPOINT; one of the same name hides the earlier one."""
        self._savepoints.append((name, len(self._journal)))

    def _find(self, name: str) -> int:
        for place in range(len(self._savepoints) - 1, -1, -1):
            if self._savepoints[place][0] == name:
                return place
        raise SqlError("3B001", f'savepoint "{name}" does not exist')

    def release(self, name: str) -> None:
        """RELEASE SAVEPOINT: forgets it and the later ones."""
        del self._savepoints[self._find(name) :]

    def rollback_to(self, name: str) -> None:
        """ROLLBACK TO SAVEPOINT: undoes what came after it; the savepoint stays."""
        place = self._find(name)
        length = self._savepoints[place][1]
        del self._savepoints[place + 1 :]
        if not self._broken and length == len(self._journal):
            return
        del self._journal[length:]
        self.connection.rollback()
        self.connection.begin()
        self.definitions = dict(self._start)
        self._broken = False
        with self._statement():
            for entry in self._journal:
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
            case Changed(table=table, deleted=deleted, inserted=inserted):
                tools.apply_by_value(self.connection, table, deleted, inserted)
            case Deferred() | Settled():
                pass

    def commit(self, lsn: int) -> None:
        """Commits with ``applied_lsn`` = lsn in the same transaction, and lets the next writer in."""
        if self._broken:
            raise failed_transaction()
        try:
            self.connection.execute(f"UPDATE {STORE}.main.__millstream SET value = '{lsn}' WHERE key = 'applied_lsn'")
            self.connection.commit()
        except BaseException:
            self.rollback()
            raise
        self._end(lsn)

    def rollback(self) -> None:
        """Undoes everything and lets the next writer in; harmless after the end."""
        if self._open:
            self.connection.rollback()
            self._end(None)

    def _end(self, lsn: int | None) -> None:
        self._open = False
        self._ended(self, lsn)

    def interrupt(self) -> None:
        """Makes the running statement raise 57014."""
        self.connection.interrupt()


def _require_storable(table: Table) -> None:
    lowered = [column.name.lower() for column in table.columns]
    if not table.columns:
        raise unsupported("a table without columns")
    if len(set(lowered)) < len(lowered) or "rowid" in lowered:
        raise unsupported('columns that differ only in case, or one called "rowid"', "choose other names")
