"""Sums of doubles in continuous views: an overflow is the view's error on read, and infinite values are not an
overflow.

The state alone tells the two apart, whichever batch contained the values, and after a restart.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.rig.mirror import Mirror, mirrored
from tests.rig.postgres import Postgres
from tests.rig.process import wait_until
from tests.rig.sampling import ENGINES
from tests.rig.server import Millstream

pytestmark = [pytest.mark.slow, pytest.mark.postgres]

VIEWS = {
    "total": "SELECT k, sum(x) AS s FROM readings WHERE k = {0} GROUP BY k",
    "spread": "SELECT k, sum(x) FILTER (WHERE x > 0) AS p, avg(x) AS a, stddev(x) AS d FROM readings WHERE k = {0} "
    "GROUP BY k",
    "scaled": "SELECT k, count(*) AS c, sum(x * 0.5 + 1) AS s FROM readings WHERE k = {0} GROUP BY k",
}
#: Rows in order of arrival: 1 is ordinary, 2 and 3 overflow, 4 to 6 are infinite or NaN, 7 has NULLs.
BATCHES: tuple[tuple[tuple[int, str | None], ...], ...] = (
    ((1, "1.5"), (2, "1e308"), (3, "-1.7e308"), (4, "Infinity"), (5, "NaN"), (6, "-Infinity"), (7, None)),
    ((1, "-0.25"), (4, "1e308"), (6, "Infinity")),
    ((2, "1.5e308"), (2, "1"), (3, "-1.7e308"), (3, "-1.7e308"), (7, None), (7, "1e-320")),
    ((2, "-1e308"), (4, "1e308"), (4, "1e308"), (5, "1"), (1, "1e300")),
)
KEYS = range(1, 8)


@pytest.fixture
def mirror(request: pytest.FixtureRequest, postgres: Postgres) -> Iterator[Mirror]:
    on_spark = request.param == "spark"
    settings = {
        "maintenance_engine": request.param,
        "spark_enabled": on_spark,
        "maintenance_rows": 8 if on_spark else 1,
    }
    with Millstream(settings=settings) as server, mirrored(server, postgres) as pair:
        pair.stream("readings", "k integer, x double precision")
        for name, query in VIEWS.items():
            for key in (2, 4) if on_spark else KEYS:
                pair.view(f"{name}_{key}", query.format(key))
        yield pair


@pytest.mark.parametrize("mirror", ENGINES, indirect=True)
def test_an_overflow_is_the_views_error(mirror: Mirror) -> None:
    engine = "spark" if len(mirror.views) == 2 * len(VIEWS) else "embedded"
    for number, batch in enumerate(BATCHES):
        mirror.insert("readings", batch, one_statement=True)
        mirror.check_outcomes()
        if number == 1:
            wait_until(lambda: mirror.jobs(engine) > 0, 120, "maintenance")
        if number == 1 and engine == "embedded":  # another Spark would take as long as everything else
            mirror.restart(crash=True)
            mirror.check_outcomes()
