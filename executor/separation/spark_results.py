"""Results of a query's finished pipelines on Spark: Parquet files, which the following pipelines read.

Owns: where the files are, and which files a leaf stands for. Spark has no connection that could keep results: every
pipeline, and every slice of one, is a job of its own over files. The query's inputs are files as well, with the rows of
its snapshot. A slice consists of whole files.
"""

from __future__ import annotations

import itertools
import shutil
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from msgspec.structs import replace

from executor.core.spark_queries import Analytics, SparkQuery, Stored, trace_of
from executor.embedded.pipeline_results import Kept
from executor.files.followed_folders import OwnFiles
from planner.algebra.nodes import PART, Relation, Scan, Snapshot
from planner.algebra.walk import descend
from planner.separation.cuts import taken_names
from planner.separation.slicing import Leaf, slice_of


class SparkResults:
    """The results of one query, in their own folder."""

    def __init__(
        self,
        analytics: Analytics,
        job: tuple[int, Path],
        inputs: Mapping[str, Stored],
        time_zone: str,
        is_cancelled: Callable[[], bool],
    ) -> None:
        """``job`` is the number and the folder of the query's job; ``inputs`` are the files of its leaves, by name."""
        self.number = PART
        self._analytics = analytics
        self._number, self._folder = job
        self._stored = dict(inputs)
        self._time_zone = time_zone
        self._is_cancelled = is_cancelled
        self._runs = itertools.count(1)
        self._kept: dict[str, tuple[Path, ...]] = {}
        self._folders: dict[str, list[Path]] = {}

    def progress(self) -> float:
        """The finished share of the running step; unknown for a job of Spark."""
        return 0.0

    def keep(self, result: Snapshot, relation: Relation, readers: Sequence[Relation]) -> Kept:
        """Computes a relation's rows and keeps them as the rows of a snapshot."""
        query, folder = self._query(relation), self._next()
        made = self._analytics.write(self._number, query, self._stored, folder, self._is_cancelled)
        paths = (*self._kept.get(result.trace, ()), *made)
        self._stored[result.trace] = self._kept[result.trace] = paths
        self._folders.setdefault(result.trace, []).append(folder)
        rows = sum(pq.read_metadata(path).num_rows for path in paths)
        return Kept(rows, sum(path.stat().st_size for path in paths))

    def add(self, result: Snapshot, sliced: Callable[[int, int], Relation], low: int, high: int) -> Kept:
        """Adds the result of one slice to the snapshot's rows."""
        return self.keep(result, sliced(low, high), ())

    def numbers(self, leaf: Leaf) -> tuple[int, int]:
        """The first and the last number of a leaf's files."""
        files = self._stored[_trace(leaf)]
        return 0, len(files.files if isinstance(files, OwnFiles) else files) - 1

    def reads_parts(self, leaf: Leaf) -> bool:
        """Whether a leaf's files are numbered instead of its rows: always."""
        return True

    def rows(self, relation: Relation, name: str | None = None) -> pa.Table:
        """A relation's rows over the kept results and the inputs."""
        return self._analytics.run(self._number, self._query(relation), self._stored, self._next(), self._is_cancelled)

    def batches(self, relation: Relation) -> Iterator[pa.RecordBatch]:
        """The rows in batches."""
        return iter(self.rows(relation).to_batches())

    def drop(self, result: Snapshot) -> None:
        """Drops a result that nothing reads any more."""
        del self._stored[result.trace], self._kept[result.trace]
        for folder in self._folders.pop(result.trace):
            shutil.rmtree(folder, ignore_errors=True)

    def _query(self, relation: Relation) -> SparkQuery:
        relation = descend(relation, partial(self._part, taken_names(relation)))
        return self._analytics.require(self._analytics.query(relation, (), {}, self._time_zone))

    def _part(self, taken: Collection[str], node: Any) -> Any:
        """The relation with a leaf of only some files, for one slice."""
        part = slice_of(node)
        if part is None:
            return node
        files = slice(part.low, part.high)
        name = f"{_trace(part.leaf)}_{part.low}_{part.high or ''}"
        while name in taken:
            name += "_"
        self._stored[name] = _some(self._stored[_trace(part.leaf)], files)
        return Snapshot(name, part.leaf.columns, part.leaf.sources)

    def _next(self) -> Path:
        return self._folder / f"run{next(self._runs)}"


def _trace(leaf: Leaf) -> str:
    return trace_of(leaf) if isinstance(leaf, Scan) else leaf.trace


def _some(stored: Stored, places: slice) -> Stored:
    """Some of a leaf's files."""
    if not isinstance(stored, OwnFiles):
        return stored[places]
    partitions = {name: values[places] for name, values in stored.partitions.items()}
    return replace(stored, files=stored.files[places], partitions=partitions)
