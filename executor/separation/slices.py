"""Which pipelines of a query read their input in slices, and how large these are.

Owns: the estimates behind it. A slice costs a statement, and what stands beside its leaf once more: so a leaf is cut
where its rows take several slices' time, where other relations that they meet are small beside them, and where far
fewer groups come out than rows go in, since groups are merged once more in the end; or few of the rows, where a query
only orders them.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct

from executor.core.core import Core
from executor.queries.statistics import all_statistics_of
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

#: Estimated seconds of a slice, and most slices. Each costs some 10 ms (TPC-H 1 at scale 1), which is then 2 % or so.
SLICE: Final = 0.5
#: The same on Spark, where each is a job of its own.
SLICE_ON_SPARK: Final = 20 * SPARK_START
_MOST: Final = 64
#: A slice's rows are a multiple of this for each thread: those that DuckDB stores, and reads, together.
GROUP: Final = 122_880
#: How many times fewer groups there must be than rows.
_FEWER: Final = 16
#: How many times fewer rows that are only ordered: they are written once more.
_CHOSEN: Final = 4
#: Rows that each slice keeps of ORDER BY and LIMIT at least: where 50 or fewer are asked for DuckDB 2.0 reads columns
#: late, and fails over rows that are chosen by their numbers.
_FIRST: Final = 64
#: What reading other relations once more for each slice may cost, of the leaf's own.
_BESIDE: Final = 0.1


#: Rows of tables by oid, and of runs by name.
Counts = Mapping[int, int] | Mapping[str, int]


class Sliced(Struct, frozen=True):
    """A pipeline's leaf, and the rows of each slice of it, about. Of files a slice has whole ones."""

    leaf: Leaf
    rows: int
    count: int

    @property
    def name(self) -> str:
        """What the leaf is called."""
        return self.leaf.name if isinstance(self.leaf, Scan) else self.leaf.trace

    def bounds(self, results: Results) -> Iterator[tuple[float, int, int]]:
        """For each slice: the share of the leaf that ends with it, its first row's number, and the next slice's."""
        low, high = results.numbers(self.leaf)
        total = max(high - low + 1, 1)
        step = -(-total // self.count) if results.reads_parts(self.leaf) else self.rows
        for first in range(low, low + total, step):
            following = first + step
            yield min(1.0, (following - low) / total), first, following

    def of(self, number: str, relation: Relation, low: int, high: int) -> Relation:
        """A pipeline's relation over one slice, by what the engine numbers."""
        return in_slice(relation, self.leaf, low, high, number)


class Slicing:
    """The choice for one plan."""

    def __init__(self, counts: Counts, groups: Cardinality, speed: float, seconds: float, threads: int) -> None:
        """``speed`` is in rows a second, ``seconds`` are those of a slice."""
        self._counts = counts
        self._groups = groups
        self._rows_of_slice = speed * seconds
        self._least = GROUP * threads
        self._beside = NodeSet()

    def in_two_phases(self, relation: Relation) -> Relation:
        """A plan whose chosen aggregations are taken apart."""
        changed = in_two_phases(relation, self._is_wanted)
        parts = partials(changed)
        for node in walk(changed):
            if isinstance(node, Aggregate) and node in parts:
                self._keep_beside(self._chosen(node))
        return changed

    def gathered(self, relation: Relation, is_asked: bool) -> tuple[Relation, Relation] | None:
        """A plan, and the part of it whose rows are only ordered, where they are gathered in slices: few of those that
        it reads; or however many where that ``is_asked`` for, as the first rows of an order always have to be: an
        engine skips most of the others (20 million rows: 0.02 s, and 0.24 in slices)."""
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
        """Whether a relation is read once for each slice of another one."""
        return relation in self._beside

    def slices(self, plan: Pipelined) -> dict[str, Sliced]:
        """The slices of a plan's pipelines, by their names."""
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
        """What is read in slices, and how many rows go into each; None where there would be only one."""
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
    """A leaf's rows; none where they are not known."""
    known: Mapping[Any, int] = counts
    return known.get(leaf.oid if isinstance(leaf, Scan) else leaf.trace, 0)


def slicing_of(reader: Reader, relation: Relation, counts: Counts, engine: EngineName) -> Slicing:
    """The choice for a query's plan on an engine."""
    core = reader.core
    speed, seconds = speed_of(reader, engine), SLICE if engine == "embedded" else SLICE_ON_SPARK
    statistics: Statistics = {}
    if sum(counts.values()) / speed >= seconds:
        statistics = all_statistics_of(relation, core.catalog, core.tables, {})
    return Slicing(counts, Cardinality(relation, statistics), speed, seconds, _threads(core))


def speed_of(reader: Reader, engine: EngineName = "embedded") -> float:
    """Rows a second that an engine takes through one pass."""
    if engine == "spark":
        return SPARK_ROWS * reader.services.analytics.power.cores
    return EMBEDDED_ROWS * _threads(reader.core)


def _threads(core: Core) -> int:
    return core.options.embedded_threads or os.cpu_count() or 1
