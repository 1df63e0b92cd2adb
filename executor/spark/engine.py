"""Spark as an engine: prints a job's statements, hands them with Parquet paths to the driver, answers with Parquet runs.

Owns: the translation between ``executor.engine`` and the driver's requests. Arrow inputs are refused: rows reach Spark through
storage only, never through the server.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from pathlib import Path
from typing import Final

from catalog.errors import SqlError
from executor.engine import EngineUnavailable, Job, JobResult, RawFiles
from executor.spark.dialect import spark_type
from executor.spark.failures import to_exception
from executor.spark.frames import Frame
from executor.spark.process import SparkProcess
from executor.spark.statements import Printed, View, print_statements
from planner.program import State, Statement

_CACHED: Final = 256


class SparkEngine:
    """Runs jobs in the driver process. Calls block; any thread may call."""

    name = "spark"

    def __init__(self, process: SparkProcess) -> None:
        self.process = process
        self._lock = threading.Lock()
        #: By identity of the statements (which are kept, so that it stays theirs): the printed form or the reason.
        self._printed: OrderedDict[tuple[int, int], tuple[object, object, Printed | str]] = OrderedDict()

    def supports(self, statements: tuple[Statement, ...], states: tuple[State, ...]) -> str | None:
        """None when Spark computes exactly what is asked, else the reason why it does not."""
        printed = self._print(statements, states)
        return printed if isinstance(printed, str) else None

    def run(self, job: Job) -> JobResult:
        """One job. Raises SqlError for an error of the data, EngineUnavailable when Spark failed or cannot do it."""
        assert job.output is not None, "Spark writes its runs"
        printed = self._print(job.statements, job.states)
        if isinstance(printed, str):
            raise EngineUnavailable(printed)
        answer = self.process.request(
            "run",
            job=job.id,
            inputs=[_input(view, job) for view in printed.views],
            statements=[{"state": state, "sql": sql} for state, sql in printed.statements],
            output=str(job.output.resolve()),
        )
        if "error" in answer:
            raise to_exception(answer["error"])
        runs = {state: tuple(map(Path, files)) for state, files in answer["runs"].items()}
        return JobResult(runs, answer["rows"], answer["seconds"], tuple(answer["jobs"]))

    def _print(self, statements: tuple[Statement, ...], states: tuple[State, ...]) -> Printed | str:
        key = (id(statements), id(states))
        with self._lock:
            found = self._printed.get(key)
            if found is not None:
                self._printed.move_to_end(key)
                return found[2]
        try:
            printed: Printed | str = print_statements(statements, states)
        except SqlError as error:
            printed = f"{error.message} on Spark"
        with self._lock:
            self._printed[key] = (statements, states, printed)
            while len(self._printed) > _CACHED:
                self._printed.popitem(last=False)
        return printed


def _input(view: View, job: Job) -> Frame:
    """A leaf for the driver: its name, columns and files."""
    files = job.inputs.statics[view.trace] if view.trace else job.inputs.delta
    spec: Frame = {"view": view.name, "columns": [list(column) for column in view.columns], "delta": not view.trace}
    if isinstance(files, RawFiles):
        return spec | _raw(files)
    if not isinstance(files, tuple):
        raise EngineUnavailable(f"rows of {view.name} are not on storage")
    return spec | {"files": [str(path.resolve()) for path in files]}


def _raw(files: RawFiles) -> Frame:
    return {
        "raw": True,
        "format": files.format,
        "files": [str(item.path) for item in files.files],
        "lsns": [item.lsn for item in files.files],
        "places": [item.place for item in files.files],
        "stream": [[column.name, spark_type(column.type)] for column in files.columns],
        "options": dict(files.options),
    }
