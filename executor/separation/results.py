"""The interface through which an engine keeps the results of a query's finished pipelines.

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
    """Keeps the results of finished pipelines in an engine."""

    @property
    def number(self) -> str:
        """The source of a leaf's column that numbers its rows for slices."""
        ...

    def progress(self) -> float:
        """The finished share of the running step, 0 to 1, for any thread; 0 if unknown."""
        ...

    def keep(self, result: Snapshot, relation: Relation, readers: Sequence[Relation]) -> Kept:
        """Computes a relation's rows and keeps them as the rows of a snapshot, which the relations ``readers`` read."""
        ...

    def add(self, result: Snapshot, sliced: Callable[[int, int], Relation], low: int, high: int) -> Kept:
        """Adds the result of one slice to the snapshot's rows; ``sliced`` gives the relation over the rows numbered
        from ``low`` to below ``high``."""
        ...

    def numbers(self, leaf: Leaf) -> tuple[int, int]:
        """The least and the greatest number of a leaf's rows, or of its files or parts."""
        ...

    def reads_parts(self, leaf: Leaf) -> bool:
        """Whether a leaf's files or parts are numbered instead of its rows."""
        ...

    def rows(self, relation: Relation, name: str | None = None) -> pa.Table:
        """A relation's rows over the kept results; ``name`` is the pipeline that computes them."""
        ...

    def batches(self, relation: Relation) -> Iterator[pa.RecordBatch]:
        """The rows in batches, computed while they are read."""
        ...

    def drop(self, result: Snapshot) -> None:
        """Drops a result that nothing reads any more."""
        ...
