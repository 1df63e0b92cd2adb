"""Servers that ask each other: who has the storage's key, and what becomes of a question when somebody is gone."""

from __future__ import annotations

import os
import shutil
import signal
import struct
import threading
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from catalog.errors import SqlError
from executor.moving.elsewhere import Unwanted
from executor.moving.questions import decode_answer
from server.peers import Peers, proof
from tests.rig.server import Millstream
from tests.server.test_cluster import server
from tests.server.test_cluster_views import SETUP, Writer, migrate, require
from tests.server.test_security import certificates
from tests.server.wire import Wire, error_fields

pytestmark = pytest.mark.slow

__all__ = ["certificates"]


@pytest.fixture(scope="module")
def storage(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("storage") / "storage"


@pytest.fixture(scope="module")
def running(storage: Path) -> Iterator[Millstream]:
    with server(storage, "one") as one:
        yield one


def address_of(running: Millstream) -> str:
    return f"127.0.0.1:{running.port}"


def sqlstate(answer: bytes) -> str:
    with pytest.raises(SqlError) as raised:
        decode_answer(answer)
    return raised.value.sqlstate


def test_who_has_the_key_is_answered(running: Millstream, storage: Path) -> None:
    peers = Peers((storage / "key").read_bytes())
    assert ((storage / "key").stat().st_mode & 0o777) == 0o600
    for _ in range(3):
        assert sqlstate(peers.ask(address_of(running), b"no question", lambda: False)) == "08P01"
    threads = [threading.Thread(target=peers.ask, args=(address_of(running), b"", lambda: False)) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    peers.close()


def test_who_has_another_key_is_not(running: Millstream) -> None:
    with pytest.raises(ConnectionError, match="no server of this storage"):
        Peers(b"another").ask(address_of(running), b"", lambda: False)


@pytest.mark.parametrize(
    ("nonce", "given", "code"),
    [(b"x" * 32, b"", "28000"), (b"x" * 32, proof(b"key", "asks", b"x" * 32, b""), "28000"), (b"x", b"", "08P01")],
)
def test_a_proof_that_is_none(nonce: bytes, given: bytes, code: str, running: Millstream) -> None:
    with Wire(running.port) as wire:
        wire.socket.sendall(struct.pack(">ii", 8 + len(nonce), 80877904) + nonce)
        if len(nonce) == 32:
            assert wire.message() is not None
            wire.send(("p", given), ("F", b"question"))
        found = wire.message()
        assert found is not None
        assert error_fields([found])["C"] == code
        assert wire.message() is None


def test_who_asks_before_the_proof_is_not_answered(running: Millstream) -> None:
    with Wire(running.port) as wire:
        wire.socket.sendall(struct.pack(">ii", 40, 80877904) + bytes(32))
        assert wire.message() is not None
        wire.send(("F", b"question"))
        found = wire.message()
        assert found is not None
        assert error_fields([found])["C"] == "08P01"


def test_nobody_is_there() -> None:
    for address in ("127.0.0.1:1", "127.0.0.1", ""):
        with pytest.raises(OSError, match=r"refused|no address"):
            Peers(b"").ask(address, b"", lambda: False)


@pytest.mark.skipif(shutil.which("openssl") is None, reason="openssl is not installed")
def test_over_tls(certificates: Path, tmp_path: Path) -> None:
    own = {"ssl": True, "ssl_cert_file": certificates / "localhost.crt", "ssl_key_file": certificates / "localhost.key"}
    (certificates / "ssl_only.conf").write_text("hostssl all millstream 127.0.0.1/32 trust\n")
    with server(tmp_path, "home") as home, server(tmp_path, "other") as other:
        with home.connect() as client:
            client.execute(SETUP)
        other.settings |= {**own, "hba_file": certificates / "ssl_only.conf"}
        other.restart()
        with home.connect() as client:
            writer = Writer(client)
            writer.copy(10)
            migrate(client, "other")
            writer.copy(10)
            require(client, writer.done)


def test_a_view_is_read_at_its_home(tmp_path: Path) -> None:
    """Also with another server that was restarted, that is down, and that stands still."""
    with server(tmp_path, "home") as home, server(tmp_path, "other") as other, home.connect() as client:
        client.execute(SETUP)
        client.execute("CREATE TABLE t (k int); INSERT INTO t VALUES (1)")
        writer = Writer(client)
        writer.copy(100)
        migrate(client, "other")
        for _ in range(2):
            writer.copy(100)
            require(client, writer.done)
            joined = client.execute("SELECT c FROM v JOIN t USING (k)").fetchall()
            assert joined == client.execute("SELECT c FROM v WHERE k = %s", (1,)).fetchall() == [(writer.done // 2,)]
            other.restart()
        with other.connect() as there:
            require(there, writer.done)
        os.kill(other.pid, signal.SIGSTOP)
        client.execute("SET statement_timeout = '300ms'")
        with pytest.raises(psycopg.errors.QueryCanceled):
            client.execute("SELECT * FROM v")
        client.execute("RESET statement_timeout")
        os.kill(other.pid, signal.SIGCONT)
        require(client, writer.done)
        other.kill9()
        with pytest.raises(psycopg.OperationalError, match=r"cannot be reached at 127\.0\.0\.1") as raised:
            client.execute("SELECT * FROM v")
        assert raised.value.sqlstate == "08001"
        other.restart()
        writer.copy(100)
        require(client, writer.done)


def test_an_answer_that_nobody_wants(running: Millstream, storage: Path) -> None:
    peers = Peers((storage / "key").read_bytes())
    with pytest.raises(Unwanted):
        peers.ask(address_of(running), b"", lambda: True)
