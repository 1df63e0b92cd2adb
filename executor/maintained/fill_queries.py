"""The queries of a fill: each node's rows, over the tables at the fill's moment and the rows of the nodes below.

Owns: which engine computes a node's rows, and the files of a fill. A query on Spark is a job over Parquet files, of
which there is one set for each relation, written when the first query reads it. Where Spark does not compute a query,
takes none now or fails, the embedded engine computes it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Final, Self

import pyarrow as pa

from catalog.objects import View
from catalog.values.errors import SqlError
from executor.core.core import Core
from executor.core.spark_queries import SPARK_FAILED, Analytics, Leaf, SparkQuery, Stored, write_input
from executor.core.statistics import statistics_of
from executor.tables.store import ReadSnapshot
from planner.algebra.nodes import Relation, Scan, Snapshot
from planner.algebra.walk import find, kinds_of
from planner.placement import Size, estimate, with_kernel, with_written

_SCANS: Final = kinds_of(Scan)
_SNAPSHOTS: Final = kinds_of(Snapshot)
#: Bytes of a value, about.
_BYTES: Final = 10


class FillQueries:
    """Those of one fill of a view's rows. Used by one thread."""

    def __init__(
        self,
        core: Core,
        analytics: Analytics,
        snapshot: ReadSnapshot,
        view: View,
        time_zone: str,
        is_given_up: Callable[[], bool],
    ) -> None:
        self._core, self._analytics, self._snapshot = core, analytics, snapshot
        self._setting = core.engine_setting(view)
        #: The rows of tables, about, for the choice of the engine.
        self._counts = {} if self._setting == "embedded" else core.tables.row_counts()
        self._time_zone, self._is_given_up = time_zone, is_given_up
        self._files: dict[tuple[str, tuple[str, ...]], tuple[Path, ...]] = {}
        self._folder: Path | None = None
        self._held = ExitStack()
        #: How many queries each engine has computed, by the name that EXPLAIN has for it.
        self.engines: Counter[str] = Counter()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._held.close()

    def rows(self, relation: Relation, bindings: Mapping[str, pa.Table]) -> pa.Table:
        """A relation's rows; ``bindings`` are leaves that stand for no tables. Raises an error of the data."""
        query = self._on_spark(relation, bindings)
        if query is not None:
            try:
                found = self._from_spark(query, bindings)
            except SqlError as error:
                if error.sqlstate not in SPARK_FAILED:
                    raise
            else:
                self.engines["Spark"] += 1
                return found
        self.engines["embedded engine"] += 1
        return self._snapshot.query(relation, bindings, (), self._time_zone)

    def _on_spark(self, relation: Relation, bindings: Mapping[str, pa.Table]) -> SparkQuery | None:
        """The query as Spark gets it; None where the embedded engine computes it."""
        analytics, core = self._analytics, self._core
        if self._setting == "embedded" or analytics.unready() is not None:
            return None
        sizes = self._sizes(relation, bindings)
        if sizes is None:
            return None
        cost = with_written(estimate(relation, sizes.values(), core.engine.power, analytics.power), sizes.values())
        is_forced = self._setting == "spark"
        if not is_forced and cost.embedded <= cost.spark:
            return None
        query = analytics.query(relation, (), statistics_of(relation, core.catalog, core.tables, {}), self._time_zone)
        if query is None or isinstance(query.printed, str):
            return None
        rows = {oid: size.rows for oid, size in sizes.items() if isinstance(oid, int)}
        cost = with_kernel(cost, query.values_of_kernel(rows), analytics.power)
        return query if is_forced or cost.spark < cost.embedded else None

    def _sizes(self, relation: Relation, bindings: Mapping[str, pa.Table]) -> dict[int | str, Size] | None:
        """What a relation reads, by oid or trace; None where a file cannot stand for a leaf."""
        found: dict[int | str, Size] = {}
        for scan in find(relation, _SCANS):
            bound = bindings.get(f"v{scan.oid}")
            if scan.kind != "table" and bound is None:
                return None
            rows = self._counts.get(scan.oid, 0) if bound is None else bound.num_rows
            found[scan.oid] = Size(rows, rows * _BYTES * len(scan.columns))
        for leaf in find(relation, _SNAPSHOTS):
            table = bindings.get(f"s_{leaf.trace}")
            if table is None or not table.num_columns:
                return None
            found[leaf.trace] = Size(table.num_rows, table.nbytes)
        return found

    def _from_spark(self, query: SparkQuery, bindings: Mapping[str, pa.Table]) -> pa.Table:
        if self._folder is None:
            _, self._folder = self._held.enter_context(self._analytics.job())
        stored: dict[str, Stored] = dict(self._stored(query, bindings, self._folder))
        with self._analytics.job() as (number, folder):
            return self._analytics.run(number, query, stored, folder / "rows", self._is_given_up)

    def _stored(
        self, query: SparkQuery, bindings: Mapping[str, pa.Table], folder: Path
    ) -> Iterator[tuple[str, tuple[Path, ...]]]:
        """The files of what a query reads, by trace."""
        for leaf in query.leaves:
            rows = partial(self._scanned, leaf, bindings)
            yield leaf.trace, self._written(leaf.trace, tuple(leaf.names), rows, folder)
        for snapshot in find(query.relation, _SNAPSHOTS):
            rows = partial(bindings.__getitem__, f"s_{snapshot.trace}")
            yield snapshot.trace, self._written(snapshot.trace, (), rows, folder)

    def _scanned(self, leaf: Leaf, bindings: Mapping[str, pa.Table]) -> pa.Table:
        found = self._snapshot.query(leaf.rows, bindings, (), self._time_zone)
        return found.rename_columns(leaf.names)

    def _written(
        self, trace: str, names: tuple[str, ...], rows: Callable[[], pa.Table], folder: Path
    ) -> tuple[Path, ...]:
        """The files of some columns of a trace, or of all where there are no ``names``."""
        if self._is_given_up():
            raise SqlError("57014", "the rows are not wanted any more")
        found = self._files.get((trace, names))
        if found is None:
            found = tuple(write_input(rows(), folder, f"{trace}-{len(self._files)}"))
            self._files[trace, names] = found
        return found
