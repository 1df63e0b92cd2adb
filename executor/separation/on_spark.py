"""Results of a query's finished pipelines on Spark: runs in Parquet files, which the next pipelines read.

Owns: where they are, and which files a leaf stands for. Spark has no connection that keeps anything: every pipeline is
a job of its own over files, the query's inputs among them, which are as they were in its snapshot.
"""

from __future__ import annotations

import itertools
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from executor.analytics import Analytics, SparkQuery, Stored
from executor.embedded.kept import Kept
from planner.algebra import Relation, Snapshot


class SparkResults:
    """The results of one query, in a folder of its own."""

    def __init__(
        self,
        analytics: Analytics,
        job: tuple[int, Path],
        inputs: Mapping[str, Stored],
        time_zone: str,
        is_cancelled: Callable[[], bool],
    ) -> None:
        """``job`` is the number and the folder of the query's job, ``inputs`` are the files of its leaves by name."""
        self._analytics = analytics
        self._number, self._folder = job
        self._stored = dict(inputs)
        self._time_zone = time_zone
        self._is_cancelled = is_cancelled
        self._runs = itertools.count(1)
        self._folders: dict[str, Path] = {}

    def keep(self, result: Snapshot, relation: Relation, readers: Sequence[Relation]) -> Kept:
        """Computes a relation's rows and keeps them as those of a snapshot."""
        query, folder = self._query(relation), self._next()
        paths = self._analytics.write(self._number, query, self._stored, folder, self._is_cancelled)
        self._stored[result.trace], self._folders[result.trace] = paths, folder
        rows = sum(pq.read_metadata(path).num_rows for path in paths)
        return Kept(rows, sum(path.stat().st_size for path in paths))

    def rows(self, relation: Relation, name: str | None = None) -> pa.Table:
        """A relation's rows over what is kept and stored."""
        return self._analytics.run(self._number, self._query(relation), self._stored, self._next(), self._is_cancelled)

    def batches(self, relation: Relation) -> Iterator[pa.RecordBatch]:
        """The same in batches."""
        return iter(self.rows(relation).to_batches())

    def drop(self, result: Snapshot) -> None:
        """Nothing will read a result any more."""
        del self._stored[result.trace]
        shutil.rmtree(self._folders.pop(result.trace), ignore_errors=True)

    def _query(self, relation: Relation) -> SparkQuery:
        return self._analytics.require(self._analytics.query(relation, (), {}, self._time_zone))

    def _next(self) -> Path:
        return self._folder / f"run{next(self._runs)}"
