"""Views that call now() equal their queries at the moment of each read.

The judge is the same query in the same transaction, over a table with the same rows, so that both have one now().
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest

from tests.rig.server import Millstream

QUERIES = (
    "SELECT k, v FROM {0} WHERE at > now() - interval '2 seconds'",
    "SELECT k, count(*), sum(v) FROM {0} WHERE at > now() - interval '2 seconds' AND v % 2 = 0 GROUP BY k",
    "SELECT k, count(*) FROM {0} GROUP BY k HAVING max(at) > now() - interval '2 seconds'",
    "SELECT k, max(at) < current_timestamp - interval '2 seconds' AS late FROM {0} GROUP BY k",
    "SELECT a.k, b.v FROM {0} a JOIN {0} b USING (k) WHERE b.at BETWEEN a.at AND now() AND a.v > 0"
    " AND a.at > now() - interval '1 second'",
    "SELECT count(*) FROM {0} WHERE at::date = current_date OR at > localtimestamp",
    "SELECT now() AS read_at, max(v) AS largest FROM {0}",
)


@pytest.fixture
def client() -> Iterator[psycopg.Connection[Any]]:
    with Millstream(settings={"spark_enabled": False, "maintenance_rows": 1}) as server, server.connect() as found:
        columns = "(k integer, v integer, at timestamptz)"
        found.execute(f"CREATE FOREIGN TABLE s {columns} SERVER stream".encode())
        found.execute(f"CREATE TABLE t {columns}".encode())
        for place, query in enumerate(QUERIES):
            found.execute(f"CREATE VIEW v{place} AS {query.format('s')}".encode())
        yield found


def same(client: psycopg.Connection[Any]) -> None:
    with client.transaction():
        for place, query in enumerate(QUERIES):
            own = Counter(client.execute(f"SELECT * FROM v{place}".encode()).fetchall())
            assert own == Counter(client.execute(query.format("t").encode()).fetchall()), query


def test_rows_leave_as_time_passes(client: psycopg.Connection[Any]) -> None:
    same(client)
    for step in range(6):
        for name in ("s", "t"):
            rows = ", ".join(f"({i % 3}, {i}, '2026-01-01 12:00Z'::timestamptz)" for i in range(step, step + 3))
            client.execute(f"INSERT INTO {name} VALUES {rows}".encode())
        moment = client.execute("SELECT now()").fetchone()
        assert moment is not None
        for name in ("s", "t"):
            client.execute(f"INSERT INTO {name} VALUES (%s, %s, %s)".encode(), (step % 3, 100 + step, moment[0]))
        same(client)
        client.execute("SELECT pg_sleep(0.6)")
        same(client)
    client.execute("SELECT pg_sleep(3)")
    same(client)
    assert client.execute("SELECT * FROM v0").fetchall() == []


def test_views_and_queries_of_them_depend_on_time_too(client: psycopg.Connection[Any]) -> None:
    client.execute("CREATE MATERIALIZED VIEW above AS SELECT count(*) AS n FROM v0")
    client.execute("CREATE VIEW beside AS SELECT s.k, n FROM s, (SELECT count(*) AS n FROM v0) x")
    client.execute("INSERT INTO s VALUES (1, 1, now())")
    text = "SELECT n, (SELECT n FROM beside) FROM above"
    assert client.execute(text.encode()).fetchone() == (1, 1)
    client.execute("SELECT pg_sleep(2.1)")
    assert client.execute(text.encode()).fetchone() == (0, 0)


def test_other_functions_of_time_are_refused(client: psycopg.Connection[Any]) -> None:
    for call in ("clock_timestamp()", "statement_timestamp()", "random()", "current_user"):
        with pytest.raises(psycopg.errors.FeatureNotSupported):
            client.execute(f"CREATE VIEW w AS SELECT k FROM s WHERE at::text > {call}::text".encode())


def test_a_transaction_has_one_time(client: psycopg.Connection[Any]) -> None:
    client.execute("INSERT INTO s VALUES (1, 1, now())")
    with client.transaction():
        first = client.execute("SELECT * FROM v6").fetchall()
        client.execute("SELECT pg_sleep(0.1)")
        assert client.execute("SELECT * FROM v6").fetchall() == first
        assert client.execute("SELECT read_at = now() FROM v6").fetchone() == (True,)
    assert client.execute("SELECT * FROM v6").fetchall() != first
