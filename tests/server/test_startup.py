"""From the first byte to ReadyForQuery, and failures on the way."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import struct
import subprocess
import sys

import psycopg
import pytest

from server.login.startup import startup_settings
from tests.rig.beside import Beside
from tests.rig.process import wait_until
from tests.rig.server import ROOT, Millstream
from tests.server.wire import Wire, error_fields, letters, rows, tags

REPORTED = {
    "application_name", "client_encoding", "DateStyle", "default_transaction_read_only", "in_hot_standby",
    "integer_datetimes", "IntervalStyle", "is_superuser", "server_encoding", "server_version",
    "session_authorization", "standard_conforming_strings", "TimeZone",
}  # fmt: skip


def test_start_up_reports_what_clients_need(running: Millstream) -> None:
    with Wire(running.port) as client:
        messages = client.start(database="millstream", application_name="me", client_encoding="'utf-8'")
    assert letters(messages) == "R" + "S" * 13 + "KZ"
    assert messages[0][1] == struct.pack(">i", 0)
    statuses = dict(body[:-1].decode().split("\0") for letter, body in messages if letter == "S")
    assert statuses.keys() == REPORTED
    assert statuses["application_name"] == "me"
    assert statuses["client_encoding"] == "UTF8"
    assert statuses["session_authorization"] == "millstream"
    assert messages[-1][1] == b"I"


@pytest.mark.parametrize("code", [80877103, 80877104])
def test_encryption_is_declined_and_start_up_goes_on(running: Millstream, code: int) -> None:
    with Wire(running.port) as client:
        client.socket.sendall(struct.pack(">ii", 8, code))
        assert client.read(1) == b"N"
        assert letters(client.start())[-1] == "Z"


@pytest.mark.parametrize(
    ("user", "parameters", "sqlstate"),
    [
        ("", {}, "28000"),
        ("nobody", {}, "28000"),
        ("millstream", {"database": "other"}, "3D000"),
        ("millstream", {"replication": "database"}, "0A000"),
        ("millstream", {"colour": "red"}, "42704"),
        ("millstream", {"TimeZone": "Mars/Olympus"}, "22023"),
        ("millstream", {"options": "-c work_mem"}, "42601"),
        ("millstream", {"server_version": "1"}, "55P02"),
        ("millstream", {"is_superuser": "on"}, "55P02"),
        ("millstream", {"options": "-c max_connections=1000"}, "55P02"),
        ("millstream", {"client_encoding": "Klingon"}, "22023"),
        ("millstream", {"client_encoding": "euc_tw"}, "0A000"),
    ],
)
def test_refused(running: Millstream, user: str, parameters: dict[str, str], sqlstate: str) -> None:
    with Wire(running.port) as client:
        messages = client.start(user, **parameters)
        fields = error_fields(messages)
        assert (fields["S"], fields["C"]) == ("FATAL", sqlstate)
        assert client.message() is None


@pytest.mark.parametrize("code", [80877103, 80877104])
def test_nothing_comes_behind_a_request_for_encryption(running: Millstream, code: int) -> None:
    with Wire(running.port) as client:
        client.socket.sendall(struct.pack(">ii", 8, code) + struct.pack(">ihh", 9, 3, 0) + b"\0")
        assert client.read(1) == b"N"
        assert error_fields(client.until_ready())["C"] == "08P01"
        assert client.message() is None


def test_an_unauthenticated_connection_takes_no_place(running: Millstream) -> None:
    begun = struct.pack(">ihh", 60, 3, 0) + b"user"
    strangers = [socket.create_connection(("127.0.0.1", running.port), timeout=60) for _ in range(300)]
    try:
        for stranger in strangers[::2]:
            stranger.sendall(begun)
        with Wire(running.port) as client:
            assert letters(client.start(database="millstream"))[-1] == "Z"
        assert is_dropped(strangers[0])  # of more than 100, only the first ones
        strangers[-1].sendall(begun[:1])
        with Wire(running.port) as client:
            assert letters(client.start(database="millstream"))[-1] == "Z"
    finally:
        for stranger in strangers:
            stranger.close()


def test_no_more_strangers_wait_when_many_come_at_once() -> None:
    settings = {"maintenance_engine": "embedded", "spark_enabled": False, "max_connections": 2}
    with Millstream(settings=settings) as server, contextlib.ExitStack() as held:
        os.kill(server.pid, signal.SIGSTOP)  # so that the server finds all of them in one turn
        strangers = [held.enter_context(socket.socket()) for _ in range(125)]
        try:
            for stranger in strangers:
                stranger.settimeout(60)
                stranger.connect(("127.0.0.1", server.port))
        finally:
            os.kill(server.pid, signal.SIGCONT)
        assert all(is_dropped(stranger) for stranger in strangers[:25])
        with Wire(server.port) as client:
            assert letters(client.start(database="millstream"))[-1] == "Z"


def is_dropped(client: socket.socket) -> bool:
    """Whether a connection has ended without a message."""
    try:
        return client.recv(1) == b""
    except ConnectionResetError:
        return True


def test_clients_beyond_the_limit_are_refused() -> None:
    settings = {"maintenance_engine": "embedded", "spark_enabled": False, "max_connections": 2}
    with Millstream(settings=settings) as server, contextlib.ExitStack() as held:
        for _ in range(2):
            wait_until(lambda: _stays(server, held), what="end of who looked whether it answers")
        with Wire(server.port) as third:
            fields = error_fields(third.start(database="millstream"))
            assert (fields["S"], fields["C"]) == ("FATAL", "53300")


def _stays(server: Millstream, held: contextlib.ExitStack) -> bool:
    """Whether a client can connect; it stays connected."""
    with contextlib.ExitStack() as own:
        is_in = letters(own.enter_context(Wire(server.port)).start(database="millstream"))[-1] == "Z"
        if is_in:
            held.push(own.pop_all())
        return is_in


def test_protocol_versions(running: Millstream) -> None:
    with Wire(running.port) as client:
        client.socket.sendall(struct.pack(">ihh", 9, 2, 0) + b"\0")
        assert error_fields(client.until_ready())["C"] == "0A000"
    with Wire(running.port) as client:
        messages = client.start(minor=99, **{"_pq_.x": "y"})
        assert messages[0] == ("v", struct.pack(">hhi", 3, 2, 1) + b"_pq_.x\0")
        assert messages[-1] == ("Z", b"I")
    for minor, length in ((0, 4), (1, 4), (2, 32)):
        with Wire(running.port) as client:
            assert letters(client.start(minor=minor))[0] == "R"
            assert len(client.backend[1]) == length


def test_libpq_speaks_the_newest_protocol(running: Millstream) -> None:
    endless = "SELECT count(*) FROM generate_series(1, 99999) a, generate_series(1, 99999) b WHERE a > b"
    state = "SELECT state FROM pg_stat_activity WHERE pid = %s"
    with (
        running.connect(max_protocol_version="latest", options="-c statement_timeout=60s") as client,
        running.connect() as other,
    ):
        assert client.pgconn.full_protocol_version == 30002
        query = Beside(client.execute, endless)
        wait_until(lambda: other.execute(state, (client.info.backend_pid,)).fetchone() == ("active",), what="query")
        client.cancel_safe()
        with pytest.raises(psycopg.errors.QueryCanceled, match="user request"):
            query.result()


def test_start_up_options_are_settings(running: Millstream) -> None:
    with Wire(running.port) as client:
        client.start(options=r"-c statement_timeout=7s --application-name=a\ b")
        assert rows(client.query("SHOW statement_timeout")) == [(b"7s",)]
        assert rows(client.query("SHOW application_name")) == [(b"a b",)]
        assert tags(client.query("RESET ALL")) == ["RESET"]
        assert rows(client.query("SHOW statement_timeout")) == [(b"7s",)]


def test_options_as_a_client_may_spell_them() -> None:
    parameters = {"user": "u", "database": "d", "options": "-c a.b=1 -ca.c=2 --a.d=3", "jit": "on"}
    assert startup_settings(parameters) == {"a.b": "1", "a.c": "2", "a.d": "3", "jit": "on"}


def test_too_many_clients(running: Millstream) -> None:
    clients = []
    try:
        for _ in range(60):
            clients.append(Wire(running.port))
            messages = clients[-1].start()
            if messages[-1][0] == "E":
                assert error_fields(messages)["C"] == "53300"
                break
        else:
            pytest.fail("nobody was refused")
        assert len(clients) > 10
    finally:
        for client in clients:
            client.__exit__(None, None, None)
    wait_until(lambda: _is_alone(running), what="end of all clients")


def _is_alone(server: Millstream) -> bool:
    """Whether a client can connect, and all earlier sessions have ended."""
    with Wire(server.port) as client:
        is_in = letters(client.start())[-1] == "Z"
        return is_in and rows(client.query("SELECT count(*) FROM pg_stat_activity")) == [(b"1",)]


def test_garbage_ends_only_its_connection(running: Millstream) -> None:
    with Wire(running.port) as client:
        client.start()
        client.socket.sendall(b"\xff\xff\xff\xff\xff")
        assert error_fields(client.until_ready())["C"] == "08P01"
        assert client.message() is None
    with Wire(running.port) as client:
        assert letters(client.start())[-1] == "Z"


def test_wrong_configuration_says_so_and_exits() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "server", "--listen=0.0.0.0:5433"], cwd=ROOT, capture_output=True, text=True
    )
    assert done.returncode == 2
    assert "listening beyond loopback requires TLS" in done.stderr
    assert len(done.stderr.splitlines()) == 1
