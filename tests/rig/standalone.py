"""A Spark cluster on this machine: the standalone master and its workers, on loopback ports of their own.

Owns: their start, readiness, the death of a worker, and the end of all, executors included. Each application gets one
core of each worker, so that two servers have one each (docker/compose.cluster.yaml).
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
from pathlib import Path
from types import TracebackType

from tests.rig.process import end, free_port, wait_until
from tests.rig.spark import run_script

_DEPLOY = "org.apache.spark.deploy"


class Standalone:
    """A master and a number of workers; ``folder`` is for their files."""

    def __init__(self, folder: Path, workers: int = 2) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.master = f"spark://127.0.0.1:{free_port()}"
        self._folder = folder.resolve()
        self._count = workers
        self._processes: list[subprocess.Popen[bytes]] = []

    def __enter__(self) -> Standalone:
        try:
            self._start()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def _start(self) -> None:
        self._run("master.Master", "--host", "127.0.0.1", "--port", self.master.rpartition(":")[2], "--webui-port", "0")
        for number in range(self._count):
            self._run(
                *("worker.Worker", self.master, "--host", "127.0.0.1", "--cores", "2", "--memory", "2g"),
                *("--webui-port", "0", "--work-dir", str(self._folder / f"worker{number}")),
            )
        wait_until(self._is_ready, 120, "Spark cluster")

    def _run(self, name: str, *words: str) -> None:
        own = {
            "SPARK_DAEMON_MEMORY": "256m",
            "SPARK_MASTER_OPTS": f"-Dspark.deploy.defaultCores={self._count}",
        }
        log = self._folder / f"{len(self._processes)}.log"
        self._processes.append(run_script("spark-class", [f"{_DEPLOY}.{name}", *words], log, own, signal.SIGTERM))

    def kill_worker(self) -> None:
        """Kills a worker; its executors notice by themselves."""
        lost = self._processes.pop()
        lost.kill()
        lost.wait()

    def stop(self) -> None:
        """Ends the workers, which end their executors, then the master; kills remaining processes."""
        for process in reversed(self._processes):
            end(process)
        self._processes.clear()
        try:
            wait_until(lambda: not self.processes(), 60, "end of the executors")
        finally:
            for pid in self.processes():
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)

    def processes(self) -> list[int]:
        """The processes in the cluster's folder: master, workers, executors, and their Python processes."""
        found = []
        for entry in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                if (entry / "cwd").readlink().is_relative_to(self._folder):
                    found.append(int(entry.name))
        return found

    def _is_ready(self) -> bool:
        _, *workers = logs = [log.read_text(errors="replace") for log in sorted(self._folder.glob("*.log"))]
        assert all(process.poll() is None for process in self._processes), "".join(logs)[-6000:]
        return all("Successfully registered with master" in log for log in workers)
