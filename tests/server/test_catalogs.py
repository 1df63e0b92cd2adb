"""Clients that query the system catalogs: psql's commands, pgbench, asyncpg's introspection, parameters and formats."""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import asyncpg
import psycopg
import pytest

from tests.rig.server import DATABASE, USER, Millstream

SCHEMA = """
CREATE TABLE writers (id integer PRIMARY KEY, name varchar(40) NOT NULL, born date DEFAULT '1900-01-01');
CREATE TABLE books (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, writer integer REFERENCES writers (id),
    price numeric(8, 2) CHECK (price > 0), UNIQUE (writer, price));
CREATE INDEX books_writer ON books (writer);
CREATE VIEW cheap AS SELECT id FROM books WHERE price < 10;
CREATE FOREIGN TABLE sales (book bigint, at timestamp) SERVER stream;
CREATE VIEW sold AS SELECT book, count(*) AS n FROM sales GROUP BY book;
COMMENT ON TABLE writers IS 'who wrote';
"""
#: The names for which psql queries almost every catalog.
COMMANDS = (
    *(r"\d", r"\d writers", r"\d+ books", r"\d+ sold", r"\d sales", r"\d writers_pkey", r"\d books_id_seq"),
    *(r"\dt+", r"\di", r"\dv", r"\ds", r"\dn", r"\l", r"\du", r"\df lower", r"\dT integer", r"\dp", r"\sv cheap"),
)


@pytest.fixture(scope="module")
def described(running: Millstream) -> Iterator[Millstream]:
    with running.connect() as client:
        client.autocommit = True
        client.execute(SCHEMA.encode())
    yield running
    with running.connect() as client:
        client.autocommit = True
        client.execute(
            b"DROP VIEW sold; DROP FOREIGN TABLE sales; DROP VIEW cheap; DROP TABLE books; DROP TABLE writers"
        )


def psql(server: Millstream, *commands: str) -> str:
    program = shutil.which("psql")
    assert program is not None
    listed = [word for command in commands for word in ("-c", command)]
    done = subprocess.run([program, "-X", server.dsn(), *listed], capture_output=True, text=True, timeout=60)
    assert not done.stderr, done.stderr
    return done.stdout


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("psql") is None, reason="psql is not installed")
def test_every_command_of_psql_is_answered(described: Millstream) -> None:
    shown = psql(described, *COMMANDS)
    assert '"books_writer_fkey" FOREIGN KEY (writer) REFERENCES writers(id)' in shown
    assert '"writers_pkey" PRIMARY KEY, btree (id)' in shown
    assert "numeric(8,2)" in shown
    assert "who wrote" in shown
    assert "foreign table" in shown


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("pgbench") is None, reason="pgbench is not installed")
def test_pgbench_makes_its_tables_and_runs(running: Millstream) -> None:
    program = shutil.which("pgbench")
    assert program is not None
    for words in (("-i", "-q"), ("-t", "5", "-M", "prepared"), ("-S", "-t", "20", "-M", "simple")):
        done = subprocess.run([program, *words, running.dsn()], capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, done.stderr
        assert "rror" not in done.stderr
    with running.connect() as client:
        assert client.execute("SELECT count(*) FROM pgbench_accounts").fetchone() == (100_000,)
        client.execute("DROP TABLE pgbench_accounts, pgbench_branches, pgbench_tellers, pgbench_history")


@pytest.mark.slow
def test_asyncpg_introspects_types(described: Millstream) -> None:
    async def run() -> None:
        client = await asyncpg.connect(host="127.0.0.1", port=described.port, user=USER, database=DATABASE)
        try:
            await client.set_type_codec("int8", schema="pg_catalog", encoder=str, decoder=int, format="text")
            assert await client.fetchval("SELECT 5::int8") == 5
            found = await client.fetchrow(
                "SELECT c.oid, c.relkind, i.indkey, c.oid::regclass AS name FROM pg_class c "
                "JOIN pg_index i ON i.indrelid = c.oid WHERE c.relname = $1 AND i.indisprimary",
                "writers",
            )
            assert found["relkind"] == b"r"
            assert found["indkey"] == [1]
            assert found["name"] == "writers"  # asyncpg asks for the text
            assert await client.fetchval("SELECT $1::regclass::text", "writers") == "writers"
        finally:
            await client.close()

    asyncio.run(run())


def test_names_of_oids_come_as_text_and_go_as_parameters(described: Millstream) -> None:
    with described.connect() as client:
        query = "SELECT %s::regclass, %s::regclass::oid > 0, 'books'::regclass, 'int4'::regtype, NULL::regclass"
        assert client.execute(query, ["writers", "public.writers"]).fetchone() == (
            *("writers", True, "books", "integer", None),
        )
        with pytest.raises(psycopg.errors.UndefinedTable):
            client.execute("SELECT %s::regclass", ["nowhere"])
        query = "SELECT %s::regtype[]::text, %s::regtype[]::oid[]"
        found = client.execute(query, ["{int4,NULL}", "{text}"]).fetchone()
        assert found == ("{integer,NULL}", [25])


def test_statistics_and_settings_are_the_servers_own(described: Millstream) -> None:
    with described.connect() as client:
        client.execute("SET application_name = 'asking'")
        (row,) = client.execute(
            "SELECT application_name, state, usename FROM pg_stat_activity WHERE pid = pg_backend_pid()"
        ).fetchall()
        assert row == ("asking", "active", USER)
        shown = client.execute("SELECT setting, source FROM pg_settings WHERE name = 'application_name'").fetchone()
        assert shown == ("asking", "session")
        client.execute("INSERT INTO writers SELECT i, 'w' FROM generate_series(1, 10) i")
        client.commit()
        live = client.execute("SELECT n_live_tup FROM pg_stat_user_tables WHERE relname = 'writers'").fetchone()
        assert live == (10,)
        client.execute("DELETE FROM writers")


def test_sessions_show_what_they_do(described: Millstream) -> None:
    with described.connect(application_name="looker") as looker, described.connect(application_name="worker") as worker:
        worker.execute("BEGIN")
        worker.execute("SELECT 'to be seen'")
        query = "SELECT query, state, xact_start <= query_start FROM pg_stat_activity WHERE application_name = 'worker'"
        assert looker.execute(query).fetchall() == [("SELECT 'to be seen'", "idle in transaction", True)]
        query = "SELECT pid = pg_backend_pid(), backend_start < now(), client_port > 0 FROM pg_stat_activity"
        mine = looker.execute(f"{query} WHERE query LIKE '%pg_backend_pid%'").fetchall()
        assert mine == [(True, True, True)]
        assert looker.execute("SELECT numbackends >= 2 FROM pg_stat_database").fetchone() == (True,)
        assert looker.execute("SELECT pg_postmaster_start_time() < now()").fetchone() == (True,)


def test_changed_rows_are_counted(described: Millstream) -> None:
    query = "SELECT n_tup_ins, n_tup_upd, n_tup_del FROM pg_stat_user_tables WHERE relname = 'counted'"
    with described.connect() as client:
        client.execute("CREATE TABLE counted (a integer PRIMARY KEY, b integer)")
        client.execute("INSERT INTO counted SELECT i, i FROM generate_series(1, 10) AS g (i)")
        client.execute("UPDATE counted SET b = 0 WHERE a <= 4")
        client.execute("INSERT INTO counted VALUES (1, 1), (11, 11) ON CONFLICT (a) DO UPDATE SET b = excluded.b")
        client.execute("DELETE FROM counted WHERE a = 10")
        assert client.execute(query).fetchone() == (11, 5, 1)
        client.execute("DROP TABLE counted")


@pytest.mark.slow
def test_relations_can_be_read_as_a_whole(described: Millstream) -> None:
    names = ("pg_stats", "pg_locks", "pg_stat_database", "pg_shadow", "pg_roles", "pg_rules", "pg_timezone_names")
    names += tuple(f"information_schema.{name}" for name in ("columns", "table_privileges", "routines", "parameters"))
    with described.connect() as client:
        for name in names:
            client.execute(f"SELECT * FROM {name} LIMIT 1".encode())


def test_views_over_joins_by_or_are_answered_each_time(described: Millstream) -> None:
    query = """SELECT * FROM information_schema.constraint_table_usage
        WHERE table_schema = 'kept' ORDER BY constraint_name"""
    with described.connect() as client:
        client.execute("CREATE SCHEMA kept")
        client.execute("CREATE TABLE kept.a (i integer PRIMARY KEY, n integer UNIQUE, CHECK (n > 0))")
        client.execute("CREATE TABLE kept.b (i integer UNIQUE REFERENCES kept.a)")
        for _ in range(5):  # the engine's own join fails in nine of ten runs
            rows = client.execute(query.encode()).fetchall()
            assert [(row[2], row[5]) for row in rows] == [
                ("a", "a_n_key"),
                ("a", "a_pkey"),
                ("a", "b_i_fkey"),
                ("b", "b_i_key"),
            ]
        client.execute("DROP SCHEMA kept CASCADE")


@pytest.mark.skipif("CLIENT_CAPTURES" not in os.environ, reason="CLIENT_CAPTURES names no folder of captured queries")
def test_captured_queries_are_answered_as_by_postgresql(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "tools.clients", os.environ["CLIENT_CAPTURES"], "--no-page"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    different = re.findall(r"^(\w+/\d+) \w+ -> ", done.stdout, re.MULTILINE)
    assert "TOTAL" in done.stdout and different == ["asyncpg/15"], done.stdout  # a value of the extension hstore


VISIBLE = b"""SELECT c.relname, pg_table_is_visible(c.oid), c.oid::regclass::text, pg_get_constraintdef(k.oid)
    FROM pg_class c LEFT JOIN pg_constraint k ON k.conrelid = c.oid AND k.contype = 'f'
    WHERE c.relname IN ('kept_above', 'kept_below') AND c.relkind = 'r' ORDER BY c.relnamespace, c.relname"""


def test_results_about_the_catalog_are_those_of_the_session_and_of_now(running: Millstream) -> None:
    """One text in several sessions, repeatedly, alone and in blocks: each session gets its own and current result."""
    other_path = (
        ("kept_above", False, "kept_one.kept_above"),
        (
            "kept_below",
            False,
            "kept_one.kept_below",
            "FOREIGN KEY (id) REFERENCES kept_one.kept_above(id)",
        ),
    )
    own_path = (
        ("kept_above", True, "kept_above"),
        (
            "kept_below",
            True,
            "kept_below",
            "FOREIGN KEY (id) REFERENCES kept_above(id)",
        ),
    )
    with running.connect() as one, running.connect() as two:
        one.autocommit = two.autocommit = True
        one.execute(
            b"CREATE ROLE kept_role; CREATE SCHEMA kept_one; CREATE TABLE kept_one.kept_above (id int PRIMARY KEY);"
            b"CREATE TABLE kept_one.kept_below (id int REFERENCES kept_one.kept_above)"
        )
        one.execute(b"SET search_path = kept_one")
        try:
            for prepare in (False, True, True):
                for client, expected in ((one, own_path), (two, other_path), (one, own_path)):
                    assert client.execute(VISIBLE, prepare=prepare).fetchall() == [_padded(row) for row in expected]
            with two.transaction():
                two.execute(b"CREATE TEMP TABLE kept_above (x int) ON COMMIT DROP")
                found = two.execute(VISIBLE, prepare=True).fetchall()
                assert [row[1:3] for row in found if row[0] == "kept_above"][-1] == (False, "kept_one.kept_above")
                assert (True, "kept_above") in [row[1:3] for row in found]
                assert one.execute(VISIBLE, prepare=True).fetchall() == [_padded(row) for row in own_path]
            assert two.execute(VISIBLE, prepare=True).fetchall() == [_padded(row) for row in other_path]
            one.execute(b"ALTER TABLE kept_below RENAME TO kept_gone")
            assert two.execute(VISIBLE, prepare=True).fetchall() == [_padded(other_path[0])]
            for role in (USER, "kept_role", "kept_role", USER):
                one.execute(f"SET ROLE {role}".encode())
                found = one.execute(
                    b"SELECT current_user, count(*) FROM pg_class WHERE relname = 'pg_class' GROUP BY 1", prepare=True
                )
                assert found.fetchall() == [(role, 1)]
            first, second = (
                two.execute(b"SELECT random() FROM pg_class WHERE relname = 'pg_class'").fetchone() for _ in range(2)
            )
            assert first != second
        finally:
            one.execute(b"RESET ROLE; DROP SCHEMA kept_one CASCADE; DROP ROLE kept_role")


def _padded(row: tuple[object, ...]) -> tuple[object, ...]:
    return (*row, *(None,) * (4 - len(row)))
