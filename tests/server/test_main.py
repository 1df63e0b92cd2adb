"""The server process: how soon it answers, how it ends, and what it logs."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import re
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from server.operations.config import Address, Chosen, Config
from server.operations.logs import JsonFormatter, LineFormatter
from server.serving import CannotStart, Server, Stop
from tests.rig.process import end, free_port, stat, wait_until
from tests.rig.server import ROOT, Millstream
from tests.server.wire import Wire, error_fields, letters, rows

QUIET = {"maintenance_engine": "embedded", "spark_enabled": False, "shutdown_timeout": 60}
_LINE = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z (DEBUG|INFO|WARNING|ERROR) [\w.]+ .+")


@pytest.mark.slow
def test_the_socket_answers_before_the_database_is_open(tmp_path: Path) -> None:
    """The first byte comes from a process that has not loaded an engine yet."""
    port = free_port()
    command = [sys.executable, "-m", "server", f"--listen=127.0.0.1:{port}", f"--data={tmp_path}/data"]
    command += ["--spark-enabled=false", "--shutdown-timeout=60"]
    process = subprocess.Popen(command, cwd=ROOT, stderr=subprocess.PIPE, text=True)
    try:
        assert process.stderr is not None
        assert "listening" in process.stderr.readline()
        with socket.create_connection(("127.0.0.1", port), timeout=60) as client:
            client.sendall(struct.pack(">ii", 8, 80877103))
            assert client.recv(1) == b"N"
        assert "database open" in process.stderr.readline()
        end(process, seconds=60)
        assert process.stderr.read().splitlines()[-1].endswith("database closed")
    finally:
        end(process)
        process.stderr.close()
    assert process.returncode == 0


def test_the_modules_of_the_first_byte_are_light() -> None:
    heavy = ("pyarrow", "duckdb", "pglast", "pyspark")
    code = f"import sys, server.main; print([name for name in {heavy} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_a_port_in_use_is_one_clear_line(running: Millstream, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "server", f"--listen=127.0.0.1:{running.port}", f"--data={tmp_path}"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 1
    assert "cannot listen on 127.0.0.1" in done.stderr
    assert len(done.stderr.splitlines()) == 1


@pytest.mark.slow
def test_why_the_database_does_not_open_is_one_clear_line(tmp_path: Path) -> None:
    """Another server's data folder, in which nothing is changed, and one that cannot be written."""

    def reason(data: Path) -> str:
        command = [sys.executable, "-m", "server", f"--listen=127.0.0.1:{free_port()}", f"--data={data}"]
        done = subprocess.run([*command, "--spark-enabled=false"], cwd=ROOT, capture_output=True, text=True)
        assert done.returncode == 1
        (listening, ending, why) = done.stderr.splitlines()
        assert ("listening" in listening, "shutting down" in ending) == (True, True)
        return why.partition(" CRITICAL server.main the server cannot start: ")[2]

    with Millstream(tmp_path / "data", QUIET) as running:
        spilled = tmp_path / "data/servers/main/spill"
        spilled.mkdir(exist_ok=True)
        assert reason(running.data).startswith(f"55006: another server (process {running.pid}) runs on this")
        assert spilled.exists()
    (tmp_path / "file").touch()
    (tmp_path / "data/servers/main").rename(tmp_path / "data/servers/other")
    (tmp_path / "data/servers/main").symlink_to(tmp_path / "file")
    assert "File exists" in reason(tmp_path / "data")


@pytest.mark.slow
def test_a_database_that_opened_for_nothing_is_closed(tmp_path: Path) -> None:
    """Its threads have ended, and with them its resources elsewhere: Spark, and the other servers' trust."""
    (tmp_path / "login_secret").mkdir()

    async def run() -> None:
        with pytest.raises(CannotStart, match="Is a directory"):
            await Server(Chosen(Config(data=tmp_path, listen=Address("127.0.0.1", 0), spark_enabled=False))).run(Stop())

    before = set(threading.enumerate())
    asyncio.run(run())
    assert {"sequencer", "maintenance"}.isdisjoint(each.name for each in set(threading.enumerate()) - before)


@pytest.mark.slow
def test_termination_tells_clients_and_keeps_what_was_acknowledged() -> None:
    with Millstream(settings=QUIET) as server:
        with Wire(server.port) as idle, Wire(server.port) as copying:
            idle.start()
            idle.query("CREATE TABLE t (a integer); INSERT INTO t VALUES (1)")
            copying.start()
            copying.send(("Q", b"COPY t FROM STDIN\0"), ("d", b"2\n"))
            copying.until("G")
            os.kill(server.pid, signal.SIGTERM)
            fields = error_fields(idle.until_ready())
            assert (fields["S"], fields["C"]) == ("FATAL", "57P01")
            assert idle.message() is None
            assert "E" in letters(copying.until_ready())
        assert server.wait(60) == 0
        server.restart()
        with Wire(server.port) as again:
            again.start()
            assert rows(again.query("SELECT a FROM t")) == [(b"1",)]
        assert "database closed" in server.log()


@pytest.mark.slow
def test_termination_lets_transactions_end_and_a_second_signal_does_not() -> None:
    with Millstream(settings={**QUIET, "drain_timeout": 60}) as server:
        with Wire(server.port) as idle, Wire(server.port) as writing:
            idle.start()
            writing.start()
            writing.query("CREATE TABLE t (a integer)")
            writing.query("BEGIN; INSERT INTO t VALUES (1)")
            os.kill(server.pid, signal.SIGTERM)
            assert error_fields(idle.until_ready())["C"] == "57P01"
            assert rows(writing.query("SELECT a FROM t")) == [(b"1",)]
            writing.query("COMMIT")
            assert error_fields(writing.until_ready())["C"] == "57P01"
        assert server.wait(60) == 0
        server.restart()
        with Wire(server.port) as endless:
            endless.start()
            assert rows(endless.query("SELECT a FROM t")) == [(b"1",)]
            endless.query("BEGIN; INSERT INTO t VALUES (2)")
            os.kill(server.pid, signal.SIGTERM)
            os.kill(server.pid, signal.SIGINT)
            assert error_fields(endless.until_ready())["C"] == "57P01"
        assert server.wait(60) == 0


@pytest.mark.slow
def test_termination_leaves_a_statement_behind_that_cannot_be_stopped() -> None:
    """The engine checks for interrupts between values, not while it matches one of 64 MB for minutes."""
    minutes = (
        b"SELECT repeat(string_agg(md5(a::text), ''), 1000) ~ '[0-7][0-9a-f]{250}[0-9a-f]{250}[0-9a-f]{250}z' FROM t\0"
    )
    values = ",".join(f"({number})" for number in range(2000))
    with Millstream(settings={**QUIET, "shutdown_timeout": 0.5}) as server:
        with Wire(server.port) as writing, Wire(server.port) as endless:
            writing.start()
            writing.query(f"CREATE TABLE t (a integer); INSERT INTO t VALUES {values}")
            endless.start()
            before = _worked(server.pid)
            endless.send(("Q", minutes))
            wait_until(lambda: _worked(server.pid) > before + 1, 120, "matching")  # earlier texts take only a part
            writing.query("DELETE FROM t WHERE a > 0")
            os.kill(server.pid, signal.SIGTERM)
            assert server.wait(60) == 0
        assert server.log().splitlines()[-1].endswith("database closed")
        server.restart()
        with Wire(server.port) as again:
            again.start()
            assert rows(again.query("SELECT a FROM t")) == [(b"0",)]


def _worked(pid: int) -> float:
    """The processor seconds of a process, without its waiting times."""
    fields = stat(pid)
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@pytest.mark.slow
def test_every_logged_event_is_one_line() -> None:
    with Millstream(settings={**QUIET, "log_level": "debug"}) as server:
        with Wire(server.port) as client:
            client.start()
            client.query("SELECT nothing")
        lines = server.log().splitlines()
    assert any("SELECT" in line or "42703" in line for line in lines)
    assert all(_LINE.fullmatch(line) for line in lines), lines


def test_line_ends_are_escaped() -> None:
    try:
        raise ValueError("two\nlines")
    except ValueError:
        record = logging.LogRecord("a.b", logging.ERROR, "", 0, "failed\n%s", ("here",), sys.exc_info())
    record.created = time.mktime((2026, 11, 21, 9, 0, 0, 0, 0, 0)) - time.timezone
    text = LineFormatter().format(record)
    assert "\n" not in text
    assert "failed\\nhere" in text
    assert "ValueError: two\\nlines" in text


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ("ada", "ada"),
        ("q address=1.2.3.4 user=root", '"q address=1.2.3.4 user=root"'),
        ('a"b\\c', '"a\\"b\\\\c"'),
        ("", '""'),
        ("a\u2028b\u0085c\x1b[2Jd\u202ee", "a\\u2028b\\u0085c\\u001b[2Jd\\u202ee"),
    ],
)
def test_a_value_forges_neither_a_field_nor_a_line(value: str, shown: str) -> None:
    record = logging.LogRecord(
        "a.b", logging.INFO, "", 0, "login failed user=%s port=%d: %s", (value, 5, "x y=1"), None
    )
    assert LineFormatter().format(record).endswith(f' INFO a.b login failed user={_quoted(shown)} port=5: "x y=1"')
    line = JsonFormatter().format(record)
    assert len(line.splitlines()) == 1
    assert json.loads(line)["user"] == value


def _quoted(shown: str) -> str:
    return shown if shown.startswith('"') or "\\u2028" not in shown else f'"{shown}"'


def test_a_line_of_json_has_the_message_and_its_fields() -> None:
    arguments = ("127.0.0.1", 5433, "x")
    record = logging.LogRecord("server.x", logging.INFO, "f", 1, "listening address=%s port=%d: %s", arguments, None)
    event = json.loads(JsonFormatter().format(record))
    assert event.pop("time").endswith("Z")
    assert event == {
        "level": "info",
        "logger": "server.x",
        "message": "listening address=127.0.0.1 port=5433: x",
        "address": "127.0.0.1",
        "port": 5433,
    }


def test_arrow_uses_the_c_librarys_memory() -> None:
    loads = "from server.operations.allocator import keep_freed_memory; keep_freed_memory(); import pyarrow"
    code = f"{loads}; print(pyarrow.default_memory_pool().backend_name)"
    environment = {name: value for name, value in os.environ.items() if name != "ARROW_DEFAULT_MEMORY_POOL"}
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, env=environment, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "system"
