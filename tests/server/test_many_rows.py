"""An INSERT of many rows with parameters stores the same rows as single INSERTs, on PostgreSQL and on Millstream."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import psycopg
import pytest

from tests.rig.postgres import Postgres

_TABLE = """CREATE TABLE {} (id int PRIMARY KEY, price numeric(10, 2), any_digits numeric, at timestamp, day date,
    code char(5), ratio real, doc jsonb, made int GENERATED ALWAYS AS (id * 2) STORED)"""
_COLUMNS = "(id, price, any_digits, at, day, code, ratio, doc)"
_ROW = "(%s, %s, %s, %s, %s, %s, %s, %s)"
_ROWS = 60


def values(number: int) -> list[Any]:
    """Values in the form in which drivers send them: floats for numerics, texts for documents, and NULLs."""
    return [
        number,
        number * 1.005,
        Decimal(number) / 8,
        dt.datetime(2024, 2, 29, 10, number % 60),
        None if number % 7 == 0 else dt.date(2024, 1, 1 + number % 28),
        "x" * (number % 6),
        number / 3,
        f'{{"b": {number}, "a": 1}}',
    ]


def stored(client: psycopg.Connection[Any], table: str, at_once: bool) -> list[tuple[Any, ...]]:
    client.execute(_TABLE.format(table))
    rows = [values(number) for number in range(_ROWS)]
    if at_once:
        places = ", ".join(_ROW for _ in rows)
        client.execute(f"INSERT INTO {table} {_COLUMNS} VALUES {places}", [cell for row in rows for cell in row])
    else:
        for row in rows:
            client.execute(f"INSERT INTO {table} {_COLUMNS} VALUES {_ROW}", row)
    return client.execute(f"SELECT * FROM {table} t ORDER BY id").fetchall()


def test_many_rows_are_stored_as_single_ones_are(sql: psycopg.Connection[Any], postgres: Postgres) -> None:
    together, alone = stored(sql, "together", True), stored(sql, "alone", False)
    assert together == alone
    with postgres.connect() as judge:
        assert together == stored(judge, "pg_temp.together", True)


@pytest.mark.parametrize(("place", "value", "state"), [(1, 1e9, "22003"), (5, "too long", "22001"), (7, "{", "22P02")])
def test_a_value_that_does_not_fit_is_its_statements_error(
    sql: psycopg.Connection[Any], place: int, value: Any, state: str
) -> None:
    table = f"refusing_{place}"
    sql.execute(_TABLE.format(table))
    rows = [values(number) for number in range(_ROWS)]
    rows[40][place] = value
    places = ", ".join(_ROW for _ in rows)
    with pytest.raises(psycopg.Error) as error:
        sql.execute(f"INSERT INTO {table} {_COLUMNS} VALUES {places}", [cell for row in rows for cell in row])
    assert error.value.sqlstate == state
    assert sql.execute(f"SELECT count(*) FROM {table}").fetchall() == [(0,)]
