"""The law for windows over difficult times: a zone with a clock change within the rows, NULL, equal and very late
times.

Windows do not divide each other, views read views and two streams, and the server is stopped and killed in between.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest

from tests.rig.mirror import Mirror, mirrored
from tests.rig.postgres import Postgres
from tests.rig.server import Millstream

pytestmark = [pytest.mark.slow, pytest.mark.postgres, pytest.mark.timeout(300)]

ZONE = "SET TimeZone = 'Europe/Berlin'"
START = datetime(2024, 3, 31, 0, 30, tzinfo=UTC)
STREAM = "OPTIONS (watermark 'tz - interval ''30 seconds''')"


def bins(size: str) -> str:
    """The begin, in PostgreSQL, of a row's window of a size."""
    return f"date_bin('{size}', tz, '2001-01-01 00:00+00')"


def watermark(stream: str) -> str:
    return f"((SELECT max(tz) FROM {stream}) - interval '30 seconds')"


def hours(stream: str, judged: bool) -> str:
    """A stream's rows by the hour, with the rows that stay, for PostgreSQL."""
    if not judged:
        return f"(SELECT tumble(tz, '1 hour') AS w, count(*) AS c FROM {stream} GROUP BY 1)"
    kept = f"{bins('1 hour')} + interval '1 hour' > {watermark(stream)} - interval '20 minutes'"
    return f"(SELECT {bins('1 hour')} AS w, count(*) AS c FROM {stream} GROUP BY 1 HAVING {kept})"


def binned(judged: bool) -> str:
    """Retention, with an aggregate that keeps its values."""
    calls = "count(*) AS n, max(v) AS m, count(DISTINCT v) AS d, string_agg(v::text, ',' ORDER BY v) AS l"
    if not judged:
        return f"SELECT tumble(tz, '7 minutes') AS w, k, {calls} FROM s GROUP BY 1, 2"
    kept = f"{bins('7 minutes')} + interval '7 minutes' > {watermark('s')} - interval '10 minutes'"
    return f"SELECT {bins('7 minutes')} AS w, k, {calls} FROM s GROUP BY 1, 2 HAVING {kept}"


def over(judged: bool) -> str:
    """A view over a view, whose query PostgreSQL evaluates."""
    return f"SELECT w, sum(n), max(m) FROM {f'({binned(True)}) b' if judged else 'binned'} GROUP BY w"


def hopped(judged: bool) -> str:
    """Windows whose size is not a multiple of their slide, each shown when it is closed."""
    if not judged:
        return "SELECT hop(tz, '2 minutes', '5 minutes') AS w, count(*), sum(v), count(k) AS known FROM s GROUP BY 1"
    rows = f"(SELECT *, {bins('2 minutes')} - i * interval '2 minutes' AS w FROM s, generate_series(0, 2) AS i) r"
    return (
        f"SELECT w, count(*), sum(v), count(k) AS known FROM {rows} WHERE tz < w + interval '5 minutes' GROUP BY w "
        f"HAVING w + interval '5 minutes' <= {watermark('s')}"
    )


def joined(judged: bool) -> str:
    """Two streams, each with its own watermark."""
    sides = (f"{hours(stream, judged)} AS {stream}{stream}" for stream in "st")
    return f"SELECT ss.w, tt.w AS x, ss.c, tt.c AS d FROM {' FULL JOIN '.join(sides)} ON ss.w = tt.w"


def sat(judged: bool) -> str:
    """Sessions that late rows merge, and rows without a time in a session of their own."""
    calls = "count(*), sum(v), max(tz) - min(tz) AS length"
    if not judged:
        return f"SELECT session(tz, '20 seconds') AS w, k, {calls} FROM s GROUP BY 1, 2"
    begun = "max(CASE WHEN tz <= before + interval '20 seconds' THEN NULL ELSE tz END)"
    before = "(SELECT *, lag(tz) OVER (PARTITION BY k ORDER BY tz) AS before FROM s) a"
    rows = (
        f"(SELECT *, CASE WHEN tz IS NOT NULL THEN {begun} OVER (PARTITION BY k ORDER BY tz) END AS w FROM {before}) b"
    )
    return f"SELECT w, k, {calls} FROM {rows} GROUP BY 1, 2"


def local(judged: bool) -> str:
    """Days in the session's zone, one of which has 23 hours: kept forever."""
    return "SELECT date_trunc('day', tz) AS w, date_trunc('hour', tz::timestamp) AS h, count(*) FROM s GROUP BY 1, 2"


VIEWS = {
    binned: "WITH (retention = '10 minutes')",
    over: "",
    hopped: "WITH (emit = 'final')",
    joined: "WITH (retention = '20 minutes')",
    sat: "",
    local: "",
}


@pytest.fixture
def mirror(postgres: Postgres) -> Iterator[Mirror]:
    chosen = {"maintenance_engine": "embedded", "spark_enabled": False, "maintenance_rows": 20}
    with Millstream(settings=chosen) as server, mirrored(server, postgres) as found:
        for connection in (found.client, found.judge):
            connection.execute(ZONE)
        for name in "st":
            found.stream(name, "tz timestamptz, k integer, v integer", STREAM)
        for view, options in VIEWS.items():
            found.view(view.__name__, view(False), view(True), options)
        yield found


def _row(source: random.Random, step: int) -> tuple[object, ...]:
    """A time on a grid of 20 seconds, usually near the step's, sometimes an hour earlier."""
    time = START + timedelta(seconds=(step * 100 - int(source.expovariate(0.005))) // 20 * 20)
    value = source.choice((None, *range(9)))
    return None if source.random() < 0.1 else time, source.choice((0, 1, None)), value


def test_hostile_times(mirror: Mirror, whole: bool) -> None:
    source, steps = random.Random(7), 40 if whole else 24
    for step in range(steps):
        for name in source.choice(("s", "t", "st")):
            rows = [_row(source, step) for _ in range(source.choice((1, 2, 30)))]
            mirror.insert(name, rows, one_statement=source.random() < 0.7)
        mirror.check(*source.sample(list(mirror.views), 2))
        if step in (steps // 3, steps * 2 // 3):
            mirror.restart(crash=step > steps // 2)
            mirror.client.execute(ZONE)
    mirror.check()
