r"""The supervisor keeps one driver process alive and sends requests to it.

Owns: the child's life. One thread starts the child, watches it (heartbeat, deadlines), and replaces it when it dies or
hangs. When this thread ends, Linux kills the child (PR_SET_PDEATHSIG), so the thread lives as long as the supervisor.

    idle --start()--> starting --ready--> ready --died, hung--> failed --backoff--> starting ...
      \--no Java, no pyspark--> absent                any --stop()--> stopped

Child and JVM form a process group of their own, which is killed as a whole. The supervisor knows no SQL and no states.
"""

from __future__ import annotations

import importlib.util
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from contextlib import suppress
from pathlib import Path
from typing import IO, Final, Literal

from msgspec import Struct, field
from msgspec.structs import asdict

from executor.engine import EngineUnavailable
from executor.spark.frames import Frame, read_frame, write_frame
from executor.spark.java import JVM_FOLDER, Java, find_java
from executor.spark.settings import SparkSettings

State = Literal["idle", "absent", "starting", "ready", "failed", "stopped"]
#: Variables that would make pyspark use another Spark or Python than ours.
_UNWANTED: Final = ("SPARK_HOME", "SPARK_CONF_DIR", "PYSPARK_SUBMIT_ARGS", "PYSPARK_GATEWAY_PORT", "SPARK_REMOTE")
#: What pyspark imports for Connect beyond what we need anyway.
_CONNECT: Final = ("grpc", "grpc_status", "pandas", "zstandard")
_STOP_SECONDS: Final = 5.0
_ROOT: Final = Path(__file__).resolve().parents[2]


class Status(Struct, frozen=True):
    """What the supervisor knows of the driver; ``reason`` is one line for the log and for millstream.* views.

    ``kernel`` says why Spark's Python workers do not compute the embedded engine's expressions; empty where they do.
    """

    state: State
    reason: str = ""
    pid: int | None = None
    jvm: int | None = None
    version: str = ""
    restarts: int = 0
    kernel: str = ""

    @property
    def detail(self) -> str:
        """One line for people."""
        return self.reason or (f"Spark {self.version}, driver {self.pid}, JVM {self.jvm}" if self.version else "")


class _Child(Struct):
    """One driver process and the requests that it has not answered."""

    process: subprocess.Popen[bytes]
    started: float
    ready: bool = False
    reason: str = ""
    pending: dict[int, tuple[Future[Frame], float]] = field(default_factory=dict)
    last_answer: float = 0.0
    ping: int | None = None
    pinged: float = 0.0


class SparkProcess:
    """Starts lazily: ``start`` returns at once. All methods may be called from any thread."""

    def __init__(
        self,
        settings: SparkSettings,
        environment: Mapping[str, str] | None = None,
        notify: Callable[[Status], None] = lambda status: None,
        clock: Callable[[], float] = time.monotonic,
        folder_of_jvms: Path = JVM_FOLDER,
    ) -> None:
        """``notify`` hears of every change of state, from the watching thread; it must not block."""
        self.settings = settings
        self._environment = dict(os.environ if environment is None else environment)
        self._notify = notify
        self._clock = clock
        self._folder_of_jvms = folder_of_jvms
        self._condition = threading.Condition()
        self._status = Status("idle")
        self._child: _Child | None = None
        self._writing = threading.Lock()
        self._next_id = 0
        self._stopping = False
        self._thread: threading.Thread | None = None

    @property
    def status(self) -> Status:
        """The state now."""
        with self._condition:
            return self._status

    def start(self) -> None:
        """Begins to start the driver in the background, once."""
        with self._condition:
            if self._thread is not None or self._stopping or self._status.state == "absent":
                return
            self._thread = threading.Thread(target=self._watch, name="spark", daemon=True)
        self._thread.start()

    def wait_ready(self, seconds: float) -> bool:
        """Starts, and waits until the driver is ready or will not be; says which."""
        self.start()
        with self._condition:
            self._condition.wait_for(lambda: self._status.state in ("ready", "absent", "stopped"), seconds)
            return self._status.state == "ready"

    def request(self, op: str, seconds: float | None = None, **values: object) -> Frame:
        """The driver's answer. Raises EngineUnavailable when there is no driver or it ends first.

        After ``seconds`` (default: ``job_timeout``) the driver counts as hung and is replaced.
        """
        _, future = self.submit(op, seconds, **values)
        return future.result()

    def submit(self, op: str, seconds: float | None = None, **values: object) -> tuple[int, Future[Frame]]:
        """Sends a request; its id (for ``cancel``) and its future answer."""
        self.start()
        with self._condition:
            child = self._child
            if child is None or not child.ready:
                raise EngineUnavailable(self._status.reason or f"Spark is {self._status.state}")
            self._next_id += 1
            number = self._next_id
            future: Future[Frame] = Future()
            deadline = self._clock() + (self.settings.job_timeout if seconds is None else seconds)
            child.pending[number] = (future, deadline)
        self._send(child, {"id": number, "op": op, **values})
        return number, future

    def cancel(self, number: int) -> None:
        """Asks the driver to end a request; it then fails with 57014."""
        self.submit("cancel", 30.0, target=number)

    def stop(self) -> None:
        """Ends driver and JVM; returns when they are gone. A cluster's session is closed in order first."""
        with self._condition:
            self._stopping = True
            thread = self._thread
            self._condition.notify_all()
        if thread is not None:
            thread.join()
        self._change(Status("stopped", "Spark was stopped"))

    # -- the watching thread ---------------------------------------------------------------------------------------

    def _watch(self) -> None:
        """Starts children one after the other until ``stop``."""
        java = self._java()
        if isinstance(java, str):
            self._change(Status("absent", java))
            return
        restarts, backoff = 0, self.settings.backoff
        while not self._stopping:
            began = self._clock()
            reason = self._one_life(java, restarts)
            if self._stopping:
                return
            backoff = self.settings.backoff if self._clock() - began > 60 else backoff
            restarts += 1
            self._change(Status("failed", f"{reason}; starting again in {backoff:g} s", restarts=restarts))
            with self._condition:
                self._condition.wait_for(lambda: self._stopping, backoff)
            backoff = min(backoff * 2, self.settings.backoff_limit)

    def _java(self) -> Java | str | None:
        """The runtime to use; None where none is needed (Connect); the reason when Spark cannot run here."""
        if importlib.util.find_spec("pyspark") is None:
            return "pyspark is not installed"
        if self.settings.connect:
            missing = [name for name in _CONNECT if importlib.util.find_spec(name) is None]
            advice = (
                f"a Spark Connect endpoint needs the Python packages of millstream[connect]: no {', '.join(missing)}"
            )
            return advice if missing else None
        return find_java(self._environment, self._folder_of_jvms)

    def _one_life(self, java: Java | None, restarts: int) -> str:
        """One child from start to end; the reason of its end."""
        self._change(Status("starting", "Spark is starting", restarts=restarts))
        try:
            child = self._spawn(java)
        except OSError as error:
            return f"the Spark driver cannot be started: {error}"
        try:
            self._send(child, {"settings": _plain(self.settings)})
            reader = threading.Thread(target=self._read, args=(child, restarts), name="spark-answers", daemon=True)
            reader.start()
            reason = self._guard(child)
        finally:
            _kill_group(child.process)
        reader.join()
        reason = child.reason or reason  # the driver's own is read last, and says more
        _close(child.process.stdin)
        _close(child.process.stdout)
        self._bury(child, reason)
        return reason

    def _spawn(self, java: Java | None) -> _Child:
        self.settings.folder.mkdir(parents=True, exist_ok=True)
        self._bound_log()
        environment = {name: value for name, value in self._environment.items() if name not in _UNWANTED}
        environment |= {"PYTHONUNBUFFERED": "1", "PYTHONPATH": str(_ROOT), "PYSPARK_PYTHON": self._python()}
        if java is not None:
            environment["JAVA_HOME"] = str(java.home)
        if self.settings.local:
            environment["SPARK_LOCAL_IP"] = "127.0.0.1"
        with open(self.settings.log, "ab") as log:
            process = subprocess.Popen(
                [sys.executable, "-m", "executor.spark.driver"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                env=environment,
                cwd=self.settings.folder,
                start_new_session=True,
            )
        child = _Child(process, self._clock(), last_answer=self._clock())
        with self._condition:
            self._child = child
        return child

    def _python(self) -> str:
        """What runs Spark's Python workers: this Python, but where a cluster's own was named."""
        named = self.settings.extra.get("spark.pyspark.python") or self._environment.get("PYSPARK_PYTHON")
        return sys.executable if self.settings.local else named or sys.executable

    def _guard(self, child: _Child) -> str:
        """Returns the reason when the child has ended or must end."""
        while True:
            with self._condition:
                self._condition.wait(self._pause(child))
                if self._stopping:
                    break
                if child.process.poll() is not None:
                    return f"the Spark driver ended with code {child.process.returncode}, see {self.settings.log}"
                hung = self._hung(child)
            if hung is not None:
                return hung
            self._heartbeat(child)
            self._bound_log()
        if child.ready and not self.settings.local:
            self._send(child, {"id": 0, "op": "stop"})
            _wait(child.process, _STOP_SECONDS)
        return "Spark was stopped"

    def _pause(self, child: _Child) -> float:
        """Seconds until something may be due."""
        now = self._clock()
        due = min((deadline for _, deadline in child.pending.values()), default=now + self.settings.heartbeat)
        return max(0.01, min(due - now, self.settings.heartbeat, 1.0))

    def _hung(self, child: _Child) -> str | None:
        """Why the child counts as hung."""
        now = self._clock()
        if not child.ready:
            late = now - child.started > self.settings.start_timeout
            return f"Spark did not start within {self.settings.start_timeout:g} s" if late else None
        if child.ping is not None and now - child.pinged > self.settings.heartbeat_timeout:
            return f"Spark has not answered for {self.settings.heartbeat_timeout:g} s"
        if any(now > deadline for _, deadline in child.pending.values()):
            return "a Spark job exceeded its time limit"
        return None

    def _heartbeat(self, child: _Child) -> None:
        with self._condition:
            now = self._clock()
            if not child.ready or child.ping is not None or now - child.last_answer < self.settings.heartbeat:
                return
            self._next_id += 1
            child.ping, child.pinged = self._next_id, now
        self._send(child, {"id": child.ping, "op": "ping"})

    def _bound_log(self) -> None:
        """Keeps at most two logs of half the allowed size."""
        log = self.settings.log
        try:
            if log.stat().st_size <= self.settings.log_bytes // 2:
                return
            log.with_suffix(".log.1").write_bytes(log.read_bytes())
            os.truncate(log, 0)  # the child appends, so it goes on at the new end
        except FileNotFoundError:
            return

    def _bury(self, child: _Child, reason: str) -> None:
        """Fails what the child leaves unanswered."""
        with self._condition:
            self._child = None
            left = list(child.pending.values())
            child.pending.clear()
        for future, _ in left:
            future.set_exception(EngineUnavailable(reason))

    # -- the pipe --------------------------------------------------------------------------------------------------

    def _send(self, child: _Child, frame: Frame) -> None:
        """Writes a frame; a broken pipe is noticed by the watching thread."""
        assert child.process.stdin is not None
        try:
            with self._writing:
                write_frame(child.process.stdin, frame)
        except (OSError, ValueError):
            return

    def _read(self, child: _Child, restarts: int) -> None:
        """The reading thread: resolves answers until the child's stdout ends, then wakes the watching thread."""
        assert child.process.stdout is not None
        while (frame := read_frame(child.process.stdout)) is not None:
            if "event" in frame:
                self._event(child, frame, restarts)
            else:
                self._resolve(child, frame)
        _wait(child.process, _STOP_SECONDS)
        with self._condition:
            self._condition.notify_all()

    def _event(self, child: _Child, frame: Frame, restarts: int) -> None:
        if frame["event"] == "failed":
            child.reason = frame["reason"]
            return
        with self._condition:
            child.ready, child.last_answer = True, self._clock()
        self._change(Status("ready", "", child.process.pid, frame["jvm"], frame["version"], restarts, frame["kernel"]))

    def _resolve(self, child: _Child, frame: Frame) -> None:
        with self._condition:
            child.last_answer = self._clock()
            if frame["id"] == child.ping:
                child.ping = None
            entry = child.pending.pop(frame["id"], None)
        if entry is not None:
            entry[0].set_result(frame)

    def _change(self, status: Status) -> None:
        with self._condition:
            self._status = status
            self._condition.notify_all()
        self._notify(status)


def _plain(settings: SparkSettings) -> Frame:
    return {**asdict(settings), "folder": str(settings.folder), "extra": dict(settings.extra)}


def _kill_group(process: subprocess.Popen[bytes]) -> None:
    """Ends the child and its JVM, also when the child itself is gone already, and waits for both."""
    group = process.pid
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(group, signal.SIGKILL)
    process.wait()
    deadline = time.monotonic() + _STOP_SECONDS
    with suppress(ProcessLookupError, PermissionError):
        while time.monotonic() < deadline:  # the JVM is init's child now
            os.killpg(group, 0)
            time.sleep(0.01)


def _close(pipe: IO[bytes] | None) -> None:
    """Closes a pipe, whose other end may be gone."""
    if pipe is not None:
        with suppress(OSError):
            pipe.close()


def _wait(process: subprocess.Popen[bytes], seconds: float) -> None:
    with suppress(subprocess.TimeoutExpired):
        process.wait(seconds)
