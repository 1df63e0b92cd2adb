"""Millstream as its users start it: a child process with its own data folder, killed and started again at will.

Owns: start on a free port, readiness (a client gets in), kill -9, restart, the log, and the end. Knows the server only
by its command line and the PostgreSQL protocol.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, ClassVar

import psycopg

from executor.spark.java import Java, find_java
from tests.rig.forked import Loaded
from tests.rig.process import Process, end, free_port, spawn, stat, wait_until

ROOT = Path(__file__).resolve().parents[2]
USER = DATABASE = "millstream"


def java_is_there() -> bool:
    """Whether a Java runtime that serves Spark is installed."""
    return isinstance(find_java(os.environ), Java)


class Millstream:
    """One server. ``settings`` are those of its configuration. A folder is created if none is given, and then
    removed."""

    #: The processes that fork servers, if servers need not load their modules themselves.
    loaded: ClassVar[Loaded | None] = None

    def __init__(
        self,
        data: Path | None = None,
        settings: Mapping[str, object] | None = None,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self._own = Path(tempfile.mkdtemp(prefix="millstream-test-"))
        self.data = data or self._own / "data"
        self.settings = dict(settings or {})
        self.environment = dict(environment or {})
        self.port = free_port()
        self._process: Process | None = None
        self._groups: list[int] = []

    def __enter__(self) -> Millstream:
        try:
            self.start()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is not None:
            print(self.log()[-6000:], file=sys.stderr)
        self.stop()

    @property
    def pid(self) -> int:
        """The server's process."""
        assert self._process is not None
        return self._process.pid

    def start(self, seconds: float = 60) -> None:
        """Starts the server, and returns once a client can connect."""
        self.begin()
        wait_until(self._answers, seconds, "Millstream")

    def begin(self) -> None:
        """Starts the server without waiting."""
        # Short queries may leave, too, as those of tests are short.
        own = {"listen": f"127.0.0.1:{self.port}", "data": str(self.data), "drain_timeout": 0, "storage_latency": 0}
        words = _arguments({**own, **self.settings})
        environment = {**os.environ, **self.environment, "PYTHONPATH": str(ROOT), "PYTHONUNBUFFERED": "1"}
        log = self._own / "log"
        if self.loaded is None:
            command = [sys.executable, "-m", "server", *words]
            self._process = spawn(command, log, cwd=ROOT, env=environment, start_new_session=True)
        else:
            self._process = self.loaded.fork(words, log, ROOT, environment)
        self._groups.append(self._process.pid)

    def kill9(self) -> None:
        """Kills the process as a power cut would; its Spark driver must notice by itself."""
        assert self._process is not None
        self._process.kill()
        self._process.wait()

    def wait(self, seconds: float) -> int:
        """Waits for its end; returns the exit status. Raises subprocess.TimeoutExpired."""
        assert self._process is not None
        return self._process.wait(seconds)

    def restart(self) -> None:
        """Ends the server in order (unless it is dead) and starts it with the same data and port."""
        if self._process is not None:
            end(self._process)
        self.start()

    def stop(self) -> None:
        """Ends the server in order; neither processes nor folders remain."""
        if self._process is not None:
            end(self._process)
            self._process = None
        for group in self._groups:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(group, signal.SIGKILL)
        shutil.rmtree(self._own, ignore_errors=True)

    def wait_for_spark(self, seconds: float = 180) -> None:
        """Returns once Spark accepts queries."""
        with self.connect() as connection:
            wait_until(lambda: has_spark(connection), seconds, "Spark")

    def connect(self, **options: Any) -> psycopg.Connection[Any]:
        """A new autocommit connection."""
        return psycopg.connect(self.dsn(), autocommit=True, **options)

    def dsn(self) -> str:
        """A connection string."""
        return f"host=127.0.0.1 port={self.port} user={USER} dbname={DATABASE}"

    def log(self) -> str:
        """The server's output since the first start."""
        return (self._own / "log").read_text(errors="replace")

    def processes(self) -> list[int]:
        """The server and all its descendants: Spark's Python driver and its JVM."""
        children: dict[int, list[int]] = {}
        for entry in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError, IndexError):
                parent = int(stat(entry.name)[1])
                children.setdefault(parent, []).append(int(entry.name))
        found = [self.pid]
        for pid in found:
            found += children.get(pid, [])
        return found

    def _answers(self) -> bool:
        assert self._process is not None
        assert self._process.poll() is None, f"Millstream ended at once:\n{self.log()[-6000:]}"
        try:
            self.connect(connect_timeout=20).close()
        except psycopg.OperationalError:
            return False
        return True


@contextlib.contextmanager
def together(*servers: Millstream) -> Iterator[tuple[Millstream, ...]]:
    """Servers that start at the same time, and are ended like single ones."""
    with contextlib.ExitStack() as running:
        for server in servers:
            running.push(server)
            server.begin()
        for server in servers:
            wait_until(server._answers, 60, "Millstream")
        yield servers


def has_spark(client: psycopg.Connection[Any]) -> bool:
    """Whether Spark accepts queries."""
    return client.execute("SELECT available FROM millstream.engines WHERE name = 'spark'").fetchone() == (True,)


def _arguments(flags: Mapping[str, object]) -> list[str]:
    words = []
    for name, value in flags.items():
        text = ("false", "true")[value] if isinstance(value, bool) else str(value)
        words.append(f"--{name.replace('_', '-')}={text}")
    return words
