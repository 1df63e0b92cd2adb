"""Rows of a multiset that came lately, as Python's values.

Owns: which of them are there, how often, and where they are found by the hashes of keys. Rows that go before they
become part of a segment of Arrow's cost no segment.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final

import pyarrow as pa

from executor.dataflow.rows.hashing import hashes_of
from executor.dataflow.rows.weighted_rows import WEIGHT
from executor.small import SmallTable

Row = tuple[Any, ...]
#: About what a value takes in memory, with its share of the dictionaries.
_VALUE_BYTES: Final = 64


class RecentRows:
    """Those of one multiset. Used by one thread at a time."""

    def __init__(self, names: tuple[str, ...], types: tuple[pa.DataType, ...]) -> None:
        self._names, self._types = names, types
        self._weights: dict[Row, int] = {}
        #: By key and hash, the rows.
        self._indexes: dict[tuple[str, ...], dict[int, dict[Row, None]]] = {}

    @property
    def count(self) -> int:
        """Rows, of which equal ones count as one."""
        return len(self._weights)

    @property
    def bytes(self) -> int:
        """About what they take in memory."""
        return len(self._weights) * (len(self._names) + 1) * _VALUE_BYTES

    def add(self, rows: SmallTable) -> None:
        """Adds rows with their weights, which are positive."""
        new = []
        for *values, weight in rows.select((*self._names, WEIGHT)).rows():
            row = tuple(values)
            known = self._weights.get(row)
            if known is None:
                new.append(row)
            self._weights[row] = weight + (known or 0)
        for key, index in self._indexes.items():
            self._into(index, key, new)

    def _into(self, index: dict[int, dict[Row, None]], key: tuple[str, ...], rows: list[Row]) -> None:
        for row, found in zip(rows, self._hashes(key, rows), strict=True):
            index.setdefault(found, {})[row] = None

    def _hashes(self, key: tuple[str, ...], rows: list[Row]) -> list[int]:
        columns: Iterable[tuple[Any, ...]] = zip(*rows, strict=True) if rows else [()] * len(self._names)
        hashes: list[int] = hashes_of(
            SmallTable(self._names, self._types, [*map(list, columns)], len(rows)), key
        ).tolist()
        return hashes

    def found(self, key: tuple[str, ...], hashes: Iterable[int]) -> list[Row]:
        """The rows whose keys have these hashes, each given once; all for an empty key."""
        if not key:
            return list(self._weights)
        index = self._indexes.get(key)
        if index is None:
            index = self._indexes[key] = {}
            self._into(index, key, list(self._weights))
        return [row for item in hashes for row in index.get(item, ())]

    def weight(self, row: Row) -> int:
        """How often a row is there."""
        return self._weights.get(row, 0)

    def remove(self, row: Row, count: int) -> None:
        """Takes a row away so many times; it is there at least as often."""
        left = self._weights[row] - count
        if left:
            self._weights[row] = left
            return
        del self._weights[row]
        for key, index in self._indexes.items():
            (found,) = self._hashes(key, [row])
            rows = index[found]
            del rows[row]
            if not rows:
                del index[found]

    def taken(self) -> SmallTable | None:
        """Takes all out, with their weights; None where there are none."""
        if not self._weights:
            return None
        rows = list(self.weighted(self._weights))
        self._weights.clear()
        for index in self._indexes.values():
            index.clear()
        cells = [*map(list, zip(*rows, strict=True))]
        return SmallTable((*self._names, WEIGHT), (*self._types, pa.int64()), cells, len(rows))

    def weighted(self, rows: Iterable[Row]) -> Iterator[Row]:
        """Rows that are there, with their weights behind their values."""
        return ((*row, self._weights[row]) for row in rows)
