"""Rows and composite types with real clients: psycopg, asyncpg, values in both formats, COPY, psql, restarts."""

from __future__ import annotations

import asyncio
import shutil
import subprocess
from collections.abc import Iterator
from typing import Any

import asyncpg
import psycopg
import pytest
from psycopg.types.composite import CompositeInfo, register_composite

from tests.rig.server import DATABASE, USER, Millstream

pytestmark = pytest.mark.slow  # a server of its own

DEFINITIONS = (
    "CREATE TYPE color AS ENUM ('red', 'blue')",
    "CREATE TYPE address AS (street text, zip int)",
    "CREATE SCHEMA other",
    "CREATE TYPE other.person AS (name varchar(10), home address, colors color[], born date, size numeric(5,2))",
    "CREATE TABLE t (id int PRIMARY KEY, home address, others address[], p other.person)",
    """INSERT INTO t VALUES (0, '("a ""b""\\\\c",)', '{"(x,1)",NULL}', ROW('n', ROW('s', 2), '{red}', NULL, 1.5))""",
)
WHOLE = (0, '("a ""b""\\\\c",)', '{"(x,1)",NULL}', '(n,"(s,2)",{red},,1.50)')


@pytest.fixture(scope="module")
def server() -> Iterator[Millstream]:
    with Millstream(settings={"spark_enabled": False}) as server:
        with server.connect() as client:
            for text in DEFINITIONS:
                client.execute(text.encode())
        yield server


@pytest.fixture
def client(server: Millstream) -> Iterator[psycopg.Connection[Any]]:
    with server.connect() as client:
        for name in ("address", "other.person"):
            info = CompositeInfo.fetch(client, name)
            assert info is not None
            register_composite(info, client)
        yield client


def test_psycopg_introspects_composite_types(client: psycopg.Connection[Any]) -> None:
    info = CompositeInfo.fetch(client, "other.person")
    assert info is not None
    assert info.field_names == ("name", "home", "colors", "born", "size")
    assert info.array_oid == info.oid - 1
    of_table = CompositeInfo.fetch(client, "t")
    assert of_table is not None
    assert of_table.field_names == ("id", "home", "others", "p")


@pytest.mark.parametrize("binary", [False, True])
def test_psycopg_reads_and_writes_composites(client: psycopg.Connection[Any], binary: bool) -> None:
    address = client.adapters.types["address"].python_type  # type: ignore[attr-defined]
    row = (1, address('q "\\ ,', None), [address("x", 1), None])
    marks = ", ".join(["%b" if binary else "%t"] * len(row))
    client.execute(f"INSERT INTO t VALUES ({marks})".encode(), row)
    assert client.execute("SELECT id, home, others FROM t WHERE id = 1", binary=binary).fetchone() == row
    found = client.execute("SELECT (home).street, home FROM t WHERE home = %s", (row[1],), binary=binary).fetchall()
    assert found == [(row[1].street, row[1])]
    whole = client.execute("SELECT p FROM t WHERE id = 0", binary=binary).fetchone()
    assert whole is not None
    assert whole[0].home == address("s", 2)
    client.execute("DELETE FROM t WHERE id = 1")


@pytest.mark.parametrize("binary", [False, True])
def test_rows_of_no_type_have_their_fields_types(client: psycopg.Connection[Any], binary: bool) -> None:
    found = client.execute("SELECT ROW(1, 'a', NULL::int, true), ARRAY[ROW(2)], ROW(id, home) FROM t", binary=binary)
    row = found.fetchone()
    address = client.adapters.types["address"].python_type  # type: ignore[attr-defined]
    if binary:
        assert row == ((1, b"a", None, True), [(2,)], (0, address('a "b"\\c', None)))
    else:
        assert row == (("1", "a", None, "t"), [("2",)], ("0", '("a ""b""\\\\c",)'))


@pytest.mark.parametrize("form", ["text", "csv", "binary"])
def test_composites_are_copied(client: psycopg.Connection[Any], form: str) -> None:
    with client.cursor().copy(f"COPY t TO STDOUT (FORMAT {form})".encode()) as copy:
        data = b"".join(bytes(part) for part in copy)
    client.execute("CREATE TABLE again (LIKE t)")
    with client.cursor().copy(f"COPY again FROM STDIN (FORMAT {form})".encode()) as into:
        into.write(data)
    shown = "SELECT id, home::text, others::text, p::text FROM again"
    assert client.execute(shown.encode()).fetchall() == [WHOLE]
    client.execute("DROP TABLE again")


def test_asyncpg_introspects_composites(server: Millstream) -> None:
    async def run() -> None:
        client = await asyncpg.connect(host="127.0.0.1", port=server.port, user=USER, database=DATABASE)
        try:
            home, others = ("s", None), [("x", 1), None]
            await client.execute(
                "INSERT INTO t VALUES ($1, $2, $3, $4)", 3, home, others, ("n", ("a", 1), ["red"], None, None)
            )
            found = await client.fetchrow("SELECT * FROM t WHERE id = 3")
            assert tuple(found["home"]) == home
            assert [item and tuple(item) for item in found["others"]] == others
            assert (found["p"]["home"]["zip"], found["p"]["colors"]) == (1, ["red"])
            whole = await client.fetchval("SELECT t FROM t WHERE id = $1", 3)
            assert tuple(whole["home"]) == home
            assert tuple(await client.fetchval("SELECT ROW(1, 'a'::text)")) == (1, "a")
            assert await client.fetchval("SELECT ($1::address).zip", ("x", 7)) == 7
            await client.execute("DELETE FROM t WHERE id = 3")
        finally:
            await client.close()

    asyncio.run(run())


def test_malformed_rows_are_told(client: psycopg.Connection[Any]) -> None:
    for text, detail in (
        ("(a", "Unexpected end of input."),
        ("a", "Missing left parenthesis."),
        ("(a)", "Too few columns."),
        ("(a,1,2)", "Too many columns."),
        ("(a,1)x", "Junk after right parenthesis."),
    ):
        with pytest.raises(psycopg.errors.InvalidTextRepresentation) as caught:
            client.execute("INSERT INTO t (id, home) VALUES (9, %t::text::address)", (text,))
        assert caught.value.diag.message_primary == f'malformed record literal: "{text}"'
        copying = client.cursor().copy("COPY t (home) FROM STDIN")
        with pytest.raises(psycopg.errors.InvalidTextRepresentation) as caught, copying as copy:
            copy.write(f"{text}\n".encode())
        assert caught.value.diag.message_detail == detail
    with pytest.raises(psycopg.errors.InvalidTextRepresentation):
        client.execute("SELECT '(a,b)'::address")


def test_streams_and_their_views_have_no_rows_as_values(client: psycopg.Connection[Any]) -> None:
    with pytest.raises(psycopg.errors.FeatureNotSupported):
        client.execute("CREATE FOREIGN TABLE s (a address) SERVER stream")
    client.execute("CREATE FOREIGN TABLE s (k int, v int) SERVER stream")
    for query in ("SELECT k, count(ROW(v, k)) FROM s GROUP BY k", "SELECT s, count(*) FROM s GROUP BY s"):
        with pytest.raises(psycopg.errors.FeatureNotSupported):
            client.execute(f"CREATE VIEW v AS {query}".encode())
    client.execute("CREATE VIEW w AS SELECT k, sum(v) AS total FROM s GROUP BY k")
    client.execute("INSERT INTO s VALUES (1, 2), (1, 3)")
    assert client.execute("SELECT w, (w).total, row_to_json(w) FROM w").fetchall() == [
        ("(1,5)", 5, {"k": 1, "total": 5})
    ]
    client.execute("DROP VIEW w")
    client.execute("DROP FOREIGN TABLE s")


@pytest.mark.skipif(shutil.which("psql") is None, reason="psql is not installed")
def test_psql_describes_composites(server: Millstream) -> None:
    shown = subprocess.run(
        ["psql", "-X", server.dsn(), "-c", r"\d address", "-c", r"\dT"], capture_output=True, text=True, check=True
    ).stdout
    assert 'Composite type "public.address"' in shown
    assert "zip" in shown


def test_rows_are_there_after_a_restart(server: Millstream) -> None:
    with server.connect() as client:
        client.execute("CREATE TYPE later AS (a int, b address)")
        client.execute("ALTER TYPE later RENAME ATTRIBUTE a TO c")
    server.kill9()
    server.restart()
    with server.connect() as client:
        shown = "SELECT id, home::text, others::text, p::text FROM t"
        assert client.execute(shown.encode()).fetchall() == [WHOLE]
        assert client.execute("SELECT (ROW(1, ROW('x', 2))::later).c").fetchone() == (1,)
        client.execute("INSERT INTO t (id, home) VALUES (5, ROW('y', 3))")
    server.kill9()
    server.restart()
    with server.connect() as client:
        assert client.execute("SELECT (home).zip FROM t WHERE id = 5").fetchone() == (3,)
