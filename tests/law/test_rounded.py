"""Continuous views over times with few digits equal PostgreSQL's answers, however their rows arrived."""

from __future__ import annotations

import random
from collections.abc import Iterator
from datetime import date, datetime, time, timedelta, timezone

import pytest

from tests.rig.mirror import Mirror, mirrored
from tests.rig.postgres import Postgres
from tests.rig.process import wait_until
from tests.rig.sampling import ENGINES
from tests.rig.server import Millstream

pytestmark = [pytest.mark.slow, pytest.mark.postgres]

COLUMNS = "k integer, at timestamp(3), zoned timestamptz(0), clock time(2), exact timestamp, n integer"
VIEWS = {
    "by_moment": "SELECT at, count(*), sum(n) FROM ticks GROUP BY at",
    "by_second": "SELECT at::timestamp(0) AS second, count(*), min(at) FROM ticks GROUP BY 1",
    "by_key": "SELECT k, max(at), min(zoned), count(DISTINCT zoned) AS d FROM ticks GROUP BY k",
    "exactly": "SELECT exact::timestamp(1) AS tenth, count(*) FROM ticks WHERE exact::timestamp(2) > at GROUP BY 1",
    "later": "SELECT at + interval '1 us' AS later, count(*) FROM ticks WHERE at = exact::timestamp(3) GROUP BY 1",
}
#: Columns for which Spark has no types.
MORE = {
    "clocks": "SELECT clock, exact::time(1) AS tenth, count(*) FROM ticks GROUP BY 1, 2",
    "spans": "SELECT k, sum((at - exact)::interval(1)), max((zoned - at)::interval minute) FROM ticks GROUP BY k",
    "kept": "SELECT k, array_agg(at ORDER BY at, n) FROM ticks GROUP BY k",
}


@pytest.fixture(params=ENGINES)
def mirror(request: pytest.FixtureRequest, postgres: Postgres) -> Iterator[Mirror]:
    engine = request.param
    settings = {"maintenance_engine": engine, "spark_enabled": engine == "spark", "maintenance_rows": 50}
    with Millstream(settings=settings) as server, mirrored(server, postgres) as pair:
        for connection in (pair.client, pair.judge):
            connection.execute("SET TIME ZONE 'UTC'")
        pair.stream("ticks", COLUMNS)
        for name, query in {**VIEWS, **(MORE if engine == "embedded" else {})}.items():
            pair.view(name, query)
        yield pair


def rows(count: int, source: random.Random) -> list[list[object]]:
    def clock() -> time:
        micros = source.randint(0, 30) * 50 + source.choice([0, 449, 500, 998_000])
        return time(23, 59, source.randint(30, 31), micros)

    def moment() -> datetime:
        return datetime.combine(date(source.choice([1950, 1999, 2000, 2024]), 12, 31), clock())

    def row() -> Iterator[object]:
        zone = timezone(timedelta(hours=1))
        yield source.randint(1, 3)
        for value in (moment(), moment().replace(tzinfo=zone), clock(), moment()):
            yield value if source.random() < 0.9 else None
        yield source.randint(-9, 9)

    return [list(row()) for _ in range(count)]


def lines(items: list[list[object]]) -> bytes:
    written = (",".join("" if item is None else str(item) for item in row) for row in items)
    return "".join(f"{line}\n" for line in written).encode()


def test_views_over_rounded_columns(mirror: Mirror) -> None:
    source = random.Random(3)
    mirror.insert("ticks", rows(40, source), one_statement=True)
    mirror.check()
    mirror.copy("ticks", lines(rows(80, source)))
    mirror.insert("ticks", rows(6, source), one_statement=False)
    mirror.check()
    engine = "embedded" if "spans" in mirror.views else "spark"

    def has_maintained() -> bool:
        mirror.copy("ticks", lines(rows(60, source)))  # the earlier rows may have been another engine's
        return mirror.jobs(engine) > 0

    wait_until(has_maintained, 120, f"a job of {engine}")
    mirror.check()
    mirror.restart(crash=True)
    mirror.copy("ticks", lines(rows(80, source)))
    mirror.check()


def test_binary_copy_is_rounded(mirror: Mirror) -> None:
    items = rows(60, random.Random(4))
    for connection in (mirror.client, mirror.judge):
        with connection.cursor() as cursor, cursor.copy("COPY ticks FROM STDIN (FORMAT binary)") as copy:
            copy.set_types(["int4", "timestamp", "timestamptz", "time", "timestamp", "int4"])
            for row in items:
                copy.write_row(row)
    mirror.check()
    described = (
        "SELECT attname, format_type(atttypid, atttypmod) FROM pg_attribute"
        " WHERE attrelid = 'ticks'::regclass AND attnum > 0 ORDER BY attnum"
    )
    ours, theirs = (connection.execute(described) for connection in (mirror.client, mirror.judge))
    assert ours.fetchall() == theirs.fetchall()
