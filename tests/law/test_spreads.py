"""Variances, deviations and statistics of pairs of doubles are right far from zero, however their rows arrived.

The judge is PostgreSQL over the acknowledged rows. The values have an offset by group, up to seconds since 1970, where
a sum of squares has lost every digit of the spread; PostgreSQL's own results are good to some seven digits there.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterator

import pytest

from tests.rig.mirror import Mirror, mirrored
from tests.rig.postgres import Postgres
from tests.rig.process import wait_until
from tests.rig.sampling import ENGINES
from tests.rig.server import Millstream

pytestmark = [pytest.mark.slow, pytest.mark.postgres]

RELATIVE = 1e-5
OFFSETS = (0.0, 1e4, 1e8, 1e9, 1.7e9)
_OF_ONE = ("var_pop", "var_samp", "variance", "stddev_pop", "stddev_samp", "stddev")
_OF_TWO = ("corr", "covar_pop", "covar_samp", "regr_avgx", "regr_avgy", "regr_count", "regr_intercept", "regr_r2")
_OF_SUMS = ("regr_slope", "regr_sxx", "regr_sxy", "regr_syy")
_VALUES = ", ".join(f"{name}(x) AS {name}" for name in _OF_ONE)
_PAIRS = ", ".join(f"{name}(y, x) AS {name}" for name in (*_OF_TWO, *_OF_SUMS))
VIEWS = {
    "by_group": f"SELECT o, count(*), {_VALUES}, avg(x) AS mean FROM m GROUP BY o",
    "pairs": f"SELECT o, {_PAIRS} FROM m GROUP BY o",
    "filtered": "SELECT o, stddev(x) FILTER (WHERE y > x) AS s, corr(x, y) FILTER (WHERE k > 2) AS c FROM m GROUP BY o",
    "of_reals": "SELECT k, variance(r) AS v, regr_slope(r, x - o) AS s FROM m GROUP BY k",
    "moving": "SELECT o, k, var_samp(x - y) AS v FROM m GROUP BY ROLLUP (o, k)",
    "special": "SELECT k, var_pop(z) AS p, var_samp(z) AS s, corr(z, x - o) AS c, regr_sxx(x - o, z) AS q,"
    " regr_r2(z, x - o) AS r, covar_pop(z, z) AS w FROM m GROUP BY k",
}
WHOLE = {"whole": "SELECT var_samp(x - o) AS v, stddev_pop(y) AS d, regr_r2(y, x) AS r, covar_samp(x, y) AS c FROM m"}


@pytest.fixture(params=ENGINES)
def mirror(request: pytest.FixtureRequest, postgres: Postgres) -> Iterator[Mirror]:
    engine = request.param
    settings = {"maintenance_engine": engine, "spark_enabled": engine == "spark", "maintenance_rows": 60}
    with Millstream(settings=settings) as server, mirrored(server, postgres) as pair:
        pair.stream("m", "k integer, o double precision, x float8, y float8, r real, z float8")
        for name, query in {**VIEWS, **WHOLE}.items():
            pair.view(name, query)
        yield pair


def rows(count: int, source: random.Random) -> list[list[object]]:
    def near(middle: float) -> float | None:
        return None if source.random() < 0.1 else middle + source.randint(-80, 80) / 8

    def row() -> list[object]:
        offset = source.choice(OFFSETS)
        special = source.choice((None, None, 1.0, 2.5, 2.5, -3.0))
        if source.random() < 0.03:
            special = source.choice((math.inf, -math.inf, math.nan))
        small = near(0.0)
        return [source.randint(1, 9), offset, near(offset), near(offset + 5), small, special]

    return [row() for _ in range(count)]


def check(mirror: Mirror) -> None:
    for name, query in mirror.views.items():
        found, wanted = (
            sorted(connection.execute(text.encode()).fetchall(), key=lambda row: [str(item) for item in row[:2]])
            for connection, text in ((mirror.client, f"SELECT * FROM {name}"), (mirror.judge, query))
        )
        assert len(found) == len(wanted), name
        for row, other in zip(found, wanted, strict=True):
            assert all(map(near, row, other)), f"{name} after {mirror.acknowledged} rows: {row}, expected {other}"


def near(left: object, right: object) -> bool:
    if not isinstance(left, float) or not isinstance(right, float):
        return left == right
    return math.isclose(left, right, rel_tol=RELATIVE, abs_tol=1e-6) or (math.isnan(left) and math.isnan(right))


def test_spreads(mirror: Mirror, request: pytest.FixtureRequest, whole: bool) -> None:
    source = random.Random(3)
    check(mirror)
    for step in range(6 if whole else 4):
        for _ in range(source.randint(1, 4)):
            mirror.insert("m", rows(source.choice((1, 2, 30)), source), one_statement=True)
            check(mirror)
        if step in (2, 4):
            mirror.restart(crash=step == 2)
            check(mirror)
    engine = request.node.callspec.params["mirror"]
    if engine == "spark":
        mirror.insert("m", rows(200, source), one_statement=True)
        wait_until(lambda: mirror.jobs("spark") > 0, 120, "Spark's first job")
        check(mirror)
    query = VIEWS["by_group"].replace("FROM m", "FROM copied").encode()
    for connection in (mirror.client, mirror.judge):  # the same statements without a state
        connection.execute(
            b"CREATE TABLE copied AS SELECT 1::int AS k, 1.7e9::float8 AS o, x::float8, 0::float8 AS y"
            b" FROM (VALUES (1.7e9 + 1), (1.7e9 + 2), (1.7e9 + 4)) v(x)"
        )
    (found,), (wanted,) = (connection.execute(query).fetchall() for connection in (mirror.client, mirror.judge))
    assert all(map(near, found, wanted))
