"""How far a path of a continuous view is, on storage and in memory."""

from __future__ import annotations

import pyarrow as pa
from msgspec import Struct, field

from planner.incremental.programs.program import Path


class PendingRun(Struct):
    """A run in memory that no commit holds yet: ``tables`` by state name over (``after``, ``upto``]."""

    after: int
    upto: int
    tables: dict[str, pa.Table]


class Progress(Struct):
    """How far one path is: ``durable`` is its committed frontier, ``reached`` what the content includes.

    ``moved`` is the LSN up to which a run last changed the content: up to ``reached`` it is the same. ``claimed`` is
    where the interval ends that a background job computes now, or computed last: readers do not wait for it, but end
    their runs there, so that what the job commits takes the place of whole runs and those above it stay of use.
    """

    path: Path
    durable: int
    reached: int
    moved: int = 0
    claimed: int = 0
    pending: list[PendingRun] = field(default_factory=list)
