"""What a table transaction has done, entry by entry.

Owns: the kinds of entries, and what a commit's record says of them: which tables it logs as changes, and which anew.
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
    """Rows of a table went and came."""

    table: Table
    deleted: pa.Table
    inserted: pa.Table
    _keys: dict[Columns, tuple[list[Key], list[Key]]] = field(default_factory=dict)

    @property
    def counts(self) -> tuple[int, int]:
        """How many rows went, and how many came."""
        return self.deleted.num_rows, self.inserted.num_rows

    @property
    def size(self) -> int:
        """About how many bytes they take."""
        found: int = self.deleted.nbytes + self.inserted.nbytes
        return found

    def went(self) -> list[Row]:
        """The rows that went."""
        return [Row(self.deleted, place) for place in range(self.deleted.num_rows)]

    def came(self) -> list[Row]:
        """The rows that came."""
        return [Row(self.inserted, place) for place in range(self.inserted.num_rows)]

    def keys(self, columns: Columns) -> tuple[list[Key], list[Key]]:
        """The keys of the rows that went, and of those that came: found once, though many ask."""
        known = self._keys.get(columns)
        if known is None:
            known = self._keys[columns] = keys_in(self.deleted, columns), keys_in(self.inserted, columns)
        return known


class ChangedRow:
    """One row of a table went (``old``), came (``new``) or was replaced: the same as ``Changed``, by values."""

    __slots__ = ("_keys", "new", "old", "table")

    def __init__(self, table: Table, old: ValueRow | None, new: ValueRow | None) -> None:
        self.table = table
        self.old = old
        self.new = new
        self._keys: dict[Columns, tuple[list[Key], list[Key]]] = {}

    @property
    def deleted(self) -> pa.Table:
        """The row that went, as Arrow."""
        return schema_of(self.table).empty_table() if self.old is None else self.old.table

    @property
    def inserted(self) -> pa.Table:
        """The row that came, as Arrow."""
        return schema_of(self.table).empty_table() if self.new is None else self.new.table

    @property
    def counts(self) -> tuple[int, int]:
        """How many rows went, and how many came."""
        return int(self.old is not None), int(self.new is not None)

    @property
    def size(self) -> int:
        """About how many bytes they take."""
        return sum([row.size for row in (self.old, self.new) if row is not None])

    def went(self) -> tuple[ValueRow, ...]:
        """The row that went."""
        return () if self.old is None else (self.old,)

    def came(self) -> tuple[ValueRow, ...]:
        """The row that came."""
        return () if self.new is None else (self.new,)

    def keys(self, columns: Columns) -> tuple[list[Key], list[Key]]:
        """The key of the row that went, and of the one that came."""
        known = self._keys.get(columns)
        if known is None:
            went, came = ([row.key(columns) for row in rows] for rows in (self.went(), self.came()))
            known = self._keys[columns] = went, came
        return known


#: What changed rows.
RowsChanged = Changed | ChangedRow


class Defined(Struct, frozen=True):
    """A table has another definition over the same columns: of constraints, defaults or its name."""

    table: Table


class Altered(Struct, frozen=True):
    """A table's columns were changed in place."""

    table: Table
    steps: tuple[Step, ...]


class Rebuilt(Struct, frozen=True):
    """A table got other columns, and all of its rows anew."""

    table: Table
    rows: pa.Table


Entry = Created | Dropped | Changed | ChangedRow | Defined | Altered | Rebuilt | Deferred | Settled


Gathered = dict[int, tuple[list[pa.Table], list[pa.Table]]]


def gathered(journal: Iterable[Entry]) -> tuple[Gathered, set[int]]:
    """Durable tables that still exist: the rows that came and went, statement by statement, by oid; and the oids of
    those that are logged anew."""
    found: Gathered = {}
    rebuilt: set[int] = set()
    for entry in journal:
        match entry:
            case Changed() | ChangedRow() | Created() | Dropped() | Defined() | Altered() | Rebuilt() if is_temporary(
                entry.table
            ):
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
            case Altered() if entry.table.oid in found:  # by value, its older changes mean nothing any more
                rebuilt.add(entry.table.oid)
            case Created() | Defined() | Altered() | Deferred() | Settled():
                pass
    return found, rebuilt
