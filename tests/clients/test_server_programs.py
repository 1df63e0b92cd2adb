"""PostgreSQL's programs other than psql, pg_dump and pgbench, as administrators and cron jobs run them."""

from __future__ import annotations

import subprocess
from pathlib import Path

import psycopg
import pytest

from tests.rig.server import Millstream

pytestmark = [pytest.mark.postgres, pytest.mark.slow]


def run(server: Millstream, *command: str, database: bool = False) -> subprocess.CompletedProcess[str]:
    """Runs a program as the server's user; ``database`` appends the database's name."""
    name = ("millstream",) if database else ()
    place = ("--host=127.0.0.1", f"--port={server.port}", "--username=millstream")
    return subprocess.run([*command, *place, *name], capture_output=True, text=True, timeout=60)


@pytest.fixture(scope="module")
def stocked(server: Millstream) -> Millstream:
    """A table with an index."""
    with server.connect() as client:
        client.execute("CREATE TABLE kept (a integer PRIMARY KEY, b text)")
        client.execute("CREATE INDEX kept_b ON kept (b)")
        client.execute("INSERT INTO kept VALUES (1, 'x'), (2, NULL)")
    return server


@pytest.mark.parametrize(
    "command",
    [
        ("vacuumdb",),
        ("vacuumdb", "--analyze", "--jobs=2"),
        ("vacuumdb", "--full", "--table=kept"),
        ("vacuumdb", "--analyze-only", "--table=kept(a)"),
        ("vacuumdb", "--analyze-in-stages"),
        ("vacuumdb", "--skip-locked", "--min-xid-age=1"),
        ("reindexdb",),
        ("reindexdb", "--table=kept", "--concurrently"),
        ("reindexdb", "--index=kept_b"),
        ("reindexdb", "--schema=public", "--jobs=2"),
        ("reindexdb", "--system"),
        ("clusterdb",),
        ("vacuumlo",),
    ],
)
def test_maintenance_means_nothing_and_succeeds(stocked: Millstream, command: tuple[str, ...]) -> None:
    done = run(stocked, *command, database=True)
    assert (done.returncode, "error" in done.stderr) == (0, False), done.stderr


@pytest.mark.parametrize("command", [("vacuumdb", "--all"), ("reindexdb", "--all"), ("clusterdb", "--all")])
def test_every_database_is_the_one(stocked: Millstream, command: tuple[str, ...]) -> None:
    done = run(stocked, *command)
    assert done.returncode == 0, done.stderr


def test_roles_come_and_go(server: Millstream) -> None:
    assert run(server, "createuser", "--createdb", "--createrole", "--connection-limit=5", "joe").returncode == 0
    with server.connect() as client:
        query = "SELECT rolcreatedb, rolcreaterole, rolcanlogin, rolconnlimit FROM pg_roles WHERE rolname = 'joe'"
        assert client.execute(query).fetchone() == (True, True, True, 5)
    assert "CREATE ROLE joe;" in run(server, "pg_dumpall", "--globals-only").stdout
    assert run(server, "dropuser", "joe").returncode == 0
    assert 'role "joe" does not exist' in run(server, "dropuser", "joe").stderr


def test_there_is_one_database(server: Millstream) -> None:
    made = run(server, "createdb", "another")
    assert "CREATE DATABASE is not supported" in made.stderr and "Create a schema" in made.stderr
    assert 'database "another" does not exist' in run(server, "dropdb", "another").stderr
    assert run(server, "dropdb", "--if-exists", "another").returncode == 0
    assert run(server, "psql", "--no-psqlrc", "--list", "--tuples-only", "--no-align").stdout.startswith("millstream|")
    assert run(server, "pg_isready").returncode == 0


@pytest.mark.parametrize("name", ["postgres", "template1"])
def test_what_tools_connect_to_is_the_one_database(server: Millstream, name: str) -> None:
    with psycopg.connect(server.dsn(), dbname=name) as client:
        assert client.execute("SELECT current_database()").fetchone() == ("millstream",)
        client.execute(f"GRANT TEMPORARY ON DATABASE {name} TO PUBLIC".encode())  # the extension exists
        assert client.execute("SELECT has_database_privilege(%s::name, 'CONNECT')", (name,)).fetchone() == (True,)


@pytest.mark.parametrize("form", ["custom", "tar"])
def test_an_archive_with_rows_is_restored(stocked: Millstream, tmp_path: Path, form: str) -> None:
    archive = tmp_path / "archive"
    assert run(stocked, "pg_dump", f"--format={form}", "--table=kept", f"--file={archive}").returncode == 0
    with stocked.connect() as client:
        client.execute("TRUNCATE kept")
        for options in (("--clean", "--if-exists"), ("--clean", "--single-transaction")):
            done = run(stocked, "pg_restore", *options, "--dbname=millstream", str(archive))
            assert done.returncode == 0, done.stderr
            assert client.execute("SELECT * FROM kept ORDER BY a").fetchall() == [(1, "x"), (2, None)]
        query = "SELECT count(*) FROM pg_indexes WHERE indexname IN ('kept_pkey', 'kept_b')"
        assert client.execute(query).fetchone() == (2,)


def test_rows_as_inserts(stocked: Millstream) -> None:
    written = run(stocked, "pg_dump", "--column-inserts", "--data-only", "--table=kept").stdout
    assert "INSERT INTO public.kept (a, b) VALUES (1, 'x');" in written


def test_replication_is_refused(server: Millstream, tmp_path: Path) -> None:
    done = run(server, "pg_basebackup", f"--pgdata={tmp_path / 'copy'}")
    assert "replication connections are not supported" in done.stderr
