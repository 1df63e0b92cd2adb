"""One query as one Spark job: its inputs go to storage as Parquet, and its rows come back from there.

Owns: the form that a query takes for Spark (``SparkQuery``: scans become snapshots of files, parameters literals), the
job, and that nothing of it stays. Which rows the inputs have is the reader's matter (``executor/queries``), which holds
no lock while the job runs.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pyarrow as pa
from msgspec import Struct
from msgspec.structs import replace

from catalog.values.errors import SqlError, unsupported
from catalog.values.times.infinite_dates import require_finite
from catalog.values.types import INT4
from executor.carriers import packed_schema, packed_table, unpacked_table
from executor.core.plans import joined_scans
from executor.engine import EngineRefused, EngineUnavailable, Inputs, Job, JobResult
from executor.files import file_tables
from executor.files.followed_folders import OwnFiles
from executor.spark.engine import SparkEngine
from executor.traces.manifest import schema_of
from executor.traces.parquet import read_table, write_batches
from executor.views.storage import ViewStore
from planner.algebra.nodes import Column, Literal, Project, Relation, Scan, Snapshot, Value, With
from planner.algebra.walk import replace_parameters, transform, walk
from planner.incremental.programs.program import State, Statement
from planner.lowering import lowered
from planner.lowering.outer_values import uses_equal_values
from planner.placement import Power
from planner.rules import optimise, unnest, with_ordered_joins
from planner.rules.errors.guard_subqueries import may_fail
from planner.rules.subqueries.inline_shared import inline_shared
from planner.statistics import Statistics, TableStatistics

if TYPE_CHECKING:
    from executor.spark.printing import Printed

#: What Spark reads a leaf from: files of ours, or those of a foreign table.
Stored = tuple[Path, ...] | OwnFiles

#: What says that Spark did not run a query, which the embedded engine may.
SPARK_FAILED: Final = ("0A000", "55000", "58000")
_STATE: Final = "rows"
_HINT: Final = "SET query_engine = 'embedded' runs the query in the server."
#: Rows of an input's file.
_ROWS_OF_FILE: Final = 1 << 20
#: What a file of rows without columns has.
_NOTHING: Final = Column(0, "__none", INT4)


class Leaf(Struct, frozen=True):
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


class SparkQuery(Struct, frozen=True):
    """A query as Spark gets it, made once for a statement and handed on.

    ``relation`` has its joins in the order that ``statistics`` of its inputs suggest; ``printed`` is what the driver
    gets, or why Spark does not compute it.
    """

    relation: Relation
    statistics: Statistics
    leaves: tuple[Leaf, ...]
    statement: Statement
    state: State
    time_zone: str
    printed: Printed | str

    def values_of_kernel(self, rows: Mapping[int, int]) -> float:
        """How many values the embedded engine's kernel computes, about, by the rows that are read of relations."""
        if isinstance(self.printed, str) or not self.printed.functions:
            return 0.0
        from executor.spark.printing import values_of

        found: dict[int | str, TableStatistics] = {}
        for leaf in self.leaves:
            oid = leaf.scan.oid
            table = self.statistics.get(oid) or (TableStatistics(rows[oid]) if oid in rows else None)
            if table is not None:
                found[leaf.trace] = table
        return values_of(self.printed.relations, found)


def _spark_relation(relation: Relation, parameters: tuple[Value, ...], statistics: Statistics) -> Relation:
    """A query as Spark runs it: it finds by itself what it computes twice, and joins in the order that it is given.

    What it makes of a subquery asks for values that no row needs, and once for values that are equal and yet others, so
    that subqueries that may raise, or use such values, are joins of ours."""
    if isinstance(relation, With):
        relation = optimise(inline_shared(relation))
    relation = replace_parameters(relation, parameters)
    if any(may_fail(node) or uses_equal_values(node) for node in walk(relation)):
        relation = _with_joins(relation) or relation
    return lowered(with_ordered_joins(relation, statistics))


def _with_joins(relation: Relation) -> Relation | None:
    """An equal relation with joins for its subqueries; None where no rule makes them."""
    try:
        return optimise(unnest(relation))
    except SqlError:
        return None


def _over_files(relation: Relation) -> Statement:
    """The statement that reads files for scans."""

    def change(node: object) -> object:
        return Snapshot(trace_of(node), node.columns, node.sources) if isinstance(node, Scan) else node

    return Statement(_STATE, transform(relation, change))


def trace_of(scan: Scan) -> str:
    """What stands for a relation's rows in files."""
    return f"q{scan.oid}"


def leaves_of(relation: Relation) -> tuple[Leaf, ...]:
    """What a plan reads, one leaf for each relation."""
    scans = joined_scans(node for node in walk(relation) if isinstance(node, Scan))
    return tuple(Leaf(trace_of(scan), scan) for scan in scans)


def write_input(table: pa.Table, folder: Path, name: str) -> Iterator[Path]:
    """Writes a relation's rows into files, of which Spark reads some in each slice of a query. Raises 0A000 for an
    infinite date or timestamp."""
    require_finite(table.to_batches(), "a query on Spark")
    for first in range(0, max(1, table.num_rows), _ROWS_OF_FILE):
        path, part = folder / f"{name}-{first}.parquet", packed_table(table.slice(first, _ROWS_OF_FILE))
        write_batches(path, part.schema, part.to_batches(), synced=False)  # it is gone when the query has ended
        yield path


def write_files(found: OwnFiles, leaf: Leaf, folder: Path, is_cancelled: Callable[[], bool]) -> Iterator[Path]:
    """Converts the files of a foreign table that Spark does not read as they are, each into one."""
    names = leaf.scan.sources

    def carried(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            require_finite((batch,), "a query on Spark")
            yield from packed_table(pa.Table.from_batches([batch])).to_batches()

    schema = packed_schema(file_tables.schema_of(found, names))
    for place in range(len(found.files)):
        path = folder / f"{leaf.trace}-{place}.parquet"
        write_batches(path, schema, carried(file_tables.batches_of(found, place, names, is_cancelled)), synced=False)
        yield path


class Analytics:
    """Runs queries on Spark. Any number of threads may call at once."""

    def __init__(self, spark: SparkEngine | None, storage: ViewStore) -> None:
        self.spark = spark
        self._storage = storage
        #: Below zero: those of background maintenance are above.
        self._ids = itertools.count(-1, -1)

    def query(
        self, relation: Relation, parameters: tuple[Value, ...], statistics: Statistics, time_zone: str
    ) -> SparkQuery | None:
        """An optimised query for Spark, by what is known of its inputs now; None where Spark is switched off."""
        if self.spark is None:
            return None
        relation = _spark_relation(relation, parameters, statistics)
        statement = _over_files(relation)
        state = State(_STATE, "concatenate", relation.columns, ())
        printed = self.spark.printed_query(statement, state, time_zone)
        if isinstance(printed, str):
            joined = self._unnested(self.spark, statement, state, time_zone)
            statement, printed = joined or (statement, printed)
        return SparkQuery(relation, statistics, leaves_of(relation), statement, state, time_zone, printed)

    @property
    def power(self) -> Power:
        """What Spark has for a query; one core where it is switched off."""
        return Power(1) if self.spark is None else self.spark.power

    def unready(self) -> str | None:
        """Why Spark takes no query now; None when it does."""
        if self.spark is None:
            return "Spark is switched off"
        status = self.spark.status()
        return None if status.state == "ready" else status.reason or f"Spark is {status.state}"

    def require(self, query: SparkQuery | None) -> SparkQuery:
        """The query. Raises 0A000 where Spark does not compute it, 55000 where it takes none now."""
        if query is not None and isinstance(query.printed, str):
            raise SqlError("0A000", query.printed, hint=_HINT)
        unready = self.unready()
        if query is None or unready is not None:
            raise SqlError("55000", f"Spark cannot run the query: {unready}", hint=_HINT)
        return query

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
        is_cancelled: Callable[[], bool],
    ) -> pa.Table:
        """The query's rows in order, columns c<id>. Raises 57014 once ``is_cancelled``."""
        paths = self.write(number, query, inputs, output, is_cancelled)
        schema = schema_of(query.state)
        return unpacked_table(read_table(paths, packed_schema(schema)), schema)

    def write(
        self,
        number: int,
        query: SparkQuery,
        inputs: Mapping[str, Stored],
        output: Path,
        is_cancelled: Callable[[], bool],
    ) -> tuple[Path, ...]:
        """Writes the result to files, whose columns are carried as Spark carries them."""
        assert self.spark is not None
        states = (query.state,)
        job = Job(number, (query.statement,), states, Inputs({}, inputs), 0, 0, output, query.time_zone)
        try:
            result = self._run(self.spark, query, job, is_cancelled)
        except EngineRefused as error:
            raise unsupported("the query on Spark", f"{error} {_HINT}") from None
        except EngineUnavailable as error:
            raise SqlError("58000", f"Spark could not run the query: {error}", hint=_HINT) from None
        paths = result.runs[_STATE]
        assert isinstance(paths, tuple)
        return paths

    def _run(self, spark: SparkEngine, query: SparkQuery, job: Job, is_cancelled: Callable[[], bool]) -> JobResult:
        """The job's rows; where Spark has no plan for its subqueries, those of the job with joins in their place."""
        assert not isinstance(query.printed, str), "require() comes first"
        try:
            return spark.run_query(job, query.printed, is_cancelled)
        except EngineRefused:
            joined = self._unnested(spark, query.statement, query.state, query.time_zone)
            if joined is None:
                raise
            statement, printed = joined
            return spark.run_query(replace(job, statements=(statement,)), printed, is_cancelled)

    @staticmethod
    def _unnested(
        spark: SparkEngine, statement: Statement, state: State, time_zone: str
    ) -> tuple[Statement, Printed] | None:
        """The statement with joins for its subqueries; None where that changes nothing, is not known or is refused,
        too."""
        relation = _with_joins(statement.relation)
        if relation is None or relation == statement.relation:
            return None
        joined = replace(statement, relation=lowered(relation))
        printed = spark.printed_query(joined, state, time_zone)
        return None if isinstance(printed, str) else (joined, printed)
