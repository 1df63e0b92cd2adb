"""EXPLAIN's part about pipelines: their estimated inputs and results, and how the query would leave after each."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from executor.core.core import Core
from executor.separation.forecasts import Forecasting
from executor.separation.steps import Steps
from planner.explain.plans import explain_relation, relation_json
from planner.separation.carried_state import Decision, Forecast, decide
from planner.separation.cuts import Pipeline, Pipelined, select_state


def pipelines_text(core: Core, steps: Steps) -> list[str]:
    """All pipelines, with one line for each operator."""
    return [line for item in _boundaries(core, steps) for line in _text(steps, *item)]


def pipelines_json(core: Core, steps: Steps) -> list[dict[str, Any]]:
    """The pipelines as JSON values."""
    return [_document(steps, *item) for item in _boundaries(core, steps)]


def _boundaries(core: Core, steps: Steps) -> Iterator[tuple[Pipeline, Forecast, Decision | None]]:
    """The pipelines, each except the last with how the query would leave after it."""
    plan = steps.plan
    if plan is None:
        return
    forecast = Forecasting(core, plan, steps.efforts, steps.speed).forecast()
    finished: set[str] = set()
    for item in plan.pipelines[:-1]:
        finished.add(item.name)
        yield item, forecast, decide(plan, finished, select_state(plan.pipelines, finished), forecast)
    yield plan.pipelines[-1], forecast, None


def _text(steps: Steps, pipeline: Pipeline, forecast: Forecast, decision: Decision | None) -> Iterator[str]:
    sliced = steps.slices.get(pipeline.name)
    slices = "" if sliced is None else f", in slices of {sliced.rows} rows of {sliced.name}"
    yield f"Pipeline {pipeline.name} ({pipeline.breaker}{slices})"
    name = pipeline.name
    size = "" if decision is None else f", {forecast.sizes[name] / 1e6:.2f} MB"
    yield f"  Estimated: {forecast.rows[name]:.0f} rows{size}, {forecast.time(name):.2f} s"
    if decision is not None and steps.plan is not None:
        yield f"  Leaving After It: {_words(steps.plan, decision)}"
    yield from (f"  {line}" for line in explain_relation(pipeline.relation))


def _words(plan: Pipelined, decision: Decision) -> str:
    if decision.way == "wait" and decision.finished == set(plan.names):
        return f"wait for the end ({decision.price:.2f} s)"
    carried = f"{decision.size / 1e6:.2f} MB, {decision.price:.2f} s"
    names = ", ".join(select_state(plan.pipelines, decision.finished)) or "nothing"
    return f"{decision.way} with {names} ({carried})"


def _document(steps: Steps, pipeline: Pipeline, forecast: Forecast, decision: Decision | None) -> dict[str, Any]:
    name, sliced = pipeline.name, steps.slices.get(pipeline.name)
    found: dict[str, Any] = {"Name": name, "Breaker": pipeline.breaker, "Reads": list(pipeline.reads)}
    found |= {} if sliced is None else {"Sliced": sliced.name, "Rows of a Slice": sliced.rows}
    found |= {"Plan Rows": round(forecast.rows[name]), "Plan Seconds": round(forecast.time(name), 4)}
    if decision is not None and steps.plan is not None:
        state = select_state(steps.plan.pipelines, decision.finished)
        found["Plan Bytes"] = round(forecast.sizes[name])
        found["Leaving"] = {
            "Way": decision.way,
            "State": list(state),
            "Bytes": round(decision.size),
            "Seconds": round(decision.price, 4),
        }
    return {**found, "Plan": relation_json(pipeline.relation)}
