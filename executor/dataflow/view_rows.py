"""The rows of a view that another dataflow keeps, where a dataflow reads them: they are there once for both.

Owns: the names of the columns on either side, and what is read while the reading dataflow is filled: the rows at that
moment, although the view goes on meanwhile. Knows nothing of how the view is brought forward, and of its changes
(``executor.maintained.kept_rows``).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

import numpy as np
import pyarrow as pa

from executor.dataflow.rows.hashing import NO_HASHES, Hashes, hashes_of
from executor.dataflow.rows.segments import Range
from executor.dataflow.rows.weighted_rows import WEIGHT, Consolidate, consolidated
from executor.small import AnyTable, table_of
from planner.incremental.dataflow.graph import Key


class ShownRows(Protocol):
    """Rows that others may read, as ``MaintainedRows`` has them."""

    @property
    def count(self) -> int:
        """About how many there are, with those that they are made of."""
        ...

    def shown(self, columns: Key, key: Key, hashes: Hashes, /) -> AnyTable:
        """Some columns of rows with some keys, or of all for an empty key, with their weights."""
        ...

    def shown_between(self, columns: Key, ranges: Sequence[tuple[str, Range]], /) -> AnyTable:
        """Some columns of rows that have a time in one of some ranges, with their weights."""
        ...

    def index_shown(self, key: Key, /) -> None:
        """Makes the index by which rows with a key are found. Safe while another thread changes the rows."""
        ...


class ViewRows:
    """The rows of one view for one node. Used with the view's lock held once it is ``settled``."""

    def __init__(self, rows: Callable[[], ShownRows], names: Mapping[str, str], merge: Consolidate) -> None:
        """``names``: by column of the node what the view's dataflow calls it. ``merge`` consolidates rows of types that
        Arrow does not group."""
        self._rows, self._names, self._merge = rows, names, merge
        self._at_fill: pa.Table | None = table_of(self._renamed(rows().shown(tuple(names.values()), (), NO_HASHES)))

    @property
    def count(self) -> int:
        """About how many rows the view's dataflow keeps."""
        return self._rows().count

    def settle(self) -> None:
        """The reading dataflow has been filled, and follows the view from now on."""
        self._at_fill = None

    def index_by(self, key: Key) -> None:
        """Makes the index by which rows with a key are found. Needs no lock."""
        self._rows().index_shown(self._others(key))

    def lookup(self, key: Key, hashes: Hashes) -> AnyTable:
        """Rows with their weights, as ``Multiset.lookup`` finds them."""
        if self._at_fill is None:
            return self._renamed(self._rows().shown(tuple(self._names.values()), self._others(key), hashes))
        if not key:
            return self._at_fill
        return self._at_fill.filter(pa.array(np.isin(hashes_of(self._at_fill, key), hashes)))

    def between(self, ranges: Sequence[tuple[str, Range]]) -> AnyTable:
        """Rows with their weights, as ``Multiset.between`` finds them."""
        own = [(self._names[column], values) for column, values in ranges]
        return self._renamed(self._rows().shown_between(tuple(self._names.values()), own))

    def consolidated(self, rows: AnyTable) -> AnyTable:
        """Equal rows as one with the sum of their weights, without those where it is 0."""
        return consolidated(rows, self._merge)

    def _others(self, key: Key) -> Key:
        return tuple(self._names[name] for name in key)

    def _renamed(self, rows: AnyTable) -> AnyTable:
        return rows.rename_columns([*self._names, WEIGHT])
