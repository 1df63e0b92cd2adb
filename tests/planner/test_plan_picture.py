"""The picture of a view: which traces it has, the work between them, and that it is a document."""

from __future__ import annotations

from itertools import combinations
from xml.etree import ElementTree

import pytest

from planner.explain.dataflows import NodeFacts
from planner.explain.plan_picture import Arrow, Box, Graph, drawn, graph_of, plan_svg
from planner.explain.programs import Known
from planner.explain.views import Measured, ShownView
from planner.incremental.cost.work import Step, Work
from planner.incremental.dataflow.planning import Planned, dataflow_of
from planner.incremental.plan import plan
from tests.planner.bound import query_of
from tests.planner.test_choice import CATALOG

SVG = "{http://www.w3.org/2000/svg}"
QUERY = (
    "SELECT name, n FROM shops JOIN (SELECT shop, count(*) n FROM sales GROUP BY shop) q ON q.shop = shops.id"
    " WHERE n > (SELECT avg(n) FROM (SELECT count(*) n FROM sales GROUP BY shop) r)"
)


def view_of(query: str, nodes: NodeFacts | None = None) -> ShownView:
    program = plan(query_of(query, CATALOG)).program
    planned = dataflow_of(program.final, "v")
    return ShownView("a <view>", program, planned, Known(), nodes=nodes or NodeFacts())


def test_nodes_lie_between_tables_and_the_view() -> None:
    graph = graph_of(view_of(QUERY))
    starts = {arrow.start for arrow in graph.arrows} - {arrow.end for arrow in graph.arrows}
    assert starts == {"sales", "shops"}
    assert {arrow.end for arrow in graph.arrows} - {arrow.start for arrow in graph.arrows} == {"view"}
    assert graph.boxes["view"] == Box("a <view>", "the rows of the view", is_view=True)
    assert not any(box.about.startswith("the rows of ") for key, box in graph.boxes.items() if key != "view")


def test_the_dearest_arrows_are_the_thickest() -> None:
    view = view_of(QUERY)
    assert view.planned.dataflow is not None
    nodes = [node.id for node in view.planned.dataflow.nodes]
    work = {node: Work(2, Step(), Step(milliseconds=2.0 * node)) for node in nodes}
    document = ElementTree.fromstring(plan_svg(view_of(QUERY, NodeFacts(dict.fromkeys(nodes, 1_000), work=work))))
    dearest = [path for path in document.iter(f"{SVG}path") if path.get("class") == "dearest"]
    thickness = [float(path.get("stroke-width", "0")) for path in document.iter(f"{SVG}path")]
    assert {float(path.get("stroke-width", "0")) for path in dearest} == {max(thickness)} == {10.0}
    assert len(set(thickness)) > 2
    (title, *_) = (path.find(f"{SVG}title") for path in dearest)
    assert title is not None
    assert title.text == f"{max(nodes):,.3f} ms for a change"
    texts = [text.text for text in document.iter(f"{SVG}text")]
    assert "a <view>" in texts
    assert "1,000 rows kept" in texts


@pytest.mark.parametrize("query", [QUERY, "SELECT shop, count(*) FROM sales GROUP BY shop"])
def test_no_boxes_overlap(query: str) -> None:
    document = ElementTree.fromstring(plan_svg(view_of(query)))
    rects = [
        tuple(float(rect.get(name, "0")) for name in ("x", "y", "width", "height"))
        for rect in document.iter(f"{SVG}rect")
    ]
    width, height = float(document.get("width", "0")), float(document.get("height", "0"))
    assert all(x + w < width and y + h < height for x, y, w, h in rects)
    for (x, y, w, h), (other_x, other_y, other_w, other_h) in combinations(rects, 2):
        assert x + w <= other_x or other_x + other_w <= x or y + h <= other_y or other_y + other_h <= y


def test_a_view_that_is_computed_reads_its_tables() -> None:
    view = view_of("SELECT shop, count(*) FROM sales GROUP BY shop")
    view = ShownView("v", view.program, Planned(None, ("of a reason",)), Known(), measured=Measured(computed=4.0))
    assert graph_of(view).arrows == [Arrow("sales", "view", 4.0)]


def test_names_cannot_leave_their_place() -> None:
    hostile = '"><script>alert(1)</script>'
    text = drawn(Graph({hostile: Box(hostile, hostile), "b": Box("b")}, [Arrow(hostile, "b")]))
    document = ElementTree.fromstring(text)
    assert not list(document.iter(f"{SVG}script"))
    assert "<script" not in text
