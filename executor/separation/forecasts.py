"""Forecasts of what a query's pipelines read and produce: measured for finished pipelines, estimated for others.

Owns: the sources of a ``Forecast``'s numbers: rows from the tables' statistics, bytes from the columns' types, time
from a core's speed in one pass (``planner/placement``) and from how long finished pipelines took compared with their
estimates. They decide with which state a query leaves, never which rows it returns.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from msgspec import Struct, field

from executor.core.core import Core
from executor.core.statistics import all_statistics_of
from executor.embedded.pipeline_results import Kept, width_of
from executor.printing.nodes import leaf_name
from executor.separation.query_artifact import StoredRun
from executor.separation.shared_files import SharedFiles, is_shared, shared_apart
from planner.algebra.nodes import Relation, Scan, Snapshot
from planner.algebra.walk import walk
from planner.rules.joins.cardinality import Cardinality
from planner.separation.carried_state import Forecast
from planner.separation.cuts import Pipelined
from planner.separation.inputs import inputs_apart
from planner.statistics import Statistics, TableStatistics

#: Bytes of a value whose type does not determine its size.
_LONG: Final = 24


class Forecasting(Struct):
    """One query's forecasts. ``speed`` is its engine's speed in rows per second, ``runs`` are its inputs other than
    tables, ``files`` its shared files, by name. Estimates are made on first use."""

    core: Core
    plan: Pipelined
    efforts: tuple[float, ...]
    speed: float
    runs: Mapping[str, StoredRun] = field(default_factory=dict)
    files: Mapping[str, SharedFiles] = field(default_factory=dict)
    _statistics: Statistics | None = None
    _rows: dict[str, float] = field(default_factory=dict)

    @property
    def bandwidth(self) -> float:
        """Bytes per second to and from the storage."""
        return self.core.options.storage_bandwidth

    def forecast(self, kept: Mapping[str, Kept] | None = None, took: Mapping[str, float] | None = None) -> Forecast:
        """The forecast after the results ``kept`` and the seconds of finished pipelines were measured."""
        kept, took = kept or {}, took or {}
        statistics, rows = self._estimated()
        rows = {**rows, **{name: item.rows for name, item in kept.items()}}
        sizes = {item.name: rows[item.name] * _width(item.place) for item in self.plan.pipelines}
        sizes |= {name: item.size for name, item in kept.items()}
        return Forecast(
            rows,
            sizes,
            {**self._seconds(took), **took},
            lambda left: self._read(left, statistics),
            self.bandwidth,
            self.core.options.storage_latency,
        )

    def _estimated(self) -> tuple[Statistics, dict[str, float]]:
        """Statistics of tables, and the estimated rows of the pipelines' results."""
        if self._statistics is None:
            core = self.core
            known = dict(all_statistics_of(self.plan.whole, core.catalog, core.tables, {}))
            known |= {name: TableStatistics(run.rows) for name, run in self.runs.items()}
            known |= {name: TableStatistics(item.rows) for name, item in self.files.items()}
            for item in self.plan.pipelines:
                self._rows[item.name] = Cardinality(item.relation, known).rows(item.relation)
                known[item.name] = TableStatistics(self._rows[item.name])
            self._statistics = known
        return self._statistics, self._rows

    def _seconds(self, took: Mapping[str, float]) -> dict[str, float]:
        """The estimated seconds of pipelines, scaled by how long finished pipelines took compared with their
        estimates."""
        found = {name: effort / self.speed for name, effort in zip(self.plan.names, self.efforts, strict=True)}
        expected = sum(found[name] for name in took)
        factor = sum(took.values()) / expected if expected else 1.0
        return {name: seconds * factor for name, seconds in found.items()}

    def _read(self, left: Relation, statistics: Statistics) -> float:
        """The bytes of tables, views and runs that a plan reads; shared files stay in place and do not count."""
        options, catalog = self.core.options, self.core.catalog
        scans = [node for node in walk(left) if isinstance(node, Scan) and is_shared(options, catalog, node)]
        left, shared = shared_apart(left, dict.fromkeys(map(leaf_name, scans)))
        relation, inputs = inputs_apart(left, shared.keys() | self.files.keys())
        estimates = Cardinality(left, statistics)
        runs = {item.trace for item in walk(relation) if isinstance(item, Snapshot)} & self.runs.keys()
        carried = sum(estimates.rows(part) * _width(part) for _, part in inputs)
        return carried + float(sum(self.runs[name].file.size for name in runs))


def _width(relation: Relation) -> int:
    """The approximate bytes of a row."""
    return sum(width_of(column.type) or _LONG for column in relation.columns)
