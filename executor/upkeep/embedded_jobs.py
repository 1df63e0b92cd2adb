"""Background jobs on the embedded engine: one path each.

Owns: ``EmbeddedJobs``. What readers have computed already is committed as it is; the rest is computed.
"""

from __future__ import annotations

from collections.abc import Iterable

from catalog.objects import qualified
from catalog.values.errors import SqlError
from executor.commit.files import disk_error
from executor.core.core import Core
from executor.upkeep.commits import Retries, commit
from executor.upkeep.jobs import JobList, JobRecord
from executor.upkeep.paths import PathTask, Sources, upper_lsn

#: Why a job came to nothing.
DROPPED = "the view was dropped meanwhile"


class EmbeddedJobs:
    """Runs paths on the embedded engine and records what it did."""

    def __init__(self, core: Core, jobs: JobList, retries: Retries) -> None:
        self._core, self._jobs, self._retries = core, jobs, retries

    def run(self, sources: Sources, task: PathTask, detail: str = "") -> None:
        """Maintains a path up to the newest row that is on the disk; ``detail`` says why this engine does it."""
        if self.commit_pending(sources, task):
            return
        after, upto = task.progress.durable, upper_lsn(self._core)
        if after >= upto:  # the other queue has done it
            return
        upto = sources.cut(after, upto)
        task.runtime.claim(task.progress, upto)
        record = begin(self._jobs, sources, [task], "embedded", after, upto, detail)
        policy = task.runtime.view.on_error  # which may be another one when the job fails
        try:
            tables = task.runtime.run_path(task.progress.path, after, upto, policy)
            end(self._jobs, record, [commit(self._core, task, after, upto, tables)], detail)
        except (SqlError, OSError) as error:
            if not self._core.is_live(task.runtime):
                self._jobs.end(record, "void", DROPPED)
                return
            known = error if isinstance(error, SqlError) else disk_error(error, "maintain a view")
            self._retries.failed(task, known, upto, policy)
            self._jobs.end(record, "failed", f"{detail}; {known}" if detail else str(known))

    def commit_pending(self, sources: Sources, task: PathTask) -> bool:
        """Commits what readers have computed; False where they have computed nothing that is on the disk."""
        pending = task.runtime.take_pending(task.progress)
        if pending is None or pending.upto > self._core.sequencer.durable:
            return False
        detail = "computed by readers"
        record = begin(self._jobs, sources, [task], "embedded", pending.after, pending.upto, detail)
        done = commit(self._core, task, pending.after, pending.upto, pending.tables)
        end(self._jobs, record, [done], detail)
        return True


def begin(
    jobs: JobList, sources: Sources, tasks: Iterable[PathTask], engine: str, after: int, upto: int, detail: str = ""
) -> JobRecord:
    """Records that a job begins."""
    names = (qualified(task.runtime.view) for task in tasks)
    return jobs.begin(names, sources.name, engine, sources.rows(after, upto), after, upto, detail)


def end(
    jobs: JobList, record: JobRecord, committed: Iterable[bool], detail: str, engine_jobs: tuple[int, ...] = ()
) -> None:
    """Records that a job has ended, with which of its paths were committed."""
    if any(committed):
        jobs.end(record, "done", detail, engine_jobs)
    else:
        jobs.end(record, "void", DROPPED, engine_jobs)
