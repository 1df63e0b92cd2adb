"""Roles that log in: passwords, certificates, TLS, the table of hosts, and their privileges."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import socket
import ssl
import struct
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import asyncpg
import psycopg
import pytest

from server.net.tls import end_point
from tests.rig.process import wait_until
from tests.rig.server import ROOT, Millstream
from tests.server.wire import Wire, error_fields, frame, letters

pytestmark = pytest.mark.skipif(shutil.which("openssl") is None, reason="openssl is not installed")

TABLE = """\
hostssl  all  carl      127.0.0.1/32  cert
hostssl  all  alice     127.0.0.1/32  scram-sha-256  clientcert=verify-full
host     all  eve       127.0.0.1/32  reject
hostssl  all  tls_only  127.0.0.1/32  scram-sha-256
host     all  millstream,trusted  127.0.0.1/32  trust
host     all  bob,nobody,nameless,late,one,silent  127.0.0.1/32  scram-sha-256
"""
EXTENSIONS = "subjectAltName=DNS:localhost,IP:127.0.0.1"
EC = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes")


def openssl(folder: Path, *words: str) -> None:
    subprocess.run(["openssl", *words], cwd=folder, check=True, capture_output=True)


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A certificate authority, and its certificates for the server and for two clients."""
    folder = tmp_path_factory.mktemp("certificates")
    (folder / "extensions").write_text(EXTENSIONS)
    root = ("-x509", "-days", "2", "-subj", "/CN=root", "-keyout", "root.key", "-out", "root.crt")
    openssl(folder, "req", *EC, *root)
    for name in ("localhost", "alice", "carl"):
        openssl(folder, "req", *EC, "-subj", f"/CN={name}", "-keyout", f"{name}.key", "-out", f"{name}.csr")
        signed = ("-in", f"{name}.csr", "-CA", "root.crt", "-CAkey", "root.key", "-CAcreateserial", "-days", "2")
        openssl(folder, "x509", "-req", *signed, "-extfile", "extensions", "-out", f"{name}.crt")
        (folder / f"{name}.key").chmod(0o600)
    return folder


@pytest.fixture(scope="module")
def server(certificates: Path) -> Iterator[Millstream]:
    settings = {
        "spark_enabled": False,
        "ssl": True,
        "ssl_cert_file": certificates / "localhost.crt",
        "ssl_key_file": certificates / "localhost.key",
        "ssl_ca_file": certificates / "root.crt",
        "hba_file": certificates / "hba.conf",
    }
    (certificates / "hba.conf").write_text(TABLE)
    with Millstream(settings=settings) as running:
        with running.connect() as admin:
            admin.execute("CREATE ROLE bob LOGIN PASSWORD 'пароль'")
            admin.execute("CREATE ROLE alice LOGIN PASSWORD 'a'")
            admin.execute("CREATE ROLE tls_only LOGIN PASSWORD 't'")
            admin.execute("CREATE ROLE late LOGIN PASSWORD 'l' VALID UNTIL '2020-01-01'")
            admin.execute("CREATE ROLE one LOGIN PASSWORD 'o' CONNECTION LIMIT 1")
            admin.execute("CREATE ROLE silent PASSWORD 's'")
            for name in ("carl", "trusted", "nameless"):
                admin.execute(f"CREATE ROLE {name} LOGIN")
        yield running


def connect(server: Millstream, user: str, password: str = "", **options: object) -> psycopg.Connection[tuple[object]]:
    address = {"host": "localhost", "hostaddr": "127.0.0.1", "port": server.port, "dbname": "millstream"}
    given = {"sslmode": "prefer", "sslcert": "none", "connect_timeout": 60, **options}
    return psycopg.connect(**address, user=user, password=password, autocommit=True, **given)  # type: ignore[arg-type]


def refused(attempt: Callable[[], object]) -> str:
    """The error that a client gets."""
    with pytest.raises(psycopg.OperationalError) as caught:
        attempt()
    return str(caught.value)


def files(certificates: Path, name: str) -> dict[str, object]:
    return {"sslcert": certificates / f"{name}.crt", "sslkey": certificates / f"{name}.key"}


@pytest.mark.slow
def test_a_password_with_and_without_tls(server: Millstream, certificates: Path) -> None:
    spoken = "SELECT ssl, version FROM pg_stat_ssl WHERE pid = pg_backend_pid()"
    root = {"sslmode": "verify-full", "sslrootcert": certificates / "root.crt"}
    with connect(server, "bob", "пароль", **root, channel_binding="require") as client:
        assert client.execute(spoken).fetchone() == (True, "TLSv1.3")
        assert client.execute("SELECT current_user, session_user").fetchone() == ("bob", "bob")
        assert client.info.parameter_status("is_superuser") == "off"
        assert client.info.parameter_status("session_authorization") == "bob"
    with connect(server, "bob", "пароль", sslmode="require", ssl_max_protocol_version="TLSv1.2") as client:
        assert client.execute(spoken).fetchone() == (True, "TLSv1.2")
    with connect(server, "bob", "пароль", sslmode="disable") as client:
        assert client.execute(spoken).fetchone() == (False, None)


@pytest.mark.parametrize("user", ["bob", "nobody", "nameless", "late"])
def test_a_wrong_password_tells_nothing(server: Millstream, user: str) -> None:
    password = "l" if user == "late" else "wrong"
    for mode in ("disable", "require"):
        message = refused(lambda mode=mode: connect(server, user, password, sslmode=mode))  # type: ignore[misc]
        assert f'FATAL:  password authentication failed for user "{user}"' in message


def test_the_salt_of_an_unknown_role_stays_the_same(server: Millstream) -> None:
    def salt() -> bytes:
        with Wire(server.port) as client:
            body = b"user\0nobody\0database\0millstream\0\0"
            client.socket.sendall(struct.pack(">ihh", len(body) + 8, 3, 0) + body)
            asked = client.message()
            assert asked is not None
            assert asked == ("R", struct.pack(">i", 10) + b"SCRAM-SHA-256\0\0")
            first = b"n,,n=,r=abcdefgh"
            client.send(("p", b"SCRAM-SHA-256\0" + struct.pack(">i", len(first)) + first))
            said = client.message()
            assert said is not None
            return said[1].split(b",")[1]

    assert salt() == salt()


def test_rejected_clients_and_clients_without_a_line(server: Millstream) -> None:
    message = refused(lambda: connect(server, "eve", sslmode="disable"))
    assert 'pg_hba.conf rejects connection for host "127.0.0.1", user "eve", database "millstream", no enc' in message
    message = refused(lambda: connect(server, "silent", "s"))
    assert 'role "silent" is not permitted to log in' in message
    message = refused(lambda: connect(server, "tls_only", "t", sslmode="disable"))
    assert 'no pg_hba.conf entry for host "127.0.0.1", user "tls_only", database "millstream", no enc' in message
    with connect(server, "one", "o"):
        assert 'too many connections for role "one"' in refused(lambda: connect(server, "one", "o"))
    with Wire(server.port) as client:
        assert error_fields(client.start("eve", database="millstream"))["C"] == "28000"


def test_certificates_of_clients(server: Millstream, certificates: Path) -> None:
    with connect(server, "carl", sslmode="require", **files(certificates, "carl")) as client:
        shown = "SELECT client_dn FROM pg_stat_ssl WHERE pid = pg_backend_pid()"
        assert client.execute(shown).fetchone() == ("/CN=carl",)
    message = refused(lambda: connect(server, "carl", sslmode="require", **files(certificates, "alice")))
    assert 'certificate authentication failed for user "carl"' in message
    message = refused(lambda: connect(server, "alice", "a", sslmode="require"))
    assert "connection requires a valid client certificate" in message
    with connect(server, "alice", "a", sslmode="require", **files(certificates, "alice")) as client:
        assert client.execute("SELECT current_user").fetchone() == ("alice",)
    message = refused(lambda: connect(server, "alice", "b", sslmode="require", **files(certificates, "alice")))
    assert "password authentication failed" in message


def test_asyncpg(server: Millstream, certificates: Path) -> None:
    async def run() -> object:
        context = ssl.create_default_context(cafile=str(certificates / "root.crt"))
        client = await asyncpg.connect(
            host="localhost", port=server.port, user="bob", password="пароль", database="millstream", ssl=context
        )
        try:
            return await client.fetchval("SELECT current_user")
        finally:
            await client.close()

    assert asyncio.run(run()) == "bob"


@pytest.mark.skipif(shutil.which("psql") is None, reason="psql is not installed")
def test_psql(server: Millstream, certificates: Path) -> None:
    dsn = f"host=localhost hostaddr=127.0.0.1 port={server.port} dbname=millstream user=bob"
    tls = f"sslmode=verify-full sslrootcert={certificates / 'root.crt'} channel_binding=require"
    for password, status in (("пароль", 0), ("wrong", 2)):
        command = ["psql", "-X", "-At", "-c", "SELECT current_user", f"{dsn} {tls}"]
        environment = {**os.environ, "PGPASSWORD": password}
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        assert (done.returncode, done.stdout) == (status, "bob\n" if status == 0 else "")


@pytest.mark.slow
def test_a_large_result_and_a_large_copy_over_tls(server: Millstream) -> None:
    with server.connect(sslmode="require") as client:
        client.execute("CREATE TABLE big (a int, b text)")
        with client.cursor() as cursor, cursor.copy("COPY big FROM STDIN") as copy:
            for start in range(0, 200_000, 1000):
                copy.write("".join(f"{value}\t{'x' * 50}\n" for value in range(start, start + 1000)))
        found = client.execute("SELECT a, b FROM big").fetchall()
        assert len(found) == 200_000
        assert sum(row[0] for row in found) == sum(range(200_000))
        client.execute("DROP TABLE big")


def start_packet(user: str) -> bytes:
    body = f"user\0{user}\0database\0millstream\0\0".encode()
    return struct.pack(">ihh", len(body) + 8, 3, 0) + body


def test_tls_at_once_needs_its_protocol(server: Millstream, certificates: Path) -> None:
    context = ssl.create_default_context(cafile=str(certificates / "root.crt"))
    context.set_alpn_protocols(["postgresql"])
    with (
        socket.create_connection(("127.0.0.1", server.port), 60) as plain,
        context.wrap_socket(plain, server_hostname="localhost") as client,
    ):
        assert client.selected_alpn_protocol() == "postgresql"
        client.sendall(start_packet("trusted"))
        data = b""
        while not data.endswith(b"Z\0\0\0\5I"):
            data += client.recv(65536)
        client.sendall(frame("X", b""))
    for protocols in ([], ["http/1.1"]):
        context = ssl.create_default_context(cafile=str(certificates / "root.crt"))
        context.set_alpn_protocols(protocols)
        assert not answered(server, context)


def answered(server: Millstream, context: ssl.SSLContext) -> bytes:
    """The server's answer to TLS without a request."""
    with socket.create_connection(("127.0.0.1", server.port), 60) as plain:
        try:
            with context.wrap_socket(plain, server_hostname="localhost") as client:
                client.sendall(start_packet("trusted"))
                return client.recv(1)
        except OSError:
            return b""


def test_what_comes_behind_a_request_for_tls_is_no_statement(server: Millstream) -> None:
    with Wire(server.port) as client:
        client.socket.sendall(struct.pack(">ii", 8, 80877103) + start_packet("trusted"))
        assert client.read(1) == b"S"
        assert error_fields(client.until_ready())["M"] == "received unencrypted data after SSL request"
    with Wire(server.port) as client:
        client.socket.sendall(struct.pack(">ii", 8, 80877103))
        assert client.read(1) == b"S"
        client.socket.sendall(start_packet("trusted"))
        assert b"Z" not in client.read(1000)
    with Wire(server.port) as client:
        client.socket.sendall(start_packet("bob"))
        client.message()
        client.send(("Q", b"SELECT 1\0"))
        assert error_fields(client.until_ready())["C"] == "08P01"
    with Wire(server.port) as client:
        client.socket.sendall(start_packet("bob"))
        client.message()
        client.socket.sendall(b"p" + struct.pack(">i", 1 << 20))
        assert error_fields(client.until_ready())["C"] == "08P01"


def test_a_role_is_taken_on_only_by_its_members(server: Millstream) -> None:
    message = refused(lambda: connect(server, "trusted", options="-c role=millstream"))
    assert 'permission denied to set role "millstream"' in message
    message = refused(lambda: connect(server, "trusted", options="-c is_superuser=on"))
    assert 'parameter "is_superuser" cannot be changed' in message
    with connect(server, "trusted", options="-c session_authorization=millstream") as client:
        assert client.execute("SELECT current_user, session_user").fetchone() == ("trusted", "trusted")
        assert client.execute("SHOW is_superuser").fetchone() == ("off",)
    with server.connect(options="-c role=trusted") as client:
        assert client.execute("SELECT current_user, session_user").fetchone() == ("trusted", "millstream")
        client.execute("RESET ALL")
        client.execute("DISCARD ALL")
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            client.execute("SELECT * FROM pg_authid")


def test_what_others_do_is_hidden(server: Millstream) -> None:
    shown = "SELECT usename, query LIKE 'SELECT%', client_addr IS NULL FROM pg_stat_activity WHERE pid = {}"
    with server.connect() as admin, connect(server, "trusted") as client:
        pid = admin.info.backend_pid
        admin.execute("SELECT 1")
        assert client.execute(shown.format(pid)).fetchone() == ("millstream", False, True)
        assert client.execute(shown.format(client.info.backend_pid)).fetchone() == ("trusted", True, False)
        admin.execute("GRANT pg_monitor TO trusted")
        assert client.execute(shown.format(pid)).fetchone() == ("millstream", False, False)
        admin.execute("REVOKE pg_monitor FROM trusted")


def test_the_table_is_read_anew(server: Millstream, certificates: Path) -> None:
    hba = certificates / "hba.conf"
    count = "SELECT count(*), count(error) FROM pg_hba_file_rules"
    with server.connect() as admin:
        assert admin.execute(count).fetchone() == (6, 0)
        try:
            hba.write_text(TABLE + "host all all 10.0.0.0/8 trust\n")
            assert admin.execute(count).fetchone() == (7, 1)
            assert admin.execute("SELECT pg_reload_conf()").fetchone() == (False,)
            connect(server, "trusted").close()
            assert "line 7: trust is for loopback addresses only" in server.log()
            hba.write_text("host all trusted 127.0.0.1/32 reject\n" + TABLE)
            os.kill(server.pid, signal.SIGHUP)
            wait_until(lambda: _is_refused(server), 60, "the table")
        finally:
            hba.write_text(TABLE)
            assert admin.execute("SELECT pg_reload_conf()").fetchone() == (True,)
        connect(server, "trusted").close()
        admin.execute("SET ROLE bob")
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            admin.execute("SELECT pg_reload_conf()")
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            admin.execute(count)


def _is_refused(server: Millstream) -> bool:
    try:
        connect(server, "trusted").close()
    except psycopg.OperationalError:
        return True
    return False


def test_which_roles_may_cancel_and_end_which_sessions(server: Millstream) -> None:
    with server.connect() as admin, connect(server, "trusted") as other:
        admin.execute("SET ROLE bob")
        for name, argument in (("cancel", other.info.backend_pid), ("terminate", admin.info.backend_pid)):
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                admin.execute(f"SELECT pg_{name}_backend({argument})")
        admin.execute("RESET ROLE; GRANT pg_signal_backend TO bob; SET ROLE bob")
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            admin.execute(f"SELECT pg_terminate_backend({admin.info.backend_pid})")
        assert admin.execute(f"SELECT pg_cancel_backend({other.info.backend_pid})").fetchone() == (True,)
        assert other.execute("SELECT 1").fetchone() == (1,)
        assert admin.execute(f"SELECT pg_terminate_backend({other.info.backend_pid})").fetchone() == (True,)
        with pytest.raises(psycopg.OperationalError):
            other.execute("SELECT 1")
        assert admin.execute("SELECT pg_terminate_backend(0), pg_cancel_backend(NULL)").fetchone() == (False, None)
        admin.execute("RESET ROLE; REVOKE pg_signal_backend FROM bob")


def test_prepared_statements_are_checked_for_the_role_that_runs_them(server: Millstream) -> None:
    with server.connect() as admin:
        admin.execute("CREATE TABLE kept (a int PRIMARY KEY)")
        admin.execute("CREATE FOREIGN TABLE posts (uid int) SERVER stream")
        admin.execute("CREATE VIEW totals AS SELECT uid, count(*) AS n FROM posts GROUP BY uid")
        admin.execute("GRANT SELECT ON kept TO trusted")
        with connect(server, "trusted") as reader:
            for locked in ("SELECT * FROM kept FOR UPDATE", "SELECT * FROM millstream.changes('totals')"):
                with pytest.raises(psycopg.errors.InsufficientPrivilege):
                    reader.execute(locked)
        statements = ("SELECT * FROM kept", "SELECT n FROM totals WHERE uid = %s", "INSERT INTO posts VALUES (%s)")
        values = ((), (1,), (1,))
        for _ in range(8):
            for statement, parameters in zip(statements, values, strict=True):
                admin.execute(statement, parameters, prepare=True)
        admin.execute("SET ROLE bob")
        for statement, parameters in zip(statements, values, strict=True):
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                admin.execute(statement, parameters, prepare=True)
        admin.execute("RESET ROLE")
        admin.execute("GRANT SELECT ON kept, totals TO bob; GRANT INSERT ON posts TO bob")
        with connect(server, "bob", "пароль") as bob:
            for _ in range(8):
                for statement, parameters in zip(statements, values, strict=True):
                    bob.execute(statement, parameters, prepare=True)
            admin.execute("REVOKE ALL ON kept, totals, posts FROM bob")
            for statement, parameters in zip(statements, values, strict=True):
                with pytest.raises(psycopg.errors.InsufficientPrivilege):
                    bob.execute(statement, parameters, prepare=True)
        admin.execute("DROP VIEW totals; DROP FOREIGN TABLE posts; DROP TABLE kept")


@pytest.mark.slow
def test_streams_and_continuous_views_belong_to_their_creator(server: Millstream) -> None:
    with server.connect() as admin:
        admin.execute("GRANT CREATE ON SCHEMA public TO bob")
        with connect(server, "bob", "пароль") as bob:
            bob.execute("CREATE FOREIGN TABLE mine (uid int) SERVER stream")
            bob.execute("CREATE VIEW counted AS SELECT uid, count(*) AS n FROM mine GROUP BY uid")
            bob.execute("INSERT INTO mine VALUES (1), (1)")
            assert bob.execute("SELECT * FROM counted").fetchall() == [(1, 2)]
            with pytest.raises(psycopg.errors.InsufficientPrivilege, match="pg_read_server_files"):
                bob.execute("CREATE FOREIGN TABLE f (a int) SERVER files OPTIONS (path '/etc', format 'csv')")
            bob.execute("SELECT * FROM pg_roles")
        admin.execute("GRANT SELECT ON counted TO trusted")
        with connect(server, "trusted") as other:
            assert other.execute("SELECT n FROM counted").fetchall() == [(2,)]
            for statement in ("SELECT * FROM mine", "CREATE VIEW w AS SELECT count(*) FROM mine", "DROP VIEW counted"):
                with pytest.raises(psycopg.errors.InsufficientPrivilege):
                    other.execute(statement)
        server.kill9()
        server.restart()
    with connect(server, "bob", "пароль") as bob:
        assert bob.execute("SELECT * FROM counted").fetchall() == [(1, 2)]
        bob.execute("DROP VIEW counted; DROP FOREIGN TABLE mine")
    with server.connect() as admin:
        admin.execute("REVOKE CREATE ON SCHEMA public FROM bob")


def test_a_view_of_a_stream_needs_the_columns_that_it_reads(server: Millstream) -> None:
    with server.connect() as admin:
        admin.execute("GRANT CREATE ON SCHEMA public TO trusted")
        admin.execute("CREATE FOREIGN TABLE readings (a integer, secret integer) SERVER stream")
        admin.execute("GRANT SELECT (a) ON readings TO trusted")
        with connect(server, "trusted") as other:
            for query in ("SELECT secret, count(*) FROM readings GROUP BY secret", "SELECT sum(secret) FROM readings"):
                with pytest.raises(psycopg.errors.InsufficientPrivilege):
                    other.execute(f"CREATE VIEW of_secrets AS {query}".encode())
            other.execute("CREATE VIEW of_some AS SELECT a, count(*) FROM readings GROUP BY a")
        admin.execute("DROP FOREIGN TABLE readings CASCADE")
        admin.execute("REVOKE CREATE ON SCHEMA public FROM trusted")


@pytest.mark.slow
def test_default_privileges_are_there_after_a_kill(tmp_path: Path) -> None:
    with Millstream(tmp_path / "data", settings={"spark_enabled": False}) as server:
        with server.connect() as admin:
            admin.execute("CREATE ROLE reader")
            admin.execute("ALTER DEFAULT PRIVILEGES IN SCHEMA public GRANT SELECT ON TABLES TO reader")
            admin.execute("ALTER DEFAULT PRIVILEGES GRANT INSERT ON TABLES TO reader")
        for stream in ("first", "second"):  # its catalog comes from the log, and from the tables' file
            server.kill9()
            server.restart()
            with server.connect() as admin:
                admin.execute(f"CREATE FOREIGN TABLE {stream} (n int) SERVER stream".encode())
                may = admin.execute(
                    "SELECT has_table_privilege('reader', oid, 'SELECT, INSERT'), has_table_privilege('reader', oid, "
                    "'DELETE') FROM pg_class WHERE relname = %s",
                    (stream,),
                )
                assert may.fetchone() == (True, False)
                admin.execute("CREATE TABLE IF NOT EXISTS other (n int)")
                admin.execute("INSERT INTO other SELECT * FROM generate_series(1, 10)")


@pytest.mark.parametrize(
    ("flags", "table", "message"),
    [
        (["--listen=0.0.0.0:0"], None, "listening beyond loopback requires TLS"),
        (["--ssl=on"], None, "ssl_key_file = "),
        (["--ssl=on", "--ssl-cert-file=root.crt", "--ssl-key-file=open.key"], None, "group or others have access"),
        (["--ssl=on", "--ssl-cert-file=root.key", "--ssl-key-file=alice.key"], None, "ssl_cert_file = "),
        ([], "local all all trust\nhost all all all trust\n", "line 2: trust is for loopback addresses only"),
        (["--hba-file=missing.conf"], None, "no such file"),
    ],
)
def test_what_is_not_safe_does_not_start(
    certificates: Path, tmp_path: Path, flags: list[str], table: str | None, message: str
) -> None:
    for name in ("root.crt", "root.key", "alice.key"):
        shutil.copy(certificates / name, tmp_path / name)
    shutil.copy(certificates / "alice.key", tmp_path / "open.key")
    (tmp_path / "open.key").chmod(0o644)
    if table is not None:
        (tmp_path / "hba.conf").write_text(table)
    command = [sys.executable, "-m", "server", "--spark-enabled=false", f"--data={tmp_path}", *flags]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 2
    assert message in done.stderr
    assert done.stderr.count("\n") == 1


def test_the_certificates_hash(certificates: Path) -> None:
    der = ssl.PEM_cert_to_DER_cert((certificates / "root.crt").read_text())
    printed = subprocess.run(
        ["openssl", "x509", "-in", "root.crt", "-noout", "-fingerprint", "-sha256"],
        cwd=certificates, capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip
    found = end_point(der)
    assert found is not None
    assert found.hex().upper() == printed.strip().partition("=")[2].replace(":", "")


def test_letters_of_a_login_without_a_password(server: Millstream) -> None:
    with Wire(server.port) as client:
        assert letters(client.start("trusted", database="millstream"))[-1] == "Z"
