"""Whether a view that is to be can be expected to meet the goal that its options set for reads."""

from __future__ import annotations

from collections.abc import Iterator

from catalog.objects import View
from catalog.values.errors import WARNING, SqlError
from executor.core.core import Core
from executor.maintained.dataflow_choice import compared_rows
from executor.maintained.expanded_views import Prospect, source_statistics
from executor.maintained.view_pace import chosen_paces, pace_costs, pace_options_of
from planner.algebra.nodes import Scan
from planner.algebra.walk import walk
from planner.incremental.cost.flow_sizes import FlowSizes
from planner.incremental.pace_options import NAMES
from planner.incremental.programs.program import Program


def unmet_goal(core: Core, view: View, program: Program) -> Iterator[SqlError]:
    """A warning of a goal that no pace is expected to meet, or of options without effect; none of a view over one of
    this transaction."""
    options = pace_options_of(view)
    below = (item.oid for item in walk(program.final) if isinstance(item, Scan) and item.kind == "view")
    if not (options.has_goal or options.has_trigger) or any(core.find_view(oid) is None for oid in below):
        return
    planned, _ = compared_rows(core, Prospect(view, program))
    if planned.dataflow is None:
        name = next(name for name, _ in view.options if name in NAMES)
        detail = f"It is computed anew at each read: {'; '.join(planned.reasons)}."
        yield SqlError(WARNING, f'the option {name} has no effect on view "{view.name}"', detail)
        return
    flow = planned.dataflow
    sizes = FlowSizes(flow, source_statistics(core, flow, {}), {})
    chosen = chosen_paces(options, 0.0, pace_costs(options, sizes, {}, {}), None)
    if not chosen.are_met:
        left = f"A read is expected to find {chosen.paces.final:,.3f} ms left to follow."
        hint = "EXPLAIN (PACE) CREATE VIEW shows what can be reached, and at which total work."
        yield SqlError(WARNING, f"the goal {chosen.goal.called} is not expected to be met", left, hint)
