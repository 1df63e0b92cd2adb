"""A run: the net change of one trace over an LSN interval."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa


@dataclass(frozen=True, slots=True)
class Run:
    """The net change over (``after``, ``upto``]: in memory, as Parquet files, or as both.

    ``path`` is the index of the program's path that made it; intervals of different paths have nothing to do with each
    other. A run without table and without files changes nothing.
    """

    after: int
    upto: int
    table: pa.Table | None = None
    files: tuple[Path, ...] = ()
    path: int = 0
    rows: int = 0

    def __post_init__(self) -> None:
        assert self.after <= self.upto, "a run's interval is empty or goes forward"
