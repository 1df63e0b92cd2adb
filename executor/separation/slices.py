"""Decides which pipelines of a query read their input in slices, and how large the slices are.

Owns: the estimates for that. Each slice costs a statement and another read of the relations beside the leaf. So a leaf
is sliced if its rows take the time of several slices, if the relations joined with it are small, and if far fewer
groups come out than rows go in, as the groups are merged once more at the end; or, for a query that only sorts rows, if
few rows are left.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct

from executor.core.core import Core
from executor.core.statistics import all_statistics_of
from executor.separation.results import EngineName, Results
from planner.algebra.identity import NodeSet
from planner.algebra.nodes import Aggregate, Limit, Relation, Scan
from planner.algebra.walk import walk
from planner.placement import BREAKERS, EMBEDDED_ROWS, SPARK_ROWS, SPARK_START
from planner.rules.joins.cardinality import Cardinality
from planner.separation.cuts import Pipelined
from planner.separation.slicing import Driver, Leaf, driver, gathered, in_slice, in_two_phases, partials
from planner.statistics import Statistics

if TYPE_CHECKING:
    from executor.queries.reader import Reader

#: Estimated seconds of a slice, and the most slices. Each slice costs some 10 ms (TPC-H 1 at scale 1), which is then
#: about 2 %.
SLICE: Final = 0.5
#: Estimated seconds of a slice on Spark, where each slice is a job of its own.
SLICE_ON_SPARK: Final = 20 * SPARK_START
_MOST: Final = 64
#: For each thread, a slice's rows are a multiple of this number: the rows that DuckDB stores and reads together.
GROUP: Final = 122_880
#: The least ratio of rows to groups.
_FEWER: Final = 16
#: The least ratio of rows read to rows that are only sorted, as the latter are written once more.
_CHOSEN: Final = 4
#: The least number of rows that each slice keeps for ORDER BY and LIMIT: if 50 or fewer are asked for, DuckDB 2.0 reads
#: columns late and fails on rows that are chosen by their numbers.
_FIRST: Final = 64
#: The most that repeated reads of the other relations may cost, as a share of the leaf's cost.
_BESIDE: Final = 0.1


#: Row counts of tables by oid, and of runs by name.
Counts = Mapping[int, int] | Mapping[str, int]


class Sliced(Struct, frozen=True):
    """A pipeline's leaf, and the approximate number of rows in each slice. Files are not divided."""

    leaf: Leaf
    rows: int
    count: int

    @property
    def name(self) -> str:
        """The leaf's name."""
        return self.leaf.name if isinstance(self.leaf, Scan) else self.leaf.trace

    def bounds(self, results: Results) -> Iterator[tuple[float, int, int]]:
        """For each slice: the share of the leaf up to its end, its first row's number, and the next slice's first
        number."""
        low, high = results.numbers(self.leaf)
        total = max(high - low + 1, 1)
        step = -(-total // self.count) if results.reads_parts(self.leaf) else self.rows
        for first in range(low, low + total, step):
            following = first + step
            yield min(1.0, (following - low) / total), first, following

    def of(self, number: str, relation: Relation, low: int, high: int) -> Relation:
        """A pipeline's relation over one slice, selected by the numbers that the engine gives rows or files."""
        return in_slice(relation, self.leaf, low, high, number)


class Slicing:
    """The choice of slices for one plan."""

    def __init__(self, counts: Counts, groups: Cardinality, speed: float, seconds: float, threads: int) -> None:
        """``speed`` is in rows per second, ``seconds`` is the duration of a slice."""
        self._counts = counts
        self._groups = groups
        self._rows_of_slice = speed * seconds
        self._least = GROUP * threads
        self._beside = NodeSet()

    def in_two_phases(self, relation: Relation) -> Relation:
        """A plan in which the chosen aggregations are split into two phases."""
        changed = in_two_phases(relation, self._is_wanted)
        parts = partials(changed)
        for node in walk(changed):
            if isinstance(node, Aggregate) and node in parts:
                self._keep_beside(self._chosen(node))
        return changed

    def gathered(self, relation: Relation, is_asked: bool) -> tuple[Relation, Relation] | None:
        """A plan whose rows are sorted after they were gathered in slices, and the part that gathers them; None for
        another plan.

        Without ``is_asked``, only if few of the rows that the part reads are gathered. A LIMIT on sorted rows always
        needs ``is_asked``, since the engine skips most rows of the whole query (20 million rows: 0.02 s, against 0.24 s
        in slices).
        """
        found = gathered(relation, self._rows, _FIRST)
        chosen = None if found is None else self._chosen(found[1])
        if found is None or chosen is None:
            return None
        whole, part = found
        is_cheap = not isinstance(part, Limit) and self._groups.rows(part) * _CHOSEN <= self._rows(chosen[0].leaf)
        if not (is_asked or is_cheap):
            return None
        self._keep_beside(chosen)
        return whole, part

    def _keep_beside(self, chosen: tuple[Driver, int] | None) -> None:
        if chosen is not None:
            for relation in chosen[0].beside:
                self._beside.add(relation)

    def is_beside(self, relation: Relation) -> bool:
        """Whether a relation is read again for each slice of another one."""
        return relation in self._beside

    def slices(self, plan: Pipelined) -> dict[str, Sliced]:
        """The slices of a plan's pipelines, by the pipelines' names."""
        parts = partials(plan.whole)
        found = {}
        for item in plan.pipelines[:-1]:
            if item.place in parts or item.breaker == "rows":
                chosen = self._chosen(item.relation)
                if chosen is not None:
                    leaf, rows = chosen[0].leaf, chosen[1]
                    found[item.name] = Sliced(leaf, rows, -(-int(self._rows(leaf)) // rows))
        return found

    def _is_wanted(self, node: Aggregate) -> bool:
        chosen = self._chosen(node)
        return chosen is not None and self._groups.rows(node) * _FEWER <= self._rows(chosen[0].leaf)

    def _chosen(self, node: Relation) -> tuple[Driver, int] | None:
        """The leaf to read in slices and the rows of each slice; None if there would be only one slice."""
        chosen = driver(node, self._rows)
        if chosen is None:
            return None
        rows = self._rows(chosen.leaf)
        passes = 1 + sum(isinstance(item, BREAKERS) for item in walk(node))
        beside = sum(self._rows(item) for part in chosen.beside for item in walk(part) if isinstance(item, Leaf))
        count = min(rows * passes / self._rows_of_slice, _MOST, rows / self._least)
        if beside:
            count = min(count, _BESIDE * rows / beside)
        if count < 2:
            return None
        return chosen, -(-int(rows / int(count)) // self._least) * self._least

    def _rows(self, leaf: Leaf) -> float:
        return float(rows_of(self._counts, leaf))


def rows_of(counts: Counts, leaf: Leaf) -> int:
    """The number of a leaf's rows, 0 if unknown."""
    known: Mapping[Any, int] = counts
    return known.get(leaf.oid if isinstance(leaf, Scan) else leaf.trace, 0)


def slicing_of(reader: Reader, relation: Relation, counts: Counts, engine: EngineName) -> Slicing:
    """The choice of slices for a query's plan on an engine."""
    core = reader.core
    speed, seconds = speed_of(reader, engine), SLICE if engine == "embedded" else SLICE_ON_SPARK
    statistics: Statistics = {}
    if sum(counts.values()) / speed >= seconds:
        statistics = all_statistics_of(relation, core.catalog, core.tables, {})
    return Slicing(counts, Cardinality(relation, statistics), speed, seconds, _threads(core))


def speed_of(reader: Reader, engine: EngineName = "embedded") -> float:
    """An engine's speed in one pass over rows, in rows per second."""
    if engine == "spark":
        return SPARK_ROWS * reader.services.analytics.power.cores
    return EMBEDDED_ROWS * _threads(reader.core)


def _threads(core: Core) -> int:
    return core.options.embedded_threads or os.cpu_count() or 1
