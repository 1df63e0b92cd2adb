"""WITH queries that are computed once: which ones, and the same plan without sharing."""

from __future__ import annotations

import pytest

from planner.algebra.nodes import Relation, Snapshot, With
from planner.algebra.validate import validate
from planner.algebra.walk import walk
from planner.explain.plans import explain_relation
from planner.rules import optimise
from planner.rules.subqueries.inline_shared import inline_shared
from planner.statements.statement import CreateView, Query
from tests.planner.binding import Database, standard

GROUPED = "q AS (SELECT i, count(*) AS n FROM a GROUP BY i)"
TWICE = "SELECT x.n FROM q x JOIN q y ON x.i = y.n"


@pytest.fixture(scope="module")
def database() -> Database:
    return standard()


def relation(database: Database, text: str) -> Relation:
    statement = database.bind(text).statement
    assert isinstance(statement, Query)
    validate(statement.relation)
    return statement.relation


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        (f"WITH {GROUPED} {TWICE}", ["q"]),
        (f"WITH {GROUPED} SELECT n FROM q WHERE n > (SELECT avg(n) FROM q)", ["q"]),
        (f"WITH {GROUPED} SELECT n FROM q", []),
        (f"WITH {GROUPED.replace('AS (', 'AS MATERIALIZED (')} SELECT n FROM q", ["q"]),
        (f"WITH {GROUPED.replace('AS (', 'AS NOT MATERIALIZED (')} {TWICE}", []),
        (f"WITH {GROUPED}, r AS (SELECT x.i FROM q x, q y) SELECT x.i FROM r x, r y", ["q", "r"]),
        (f"WITH {GROUPED}, r AS (SELECT x.i FROM q x, q y) SELECT 1", []),
        ("WITH q AS (SELECT i, x AS n FROM b WHERE x > 0) " + TWICE, []),  # reading it again costs as little
        ("SELECT (WITH q AS (SELECT max(a.i) AS i FROM a WHERE a.i = b.i) SELECT x.i FROM q x, q y) FROM b", []),
        (f"SELECT (WITH {GROUPED} {TWICE} LIMIT 1), (WITH {GROUPED} {TWICE} LIMIT 1)", ["q", "q_1"]),
        ("WITH RECURSIVE q (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM q) SELECT x.i FROM q x, q y LIMIT 3", []),
        ("WITH q AS (SELECT k AS i, count(*) AS n FROM s GROUP BY k) SELECT n FROM q", []),
        (f"WITH {GROUPED}, r AS (SELECT k FROM s) SELECT r.k FROM r JOIN q x ON x.i = k JOIN q y ON y.i = k", []),
    ],
)
def test_what_is_dear_and_read_twice_is_computed_once(database: Database, text: str, wanted: list[str]) -> None:
    found = relation(database, text)
    assert ([name for name, _ in found.definitions] if isinstance(found, With) else []) == wanted


def test_its_plan_without_sharing_is_the_one_of_not_materialized(database: Database) -> None:
    shared = relation(database, f"WITH {GROUPED} {TWICE} WHERE x.i = 3")
    apart = relation(database, f"WITH {GROUPED.replace('AS (', 'AS NOT MATERIALIZED (')} {TWICE} WHERE x.i = 3")
    inlined = inline_shared(shared)
    validate(inlined)
    assert not any(isinstance(node, Snapshot | With) for node in walk(inlined))
    assert explain_relation(optimise(inlined)) == explain_relation(optimise(apart))


def test_filters_stay_above_what_is_shared_and_all_its_columns_are_kept(database: Database) -> None:
    lines = explain_relation(optimise(relation(database, f"WITH {GROUPED} {TWICE} WHERE x.i = 3")))
    assert lines[:2] == ["With", "  Once: q"]
    assert "              Group Key: a.i" in lines
    assert any(line.endswith("Filter: (q.i = 3)") for line in lines)


def test_definitions_of_views_share_nothing(database: Database) -> None:
    statement = database.bind(f"CREATE VIEW w AS WITH {GROUPED} {TWICE}").statement
    assert isinstance(statement, CreateView)
    assert not any(isinstance(node, With) for node in walk(statement.query.relation))
