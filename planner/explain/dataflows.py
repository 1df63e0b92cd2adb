"""A dataflow in words, for EXPLAIN: how each operator above a view's states follows the changes of its inputs, and what
is computed anew at each read.

Owns the words. What is known of a node's rows is the executor's to tell (``NodeFacts``).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from enum import Enum
from typing import Any, Final

from msgspec import Struct

from planner.algebra.nodes import Aggregate, Filter, Join, Project, Relation, Scan, SetOperation, Sort, Unnest, Window
from planner.algebra.walk import walk
from planner.incremental.cost.choice import Alternative
from planner.incremental.cost.pace import CurvePoint
from planner.incremental.cost.work import Step, Work
from planner.incremental.dataflow.graph import (
    Constant,
    Dataflow,
    DataflowNode,
    FirstOfPartitions,
    FirstRows,
    OrderedWindow,
    Propagated,
    Ranked,
    Recomputed,
    Recursive,
    Retracted,
    Shared,
    Source,
    TimeBounded,
)
from planner.incremental.dataflow.planning import Planned
from planner.incremental.names import stored_name
from planner.incremental.sharing.join_parts import is_part

#: What is shown of a dataflow, in this order.
_FIRST: Final = ("Followed", "Shared With", "Trigger", "Goal", "Estimated For")
#: What is shown of a node beside how it follows changes.
_SHOWN: Final = ("Reads", "Key", "Rows Kept", "Rows Looked Up", "Goes On", "Estimated Change", "Last Change")
_FOLLOWED: Final = (
    "soon after changes while the view is read, with pauses that double until the next read; the rest then"
)
#: Of one whose nodes have paces.
_STEPS: Final = "by each node once so many rows have changed; the rest when the view is read"
#: Of a dataflow that looks rows of tables up, which readers see.
_AT_READS: Final = "when the view is read"
#: The dataflows that were compared.
_ALTERNATIVES: Final = "Alternatives"
_LEFT_OUT: Final = "Left Out"
#: What has a line for each item, in this order.
_LISTS: Final = (_LEFT_OUT, "Computed at Each Read")


class Begin(Enum):
    """When rows begin to be kept that are not yet."""

    FIRST_READ = "from the first read on"
    WORTH = "once reads take long enough (recomputation until then)"
    FILLED = "once they have been made in the background (recomputation until then)"
    FITTING = "once they fit into half of trace_memory (recomputation until then)"


class Expected(Struct, frozen=True):
    """What following a change is expected to take: of which ``change`` that is said, what each node has to do, the
    milliseconds of computing all rows anew, the bytes of the rows that are kept, and, where that was asked for, what
    other paces would take."""

    change: str
    nodes: Mapping[int, Step]
    computed: float
    memory: float
    paces: tuple[CurvePoint, ...] = ()


class ShownPace(Struct, frozen=True):
    """When nodes go on: for which ``goal``, in words, or ``trigger``, with the milliseconds that a read is expected to
    find left at most, those of the total work of 1,000 changed rows, whether that meets the goal, and by node the
    ``steps``, none where reads alone follow changes."""

    goal: str
    trigger: str
    final: float
    total: float
    is_met: bool
    steps: Mapping[int, int]


class NodeFacts(Struct, frozen=True):
    """What is known of the rows of a dataflow. ``kept`` has how many are in memory, by node, None where none are;
    ``begin`` says when they will be, ``work`` what changes have taken at nodes, and ``alternatives`` which dataflows
    were compared, the chosen one first; ``shared_with`` are other views that read the part that it reads."""

    kept: Mapping[int, int] | None = None
    begin: Begin = Begin.WORTH
    work: Mapping[int, Work] = {}
    expected: Expected | None = None
    alternatives: tuple[Alternative, ...] = ()
    pace: ShownPace | None = None
    shared_with: tuple[str, ...] = ()


#: Of a dataflow of which nothing is known but its plan.
PLAN_ALONE: Final = NodeFacts()


def explain_dataflow(planned: Planned, facts: NodeFacts = PLAN_ALONE) -> list[str]:
    """A line for each node, and one for each reason why something is computed anew at each read."""
    found = _told(planned, facts)
    lines = [f"Method: {found['Method']}"]
    lines += [f"{name}: {found[name]}" for name in _FIRST if name in found]
    lines += [_alternative(item) for item in found.get(_ALTERNATIVES, ())]
    for node in found.get("Nodes", ()):
        lines.append(f"  {node['Node']}: {node['How']}")
        lines += [f"       {name}: {node[name]}" for name in _SHOWN if name in node]
    return lines + [f"{name}: {reason}" for name in _LISTS for reason in found.get(name, ())]


def dataflow_json(planned: Planned, facts: NodeFacts = PLAN_ALONE) -> dict[str, Any]:
    """What ``explain_dataflow`` tells, as a JSON value."""
    found = _told(planned, facts)
    nodes = {"Nodes": [{name: _json(value) for name, value in node.items()} for node in found.get("Nodes", ())]}
    return found | nodes if "Nodes" in found else found


def _json(value: Any) -> Any:
    if not isinstance(value, Step):
        return value
    rows = {"Rows Read": value.read, "Inserted": value.inserted, "Deleted": value.deleted}
    return {name: round(number, 3) for name, number in {**rows, "Milliseconds": value.milliseconds}.items()}


def _told(planned: Planned, facts: NodeFacts) -> dict[str, Any]:
    """What is told of a dataflow, by the words that it has; what a change takes at a node as a ``Step``."""
    flow = planned.dataflow
    told = (() if flow is None else planned.left_out, planned.reasons)
    reasons = {name: list(items) for name, items in zip(_LISTS, told, strict=True) if items}
    if flow is None:
        return {"Method": "recomputation", **reasons}
    kept, expected = facts.kept or {}, facts.expected
    shown = [_compared(item, place == 0) for place, item in enumerate(facts.alternatives)]
    chosen = {_ALTERNATIVES: shown} if shown[1:] else {}
    method = "by changes" if facts.kept is not None else f"by changes, {facts.begin.value}"
    followed = _followed(flow, facts.pace) if facts.kept is not None or facts.pace is not None else {}
    estimated = {} if expected is None else {"Estimated For": expected.change}
    keys = {**flow.kept, **flow.looked_up}
    nodes = [_node(node, keys.get(_holder(node), ()), kept.get(_holder(node))) for node in flow.nodes]
    for node in nodes:
        if node["Node"] in flow.looked_up:
            node["Rows Looked Up"] = "in the table, by the key of rows that change"
        if facts.pace is not None and node["Node"] in facts.pace.steps:
            step = facts.pace.steps[node["Node"]]
            node["Goes On"] = "with each changed row" if step == 1 else f"after {step:,} changed rows"
        found = {"Estimated Change": None if expected is None else expected.nodes.get(node["Node"])}
        found["Last Change"] = facts.work[node["Node"]].last if node["Node"] in facts.work else None
        node |= {name: step for name, step in found.items() if step is not None}
    followed |= {"Shared With": ", ".join(facts.shared_with)} if facts.shared_with else {}
    return {"Method": method, **followed, **estimated, **chosen, "Nodes": nodes, **reasons}


def _followed(flow: Dataflow, pace: ShownPace | None) -> dict[str, str]:
    """When changes are followed, and for which goal."""
    if flow.looked_up or pace is None:
        return {"Followed": _AT_READS if flow.looked_up else _FOLLOWED}
    if not pace.steps:
        return {"Followed": _AT_READS}
    trigger = {"Trigger": f"all nodes go on {pace.trigger}"} if pace.trigger else {}
    if not pace.goal:
        return {"Followed": _STEPS, **trigger}
    missed = "" if pace.is_met else ", which does not meet the goal"
    work = f"reads find at most {pace.final:,.3f} ms left, 1,000 changed rows take {pace.total:,.3f} ms in all{missed}"
    return {"Followed": _STEPS, **trigger, "Goal": f"{pace.goal}: {work}"}


def _compared(item: Alternative, is_chosen: bool) -> dict[str, Any]:
    """An alternative as EXPLAIN shows it."""
    return {
        "Rewriting": item.rewriting.name,
        "Chosen": is_chosen,
        "Estimated Time of Following a Change (ms)": round(item.milliseconds, 3),
        "Estimated Memory (kB)": round(item.memory / 1024),
        "Computed at Each Read": len(item.planned.reasons),
    }


def _alternative(item: Mapping[str, Any]) -> str:
    """A line for an alternative."""
    name, is_chosen, milliseconds, memory, reasons = item.values()
    parts = "" if not reasons else f", {reasons} part{'s' * (reasons > 1)} computed at each read"
    return f"{'Chosen' if is_chosen else 'Rejected'}: {name}, {milliseconds:,.3f} ms for a change, {memory:,} kB{parts}"


def _holder(node: DataflowNode) -> int:
    """The node that keeps a node's rows."""
    return node.ranked.id if isinstance(node, Recursive) else node.id


def _node(node: DataflowNode, keys: tuple[tuple[str, ...], ...], rows: int | None) -> dict[str, Any]:
    found: dict[str, Any] = {"Node": node.id, "How": how_of(node)}
    inputs = [str(below) for below in getattr(node, "inputs", ())]
    if inputs:
        found["Reads"] = ", ".join(inputs)
    columns = node.ranked.columns if isinstance(node, Recursive) else node.columns
    names = {stored_name(column): column.name for column in columns}
    shown = [", ".join(names.get(name, name) for name in key) for key in keys]
    if shown:
        found["Key"] = "; ".join(shown)
    if rows is not None:
        found["Rows Kept"] = rows
    return found


def how_of(node: DataflowNode) -> str:
    """How a node follows changes, in words."""
    match node:
        case Source(definition=Scan() as part) if is_part(part):
            return f"changes of {part.name}"
        case Source(definition=leaf):
            return f"changes of {leaf.kind} {leaf.name}" if isinstance(leaf, Scan) else f"changes of state {leaf.trace}"
        case Constant():
            return "constant rows"
        case Propagated():
            return f"delta propagation through {', '.join(dict.fromkeys(_operators(node.terms[0].relation)))}"
        case Retracted():
            rows = "grouping, from which rows are taken back"
            return f"higher-order view: {rows}, below joins with small relations" if node.is_auxiliary else rows
        case Shared():
            return f"the rows of {node.node}"
        case TimeBounded():
            return "the rows on the right side of now(), which come and go as time passes"
        case FirstRows():
            first = "first row" if node.last == 1 else f"first {node.last:,} rows"
            return f"the {first}{' in an order' if isinstance(node.ordered, Sort) else ''}, with some to spare"
        case FirstOfPartitions():
            rows = "first row" if node.last == 1 else f"rows up to place {node.last:,}"
            return f"the {rows}{' of each partition' if node.key else ' in an order'}, with some to spare"
        case OrderedWindow():
            return f"window functions, as far as a change reaches: {_reach(node)}"
        case Ranked():
            return "rows of a recursion with their ranks"
        case Recursive():
            steps = [step.terms[0].relation for step in node.step if isinstance(step, Propagated)]
            through = ", ".join(dict.fromkeys(name for step in steps for name in _operators(step)))
            kind = "UNION ALL, by their rounds" if node.all else "UNION, by what they rest on"
            return f"rounds of a recursion over changed rows ({kind}) through {through or 'nothing'}"
        case Recomputed():
            return f"recomputation of touched keys of {_keyed(node.relation)}"


def _reach(node: OrderedWindow) -> str:
    """Which rows around a changed one may get other values."""
    if node.distance is not None:
        return "the rows whose frames have it"
    behind = "all rows behind it" if node.position is not None else _rows(node.preceding, "behind it")
    if node.is_reverse:
        return "all rows before it"
    return " and ".join(part for part in (behind, _rows(node.following, "before it")) if part) or "none but its own"


def _rows(number: int, where: str) -> str:
    return f"{number:,} row{'s' * (number > 1)} {where}" if number else ""


def _operators(relation: Relation) -> Iterator[str]:
    for node in walk(relation):
        match node:
            case Filter():
                yield "filter"
            case Join():
                yield f"{node.kind} join"
            case Unnest():
                yield "unnest"
            case Project():
                yield "projection"
            case _:
                pass


def _keyed(relation: Relation) -> str:
    """The operator that is computed anew."""
    for node in walk(relation):
        match node:
            case Aggregate():
                return "a grouping"
            case Window():
                return "window functions"
            case SetOperation():
                return f"{node.kind}{' all' if node.all else ''}"
            case Join():
                return f"a {node.kind} join"
            case _:
                pass
    return "an operator"
