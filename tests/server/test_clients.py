"""Real clients: psql, psycopg 3 and asyncpg."""

from __future__ import annotations

import asyncio
import datetime
import decimal
import shutil
import subprocess
import uuid
from collections.abc import Coroutine
from typing import Any

import asyncpg
import psycopg
import pytest

from tests.rig.server import DATABASE, USER, Millstream

Client = psycopg.Connection[Any]

COLUMNS = {
    "bool": (True, False),
    "int2": (-32768, 7),
    "int4": (2147483647, -1),
    "int8": (-(2**63), 2**53),
    "float4": (1.5, -0.25),
    "float8": (1e300, 0.1),
    "numeric(20,4)": (decimal.Decimal("12345678901.2345"), decimal.Decimal("-0.0001")),
    "text": ("a'b\"c\\d", "ä€😀"),
    "varchar(10)": ("short", ""),
    "bytea": (b"\x00\xff\x01", b""),
    "date": (datetime.date(2024, 2, 29), datetime.date(1970, 1, 1)),
    "time": (datetime.time(23, 59, 59, 999999), datetime.time(0, 0)),
    "timetz": (
        datetime.time(10, 20, 30, 5, datetime.timezone(datetime.timedelta(hours=-3, minutes=-30))),
        datetime.time(0, 0, tzinfo=datetime.UTC),
    ),
    "timestamp": (datetime.datetime(2024, 1, 2, 3, 4, 5, 6), datetime.datetime(1999, 12, 31)),
    "timestamptz": (
        datetime.datetime(2024, 1, 2, 3, 4, 5, 6, datetime.UTC),
        datetime.datetime(1999, 12, 31, tzinfo=datetime.UTC),
    ),
    "interval": (datetime.timedelta(days=3, seconds=7, microseconds=5), datetime.timedelta(0)),
    "uuid": (uuid.UUID(int=1), uuid.UUID("12345678-1234-5678-1234-567812345678")),
}


@pytest.fixture(scope="module")
def types_table(running: Millstream) -> Millstream:
    columns = ", ".join(f"c{number} {name}" for number, name in enumerate(COLUMNS))
    with running.connect() as client:
        client.execute(f"CREATE TABLE every_type (id integer, {columns})".encode())
    return running


@pytest.mark.parametrize("binary", [False, True])
def test_every_type_there_and_back_with_psycopg(types_table: Millstream, binary: bool) -> None:
    marks = ", ".join(["%b" if binary else "%t"] * len(COLUMNS))
    with types_table.connect() as client:
        for number in (0, 1):
            row = [pair[number] for pair in COLUMNS.values()]
            client.execute(f"INSERT INTO every_type VALUES ({number}, {marks})".encode(), row)
        client.execute("INSERT INTO every_type (id) VALUES (2)")
        with client.cursor(binary=binary) as cursor:
            found = cursor.execute("SELECT * FROM every_type ORDER BY id").fetchall()
        client.execute("DELETE FROM every_type")
    assert found[0][1:] == tuple(pair[0] for pair in COLUMNS.values())
    assert found[1][1:] == tuple(pair[1] for pair in COLUMNS.values())
    assert set(found[2][1:]) == {None}


def test_psycopg_transactions_pipeline_and_prepared(sql: Client) -> None:
    sql.execute("CREATE TABLE accounts (id integer PRIMARY KEY, balance numeric(10,2))")
    sql.autocommit = False
    with sql.transaction():
        sql.execute("INSERT INTO accounts VALUES (1, 10)")
        with pytest.raises(psycopg.errors.UniqueViolation), sql.transaction():
            sql.execute("INSERT INTO accounts VALUES (1, 20)")
        sql.execute("UPDATE accounts SET balance = balance + 5 WHERE id = %s", (1,))
    with sql.pipeline():
        cursors = [sql.execute("SELECT balance, %s::text FROM accounts", (str(n),)) for n in range(50)]
    assert [cursor.fetchone() for cursor in cursors] == [(decimal.Decimal("15.00"), str(n)) for n in range(50)]
    for number in range(10):
        found = sql.execute("SELECT id FROM accounts WHERE balance > %s", (number,), prepare=True).fetchall()
        assert found == [(1,)]
    sql.commit()


def test_psycopg_executemany_into_a_stream(sql: Client) -> None:
    sql.execute("CREATE FOREIGN TABLE measured (station text, value float8) SERVER stream")
    sql.execute(
        "CREATE VIEW stations AS SELECT station, count(*) AS n, max(value) AS top FROM measured GROUP BY station"
    )
    with sql.cursor() as cursor:
        cursor.executemany("INSERT INTO measured VALUES (%s, %s)", [(f"s{n % 3}", n / 2) for n in range(300)])
    found = sql.execute("SELECT * FROM stations ORDER BY station").fetchall()
    assert found == [("s0", 100, 148.5), ("s1", 100, 149.0), ("s2", 100, 149.5)]


def test_returning_and_rowcount(sql: Client) -> None:
    sql.execute("CREATE TABLE returned (a integer, b text)")
    cursor = sql.execute("INSERT INTO returned VALUES (1, 'x'), (2, 'y') RETURNING a + 1, b")
    assert cursor.fetchall() == [(2, "x"), (3, "y")]
    assert cursor.statusmessage == "INSERT 0 2"
    assert sql.execute("UPDATE returned SET b = 'z' WHERE a > 0").rowcount == 2
    assert sql.execute("DELETE FROM returned WHERE a = 1 RETURNING *").fetchall() == [(1, "z")]


def run_asyncpg(server: Millstream, work: Any) -> Any:
    """Runs ``work(connection)`` on an event loop of its own."""

    async def whole() -> Any:
        connection = await asyncpg.connect(host="127.0.0.1", port=server.port, user=USER, database=DATABASE)
        try:
            return await work(connection)
        finally:
            await connection.close()

    coroutine: Coroutine[Any, Any, Any] = whole()
    return asyncio.run(coroutine)


def test_every_type_with_asyncpg(types_table: Millstream) -> None:
    async def work(connection: Any) -> Any:
        marks = ", ".join(f"${number + 2}" for number in range(len(COLUMNS)))
        insert = f"INSERT INTO every_type VALUES ($1, {marks})"
        for number in (0, 1):
            await connection.execute(insert, number, *(pair[number] for pair in COLUMNS.values()))
        found = await connection.fetch("SELECT * FROM every_type ORDER BY id")
        await connection.execute("DELETE FROM every_type")
        return found

    found = run_asyncpg(types_table, work)
    for number in (0, 1):
        assert list(found[number])[1:] == [pair[number] for pair in COLUMNS.values()]


def test_asyncpg_executemany_cursor_transaction_and_copy(running: Millstream) -> None:
    async def work(connection: Any) -> Any:
        await connection.execute("CREATE FOREIGN TABLE points (a int, b text) SERVER stream")
        await connection.execute("CREATE VIEW points_sum AS SELECT count(*) AS n, sum(a) AS s FROM points")
        await connection.executemany("INSERT INTO points VALUES ($1, $2)", [(n, str(n)) for n in range(1000)])
        first = await connection.fetchrow("SELECT * FROM points_sum")
        await connection.execute("CREATE TABLE numbered (n int)")
        await connection.executemany("INSERT INTO numbered VALUES ($1)", [(n,) for n in range(100)])
        await connection.copy_records_to_table("numbered", records=[(n,) for n in range(100, 200)])
        async with connection.transaction():
            seen = [row["n"] async for row in connection.cursor("SELECT n FROM numbered ORDER BY n", prefetch=7)]
        await connection.execute("CLOSE ALL; UNLISTEN *; RESET ALL")
        return tuple(first), seen

    first, seen = run_asyncpg(running, work)
    assert first == (1000, 499500)
    assert seen == list(range(200))


@pytest.mark.skipif(shutil.which("psql") is None, reason="psql is not installed")
def test_psql(running: Millstream) -> None:
    script = """
        CREATE FOREIGN TABLE clicks (url text, ms integer) SERVER stream;
        CREATE VIEW per_url AS SELECT url, count(*) AS n, sum(ms) AS total FROM clicks GROUP BY url;
        INSERT INTO clicks VALUES ('/a', 10), ('/b', 20), ('/a', 5);
        \\copy clicks from stdin csv
/a,1
/c,2
\\.
        SELECT * FROM per_url ORDER BY url;
        BEGIN;
        SELECT 1/0;
        ROLLBACK;
    """
    done = subprocess.run(
        ["psql", "-X", "-A", "-t", "-h", "127.0.0.1", "-p", str(running.port), "-U", USER, DATABASE],
        input=script,
        capture_output=True,
        text=True,
    )
    assert "division by zero" in done.stderr
    lines = done.stdout.splitlines()
    assert lines[:4] == ["CREATE FOREIGN TABLE", "CREATE VIEW", "INSERT 0 3", "COPY 2"]
    assert lines[4:7] == ["/a|3|16", "/b|1|20", "/c|1|2"]
    assert lines[7:] == ["BEGIN", "ROLLBACK"]


@pytest.mark.slow
def test_many_clients_at_once(running: Millstream) -> None:
    """Rows of many connections are collected in records; each row is counted once."""

    async def whole() -> None:
        connect = {"host": "127.0.0.1", "port": running.port, "user": USER, "database": DATABASE}
        clients = [await asyncpg.connect(**connect) for _ in range(16)]
        await clients[0].execute("CREATE FOREIGN TABLE shared (client int, n int) SERVER stream")
        await clients[0].execute("CREATE VIEW shared_sum AS SELECT client, sum(n) AS s FROM shared GROUP BY client")

        async def insert(number: int) -> None:
            for n in range(50):
                await clients[number].execute("INSERT INTO shared VALUES ($1, $2)", number, n)
                await clients[number].execute(f"INSERT INTO shared VALUES ({number}, {n})")
                row = await clients[number].fetchrow("SELECT s FROM shared_sum WHERE client = $1", number)
                assert row["s"] == n * (n + 1)

        await asyncio.gather(*(insert(number) for number in range(16)))
        for client in clients:
            await client.close()

    asyncio.run(whole())
