"""Prepared point reads of continuous views and tables: from key to DataRow without a thread.

Owns: which plans are point reads, and the encoded rows of the tables that they read, a few hundred rows at a time as
they are asked for. The index is the executor's (``executor.rows.point_reads``). On the loop's thread, but for ``find``.
"""

from __future__ import annotations

from concurrent.futures import Executor
from typing import TYPE_CHECKING, Final, NamedTuple

import pyarrow as pa
from msgspec import Struct

from catalog.values.types import SqlType
from executor.key_access.point_sources import point_reader
from executor.rows.point_reads import Picked, PointReader
from executor.rows.value_rows import ValueRow
from executor.traces.index import Row
from planner.algebra.nodes import Value
from planner.statements.statement import Query
from protocol.datarow import encode_rows
from protocol.encoder import command_complete
from server.plans.planning import Bounded, Plan

if TYPE_CHECKING:
    from executor.database.database import Database
    from executor.sql.session import DatabaseSession

#: Rows encoded together (a power of two): one row alone would cost nearly as much.
_SHIFT: Final = 8
_PLANS: Final = 1024
#: Relations and forms whose encoded tables are kept, and tables of each: the indexed result, the patch to it, the one
#: before; and of those with less than a part, so many.
_FORMS: Final = 64
_TABLES: Final = 3
_SMALL_TABLES: Final = 1024
#: Bytes from which on a row by itself is encoded each time: what is kept is counted, not weighed.
_LONG: Final = 16 << 10
#: After so many parts of a table were encoded one by one, the whole table is, on another thread, if it is no larger.
_PATIENCE: Final = 16
_WHOLE: Final = 256 << 20
_ONE: Final = command_complete("SELECT 1")
_NONE: Final = command_complete("SELECT 0")


class Found(NamedTuple):
    """The row that a point read has found."""

    reader: PointReader
    row: Row


class Form(Struct, frozen=True):
    """What a relation's rows are encoded as."""

    picked: Picked
    types: tuple[SqlType, ...]
    formats: tuple[int, ...]
    time_zone: str

    def encode(self, table: pa.Table) -> tuple[bytes, memoryview]:
        """A table's rows, and where each begins; a memoryview gives a number several times faster than numpy."""
        rows = encode_rows(self.picked.of(table), self.types, self.formats, self.time_zone)
        return rows.data, rows.offsets.data


class EncodedTable:
    """A table's rows as DataRows, encoded where they are asked for."""

    def __init__(self, table: pa.Table, form: Form, threads: Executor) -> None:
        self.table = table
        self._form = form
        self._threads = threads
        self._whole: tuple[bytes, memoryview] | None = None
        self._parts: dict[int, tuple[bytes, memoryview]] = {}

    def row(self, index: int) -> bytes:
        """One row's DataRow."""
        if self._whole is not None:
            data, offsets = self._whole
            return data[offsets[index] : offsets[index + 1]]
        number, place = index >> _SHIFT, index & ((1 << _SHIFT) - 1)
        part = self._parts.get(number)
        if part is None:
            part = self._parts[number] = self._form.encode(self.table.slice(number << _SHIFT, 1 << _SHIFT))
            if len(self._parts) == _PATIENCE and self.table.nbytes <= _WHOLE and not self._form.picked.is_written:
                self._threads.submit(self._encode_whole)
        data, offsets = part
        return data[offsets[place] : offsets[place + 1]]

    def _encode_whole(self) -> None:
        self._whole = self._form.encode(self.table)


class Rows:
    """A relation's rows in one form, for all sessions: of the tables that were asked for last."""

    def __init__(self, form: Form, threads: Executor) -> None:
        self._form = form
        self._threads = threads
        self._tables: list[EncodedTable] = []
        self._small: Bounded[EncodedTable] = Bounded(_SMALL_TABLES)
        self._values: Bounded[tuple[ValueRow, bytes]] = Bounded(_SMALL_TABLES)

    def answer(self, row: Row) -> bytes:
        """DataRow and CommandComplete of a row."""
        place = row.place
        if place is None:
            return _NONE
        if isinstance(row, ValueRow):
            return self._of_values(row) + _ONE
        table, tables = row.table, self._tables
        if not tables or tables[-1].table is not table:
            if table.num_rows < 1 << _SHIFT:
                return self._of_small(table).row(place) + _ONE
            known = next((item for item in tables if item.table is table), None)
            if known is None:
                known = EncodedTable(table, self._form, self._threads)
            tables[:] = [*(item for item in tables if item is not known), known][-_TABLES:]
        return tables[-1].row(place) + _ONE

    def _of_values(self, row: ValueRow) -> bytes:
        """A row that is not in columns yet."""
        known = self._values.get(id(row))
        if known is None or known[0] is not row:
            known = row, bytes(self._form.encode(row.select(self._form.picked.read))[0])
            if len(known[1]) < _LONG:
                self._values.put(id(row), known)
        return known[1]

    def _of_small(self, table: pa.Table) -> EncodedTable:
        """A table of a few rows, of which there may be many."""
        known = self._small.get(id(table))
        if known is None or known.table is not table:
            known = EncodedTable(table, self._form, self._threads)
            if table.num_rows > 1 or table.nbytes < _LONG:
                self._small.put(id(table), known)
        return known


class Points:
    """The point reads among the plans, and what they have encoded."""

    def __init__(self, threads: Executor) -> None:
        self._threads = threads
        self._readers: Bounded[tuple[PointReader | None]] = Bounded(_PLANS)
        self._rows: Bounded[Rows] = Bounded(_FORMS)

    def known(self, plan: Plan) -> PointReader | None:
        """The reader of a plan that ``find`` has recognised."""
        found = self._readers.get(plan.serial)
        return None if found is None else found[0]

    def find(self, database: Database, plan: Plan) -> PointReader | None:
        """The reader of a plan, or None when it is no point read. In a worker thread."""
        found = self._readers.get(plan.serial)
        if found is None:
            reader = None
            if plan.repeatable and isinstance(plan.statement, Query) and len(plan.reads) == 1:
                core, indexes, keys = database.core, database.indexes, database.table_keys
                reader = point_reader(core, indexes, keys, plan.statement, plan.catalog)
            found = (reader,)
            self._readers.put(plan.serial, found)
        return found[0]

    def read(self, db: DatabaseSession, plan: Plan, values: tuple[Value, ...]) -> Found | None:
        """The committed row of a plan that is a point read; None when it is none, or must go the ordinary way. In a
        worker thread."""
        reader = self.find(db.database, plan)
        row = None if reader is None or not db.reads_committed else reader.read(values)
        if reader is None or row is None:
            return None
        db.begins_reading(plan.reads)
        return Found(reader, row)

    def rows(self, reader: PointReader, formats: tuple[int, ...], time_zone: str) -> Rows:
        """The encoded rows of a reader's relation."""
        types = tuple(item.type for item in reader.outputs)
        key = (reader.relation, reader.picked, types, formats, time_zone)
        known = self._rows.get(key)
        if known is None:
            known = Rows(Form(reader.picked, types, formats, time_zone), self._threads)
            self._rows.put(key, known)
        return known
