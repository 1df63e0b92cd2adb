"""Every expression of expressions.txt gives the same result on DuckDB as on a real PostgreSQL, including errors'
SQLSTATEs."""

from __future__ import annotations

import datetime as dt
from decimal import ROUND_HALF_UP, Context, Decimal
from pathlib import Path
from typing import Any

import psycopg
import pyarrow as pa
import pytest

from catalog.values.errors import SqlError
from executor.embedded.engine import EmbeddedEngine
from tests.embedded.sql import evaluate
from tests.rig.postgres import Postgres

LIST = Path(__file__).with_name("expressions.txt")
EXACT = Context(prec=100, rounding=ROUND_HALF_UP)
EXPRESSIONS = [line for line in LIST.read_text().splitlines() if line and not line.startswith("#")]


def normal(value: Any) -> Any:
    """A form that is equal for equal values: decimals without trailing zeros, intervals as months, days,
    microseconds."""
    match value:
        case Decimal():
            return EXACT.quantize(value, Decimal(1).scaleb(-20)).normalize(EXACT) + 0  # Millstream keeps no more
        case float():
            return "NaN" if value != value else float(f"{value:.14g}")
        case dt.timedelta():
            return ("interval", 0, value.days * 86400000000 + value.seconds * 1000000 + value.microseconds)
        case list():
            return [normal(item) for item in value]
        case dt.datetime() if value.tzinfo is not None:
            return value.astimezone(dt.UTC)
        case pa.MonthDayNano():
            days = value.months * 30 + value.days
            return ("interval", 0, days * 86400000000 + value.nanoseconds // 1000)
        case _:
            return value


def answer(run: Any) -> Any:
    try:
        return [tuple(map(normal, row)) for row in run()]
    except SqlError as error:
        return error.sqlstate
    except psycopg.Error as error:
        return error.sqlstate


@pytest.mark.slow
@pytest.mark.postgres
@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_same_as_postgresql(engine: EmbeddedEngine, postgres: Postgres, expression: str) -> None:
    with postgres.connect() as judge:
        judge.execute("SET TimeZone = 'UTC'")
        wanted = answer(lambda: judge.execute(f"SELECT {expression}".encode()).fetchall())
    assert answer(lambda: evaluate(engine, f"SELECT {expression}")) == wanted


ZONED = [
    "timestamptz '2020-07-01 10:00:00+00'::text",
    "timestamptz '2020-07-01 23:00:00+00'::date",
    "timestamptz '2020-03-28 12:00:00+00' + interval '1 day'",
    "timestamptz '2020-03-28 12:00:00+00' + interval '24 hours'",
    "date_trunc('day', timestamptz '2020-07-01 23:30:00+00')",
    "extract(hour from timestamptz '2020-07-01 23:30:00+00')",
    "timestamp '2020-07-01 10:00:00'::timestamptz",
    "date '2020-07-01'::timestamptz",
    "x::timestamptz from (values ('2020-07-01 10:00:00'), ('2020-07-01 10:00:00+05'), ('2020-07-01')) v(x) order by 1",
]


@pytest.mark.slow
@pytest.mark.postgres
@pytest.mark.parametrize("expression", ZONED)
def test_same_in_another_time_zone(engine: EmbeddedEngine, postgres: Postgres, expression: str) -> None:
    with postgres.connect() as judge:
        judge.execute("SET TimeZone = 'Europe/Berlin'")
        wanted = answer(lambda: judge.execute(f"SELECT {expression}".encode()).fetchall())
    assert answer(lambda: evaluate(engine, f"SELECT {expression}", "Europe/Berlin")) == wanted
