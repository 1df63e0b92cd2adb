"""The rows of a result that are still to be taken: in portions of any size, forward only.

Owns: what is left of a batch of which only a part was wanted. Knows nothing of how rows are sent.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

import pyarrow as pa

#: Rows taken at once: bounds the memory of a portion.
PORTION_ROWS: Final = 16_384


class Forward:
    """Rows to come."""

    __slots__ = ("_pieces", "_rest")

    def __init__(self, batches: Iterable[pa.RecordBatch]) -> None:
        self._pieces = _pieces(batches)
        self._rest: pa.RecordBatch | None = None

    def next(self, limit: int = 0) -> pa.RecordBatch | None:
        """The next rows, at most ``limit`` (0: as they come); None at the end."""
        batch = self._rest if self._rest is not None else next(self._pieces, None)
        self._rest = None
        if batch is not None and limit and batch.num_rows > limit:
            self._rest = batch.slice(limit)
            return batch.slice(0, limit)
        return batch


def _pieces(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        for start in range(0, batch.num_rows, PORTION_ROWS):
            yield batch.slice(start, PORTION_ROWS) if batch.num_rows > PORTION_ROWS else batch
