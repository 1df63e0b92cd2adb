"""psycopg2 and psycopg 3: named cursors, COPY, many rows at once, pipelines, binary, async."""

from __future__ import annotations

import asyncio
import datetime as dt
import io
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import psycopg
import psycopg2
import psycopg2.extras
import pytest

from tests.rig.server import Millstream

pytestmark = pytest.mark.slow

ROWS = [(number, f"row {number}", Decimal(number) / 4) for number in range(500)]


@pytest.fixture
def old(server: Millstream) -> Iterator[Any]:
    """A psycopg2 connection."""
    connection = psycopg2.connect(server.dsn())
    yield connection
    connection.close()


def test_psycopg2_rows_at_once_cursors_and_copy(old: Any) -> None:
    with old.cursor() as cursor:
        cursor.execute("CREATE TABLE old (n int PRIMARY KEY, s text, d numeric(10, 2))")
        psycopg2.extras.execute_values(cursor, "INSERT INTO old VALUES %s", ROWS[:300], page_size=100)
        psycopg2.extras.execute_batch(cursor, "INSERT INTO old VALUES (%s, %s, %s)", ROWS[300:], page_size=50)
        returned = psycopg2.extras.execute_values(
            cursor,
            "INSERT INTO old VALUES %s ON CONFLICT (n) DO UPDATE SET s = 'again' RETURNING n",
            ROWS[:3],
            fetch=True,
        )
        assert sorted(returned) == [(0,), (1,), (2,)]
    old.commit()
    with old.cursor(name="portion") as cursor:
        cursor.itersize = 64
        cursor.execute("SELECT n, d FROM old ORDER BY n")
        assert list(cursor) == [(row[0], row[2]) for row in ROWS]
    with old.cursor(name="scrolled", scrollable=True) as cursor:
        cursor.execute("SELECT n FROM old ORDER BY n")
        cursor.scroll(100)
        assert cursor.fetchone() == (100,)
        cursor.scroll(-50)
        assert cursor.fetchmany(2) == [(51,), (52,)]
    with old.cursor(cursor_factory=psycopg2.extras.RealDictCursor) as cursor:
        text = io.StringIO('1000,thousand,1.5\n1001,"a, b",\n')
        cursor.copy_expert("COPY old FROM STDIN WITH (FORMAT csv)", text)
        out = io.StringIO()
        cursor.copy_expert("COPY (SELECT * FROM old WHERE n >= 1000 ORDER BY n) TO STDOUT WITH (FORMAT csv)", out)
        assert out.getvalue() == '1000,thousand,1.50\n1001,"a, b",\n'
        cursor.execute("SELECT %s::int[] AS a, %s::jsonb AS j", ([1, 2], psycopg2.extras.Json({"x": 1})))
        assert cursor.fetchone() == {"a": [1, 2], "j": {"x": 1}}
        with pytest.raises(psycopg2.errors.UniqueViolation, match="old_pkey"):
            cursor.execute("INSERT INTO old VALUES (1)")
    old.rollback()


def test_psycopg_pipelines_binary_and_copy(server: Millstream) -> None:
    with psycopg.connect(server.dsn()) as client:
        client.execute("CREATE TABLE new (n int PRIMARY KEY, s text, d numeric(10, 2), at timestamptz, a int[])")
        now = dt.datetime(2024, 2, 29, 12, tzinfo=dt.UTC)
        with client.pipeline() as pipeline, client.cursor() as cursor:
            cursor.executemany(
                "INSERT INTO new VALUES (%s, %s, %s, %s, %s)", [(*row, now, [row[0], None]) for row in ROWS]
            )
            pipeline.sync()
            found = client.execute("SELECT count(*), sum(d) FROM new").fetchone()
        assert found == (500, sum(row[2] for row in ROWS))
        with client.cursor(binary=True) as cursor:
            cursor.execute("SELECT * FROM new WHERE n = %s", (7,), prepare=True)
            assert cursor.fetchone() == (7, "row 7", Decimal("1.75"), now, [7, None])
        with client.cursor("portion") as named:
            named.execute("SELECT n FROM new ORDER BY n")
            assert [row[0] for row in named.fetchmany(3)] == [0, 1, 2]
        client.commit()
        with client.cursor() as cursor:
            with cursor.copy("COPY new (n, s, d) FROM STDIN (FORMAT binary)") as copy:
                copy.set_types(["int4", "text", "numeric"])
                for number in range(1000, 1100):
                    copy.write_row((number, f"copied {number}", Decimal("0.5")))
            with cursor.copy("COPY (SELECT n FROM new WHERE n >= 1000 ORDER BY n) TO STDOUT (FORMAT binary)") as copy:
                copy.set_types(["int4"])
                assert list(copy.rows()) == [(number,) for number in range(1000, 1100)]
            with cursor.copy("COPY (SELECT n, 'a' || chr(10) FROM new WHERE n < 1002 AND n >= 1000) TO STDOUT") as copy:
                assert list(copy.rows()) == [("1000", "a\n"), ("1001", "a\n")]
        with pytest.raises(psycopg.errors.DivisionByZero), client.transaction():
            client.execute("SELECT 1 / 0")


def test_psycopg_async(server: Millstream) -> None:
    async def double(number: int) -> Any:
        async with await psycopg.AsyncConnection.connect(server.dsn()) as client:
            cursor = await client.execute("SELECT %s * 2", (number,))
            return await cursor.fetchone()

    async def every() -> list[Any]:
        return await asyncio.gather(*map(double, range(10)))

    assert asyncio.run(every()) == [(number * 2,) for number in range(10)]


def test_psycopg_async_pipelines_cursors_copy_and_notifications(server: Millstream) -> None:
    async def work() -> tuple[Any, ...]:
        async with (
            await psycopg.AsyncConnection.connect(server.dsn(), autocommit=True) as client,
            await psycopg.AsyncConnection.connect(server.dsn(), autocommit=True) as other,
        ):
            await client.execute("CREATE TABLE awaited (n int PRIMARY KEY, s text)")
            async with client.pipeline(), client.cursor() as cursor:
                await cursor.executemany("INSERT INTO awaited VALUES (%s, %s)", [(n, f"row {n}") for n in range(50)])
            async with client.cursor() as cursor, cursor.copy("COPY awaited FROM STDIN") as copy:
                for number in range(50, 100):
                    await copy.write_row((number, None))
            async with client.transaction(), client.cursor("portion", binary=True) as named:
                await named.execute("SELECT n FROM awaited ORDER BY n")
                numbers = [row[0] async for row in named]
            await client.execute("LISTEN heard")
            await other.execute("NOTIFY heard, 'this'")
            heard = [item.payload async for item in client.notifies(timeout=60, stop_after=1)]
            sleeping = asyncio.create_task(other.execute("SELECT pg_sleep(600)"))
            while not sleeping.done():  # a query cannot be cancelled before it has begun
                await other.cancel_safe()
                await asyncio.sleep(0.05)
            with pytest.raises(psycopg.errors.QueryCanceled):
                await sleeping
            return numbers, heard

    assert asyncio.run(work()) == (list(range(100)), ["this"])


def test_a_sleep_is_cancelled_and_timed_out(server: Millstream) -> None:
    with server.connect() as client:
        client.execute("SET statement_timeout = '50ms'")
        with pytest.raises(psycopg.errors.QueryCanceled, match="statement timeout"):
            client.execute("SELECT pg_sleep(60)")
