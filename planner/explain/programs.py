"""Programs of continuous views as text for EXPLAIN, and as JSON values.

Owns the words of pipelines and states. Reads programs and changes nothing; what only the executor knows (which engine,
at which pace, kept rows, estimates) is passed in as ``Known``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any, Final

from msgspec import Struct, field

from catalog.values.types import INTERVAL
from planner.algebra.nodes import Delta, Literal, Relation, Window
from planner.algebra.walk import walk
from planner.explain.plans import Rows, relation_json, tree_lines
from planner.explain.scalars import deparse
from planner.incremental.cost.work import Work
from planner.incremental.programs.program import Borrowed, Path, Program, State, Statement, Static
from planner.incremental.programs.retargeting import renamed
from planner.placement import builds, spread

#: When and where the pipelines run whose time and place no setting changes.
_STATIC: Final = {"When": "once, at the view's creation", "Where": "embedded engine"}
_ARRIVAL: Final = {
    "When": "as of the commit of each of the stream's rows, once between two changes of its tables",
    "Where": "embedded engine",
}
_UPPER: Final = {
    "When": "when the view is read, and something that it reads has changed since the last time",
    "Where": "embedded engine",
}


class Facts(Struct, frozen=True):
    """What the executor knows of a path: when its statements run, and where, each a short phrase; and the watermark of
    its stream, if it has one."""

    when: str = "in the background, the rest when the view is read"
    where: str = "any engine"
    watermark: str = ""


class Known(Struct, frozen=True):
    """What the executor knows of a program: of its paths, by their ids; how many rows are kept now, by state, None
    where there is none yet; of a relation, the estimates of rows where there are statistics; and what runs have taken,
    by the id of their path and their state."""

    paths: Mapping[int, Facts] = field(default_factory=dict[int, Facts])
    rows: Mapping[str, int] | None = None
    estimates: Callable[[Relation], Rows | None] = lambda relation: None
    work: Mapping[tuple[int, str], Work] = field(default_factory=dict[tuple[int, str], Work])


_NOTHING: Final = Known()


def explain_program(program: Program, known: Known = _NOTHING) -> list[str]:
    """The static, stream and upper pipelines of a continuous view."""
    program, traces = _readable(program)
    lines: list[str] = []
    for static in program.statics:
        lines += [f"Static Pipeline {static.name}", f"  Trace: {traces[static.name]}"]
        lines += [f"  {name}: {text}" for name, text in _moment(static).items()]
        lines += tree_lines(static.relation, 2, "->  ", known.estimates(static.relation))
    for path in program.paths:
        lines += _path_lines(program, traces, path, known)
    lines += ["Upper Pipeline", *(f"  {name}: {text}" for name, text in _UPPER.items())]
    if program.point_key:
        lines.append(f"  Point Key: {', '.join(column.name for column in program.point_key)}")
    lines += tree_lines(program.final, 2, "->  ", known.estimates(program.final))
    return lines


def _moment(static: Static) -> Mapping[str, str]:
    return _ARRIVAL if static.arrival else _STATIC


def _readable(program: Program) -> tuple[Program, dict[str, str]]:
    """The program whose traces are called by their places, and the traces' names by these."""
    kinds: dict[str, tuple[State | Static | Borrowed, ...]]
    kinds = {"static": program.statics, "state": program.states, "table": program.borrowed}
    traces = {f"{kind}_{place}": item.name for kind, items in kinds.items() for place, item in enumerate(items, 1)}
    return renamed(program, {name: shown for shown, name in traces.items()}), traces


def _path_lines(program: Program, traces: Mapping[str, str], path: Path, known: Known) -> Iterator[str]:
    facts = known.paths.get(path.id, Facts())
    states = {state.name: state for state in program.states}
    yield f"Stream Pipeline of {_input_names(path)}"
    yield f"  When: {facts.when}"
    yield f"  Where: {facts.where}"
    if facts.watermark:
        yield f"  Watermark: latest {facts.watermark}"
    for target, own in groupby(path.statements, key=lambda item: item.target):
        state, statements = states[target], tuple(own)
        yield f"  State {state.name}"
        yield f"    Trace: {traces[state.name]}"
        attributes = (*_state_attributes(state, statements), *_kept(program, state))
        attributes += (*_counted(known, traces[state.name]), *_last_run(known, path, traces[state.name]))
        yield from (f"    {name}: {text}" for name, text in attributes)
        for statement in statements:
            yield from tree_lines(statement.relation, 4, "->  ")


def _state_attributes(state: State, statements: Sequence[Statement]) -> Iterator[tuple[str, str]]:
    yield "Kind", state.kind
    if state.key:
        yield "Key", ", ".join(column.name for column in state.key)
    others = [column.name for column in state.columns if column not in state.key]
    merges = {column: call.function for column, call in state.merge}
    if merges:
        yield "Columns", ", ".join(f"{column.name} ({merges[column]})" for column in state.columns if column in merges)
    elif others:
        yield "Columns", ", ".join(others)
    yield "How", _how(state, statements[0])
    yield "Spread", spread(state)
    yield "Grows", _growth(state, statements)


def _growth(state: State, statements: Sequence[Statement]) -> str:
    """With what the rows of a state become more."""
    nodes = (node for statement in statements for node in walk(statement.relation))
    stream = ", ".join(sorted({node.name for node in nodes if isinstance(node, Delta)}))
    match state.kind:
        case "aggregate":
            return f"with each new group of {stream}" if state.key else "never: it has one row"
        case "distinct":
            return f"with each new value of {stream}"
        case "concatenate":
            return f"with {stream}, by each row that passes its conditions"


def _counted(known: Known, trace: str) -> tuple[tuple[str, str], ...]:
    """How many rows a state has now."""
    return () if known.rows is None or trace not in known.rows else (("Rows", str(known.rows[trace])),)


def _last_run(known: Known, path: Path, trace: str) -> tuple[tuple[str, str], ...]:
    """What the last run of a path has taken."""
    work = known.work.get((path.id, trace))
    return () if work is None else (("Last Run", str(work.last)),)


def _kept(program: Program, state: State) -> Iterator[tuple[str, str]]:
    """For how long a state keeps its rows."""
    for expiry in program.expiries:
        if expiry.state == state.name:
            if expiry.by_clock:
                age = Literal((0, 0, expiry.age), INTERVAL)
                yield "Kept", f"until the time is {deparse(age)} after {expiry.column.name}"
                continue
            name = expiry.column.name if expiry.gap is None else f"the last {expiry.column.name} of its session"
            marks = (
                f"{mark.latest.name} of {mark.watermark} is {deparse(Literal((0, 0, mark.age), INTERVAL))} after {name}"
                for mark in expiry.marks
            )
            yield "Kept", f"until {' and '.join(marks)}"


def _how(state: State, statement: Statement) -> str:
    """The incremental method of a statement, in words."""
    joined = builds(statement)
    delta = f"delta propagation, probing {', '.join(joined)}" if joined else "delta propagation"
    if any(isinstance(item, Window) for item in walk(statement.relation)):
        delta += ", without rows that come too late"
    match state.kind:
        case "aggregate" if statement.method == "late":
            return "delta propagation, count of the rows that come too late"
        case "aggregate":
            return f"{delta}, partial aggregation"
        case "distinct":
            return f"{delta}, distinct values"
        case "concatenate" if statement.method != "split":
            return f"{delta}, rows collected"
        case "concatenate":
            return f"{delta}, values in order of arrival"


def _input_names(path: Path) -> str:
    nodes = (node for statement in path.statements for node in walk(statement.relation))
    names = {node.oid: node.name for node in nodes if isinstance(node, Delta)}
    return ", ".join(names[oid] for oid in path.inputs)


def program_json(program: Program, known: Known = _NOTHING) -> dict[str, Any]:
    """What ``explain_program`` tells, as a JSON value."""
    program, traces = _readable(program)
    states = {state.name: state for state in program.states}

    def statement(item: Statement, path: Path) -> dict[str, Any]:
        state = states[item.target]
        attributes: dict[str, Any] = dict((*_state_attributes(state, (item,)), *_kept(program, state)))
        trace = traces[item.target]
        attributes |= {name: int(text) for name, text in _counted(known, trace)}
        attributes |= dict(_last_run(known, path, trace))
        return {"State": item.target, "Trace": trace, **attributes, "Plan": relation_json(item.relation)}

    def static(item: Static) -> dict[str, Any]:
        plan = relation_json(item.relation, known.estimates(item.relation))
        return {"Name": item.name, "Trace": traces[item.name], **_moment(item), "Plan": plan}

    def path(item: Path) -> dict[str, Any]:
        facts = known.paths.get(item.id, Facts())
        return {
            "Stream": _input_names(item),
            "When": facts.when,
            "Where": facts.where,
            **({"Watermark": f"latest {facts.watermark}"} if facts.watermark else {}),
            "Statements": [statement(part, item) for part in item.statements],
        }

    keys = [column.name for column in program.point_key]
    upper = {**_UPPER, "Point Key": keys, "Plan": relation_json(program.final, known.estimates(program.final))}
    return {
        "Static Pipelines": [static(item) for item in program.statics],
        "Stream Pipelines": [path(item) for item in program.paths],
        "Upper Pipeline": upper,
    }
