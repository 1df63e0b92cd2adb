"""Sums and averages of doubles that follow changes: exact, whatever came and went."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator
from contextlib import closing
from fractions import Fraction
from pathlib import Path

import pytest

from catalog.values.errors import SqlError
from executor.database.database import Database
from planner.incremental.dataflow.float_sums import TIERS
from tests.executor.client import Client, open_database
from tests.executor.test_maintained_views import kept
from tests.rig.sampling import sample

OPTIONS = "WITH (method = 'incremental', refresh_policy = 'incremental')"
#: Powers of two at the tiers' edges, and beyond the first and the last one.
EDGES = tuple(2.0**power for least, bound, _ in TIERS for power in (least, bound))
ODD = (1e-30, 1e24, 5e-324, 1e300)


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    with closing(open_database(tmp_path)) as found:
        yield found


def double(drawn: random.Random) -> float:
    """Doubles of all sizes, with edges of tiers, neighbours of edges, and some that are in no tier."""
    kind = drawn.random()
    size = drawn.choice(EDGES) if kind < 0.2 else drawn.uniform(0, 100) if kind < 0.6 else 2.0 ** drawn.uniform(-72, 76)
    if drawn.random() < 0.1:
        size = drawn.choice(ODD)
    if drawn.random() < 0.2:
        size = math.nextafter(size, drawn.choice((0.0, math.inf)))
    return drawn.choice((-1, 1)) * drawn.choice((size, size, size, 0.0))


@pytest.mark.parametrize("seed", sample(range(6), (0,)))
def test_sums_are_those_of_the_rows_that_are_there(database: Database, seed: int) -> None:
    drawn, client = random.Random(seed), Client(database)
    client.run("CREATE TABLE readings (id int PRIMARY KEY, place int, value float8)")
    columns = "sum(value) s, avg(value) a, sum(value) FILTER (WHERE id % 2 = 0) e, max(value) m"
    client.run(f"CREATE MATERIALIZED VIEW places {OPTIONS} AS SELECT place, {columns} FROM readings GROUP BY place")
    client.run(f"CREATE MATERIALIZED VIEW everywhere {OPTIONS} AS SELECT 0 AS place, {columns} FROM readings")
    there: dict[int, tuple[int, float]] = {}
    for number in range(40):
        for _ in range(drawn.randint(1, 4)):
            key, place, value = drawn.randint(1, 40), drawn.randint(1, 4), double(drawn)
            client.run(f"DELETE FROM readings WHERE id = {key}")
            there.pop(key, None)
            if drawn.random() < 0.7:
                client.run(f"INSERT INTO readings VALUES ({key}, {place}, {value!r})")
                there[key] = place, value
        if number % 4 == 0:
            for row in client.run("SELECT * FROM places"):
                assert not isinstance(row, str)
                check({key: value for key, (place, value) in there.items() if place == row[0]}, row)
            (row,) = client.run("SELECT * FROM everywhere")
            assert not isinstance(row, str)
            check({key: value for key, (_, value) in there.items()}, row)
    assert kept(database) == {"places", "everywhere"}


def check(rows: dict[int, float], row: tuple[float | None, ...]) -> None:
    """Compares a row of a view with exact sums of the values by key."""
    _, total, average, even, greatest = row
    near(total, list(rows.values()), 1)
    near(average, list(rows.values()), max(len(rows), 1))
    near(even, [value for key, value in rows.items() if key % 2 == 0], 1)
    assert greatest == max(rows.values(), default=None)


def near(found: float | None, values: list[float], count: int) -> None:
    if not values:
        assert found is None
        return
    assert found is not None
    exact = sum(map(Fraction, values)) / count
    sizes = sum(abs(Fraction(value)) for value in values) / count
    assert abs(Fraction(found) - exact) <= sizes / 2**49


def test_what_has_gone_leaves_no_trace(database: Database) -> None:
    client = Client(database)
    client.run("CREATE TABLE readings (id int PRIMARY KEY, value float8, small real)")
    client.run(
        f"CREATE MATERIALIZED VIEW total {OPTIONS} AS SELECT sum(value) s, avg(value) a, sum(small) r FROM readings"
    )
    client.run("INSERT INTO readings VALUES (1, 0.1, 0.1)")
    assert client.run("SELECT s, a FROM total") == [(0.1, 0.1)]
    first = client.run("SELECT * FROM total")
    for value in ("1e22", "1e16", "'Infinity'", "'NaN'", "1e300"):
        client.run(f"INSERT INTO readings VALUES (2, {value}, {min(value, '1e30')}), (3, -3e-9, 7)")
        client.run("SELECT * FROM total")
        client.run("DELETE FROM readings WHERE id > 1")
        assert client.run("SELECT * FROM total") == first
    assert kept(database) == {"total"}


def test_a_sum_beyond_the_range_fails_while_it_is_there(database: Database) -> None:
    client = Client(database)
    client.run("CREATE TABLE readings (id int, value float8)")
    client.run(f"CREATE MATERIALIZED VIEW total {OPTIONS} AS SELECT sum(value) s FROM readings")
    client.run("INSERT INTO readings VALUES (1, 1.7e308)")
    assert client.run("SELECT * FROM total") == [(1.7e308,)]
    client.run("INSERT INTO readings VALUES (2, 1.7e308)")
    with pytest.raises(SqlError, match="out of range") as caught:
        client.run("SELECT * FROM total")
    assert caught.value.sqlstate == "22003"
    client.run("INSERT INTO readings VALUES (3, 'Infinity')")
    assert client.run("SELECT * FROM total") == [(math.inf,)]
    client.run("DELETE FROM readings WHERE id > 1")
    assert client.run("SELECT * FROM total") == [(1.7e308,)]
