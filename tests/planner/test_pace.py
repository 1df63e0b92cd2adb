"""The paces of a dataflow's nodes: what they cost, which are chosen for a goal, and what EXPLAIN says of them."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise, product

import pytest

from planner.explain.dataflows import Expected, NodeFacts, ShownPace
from planner.explain.programs import Known
from planner.explain.views import ShownView, explain_view, view_json
from planner.incremental.cost.changed_rows import ChangedRows
from planner.incremental.cost.flow_sizes import FlowSizes
from planner.incremental.cost.pace import (
    CLOSE,
    CONSTRAINTS,
    CurvePoint,
    PaceCosts,
    Paces,
    curve_of,
    incrementability,
    uniform_within,
    within_final,
    within_total,
)
from planner.incremental.cost.usual_changes import Mix, Seen
from planner.incremental.cost.work import Step, Work
from planner.incremental.dataflow.graph import Recomputed, Shared
from planner.incremental.dataflow.planning import dataflow_of
from planner.incremental.plan import plan
from tests.planner.bound import query_of
from tests.planner.test_choice import ASKING, CATALOG, OIDS, STAR, STATISTICS, relation_of

#: A node above a grouping that is computed anew whatever changes.
ABOVE = "SELECT shop, n, sum(n) OVER (ORDER BY n) FROM (SELECT shop, count(*) n FROM sales GROUP BY shop) q"
TWICE = "SELECT n, count(*) FROM (SELECT shop, day, count(*) n FROM sales GROUP BY shop, day) q GROUP BY n"
QUERIES = (STAR, ASKING, ABOVE, TWICE)
HORIZON = 10_000


def costs_of(query: str, mix: Mix | None = None, horizon: int = HORIZON) -> PaceCosts:
    flow = dataflow_of(relation_of(query), "v").dataflow
    assert flow is not None
    return PaceCosts(FlowSizes(flow, STATISTICS, {}), mix or {}, {}, horizon)


@pytest.mark.parametrize("query", [STAR, TWICE])
def test_a_higher_pace_leaves_less_to_reads_and_takes_more_in_all(query: str) -> None:
    costs = costs_of(query)
    uniform = [costs.of(dict.fromkeys(costs.below, level)) for level in range(costs.highest + 1)]
    assert uniform[0] == costs.batch
    assert uniform[0].total == uniform[0].final
    assert {step for paces in uniform for step in paces.steps.values()} >= {HORIZON, HORIZON // 2, 2}
    for lower, higher in pairwise(uniform):
        assert higher.final <= lower.final
        assert higher.total >= lower.total


@pytest.mark.parametrize("part", CONSTRAINTS)
@pytest.mark.parametrize("query", QUERIES)
def test_no_node_goes_on_more_often_than_one_that_it_reads(query: str, part: float) -> None:
    costs = costs_of(query)
    paces = within_final(costs, part * costs.batch.final)
    for node, level in paces.levels.items():
        assert all(level <= paces.levels[below] for below in costs.below[node])


@pytest.mark.parametrize("part", CONSTRAINTS)
@pytest.mark.parametrize("query", QUERIES)
def test_paces_of_nodes_take_no_more_than_one_pace(query: str, part: float) -> None:
    costs = costs_of(query)
    most = part * costs.batch.final
    chosen, uniform = within_final(costs, most), uniform_within(costs, most)
    if uniform.final <= most:
        assert chosen.final <= most
        assert chosen.total <= uniform.total
    else:
        assert chosen.final <= max(most, CLOSE * uniform.final)


def every(costs: PaceCosts) -> Iterator[Paces]:
    """All paces in which no node goes on more often than one that it reads."""
    for levels in product(range(costs.highest + 1), repeat=len(costs.below)):
        found = dict(zip(costs.below, levels, strict=True))
        if all(found[node] <= found[below] for node in found for below in costs.below[node]):
            yield costs.of(found)


@pytest.mark.parametrize("query", [STAR, TWICE])
def test_the_greedy_search_is_close_to_the_best(query: str) -> None:
    costs = costs_of(query, horizon=1_000)
    all_of_them = list(every(costs))
    assert len(all_of_them) > 20
    for part in (0.5, 0.2, 0.1, 0.05):
        most = part * costs.batch.final
        best = min((item.total for item in all_of_them if item.final <= most), default=None)
        found = within_final(costs, most)
        assert best is None or (found.final <= most and found.total <= 1.15 * best)


def test_what_no_pace_makes_cheaper_waits_for_the_read() -> None:
    costs = costs_of(ABOVE)
    flow = costs.flow
    (window,) = (
        node.id for node in flow.nodes if isinstance(node, Recomputed) or "window" in type(node).__name__.lower()
    )
    paces = within_final(costs, 0.5 * costs.batch.final)
    assert paces.levels[window] < max(paces.levels.values())


@pytest.mark.parametrize("query", QUERIES)
def test_the_dual_takes_what_it_may(query: str) -> None:
    costs = costs_of(query)
    last = costs.batch.final
    for times in (1.0, 1.2, 2.0, 10.0):
        paces = within_total(costs, times * costs.batch.total)
        assert paces.total <= times * costs.batch.total
        assert paces.final <= last
        last = paces.final
    assert last < costs.batch.final


def test_a_node_that_has_the_rows_of_another_one_goes_on_with_it() -> None:
    costs = costs_of(STAR)
    (naming,) = (node for node in costs.flow.nodes if isinstance(node, Shared))
    assert naming.id not in within_final(costs, 0.1 * costs.batch.final).steps
    assert naming.node in costs.below


def test_what_was_measured_counts() -> None:
    query = "SELECT shop, count(*) FROM sales GROUP BY shop"
    flow = costs_of(query).flow
    sizes, mix = FlowSizes(flow, STATISTICS, {}), {OIDS["sales"]: Seen(10, ChangedRows(inserted=1.0))}
    slow = {node.id: Work(10, Step(), Step(10, 10, 10, 1_000.0)) for node in flow.nodes}
    usual, slower = (PaceCosts(sizes, mix, work, 1_000).batch.final for work in ({}, slow))
    assert slower > 10 * usual


def test_sources_change_as_they_have_or_by_their_size() -> None:
    often = Seen(1_000, ChangedRows(updated=1.0))
    by_size, shops = costs_of(STAR), costs_of(STAR, {OIDS["shops"]: often})
    assert shops.batch.final > 2 * by_size.batch.final  # a shop has many sales


def test_incrementability() -> None:
    assert incrementability(5, 10) == 0.5
    assert incrementability(5, 0) == float("inf")
    assert incrementability(0, 10) == 0
    assert incrementability(-1, 10) == 0


@pytest.mark.parametrize("query", QUERIES)
def test_a_goal_beyond_all_paces_takes_what_comes_close(query: str) -> None:
    costs = costs_of(query)
    best = min(within_final(costs, part * costs.batch.final).final for part in (*CONSTRAINTS, 0.001))
    paces = within_final(costs, 0.0)
    assert paces.final <= CLOSE * best
    assert paces.total <= uniform_within(costs, 0.0).total


def test_the_curve_in_words() -> None:
    program = plan(query_of("SELECT shop, count(*) FROM sales GROUP BY shop", CATALOG)).program
    planned = dataflow_of(program.final, "v")
    batch, often = Paces(1_000, {2: 0, 3: 0}, 10.0, 10.0), Paces(1_000, {2: 5, 3: 1}, 0.5, 30.0)
    curve = (CurvePoint(1.0, batch, batch), CurvePoint(0.05, often, Paces(1_000, {2: 5, 3: 5}, 0.5, 60.0)))
    curve = (*curve, CurvePoint(0.02, often, often))  # no pace has less final work
    expected = Expected("sales: 1 updated row", {}, 1.0, 0.0, curve)
    view = ShownView("v", program, planned, Known({}, None, lambda relation: None), nodes=NodeFacts(expected=expected))
    *_, title, one, other = explain_view(view)
    assert title.strip() == (
        "Pace: Final Work (ms), Total Work for 1,000 Rows (ms), Total Work with One Pace (ms), Rows at a Time"
    )
    assert one.split() == ["10.000", "10.000", "10.000", "1,000"]
    assert other.split() == ["0.500", "30.000", "60.000", "125", "to", "500"]
    assert view_json(view)["Upper Method"]["Pace"][1] == {
        "Final Work (ms)": 0.5,
        "Total Work for 1,000 Rows (ms)": 30.0,
        "Total Work with One Pace (ms)": 60.0,
        "Rows at a Time, Least": 125,
        "Rows at a Time, Most": 500,
    }


def test_a_goal_in_words() -> None:
    planned = dataflow_of(relation_of("SELECT shop, count(*) FROM sales GROUP BY shop"), "v")
    program = plan(query_of("SELECT shop, count(*) FROM sales GROUP BY shop", CATALOG)).program
    pace = ShownPace("latency_goal = 5 ms", "at 06:00", 4.5, 20.0, False, {1: 1, 2: 1_000})
    view = ShownView("v", program, planned, Known({}, None, lambda relation: None), nodes=NodeFacts(kept={}, pace=pace))
    lines = [line.strip() for line in explain_view(view)]
    assert "Trigger: all nodes go on at 06:00" in lines
    assert (
        "Goal: latency_goal = 5 ms: reads find at most 4.500 ms left, 1,000 changed rows take 20.000 ms in all, "
        "which does not meet the goal" in lines
    )
    assert [line for line in lines if line.startswith("Goes On")] == [
        "Goes On: with each changed row",
        "Goes On: after 1,000 changed rows",
    ]


def test_the_curve_has_a_point_for_each_constraint_that_can_be_met() -> None:
    assert [point.part for point in curve_of(costs_of(STAR, horizon=100_000))] == list(CONSTRAINTS)
    curve = curve_of(costs_of(ABOVE))
    assert 1 < len(curve) < len(CONSTRAINTS)
    for before, after in pairwise(curve):
        assert after.paces.final < before.paces.final
        assert after.paces.total > before.paces.total
