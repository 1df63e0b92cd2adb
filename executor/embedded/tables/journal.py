"""What a table transaction has done, entry by entry.

Owns: the kinds of entries, and what a commit's record says of them: which tables it logs as changes, and which anew.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import pyarrow as pa

from catalog.objects import Table, is_temporary
from executor.embedded.tables.altering import Step
from executor.embedded.tables.deferral import Deferred, Settled
from executor.tables.keyed_rows import Columns, Key, keys_in


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
    _keys: dict[Columns, tuple[list[Key], list[Key]]] = field(default_factory=dict, compare=False, repr=False)

    def keys(self, columns: Columns) -> tuple[list[Key], list[Key]]:
        """The keys of the rows that went, and of those that came: found once, though many ask."""
        known = self._keys.get(columns)
        if known is None:
            known = self._keys[columns] = keys_in(self.deleted, columns), keys_in(self.inserted, columns)
        return known


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


Gathered = dict[int, tuple[list[pa.Table], list[pa.Table]]]


def gathered(journal: Iterable[Entry]) -> tuple[Gathered, set[int]]:
    """Durable tables that still exist: the rows that came and went, statement by statement, by oid; and the oids of
    those that are logged anew."""
    found: Gathered = {}
    rebuilt: set[int] = set()
    for entry in journal:
        match entry:
            case Created() | Dropped() | Changed() | Defined() | Altered() | Rebuilt() if is_temporary(entry.table):
                pass
            case Changed():
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
