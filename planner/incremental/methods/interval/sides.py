"""The sides of an interval join: until when the rows of each can be joined with rows of the others that are to come.

A side is a part of a plan that reads one stream by itself. Where conditions that all hold bound the time of its rows by
the column of each other stream's watermark, also by way of a third one, they are done with once each watermark has
passed the time up to which a row can be joined:

    b.ts <= a.ts + c1,  z.ts <= b.ts + c2      a row of A can be joined until B's watermark is at a.ts + c1,
                                               and Z's at a.ts + c1 + c2
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import reduce
from typing import Final

from msgspec import Struct

from planner.algebra.construction import has_subquery, volatility
from planner.algebra.event_time import Watermark
from planner.algebra.nodes import Aggregate, Column, ColumnRef, Filter, Join, Project, Relation, Scalar, Scan
from planner.algebra.walk import free_columns, walk
from planner.incremental.methods.interval.unmatched import Alone
from planner.incremental.methods.stream_parts import scan_of
from planner.incremental.time_differences import closed, differences

Watermarks = Mapping[int, Watermark]
NO_WATERMARKS: Final[Watermarks] = {}


class Until(Struct, frozen=True):
    """A row can be joined no more once the watermark of each stream, by its oid, is so many microseconds after the
    row's ``column``, which its stream calls so."""

    column: str
    ages: tuple[tuple[int, int], ...]


class Side(Struct, frozen=True):
    """One side of a join: the part of the plan, with its column of ``time`` if its rows can be joined ``until`` some
    time; the state that keeps them, and a column of it for each of the part's; and what an outer join needs."""

    part: Relation
    until: Until | None
    time: Column | None
    state: str
    columns: tuple[Column, ...]
    alone: Alone | None = None


class IntervalJoin(Struct, frozen=True):
    """A join whose rows are stream ``oid``: its column ``c<n>`` is the n-th of all sides' columns."""

    oid: int
    sides: tuple[Side, ...]
    predicate: Scalar

    @property
    def columns(self) -> tuple[Column, ...]:
        """Those of all sides."""
        return tuple(column for side in self.sides for column in side.part.columns)

    @property
    def sources(self) -> tuple[str, ...]:
        """What its scans call the columns."""
        return tuple(f"c{place}" for place, _ in enumerate(self.columns))

    @property
    def oids(self) -> frozenset[int]:
        """Those of its streams: the joined rows, and rows without partners or with some."""
        known = [side.alone for side in self.sides if side.alone is not None]
        return frozenset((self.oid, *(oid for alone in known for oid in (alone.oid, alone.met))))

    @property
    def inputs(self) -> tuple[int, ...]:
        """The oids of the streams that it reads."""
        return tuple(dict.fromkeys(scan_of(side.part).oid for side in self.sides))

    @property
    def name(self) -> str:
        """The streams' names, for those who read plans."""
        return " join ".join(scan_of(side.part).name for side in self.sides)


class Found(Struct, frozen=True):
    """The interval joins of a plan, and by their oids the groupings of streams that have their latest times."""

    joins: tuple[IntervalJoin, ...] = ()
    latest: Mapping[int, Aggregate] = {}


def untils(streams: Sequence[Relation], parts: Iterable[Scalar], watermarks: Watermarks) -> tuple[Until | None, ...]:
    """Until when rows of each side can be joined; None where that never ends."""
    projects = (item for side in streams for item in walk(side) if isinstance(item, Project))
    outputs = (output for item in projects for output in item.outputs)
    computed = {column: value for column, value in outputs if value != ColumnRef(column)}
    most = closed(differences(parts, computed))
    scans = [scan_of(side) for side in streams]
    return tuple(_until(own, [other for other in scans if other is not own], most, watermarks) for own in scans)


def _until(
    own: Scan, others: Sequence[Scan], most: Mapping[tuple[Column, Column], int], watermarks: Watermarks
) -> Until | None:
    """By the column of a stream that lets its rows leave first."""
    found: list[Until] = []
    for column, source in zip(own.columns, own.sources, strict=True):
        ages: dict[int, int] = {}
        bounds = [min(_bounds(other, column, most, watermarks), default=None) for other in others]
        for other, age in zip(others, bounds, strict=True):
            if age is not None:
                ages[other.oid] = max(age, ages.get(other.oid, age))
        if None not in bounds:
            found.append(Until(source, tuple(ages.items())))
    return min(found, key=lambda item: max(age for _, age in item.ages), default=None)


def _bounds(
    other: Scan, column: Column, most: Mapping[tuple[Column, Column], int], watermarks: Watermarks
) -> Iterator[int]:
    """How long after a column the time of another stream's watermark may be."""
    watermark = watermarks.get(other.oid)
    for mark, source in zip(other.columns, other.sources, strict=True):
        if watermark is not None and source == watermark.column and (mark, column) in most:
            yield most[mark, column]


def time_of(part: Relation, until: Until) -> Column:
    """The column of a part's stream by which its rows leave."""
    scan = scan_of(part)
    return scan.columns[scan.sources.index(until.column)]


def all_combinations(relations: Sequence[Relation]) -> Relation:
    """All combinations of rows."""
    return reduce(lambda one, other: Join("inner", one, other, None), relations)


def is_by_itself(relation: Relation) -> bool:
    """Whether a relation is a stream's rows, filtered and projected by themselves, whenever this is done."""
    node = relation
    while not isinstance(node, Scan):
        if isinstance(node, Filter):
            own = [node.predicate]
        elif isinstance(node, Project):
            own = [value for _, value in node.outputs]
        else:
            return False
        if not all(map(is_steady, own)):
            return False
        node = node.input
    return node.kind == "stream" and not free_columns(relation)


def is_steady(scalar: Scalar) -> bool:
    """Whether an expression reads no other relation, and has the same value whenever it is evaluated."""
    return volatility(scalar) == "immutable" and not has_subquery(scalar)
