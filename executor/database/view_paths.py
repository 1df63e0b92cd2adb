"""How each part of a continuous view is maintained, and what is computed at each read, with why: of a view that exists,
and of one that CREATE VIEW would make. EXPLAIN and ``millstream.paths`` show it; ``millstream.decisions`` has what was
rejected.

A part is a state, which statements fill as rows arrive or in the background; a node of the dataflow above the states,
whose rows are in memory once they are kept; or the final relation, where it is computed at each read.

Owns where the facts come from, and the rows. ``planner.explain`` has the words; ``system_relations`` has the columns.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final

from msgspec.structs import astuple, replace

from catalog.catalog import Catalog
from catalog.objects import View, qualified
from executor.core.core import Core
from executor.core.statistics import all_statistics_of
from executor.maintained.dataflow_choice import compared_rows, keeps_rows
from executor.maintained.expanded_views import Prospect
from executor.maintained.kept_rows import most_bytes
from executor.maintained.maintained_views import MaintainedViews
from executor.maintained.view_pace import ChosenPaces, chosen_paces, pace_costs, pace_options_of
from executor.views.runtime import ViewRuntime
from planner.algebra.nodes import Delta, Relation, Scan, Snapshot
from planner.algebra.walk import walk
from planner.explain.dataflows import Begin, Expected, NodeFacts, ShownPace, dataflow_json
from planner.explain.plans import Rows
from planner.explain.programs import Known
from planner.explain.views import ShownView
from planner.incremental.cost.dataflow_costs import node_estimates, step_of
from planner.incremental.cost.flow_sizes import FlowSizes, fitting, kept_bytes, source_name
from planner.incremental.cost.pace import CurvePoint, curve_of
from planner.incremental.cost.usual_changes import change_in_words, mix_of, usual_changes
from planner.incremental.cost.work import Work
from planner.incremental.dataflow.graph import Dataflow, Source
from planner.incremental.pace_options import PaceOptions
from planner.incremental.programs.program import Program
from planner.incremental.programs.renaming import with_current_names
from planner.placement import Power, Size, estimate
from planner.rules.joins.cardinality import Cardinality
from planner.statistics import Statistics

_Row = tuple[Any, ...]
#: Of a part that nothing is measured of.
_NOTHING: Final[_Row] = (None,) * 5


def shown_view(core: Core, maintained: MaintainedViews, runtime: ViewRuntime, chooses: bool = False) -> ShownView:
    """A view that exists; with ``chooses``, the dataflow of rows that are not kept is the one that would be chosen."""
    with runtime.lock:
        facts = maintained.facts(runtime, chooses)
    rows = {name: sum(table.num_rows for table in state.tables) for name, state in runtime.states.items()}
    known = Known({}, rows, estimates(core, core.catalog), dict(runtime.runner.work))
    begin = Begin.FILLED if facts.is_filling else Begin.FITTING if facts.is_too_large else _begin(runtime.view)
    options = pace_options_of(runtime.view)
    pace = None if facts.pace is None or options == PaceOptions() else _shown_pace(options, facts.pace)
    nodes = NodeFacts(
        facts.counts,
        begin,
        facts.work,
        alternatives=facts.alternatives,
        pace=pace,
        shared_with=facts.shared_with,
    )
    name, program = qualified(runtime.view), _with_current_names(runtime.program, runtime.view)
    return ShownView(name, program, facts.planned, known, (), nodes, facts.measured, facts.engines)


def _with_current_names(program: Program, view: View) -> Program:
    """The program over tables whose columns are called as they are now."""
    statics = tuple(replace(item, relation=with_current_names(item.relation, view.moved)) for item in program.statics)
    return replace(program, statics=statics, final=with_current_names(program.final, view.moved))


def prospective_view(core: Core, catalog: Catalog, view: View, program: Program) -> ShownView:
    """A view that CREATE VIEW would make."""
    known = Known({}, None, estimates(core, catalog))
    planned, found = compared_rows(core, Prospect(view, program))
    return ShownView(qualified(view), program, planned, known, nodes=NodeFacts(begin=_begin(view), alternatives=found))


def with_expected(
    core: Core, maintained: MaintainedViews, view: ShownView, options: PaceOptions, has_pace: bool
) -> ShownView:
    """The view beside what following a change is expected to take, with rows that are looked up if others would not
    fit into memory, with the paces that its ``options`` ask for, and with the curve of others if it ``has_pace``."""
    flow, nodes = view.planned.dataflow, view.nodes
    if flow is None:
        return view
    statistics = maintained.statistics(flow)
    if nodes.kept is not None:
        memory = kept_bytes(flow, statistics, {})
    else:
        flow, memory = fitting(flow, statistics, most_bytes(core))
        view = replace(view, planned=replace(view.planned, dataflow=flow))
    changed = usual_changes(flow, statistics, nodes.work)
    sizes = FlowSizes(flow, statistics, nodes.kept or {})
    steps = {node: step_of(item) for node, item in node_estimates(sizes, changed, nodes.work).items()}
    computed, curve, pace = _computed_anew(flow, statistics), tuple[CurvePoint, ...](), nodes.pace
    is_asked = pace is None and options != PaceOptions()
    if has_pace or is_asked:
        costs = pace_costs(options, sizes, mix_of(flow, nodes.work), nodes.work)
        curve = curve_of(costs) if has_pace else ()
        # Of rows that are kept, the next step chooses paces by what has been measured alone.
        is_estimated = view.measured.computed is None and nodes.kept is None
        measured = computed if is_estimated else view.measured.computed
        pace = _shown_pace(options, chosen_paces(options, 0.0, costs, measured)) if is_asked else pace
    expected = Expected(change_in_words(flow, changed), steps, computed, memory, curve)
    return replace(view, nodes=replace(nodes, expected=expected, pace=pace))


def _shown_pace(options: PaceOptions, chosen: ChosenPaces) -> ShownPace:
    """Paces as EXPLAIN shows them."""
    paces, trigger = chosen.paces, options.trigger
    steps = {} if trigger is not None and trigger.on_read else paces.steps
    words = trigger.words if trigger is not None and trigger.is_timed else ""
    return ShownPace(chosen.goal.called, words, paces.final, paces.of_thousand, chosen.are_met, steps)


def _computed_anew(flow: Dataflow, statistics: Statistics) -> float:
    """The milliseconds of a core in which the embedded engine computes all rows of a view's dataflow."""
    rows = (statistics.get(source_name(node)) for node in flow.nodes if isinstance(node, Source))
    sizes = [Size(0 if known is None else round(known.rows), 0) for known in rows]
    last = (node.definition for node in flow.nodes if node.id in flow.outputs)
    return 1000 * sum(estimate(definition, sizes, Power(1), Power(1)).embedded for definition in last)


def _begin(view: View) -> Begin:
    return Begin.FIRST_READ if keeps_rows(view) else Begin.WORTH


def estimates(core: Core, catalog: Catalog) -> Callable[[Relation], Rows | None]:
    """Estimated rows of relations over tables alone, of which there are statistics."""

    def found(relation: Relation) -> Rows | None:
        scans = [node for node in walk(relation) if isinstance(node, Scan)]
        if not scans or any(scan.kind != "table" for scan in scans) or _reads_traces(relation):
            return None
        statistics = all_statistics_of(relation, catalog, core.tables, {})
        return Cardinality(relation, statistics).rows if all(scan.oid in statistics for scan in scans) else None

    return found


def _reads_traces(relation: Relation) -> bool:
    return any(isinstance(node, Snapshot | Delta) for node in walk(relation))


def path_rows(core: Core, maintained: MaintainedViews) -> list[_Row]:
    """Rows of view, part, method, what it reads, how many rows are kept, the reason for a recomputation, and what the
    changes that have reached the part have taken: how many, rows read, inserted, deleted, and milliseconds."""
    found: list[_Row] = []
    for runtime in core.runtimes():
        view = shown_view(core, maintained, runtime)
        found += [(qualified(runtime.view), *row) for row in (*_states(view), *_above(view))]
    return found


def decision_rows(core: Core, maintained: MaintainedViews) -> list[_Row]:
    """Rows of when, view, what was chosen, what was rejected, the reason, and the milliseconds that were estimated for
    either, and measured since."""
    views = {runtime.view.oid: qualified(runtime.view) for runtime in core.runtimes()}
    found = (item for item in maintained.decisions.all() if item.view in views)
    return [(item.decided_at, views[item.view], *astuple(item)[1:7]) for item in found]


def _states(view: ShownView) -> Iterator[_Row]:
    for path in view.program.paths:
        methods = {statement.target: statement.method for statement in path.statements}
        for target, method in methods.items():
            own = (item.relation for item in path.statements if item.target == target)
            names = {node.name for relation in own for node in walk(relation) if isinstance(node, Delta)}
            rows = None if view.known.rows is None else view.known.rows[target]
            work = view.known.work.get((path.id, target))
            yield target, method, ", ".join(sorted(names)), rows, None, *_measured(work)


def _measured(work: Work | None) -> _Row:
    return _NOTHING if work is None else (work.changes, *astuple(work.total))


def _above(view: ShownView) -> Iterator[_Row]:
    """What stands above the states."""
    told = dataflow_json(view.planned, view.nodes)
    for node in told.get("Nodes", ()):
        work = view.nodes.work.get(node["Node"])
        yield f"node {node['Node']}", node["How"], node.get("Reads"), node.get("Rows Kept"), None, *_measured(work)
    reasons = told.get("Computed at Each Read", ())
    for reason in reasons:
        yield "final relation", "recomputation", None, None, reason, *_NOTHING
    if not reasons and "Nodes" not in told:
        reason = "it reads what it shows, so that keeping it costs as much"
        yield "final relation", "recomputation", None, None, reason, *_NOTHING
