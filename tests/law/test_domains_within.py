"""The law for views that make arrays and rows of domain values from a stream's rows, and refuse none of them."""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest

from tests.rig.mirror import Mirror, mirrored
from tests.rig.postgres import Postgres
from tests.rig.server import Millstream

pytestmark = [pytest.mark.slow, pytest.mark.postgres]

VIEWS = {
    "lists": "SELECT k, array_agg(n * n + 1 ORDER BY n)::posint[]::int[] AS a FROM orders GROUP BY k",
    "parts": "SELECT (array[k, n * n + 1]::posint[])[2] AS p, count(*) FROM orders GROUP BY 1",
    "grouped": "SELECT k::posint AS k, sum(n) FROM orders WHERE array[k]::posint[] IS NOT NULL GROUP BY 1",
}


@pytest.fixture
def mirror(postgres: Postgres) -> Iterator[Mirror]:
    settings = {"maintenance_rows": 50, "spark_enabled": False}
    with Millstream(settings=settings) as server, mirrored(server, postgres) as pair:
        for connection in (pair.client, pair.judge):
            connection.execute("CREATE DOMAIN posint AS int CHECK (VALUE > 0)")
        pair.stream("orders", "k integer, n integer")
        for name, query in VIEWS.items():
            pair.view(name, query)
        yield pair


def test_views_make_values_of_domains(mirror: Mirror) -> None:
    source = random.Random(3)
    for crash in (True, False):
        for count in (1, 40, 90):
            rows = [[source.randint(1, 4), source.randint(-9, 9)] for _ in range(count)]
            mirror.insert("orders", rows, one_statement=source.random() < 0.5)
            mirror.check()
        mirror.restart(crash=crash)
        mirror.check()
