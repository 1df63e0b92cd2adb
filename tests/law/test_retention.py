"""The law for views with retention: over enough commits that rows leave merged states, and over a crash."""

from __future__ import annotations

import random
from collections.abc import Iterator
from datetime import datetime, timedelta

import pytest

from tests.rig.mirror import Mirror, mirrored
from tests.rig.postgres import Postgres
from tests.rig.process import wait_until
from tests.rig.server import Millstream

pytestmark = [pytest.mark.slow, pytest.mark.postgres, pytest.mark.timeout(300)]

START = datetime(2024, 3, 30, 23, 50)
WATERMARK = "(SELECT max(ts) FROM s) - interval '30 seconds'"
TUMBLE = "count(*), sum(v), count(DISTINCT v) AS d, string_agg(v::text, ',' ORDER BY n) FROM s"


@pytest.fixture
def mirror(postgres: Postgres) -> Iterator[Mirror]:
    chosen = {"maintenance_engine": "embedded", "spark_enabled": False, "maintenance_rows": 1}
    with Millstream(settings=chosen) as server, mirrored(server, postgres) as found:
        found.stream(
            "s", "ts timestamp, k integer, v integer, n integer", "OPTIONS (watermark 'ts - interval ''30 seconds''')"
        )
        found.view(
            "v",
            f"SELECT tumble(ts, '1 minute') AS w, k, {TUMBLE} GROUP BY 1, 2",
            f"SELECT date_bin('1 minute', ts, '2001-01-01') AS w, k, {TUMBLE} GROUP BY 1, 2 "
            f"HAVING date_bin('1 minute', ts, '2001-01-01') + interval '1 minute' > {WATERMARK} - interval '5 minutes'",
            "WITH (retention = '5 minutes')",
        )
        hop = "date_bin('1 minute', ts, '2001-01-01') - i * interval '1 minute'"
        found.view(
            "h",
            "SELECT hop(ts, '1 minute', '3 minutes') AS w, avg(v), max(ts) FROM s WHERE k < 3 GROUP BY 1",
            f"SELECT {hop} AS w, avg(v), max(ts) FROM s, generate_series(0, 2) AS i WHERE k < 3 GROUP BY 1 "
            f"HAVING {hop} + interval '3 minutes' <= {WATERMARK} AND {hop} + interval '3 minutes' > {WATERMARK} "
            "- interval '10 minutes'",
            "WITH (retention = '10 minutes', emit = 'final')",
        )
        in_time = (
            "(SELECT * FROM s r WHERE ts IS NOT NULL AND coalesce(ts > (SELECT max(ts) FROM s e WHERE e.tx < r.tx) "
            "- interval '2 minutes 30 seconds', true)) r"
        )
        begun = (
            "(SELECT *, max(CASE WHEN ts <= before + interval '20 seconds' THEN NULL ELSE ts END) OVER (PARTITION BY "
            f"k ORDER BY ts) AS w FROM (SELECT *, lag(ts) OVER (PARTITION BY k ORDER BY ts) AS before "
            f"FROM {in_time}) a) b"
        )
        ends = "max(ts) + interval '20 seconds'"
        kept = f"{ends} > {WATERMARK} - interval '2 minutes'"
        for name, calls, options, having in (
            ("x", "count(*), sum(v), max(ts)", "retention = '2 minutes'", kept),
            ("y", "string_agg(n::text, ',' ORDER BY n)", "retention = '2 minutes'", kept),
            ("z", "avg(v)", "retention = '2 minutes', emit = 'final'", f"{kept} AND {ends} <= {WATERMARK}"),
        ):
            found.view(
                name,
                f"SELECT session(ts, '20 seconds') AS w, k, {calls} FROM s GROUP BY 1, 2",
                f"SELECT w, k, {calls} FROM {begun} GROUP BY 1, 2 HAVING {having}",
                f"WITH ({options})",
            )
        alive = f"(SELECT * FROM s WHERE ts > {WATERMARK} - interval '3 minutes')"
        pairs = "SELECT a.ts, a.n, b.v FROM {0} a JOIN {0} b ON a.k = b.k AND b.ts BETWEEN a.ts - {1} AND a.ts"
        found.view(
            "r",
            pairs.format("s", "interval '1 minute'"),
            pairs.format(alive, "interval '1 minute'"),
            "WITH (retention = '3 minutes')",
        )
        found.view(
            "q",
            "SELECT n, lag(v) OVER (PARTITION BY k ORDER BY ts, n) FROM s WHERE v % 3 > 0",
            f"SELECT n, lag(v) OVER (PARTITION BY k ORDER BY ts, n) FROM {alive} s WHERE v % 3 > 0",
            "WITH (retention = '3 minutes', method = 'incremental')",
        )
        found.judge.execute("ALTER TABLE s ADD COLUMN tx bigint DEFAULT txid_current()")
        yield found


def test_rows_leave_and_the_view_is_its_query(mirror: Mirror, whole: bool) -> None:
    source, steps = random.Random(5), 24 if whole else 16
    for step in range(steps):
        rows = [
            (START + timedelta(seconds=step * 50 - int(source.expovariate(0.02))), source.randrange(5), number, number)
            for number in range(step * 10, step * 10 + source.choice((1, 5, 20)))
        ]
        mirror.insert("s", rows, one_statement=True)
        if step % 4 == 0:
            mirror.check()
        wait_until(lambda: is_settled(mirror), 60, "maintenance")
        if step == steps - 9:
            mirror.restart(crash=True)
            mirror.check()
    mirror.check()
    # What follows changes asks for no state as a whole, which then is merged later: many rows of q would leave it.
    query = "SELECT view, state, rows FROM millstream.states WHERE view NOT IN ('h', 'q')"
    for view, state, rows in mirror.client.execute(query):
        assert rows < mirror.acknowledged / 2, (view, state)


def is_settled(mirror: Mirror) -> bool:
    return mirror.client.execute("SELECT max(rows_behind) FROM millstream.views").fetchone() == (0,)
