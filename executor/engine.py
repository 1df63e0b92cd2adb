"""The engine interface: what an engine that runs programs must do, and nothing about how.

Two implementations share only the planner's output: ``executor/embedded`` (DuckDB over Arrow, for work that a client
waits for) and ``executor/spark`` (PySpark in a child process, for what can wait).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol, TypeAlias

import pyarrow as pa
from msgspec import Struct, field

from catalog.objects import Stream
from executor.files.followed_folders import OwnFiles, SourceFile
from planner.algebra.nodes import Relation
from planner.incremental.programs.program import State, Statement


class ArrivedFiles(Struct, frozen=True):
    """Rows of a stream that follows a folder: its files as they are, by the log record that they arrived with (the
    rows' LSN)."""

    stream: Stream
    records: tuple[tuple[int, tuple[SourceFile, ...]], ...]


#: Rows of an interval: an Arrow table (embedded), or Parquet files or files as they are (Spark).
Rows: TypeAlias = pa.Table | tuple[Path, ...] | ArrivedFiles


class Inputs(Struct, frozen=True):
    """What a job's leaves stand for.

    ``deltas``: by the oid of the relation, its changes in the interval, with ``__lsn`` and ``__ordinal`` as int64
    columns. ``traces``: the rows of each trace that statements read, by its name: an Arrow table (embedded), or Parquet
    files (Spark); a query on Spark also reads files of foreign tables in the place of one.
    """

    deltas: Mapping[int, Rows] = field(default_factory=dict)
    traces: Mapping[str, pa.Table | tuple[Path, ...] | OwnFiles] = field(default_factory=dict)


class Job(Struct, frozen=True):
    """Statements of one path to run over one LSN interval (``after`` exclusive, ``upto`` inclusive)."""

    id: int
    statements: tuple[Statement, ...]
    states: tuple[State, ...]
    inputs: Inputs
    after: int
    upto: int
    #: For engines that write: where each target's run goes, by state name.
    output: Path | None = None
    #: The view's TimeZone, which conversions between time zones and local time use.
    timezone: str = "UTC"


class JobResult(Struct, frozen=True):
    """Runs by state name, merged by key within the job: Arrow tables (embedded), or Parquet files (Spark)."""

    runs: Mapping[str, pa.Table | tuple[Path, ...]]
    rows: int  # of input
    seconds: float
    engine_jobs: tuple[int, ...] = ()  # Spark job ids


class Engine(Protocol):
    """Runs jobs. Calls block; the scheduler calls from a worker thread.

    Raises ``catalog.values.errors.SqlError`` for an error of the data (1/0), which becomes the view's value, and
    ``EngineUnavailable`` when the engine itself failed, which makes the caller try another.
    """

    name: str

    def run(self, job: Job) -> JobResult:
        """One job, whole or not at all."""
        ...

    def supports(self, statements: tuple[Statement, ...], states: tuple[State, ...]) -> str | None:
        """None when the engine computes exactly what is asked, else the reason why it cannot."""
        ...


class MemoryEngine(Engine, Protocol):
    """An engine in this process, whose inputs and runs are Arrow tables: what readers wait for is computed by it."""

    def merge(self, state: State, tables: Sequence[pa.Table]) -> pa.Table:
        """The rows of runs merged by the state's key, in the runs' order; columns are called as the first run's."""
        ...

    def query_few(
        self,
        relation: Relation,
        bindings: Mapping[str, Any],
        timezone: str = "UTC",
        owner: object = None,
        parameters: tuple[Any, ...] = (),
    ) -> pa.Table:
        """A relation's rows over bound leaves, of which there are few."""
        ...

    def query_forgiving(self, relation: Relation, bindings: Mapping[str, Any], timezone: str = "UTC") -> pa.Table:
        """The rows of a relation that asks which of its expressions fail (``programs.row_failures``)."""
        ...


class EngineUnavailable(Exception):
    """The engine died, hangs or was never there; its job changed nothing."""


class EngineRefused(EngineUnavailable):
    """The engine has no plan for the job, however often it is asked."""
