"""One query as one Spark job: its inputs go to storage as Parquet, and its rows come back from there.

Owns: the form that a query takes for Spark (``SparkQuery``: scans become snapshots of files, parameters literals), the
job, and that nothing of it stays. Which rows the inputs have is the reader's matter (``executor/queries``), which holds
no lock while the job runs.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

import pyarrow as pa

from catalog.errors import SqlError, unsupported
from catalog.types import INT4
from executor.carriers import packed_schema, unpacked_table
from executor.engine import EngineRefused, EngineUnavailable, Inputs, Job, JobResult
from executor.sources import OwnFiles
from executor.spark.engine import SparkEngine
from executor.storage import ViewStore
from executor.trace.manifest import schema_of
from executor.trace.parquet import read_table
from planner.algebra import Project, Relation, Scan, Snapshot, With
from planner.expression import Column, Literal, Value
from planner.lowering import lowered
from planner.placement import Power
from planner.program import State, Statement
from planner.rules import decorrelate, optimise, with_ordered_joins
from planner.rules.inline_shared import inline_shared
from planner.statistics import Statistics
from planner.walk import replace_parameters, transform, walk

#: What Spark reads a leaf from: files of ours, or those of a foreign table.
Stored = tuple[Path, ...] | OwnFiles

_STATE: Final = "rows"
_HINT: Final = "SET query_engine = 'embedded' runs the query in the server."
#: What a file of rows without columns has.
_NOTHING: Final = Column(0, "__none", INT4)


@dataclass(frozen=True, slots=True)
class Leaf:
    """What a query reads of one relation: the name of its snapshot, and a scan of the columns in use."""

    trace: str
    scan: Scan

    @property
    def rows(self) -> Relation:
        """What gives the leaf's rows."""
        return self.scan if self.scan.columns else Project(self.scan, ((_NOTHING, Literal(1, INT4)),))

    @property
    def names(self) -> list[str]:
        """Names of the file's columns, in the order of those of ``rows``."""
        return list(self.scan.sources) or [_NOTHING.name]


@dataclass(frozen=True, slots=True)
class SparkQuery:
    """A query as Spark gets it."""

    leaves: tuple[Leaf, ...]
    statements: tuple[Statement, ...]
    states: tuple[State, ...]


def spark_relation(relation: Relation, parameters: tuple[Value, ...], statistics: Statistics) -> Relation:
    """A query as Spark runs it: it finds by itself what it computes twice, and joins in the order that it is given."""
    if isinstance(relation, With):
        relation = optimise(inline_shared(relation))
    return lowered(with_ordered_joins(replace_parameters(relation, parameters), statistics))


def spark_query(relation: Relation) -> SparkQuery:
    """The form for Spark of what ``spark_relation`` made."""

    def change(node: object) -> object:
        if isinstance(node, Scan):
            return Snapshot(_trace(node), node.columns, node.sources)
        return node

    leaves = tuple(
        Leaf(_trace(scan), scan) for scan in joined_scans(node for node in walk(relation) if isinstance(node, Scan))
    )
    statement = Statement(_STATE, transform(relation, change))
    return SparkQuery(leaves, (statement,), (State(_STATE, "concatenate", relation.columns, ()),))


def _trace(scan: Scan) -> str:
    return f"q{scan.oid}"


def joined_scans(scans: Iterable[Scan]) -> tuple[Scan, ...]:
    """One scan for each relation, with all columns that some scan of it reads."""
    found: dict[int, Scan] = {}
    for scan in scans:
        found[scan.oid] = _joined(found.get(scan.oid, scan), scan)
    return tuple(found[oid] for oid in sorted(found))


def _joined(known: Scan, scan: Scan) -> Scan:
    """One scan with the columns of both."""
    columns = dict(zip(scan.sources, scan.columns, strict=True)) | dict(zip(known.sources, known.columns, strict=True))
    return Scan(scan.oid, scan.name, scan.kind, tuple(columns.values()), tuple(columns))


class Analytics:
    """Runs queries on Spark. Any number of threads may call at once."""

    def __init__(self, spark: SparkEngine | None, storage: ViewStore) -> None:
        self._spark = spark
        self._storage = storage
        #: Below zero: those of background maintenance are above.
        self._ids = itertools.count(-1, -1)

    def reason(self, query: SparkQuery, time_zone: str) -> str | None:
        """Why Spark does not compute a query; None when it does."""
        return None if self._spark is None else self._spark.supports(query.statements, query.states, True, time_zone)

    @property
    def power(self) -> Power:
        """What Spark has for a query; one core where it is switched off."""
        return Power(1) if self._spark is None else self._spark.power

    def unready(self) -> str | None:
        """Why Spark takes no query now; None when it does."""
        if self._spark is None:
            return "Spark is switched off"
        status = self._spark.status()
        return None if status.state == "ready" else status.reason or f"Spark is {status.state}"

    def require(self, query: SparkQuery, time_zone: str) -> None:
        """Raises 0A000 where Spark does not compute a query, 55000 where it takes none now."""
        unready, reason = self.unready(), self.reason(query, time_zone)
        if reason is not None:
            raise SqlError("0A000", reason, hint=_HINT)
        if unready is not None:
            raise SqlError("55000", f"Spark cannot run the query: {unready}", hint=_HINT)

    @contextmanager
    def job(self) -> Iterator[tuple[int, Path]]:
        """A job's number and the folder of its files, which is gone afterwards."""
        number = next(self._ids)
        try:
            yield number, self._storage.scratch(number)
        finally:
            self._storage.discard_scratch(number)

    def run(
        self,
        number: int,
        query: SparkQuery,
        inputs: Mapping[str, Stored],
        output: Path,
        time_zone: str,
        is_cancelled: Callable[[], bool],
    ) -> pa.Table:
        """The query's rows in order, columns c<id>. Raises 57014 once ``is_cancelled``."""
        assert self._spark is not None
        job = Job(number, query.statements, query.states, Inputs((), inputs), 0, 0, output, time_zone, is_query=True)
        try:
            result = self._run(self._spark, job, is_cancelled)
        except EngineRefused as error:
            raise unsupported("the query on Spark", f"{error} {_HINT}") from None
        except EngineUnavailable as error:
            raise SqlError("58000", f"Spark could not run the query: {error}", hint=_HINT) from None
        paths = result.runs[_STATE]
        assert isinstance(paths, tuple)
        schema = schema_of(query.states[0])
        return unpacked_table(read_table(paths, packed_schema(schema)), schema)

    @staticmethod
    def _run(spark: SparkEngine, job: Job, is_cancelled: Callable[[], bool]) -> JobResult:
        """The job's rows; where Spark has no plan for its subqueries, those of the job with joins in their place."""
        try:
            return spark.run(job, is_cancelled)
        except EngineRefused:
            joined = _unnested(job.statements[0])
            if joined is None or spark.supports((joined,), job.states, True, job.timezone) is not None:
                raise
            return spark.run(replace(job, statements=(joined,)), is_cancelled)


def _unnested(statement: Statement) -> Statement | None:
    """A statement with joins for its subqueries; None where that is the same or not known."""
    try:
        relation = lowered(optimise(decorrelate(statement.relation)))
    except SqlError:
        return None
    return None if relation == statement.relation else replace(statement, relation=relation)
