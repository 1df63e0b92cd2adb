"""IntervalStyle = iso_8601, as Rails sets it on every connection, and postgres_verbose, beside PostgreSQL."""

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
    "SELECT timestamptz '2024-01-01 00:00+00' AS t, g * interval '1 day' AS d FROM generate_series(1, 20) AS g",
    "SELECT timestamptz '2024-01-01 00:00+00' AS t, g * interval '1 day' AS d FROM generate_series(1, 20) AS g",
)


def shown(client: psycopg.Connection[Any], query: str) -> list[Any]:
    """A query's rows as the texts that came."""
    cursor = client.cursor()
    for name in ("interval", "timestamptz"):
        cursor.adapters.register_loader(name, TextLoader)
        cursor.adapters.register_loader(psycopg.postgres.types[name].array_oid, TextLoader)
    cursor.adapters.register_loader("record", TextLoader)
    return cursor.execute(query.encode()).fetchall()


@pytest.mark.postgres
@pytest.mark.slow
@pytest.mark.parametrize("style", ["iso_8601", "postgres_verbose"])
def test_intervals_are_shown_as_by_postgresql(running: Millstream, postgres: Postgres, style: str) -> None:
    with running.connect() as ours, postgres.connect() as theirs:
        for statement in (f"SET IntervalStyle = {style}", "SET TimeZone = 'Europe/Paris'"):
            ours.execute(statement.encode())
            theirs.execute(statement.encode())
        assert ours.info.parameter_status("IntervalStyle") == style
        for query in QUERIES:
            assert shown(ours, query) == shown(theirs, query), query
        copied = []
        for client in (ours, theirs):
            with client.cursor().copy("COPY (SELECT interval '1 day 02:00') TO STDOUT") as copy:
                copied.append(b"".join(copy))
        assert copied[0] == copied[1] == {"iso_8601": b"P1DT2H\n", "postgres_verbose": b"@ 1 day 2 hours\n"}[style]
        theirs.execute("RESET IntervalStyle")
        ours.execute("RESET IntervalStyle")
        assert shown(ours, QUERIES[0]) == shown(theirs, QUERIES[0])  # a plan and an answer that are known


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
