"""Statements that find rows by key and change them without DuckDB.

``UPDATE t SET n = n + 1 WHERE key = 7`` reads one row in memory (``executor.traces.keyed_rows``) and computes its new
version. Owns: which relations read at most one row of one table by a unique key, the reading of these rows, the effect
of an INSERT, UPDATE or DELETE over them (``effects`` computes it as for other statements), and the check that the new
rows' keys are free and that the rows they refer to exist. Whenever this is uncertain, the statement goes to the engine,
which sees the tables and raises the errors.

The rows are locked. So neither the committed rows nor the changes of other transactions with a fixed place before this
one (``unsettled``) can change any more; the transaction's own changes come on top of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, Protocol

import pyarrow as pa
from msgspec import Struct
from msgspec.structs import replace

from catalog.objects import ForeignKey, Index, Table, UniqueKey, is_temporary
from executor.embedded.connection import Bindings, Connection, Parameters
from executor.printing.nodes import column_name, leaf_name
from executor.rows.point_reads import key_value, split_equalities
from executor.rows.row_shapes import identity_of, keys_of
from executor.rows.table_rows import TableRows
from executor.small import Small, small_of
from executor.tables.backlog import Backlog
from executor.tables.changes import Change
from executor.tables.constraints.unique_keys import key_of
from executor.tables.definitions.catalog_documents import Documents
from executor.tables.journal import Entry, RowsChanged
from executor.tables.statements.effects import Arguments, Effect, Effects, Modification, OverRows
from executor.tables.unsettled import Unsettled
from executor.traces.index import NO_ROW, Row
from executor.traces.keyed_rows import Columns, Key, Overlay, keys_in
from planner.algebra.bound_rows import bound
from planner.algebra.construction import conjunction
from planner.algebra.nodes import ROW_ID, Filter, Project, Relation, Scalar, Scan, Snapshot
from planner.algebra.walk import walk
from planner.lowering.effects import calls_of
from planner.statements.statement import Delete, Insert, Update

_READINGS: Final = 512
#: The most rows of a statement handled here.
_FEW: Final = 64
_FIRST: Final = pa.array([0], pa.int64())


class KeyedTables(Protocol):
    """The store that keeps tables' committed rows by key, and evaluates relations that read no table."""

    def find(self, table: Table) -> TableRows | None:
        """A table's rows, if they are in memory, including all committed changes."""
        ...

    def at_hand(self, table: Table) -> TableRows | None:
        """The rows by key, if they are available at once."""
        ...

    def compute(
        self, relation: Relation, bindings: Mapping[str, pa.Table], parameters: Parameters, time_zone: str
    ) -> pa.Table:
        """A relation's rows over bound leaves."""
        ...


class NotByKey(Exception):
    """The engine must read the tables."""


class ByKey(Struct, frozen=True):
    """The row that a scan finds, as the leaf ``row``: by a key's columns and their values."""

    scan: Scan
    row: Snapshot
    columns: Columns
    values: tuple[Scalar, ...]


class Reading(Struct, frozen=True):
    """A relation over leaves: its bound leaves and possibly a row found by key. ``draws``: it calls functions with an
    effect."""

    original: Relation
    relation: Relation
    small: Small | None
    draws: bool
    by_key: ByKey | None = None


class Readings:
    """How relations are read, each analysed once. Used by the writer's thread only."""

    def __init__(self) -> None:
        self._known: dict[int, tuple[Relation, Reading | None]] = {}

    def get(self, relation: Relation, tables: Mapping[int, Table]) -> Reading:
        """How a relation is read. Raises NotByKey if the engine must read it."""
        known = self._known.get(id(relation))
        if known is None or known[0] is not relation:
            if len(self._known) >= _READINGS:
                self._known.clear()
            known = self._known[id(relation)] = (relation, _reading(relation, tables))
        if known[1] is None:
            raise NotByKey
        return known[1]


def _reading(relation: Relation, tables: Mapping[int, Table]) -> Reading | None:
    scans = [node for node in walk(relation) if isinstance(node, Scan)]
    draws = bool(calls_of(relation))
    if not scans:
        return Reading(relation, relation, small_of(relation), draws)
    projects, below = [], relation
    while isinstance(below, Project):
        projects.append(below)
        below = below.input
    if len(scans) > 1 or not isinstance(below, Filter) or not isinstance(below.input, Scan):
        return None
    scan = below.input
    names = dict(zip(scan.columns, scan.sources, strict=True))
    table = tables.get(scan.oid) if scan.kind == "table" else None
    found, rest = split_equalities(below.predicate, names)
    columns = None if table is None else next((key for key in keys_of(table) if found.keys() >= set(key)), None)
    if columns is None:
        return None
    row = bound(scan.columns)
    others = [conjunct for name, (_, conjunct) in found.items() if name not in columns]
    condition = conjunction([*others, *rest])
    new: Relation = row if condition is None else Filter(row, condition)
    for project in reversed(projects):
        new = replace(project, input=new)
    by_key = ByKey(scan, row, columns, tuple(found[name][0] for name in columns))
    return Reading(relation, new, small_of(new), draws, by_key)


class Store(Protocol):
    """The owner of the transaction."""

    definitions: dict[int, Table]
    #: The LSN committed last, and the LSNs at which tables last changed.
    applied_lsn: int
    changed: dict[int, int]
    backlog: Backlog
    keyed: KeyedTables | None
    readings: Readings
    unsettled: Unsettled

    @property
    def catalog(self) -> Documents:
        """The stored documents of the catalog."""
        ...

    def connect(self) -> Connection:
        """A connection that sees all committed changes."""
        ...

    def release(self, connection: Connection) -> None:
        """Returns a connection."""
        ...


class KeyedWriter:
    """One transaction's reads and changes by key."""

    def __init__(self, store: Store, relations: OverRows) -> None:
        self._tables = store.keyed
        self._readings = store.readings
        self._unsettled = store.unsettled
        self._own: dict[int, Overlay] = {}
        #: The last LSN of a row that was not durable when this transaction read it.
        self.found = 0
        self._effects = Effects(self._ask, relations)
        self._definitions: Mapping[int, Table] = {}

    # Reading ----------------------------------------------------------------------------------------------------

    def query(
        self,
        relation: Relation,
        bindings: Bindings,
        parameters: Parameters,
        time_zone: str,
        tables: Mapping[int, Table],
    ) -> pa.Table | None:
        """A relation's rows; None if the engine must read them."""
        self._definitions = tables
        try:
            return self._ask(relation, bindings, parameters, time_zone)
        except NotByKey:
            return None

    def _ask(self, relation: Relation, bindings: Bindings, parameters: Parameters, time_zone: str) -> pa.Table:
        tables = self._tables
        if tables is None or any(not isinstance(rows, pa.Table) for rows in bindings.values()):
            raise NotByKey
        reading = self._readings.get(relation, self._definitions)
        leaves = {name: rows for name, rows in bindings.items() if isinstance(rows, pa.Table)}
        if reading.by_key is not None:
            row = self._row(reading.by_key, parameters)
            if row is None:
                return _empty(relation)
            leaves = {leaf_name(reading.by_key.row): row}
        few = None if reading.small is None else reading.small.run(leaves, parameters)
        return tables.compute(reading.relation, leaves, parameters, time_zone) if few is None else few

    def _row(self, by_key: ByKey, parameters: Parameters) -> pa.Table | None:
        """The row that a relation reads, as its leaf."""
        table = self._definitions.get(by_key.scan.oid)
        if table is None:
            raise NotByKey
        key = tuple(key_value(item, parameters) for item in by_key.values)
        found = NO_ROW if None in key else self._find(table, by_key.columns, key)
        if found.place is None:
            return None
        row = found.table
        if row.num_rows > 1:
            row = row.slice(found.place, 1).take(_FIRST)  # a copy for the log
        arrays = [_FIRST if name == ROW_ID else row.column(name) for name in by_key.scan.sources]
        return pa.Table.from_arrays(arrays, names=[str(at) for at in range(len(arrays))])

    def _rows_of(self, table: Table) -> TableRows:
        rows = None if self._tables is None or is_temporary(table) else self._tables.find(table)
        if rows is None:
            raise NotByKey
        return rows

    def find_at_once(self, table: Table, columns: Columns, key: Key) -> Row:
        """The row with a key, if all that is needed is in memory. Raises NotByKey otherwise."""
        rows = None if self._tables is None else self._tables.at_hand(table)
        if rows is None:
            raise NotByKey
        return self._find(table, columns, key, rows)

    def _find(self, table: Table, columns: Columns, key: Key, rows: TableRows | None = None) -> Row:
        """The row with a key, as the transaction sees it."""
        own = self._own.get(table.oid)
        row = None if own is None or columns not in own.keys else own.get(columns, key)
        if row is not None:
            return row
        unsettled = self._unsettled.get(table.oid, columns, key)  # settled changes are in the rows first
        if unsettled is not None:
            self.found = max(self.found, unsettled[0])
            return unsettled[1]
        row = (rows or self._rows_of(table)).get(columns, key)
        if row is None:
            raise NotByKey
        return row

    # Changing ---------------------------------------------------------------------------------------------------

    def effect(self, statement: Modification, arguments: Arguments, tables: Mapping[int, Table]) -> Effect | None:
        """A statement's effect, without valid row ids; None if the engine must compute it."""
        self._definitions = tables
        try:
            return self._effects.of(statement, arguments)
        except NotByKey:
            return None

    def suits(self, statement: Modification, tables: Mapping[int, Table]) -> bool:
        """Whether a statement may be computed here. Functions with an effect must not be called a second time by the
        engine."""
        self._definitions = tables
        if self._tables is None:
            return False
        if isinstance(statement, Insert):
            table = statement.target
            is_durable = isinstance(table, Table) and not is_temporary(table) and bool(table.columns)
            return is_durable and statement.conflict is None
        if not isinstance(statement, Update | Delete) or is_temporary(statement.target):
            return False
        try:
            reading = self._readings.get(statement.relation, self._definitions)
            return identity_of(statement.target) is not None and not reading.draws
        except NotByKey:
            return False

    def takes(self, effect: Effect, tables: Mapping[int, Table]) -> bool:
        """Whether all constraints certainly hold after an effect."""
        self._definitions = tables
        try:
            return all(self._takes(tables[oid], change) for oid, change in effect.changes.items())
        except NotByKey:
            return False

    def _takes(self, table: Table, change: Change) -> bool:
        if max(change.inserted.num_rows, change.deleted.num_rows) > _FEW:
            return False
        return (
            all(self._is_free(table, key, change) for key in table.keys)
            and not any(self._may_meet(table, index, change) for index in table.indexes if index.unique)
            and all(self._has_partner(table, reference, change) for reference in table.foreign_keys)
            and not self._is_missed(table, change)
        )

    def _is_free(self, table: Table, key: UniqueKey, change: Change) -> bool:
        if key.deferrable:
            return False
        if not change.inserted.num_rows or change.keeps(key.columns):
            return True
        if key.columns not in keys_of(table):
            return False
        every = keys_in(change.inserted, key.columns)
        keys = [each for each in every if None not in each]
        if key.nulls_alike and len(keys) < len(every):
            return False
        gone = set(keys_in(change.deleted, key.columns))
        taken = (each for each in keys if each not in gone and self._find(table, key.columns, each).place is not None)
        return len(set(keys)) == len(keys) and next(taken, None) is None

    def _may_meet(self, table: Table, index: Index, change: Change) -> bool:
        """Whether a unique index over expressions, or over a part of the rows, must be checked."""
        return change.inserted.num_rows > 0 and not change.keeps(key_of(table, index).uses)

    def _has_partner(self, table: Table, reference: ForeignKey, change: Change) -> bool:
        if reference.deferrable or reference.target == table.oid:
            return False
        if not change.inserted.num_rows or change.keeps(reference.columns):
            return True
        target = self._definitions[reference.target]
        if reference.target_columns not in keys_of(target):
            return False
        every = keys_in(change.inserted, reference.columns)
        keys = [each for each in every if None not in each]
        if reference.full and any(set(each) != {None} for each in every if None in each):
            return False
        return all(self._find(target, reference.target_columns, each).place is not None for each in keys)

    def _is_missed(self, table: Table, change: Change) -> bool:
        """Whether another row may refer to a deleted one."""
        if not change.deleted.num_rows:
            return False
        return any(
            reference.target == table.oid and not change.keeps(reference.target_columns)
            for other in self._definitions.values()
            for reference in other.foreign_keys
        )

    def note(self, entry: RowsChanged) -> None:
        """Records a change of the transaction."""
        own = self._own.get(entry.table.oid)
        if own is None:
            own = self._own[entry.table.oid] = Overlay(keys_of(entry.table))
        own.put(entry)

    def renew(self, journal: Iterable[Entry]) -> None:
        """Replaces the recorded changes, after a rollback."""
        self._own.clear()
        for entry in journal:
            assert isinstance(entry, RowsChanged)
            self.note(entry)


def _empty(relation: Relation) -> pa.Table:
    return pa.schema([(column_name(column), column.type.arrow) for column in relation.columns]).empty_table()
