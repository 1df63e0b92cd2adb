"""The journal of a table transaction: its actions, entry by entry.

Owns: the kinds of entries, and their content in a commit's record: which tables it logs as changes, and which with all
rows.
"""

from __future__ import annotations

from collections.abc import Iterable

import pyarrow as pa
from msgspec import Struct, field

from catalog.objects import Table, is_temporary
from executor.rows.row_shapes import schema_of
from executor.rows.value_rows import ValueRow
from executor.tables.constraints.deferral import Deferred, Settled
from executor.tables.definitions.altering import Step
from executor.traces.index import Row
from executor.traces.keyed_rows import Columns, Key, keys_in


class Created(Struct, frozen=True):
    """A table was created."""

    table: Table


class Dropped(Struct, frozen=True):
    """A table was dropped."""

    table: Table


class Changed(Struct, frozen=True, eq=False):
    """Rows of a table were deleted and inserted."""

    table: Table
    deleted: pa.Table
    inserted: pa.Table
    _keys: dict[Columns, tuple[list[Key], list[Key]]] = field(default_factory=dict)

    @property
    def counts(self) -> tuple[int, int]:
        """The numbers of deleted and of inserted rows."""
        return self.deleted.num_rows, self.inserted.num_rows

    @property
    def size(self) -> int:
        """The approximate bytes of the rows."""
        found: int = self.deleted.nbytes + self.inserted.nbytes
        return found

    def went(self) -> list[Row]:
        """The deleted rows."""
        return [Row(self.deleted, place) for place in range(self.deleted.num_rows)]

    def came(self) -> list[Row]:
        """The inserted rows."""
        return [Row(self.inserted, place) for place in range(self.inserted.num_rows)]

    def keys(self, columns: Columns) -> tuple[list[Key], list[Key]]:
        """The keys of the deleted and of the inserted rows; computed once."""
        known = self._keys.get(columns)
        if known is None:
            known = self._keys[columns] = keys_in(self.deleted, columns), keys_in(self.inserted, columns)
        return known


class ChangedRow:
    """One row of a table was deleted (``old``), inserted (``new``) or replaced: like ``Changed``, with values instead
    of Arrow."""

    __slots__ = ("_keys", "new", "old", "table")

    def __init__(self, table: Table, old: ValueRow | None, new: ValueRow | None) -> None:
        self.table = table
        self.old = old
        self.new = new
        self._keys: dict[Columns, tuple[list[Key], list[Key]]] = {}

    @property
    def deleted(self) -> pa.Table:
        """The deleted row, as Arrow."""
        return schema_of(self.table).empty_table() if self.old is None else self.old.table

    @property
    def inserted(self) -> pa.Table:
        """The inserted row, as Arrow."""
        return schema_of(self.table).empty_table() if self.new is None else self.new.table

    @property
    def counts(self) -> tuple[int, int]:
        """The numbers of deleted and of inserted rows."""
        return int(self.old is not None), int(self.new is not None)

    @property
    def size(self) -> int:
        """The approximate bytes of the rows."""
        return sum([row.size for row in (self.old, self.new) if row is not None])

    def went(self) -> tuple[ValueRow, ...]:
        """The deleted row."""
        return () if self.old is None else (self.old,)

    def came(self) -> tuple[ValueRow, ...]:
        """The inserted row."""
        return () if self.new is None else (self.new,)

    def keys(self, columns: Columns) -> tuple[list[Key], list[Key]]:
        """The keys of the deleted and of the inserted row."""
        known = self._keys.get(columns)
        if known is None:
            went, came = ([row.key(columns) for row in rows] for rows in (self.went(), self.came()))
            known = self._keys[columns] = went, came
        return known


#: Entries that change rows.
RowsChanged = Changed | ChangedRow


class Defined(Struct, frozen=True):
    """A table got another definition with the same columns: of constraints, defaults or its name."""

    table: Table


class Altered(Struct, frozen=True):
    """A table's columns were changed in place."""

    table: Table
    steps: tuple[Step, ...]


class Rebuilt(Struct, frozen=True):
    """A table got other columns, and all of its rows were rewritten."""

    table: Table
    rows: pa.Table


#: Entries that change definitions.
DefinitionChange = Created | Dropped | Defined | Altered | Rebuilt


Entry = DefinitionChange | RowsChanged | Deferred | Settled


Gathered = dict[int, tuple[list[pa.Table], list[pa.Table]]]


def gathered(journal: Iterable[Entry]) -> tuple[Gathered, set[int]]:
    """For a record: the inserted and deleted rows of durable tables that still exist, statement by statement, by oid,
    and the oids of tables that are logged with all rows."""
    found: Gathered = {}
    rebuilt: set[int] = set()
    for entry in journal:
        match entry:
            case Deferred() | Settled():
                pass
            case _ if is_temporary(entry.table):
                pass
            case Changed() | ChangedRow():
                inserted, deleted = found.setdefault(entry.table.oid, ([], []))
                inserted.append(entry.inserted)
                deleted.append(entry.deleted)
            case Dropped():
                found.pop(entry.table.oid, None)
                rebuilt.discard(entry.table.oid)
            case Rebuilt():
                rebuilt.add(entry.table.oid)
            case Altered() if entry.table.oid in found:  # by value, the table's older changes are void
                rebuilt.add(entry.table.oid)
            case Created() | Defined() | Altered():
                pass
    return found, rebuilt
