"""Servers that ask each other: authentication with the storage's key, and questions to a server that is down."""

from __future__ import annotations

import contextlib
import os
import select
import shutil
import signal
import socket
import ssl
import struct
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import psycopg
import pytest

from catalog.values.errors import SqlError
from executor.remote_reads.messages import Unwanted, decode_answer
from protocol.decoder import SSL
from server.login.peers import Peers, proof
from tests.rig.beside import Beside
from tests.rig.server import Millstream
from tests.server.cluster import server
from tests.server.test_cluster_views import SETUP, Writer, migrate, require
from tests.server.test_security import certificates
from tests.server.wire import Wire, error_fields

pytestmark = pytest.mark.slow

__all__ = ["certificates"]


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Allows slow connections between two servers."""
    monkeypatch.setattr("server.login.peers._CONNECT", 60.0)


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


def test_a_server_with_the_key_is_answered(running: Millstream, storage: Path) -> None:
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


def test_a_server_with_another_key_is_not_answered(running: Millstream) -> None:
    with pytest.raises(ConnectionError, match="does not share this storage"):
        Peers(b"another").ask(address_of(running), b"", lambda: False)


@pytest.mark.parametrize(
    ("nonce", "given", "code"),
    [(b"x" * 32, b"", "28000"), (b"x" * 32, proof(b"key", "asks", b"x" * 32, b"", b""), "28000"), (b"x", b"", "08P01")],
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


def test_a_question_before_authentication_is_not_answered(running: Millstream) -> None:
    with Wire(running.port) as wire:
        wire.socket.sendall(struct.pack(">ii", 40, 80877904) + bytes(32))
        assert wire.message() is not None
        wire.send(("F", b"question"))
        found = wire.message()
        assert found is not None
        assert error_fields([found])["C"] == "08P01"


def test_no_server_is_there() -> None:
    for address in ("127.0.0.1:1", "127.0.0.1", ""):
        with pytest.raises(OSError, match=r"refused|not an address"):
            Peers(b"").ask(address, b"", lambda: False)


def test_a_server_without_shared_storage_answers_no_server() -> None:
    with Millstream(settings={"spark_enabled": False}) as alone:
        key = (alone.data / "shared" / "key").read_bytes()
        with pytest.raises(ConnectionError, match="does not share this storage"):
            Peers(key).ask(address_of(alone), b"", lambda: False)


@pytest.mark.parametrize("answered", [b"R\0\0\0\3", b"R\0\0\0\0", b"R\x7f\xff\xff\xff", b"R\xff\xff\xff\xff"])
def test_a_peer_that_is_no_server_of_the_storage(answered: bytes) -> None:
    """Nothing that it sends is kept, and no server waits for it."""

    def answering(one: socket.socket, _: int) -> None:
        one.sendall(b"N")
        one.recv(100)
        one.sendall(answered)

    with Relay(answering) as relay, pytest.raises(ConnectionError, match="does not share this storage"):
        Peers(b"key").ask(relay.address, b"", lambda: False)


def test_bytes_before_tls() -> None:
    relay = Relay(lambda one, _: one.sendall(b"SR"))
    with relay, pytest.raises(ConnectionError, match="it sent unencrypted data"):
        Peers(b"key").ask(relay.address, b"", lambda: False)


class Relay:
    """A relay between two servers, for one connection."""

    def __init__(self, work: Callable[[socket.socket, int], object], port: int = 0) -> None:
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.address = f"127.0.0.1:{self._listening.getsockname()[1]}"
        self._work, self._port = work, port

    def __enter__(self) -> Relay:
        self._running = Beside(self._run)
        return self

    def __exit__(self, *error: object) -> None:
        self._running.result()
        self._listening.close()

    def _run(self) -> None:
        one, _ = self._listening.accept()
        with one, contextlib.suppress(OSError):
            one.settimeout(60)
            one.recv(8)  # SSLRequest
            self._work(one, self._port)


def without_tls(one: socket.socket, port: int) -> None:
    """Answers that there is no TLS, and passes on the rest."""
    one.sendall(b"N")
    with socket.create_connection(("127.0.0.1", port), 60) as other:
        passed_on(one, other)


def passed_on(one: socket.socket, other: socket.socket) -> None:
    """Passes data on until one side ends; an answer may arrive in several pieces."""
    others = {one: other, other: one}
    while readable := select.select((one, other), (), (), 60)[0]:
        for source in readable:
            source.settimeout(0.05)
            try:
                data = source.recv(1 << 15)
            except TimeoutError:  # TLS records followed
                continue
            if not data:
                return
            others[source].sendall(data)


@pytest.mark.skipif(shutil.which("openssl") is None, reason="openssl is not installed")
def test_no_relay_can_stand_between_two_servers(certificates: Path, tmp_path: Path) -> None:
    """An attacker succeeds neither without TLS nor with another certificate."""

    def with_another(one: socket.socket, port: int) -> None:
        one.sendall(b"S")
        own = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        own.load_cert_chain(certificates / "alice.crt", certificates / "alice.key")
        asks = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        asks.check_hostname, asks.verify_mode = False, ssl.CERT_NONE
        with socket.create_connection(("127.0.0.1", port), 60) as other:
            other.sendall(struct.pack(">ii", 8, SSL))
            assert other.recv(1) == b"S"
            with own.wrap_socket(one, server_side=True) as asking, asks.wrap_socket(other) as answering:
                passed_on(asking, answering)

    own = {"ssl": True, "ssl_cert_file": certificates / "localhost.crt", "ssl_key_file": certificates / "localhost.key"}
    with server(tmp_path, "one") as one:
        plain = one.port
        peers = Peers((tmp_path / "key").read_bytes())
        with Relay(without_tls, plain) as relay:
            assert sqlstate(peers.ask(relay.address, b"", lambda: False)) == "08P01"
            peers.close()
        one.settings |= own
        one.restart()
        assert sqlstate(peers.ask(address_of(one), b"", lambda: False)) == "08P01"
        for between in (without_tls, with_another):
            with Relay(between, one.port) as relay, pytest.raises(ConnectionError, match="does not share this storage"):
                peers.ask(relay.address, b"", lambda: False)
        peers.close()


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
    """Also if the other server was restarted, is down, or stands still."""
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


def test_an_answer_without_a_waiting_request(running: Millstream, storage: Path) -> None:
    peers = Peers((storage / "key").read_bytes())
    with pytest.raises(Unwanted):
        peers.ask(address_of(running), b"", lambda: True)
