"""Each IntervalStyle compared with PostgreSQL: iso_8601, which Rails sets on every connection, and sql_standard, which
also affects input."""

from __future__ import annotations

from typing import Any, Final

import psycopg
import pytest
from psycopg.types.string import TextLoader

from tests.rig.postgres import Postgres
from tests.rig.server import Millstream

QUERIES: Final = (
    "SELECT interval '0', interval '1 year 2 months 3 days 04:05:06.789', interval '-14 months', interval '3 hours'",
    "SELECT interval '-00:00:00.5', interval '1 mon -3 days +04:00:00', interval '-13 months', interval '61 seconds'",
    "SELECT interval '-1 day -25:01:01.000001', interval '100 hours', NULL::interval, interval '90 minutes'",
    "SELECT ARRAY[interval '1 day', NULL, interval '-2 mons 00:00:01'], ROW(interval '1 day', 1)",
    "SELECT now() - now(), make_interval(days => 10, secs => 1.5), justify_days(interval '35 days')",
    "SELECT i FROM (VALUES (interval '1 hour'), (interval '2 days 00:00:00.25')) AS v(i) ORDER BY i DESC",
    "SELECT to_char(interval '1 day 02:00', 'DD HH24'), extract(epoch FROM interval '1 day')",
    "SELECT 'P1Y2M3DT4H5M6S'::interval, interval 'PT36H'",
    "SELECT interval '-1 2:03:04', interval '-1 +2:03:04', interval '-1 day 2 hours', interval '1 -2:03'",
    "SELECT interval '-1.5 days 2:00', interval '-1 day 2 hours ago', interval '-1-2 3 4:05'",
    "SELECT '{-1 2:03,-1 day 2 hours}'::interval[], interval '-0.5 sec', interval '+1 2:03'",
    "SELECT interval '-2:03:04 1 day', interval 'P-1DT2H', interval '-1 year 2.5 months 1.5 weeks 3 days 0.25 hours'",
    "SELECT interval '1 day' - interval '-1 2:00', timestamptz '2024-01-01 00:00+00' + interval '-1 2:00'",
    "SELECT interval '100000 hours -3 secs', interval '-178000000 years', interval '-0.000001 s'",
    "SELECT interval '- 1-2', interval '-1 year 2 days', interval '-1 2' day to hour, interval '-2147483648 days'",
    "SELECT interval '-1 day 2 parsecs'",
    "SELECT timestamptz '2024-01-01 00:00+00' AS t, g * interval '1 day' AS d FROM generate_series(1, 20) AS g",
    "SELECT timestamptz '2024-01-01 00:00+00' AS t, g * interval '1 day' AS d FROM generate_series(1, 20) AS g",
)


#: A day and two hours in each style.
SHOWN: Final = {
    "iso_8601": b"P1DT2H\n",
    "postgres": b"1 day 02:00:00\n",
    "postgres_verbose": b"@ 1 day 2 hours\n",
    "sql_standard": b"1 2:00:00\n",
}
READ: Final = "-1 2:03:04\n-1-2\n-1 year 2 mons\n+1-2 -3 +4:05:06\n\\N\nPT-5M\n-1 day 2 hours\n"


def shown(client: psycopg.Connection[Any], query: str) -> list[Any]:
    """A query's rows as the received texts."""
    cursor = client.cursor()
    for name in ("interval", "timestamptz"):
        cursor.adapters.register_loader(name, TextLoader)
        cursor.adapters.register_loader(psycopg.postgres.types[name].array_oid, TextLoader)
    cursor.adapters.register_loader("record", TextLoader)
    return cursor.execute(query.encode()).fetchall()


def outcome(client: psycopg.Connection[Any], query: str) -> list[Any]:
    """The rows, or the error's SQLSTATE."""
    try:
        return shown(client, query)
    except psycopg.Error as error:
        return [error.sqlstate]


@pytest.mark.postgres
@pytest.mark.slow
@pytest.mark.parametrize("style", sorted(SHOWN))
def test_intervals_are_shown_as_by_postgresql(running: Millstream, postgres: Postgres, style: str) -> None:
    with running.connect() as ours, postgres.connect() as theirs:
        for statement in (f"SET IntervalStyle = {style}", "SET TimeZone = 'Europe/Paris'"):
            ours.execute(statement.encode())
            theirs.execute(statement.encode())
        assert ours.info.parameter_status("IntervalStyle") == style
        for query in QUERIES:
            assert outcome(ours, query) == outcome(theirs, query), query
        copied = []
        for client in (ours, theirs):
            with client.cursor().copy("COPY (SELECT interval '1 day 02:00') TO STDOUT") as copy:
                copied.append(b"".join(copy))
        assert copied[0] == copied[1] == SHOWN[style]
        for client in (ours, theirs):
            client.execute("CREATE TEMP TABLE spans (span interval)")
            with client.cursor().copy("COPY spans FROM STDIN") as copy:
                copy.write(READ)
            client.execute("INSERT INTO spans VALUES (%s)", ("-3 4:05",))  # parameters are texts, too
            client.execute("PREPARE add_span AS INSERT INTO spans VALUES ($1)")
            client.execute("EXECUTE add_span ('-5 6:07')")
        assert sorted(map(str, shown(ours, "TABLE spans"))) == sorted(map(str, shown(theirs, "TABLE spans")))
        theirs.execute("RESET IntervalStyle")
        ours.execute("RESET IntervalStyle")
        assert shown(ours, QUERIES[0]) == shown(theirs, QUERIES[0])  # a kept plan and a kept answer


def test_what_an_engine_would_show_is_refused(running: Millstream) -> None:
    with running.connect() as client:
        client.execute("SET IntervalStyle = iso_8601")
        for text in (
            "interval '1 day'::text",
            "to_jsonb(interval '1 day')",
            "'a' || interval '1 day'",
            "json_agg(interval '1 day') OVER ()",
        ):
            with pytest.raises(psycopg.errors.FeatureNotSupported, match="IntervalStyle"):
                client.execute(f"SELECT {text}".encode())
        assert client.execute("SELECT to_char(interval '1 day', 'DD')").fetchone() == ("01",)
        client.execute("SET IntervalStyle = postgres")
        assert client.execute("SELECT interval '1 day'::text").fetchone() == ("1 day",)


@pytest.mark.parametrize(
    ("statement", "words"),
    [
        ("SELECT (word || ' 2:00')::interval FROM (VALUES ('-1')) AS given (word)", "interval of a text"),
        ('SELECT * FROM json_to_record(\'{"a": "-1 2:00"}\') AS found (a interval)', "interval of a text"),
        ("CREATE TABLE not_signed (span interval DEFAULT '-1 2:00')", "one sign for all its fields in a definition"),
        ("CREATE VIEW not_signed AS SELECT interval '-1 2:00' AS span", "one sign for all its fields in a definition"),
    ],
)
def test_what_would_be_read_otherwise_is_refused(running: Millstream, statement: str, words: str) -> None:
    with running.connect() as client:
        client.execute("SET IntervalStyle = sql_standard")
        with pytest.raises(psycopg.errors.FeatureNotSupported, match=words):
            client.execute(statement.encode())
        client.execute("RESET IntervalStyle")
        with client.transaction(force_rollback=True):
            client.execute(statement.encode())
