"""Multiranges with drivers: parameters and results in text and in binary, COPY, arrays of them, views."""

from __future__ import annotations

import asyncio
import datetime as dt
from decimal import Decimal

import asyncpg
import psycopg
import pytest
from psycopg.types.multirange import (
    DateMultirange,
    Int4Multirange,
    Multirange,
    NumericMultirange,
    TimestampMultirange,
    TimestamptzMultirange,
)
from psycopg.types.range import Range

from tests.rig.server import DATABASE, USER, Millstream

GIVEN = [
    Int4Multirange([Range(1, 5), Range(7, 9)]),
    Int4Multirange([Range(7, 9), Range(1, 7, "[]")]),
    Int4Multirange([Range(None, 3), Range(3, None)]),
    Int4Multirange([Range(empty=True)]),
    Int4Multirange(),
    None,
]
KEPT = [
    Multirange([Range(1, 5), Range(7, 9)]),
    Multirange([Range(1, 9)]),
    Multirange([Range(None, None, "()")]),
    Multirange(),
    Multirange(),
    None,
]
MOMENT = dt.datetime(2024, 2, 29, 12, 30, tzinfo=dt.UTC)
OTHERS = (
    NumericMultirange([Range(Decimal("1.5"), Decimal("2.25"), "(]"), Range(Decimal(3), None)]),
    DateMultirange([Range(dt.date(2024, 2, 29), dt.date(2024, 3, 2))]),
    TimestampMultirange([Range(MOMENT.replace(tzinfo=None), None)]),
    TimestamptzMultirange([Range(None, MOMENT, "()"), Range(MOMENT, MOMENT + dt.timedelta(1), "(]")]),
)


@pytest.mark.parametrize("binary", [False, True])
def test_psycopg(plain_server: Millstream, binary: bool) -> None:
    mark, schema = ("%b", "sets_b") if binary else ("%t", "sets_t")
    with psycopg.connect(plain_server.dsn(), autocommit=True) as client:
        client.execute(f"CREATE SCHEMA {schema}".encode())
        client.execute(f"SET search_path = {schema}".encode())
        others = "n nummultirange, d datemultirange, t tsmultirange, z tstzmultirange"
        client.execute(f"CREATE TABLE sets (id int, i int4multirange, {others})".encode())
        insert = f"INSERT INTO sets VALUES ({', '.join([mark] * 6)})"
        client.cursor().executemany(insert.encode(), [(place, item, *OTHERS) for place, item in enumerate(GIVEN)])
        with client.cursor(binary=binary) as cursor:
            cursor.execute("SELECT i, n, d, t, z FROM sets ORDER BY id")
            assert cursor.fetchall() == [(item, *OTHERS) for item in KEPT]
            cursor.execute("SELECT array_agg(i ORDER BY id), count(*) FILTER (WHERE i && '{[2,3)}') FROM sets")
            assert cursor.fetchone() == (KEPT, 3)
            with cursor.copy("COPY (SELECT i, z FROM sets ORDER BY id) TO STDOUT (FORMAT binary)") as copy:
                copy.set_types(["int4multirange", "tstzmultirange"])
                rows = list(copy.rows())
            assert rows == [(item, OTHERS[-1]) for item in KEPT]
            with cursor.copy("COPY sets (i, z) FROM STDIN (FORMAT binary)") as copy:
                copy.set_types(["int4multirange", "tstzmultirange"])
                for row in rows:
                    copy.write_row(row)
            with cursor.copy("COPY sets (i) FROM STDIN") as copy:
                copy.write("{[1,5)}\n{[1,5),[6,7)}\n\\N\n{}\n")
            cursor.execute("SELECT count(*), count(DISTINCT i), count(DISTINCT z) FROM sets")
            assert cursor.fetchone() == (16, 6, 1)


async def _asyncpg(port: int) -> None:
    client = await asyncpg.connect(host="127.0.0.1", port=port, user=USER, database=DATABASE)
    try:
        given = [asyncpg.Range(7, 9), asyncpg.Range(1, 5, upper_inc=True)]
        kept = [asyncpg.Range(1, 6), asyncpg.Range(7, 9)]
        assert await client.fetchval("SELECT ARRAY[$1::int4multirange, '{}']", given) == [kept, []]
        spans = [asyncpg.Range(dt.date(2024, 2, 29), dt.date(2024, 3, 2))]
        row = await client.fetchrow("SELECT $1::datemultirange AS spans, upper($1) - lower($1) AS days", spans)
        assert tuple(row) == (spans, 2)
        within = "SELECT $1::nummultirange @> $2::numeric"
        assert await client.fetchval(within, [asyncpg.Range(1, 2)], Decimal("1.5")) is True
    finally:
        await client.close()


def test_asyncpg(plain_server: Millstream) -> None:
    asyncio.run(_asyncpg(plain_server.port))


def test_views_keep_what_is_covered(plain_server: Millstream) -> None:
    with plain_server.connect() as client:
        client.execute("CREATE SCHEMA covered")
        client.execute("SET search_path = covered")
        columns = "room int, during int4range, apart int4multirange"
        client.execute(f"CREATE FOREIGN TABLE bookings ({columns}) SERVER stream".encode())
        client.execute(
            "CREATE VIEW taken AS SELECT room, range_agg(during) AS during, range_agg(apart) AS any_of,"
            " range_intersect_agg(apart) AS all_of, count(DISTINCT apart) AS kinds FROM bookings GROUP BY room"
        )
        rows = "SELECT room, during::text, any_of::text, all_of::text, kinds FROM taken ORDER BY room"
        client.execute(
            "INSERT INTO bookings VALUES (1, '[1,3)', '{[1,9)}'), (2, NULL, NULL), (1, '[5,7)', '{[1,2),[8,20)}')"
        )
        assert client.execute(rows).fetchall() == [
            (1, "{[1,3),[5,7)}", "{[1,20)}", "{[1,2),[8,9)}", 2),
            (2, None, None, None, 0),
        ]
        client.execute("INSERT INTO bookings VALUES (1, '[3,5)', '{}'), (2, 'empty', '{}')")
        assert client.execute(rows).fetchall() == [(1, "{[1,7)}", "{[1,20)}", "{}", 3), (2, "{}", "{}", "{}", 1)]


def test_the_key_that_is_there_already(plain_server: Millstream) -> None:
    with plain_server.connect() as client:
        client.execute("CREATE TEMPORARY TABLE opened (during datemultirange PRIMARY KEY)")
        client.execute("INSERT INTO opened VALUES ('{[2024-02-29,2024-03-01),[2024-04-01,)}')")
        with pytest.raises(psycopg.errors.UniqueViolation) as caught:
            client.execute("INSERT INTO opened VALUES ('{[2024-04-01,),[2024-02-29,2024-03-01)}')")
    shown = "{[2024-02-29,2024-03-01),[2024-04-01,)}"
    assert caught.value.diag.message_detail == f"Key (during)=({shown}) already exists."
