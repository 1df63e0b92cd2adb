"""Plans and programs as text for EXPLAIN, in PostgreSQL's manner, and as JSON values.

Owns the words. Reads algebra and programs and changes nothing; what only the executor knows (which engine, at which
pace, measured rows) is passed in as ``Facts``. A filter prints as an attribute of the operator that it filters.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from msgspec import Struct

from catalog.values.types import INTERVAL
from planner.algebra.nodes import (
    Aggregate,
    Column,
    ColumnRef,
    Delta,
    Filter,
    Fixpoint,
    InZone,
    Join,
    JoinKind,
    Limit,
    Literal,
    Project,
    Relation,
    Scan,
    SetOperation,
    Snapshot,
    Sort,
    Unnest,
    Values,
    Window,
    With,
    Working,
)
from planner.algebra.walk import Node, children, inputs, produced_columns, walk
from planner.explain.scalars import Item, deparse
from planner.incremental.programs.program import Borrowed, Path, Program, State, Statement, Static
from planner.incremental.programs.retargeting import renamed
from planner.placement import builds, spread

_JOINS: Final[dict[JoinKind, str]] = {
    "inner": "Join",
    "left": "Left Join",
    "right": "Right Join",
    "full": "Full Join",
    "semi": "Semi Join",
    "anti": "Anti Join",
}
_SCANS: Final = {
    "table": "Scan on",
    "stream": "Stream Scan on",
    "files": "File Scan on",
    "view": "View Scan on",
    "system": "System Scan on",
    "changes": "Changes of",
    "history": "History Scan on",
    "query": "Rest of Query",
}


#: When and where the pipelines run whose time and place no setting changes.
_STATIC: Final = {"When": "once, at the view's creation", "Where": "embedded engine"}
_UPPER: Final = {
    "When": "when the view is read, and something that it reads has changed since the last time",
    "Where": "embedded engine",
}
#: Estimates of a relation's rows.
Rows = Callable[[Relation], float]


class Facts(Struct, frozen=True):
    """What the executor knows of a path: when its statements run, and where, each a short phrase; and the watermark of
    its stream, if it has one."""

    when: str = "in the background, the rest when the view is read"
    where: str = "any engine"
    watermark: str = ""


class _Operator(Struct, frozen=True):
    """One operator in words, and what is printed below it: inputs, then relations nested in expressions."""

    title: str
    attributes: tuple[tuple[str, str], ...]
    below: tuple[Relation, ...]


# -- relations ---------------------------------------------------------------------------------------------------------


def explain_relation(relation: Relation, rows: Rows | None = None) -> list[str]:
    """The plan tree, one line per operator and attribute; with estimated rows where these decided about it."""
    return list(_lines(relation, 0, "", rows))


def _lines(root: Relation, indent: int, arrow: str, rows: Rows | None = None) -> Iterator[str]:
    describe = _Describer(root)
    stack: list[tuple[Relation, int, str]] = [(root, indent, arrow)]
    while stack:
        relation, margin, mark = stack.pop()
        entry = describe.operator(relation)
        estimated = "" if rows is None else f"  (rows={_rounded(rows(relation))})"
        yield f"{' ' * margin}{mark}{entry.title}{estimated}"
        inner = margin + len(mark) + 2
        yield from (f"{' ' * inner}{name}: {text}" for name, text in entry.attributes)
        stack.extend((child, inner, "->  ") for child in reversed(entry.below))


def _rounded(rows: float) -> int:
    """As PostgreSQL shows estimates: whole rows, at least one."""
    return max(1, round(rows))


def relation_json(relation: Relation, rows: Rows | None = None) -> dict[str, Any]:
    """The plan tree as EXPLAIN (FORMAT JSON) nests it."""
    describe = _Describer(relation)
    root: list[dict[str, Any]] = []
    stack: list[tuple[Relation, list[dict[str, Any]]]] = [(relation, root)]
    while stack:
        item, siblings = stack.pop()
        entry = describe.operator(item)
        value: dict[str, Any] = {"Node Type": entry.title, **dict(entry.attributes)}
        if rows is not None:
            value["Plan Rows"] = _rounded(rows(item))
        siblings.append(value)
        if entry.below:
            value["Plans"] = []
            stack.extend((child, value["Plans"]) for child in reversed(entry.below))
    return root[0]


def _nested(node: Relation) -> list[Relation]:
    """Relations nested in an operator's expressions."""
    below = inputs(node)
    found: list[Relation] = []
    scalars = [child for child in children(node) if not any(child is item for item in below)]
    while scalars:
        for child in children(scalars.pop()):
            if isinstance(child, Relation):
                found.append(child)
            else:
                scalars.append(child)
    return found


class _Describer:
    """Operators in words; columns that share a name with another carry their relation's name before it."""

    def __init__(self, root: Relation) -> None:
        produced = produced_columns(root)
        uses = Counter(column.name for column in produced)
        self._names: dict[Column, str] = {}
        for node in reversed(list(walk(root))):
            self._names.update((column, name) for column, name in self._origins(node) if uses[column.name] > 1)

    def _origins(self, node: Node) -> Iterator[tuple[Column, str]]:
        """Columns of a leaf with its name, and those that pass one on with the name that it has there."""
        match node:
            case Scan() | Delta():
                yield from ((column, f"{node.name}.{column.name}") for column in node.columns)
            case Snapshot():
                yield from ((column, f"{node.trace}.{column.name}") for column in node.columns)
            case Project(outputs=pairs) | Aggregate(keys=pairs):
                for column, value in pairs:
                    if isinstance(value, ColumnRef) and value.column.name == column.name:
                        yield column, self._names.get(value.column, column.name)
            case _:
                pass

    def operator(self, relation: Relation) -> _Operator:
        """The operator below any filters, with the filters as its attribute."""
        predicates: list[str] = []
        nested: list[Relation] = []
        while isinstance(relation, Filter):
            predicates.insert(0, self._text(relation.predicate))
            nested = _nested(relation) + nested
            relation = relation.input
        title, attributes = self._words(relation)
        filters = (("Filter", " AND ".join(predicates)),) if predicates else ()
        below = (*inputs(relation), *_nested(relation), *nested)
        return _Operator(title, (*attributes, *filters), below)

    def _words(self, node: Relation) -> tuple[str, tuple[tuple[str, str], ...]]:
        """The title and attributes of an operator."""
        match node:
            case Scan():
                return (f"{_SCANS[node.kind]} {node.name}{_columns(node)}", ())
            case Snapshot():
                return (f"Snapshot of {node.trace}{_columns(node)}", ())
            case Delta():
                return (f"Delta of {node.name}{_columns(node)}", ())
            case Values():
                return ("Result" if not node.columns else f"Values ({len(node.rows)} rows)", ())
            case Project():
                return ("Project", (("Output", self._named(node.outputs)),))
            case Join():
                cross = node.kind == "inner" and node.predicate is None
                condition = () if node.predicate is None else (("Join Cond", self._text(node.predicate)),)
                return ("Cross Join" if cross else _JOINS[node.kind], condition)
            case Aggregate():
                keys = (("Group Key", self._named(node.keys)),) if node.keys else ()
                calls = (("Aggregates", self._named(node.aggregates)),) if node.aggregates else ()
                return ("Group" if node.keys else "Aggregate", (*keys, *calls))
            case Window():
                return ("Window", (("Calls", self._named(node.calls)),))
            case Unnest():
                number = (("Ordinality", node.ordinality.name),) if node.ordinality is not None else ()
                return ("Unnest", (("Items", self._named(node.items)), *number))
            case Sort():
                return ("Sort", (("Sort Key", ", ".join(map(self._text, node.keys))),))
            case Limit():
                parts = (("Count", node.count), ("Offset", node.offset))
                return ("Limit", tuple((name, self._text(part)) for name, part in parts if part is not None))
            case Fixpoint():
                return (f"Recursive Union{' All' if node.all else ''} {node.name}", ())
            case Working():
                return (f"Working Rows of {node.name}", ())
            case SetOperation():
                return (f"{node.kind.title()}{' All' if node.all else ''}", ())
            case InZone():
                return ("Time Zone", (("Name", node.zone),))
            case With():
                return ("With", (("Once", ", ".join(name for name, _ in node.definitions)),))
            case Filter():
                raise AssertionError("filters are attributes")

    def _text(self, item: Item) -> str:
        return deparse(item, self._names)

    def _named(self, items: tuple[tuple[Column, Any], ...]) -> str:
        """Expressions with the names of their columns, where these are other."""
        return ", ".join(self._as(column, item) for column, item in items)

    def _as(self, column: Column, item: Item) -> str:
        text = self._text(item)
        same = isinstance(item, ColumnRef) and item.column.name == column.name
        return text if same else f"{text} AS {column.name}"


def _columns(leaf: Scan | Snapshot | Delta) -> str:
    """The columns that are read."""
    return f" ({', '.join(column.name for column in leaf.columns)})"


# -- programs ----------------------------------------------------------------------------------------------------------


def explain_program(program: Program, facts: Mapping[int, Facts] | None = None) -> list[str]:
    """The static, stream and upper pipelines of a continuous view; ``facts`` by the path's id."""
    program, traces = _readable(program)
    lines: list[str] = []
    for static in program.statics:
        lines += [f"Static Pipeline {static.name}", f"  Trace: {traces[static.name]}"]
        lines += [f"  {name}: {text}" for name, text in _STATIC.items()]
        lines += _lines(static.relation, 2, "->  ")
    for path in program.paths:
        lines += _path_lines(program, traces, path, (facts or {}).get(path.id, Facts()))
    lines += ["Upper Pipeline", *(f"  {name}: {text}" for name, text in _UPPER.items())]
    if program.point_key:
        lines.append(f"  Point Key: {', '.join(column.name for column in program.point_key)}")
    lines += _lines(program.final, 2, "->  ")
    return lines


def _readable(program: Program) -> tuple[Program, dict[str, str]]:
    """The program whose traces are called by their places, and the traces' names by these."""
    kinds: dict[str, tuple[State | Static | Borrowed, ...]]
    kinds = {"static": program.statics, "state": program.states, "table": program.borrowed}
    traces = {f"{kind}_{place}": item.name for kind, items in kinds.items() for place, item in enumerate(items, 1)}
    return renamed(program, {name: shown for shown, name in traces.items()}), traces


def _path_lines(program: Program, traces: Mapping[str, str], path: Path, facts: Facts) -> Iterator[str]:
    states = {state.name: state for state in program.states}
    yield f"Stream Pipeline of {_input_names(path)}"
    yield f"  When: {facts.when}"
    yield f"  Where: {facts.where}"
    if facts.watermark:
        yield f"  Watermark: latest {facts.watermark}"
    for statement in path.statements:
        state = states[statement.target]
        yield f"  State {state.name}"
        yield f"    Trace: {traces[state.name]}"
        attributes = (*_state_attributes(state, statement), *_kept(program, state))
        yield from (f"    {name}: {text}" for name, text in attributes)
        yield from _lines(statement.relation, 4, "->  ")


def _state_attributes(state: State, statement: Statement) -> Iterator[tuple[str, str]]:
    yield "Kind", state.kind
    if state.key:
        yield "Key", ", ".join(column.name for column in state.key)
    others = [column.name for column in state.columns if column not in state.key]
    merges = {column: call.function for column, call in state.merge}
    if merges:
        yield "Columns", ", ".join(f"{column.name} ({merges[column]})" for column in state.columns if column in merges)
    elif others:
        yield "Columns", ", ".join(others)
    yield "How", _how(state, statement)
    yield "Spread", spread(state)


def _kept(program: Program, state: State) -> Iterator[tuple[str, str]]:
    """For how long a state keeps its rows."""
    for expiry in program.expiries:
        if expiry.state == state.name:
            age = Literal((0, 0, expiry.age), INTERVAL)
            if expiry.by_clock:
                yield "Kept", f"until the time is {deparse(age)} after {expiry.column.name}"
                continue
            name = expiry.column.name if expiry.gap is None else f"the last {expiry.column.name} of its session"
            yield "Kept", f"until {expiry.latest.name} of {expiry.watermark} is {deparse(age)} after {name}"


def _how(state: State, statement: Statement) -> str:
    """The incremental method of a statement, in words."""
    joined = builds(statement)
    delta = f"delta propagation, probing {', '.join(joined)}" if joined else "delta propagation"
    if any(isinstance(item, Window) for item in walk(statement.relation)):
        delta += ", without rows that come too late"
    match state.kind:
        case "aggregate":
            return f"{delta}, partial aggregation"
        case "distinct":
            return f"{delta}, distinct values"
        case "concatenate" if statement.method == "collect":
            return f"{delta}, rows collected"
        case "concatenate":
            return f"{delta}, values in order of arrival"


def _input_names(path: Path) -> str:
    nodes = (node for statement in path.statements for node in walk(statement.relation))
    names = {node.oid: node.name for node in nodes if isinstance(node, Delta)}
    return ", ".join(names[oid] for oid in path.inputs)


def program_json(program: Program, facts: Mapping[int, Facts] | None = None) -> dict[str, Any]:
    """What ``explain_program`` tells, as a JSON value."""
    program, traces = _readable(program)
    states = {state.name: state for state in program.states}

    def statement(item: Statement) -> dict[str, Any]:
        state = states[item.target]
        attributes = dict((*_state_attributes(state, item), *_kept(program, state)))
        return {"State": item.target, "Trace": traces[item.target], **attributes, "Plan": relation_json(item.relation)}

    def static(item: Static) -> dict[str, Any]:
        return {"Name": item.name, "Trace": traces[item.name], **_STATIC, "Plan": relation_json(item.relation)}

    def path(item: Path) -> dict[str, Any]:
        known = (facts or {}).get(item.id, Facts())
        return {
            "Stream": _input_names(item),
            "When": known.when,
            "Where": known.where,
            **({"Watermark": f"latest {known.watermark}"} if known.watermark else {}),
            "Statements": [statement(part) for part in item.statements],
        }

    keys = [column.name for column in program.point_key]
    upper = {**_UPPER, "Point Key": keys, "Plan": relation_json(program.final)}
    return {
        "Static Pipelines": [static(item) for item in program.statics],
        "Stream Pipelines": [path(item) for item in program.paths],
        "Upper Pipeline": upper,
    }
