"""The driver process: ``python -m executor.spark.driver``, a child of the server that owns the JVM.

Owns: the request loop on stdin and stdout. Requests are answered by threads. The main thread only reads, so that the
end of stdin (the server died) ends this process and its JVM at once. Everything that Spark or the JVM prints goes to
stderr, which is the log; the real stdout is moved away before anything else runs.

    start   first frame: SparkSettings; the answer comes as {"event": "ready", ...} or {"event": "failed", reason}
    run     one job (jobs.py)           ping    answered when Spark answers, or {"event": "failed", reason}
    cancel  ends request ``target``     stop    ends Spark, then this process
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys
import threading
import traceback
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import BinaryIO, Final

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException

from executor.spark.driver import jobs
from executor.spark.driver.classic_session import ClassicSession
from executor.spark.driver.connect_session import ConnectSession
from executor.spark.driver.session import Session
from executor.spark.failures import describe
from executor.spark.frames import Frame, read_frame, write_frame
from executor.spark.settings import SparkSettings

_PR_SET_PDEATHSIG: Final = 1
#: Exit codes, for the log.
JVM_DIED: Final = 70
START_FAILED: Final = 71
SPARK_GONE: Final = 72


class Driver:
    """One session and the requests on it."""

    def __init__(self, output: BinaryIO, settings: SparkSettings) -> None:
        self.settings = settings
        self._output = output
        self._lock = threading.Lock()
        self._pool = ThreadPoolExecutor(max_workers=8, thread_name_prefix="request")
        self._control = ThreadPoolExecutor(max_workers=2, thread_name_prefix="control")
        self._session: Session | None = None

    def start(self) -> None:
        """Starts Spark and says so; on failure says why and ends the process."""
        try:
            session = ConnectSession(self.settings) if self.settings.connect else ClassicSession(self.settings)
            session.watch(lambda: self._die(JVM_DIED))
            if self.settings.warm_up:
                session.warm_up()
            kernel = session.kernel()
        except BaseException as error:
            self._fail("Spark cannot start", error, START_FAILED)
            return
        self._session = session
        jvm = session.jvm
        pid = jvm.pid if jvm is not None else None
        self.send({"event": "ready", "version": session.version, "jvm": pid, "kernel": kernel})

    def send(self, frame: Frame) -> None:
        """One frame to the server."""
        with self._lock:
            write_frame(self._output, frame)

    def accept(self, request: Frame) -> None:
        """Hands a request to a thread."""
        handlers: dict[str, Callable[[Frame], Frame]] = {
            "run": self._run,
            "ping": self._ping,
            "cancel": self._cancel,
            "stop": self._stop,
        }
        pool = self._pool if request["op"] == "run" else self._control
        pool.submit(self._answer, handlers[request["op"]], request)

    def _answer(self, handler: Callable[[Frame], Frame], request: Frame) -> None:
        try:
            answer = handler(request)
        except BaseException as error:
            failure = describe(error)
            if failure["kind"] == "engine":
                if not isinstance(error, Py4JJavaError | PySparkException):  # nothing that the JVM has answered
                    self._ready().end_if_lost(lambda: self._die(JVM_DIED))
                traceback.print_exc()
            answer = {"error": failure}
        self.send({"id": request["id"], **answer})

    def _ready(self) -> Session:
        assert self._session is not None, "the server sends requests after the ready event"
        return self._session

    def _run(self, request: Frame) -> Frame:
        return jobs.run(self._ready(), request)

    def _ping(self, request: Frame) -> Frame:
        try:
            self._ready().ping()
        except Exception as error:  # another driver finds Spark again once it is back
            self._fail("Spark does not answer", error, SPARK_GONE)
        return {}

    def _cancel(self, request: Frame) -> Frame:
        self._ready().cancel(jobs.group_name(request["target"]))
        return {}

    def _stop(self, request: Frame) -> Frame:
        self._ready().stop()
        self._die(0)
        return {}

    def _fail(self, what: str, error: BaseException, code: int) -> None:
        """Says why, and ends this process."""
        traceback.print_exception(error)
        self.send({"event": "failed", "reason": f"{what}: {describe(error)['message']}"})
        self._die(code)

    def _die(self, code: int) -> None:
        """Ends this process whatever its threads do; the JVM follows when its stdin closes."""
        sys.stderr.flush()
        os._exit(code)


def main() -> None:
    """Reads requests until stdin ends."""
    requests, answers = _take_pipes()
    _die_with_parent()
    first = read_frame(requests)
    if first is None:
        return
    driver = Driver(answers, read_settings(first["settings"]))
    threading.Thread(target=driver.start, name="start", daemon=True).start()
    while (request := read_frame(requests)) is not None:
        driver.accept(request)
    _end_group()


def read_settings(values: Frame) -> SparkSettings:
    """Settings from their JSON form."""
    return SparkSettings(**{**values, "folder": Path(values["folder"])})


def _take_pipes() -> tuple[BinaryIO, BinaryIO]:
    """stdin and stdout for frames alone: descriptor 0 becomes empty and 1 the log, for the JVM too."""
    requests, answers = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    return requests, answers


def _die_with_parent() -> None:
    """Linux kills this process when the server's watching thread ends, even when we no longer read stdin."""
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def _end_group() -> None:
    """Kills the process group (the JVM, too) when it is our own, else this process."""
    if os.getpgrp() == os.getpid():
        os.killpg(0, signal.SIGKILL)
    os._exit(0)


if __name__ == "__main__":
    main()
