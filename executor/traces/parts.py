"""The rows of a table of many chunks by their places.

Arrow's own ``take`` copies such a table into one before it takes the first row.
"""

from __future__ import annotations

import itertools
from bisect import bisect_right

import pyarrow as pa
from msgspec import Struct


class Parts(Struct, frozen=True):
    """A table's batches and the first row of each."""

    batches: tuple[pa.RecordBatch, ...]
    starts: tuple[int, ...]

    @classmethod
    def of(cls, table: pa.Table) -> Parts:
        """Looks at the chunks, not at the rows."""
        batches = tuple(table.to_batches())
        sizes = (batch.num_rows for batch in batches[:-1])
        return cls(batches, tuple(itertools.accumulate(sizes, initial=0)))

    def take(self, places: list[int]) -> pa.Table:
        """The rows at these places, in any order."""
        found: dict[int, list[int]] = {}
        for place in places:
            part = bisect_right(self.starts, place) - 1
            found.setdefault(part, []).append(place - self.starts[part])
        return pa.Table.from_batches(self.batches[part].take(pa.array(own, pa.int64())) for part, own in found.items())
