"""Rows that are looked up in tables: of which nodes, by which relation, and when they are chosen."""

from __future__ import annotations

import pytest

from planner.algebra.nodes import Join
from planner.algebra.validate import validate
from planner.incremental.cost.changed_rows import ChangedRows
from planner.incremental.cost.dataflow_costs import node_estimates
from planner.incremental.cost.flow_sizes import FlowSizes, fitting, kept_bytes
from planner.incremental.dataflow.graph import Dataflow, Propagated, Source
from planner.incremental.dataflow.looked_up import look_up, may_be_looked_up, with_looked_up
from planner.incremental.dataflow.planning import dataflow_of, joined
from planner.incremental.names import stored_name
from planner.statistics import TableStatistics
from tests.planner.bound import catalog_of, query_of

CATALOG = catalog_of(
    (
        "CREATE TABLE a (k int PRIMARY KEY, g bigint, v int, f float8)",
        "CREATE TABLE b (k int, g int, w numeric, f float8)",
    )
)


def flow_of(query: str) -> Dataflow:
    found = dataflow_of(joined(query_of(query, CATALOG).relation), "v").dataflow
    assert found is not None
    return found


def tables(flow: Dataflow, nodes: list[int]) -> list[str]:
    """The tables whose rows nodes have, with a star for those of a filter or projection."""
    found = {node.id: node for node in flow.nodes}
    names = []
    for node in (found[number] for number in nodes):
        below = found[node.inputs[0]] if isinstance(node, Propagated) else node
        assert isinstance(below, Source)
        names.append(below.definition.name + "*" * isinstance(node, Propagated))
    return sorted(names)


@pytest.mark.parametrize(
    ("query", "wanted"),
    [
        ("SELECT g, sum(v) FROM a GROUP BY g", []),
        ("SELECT a.g, sum(w) FROM a JOIN b ON a.k = b.k GROUP BY a.g", ["a", "b"]),
        ("SELECT a.g, sum(w) FROM a JOIN b ON a.k = b.k AND a.v > 3 AND b.w > 1 GROUP BY a.g", ["a*", "b*"]),
        ("SELECT a.g, sum(w) FROM a JOIN b ON a.g = b.g GROUP BY a.g", ["a", "b*"]),  # int as bigint
        ("SELECT a.g, sum(w) FROM a JOIN b ON a.f = b.f GROUP BY a.g", []),  # zeros look different
        ("SELECT a.g, sum(w) FROM a JOIN b ON a.v < b.k GROUP BY a.g", []),  # all rows are partners
        ("SELECT a.g, w FROM a LEFT JOIN b ON a.k = b.k", ["a"]),  # rows of b are asked for as they were
        ("SELECT g, v FROM a WHERE EXISTS (SELECT FROM b WHERE b.k = a.k)", ["a"]),
        ("SELECT x.v, y.g FROM a x JOIN a y ON x.k = y.v", []),  # one node has the rows of both
        ("SELECT k, v FROM a JOIN b USING (k) ORDER BY v LIMIT 5", ["a", "b"]),
    ],
)
def test_which_rows_may_be_looked_up(query: str, wanted: list[str]) -> None:
    flow = flow_of(query)
    assert tables(flow, may_be_looked_up(flow)) == wanted


def test_what_is_looked_up_is_not_kept() -> None:
    flow = flow_of("SELECT a.g, sum(w) FROM a JOIN b ON a.k = b.k AND b.w > 1 GROUP BY a.g")
    chosen = may_be_looked_up(flow)
    found = with_looked_up(flow, chosen)
    assert found.kept.keys() | found.looked_up.keys() == flow.kept.keys()
    assert found.looked_up.keys() == set(chosen)
    for node, keys in found.looked_up.items():
        definition = next(item for item in flow.nodes if item.id == node).definition
        for key in keys:
            query = look_up(found, node, key)
            validate(query.relation)
            assert isinstance(query.relation, Join)
            assert query.relation.kind == "semi"
            assert query.relation.columns == definition.columns
            assert len(query.columns) == len(key)
            assert {stored_name(column) for column in query.columns}.isdisjoint(map(stored_name, definition.columns))


def test_the_largest_rows_are_looked_up_until_the_rest_fits() -> None:
    flow = flow_of("SELECT a.g, sum(w) FROM a JOIN b ON a.k = b.k GROUP BY a.g")
    small, large = (node for node in flow.nodes if isinstance(node, Source))
    known = {small.definition.oid: TableStatistics(1e3), large.definition.oid: TableStatistics(1e6)}
    whole = kept_bytes(flow, known, {})
    assert fitting(flow, known, whole) == (flow, whole)
    found, left = fitting(flow, known, whole / 2)
    assert set(found.looked_up) == {large.id}
    assert left < whole / 50
    whole_again, _ = fitting(found, known, whole)
    assert whole_again == flow
    found, left = fitting(found, known, 0)
    assert set(found.looked_up) == {small.id, large.id}
    assert not found.kept.keys() & found.looked_up.keys()
    assert fitting(found, known, 0)[0] is found


def test_a_look_up_is_expected_to_pass_the_table() -> None:
    flow = flow_of("SELECT a.g, sum(w) FROM a JOIN b ON a.k = b.k GROUP BY a.g")
    small, large = (node for node in flow.nodes if isinstance(node, Source))
    known = {small.definition.oid: TableStatistics(1e3), large.definition.oid: TableStatistics(1e6)}
    found, _ = fitting(flow, known, 0)

    def milliseconds(flow: Dataflow, changed: int) -> float:
        estimates = node_estimates(FlowSizes(flow, known, {}), {changed: ChangedRows(updated=1.0)}, {})
        return sum(estimate.milliseconds for estimate in estimates.values())

    assert milliseconds(found, small.id) > milliseconds(flow, small.id) + 10
    assert milliseconds(found, large.id) < milliseconds(flow, large.id) + 2
