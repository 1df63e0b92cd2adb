"""Dataflows as golden files: one for each of TPC-H's queries over tables, and the graphs of small queries."""

from __future__ import annotations

from pathlib import Path

import pytest

from planner.algebra.nodes import Relation, Scan, Snapshot, Window
from planner.algebra.validate import validate
from planner.algebra.walk import find, kinds_of
from planner.explain.dataflows import explain_dataflow
from planner.incremental.dataflow.graph import (
    Constant,
    FirstOfPartitions,
    OrderedWindow,
    Propagated,
    Recomputed,
    Recursive,
    Retracted,
    Shared,
    Source,
    every,
    rows_trace,
)
from planner.incremental.dataflow.planning import Planned, dataflow_of, joined
from tests.planner import golden
from tests.planner.bound import catalog_of, query_of
from tests.rig.benchmarks import queries
from tests.rig.tpch import create

TABLES = (
    "CREATE TABLE a (k int PRIMARY KEY, g int, v int, t text)",
    "CREATE TABLE b (k int, g int, w float8, x int[])",
)


def planned(query: str, statements: tuple[str, ...] = TABLES) -> Planned:
    return dataflow_of(joined(query_of(query, catalog_of(statements)).relation), "v")


def relations_of(found: Planned) -> list[Relation]:
    """All relations that a dataflow's nodes run."""
    assert found.dataflow is not None
    relations: list[Relation] = []
    for node in every(found.dataflow.nodes):
        relations.append(node.definition)
        match node:
            case Propagated():
                relations += [term.relation for term in node.terms]
            case Retracted():
                relations += [node.fill, node.partial, node.merge, node.final]
            case Recomputed():
                relations.append(node.relation)
            case OrderedWindow():
                relations += [node.fill, node.computed]
            case FirstOfPartitions():
                relations += [node.chosen, node.filled]
            case Recursive():
                relations += [node.fill, node.base_fill, node.alike]
            case _:
                pass
    return relations


@pytest.mark.parametrize("path", queries("tpch"), ids=lambda path: path.stem)
def test_the_queries_of_tpch(path: Path, rewrite: bool) -> None:
    found = planned(path.read_text().strip().rstrip(";"), tuple(create(streams=())))
    golden.check(f"dataflow/{path.stem}", explain_dataflow(found), rewrite)
    if found.dataflow is not None:
        for relation in (*relations_of(found), found.dataflow.final):
            validate(relation)


#: Filters of a window's rows, by whether they take the first ones of each partition.
_PLACES = {
    True: (
        "SELECT k FROM ({}) x WHERE r <= 3",
        "SELECT k, r FROM ({}) x WHERE 3 > r AND v > 1",
        "SELECT k FROM ({}) x WHERE r = 1 OR (r IN (2, 3) AND t = 'x')",
        "SELECT k FROM ({}) x WHERE r BETWEEN 2 AND 3 AND g > 0",
        "SELECT k, r, d FROM (SELECT *, rank() OVER p r, dense_rank() OVER p d FROM a WINDOW p AS (PARTITION BY g, v"
        " ORDER BY t)) x WHERE d <= 2",
        "SELECT k FROM (SELECT *, row_number() OVER (PARTITION BY lower(t), g ORDER BY v) r FROM a) x WHERE r = 1",
        "SELECT k FROM (SELECT *, row_number() OVER (ORDER BY v) r FROM a) x WHERE r <= 3",
        "SELECT k, v FROM a ORDER BY v OFFSET 1 FETCH FIRST 3 ROWS WITH TIES",
        "SELECT DISTINCT ON (g) g, k, v FROM a ORDER BY g, v DESC NULLS LAST, k",
        "SELECT a.k, y.w FROM a LEFT JOIN LATERAL (SELECT w FROM b WHERE b.k = a.g ORDER BY w LIMIT 2 OFFSET 1) y"
        " ON true",
        "SELECT a.k, (SELECT b.w FROM b WHERE b.k = a.g ORDER BY b.w LIMIT 1) FROM a",
        "SELECT a.k, y.w FROM a LEFT JOIN (SELECT g, w, row_number() OVER (PARTITION BY g ORDER BY w) r FROM b) y"
        " ON y.g = a.g AND y.r = 1",
        "SELECT t, count(*) FROM ({}) x WHERE r <= 3 GROUP BY t",
    ),
    False: (
        "SELECT k, r FROM ({}) x",
        "SELECT k FROM ({}) x WHERE r > 3",
        "SELECT k FROM ({}) x WHERE r <= 3 OR v > 1",
        "SELECT k FROM ({}) x WHERE r < v",
        "SELECT k FROM ({}) x WHERE r <= 1001",
        "SELECT k FROM ({}) x WHERE (r <= 3) IS NOT TRUE",
        "SELECT k, s FROM (SELECT *, row_number() OVER p r, sum(v) OVER p s FROM a WINDOW p AS (PARTITION BY g"
        " ORDER BY v)) x WHERE r <= 3",
        "SELECT k, s FROM (SELECT *, row_number() OVER (PARTITION BY g ORDER BY v) r, rank() OVER (PARTITION BY g"
        " ORDER BY t) s FROM a) x WHERE r <= 3",
        "SELECT x.k, y.k AS other FROM ({}) x JOIN ({}) y ON x.r = y.r AND x.g = y.g",
    ),
}


@pytest.mark.parametrize("is_first", [True, False])
def test_the_first_rows_of_partitions(is_first: bool, rewrite: bool) -> None:
    numbered = "SELECT *, row_number() OVER (PARTITION BY g ORDER BY v DESC, k) r FROM a"
    lines: list[str] = []
    for query in _PLACES[is_first]:
        found = planned(query.format(numbered, numbered))
        assert found.dataflow is not None and found.reasons == ()
        assert any(isinstance(node, FirstOfPartitions) for node in found.dataflow.nodes) == is_first, query
        for relation in (*relations_of(found), found.dataflow.final):
            validate(relation)
        lines += [query, *explain_dataflow(found)[1:], ""]
    golden.check(f"dataflow/{'first_of_partitions' if is_first else 'other_windows'}", lines[:-1], rewrite)


#: Calls over windows, by whether changes are followed as far as they reach.
_WINDOWS = {
    True: (
        "lag(v) OVER (PARTITION BY g ORDER BY k)",
        "lead(t, 3, 'x') OVER (ORDER BY k)",
        "lag(v, -2) OVER (ORDER BY v DESC), sum(v) OVER (ORDER BY v DESC ROWS BETWEEN 2 PRECEDING AND 5 FOLLOWING)",
        "array_agg(v) OVER (PARTITION BY g, t ORDER BY k ROWS BETWEEN 4 PRECEDING AND 2 PRECEDING)",
        "row_number() OVER ()",
        "row_number() OVER (ORDER BY t, k)",
        "rank() OVER (PARTITION BY g ORDER BY v), dense_rank() OVER (PARTITION BY g ORDER BY v)",
        "sum(v) OVER (PARTITION BY lower(t) ORDER BY k), avg(v) OVER (PARTITION BY lower(t) ORDER BY k)",
        "min(t) OVER (ORDER BY v ROWS UNBOUNDED PRECEDING), lead(v) OVER (ORDER BY v)",
        "first_value(v) OVER w, last_value(v) OVER w, bool_or(v > 3) FILTER (WHERE g > 1) OVER w",
        "row_number() OVER (ORDER BY k), lag(v) OVER (PARTITION BY g ORDER BY k)",
        "sum(v::float8) OVER (PARTITION BY g ORDER BY k)",
        "sum(v) OVER (PARTITION BY g ORDER BY k ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING)",
        "max(v) OVER (ORDER BY k DESC RANGE BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING)",
        "first_value(v) OVER w, last_value(v) OVER (w ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING)",
        "lag(v) OVER (PARTITION BY g ORDER BY k), rank() OVER (PARTITION BY g ORDER BY v),"
        " dense_rank() OVER (PARTITION BY g ORDER BY t)",
        "sum(v) OVER (PARTITION BY g ORDER BY k RANGE BETWEEN 2 PRECEDING AND CURRENT ROW),"
        " max(t) OVER (PARTITION BY g ORDER BY k RANGE BETWEEN 3 PRECEDING AND 1 FOLLOWING), lag(v) OVER"
        " (PARTITION BY g ORDER BY k)",
        "count(*) OVER (ORDER BY date '2026-01-01' + k DESC RANGE BETWEEN '1 mon' FOLLOWING AND '2 mon 3 h' FOLLOWING)",
        "sum(v) OVER (PARTITION BY g), max(v) OVER (PARTITION BY g, lower(t)), row_number() OVER w,"
        " avg(v) FILTER (WHERE v > 1) OVER (w ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING)",
    ),
    False: (
        "lag(v, g) OVER (PARTITION BY g ORDER BY k)",
        "lag(v, 10001) OVER (PARTITION BY g ORDER BY k)",
        "ntile(4) OVER (PARTITION BY g ORDER BY k)",
        "percent_rank() OVER (PARTITION BY g ORDER BY k), lag(v) OVER (PARTITION BY g ORDER BY k)",
        "array_agg(v) OVER (PARTITION BY g)",
        "sum(v) OVER (PARTITION BY g ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING EXCLUDE TIES)",
        "array_agg(v) OVER (PARTITION BY g ORDER BY k)",
        "nth_value(v, 2) OVER (PARTITION BY g ORDER BY k)",
        "sum(v) OVER (PARTITION BY g ORDER BY k RANGE BETWEEN 2 PRECEDING AND UNBOUNDED FOLLOWING)",
        "first_value(v) OVER (PARTITION BY g ORDER BY k RANGE BETWEEN 2 PRECEDING AND CURRENT ROW)",
        "sum(v) OVER (PARTITION BY g ORDER BY v::numeric RANGE BETWEEN 2 PRECEDING AND CURRENT ROW)",
        "sum(v) OVER (PARTITION BY g ORDER BY k GROUPS 2 PRECEDING)",
        "row_number() OVER (PARTITION BY g ORDER BY k),"
        " sum(v) OVER (PARTITION BY g ORDER BY k ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING)",
        "sum(v) OVER (PARTITION BY g ORDER BY k ROWS 2 PRECEDING EXCLUDE CURRENT ROW)",
        "rank() OVER (PARTITION BY g ORDER BY t::jsonb)",
        "lag(v) OVER (PARTITION BY g ORDER BY k), rank() OVER (PARTITION BY g ORDER BY v),"
        " dense_rank() OVER (PARTITION BY g ORDER BY t), rank() OVER (PARTITION BY g ORDER BY t, v) AS a,"
        " rank() OVER (PARTITION BY g ORDER BY v, t) AS b",
    ),
}


@pytest.mark.parametrize("is_covered", [True, False])
def test_windows_over_an_order(is_covered: bool, rewrite: bool) -> None:
    lines: list[str] = []
    for calls in _WINDOWS[is_covered]:
        named = " WINDOW w AS (PARTITION BY g ORDER BY v DESC NULLS LAST)" if "OVER w" in calls else ""
        found = planned(f"SELECT k, {calls} FROM a{named}")
        assert found.dataflow is not None and found.reasons == ()
        assert any(isinstance(node, OrderedWindow) for node in found.dataflow.nodes) == is_covered, calls
        anew = (node.relation for node in found.dataflow.nodes if isinstance(node, Recomputed))
        assert any([*find(relation, kinds_of(Window))] for relation in anew) != is_covered, calls
        for relation in (*relations_of(found), found.dataflow.final):
            validate(relation)
        lines += [calls, *explain_dataflow(found)[1:], ""]
    golden.check(f"dataflow/{'ordered_windows' if is_covered else 'recomputed_windows'}", lines[:-1], rewrite)


@pytest.mark.parametrize(
    ("query", "kinds"),
    [
        ("SELECT g, count(*) FROM a GROUP BY g", [Source, Retracted, Shared]),
        ("SELECT g, min(v) FROM a GROUP BY g", [Source, Retracted, Recomputed, Propagated]),
        (
            "SELECT g, sum(w) FROM b GROUP BY g",
            [Source, Retracted, Propagated, Recomputed, Propagated],
        ),
        ("SELECT g, array_agg(w) FROM b GROUP BY g", [Source, Recomputed, Shared]),
        ("SELECT a.k, b.w FROM a JOIN b ON a.k = b.k", [Source, Source, Propagated]),
        ("SELECT a.k, v.n FROM a JOIN (VALUES (1, 'x')) v(g, n) ON v.g = a.g", [Source, Constant, Propagated]),
        ("SELECT t FROM a EXCEPT SELECT t FROM a", [Source, Shared, Shared, Recomputed]),
        ("SELECT x.k FROM a x JOIN a y ON x.g = y.v", [Source, Shared, Propagated]),
    ],
)
def test_methods_by_operator(query: str, kinds: list[type]) -> None:
    found = planned(query)
    assert found.dataflow is not None
    assert found.reasons == ()
    assert [type(node) for node in found.dataflow.nodes] == kinds


@pytest.mark.parametrize(
    ("query", "reason"),
    [
        ("SELECT k, ntile(3) OVER (ORDER BY v) FROM a", "a window function has all rows in one partition"),
        (
            "SELECT k FROM (SELECT k, row_number() OVER (PARTITION BY x ORDER BY w) r FROM b) y WHERE r = 1",
            "a window function has no partition by which rows are found",
        ),
        ("SELECT * FROM a WHERE v > (SELECT w FROM b)", "filter is computed from all rows"),
        (
            "WITH RECURSIVE r AS (SELECT k FROM a UNION SELECT DISTINCT k + 1 FROM r WHERE k < 9) SELECT * FROM r",
            "the own rows of WITH RECURSIVE go through a grouping, DISTINCT or a join in its step",
        ),
        (
            "WITH RECURSIVE r AS (SELECT k FROM a UNION ALL SELECT q.k + 1 FROM (SELECT k FROM r LIMIT 3) q)"
            " SELECT * FROM r",
            "the own rows of WITH RECURSIVE go through LIMIT in its step",
        ),
        (
            "WITH RECURSIVE r AS (SELECT k FROM a UNION ALL (SELECT k + 1 FROM r WHERE k < 3 UNION ALL SELECT 2))"
            " SELECT * FROM r",
            "the own rows of WITH RECURSIVE go through a set operation in its step",
        ),
        (
            "WITH RECURSIVE r AS (SELECT x FROM b UNION SELECT x || 1 FROM r WHERE cardinality(x) < 3) SELECT * FROM r",
            "WITH RECURSIVE without ALL has no column by which rows are found",
        ),
        (
            "WITH RECURSIVE r AS (SELECT k, v / 3.0 AS n FROM a UNION SELECT k + 1, n FROM r WHERE k < 3)"
            " SELECT * FROM r",
            "WITH RECURSIVE without ALL compares values of type numeric",
        ),
        (
            "SELECT k, (WITH RECURSIVE r AS (SELECT a.v AS n UNION SELECT n - 1 FROM r WHERE n > 0)"
            " SELECT sum(n) FROM r) FROM a",
            "WITH RECURSIVE is computed for each row beside it",
        ),
        (
            "WITH RECURSIVE r AS (SELECT k FROM a UNION SELECT rank() OVER (ORDER BY b.k)::int FROM r JOIN b USING (k))"
            " SELECT * FROM r",
            "the own rows of WITH RECURSIVE go through a window function in its step",
        ),
        (
            "WITH RECURSIVE r AS (SELECT k::bigint FROM a UNION SELECT x.n FROM r"
            " JOIN (SELECT ntile(3) OVER (ORDER BY w) n FROM b) x ON x.n > r.k) SELECT * FROM r",
            "a window function has all rows in one partition",
        ),
        ("SELECT array_agg(w) FROM b", "a grouping has no key, and an aggregate that cannot be taken back"),
        ("SELECT k, now() FROM a", "its rows depend on when they are read"),
    ],
)
def test_what_is_computed_at_each_read_has_a_reason(query: str, reason: str) -> None:
    found = planned(query)
    assert found.dataflow is None
    assert reason in found.reasons


RECURSIONS = {
    "closure": "WITH RECURSIVE r AS (SELECT k, g FROM a UNION SELECT r.k, a.g FROM r JOIN a ON a.k = r.g)"
    " SELECT b.w, count(*) FROM r JOIN b ON b.k = r.g GROUP BY b.w",
    "levels": "WITH RECURSIVE r AS (SELECT k, 0 AS n FROM b WHERE g IS NULL UNION ALL"
    " SELECT b.k, r.n + 1 FROM b JOIN r ON b.g = r.k + 1 WHERE r.n < 9)"
    " SELECT x.k, y.n FROM r x JOIN r y ON x.k = y.n",
    "reached": "WITH RECURSIVE r AS (SELECT k FROM b UNION SELECT m FROM r"
    " JOIN (SELECT k, min(v) AS m FROM a GROUP BY k) x USING (k)) SELECT count(*) FROM r",
}


@pytest.mark.parametrize("name", RECURSIONS)
def test_recursions(name: str, rewrite: bool) -> None:
    """A recursion that is read twice has its rows once, and its step may read anything that is maintained."""
    found = planned(RECURSIONS[name])
    golden.check(f"dataflow/recursion_{name}", explain_dataflow(found), rewrite)
    assert found.dataflow is not None
    for relation in (*relations_of(found), found.dataflow.final):
        validate(relation)


def test_nodes_are_filled_from_the_rows_of_those_below() -> None:
    found = planned("SELECT n, max(s) FROM (SELECT g, count(*) n, min(v) s FROM a WHERE k > 0 GROUP BY g) x GROUP BY n")
    assert found.dataflow is not None
    below, above = found.dataflow.nodes[: found.dataflow.nodes[-1].id // 2], found.dataflow.nodes[-1]
    assert any(scan.kind == "table" for node in below for scan in find(node.definition, kinds_of(Scan)))
    assert isinstance(above, Propagated)
    leaves = {rows_trace("v", node) for node in found.dataflow.kept}
    assert {leaf.trace for leaf in find(above.definition, kinds_of(Snapshot))} <= leaves
    assert next(find(above.definition, kinds_of(Scan)), None) is None


def test_rows_of_other_leaves_are_fetched_outwards_from_the_change() -> None:
    found = planned("SELECT x.v, z.w FROM a x JOIN a y ON x.g = y.k JOIN b z ON z.k = y.g")
    assert found.dataflow is not None
    (joins,) = (node for node in found.dataflow.nodes if isinstance(node, Propagated) and len(node.terms) > 1)
    first, middle, last = joins.terms
    assert [fetch.by for fetch in first.fetches] == [first.node, middle.node]
    assert [fetch.by for fetch in middle.fetches] == [middle.node, middle.node]
    assert [fetch.by for fetch in last.fetches] == [last.node, middle.node]
    assert all(fetch.key for term in joins.terms for fetch in term.fetches)
    assert found.dataflow.showing[middle.node].node == first.node
    assert len(found.dataflow.kept[first.node]) == 2


def test_the_right_side_of_an_outer_join_is_found_by_its_keys() -> None:
    found = planned("SELECT a.v, b.w FROM a LEFT JOIN b ON b.k = a.k AND b.w > a.v")
    assert found.dataflow is not None
    (joins,) = (node for node in found.dataflow.nodes if isinstance(node, Propagated) and len(node.terms) > 1)
    left, right = joins.terms
    assert left.own_key is None and left.weight is not None
    assert right.own_key is not None and right.weight is None
