"""A real Spark Connect endpoint on this machine: the server in pyspark, on a loopback port of its own.

Owns: its start, readiness, and end by SIGKILL. It is a child process, and knows nothing of Millstream.
"""

from __future__ import annotations

import socket
import subprocess
from pathlib import Path

from tests.rig.process import free_port, wait_until
from tests.rig.spark import run_script

_SERVER = "org.apache.spark.sql.connect.service.SparkConnectServer"


class Endpoint:
    """One endpoint; it can be started again on the same port after its end."""

    def __init__(self, folder: Path) -> None:
        """``folder`` is for its scratch files and its log."""
        folder.mkdir(parents=True, exist_ok=True)
        self.port = free_port()
        self._folder = folder
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def master(self) -> str:
        """The value of ``spark.master``."""
        return f"sc://127.0.0.1:{self.port}"

    def start(self) -> None:
        """Starts it; ``wait`` waits for it."""
        words = [*_options(self.port, self._folder), "spark-internal"]
        self._process = run_script("spark-submit", words, self._log)

    def wait(self, seconds: float = 120) -> None:
        """Returns when it accepts connections."""
        wait_until(self._listens, seconds, "Spark Connect endpoint")

    def kill9(self) -> None:
        """Kills it, whatever it is doing."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    @property
    def _log(self) -> Path:
        return self._folder / "endpoint.log"

    def _listens(self) -> bool:
        assert self._process is not None
        assert self._process.poll() is None, self._log.read_text(errors="replace")[-6000:]
        with socket.socket() as client:
            return client.connect_ex(("127.0.0.1", self.port)) == 0


def _options(port: int, folder: Path) -> list[str]:
    """spark-submit's options."""
    settings = {
        "spark.connect.grpc.binding.address": "127.0.0.1",
        "spark.connect.grpc.binding.port": str(port),
        "spark.ui.enabled": "false",
        "spark.log.level": "WARN",
        "spark.sql.catalogImplementation": "in-memory",
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
        "spark.local.dir": str(folder),
    }
    words = ["--master", "local[2]", "--driver-memory", "1g", "--class", _SERVER]
    for name, value in settings.items():
        words += ["--conf", f"{name}={value}"]
    return words
