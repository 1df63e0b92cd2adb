"""Averages of integers with 19 digits: nanoseconds since 1970, identifiers made of times, and the limits of bigint.

Texts are compared with PostgreSQL's, as clients see them.
"""

from __future__ import annotations

import random

import psycopg
import pytest

from tests.rig.mirror import Mirror, mirrored
from tests.rig.postgres import Postgres
from tests.rig.server import Millstream

pytestmark = [pytest.mark.slow, pytest.mark.postgres]

_NOW = 1_700_000_000_000_000_000
_ENDS = (2**63 - 1, -(2**63), 2**63 - 2, 0)
VIEWS = {
    "means": "SELECT avg(b) AS mean, count(*) AS n FROM ns",
    "by_key": "SELECT k, avg(b) AS mean, min(b) AS least, sum(b) AS total FROM ns GROUP BY k",
    "in_ratio": "SELECT k, sum(b) / count(*) AS ratio, avg(b)::bigint AS whole FROM ns GROUP BY k",
}
QUERIES = (
    "SELECT avg(b) FROM copied",
    "SELECT avg(b)::text, avg(b)::float8::text, round(avg(b), 2), avg(1) FROM copied",
    "SELECT k, avg(b), sum(b) / 3, max(b) - avg(b) > 0 FROM copied GROUP BY k",
    "SELECT avg(b) OVER (ORDER BY b, k) FROM copied WHERE b > 0",
    "SELECT avg(b) FROM (VALUES (1700000000000000000), (1700000000000000001)) v(b)",
    "SELECT (1700000000000000001::numeric / 1)::text, 9223372036854775807::bigint / 2.0",
    "SELECT avg(b) FROM copied WHERE b BETWEEN 0 AND 9",
)
OF_VIEWS = (
    "SELECT * FROM by_key",
    "SELECT mean FROM by_key WHERE k = 1",
    "SELECT k, mean::text FROM by_key WHERE mean > 0",
    "SELECT ratio, whole FROM in_ratio",
    "SELECT avg(total), max(mean) FROM by_key",
)


def test_averages_of_nineteen_digits(postgres: Postgres) -> None:
    source = random.Random(5)
    settings = {"maintenance_engine": "embedded", "spark_enabled": False, "maintenance_rows": 20}
    with Millstream(settings=settings) as server, mirrored(server, postgres) as mirror:
        mirror.stream("ns", "k integer, b bigint")
        mirror.table("copied", "k integer, b bigint")
        for name, query in VIEWS.items():
            mirror.view(name, query)
        for step in range(5):
            rows = [_row(source) for _ in range(source.choice((1, 9, 40)))]
            for target in ("ns", "copied"):
                mirror.insert(target, rows, one_statement=True)
            _check(mirror)
            if step in (1, 3):
                mirror.restart(crash=step == 3)
                _check(mirror)


def _row(source: random.Random) -> tuple[int, int]:
    key = source.randint(1, 4)
    return key, source.choice(_ENDS) if key == 4 else _NOW + source.randint(0, 10**12)


def _check(mirror: Mirror) -> None:
    for name, query in VIEWS.items():
        assert _texts(mirror.client, f"SELECT * FROM {name}") == _texts(mirror.judge, query), name
    for query in QUERIES:
        assert _texts(mirror.client, query) == _texts(mirror.judge, query), query
    below = ", ".join(f"{name} AS ({query})" for name, query in VIEWS.items())
    for query in OF_VIEWS:
        assert _texts(mirror.client, query) == _texts(mirror.judge, f"WITH {below} {query}"), query


def _texts(connection: psycopg.Connection, query: str) -> list[list[str | None]]:
    cursor = connection.cursor()
    cursor.execute(query.encode())
    result = cursor.pgresult
    assert result is not None
    found = [
        [_text(result.get_value(row, column)) for column in range(result.nfields)] for row in range(result.ntuples)
    ]
    return sorted(found, key=repr)


def _text(value: bytes | None) -> str | None:
    return None if value is None else value.decode()
