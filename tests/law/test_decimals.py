"""Continuous views show PostgreSQL's decimals for numerics of undeclared scale and for quotients, from scratch and
after batches.

Values are distinct as numbers, since a group of equal ones shows the decimals of any of them.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from decimal import Decimal

import pytest
from psycopg.types.string import TextLoader

from tests.rig.mirror import Mirror, mirrored
from tests.rig.postgres import Postgres
from tests.rig.process import wait_until
from tests.rig.sampling import ENGINES
from tests.rig.server import Millstream

pytestmark = [pytest.mark.slow, pytest.mark.postgres]

#: A quotient's decimals depend on its operands: 1.000 / 1 has 20 decimals, 2.000 / 1 has 16.
DECLARED = "k integer, z numeric(10, 3), n bigint"
AVERAGES = "SELECT k, avg(z) AS a, avg(n) AS b, sum(z) / 7 AS q, sum(n) / count(z) AS r FROM plain GROUP BY k"
COLUMNS = "k integer, x numeric, y numeric, z numeric(10, 3)"
VIEWS = {
    "sums": "SELECT k, sum(x) AS s, sum(x * y) AS p, sum(z) AS z, sum(x + 1.500) AS t FROM prices GROUP BY k",
    "extremes": "SELECT k, max(x) AS m, min(x) AS n, max(x - y) AS d, max(x) || '' AS t FROM prices GROUP BY k",
    "averages": "SELECT k, avg(x) AS a, sum(y) / count(*) AS q FROM prices GROUP BY k",
    "values": "SELECT x, count(*) AS c FROM prices GROUP BY x",
    "filtered": "SELECT k, sum(x) FILTER (WHERE y > 1) AS f, min(coalesce(x, y)) AS g FROM prices GROUP BY k",
    "gathered": "SELECT k, array_agg(x ORDER BY x) AS a, sum(DISTINCT y) AS d FROM prices GROUP BY k",
    "of groups": "SELECT sum(s) AS s, max(m) AS m FROM "
    "(SELECT k, sum(x) AS s, max(x) AS m FROM prices GROUP BY k HAVING count(*) > 1) g",
    "declared": AVERAGES,
    "of averages": f"SELECT avg(a) AS a, max(b) / 3 AS m, min(q) || '' AS t FROM ({AVERAGES}) g",
    "without keys": "SELECT avg(z) AS a, avg(n) FILTER (WHERE n > 1) AS b FROM plain",
    "above": "SELECT k, a / 3 AS a, b || '' AS b, r FROM declared WHERE a IS NOT NULL",
    "joined": "SELECT g, sum(x * f) AS s FROM prices JOIN factors ON prices.k = factors.k GROUP BY g",
}


@pytest.fixture(params=ENGINES)
def mirror(request: pytest.FixtureRequest, postgres: Postgres) -> Iterator[Mirror]:
    engine = request.param
    settings = {"maintenance_engine": engine, "spark_enabled": engine == "spark", "maintenance_rows": 30}
    with Millstream(settings=settings) as server, mirrored(server, postgres) as pair:
        for connection in (pair.client, pair.judge):
            connection.adapters.register_loader("numeric", TextLoader)
            connection.execute("CREATE TABLE factors (k integer, g integer, f numeric)")
            connection.execute("INSERT INTO factors VALUES (1, 1, 1.0), (2, 1, 2.50), (3, 2, 0.100)")
        pair.stream("prices", COLUMNS)
        pair.stream("plain", DECLARED)
        for name, query in VIEWS.items():
            pair.view(f'"{name}"', query, query.replace("FROM declared", f"FROM ({AVERAGES}) d"))
        yield pair


def rows(count: int, source: random.Random) -> list[list[object]]:
    """Rows with new numbers, which have trailing zeros."""

    def number() -> Decimal | None:
        if source.random() < 0.1:
            return None
        decimals = "".join(source.choice("005") for _ in range(source.randint(0, 3)))
        whole = source.randint(-(10**6), 10**6)
        return Decimal(f"{whole}.{decimals}" if decimals else str(whole))

    def row() -> Iterator[object]:
        yield source.randint(1, 3)
        yield from (number(), number(), number())

    return [list(row()) for _ in range(count)]


def declared(count: int, source: random.Random) -> list[list[object]]:
    """Rows of small numbers, whose sums are less than, equal to and greater than their counts."""
    numbers = (0, 1, 1, 2, 3, 9, 10_000, -1, None)
    return [
        [source.randint(1, 9), None if z is None else Decimal(z) / source.choice((1, 1, 1000)), source.choice(numbers)]
        for z in source.choices(numbers, k=count)
    ]


def lines(batch: list[list[object]]) -> bytes:
    """The rows as CSV."""
    return "".join(",".join("" if value is None else str(value) for value in row) + "\n" for row in batch).encode()


def test_views_show_what_their_queries_show(mirror: Mirror) -> None:
    source = random.Random(7)
    engine = "spark" if mirror.server.settings["spark_enabled"] else "embedded"
    mirror.insert("prices", rows(5, source), one_statement=True)
    mirror.insert("plain", declared(5, source), one_statement=True)
    mirror.check()
    mirror.insert("prices", rows(5, source), one_statement=False)
    mirror.check()
    for _ in range(3):
        mirror.copy("prices", lines(rows(40, source)))
        mirror.copy("plain", lines(declared(20, source)))
        mirror.check()
    wait_until(lambda: mirror.jobs(engine) > 0, 120, "maintenance")
    mirror.check()
    for key in (*range(10), *range(10)):
        found, wanted = (
            connection.execute(f"SELECT a, b, q, r FROM {source} WHERE k = %s", (key,), prepare=True).fetchall()
            for connection, source in ((mirror.client, "declared"), (mirror.judge, f"({AVERAGES}) d"))
        )
        assert found == wanted
    if engine == "embedded":
        mirror.restart(crash=True)
        mirror.client.adapters.register_loader("numeric", TextLoader)
        mirror.copy("prices", lines(rows(10, source)))
        mirror.check()
