"""Generated queries that leave and continue at some of their stops give the same rows as whole ones."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from executor.database.database import Database
from tests.executor.client import Client, open_database
from tests.executor.separating import TABLES, Leaving, cut_small, go_on, outcome, separable, whole
from tests.rig.sampling import examples

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("everywhere")]

#: Relations with the columns k and n; {0} and {1} stand for such relations.
LEAVES = (
    "SELECT k, v AS n FROM t",
    "SELECT id % 40 AS k, nullif(id % 7, 3)::bigint AS n FROM t WHERE b",
    "SELECT k, length(w)::bigint AS n FROM u",
    "SELECT nullif(k, 5) AS k, round(x)::bigint AS n FROM u",
    "SELECT k, v AS n FROM t WHERE k < 0",
    "SELECT k, length(m::text)::bigint AS n FROM f WHERE m > 'ok' OR m IS NULL",
)
OF_ONE = (
    "SELECT k % 9 AS k, sum(n)::bigint AS n FROM ({0}) x GROUP BY 1",
    "SELECT k, count(DISTINCT n) AS n FROM ({0}) x GROUP BY k HAVING max(n) > 3",
    "SELECT max(k) AS k, count(*) AS n FROM ({0}) x",
    "SELECT k, sum(n)::bigint AS n FROM ({0}) x GROUP BY ROLLUP (k)",
    "SELECT DISTINCT k, n % 5 AS n FROM ({0}) x",
    "SELECT k, rank() OVER (PARTITION BY k % 4 ORDER BY n) AS n FROM ({0}) x",
    "SELECT k, n FROM ({0}) x ORDER BY n DESC, k LIMIT 30 OFFSET 2",
    "SELECT k, n FROM ({0}) x ORDER BY n FETCH FIRST 9 ROWS WITH TIES",
    "SELECT k, n FROM ({0}) x WHERE n * 2 > (SELECT avg(n) FROM ({0}) y WHERE y.k = x.k)",
    "SELECT k, count(*) AS n FROM (SELECT f.m, x.k FROM ({0}) x JOIN f ON f.k = x.n GROUP BY 1, 2) y GROUP BY k, m",
    "SELECT length((r).a::text) AS k, (r).b AS n FROM (SELECT ROW(min(m), sum(n))::pair AS r FROM "
    "(SELECT n, (CASE WHEN n % 2 = 0 THEN 'ok' ELSE 'sad' END)::mood AS m, k FROM ({0}) x) y GROUP BY k) z",
    "WITH w AS MATERIALIZED ({0}) SELECT k, n FROM w WHERE n = (SELECT min(n) FROM w) UNION ALL SELECT k, 0 FROM w",
)
GROUPED = "(SELECT k, min(n) AS n FROM ({1}) z GROUP BY k)"
OF_TWO = (
    *(f"({{0}}) {kind} ({{1}})" for kind in ("UNION", "UNION ALL", "EXCEPT", "EXCEPT ALL", "INTERSECT ALL")),
    *(
        f"SELECT coalesce(x.k, y.k) AS k, x.n + y.n AS n FROM ({{0}}) x {kind} JOIN {GROUPED} y ON x.k = y.k"
        for kind in ("", "LEFT", "RIGHT", "FULL")
    ),
    "SELECT k, n FROM ({0}) x WHERE k IN (SELECT k FROM ({1}) y WHERE y.n > 2)",
    "SELECT k, n FROM ({0}) x WHERE NOT EXISTS (SELECT 1 FROM ({1}) y WHERE y.k = x.k AND y.n > x.n)",
    f"SELECT x.k, l.n FROM ({{0}}) x, LATERAL (SELECT n FROM {GROUPED} y WHERE y.k = x.k ORDER BY n LIMIT 1) l",
)
RELATIONS = st.recursive(
    st.sampled_from(LEAVES),
    lambda below: st.one_of(
        st.builds(lambda form, one: form.format(one), st.sampled_from(OF_ONE), below),
        st.builds(lambda form, one, other: form.format(one, other), st.sampled_from(OF_TWO), below, below),
    ),
    max_leaves=3,
)
ENDS = (" ORDER BY 1, 2", " ORDER BY 2 DESC, 1 LIMIT 9 OFFSET 1")


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Database]:
    database = open_database(tmp_path_factory.mktemp("random"))
    Client(database).run(TABLES)
    Client(database).run(
        "CREATE TYPE mood AS ENUM ('sad', 'ok', 'happy'); CREATE TYPE pair AS (a mood, b bigint);"
        "CREATE TABLE f (k int, m mood);"
        "INSERT INTO f SELECT g % 50, (ARRAY['happy', 'sad', NULL, 'ok']::mood[])[1 + g % 4] "
        "FROM generate_series(1, 90) g"
    )
    Client(database).run("DELETE FROM t WHERE id % 5 <> 2; UPDATE t SET k = NULL WHERE id % 35 = 2")
    yield database
    database.close()


@settings(max_examples=examples(15), deadline=None, derandomize=True)
@given(RELATIONS, st.sampled_from(ENDS), st.sets(st.integers(1, 12), min_size=1, max_size=4))
def test_made_up_queries(database: Database, relation: str, end: str, after: set[int]) -> None:
    with pytest.MonkeyPatch.context() as monkeypatch:
        cut_small(monkeypatch)
        client, query = separable(database), f"SELECT k, n FROM ({relation}) q{end}"
        wanted = whole(client, query)
        with monkeypatch.context() as patch:
            Leaving(patch)
            assert outcome(client, query) == wanted
        found = go_on(client, query, tuple(after), monkeypatch)
        assert found is None or found == wanted
