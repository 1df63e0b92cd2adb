"""Background jobs on Spark: one for all paths of the same inputs between whose frontiers no row lies.

Owns: ``SparkJobs``: how an interval's rows reach Spark (sealed into a Parquet file, or as the files of a followed
folder), and what happens to paths that Spark could not maintain.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path

from msgspec import Struct

from catalog.values.errors import SqlError
from executor.core.core import Core
from executor.engine import ArrivedFiles, EngineUnavailable, Inputs, Job, JobResult, Rows
from executor.files.arrived_files import FileFeed
from executor.spark.engine import SparkEngine
from executor.streams.runtime import StreamRuntime
from executor.traces.layout import LSN, ORDINAL
from executor.traces.parquet import write_table
from executor.traces.sealed import seal
from executor.upkeep.commits import Retries, commit
from executor.upkeep.embedded_jobs import DROPPED, EmbeddedJobs, begin, end
from executor.upkeep.jobs import JobList, JobRecord
from executor.upkeep.paths import PathTask, Sources, adjacent, is_due, upper_lsn
from executor.views.failure import is_of_the_rows
from planner.algebra.nodes import Delta
from planner.algebra.walk import walk
from planner.incremental.programs.program import State, Statement


class Interval(Struct, frozen=True):
    """The LSNs of a job with this number: ``after`` exclusive, ``upto`` inclusive."""

    job: int
    after: int
    upto: int


class SparkJobs:
    """Runs paths on Spark; what Spark cannot do, the embedded engine does."""

    def __init__(self, core: Core, spark: SparkEngine, jobs: JobList, retries: Retries, embedded: EmbeddedJobs) -> None:
        self._core, self._spark, self._jobs = core, spark, jobs
        self._retries, self._embedded = retries, embedded

    def can_maintain(
        self, time_zone: str, statements: tuple[Statement, ...], states: tuple[State, ...]
    ) -> tuple[bool, str]:
        """Whether Spark can maintain a path of a view of this time zone now, or why not."""
        if time_zone != "UTC":
            return False, f"Spark's time zone is UTC, the view's is {time_zone}"
        status = self._spark.status()
        if status.state in ("absent", "failed"):
            return False, f"Spark is {status.state}: {status.detail}"
        reason = self._spark.supports(statements, states)
        return reason is None, reason or ""

    def run(self, sources: Sources, tasks: Sequence[PathTask], pressed: bool) -> None:
        """Maintains paths up to the newest row that is on the disk."""
        left = [task for task in tasks if not self.is_done_by_readers(sources, task, pressed)]
        upto = upper_lsn(self._core)
        for group in adjacent(sources, [task for task in left if self._core.is_live(task.runtime)]):
            after = group[-1].progress.durable
            if sources.rows(after, upto):
                cut = sources.cut(after, upto)
                for end, tasks in _by_end(group, after, cut):
                    self._run_part(sources, tasks, after, end, cut)

    def _run_part(self, sources: Sources, tasks: list[PathTask], after: int, end: int, upto: int) -> None:
        """Maintains paths up to ``end``; where it is a change of tables that ends the interval so soon that it has few
        rows, the embedded engine takes the rest, too."""
        if sources.rows(after, end) < min(self._core.options.maintenance_rows, sources.rows(after, upto)):
            for task in tasks:
                self._embedded.run(sources, task, "tables change between the rows that meet them")
        else:
            self._run_group(sources, tasks, end)

    def is_done_by_readers(self, sources: Sources, task: PathTask, pressed: bool) -> bool:
        """Whether committing what readers have computed leaves nothing that is due: the few rows that arrived meanwhile
        are no reason for a job, which takes all cores for a second."""
        if self._core.engine_setting(task.runtime.view) == "spark":  # the user wants Spark's work
            return False
        return self._embedded.commit_pending(sources, task) and not is_due(self._core, sources, task, pressed)

    def _run_group(self, sources: Sources, group: list[PathTask], upto: int) -> None:
        for task in group:
            task.runtime.claim(task.progress, upto)
        frontiers = [task.progress.durable for task in group]
        after = max(frontiers)  # no row lies between the others and it
        record = begin(self._jobs, sources, group, "spark", after, upto)
        try:
            result = self._run_job(sources, group, Interval(record.id, after, upto))
            committed = [
                commit(self._core, task, own, upto, _runs(result, task))
                for task, own in zip(group, frontiers, strict=True)
            ]
            end(self._jobs, record, committed, "", result.engine_jobs)
        except (EngineUnavailable, SqlError, OSError) as error:
            self._instead_of_spark(sources, group, record, error)
        finally:
            self._core.storage.discard_scratch(record.id)

    def _instead_of_spark(self, sources: Sources, group: list[PathTask], record: JobRecord, error: Exception) -> None:
        """What Spark could not do the embedded engine does, unless it cannot either or a view was dropped."""
        if not all(self._core.is_live(task.runtime) for task in group):
            self._jobs.end(record, "void", DROPPED)  # those that are left are due again
            return
        self._jobs.end(record, "failed", str(error))
        reads_files = any(isinstance(item.feed, FileFeed) for item in sources.streams)
        for task in group:
            if isinstance(error, SqlError) and reads_files and not is_of_the_rows(error):
                self._retries.later(task)
            else:
                self._embedded.run(sources, task, f"instead of Spark: {error}")

    def _run_job(self, sources: Sources, group: list[PathTask], interval: Interval) -> JobResult:
        parts = [task.scoped for task in group]
        statements = tuple(chain.from_iterable(found for found, _ in parts))
        states = tuple(chain.from_iterable(found for _, found in parts))
        output = self._core.storage.scratch(interval.job)
        statics = dict(chain.from_iterable(self._statics(task, interval, output) for task in group))
        with contextlib.ExitStack() as sealed:
            deltas = {
                item.stream.oid: sealed.enter_context(self._rows(item, interval, _columns(statements, item)))
                for item in sources.streams
            }
            inputs = Inputs(deltas, statics)
            return self._spark.run(Job(interval.job, statements, states, inputs, interval.after, interval.upto, output))

    def _statics(self, task: PathTask, interval: Interval, folder: Path) -> Iterator[tuple[str, tuple[Path, ...]]]:
        """The files of a path's statics by the names that they have in the job; those that rows meet as of their own
        LSNs are written to a folder."""
        definition = task.runtime.definition
        kept = self._core.storage.static_files(task.runtime.view.oid)
        past = task.runtime.runner.past_statics(task.progress.path, interval.upto)
        for own, scoped in zip(definition.program.statics, definition.scoped.statics, strict=True):
            if own.name in past:
                file = folder / f"{scoped.name}.parquet"
                write_table(file, past[own.name])
                yield scoped.name, (file,)
            elif own.name in kept:
                yield scoped.name, kept[own.name]

    @contextlib.contextmanager
    def _rows(self, stream: StreamRuntime, interval: Interval, names: list[str]) -> Iterator[Rows]:
        """An interval's rows of a stream, as Spark reads them."""
        after, upto = interval.after, interval.upto
        if isinstance(stream.feed, FileFeed) and stream.feed.are_exact(after, upto):
            records = tuple((item.place, item.files) for item in stream.feed.files(after, upto))
            yield ArrivedFiles(stream.stream, records)
            return
        file = self._sealed(stream, after, upto, names)
        try:
            yield (file,)
        finally:
            file.unlink(missing_ok=True)

    def _sealed(self, stream: StreamRuntime, after: int, upto: int, names: list[str]) -> Path:
        """Some columns of an interval's rows in a file."""
        folder = self._core.storage.stream_folder(stream.stream.oid)
        if not isinstance(stream.feed, FileFeed):
            delta = stream.feed.delta(after, upto).select(names)
            return seal(folder, after, upto, delta.schema, delta.to_batches())
        tables = (table.select(names) for table in stream.feed.tables(after, upto))
        first = next(tables)
        batches = (batch for table in chain((first,), tables) for batch in table.to_batches())
        return seal(folder, after, upto, first.schema, batches)


def _by_end(group: list[PathTask], after: int, upto: int) -> list[tuple[int, list[PathTask]]]:
    """The paths of a group by the end of the first part of an interval within which their rows meet the same tables."""
    found: dict[int, list[PathTask]] = {}
    for task in group:
        try:
            end = task.runtime.runner.first_part(task.progress.path, after, upto)
        except SqlError:  # the embedded engine meets it, too, and says what becomes of it
            end = after
        found.setdefault(end, []).append(task)
    return sorted(found.items())


def _columns(statements: Sequence[Statement], stream: StreamRuntime) -> list[str]:
    """The stream's columns that statements read, in the stream's order."""
    used = {
        source
        for statement in statements
        for item in walk(statement.relation)
        if isinstance(item, Delta) and item.oid == stream.stream.oid
        for source in item.sources
    }
    return [name for name in (*stream.schema.names, LSN, ORDINAL) if name in used or name == LSN]


def _runs(result: JobResult, task: PathTask) -> dict[str, tuple[Path, ...]]:
    """The files of a path's runs, by state name."""
    _, scoped = task.scoped
    return {own.name: _files(result, state.name) for own, state in zip(task.states, scoped, strict=True)}


def _files(result: JobResult, state: str) -> tuple[Path, ...]:
    run = result.runs[state]
    assert isinstance(run, tuple), "Spark writes files"
    return run
