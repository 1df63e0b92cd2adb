"""Dataflows as golden files: one for each of TPC-H's queries over tables, and the graphs of small queries."""

from __future__ import annotations

from pathlib import Path

import pytest

from planner.algebra.nodes import Relation, Scan, Snapshot
from planner.algebra.validate import validate
from planner.algebra.walk import find, kinds_of
from planner.explain.dataflows import explain_dataflow
from planner.incremental.dataflow.graph import (
    Constant,
    Propagated,
    Recomputed,
    Retracted,
    Shared,
    Source,
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
    for node in found.dataflow.nodes:
        relations.append(node.definition)
        match node:
            case Propagated():
                relations += [term.relation for term in node.terms]
            case Retracted():
                relations += [node.fill, node.partial, node.merge, node.final]
            case Recomputed():
                relations.append(node.relation)
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


@pytest.mark.parametrize(
    ("query", "kinds"),
    [
        ("SELECT g, count(*) FROM a GROUP BY g", [Source, Retracted, Propagated]),
        ("SELECT g, min(v) FROM a GROUP BY g", [Source, Retracted, Recomputed, Propagated]),
        (
            "SELECT g, sum(w) FROM b GROUP BY g",
            [Source, Retracted, Propagated, Recomputed, Propagated],
        ),
        ("SELECT g, array_agg(w) FROM b GROUP BY g", [Source, Recomputed, Propagated]),
        ("SELECT a.k, b.w FROM a JOIN b ON a.k = b.k", [Source, Source, Propagated]),
        ("SELECT a.k, v.n FROM a JOIN (VALUES (1, 'x')) v(g, n) ON v.g = a.g", [Source, Constant, Propagated]),
        ("SELECT t FROM a EXCEPT SELECT t FROM a", [Source, Propagated, Shared, Recomputed]),
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
        ("SELECT k, rank() OVER (ORDER BY v) FROM a", "a window function has all rows in one partition"),
        ("SELECT * FROM a WHERE v > (SELECT w FROM b)", "filter is computed from all rows"),
        (
            "WITH RECURSIVE r AS (SELECT k, g FROM a WHERE g = 1 UNION ALL SELECT a.k, a.g FROM a JOIN r ON a.g = r.k)"
            " SELECT * FROM r",
            "WITH RECURSIVE is computed from all rows",
        ),
        ("SELECT array_agg(w) FROM b", "a grouping has no key, and an aggregate that cannot be taken back"),
        ("SELECT k, now() FROM a", "its rows depend on when they are read"),
    ],
)
def test_what_is_computed_at_each_read_has_a_reason(query: str, reason: str) -> None:
    found = planned(query)
    assert found.dataflow is None
    assert reason in found.reasons


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
    assert found.dataflow.shared[middle.node].node == first.node
    assert len(found.dataflow.kept[first.node]) == 2


def test_the_right_side_of_an_outer_join_is_found_by_its_keys() -> None:
    found = planned("SELECT a.v, b.w FROM a LEFT JOIN b ON b.k = a.k AND b.w > a.v")
    assert found.dataflow is not None
    (joins,) = (node for node in found.dataflow.nodes if isinstance(node, Propagated) and len(node.terms) > 1)
    left, right = joins.terms
    assert left.own_key is None and left.weight is not None
    assert right.own_key is not None and right.weight is None
