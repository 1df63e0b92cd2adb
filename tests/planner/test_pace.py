"""The curve of a view's paces: what a step of so many changed rows takes."""

from __future__ import annotations

from itertools import pairwise

import pytest

from planner.explain.dataflows import Expected, NodeFacts
from planner.explain.programs import Known
from planner.explain.views import ShownView, explain_view, view_json
from planner.incremental.cost.changed_rows import ChangedRows
from planner.incremental.cost.flow_sizes import FlowSizes
from planner.incremental.cost.pace import STEPS, Pace, paces
from planner.incremental.cost.usual_changes import Seen
from planner.incremental.cost.work import Step, Work
from planner.incremental.dataflow.planning import dataflow_of
from planner.incremental.plan import plan
from tests.planner.bound import query_of
from tests.planner.test_choice import ASKING, CATALOG, OIDS, STAR, STATISTICS, relation_of


@pytest.mark.parametrize("query", [STAR, ASKING])
def test_a_longer_step_takes_longer_and_saves_work(query: str) -> None:
    flow = dataflow_of(relation_of(query), "v").dataflow
    assert flow is not None
    curve = paces(FlowSizes(flow, STATISTICS, {}), {}, {})
    assert [pace.rows for pace in curve] == list(STEPS)
    for shorter, longer in pairwise(curve):
        assert shorter.final <= longer.final
        assert shorter.total >= longer.total
    assert curve[0].total == 1_000 * curve[0].final


def test_what_was_measured_counts() -> None:
    flow = dataflow_of(relation_of("SELECT shop, count(*) FROM sales GROUP BY shop"), "v").dataflow
    assert flow is not None
    sizes, mix = FlowSizes(flow, STATISTICS, {}), {OIDS["sales"]: Seen(10, ChangedRows(inserted=1.0))}
    slow = {node.id: Work(10, Step(), Step(10, 10, 10, 1_000.0)) for node in flow.nodes}
    assert paces(sizes, mix, slow)[0].final > 10 * paces(sizes, mix, {})[0].final


def test_the_curve_in_words() -> None:
    program = plan(query_of("SELECT shop, count(*) FROM sales GROUP BY shop", CATALOG)).program
    planned = dataflow_of(program.final, "v")
    expected = Expected("sales: 1 updated row", {}, 1.0, 0.0, (Pace(1, 0.5), Pace(1_000, 10.0)))
    view = ShownView("v", program, planned, Known({}, None, lambda relation: None), nodes=NodeFacts(expected=expected))
    *_, title, one, many = explain_view(view)
    assert title.strip() == "Pace: Changed Rows at a Time, Final Work (ms), Total Work for 1,000 Rows (ms)"
    assert (one.split(), many.split()) == (["1", "0.500", "500.000"], ["1,000", "10.000", "10.000"])
    assert view_json(view)["Upper Method"]["Pace"][1] == {
        "Changed Rows at a Time": 1_000,
        "Final Work (ms)": 10.0,
        "Total Work for 1,000 Rows (ms)": 10.0,
    }
