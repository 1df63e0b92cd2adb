"""Rows of a relation by key: what a look-up finds without an engine.

Owns: rows as they were at one moment with an index for each of some keys (``KeyedRows``), and over them the rows of the
keys that have changed since (``Overlay``). Rows of many small changes are put together now and then. Tables
(``executor.rows.table_rows``), states (``executor.traces.state``) and views' results
(``executor.key_access.view_indexes``) are kept in this form.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final, Protocol

import pyarrow as pa

from executor.traces.budget import size_of
from executor.traces.index import NO_ROW, KeyIndex, Row
from executor.traces.parts import Parts

#: Names of the columns of a key, and their values.
Columns = tuple[str, ...]
Key = tuple[object, ...]

#: Small tables of changed rows that become one.
_GATHERED: Final = 256
#: Rows of a change that are few.
_FEW: Final = 64
#: What an index takes for each key.
_BYTES_OF_KEY: Final = 12


class Change(Protocol):
    """Rows that went, and rows that came after that."""

    @property
    def counts(self) -> tuple[int, int]:
        """How many both are."""
        ...

    def keys(self, columns: Columns) -> tuple[list[Key], list[Key]]:
        """The keys of both."""
        ...

    def came(self) -> Sequence[Row]:
        """The rows that came."""
        ...


class Overlay:
    """Changed rows by each of some keys. Changed by one thread at a time, while others read: a change is an assignment
    for each key."""

    def __init__(self, keys: tuple[Columns, ...]) -> None:
        self._changed: dict[Columns, dict[Key, Row]] = {key: {} for key in keys}
        self._recent: list[pa.Table] = []

    @property
    def keys(self) -> tuple[Columns, ...]:
        """The keys by which rows are found here."""
        return tuple(self._changed)

    def get(self, columns: Columns, key: Key) -> Row | None:
        """The row that a key has now, if that changed. Raises KeyError for columns that are none of ``keys``."""
        return self._changed[columns].get(key)

    def put(self, change: Change) -> None:
        """Takes a change."""
        rows = change.came()
        for columns, changed in self._changed.items():
            went, came = change.keys(columns)
            changed.update(dict.fromkeys(went, NO_ROW))
            changed.update(zip(came, rows, strict=True))
        if 0 < len(rows) <= _FEW and not rows[0].is_by_value:
            self._remember(rows[0].table)

    def replace(self, columns: Columns, keys: Iterable[Key], table: pa.Table) -> None:
        """The rows with these keys, by the only ``columns``, are those of ``table`` now; one without a row is gone."""
        places = KeyIndex(table, columns) if table.num_rows else None
        found = ((key, None if places is None else places.get(key)) for key in keys)
        rows = ((key, NO_ROW if place is None else Row(table, place)) for key, place in found)
        self._changed[columns].update(rows)
        if 0 < table.num_rows <= _FEW:
            self._remember(table)

    def _remember(self, table: pa.Table) -> None:
        self._recent.append(table)
        if len(self._recent) == _GATHERED:
            self._gather()

    def _gather(self) -> None:
        """One table of the small ones, each of which weighs more than its rows."""
        recent, self._recent = self._recent, []
        together, start = pa.concat_tables(recent).combine_chunks(), 0
        for table in recent:
            for columns, changed in self._changed.items():
                for place, key in enumerate(keys_in(table, columns)):
                    if changed[key].is_in(table):
                        changed[key] = Row(together, start + place)
            start += table.num_rows


class KeyedRows:
    """A relation's rows at one moment, under what has changed since. Read while it is changed."""

    def __init__(self, rows: pa.Table, keys: Iterable[Columns], nulls: bool = True) -> None:
        """``keys`` are the columns of unique keys; without ``nulls`` a key with a NULL is never asked for."""
        self.rows = rows
        self._indexes = {columns: KeyIndex(rows, columns, nulls) for columns in keys}
        self._changed = Overlay(tuple(self._indexes))
        #: How many rows have changed.
        self.patched = 0
        self._parts: Parts | None = None

    @property
    def keys(self) -> tuple[Columns, ...]:
        """The keys by which rows are found here."""
        return tuple(self._indexes)

    @property
    def bytes(self) -> int:
        """About how many bytes the rows and their indexes take."""
        count: int = size_of(self.rows) + _BYTES_OF_KEY * len(self._indexes) * self.rows.num_rows
        return count

    def get(self, columns: Columns, key: Key) -> Row | None:
        """The row with the values ``key`` in these columns; None where they are none of ``keys``."""
        index = self._indexes.get(columns)
        if index is None:
            return None
        row = self._changed.get(columns, key)
        return Row(self.rows, index.get(key)) if row is None else row

    def lookup(self, columns: Columns, keys: Iterable[Key]) -> pa.Table:
        """The rows with some values in the columns of one of ``keys``, in any order."""
        found: dict[int, tuple[pa.Table, list[int]]] = {}
        for key in keys:
            row = self.get(columns, key)
            if row is not None and row.place is not None:
                found.setdefault(id(row.table), (row.table, []))[1].append(row.place)
        parts = [self._taken(table, places) for table, places in found.values()]
        return pa.concat_tables(parts) if parts else self.rows.slice(0, 0)

    def _taken(self, table: pa.Table, places: list[int]) -> pa.Table:
        if table is not self.rows:
            return Parts.of(table).take(places)
        if self._parts is None:
            self._parts = Parts.of(table)
        return self._parts.take(places)

    def put(self, change: Change) -> None:
        """Takes a change."""
        self.patched += sum(change.counts)
        self._changed.put(change)

    def replace(self, columns: Columns, keys: Sequence[Key], table: pa.Table) -> None:
        """The rows with these keys are those of ``table`` now."""
        self.patched += len(keys)
        self._changed.replace(columns, keys, table)


def keys_in(rows: pa.Table, columns: Columns) -> list[Key]:
    """Each row's key. One with a NULL is never asked for, but keeps the places."""
    return list(zip(*(rows.column(name).to_pylist() for name in columns), strict=True))
