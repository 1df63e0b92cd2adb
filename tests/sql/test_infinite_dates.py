"""Infinite dates: the same bytes on the wire as from a real PostgreSQL, and refused by streams."""

from __future__ import annotations

from collections.abc import Iterator

import psycopg
import pytest

from tests.rig.postgres import Postgres
from tests.rig.server import Millstream

pytestmark = [pytest.mark.slow, pytest.mark.postgres]

VALUES = """VALUES ('infinity'::date, 'infinity'::timestamp, 'infinity'::timestamptz, '{infinity,-infinity}'::date[]),
    ('-infinity', '-infinity', '-infinity', '{2020-01-01,infinity}'), ('2020-01-05', '2020-01-05', NULL, NULL)"""


@pytest.fixture(scope="module")
def server() -> Iterator[Millstream]:
    with Millstream(settings={"spark_enabled": False}) as started:
        yield started


def _bytes(connection: psycopg.Connection, source: str, form: str) -> bytes:
    with connection.cursor().copy(f"COPY {source} TO STDOUT ({form})".encode()) as copy:
        return b"".join(copy)


@pytest.mark.parametrize("form", ["FORMAT TEXT", "FORMAT CSV", "FORMAT BINARY"])
def test_they_travel_as_in_postgresql(server: Millstream, postgres: Postgres, form: str) -> None:
    with server.connect() as ours, postgres.connect() as theirs:
        wanted = _bytes(theirs, f"({VALUES})", form)
        assert _bytes(ours, f"({VALUES})", form) == wanted
        ours.execute("CREATE TEMP TABLE i (d date, ts timestamp, tz timestamptz, a date[])")
        with ours.cursor().copy(f"COPY i FROM STDIN ({form})".encode()) as copy:
            copy.write(wanted)
        assert _bytes(ours, "i", form) == wanted


def test_parameters_may_be_infinite(server: Millstream) -> None:
    query = "SELECT $1::date > '9999-12-31', $1::date::text, $2::timestamptz::text"
    with server.connect() as connection:
        for form, day, moment in (
            (0, b"infinity", b"-infinity"),
            (1, (2**31 - 1).to_bytes(4, "big"), (-(2**63)).to_bytes(8, "big", signed=True)),
        ):
            result = connection.pgconn.exec_params(query.encode(), [day, moment], [1082, 1184], [form, form])
            assert [result.get_value(0, place) for place in range(3)] == [b"t", b"infinity", b"-infinity"]


@pytest.mark.parametrize(
    "statement",
    [
        "INSERT INTO s VALUES (1, 'infinity')",
        "INSERT INTO s SELECT 1, until FROM t",
        "CREATE VIEW v WITH (tables = 'frozen') AS"
        " SELECT s.id, max(t.until) AS most FROM s JOIN t ON s.id = t.id GROUP BY s.id",
        "ALTER FOREIGN TABLE s ADD until date DEFAULT '-infinity'",
    ],
)
def test_streams_and_their_views_take_none(server: Millstream, statement: str) -> None:
    with server.connect() as connection:
        connection.execute("DROP FOREIGN TABLE IF EXISTS s")
        connection.execute("CREATE FOREIGN TABLE s (id int, at timestamp) SERVER stream")
        connection.execute("DROP TABLE IF EXISTS t")
        connection.execute("CREATE TABLE t AS SELECT 1 AS id, timestamp 'infinity' AS until")
        with pytest.raises(psycopg.errors.FeatureNotSupported):
            connection.execute(statement.encode())
        with pytest.raises(psycopg.errors.FeatureNotSupported), connection.cursor().copy("COPY s FROM STDIN") as copy:
            copy.write(b"1\t-infinity\n")
        with pytest.raises(psycopg.errors.FeatureNotSupported):
            connection.execute("INSERT INTO s VALUES (%s, %s::timestamp)", (1, "infinity"))
        connection.execute("INSERT INTO s VALUES (1, '2020-01-01')")
