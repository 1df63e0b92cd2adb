"""Spark as an engine: it prints a job's statements, sends them with Parquet paths to the driver, and returns runs.

Owns: the translation between ``executor.engine`` and the driver's requests. Arrow inputs are refused, since rows reach
Spark through storage only and never through the server.
"""

from __future__ import annotations

import contextlib
import logging
import math
import shutil
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from msgspec.structs import asdict

from catalog.values.errors import SqlError
from executor.engine import ArrivedFiles, EngineRefused, EngineUnavailable, Job, JobResult
from executor.files.followed_folders import Owner, OwnFiles, SourceFile, stored_columns
from executor.spark.failures import to_exception
from executor.spark.frames import Frame
from executor.spark.settings import SparkSettings, cores, heap
from executor.spark.supervisor import SparkProcess, Status
from planner.cancellation import cancelled
from planner.incremental.programs.program import State, Statement
from planner.placement import Power

if TYPE_CHECKING:
    from executor.spark.printing import Printed, View

_LOGGER = logging.getLogger(__name__)
_CACHED: Final = 256
#: Spark plans the files of each partition apart.
_MOST_PARTITIONS: Final = 256
#: Seconds between looks whether a job was cancelled.
_LOOK: Final = 0.1
#: Seconds that Spark has to end a job that was cancelled; one that it plans hears nothing, as does a JVM that hangs.
_HEARS: Final = 0.7
#: Seconds between two requests to end a job that has no reader any more.
_AGAIN: Final = 5.0


def _log(status: Status) -> None:
    """Says when Spark comes up, goes, and why it is not there."""
    level = logging.WARNING if status.state in ("failed", "absent") else logging.INFO
    before = "Spark is ready: " if status.state == "ready" else ""
    after = "; the embedded engine works alone" if status.state == "absent" else ""
    _LOGGER.log(level, "%s%s%s", before, status.detail, after)


class SparkEngine:
    """Runs jobs in the driver process. Calls block; any thread may call."""

    name = "spark"

    def __init__(
        self,
        directory: Path,
        master: str = "local[*]",
        driver_memory: str = "2g",
        job_timeout: float = 600.0,
        extra: Mapping[str, str] | None = None,
    ) -> None:
        """``directory`` takes Spark's scratch files and log; ``extra`` are Spark settings."""
        self.process = SparkProcess(
            SparkSettings(directory.resolve(), master, driver_memory, job_timeout, extra=extra or {}), notify=_log
        )
        self._lock = threading.Lock()
        #: By identity of the statements (which are kept, so that it stays theirs): the printed form or the reason.
        self._paths: OrderedDict[tuple[int, ...], tuple[object, Printed | str]] = OrderedDict()

    def start(self) -> None:
        """Begins to start Spark in the background."""
        self.process.start()

    def close(self) -> None:
        """Ends the driver and its JVM; running jobs fail with EngineUnavailable."""
        self.process.stop()

    @property
    def settings(self) -> SparkSettings:
        """How the driver is started."""
        return self.process.settings

    @property
    def power(self) -> Power:
        """What Spark has for a query; of the memory of a cluster nothing is known."""
        return Power(cores(self.settings), heap(self.settings))

    def status(self) -> Status:
        """How the driver is."""
        return self.process.status

    def supports(self, statements: tuple[Statement, ...], states: tuple[State, ...]) -> str | None:
        """None when Spark computes exactly what a view's path asks, else the reason why it does not."""
        printed = self._known(statements, states)
        return printed if isinstance(printed, str) else None

    def printed_query(self, statement: Statement, state: State, time_zone: str) -> Printed | str:
        """A query by itself in a session's time zone, or why Spark does not compute it.

        It may use more than a view's path (``printing.query_dialect``). The caller keeps the text, since only the
        caller has the statement.
        """
        from executor.spark.printing import print_query

        lacks = self.status().kernel
        found = print_query(statement, state, not self.settings.connect, not lacks, time_zone)
        return f"{found}, for whose kernel {lacks}" if lacks and isinstance(found, str) else found

    def run(self, job: Job) -> JobResult:
        """One job. Raises SqlError for an error of the data, EngineUnavailable when Spark failed or cannot do it."""
        return self._request(job, self._path(job))

    def run_query(self, job: Job, printed: Printed, is_cancelled: Callable[[], bool]) -> JobResult:
        """``run`` of a query that is printed; ``is_cancelled`` is asked now and then, and ends it with 57014."""
        return self._request(job, printed, is_cancelled)

    def _path(self, job: Job) -> Printed:
        printed = self._known(job.statements, job.states)
        if isinstance(printed, str):
            raise EngineUnavailable(printed)
        return printed

    def _request(self, job: Job, printed: Printed, is_cancelled: Callable[[], bool] | None = None) -> JobResult:
        assert job.output is not None, "Spark writes its runs"
        number, answered = self.process.submit(
            "run",
            job=job.id,
            inputs=[_input(view, job) for view in printed.views],
            loops=printed.loops,
            statements=[{"state": state, "sql": sql} for state, sql in printed.statements],
            functions=[asdict(function) for function in printed.functions],
            output=str(job.output.resolve()),
        )
        answer = (
            answered.result() if is_cancelled is None else self._watched(number, answered, is_cancelled, job.output)
        )
        if "error" in answer:
            raise to_exception(answer["error"])
        runs = {state: tuple(map(Path, files)) for state, files in answer["runs"].items()}
        return JobResult(runs, answer["rows"], answer["seconds"], tuple(answer["jobs"]))

    def _watched(self, number: int, answered: Future[Frame], is_cancelled: Callable[[], bool], output: Path) -> Frame:
        """A request's answer; cancelled again and again, since Spark ends only those of its jobs that have begun.

        Raises 57014 where it was cancelled and does not end; it is then cancelled until it does."""
        deadline = math.inf
        while True:
            try:
                return answered.result(_LOOK)
            except TimeoutError:
                if is_cancelled():
                    self.process.cancel(number)
                    deadline = min(deadline, time.monotonic() + _HEARS)
                if time.monotonic() >= deadline:
                    break
        threading.Thread(target=self._end, args=(number, answered, output), name="spark-cancel", daemon=True).start()
        raise cancelled()

    def _end(self, number: int, answered: Future[Frame], output: Path) -> None:
        """Cancels a request until it ends, or the driver does; then nothing is left of what it wrote."""
        with contextlib.suppress(EngineUnavailable):
            while not answered.done():
                try:
                    answered.result(_AGAIN)
                except TimeoutError:
                    self.process.cancel(number)
        shutil.rmtree(output, ignore_errors=True)

    def _known(self, statements: tuple[Statement, ...], states: tuple[State, ...]) -> Printed | str:
        """Statements of a view's path, which come again with every job."""
        from executor.spark.printing import print_path

        key = tuple(map(id, statements))
        with self._lock:
            found = self._paths.get(key)
            if found is not None:
                self._paths.move_to_end(key)
                return found[1]
        printed = print_path(statements, states, not self.settings.connect)
        with self._lock:
            self._paths[key] = (statements, printed)
            while len(self._paths) > _CACHED:
                self._paths.popitem(last=False)
        return printed


def _input(view: View, job: Job) -> Frame:
    """A leaf for the driver: its name, columns and files."""
    is_delta = isinstance(view.source, int)
    rows = job.inputs.deltas[view.source] if isinstance(view.source, int) else job.inputs.traces[view.source]
    spec: Frame = {"view": view.name, "columns": [list(column) for column in view.columns], "delta": is_delta}
    match rows:
        case ArrivedFiles():
            return spec | _raw(rows.stream, rows.records)
        case OwnFiles():
            return spec | (_raw(rows.owner, [(0, rows.files)], rows.partitions) if rows.files else {"files": []})
        case _:
            return spec | {"files": _paths(rows, "the delta" if is_delta else f"trace {view.source}")}


def _raw(
    owner: Owner,
    arrived: Sequence[tuple[int, Sequence[SourceFile]]],
    partitions: Mapping[str, Sequence[str | None]] = MappingProxyType({}),
) -> Frame:
    """Files that Spark's workers read as they are, by log record, with their values of partition columns."""
    from executor.spark.printing import spark_type

    count = len(set(zip(*partitions.values(), strict=True)))
    if count > _MOST_PARTITIONS:
        raise EngineUnavailable(f"{count} partitions of a foreign table are not supported on Spark")
    files = [(item, lsn, place) for lsn, items in arrived for place, item in enumerate(items)]
    try:
        for column in stored_columns(owner):
            spark_type(column.type)
    except SqlError as error:
        raise EngineRefused(f"{error.message} on Spark") from None
    return {
        "raw": True,
        "name": owner.name,
        "files": [item[0] for item, _, _ in files],
        "sizes": [item[1] for item, _, _ in files],
        "mtimes": [item[2] for item, _, _ in files],
        "lsns": [lsn for _, lsn, _ in files],
        "places": [place for _, _, place in files],
        "partitions": {name: list(texts) for name, texts in partitions.items()},
    }


def _paths(files: object, what: str) -> list[str]:
    if not isinstance(files, tuple):
        raise EngineUnavailable(f"rows of {what} are not on storage")
    return [str(path.resolve()) for path in files]
