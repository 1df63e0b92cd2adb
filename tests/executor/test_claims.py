"""Concurrent background jobs, readers and drops: rows that a job has claimed are neither lost nor counted twice."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pyarrow as pa
import pytest

from catalog.values.errors import SqlError
from executor.core.core import Core
from executor.database.database import Database
from executor.options import Options
from executor.spark.engine import SparkEngine
from executor.upkeep import maintenance as maintenance_module
from executor.upkeep.commits import Retries
from executor.upkeep.embedded_jobs import EmbeddedJobs
from executor.upkeep.jobs import JobList, JobRecord
from executor.upkeep.paths import PathTask, Sources, adjacent
from executor.upkeep.spark_jobs import SparkJobs
from executor.views import runtime as runtime_module
from executor.views.progress import Progress
from executor.views.runtime import ViewRuntime
from tests.executor.client import Client

STREAM = "CREATE FOREIGN TABLE s (k int, n int) SERVER stream"
VIEW = "CREATE VIEW v AS SELECT k, sum(n) AS n FROM s GROUP BY k"


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    """A database whose background work the test runs."""
    opened = Database(Options(tmp_path, spark_enabled=False))
    client = Client(opened)
    client.run(STREAM)
    client.run(VIEW)
    yield opened
    opened.close()


def path_of(database: Database) -> tuple[ViewRuntime, Progress]:
    """The one view and its one path."""
    (runtime,) = database.core.runtimes()
    return runtime, runtime.paths[0]


def insert(database: Database) -> int:
    """Inserts one row; returns its LSN."""
    Client(database).run("INSERT INTO s VALUES (1, 1)")
    return database.core.sequencer.visible


def total(database: Database) -> object:
    """The sum that a reader sees."""
    return Client(database).run("SELECT n FROM v")


def commit(database: Database, after: int, upto: int, tables: dict[str, pa.Table]) -> None:
    """Commits as a background job does at its end."""
    runtime, progress = path_of(database)
    stored = database.core.storage.commit(runtime.view.oid, progress.path.id, after, upto, tables)
    assert stored is not None
    runtime.absorb(progress, upto, stored)
    database.frontiers.release()


def test_readers_cut_their_runs_where_a_job_ends(database: Database) -> None:
    """So a job's run replaces whole runs of readers, and the rest can be committed without computing it again."""
    runtime, progress = path_of(database)
    start = progress.durable
    claimed = insert(database)
    runtime.claim(progress, claimed)
    last = insert(database)
    assert total(database) == [(2,)]
    assert [(run.after, run.upto) for run in progress.pending] == [(start, claimed), (claimed, last)]
    commit(database, start, claimed, runtime.run_path(progress.path, start, claimed))
    assert [(run.after, run.upto) for run in progress.pending] == [(claimed, last)]
    pending = runtime.take_pending(progress)
    assert pending is not None
    commit(database, pending.after, pending.upto, pending.tables)
    assert (progress.durable, progress.pending) == (last, [])
    assert total(database) == [(2,)]


def test_background_work_waits_for_readers_that_do_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runtime_module, "MANY_ROWS", 1)
    with closing(Database(Options(tmp_path, spark_enabled=False, maintenance_rows=1))) as opened:
        Client(opened).run(f"{STREAM}; {VIEW}")
        runtime, progress = path_of(opened)
        insert(opened)
        assert total(opened) == [(1,)]
        assert (runtime.readers.is_busy, runtime.readers.last > 0) == (False, True)
        runtime.readers.is_busy = True
        assert not opened.maintenance.round("embedded")
        assert opened.maintenance.jobs.all()[-1].status == "postponed"
        runtime.readers.is_busy, runtime.readers.last = False, -math.inf
        assert opened.maintenance.round("embedded")
        assert progress.durable == opened.core.sequencer.visible
        assert total(opened) == [(1,)]


def test_a_round_goes_on_where_another_queue_has_committed_what_it_looks_at(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The rows behind the frontier that it has seen may be gone then."""
    runtime, progress = path_of(database)
    start = progress.durable
    last = insert(database)

    def overtaken(core: Core, sources: Sources, task: PathTask, pressed: bool) -> bool:
        if progress.durable == start:
            commit(database, start, last, runtime.run_path(progress.path, start, last))
        return sources.rows(start, last) > 0

    monkeypatch.setattr(maintenance_module, "is_due", overtaken)
    assert not database.maintenance.round("embedded")
    with pytest.raises(SqlError, match="overwritten"):
        database.maintenance.round("embedded")
    assert total(database) == [(1,)]


@pytest.mark.slow
def test_many_runs_of_readers_are_merged_on_both_sides_of_a_claim(database: Database) -> None:
    runtime, progress = path_of(database)
    start = progress.durable
    for _ in range(20):
        insert(database)
        total(database)
    claimed = database.core.sequencer.visible
    runtime.claim(progress, claimed)
    for _ in range(20):
        last = insert(database)
        total(database)
    bounds = [(run.after, run.upto) for run in progress.pending]
    assert bounds[0] == (start, claimed)
    assert len(bounds) < 20
    commit(database, start, claimed, runtime.run_path(progress.path, start, claimed))
    assert progress.pending[0].after == claimed
    assert progress.pending[-1].upto == last
    assert total(database) == [(40,)]


def test_a_reader_amid_a_committed_run_goes_on_from_storage(database: Database) -> None:
    runtime, progress = path_of(database)
    start = progress.durable
    insert(database)
    assert total(database) == [(1,)]
    upto = insert(database)
    commit(database, start, upto, runtime.run_path(progress.path, start, upto))
    assert (progress.reached, progress.pending) == (upto, [])
    assert total(database) == [(2,)]
    insert(database)
    assert total(database) == [(3,)]


@pytest.mark.slow
def test_what_readers_computed_is_committed_and_not_computed_again(database: Database) -> None:
    insert(database)
    total(database)
    _, progress = path_of(database)
    database.maintenance.start()
    while progress.durable < database.core.sequencer.visible:
        database.core.sequencer.flush().wait()
    while not (jobs := [job for job in database.maintenance.jobs.all() if job.status == "done"]):
        database.core.sequencer.flush().wait()
    assert [(job.detail, job.rows) for job in jobs] == [("computed by readers", 1)]


def test_what_arrives_while_readers_work_is_committed_is_no_reason_for_a_job(database: Database) -> None:
    """A Spark job would take all cores; the rows become due once there are more of them, or after a while."""
    runtime, progress = path_of(database)
    sources = Sources(tuple(database.core.streams.values()))
    jobs, retries = JobList(), Retries()
    spark = SparkEngine(database.core.options.server_directory / "spark")
    spark_jobs = SparkJobs(database.core, spark, jobs, retries, EmbeddedJobs(database.core, jobs, retries))
    insert(database)
    total(database)
    upto = database.core.sequencer.visible
    insert(database)
    task = PathTask(runtime, progress)
    assert spark_jobs.is_done_by_readers(sources, task, pressed=False)
    assert progress.durable == upto
    assert not spark_jobs.is_done_by_readers(sources, task, pressed=False)  # readers had no runs
    total(database)
    insert(database)
    assert not spark_jobs.is_done_by_readers(sources, task, pressed=True)  # writers wait for the rest
    assert total(database) == [(3,)]


def test_the_interval_of_a_dropped_view_is_void(database: Database) -> None:
    runtime, progress = path_of(database)
    start, upto = progress.durable, insert(database)
    tables = runtime.run_path(progress.path, start, upto)
    Client(database).run("DROP VIEW v")
    assert not database.core.is_live(runtime)
    assert database.core.storage.commit(runtime.view.oid, progress.path.id, start, upto, tables) is None


def test_a_job_of_a_view_that_is_dropped_while_it_looks_at_rows_that_fail_is_void(database: Database) -> None:
    """Such a job reads what the view has left out before, which goes with the view."""
    client = Client(database)
    client.run("DROP VIEW v")
    client.run("CREATE VIEW v WITH (on_error = 'skip') AS SELECT k, sum(6 / n) AS n FROM s GROUP BY k")
    runtime, progress = path_of(database)
    client.run("INSERT INTO s VALUES (1, 0), (1, 2)")
    sources, jobs = Sources(tuple(database.core.streams.values())), JobList()
    client.run("DROP VIEW v")
    EmbeddedJobs(database.core, jobs, Retries()).run(sources, PathTask(runtime, progress))
    assert [record.status for record in jobs.all()] == ["void"]


def test_a_job_that_ends_is_among_those_that_have_or_run() -> None:
    """This holds also if the job ends during the look."""
    jobs = JobList()

    class Ending(dict[int, JobRecord]):
        def copy(self) -> dict[int, JobRecord]:
            jobs.end(record, "done")
            return super().copy()

    jobs._running = Ending()
    record = jobs.begin(["v"], "s", "embedded", 1, 0, 1)
    assert [job.status for job in jobs.all()] == ["done"]


def test_paths_between_whose_frontiers_no_row_lies_share_a_job(database: Database) -> None:
    client, sources = Client(database), Sources(tuple(database.core.streams.values()))
    for name in ("w", "x"):
        client.run(VIEW.replace("VIEW v", f"VIEW {name}"))
    insert(database)
    client.run(VIEW.replace("VIEW v", "VIEW y"))
    tasks = [PathTask(runtime, runtime.paths[0]) for runtime in database.core.runtimes()]
    assert len({task.progress.durable for task in tasks}) == 4
    groups = adjacent(sources, tasks[::-1])
    assert [[task.runtime.view.name for task in group] for group in groups] == [["v", "w", "x"], ["y"]]
