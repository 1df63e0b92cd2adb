"""Ranges with drivers: parameters and results in text and in binary, COPY, arrays of them; refusals."""

from __future__ import annotations

import asyncio
import datetime as dt
from decimal import Decimal

import asyncpg
import psycopg
import pytest
from psycopg.types.range import DateRange, Int4Range, NumericRange, Range, TimestampRange, TimestamptzRange

from tests.rig.server import DATABASE, USER, Millstream

GIVEN = [Int4Range(1, 5), Int4Range(1, 5, "[]"), Int4Range(None, 3), Int4Range(None, None), Int4Range(empty=True), None]
KEPT = [Range(1, 5), Range(1, 6), Range(None, 3, "()"), Range(None, None, "()"), Range(empty=True), None]
MOMENT = dt.datetime(2024, 2, 29, 12, 30, tzinfo=dt.UTC)
OTHERS = (
    NumericRange(Decimal("1.5"), Decimal("2.25"), "(]"),
    DateRange(dt.date(2024, 2, 29), dt.date(2024, 3, 2)),
    TimestampRange(MOMENT.replace(tzinfo=None), None),
    TimestamptzRange(MOMENT, MOMENT, "[]"),
)


@pytest.mark.parametrize("binary", [False, True])
def test_psycopg(plain_server: Millstream, binary: bool) -> None:
    mark, schema = ("%b", "spans_b") if binary else ("%t", "spans_t")
    with psycopg.connect(plain_server.dsn(), autocommit=True) as client:
        client.execute(f"CREATE SCHEMA {schema}".encode())
        client.execute(f"SET search_path = {schema}".encode())
        client.execute("CREATE TABLE spans (id int, i int4range, n numrange, d daterange, t tsrange, z tstzrange)")
        insert = f"INSERT INTO spans VALUES ({', '.join([mark] * 6)})"
        client.cursor().executemany(insert.encode(), [(place, item, *OTHERS) for place, item in enumerate(GIVEN)])
        with client.cursor(binary=binary) as cursor:
            cursor.execute("SELECT i, n, d, t, z FROM spans ORDER BY id")
            assert cursor.fetchall() == [(item, *OTHERS) for item in KEPT]
            cursor.execute("SELECT array_agg(i ORDER BY id), count(*) FILTER (WHERE i && '[2,3)') FROM spans")
            assert cursor.fetchone() == (KEPT, 4)
            with cursor.copy("COPY (SELECT i, z FROM spans ORDER BY id) TO STDOUT (FORMAT binary)") as copy:
                copy.set_types(["int4range", "tstzrange"])
                rows = list(copy.rows())
            assert rows == [(item, OTHERS[-1]) for item in KEPT]
            with cursor.copy("COPY spans (i, z) FROM STDIN (FORMAT binary)") as copy:
                copy.set_types(["int4range", "tstzrange"])
                for row in rows:
                    copy.write_row(row)
            cursor.execute("SELECT count(*), count(DISTINCT i), count(DISTINCT z) FROM spans")
            assert cursor.fetchone() == (12, 5, 1)


async def _asyncpg(port: int) -> None:
    client = await asyncpg.connect(host="127.0.0.1", port=port, user=USER, database=DATABASE)
    try:
        kept = [
            asyncpg.Range(1, 6),
            asyncpg.Range(empty=True),
            asyncpg.Range(upper=3, upper_inc=False),
            asyncpg.Range(),
        ]
        given = [asyncpg.Range(1, 5, upper_inc=True), *kept[1:]]
        assert await client.fetchval("SELECT $1::int4range[]", given) == kept
        span = asyncpg.Range(dt.date(2024, 2, 29), dt.date(2024, 3, 2))
        row = await client.fetchrow("SELECT $1::daterange AS span, upper($1) - lower($1) AS days", span)
        assert tuple(row) == (span, 2)
        within = "SELECT $1::numrange @> $2::numeric"
        assert await client.fetchval(within, asyncpg.Range(1, 2), Decimal("1.5")) is True
    finally:
        await client.close()


def test_asyncpg(plain_server: Millstream) -> None:
    asyncio.run(_asyncpg(plain_server.port))


@pytest.mark.parametrize(
    ("sql", "hint"),
    [
        ("CREATE TABLE reserved (r int4range, EXCLUDE USING gist (r WITH &&))", "NOT EXISTS"),
        ("CREATE TYPE float8range AS RANGE (subtype = float8)", "numrange"),
    ],
)
def test_what_is_refused(plain_server: Millstream, sql: str, hint: str) -> None:
    with plain_server.connect() as client, pytest.raises(psycopg.errors.FeatureNotSupported) as caught:
        client.execute(sql.encode())
    assert hint in (caught.value.diag.message_hint or "")


def test_the_key_that_is_there_already(plain_server: Millstream) -> None:
    with plain_server.connect() as client:
        client.execute("CREATE TEMPORARY TABLE booked (during tstzrange PRIMARY KEY)")
        client.execute("INSERT INTO booked VALUES ('[2024-02-29,2024-03-01)')")
        with pytest.raises(psycopg.errors.UniqueViolation) as caught:
            client.execute("INSERT INTO booked VALUES ('[2024-02-29,2024-03-01)')")
    shown = '["2024-02-29 00:00:00+00","2024-03-01 00:00:00+00")'
    assert caught.value.diag.message_detail == f"Key (during)=({shown}) already exists."
