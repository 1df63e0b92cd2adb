"""Where an engine keeps the results of a query's finished pipelines.

Owns: ``Results``, which ``executor.embedded.pipeline_results`` implements with temporary tables and ``spark_results``
with Parquet files, and ``EngineName``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Literal, Protocol

import pyarrow as pa

from executor.embedded.pipeline_results import Kept
from planner.algebra.nodes import Relation, Snapshot
from planner.separation.slicing import Leaf

EngineName = Literal["embedded", "spark"]


class Results(Protocol):
    """Where an engine keeps the results of finished pipelines."""

    @property
    def number(self) -> str:
        """The source of a leaf's column by which it is read in slices."""
        ...

    def progress(self) -> float:
        """The finished share of the running step, 0 to 1, for any thread; 0 if it is unknown."""
        ...

    def keep(self, result: Snapshot, relation: Relation, readers: Sequence[Relation]) -> Kept:
        """Computes a relation's rows and keeps them as those of a snapshot, which these ``readers`` read."""
        ...

    def add(self, result: Snapshot, sliced: Callable[[int, int], Relation], low: int, high: int) -> Kept:
        """Adds the result of one slice to the rows that the snapshot has already; ``sliced`` gives the relation over
        the rows numbered from ``low`` to below ``high``."""
        ...

    def numbers(self, leaf: Leaf) -> tuple[int, int]:
        """The least and the greatest number of a leaf's rows, or of the files or parts that it has."""
        ...

    def reads_parts(self, leaf: Leaf) -> bool:
        """Whether files or parts of a leaf are numbered instead of its rows."""
        ...

    def rows(self, relation: Relation, name: str | None = None) -> pa.Table:
        """A relation's rows over what is kept; ``name`` is the pipeline's that it is of."""
        ...

    def batches(self, relation: Relation) -> Iterator[pa.RecordBatch]:
        """The rows, computed while they are read."""
        ...

    def drop(self, result: Snapshot) -> None:
        """Nothing will read a result any more."""
        ...
