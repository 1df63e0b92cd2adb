"""Equal relations in a plan that are computed once: which ones, and that the plan's rows stay the same."""

from __future__ import annotations

import pytest

from planner.algebra.nodes import Relation, With
from planner.algebra.validate import validate
from planner.explain.plans import explain_relation
from planner.rules import optimise
from planner.rules.subqueries.inline_shared import inline_shared
from planner.separation.common_results import compute_once
from planner.separation.cuts import cut
from planner.statements.statement import Query
from tests.planner import golden
from tests.planner.bound import bound, catalog_of
from tests.planner.evaluate import bag, evaluate
from tests.rig.benchmarks import queries
from tests.rig.tpch import create

CATALOG = catalog_of(["CREATE TABLE t (a int, b int, c int)", "CREATE TABLE u (a int, d int)"])
ROWS = {
    "t": [{"a": a, "b": a % 3, "c": a % 2} for a in range(8)],
    "u": [{"a": a % 5, "d": a * 3 % 7} for a in range(9)],
}
JOIN = "t JOIN u ON t.a = u.a"


def plan_of(text: str) -> Relation:
    statement = bound(text, CATALOG)
    assert isinstance(statement, Query)
    return optimise(statement.relation)


def once(whole: Relation) -> Relation:
    found = compute_once(whole, lambda relation: True)
    validate(found)
    assert found.columns == whole.columns
    return found


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        (f"SELECT t.b, count(*) FROM {JOIN} GROUP BY 1 HAVING count(*) > (SELECT min(d) FROM {JOIN})", ["b d"]),
        (f"SELECT b FROM {JOIN} WHERE d > 1 UNION ALL SELECT c FROM {JOIN} WHERE d > 1", ["b c"]),
        (f"SELECT b FROM {JOIN} WHERE d > 1 UNION ALL SELECT c FROM {JOIN} WHERE d > 2", []),
        (f"SELECT b FROM {JOIN} UNION ALL SELECT b FROM t LEFT JOIN u ON t.a = u.a", []),
        (
            "SELECT x.n, y.n FROM (SELECT b, count(*) AS n FROM t GROUP BY b) x, "
            "(SELECT b, count(*) AS n FROM t GROUP BY b) y",
            ["n"],
        ),
        (
            f"SELECT b FROM {JOIN} WHERE d = '0'::float8 UNION ALL SELECT b FROM {JOIN} WHERE d = '-0'::float8",
            [],
        ),
        ("SELECT b FROM t WHERE a > 1 UNION ALL SELECT c FROM t WHERE a > 1", []),
        (
            "SELECT x.b, x.m, y.s FROM (SELECT b, max(a) AS m, count(*) AS n FROM t GROUP BY b) x "
            "JOIN (SELECT b, sum(c) AS s, count(*) AS k FROM t GROUP BY b) y ON x.b = y.b WHERE x.n > 0 AND y.k > 1",
            ["b count max sum"],
        ),
        (
            f"SELECT b, min(d) FROM {JOIN} GROUP BY b UNION ALL SELECT b, max(d) FROM {JOIN} GROUP BY b "
            f"UNION ALL SELECT DISTINCT b, 0 FROM {JOIN}",
            ["b d", "b max min"],
        ),
        (
            "SELECT max(m), min(n) FROM (SELECT b, max(a) AS m, count(*) AS n FROM t GROUP BY b) x "
            "UNION ALL SELECT sum(m), max(n) FROM (SELECT b, max(a) AS m, count(*) AS n FROM t GROUP BY b) y",
            ["max max min sum"],
        ),
        ("SELECT sum(a), sum(a) + 1 FROM t GROUP BY b UNION ALL SELECT sum(a), 0 FROM t GROUP BY c", []),
        (
            "SELECT b, count(*) FILTER (WHERE a > 1), max(c) FROM t GROUP BY b UNION ALL "
            "SELECT b, count(*) FILTER (WHERE a > 2), count(DISTINCT c) FROM t GROUP BY b",
            ["b count count count max"],
        ),
        ("SELECT b, sum(a * random()) FROM t GROUP BY b UNION ALL SELECT b, sum(a) FROM t GROUP BY b", []),
        (
            "SELECT b, sum(a + (SELECT count(*) FROM u)) FROM t GROUP BY b "
            "UNION ALL SELECT b, max(a + (SELECT count(*) FROM u)) FROM t GROUP BY b",
            ["count"],
        ),
        (f"SELECT count(*) FROM {JOIN} WHERE b = 1 UNION ALL SELECT count(*) + 1 FROM {JOIN} WHERE b = 1", ["count"]),
        (f"SELECT b, random() FROM {JOIN} UNION ALL SELECT c, 1.0 FROM {JOIN}", ["b c"]),
        ("SELECT (SELECT max(d) FROM u WHERE u.a = t.a), (SELECT max(d) FROM u WHERE u.a = t.a) FROM t", []),
        (f"WITH w AS (SELECT b FROM {JOIN}) SELECT w.b FROM w, w v UNION ALL SELECT d FROM {JOIN}", ["b d"]),
        (
            f"SELECT max(b) FROM (SELECT b FROM {JOIN} UNION ALL SELECT b FROM {JOIN}) x UNION ALL "
            f"SELECT min(b) FROM (SELECT b FROM {JOIN} UNION ALL SELECT b FROM {JOIN}) y",
            ["b", "max min"],
        ),
    ],
)
def test_what_is_computed_once(text: str, wanted: list[str]) -> None:
    whole = plan_of(text)
    found = once(whole)
    known = {name for name, _ in whole.definitions} if isinstance(whole, With) else set()
    shared = [item for name, item in found.definitions if name not in known] if isinstance(found, With) else []
    assert [" ".join(sorted(column.name for column in item.columns)) for item in shared] == wanted
    if not wanted:
        assert found is whole
    if "random" not in text:
        assert bag(evaluate(inline_shared(found), ROWS)) == bag(evaluate(inline_shared(whole), ROWS))


def test_what_is_not_worth_it_stays() -> None:
    """The largest relation is considered first; if it is not worthwhile, a part of it may be."""
    joins = "(SELECT b, d, e FROM t JOIN u ON t.a = u.a CROSS JOIN (SELECT max(d) AS e FROM u) m) x"
    whole = plan_of(f"SELECT b FROM {joins} UNION ALL SELECT e FROM {joins}")
    assert compute_once(whole, lambda relation: False) is whole
    asked: list[Relation] = []

    def is_small(relation: Relation) -> bool:
        asked.append(relation)
        return len(asked) > 1

    found = compute_once(whole, is_small)
    assert isinstance(found, With)
    assert found.definitions
    assert bag(evaluate(inline_shared(found), ROWS)) == bag(evaluate(whole, ROWS))


def test_of_tpch_query_11_joins_once(rewrite: bool) -> None:
    catalog, found = catalog_of(create(streams=())), {}
    for path in queries("tpch"):
        statement = bound(path.read_text(), catalog)
        assert isinstance(statement, Query)
        whole = optimise(statement.relation)
        plan = once(whole)
        if plan is not whole:
            lines = found[path.stem] = explain_relation(plan)
            for item in cut(plan, lambda place: place.breaker != "build").pipelines:
                validate(item.relation)
                lines.append(f"{item.name} ({item.breaker}) reads {', '.join(item.reads) or 'no other'}")
    assert list(found) == ["q11"]
    golden.check("separation/computed_once", found["q11"], rewrite)
