"""Prepared point reads of large continuous views: from key to DataRow without a thread.

Owns: which plans are point reads, and the encoded rows of the tables that they read, a few hundred rows at a time as
they are asked for. The index is the executor's (``executor.points``). On the loop's thread, but for ``find``.
"""

from __future__ import annotations

from concurrent.futures import Executor
from typing import TYPE_CHECKING, Final

import pyarrow as pa

from executor.points import PointReader, Row, point_reader
from planner.expression import Value
from planner.statements import Query
from protocol.datarow import EncodedRows, encode_rows
from protocol.encoder import command_complete
from server.planning import Bounded, Plan

if TYPE_CHECKING:
    from executor.database import Database

#: Rows encoded together (a power of two): one row alone would cost nearly as much.
_SHIFT: Final = 8
_PLANS: Final = 1024
#: Plans whose encoded tables are kept, and tables of each: the indexed result, the patch to it, and the one before.
_SLOTS: Final = 64
_TABLES: Final = 3
#: After so many parts of a table were encoded one by one, the whole table is, on another thread, if it is no larger.
_PATIENCE: Final = 16
_WHOLE: Final = 256 << 20
_ONE: Final = command_complete("SELECT 1")
_NONE: Final = command_complete("SELECT 0")


class EncodedTable:
    """A table's rows as DataRows, encoded where they are asked for."""

    def __init__(
        self, table: pa.Table, reader: PointReader, formats: tuple[int, ...], time_zone: str, threads: Executor
    ) -> None:
        self.table = table
        self._threads = threads
        self._whole: EncodedRows | None = None
        self._columns = list(reader.columns)
        self._types = [item.type for item in reader.outputs]
        self._formats = formats
        self._time_zone = time_zone
        self._parts: dict[int, EncodedRows] = {}

    def row(self, index: int) -> bytes:
        """One row's DataRow."""
        if self._whole is not None:
            return bytes(self._whole.rows(index, index + 1))
        number, place = index >> _SHIFT, index & ((1 << _SHIFT) - 1)
        part = self._parts.get(number)
        if part is None:
            part = self._parts[number] = self._encode(number << _SHIFT, 1 << _SHIFT)
            if len(self._parts) == _PATIENCE and self.table.nbytes <= _WHOLE:
                self._threads.submit(self._encode_whole)
        return bytes(part.rows(place, place + 1))

    def _encode(self, start: int, count: int) -> EncodedRows:
        some = self.table.slice(start, count).select(self._columns)
        return encode_rows(some, self._types, self._formats, self._time_zone)

    def _encode_whole(self) -> None:
        self._whole = self._encode(0, self.table.num_rows)


class Points:
    """The point reads among the plans, and what they have encoded."""

    def __init__(self, threads: Executor) -> None:
        self._threads = threads
        self._readers: Bounded[tuple[PointReader | None]] = Bounded(_PLANS)
        self._slots: Bounded[list[EncodedTable]] = Bounded(_SLOTS)

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
                reader = point_reader(database, plan.statement)
            found = (reader,)
            self._readers.put(plan.serial, found)
        return found[0]

    def peek(
        self, reader: PointReader, plan: Plan, values: tuple[Value, ...], formats: tuple[int, ...], time_zone: str
    ) -> bytes | None:
        """The answer, if the index is fresh."""
        row = reader.peek(values)
        return None if row is None else self.answer(reader, plan, row, formats, time_zone)

    def answer(self, reader: PointReader, plan: Plan, row: Row, formats: tuple[int, ...], time_zone: str) -> bytes:
        """DataRow and CommandComplete of a row."""
        if row.index is None:
            return _NONE
        key = (plan.serial, formats, time_zone)
        tables = self._slots.get(key)
        if tables is None:
            tables = []
            self._slots.put(key, tables)
        if not tables or tables[-1].table is not row.table:
            known = next((item for item in tables if item.table is row.table), None)
            if known is None:
                known = EncodedTable(row.table, reader, formats, time_zone, self._threads)
            tables[:] = [*(item for item in tables if item is not known), known][-_TABLES:]
        return tables[-1].row(row.index) + _ONE
