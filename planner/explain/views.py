"""A continuous view as EXPLAIN shows it, whether it exists or CREATE VIEW would make it: its program, and how what
stands above its states is maintained.

Owns the order of the parts. Where the facts come from is the executor's to know.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from msgspec import Struct

from planner.explain.dataflows import PLAN_ALONE, NodeFacts, dataflow_json, explain_dataflow
from planner.explain.programs import Known, explain_program, program_json
from planner.incremental.dataflow.planning import Planned
from planner.incremental.programs.program import Program

#: What is told of paces: how many changed rows nodes wait for at least and at most, how long a read takes at most that
#: comes before the next step, what all steps take, and what they would with one pace for all nodes.
_PACE: Final = (
    "Final Work (ms)",
    "Total Work for 1,000 Rows (ms)",
    "Total Work with One Pace (ms)",
    "Rows at a Time, Least",
    "Rows at a Time, Most",
)


class Measured(Struct, frozen=True):
    """What the last reads have taken, in milliseconds (running means): computing all rows anew, and following what had
    changed. None where there has been none."""

    computed: float | None = None
    followed: float | None = None


class ShownView(Struct, frozen=True):
    """A continuous view. ``attributes`` are what is said first, such as options; ``nodes`` is what is known of the rows
    of its dataflow, ``engines``: how many of the queries that made them in the background each engine has computed."""

    name: str
    program: Program
    planned: Planned
    known: Known
    attributes: tuple[tuple[str, str], ...] = ()
    nodes: NodeFacts = PLAN_ALONE
    measured: Measured = Measured()
    engines: Mapping[str, int] = {}


def explain_view(view: ShownView) -> list[str]:
    """The view in lines."""
    return [
        f"Continuous View {view.name}",
        *(f"  {name}: {text}" for name, text in view.attributes),
        *(f"  {line}" for line in explain_program(view.program, view.known)),
        *(f"    {line}" for line in explain_dataflow(view.planned, view.nodes)),
        *(f"    {name}: {value}" for name, value in _measures(view)),
        *(f"    {line}" for line in _pace_lines(view)),
    ]


def view_json(view: ShownView) -> dict[str, Any]:
    """What ``explain_view`` tells, as a JSON value."""
    paces = [dict(zip(_PACE, item, strict=True)) for item in _paces(view)]
    upper = {**dataflow_json(view.planned, view.nodes), **dict(_measures(view)), **({"Pace": paces} if paces else {})}
    return {**dict(view.attributes), **program_json(view.program, view.known), "Upper Method": upper}


def _paces(view: ShownView) -> list[tuple[float, float, float, int, int]]:
    """The curve of a view's paces, in the order of ``_PACE``, each point once."""
    curve = () if view.nodes.expected is None else view.nodes.expected.paces
    found = dict[tuple[float, float], tuple[float, float, float, int, int]]()
    for point in curve:
        steps, own = point.paces.steps.values(), point.paces
        final, total, uniform = (round(work, 3) for work in (own.final, own.of_thousand, point.uniform.of_thousand))
        rows = min(steps, default=own.horizon), max(steps, default=own.horizon)
        found.setdefault((final, total), (final, total, uniform, *rows))
    return list(found.values())


def _pace_lines(view: ShownView) -> Iterator[str]:
    """The curve as a table."""
    found = _paces(view)
    if found:
        yield f"Pace: {', '.join(_PACE[:3])}, Rows at a Time"
    for *works, least, most in found:
        rows = f"{least:,}" if least == most else f"{least:,} to {most:,}"
        yield f"  {' '.join(f'{work:>12,.3f}' for work in works)}  {rows}"


def _measures(view: ShownView) -> Iterator[tuple[str, float | str]]:
    measured, expected = view.measured, view.nodes.expected
    if view.nodes.kept is not None and view.engines:
        made_by = (
            f"{engine} ({count} {'query' if count == 1 else 'queries'})" for engine, count in view.engines.items()
        )
        yield "Rows Made By", ", ".join(made_by)
    if expected is not None:
        yield "Estimated Memory (kB)", round(expected.memory / 1024)
        yield "Estimated Time of Computing Anew (ms)", round(expected.computed, 3)
        yield (
            "Estimated Time of Following a Change (ms)",
            round(sum(step.milliseconds for step in expected.nodes.values()), 3),
        )
    if measured.computed is not None:
        yield "Time of Computing Anew (ms)", round(measured.computed, 3)
    if measured.followed is not None:
        yield "Time of Following a Change (ms)", round(measured.followed, 3)
