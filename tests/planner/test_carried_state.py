"""How a query leaves its server: with its state, with less state that is computed again, or one pipeline later."""

from __future__ import annotations

from collections.abc import Mapping

from planner.algebra.nodes import Relation, Scan
from planner.algebra.walk import walk
from planner.separation.carried_state import LEAST, Decision, Forecast, decide
from planner.separation.cuts import select_state
from tests.planner.test_separation import figure_6_2

#: p1 (customers) -> revenue -> p4, and p3 (names) -> result
PLAN = figure_6_2()
MB = 1e6


def decided(
    finished: str,
    sizes: Mapping[str, float],
    seconds: Mapping[str, float],
    available: str = "",
    may_wait: bool = True,
    latency: float = 0.0,
) -> Decision:
    """The decision at 100 MB per second, over tables of 1 MB."""
    forecast = Forecast({}, sizes, seconds, lambda left: MB, 100 * MB, latency)
    names = finished.split()
    kept = {*select_state(PLAN.pipelines, names), *available.split()}
    return decide(PLAN, names, kept, forecast, may_wait)


def outcome(decision: Decision) -> tuple[str, set[str]]:
    return decision.way, set(decision.finished)


LONG = dict.fromkeys(PLAN.names, 10.0)


def test_what_took_long_is_carried() -> None:
    found = decided("p1 revenue", {"revenue": 300 * MB}, LONG)
    assert outcome(found) == ("move", {"p1", "revenue"})
    assert (found.size, round(found.price, 3)) == (301 * MB, 3.01)


def test_an_older_and_smaller_state() -> None:
    sizes = {"p1": MB, "revenue": 900 * MB}
    quick = {**LONG, "revenue": 0.5}
    found = decided("p1 revenue", sizes, quick, "p1")
    assert outcome(found) == ("redo", {"p1"})
    assert (found.size, round(found.price, 3)) == (2 * MB, 0.52)


def test_without_the_older_results_more_is_redone() -> None:
    sizes = {"p1": MB, "revenue": 900 * MB}
    assert outcome(decided("p1 revenue", sizes, {**LONG, "revenue": 0.5})) == ("move", {"p1", "revenue"})
    found = decided("p1 revenue", sizes, {**LONG, "p1": 1.0, "revenue": 0.5})
    assert outcome(found) == ("redo", set())
    assert round(found.price, 3) == 1.51


def test_one_of_several_results_is_redone() -> None:
    sizes = {"revenue": 10 * MB, "p3": 500 * MB}
    found = decided("p1 revenue p3", sizes, {**LONG, "p3": 0.2})
    assert outcome(found) == ("redo", {"p1", "revenue"})


def test_the_next_pipeline_is_waited_for() -> None:
    sizes = {"p1": 500 * MB, "revenue": MB}
    found = decided("p1", sizes, {**LONG, "revenue": 1.0})
    assert outcome(found) == ("wait", {"p1", "revenue"})
    assert round(found.price, 3) == 1.02
    assert decided("p1", sizes, {**LONG, "revenue": 1.0}, may_wait=False).way == "move"


def test_the_end_is_waited_for() -> None:
    names = " ".join(PLAN.names[:-1])
    sizes = {"revenue": 300 * MB}
    found = decided(names, sizes, {**LONG, "result": 0.1})
    assert outcome(found) == ("wait", set(PLAN.names))
    assert (found.size, found.price) == (0.0, 0.1)
    assert decided(names, sizes, LONG).way == "move"


def test_what_ends_sooner_than_it_could_leave_is_left_to_end() -> None:
    """Although leaving after the next pipeline would be expensive."""
    short = dict.fromkeys(PLAN.names, 0.02)
    assert decided("p1", {}, short).way == "move"
    found = decided("p1", {}, short, latency=0.1)
    assert outcome(found) == ("wait", set(PLAN.names))
    assert (found.size, round(found.price, 3)) == (0.0, 0.02 * (len(PLAN.names) - 1))
    assert decided("p1", {}, short, latency=0.1, may_wait=False).way == "move"
    assert decided("p1", {}, LONG, latency=0.1).way == "move"


def test_small_states_leave_at_once() -> None:
    found = decide(PLAN, ("p1",), ("p1",), Forecast({}, {}, {}, lambda left: LEAST * 100, 1000.0))
    assert found.way == "move"


def test_all_is_redone_where_results_come_from_the_same_rows() -> None:
    """Leaving one of them behind saves nothing, since its inputs would be carried instead."""
    names, sizes = ("p1", "revenue", "p3"), {"p1": 30 * MB, "revenue": 30 * MB, "p3": 30 * MB}

    def read(left: Relation) -> float:
        return 40 * MB if any(isinstance(node, Scan) for node in walk(left)) else 0.0

    found = decide(PLAN, names, names, Forecast({}, sizes, {}, read, 100 * MB), may_wait=False)
    assert outcome(found) == ("redo", set())
    assert round(found.price, 3) == 0.4 + 3 * LEAST
