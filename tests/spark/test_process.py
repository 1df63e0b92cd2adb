"""The driver process dies, hangs and is replaced, and never outlives its server."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from executor.engine import EngineUnavailable
from executor.spark.engine import SparkEngine
from executor.spark.settings import SparkSettings
from executor.spark.supervisor import SparkProcess, Status
from tests.rig.beside import Beside
from tests.rig.process import is_alive, wait_until
from tests.rig.sampling import sample

pytestmark = [pytest.mark.spark, pytest.mark.slow]
ENDLESS = "SELECT count(*) AS n FROM range(1000000000000) WHERE id % 7 = rand()"


def settings(folder: Path) -> SparkSettings:
    """Settings for quick checks and restarts."""
    return SparkSettings(folder, "local[1]", "512m", heartbeat=0.2, heartbeat_timeout=60.0, backoff=0.1, warm_up=False)


def job(process: SparkProcess, folder: Path, sql: str, seconds: float = 60.0) -> dict[str, object]:
    """One statement without inputs."""
    return process.request(
        "run", seconds, job=1, inputs=[], statements=[{"state": "s", "sql": sql}], output=str(folder)
    )


@pytest.fixture(scope="module")
def supervisor(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkProcess]:
    """One supervisor for all tests, whatever a test does to its driver."""
    supervisor = SparkProcess(settings(tmp_path_factory.mktemp("spark")))
    yield supervisor
    supervisor.stop()


@pytest.fixture
def process(supervisor: SparkProcess) -> SparkProcess:
    """A ready driver, possibly another one than before; tests that end it come last, as a start takes long."""
    assert supervisor.wait_ready(120), supervisor.status
    return supervisor


def restarted(process: SparkProcess, before: Status) -> Status:
    """The status once another driver is ready."""
    wait_until(lambda: process.status.state == "ready" and process.status.pid != before.pid, 120, "new driver")
    return process.status


def wait_for_end(before: Status) -> None:
    """Returns once neither a driver nor its JVM is left."""
    wait_until(lambda: not is_alive(before.pid) and not is_alive(before.jvm), 30, "end of the old processes")


def test_cancel_ends_a_request_and_nothing_else(process: SparkProcess, tmp_path: Path) -> None:
    before = process.status
    statements = [{"state": "s", "sql": ENDLESS}]
    number, future = process.submit("run", job=1, inputs=[], statements=statements, output=str(tmp_path / "out"))

    def ended() -> bool:  # a job cannot be cancelled before it has begun
        process.cancel(number)
        return future.done()

    wait_until(ended, 60, "end of the request")
    assert future.result()["error"]["kind"] == "cancelled"
    assert process.status == before


def test_nothing_listens_beyond_loopback(process: SparkProcess) -> None:
    listening = _listening({process.status.pid, process.status.jvm})
    assert listening, "the JVM's gateway listens on loopback"
    assert set(listening) <= {"0100007F", "0000000000000000FFFF00000100007F", "00000000000000000000000001000000"}


def _listening(pids: set[int | None]) -> list[str]:
    """The hexadecimal local addresses of the processes' listening TCP sockets."""
    inodes = set()
    for pid in pids:
        for entry in Path(f"/proc/{pid}/fd").iterdir():
            with contextlib.suppress(FileNotFoundError):  # it was closed meanwhile
                target = os.readlink(entry)
                if target.startswith("socket:["):
                    inodes.add(target[8:-1])
    found = []
    for table in ("tcp", "tcp6"):
        for line in Path(f"/proc/net/{table}").read_text(encoding="utf-8").splitlines()[1:]:
            fields = line.split()
            if fields[3] == "0A" and fields[9] in inodes:
                found.append(fields[1].partition(":")[0])
    return found


@pytest.mark.parametrize("victim", sample(("jvm", "pid"), ("jvm",)))  # its death ends its driver, too
def test_kill_in_a_job_fails_it_and_a_new_driver_comes(supervisor: SparkProcess, tmp_path: Path, victim: str) -> None:
    process = supervisor
    assert process.wait_ready(120)
    before = process.status
    statements = [{"state": "s", "sql": ENDLESS}]
    _, running = process.submit("run", job=1, inputs=[], statements=statements, output=str(tmp_path / "out"))
    pid = getattr(before, victim)
    assert pid is not None
    os.kill(pid, signal.SIGKILL)
    with pytest.raises(EngineUnavailable):
        running.result(60)
    after = restarted(process, before)
    assert after.restarts == before.restarts + 1
    wait_for_end(before)
    assert "error" not in job(process, tmp_path / "again", "SELECT 1 AS n")


def test_a_jvm_that_hangs_is_replaced(process: SparkProcess, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = process.status
    assert before.jvm is not None
    os.kill(before.jvm, signal.SIGSTOP)
    statements = [{"state": "s", "sql": "SELECT 1 AS n"}]
    _, running = process.submit("run", job=1, inputs=[], statements=statements, output=str(tmp_path / "out"))
    monkeypatch.setattr(process, "settings", replace(process.settings, heartbeat_timeout=1.0))
    with pytest.raises(EngineUnavailable, match="has not answered"):
        running.result(60)
    wait_for_end(before)


def test_a_job_beyond_its_limit_ends_the_driver(process: SparkProcess, tmp_path: Path) -> None:
    before = process.status
    with pytest.raises(EngineUnavailable, match="time limit"):
        job(process, tmp_path / "out", ENDLESS, seconds=2.0)
    wait_for_end(before)


def test_stop_leaves_no_process(process: SparkProcess) -> None:
    status = process.status
    process.stop()
    assert not is_alive(status.pid)
    assert not is_alive(status.jvm)
    assert process.status.state == "stopped"
    with pytest.raises(EngineUnavailable):
        process.request("ping")


def test_a_driver_that_cannot_start_is_failed_with_its_reason(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also if the reason is read after the driver has ended."""
    event = SparkProcess._event

    def late(*given: Any) -> None:
        time.sleep(1)
        event(*given)

    monkeypatch.setattr(SparkProcess, "_event", late)
    heard: list[Status] = []
    broken = replace(settings(tmp_path / "spark"), master="no-such-master", backoff=600.0)
    supervisor = SparkProcess(broken, notify=heard.append)
    supervisor.start()
    wait_until(lambda: len(heard) > 1, 120, "failure")
    assert "Spark cannot start" in supervisor.status.reason
    assert [status.state for status in heard] == ["starting", "failed"]
    Beside(supervisor.stop).result()  # it does not wait for the backoff


def test_a_connect_endpoint_without_its_packages_is_absent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "grpc", None)  # how Python represents a missing package
    supervisor = SparkProcess(replace(settings(tmp_path), master="sc://127.0.0.1:15002"))
    assert not supervisor.wait_ready(60)
    assert "millstream[connect]: no grpc" in supervisor.status.reason
    supervisor.stop()


def test_the_log_says_that_the_embedded_engine_works_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setitem(sys.modules, "grpc", None)
    engine = SparkEngine(tmp_path, "sc://127.0.0.1:15002")
    engine.start()
    engine.process.wait_ready(60)
    engine.close()
    assert [item.levelname for item in caplog.records if item.message.endswith("the embedded engine works alone")] == [
        "WARNING"
    ]


def test_without_java_spark_is_absent_with_one_line(tmp_path: Path) -> None:
    supervisor = SparkProcess(settings(tmp_path), environment={"JAVA_HOME": str(tmp_path)}, folder_of_jvms=tmp_path)
    assert not supervisor.wait_ready(60)
    assert supervisor.status.state == "absent"
    assert "apt-get install" in supervisor.status.reason
    assert "\n" not in supervisor.status.reason
    with pytest.raises(EngineUnavailable, match="Java"):
        supervisor.request("ping")
    supervisor.stop()
