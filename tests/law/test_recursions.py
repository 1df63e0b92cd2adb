"""The law for recursions over a graph that changes: views follow it round by round, with PostgreSQL as the judge.

The queries are those of ``tests/rig/recursions``; edges come and go, also in transactions, and form cycles. One view
reads a recursion through another view. The server is restarted in between.
"""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest

from tests.rig.mirror import Mirror, mirrored
from tests.rig.postgres import Postgres
from tests.rig.recursions import NODES, QUERIES, TABLES, change
from tests.rig.sampling import sample
from tests.rig.server import Millstream

pytestmark = [pytest.mark.slow, pytest.mark.postgres]

STEPS = 20
OPTIONS = "WITH (method = 'incremental', refresh_policy = 'incremental')"
#: A recursion over a view, and a view over a recursion.
LINKS = "SELECT a, b, count(*) AS n FROM edges GROUP BY a, b"
OF_VIEW = (
    "WITH RECURSIVE r AS (SELECT 1 AS k, 0::bigint AS n UNION SELECT b, l.n FROM r JOIN {} l ON a = k)"
    " SELECT k, n FROM r"
)
ABOVE = "SELECT n, count(*) AS c FROM ({}) x GROUP BY n"


@pytest.fixture
def mirror(postgres: Postgres) -> Iterator[Mirror]:
    with Millstream(settings={"spark_enabled": False}) as server, mirrored(server, postgres) as pair:
        yield pair


@pytest.mark.parametrize("seed", sample(range(10), (0,)))
def test_recursions_over_a_graph_that_changes(mirror: Mirror, seed: int, whole: bool) -> None:
    drawn, steps = random.Random(seed), STEPS if whole else STEPS // 2
    mirror.both(TABLES)
    mirror.both(NODES)
    for place, query in enumerate(QUERIES.values()):
        view(mirror, f"r{place}", query, query)
    view(mirror, "links", LINKS, LINKS)
    judged = OF_VIEW.format(f"({LINKS})")
    view(mirror, "of_view", OF_VIEW.format("links"), judged)
    view(mirror, "above", ABOVE.format("SELECT * FROM of_view"), ABOVE.format(judged))
    for step in range(steps):
        if step == steps // 2:
            mirror.restart(crash=drawn.random() < 0.5)
        changes = [change(drawn) for _ in range(drawn.choice((1, 1, 2, 4)))]
        for statement in changes if drawn.random() < 0.5 else ["BEGIN", *changes, drawn.choice(("COMMIT", "ROLLBACK"))]:
            mirror.both(statement)
        mirror.check_outcomes()
    row = mirror.client.execute("SELECT count(*) FROM millstream.paths WHERE reason IS NOT NULL").fetchone()
    assert row == (0,)


def view(mirror: Mirror, name: str, query: str, judged: str) -> None:
    """A view that follows changes, and its text for PostgreSQL."""
    mirror.client.execute(f"CREATE MATERIALIZED VIEW {name} {OPTIONS} AS {query}".encode())
    mirror.views[name] = judged
