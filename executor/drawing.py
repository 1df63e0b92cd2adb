"""Statements that call sequences' functions: the calls are made here, in the order of the rows, by no engine.

Owns: taking a relation apart where it calls. A projection that calls becomes a step: its input with the calls'
arguments, which an engine computes, the calls' results beside them, and the rest of the projection over both::

    Limit(Sort(Project(I, (nextval(s) + a, b))))      Project(Snapshot(step), (c1 + a, b))
                                                       step: Limit(Sort(Project(I, (a, b)))), c1 = nextval(s)

so that a bulk INSERT takes its whole range at once, and order and number are those of the rows that come out (as
PostgreSQL postpones volatile expressions above a sort). Where whether to call depends on the row's values, or a row of
an outer query is read, it is 0A000.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from catalog.errors import SqlError, undefined_table, unsupported
from catalog.names import split_name
from catalog.objects import Catalog, Sequence
from catalog.types import BOOL, INT4
from executor.embedded.connection import NOTHING, Run
from executor.embedded.effects import bound, numbered
from executor.nodes import column_name
from executor.sequences import SessionSequences
from planner.algebra import Limit, Project, Relation, Sort, Values
from planner.expression import (
    Call,
    Case,
    Column,
    ColumnRef,
    Exists,
    InSubquery,
    Literal,
    Scalar,
    ScalarSubquery,
)
from planner.functions import SEQUENCE_FUNCTIONS
from planner.walk import children, descend, produced_columns, transform, used_columns, walk

#: Values, or whether a row has one.
Numbers = npt.NDArray[Any]
_REMEMBERED: Final = 1024
_NOTHING: Final = Literal(0, INT4)
_LAZY: Final = frozenset(("coalesce", "and", "or"))


@dataclass(frozen=True, slots=True)
class Site:
    """One call: where its result goes, its arguments (columns of the step, or constants), and in which rows it is made:
    those where ``selector`` has the number ``place`` (without a selector: all)."""

    column: Column
    function: str
    arguments: tuple[Column | Literal, ...]
    selector: Column | None = None
    place: int = 0


@dataclass(frozen=True, slots=True)
class Step:
    """Rows that an engine computes, and calls to make beside them; bound as the leaf ``name`` of what follows."""

    name: str
    source: Relation
    sites: tuple[Site, ...]


@dataclass(frozen=True, slots=True)
class Drawing:
    """A relation that calls, taken apart: ``relation`` reads the steps' rows."""

    original: Relation
    steps: tuple[Step, ...]
    relation: Relation


class Drawings:
    """Drawings of relations seen before, by identity. Safe for many threads."""

    def __init__(self) -> None:
        self._known: dict[int, tuple[Relation, Drawing | None]] = {}
        self._lock = threading.Lock()

    def get(self, relation: Relation) -> Drawing | None:
        """The relation's drawing; None where it calls no sequence's function."""
        known = self._known.get(id(relation))
        if known is not None and known[0] is relation:
            return known[1]
        found = take_apart(relation) if _calls(relation) else None
        with self._lock:
            if len(self._known) >= _REMEMBERED:
                self._known.clear()
            self._known[id(relation)] = (relation, found)
        return found


def _calls(node: Any) -> list[Call]:
    return [item for item in walk(node) if isinstance(item, Call) and item.function in SEQUENCE_FUNCTIONS]


@dataclass(slots=True)
class _Taking:
    """Steps so far, and new columns."""

    steps: list[Step] = field(default_factory=list)
    ids: Iterator[int] = field(default_factory=lambda: itertools.count(-1_000_000, -1))

    def column(self, like: Scalar) -> Column:
        return Column(next(self.ids), "drawn", like.type)


def take_apart(relation: Relation) -> Drawing:
    """The steps of a relation that calls. Raises 0A000 for calls in other places than a projection or VALUES."""
    taking = _Taking()
    rest = _within(taking, relation)
    for call in _calls(rest):
        raise unsupported(f"{call.function}() in this place", "call it in a select list, VALUES or SET")
    return Drawing(relation, tuple(taking.steps), rest)


def _within(taking: _Taking, relation: Relation) -> Relation:
    found: Relation = descend(relation, lambda node: _change(taking, node))
    return found


def _change(taking: _Taking, node: Any) -> Any:
    """A projection that calls, with what sorts and cuts its rows, as a projection over a step."""
    if isinstance(node, Values) and _calls(node):
        return _values(taking, node)
    above: list[Limit | Sort] = []
    base = node
    while isinstance(base, Limit | Sort):
        above.append(base)
        base = base.input
    if not isinstance(base, Project) or not any(_direct(scalar) for _, scalar in base.outputs):
        return node
    keys = {column for item in above for column in _used_above(item)}
    if any(column in keys and _direct(scalar) for column, scalar in base.outputs):
        return node  # sorted by what is called: the projection itself is reached next
    if used_columns(base) - produced_columns(base):
        raise unsupported("a sequence's function in a correlated subquery", "join the query instead")
    return _project(taking, base, above, keys)


def _used_above(item: Limit | Sort) -> set[Column]:
    scalars = [key.expression for key in item.keys] if isinstance(item, Sort) else [item.count, item.offset]
    return {column for scalar in scalars if scalar is not None for column in used_columns(scalar)}


def _direct(scalar: Scalar) -> list[Call]:
    """Calls of an expression that are not in a subquery of it. Raises 0A000 where they are made for some rows only."""
    found: list[Call] = []
    stack: list[tuple[Any, bool]] = [(scalar, False)]
    while stack:
        node, lazy = stack.pop()
        if isinstance(node, Call) and node.function in SEQUENCE_FUNCTIONS:
            if lazy:
                raise unsupported(f"{node.function}() that depends on a condition", "call it for every row")
            found.append(node)
        lazy = lazy or isinstance(node, Case) or (isinstance(node, Call) and node.function in _LAZY)
        if not isinstance(node, ScalarSubquery | Exists | InSubquery):
            stack += [(child, lazy) for child in reversed(list(children(node)))]
    return found


def _project(taking: _Taking, base: Project, above: list[Limit | Sort], keys: set[Column]) -> Relation:
    """The projection over a new step; the columns ``keys`` are computed below what sorts by them."""
    passed: dict[Column, Scalar] = {}
    outputs: list[tuple[Column, Scalar]] = []
    sites: list[Site] = []
    available = set(base.input.columns)
    for column, scalar in base.outputs:
        if column in keys:
            passed[column] = scalar
            outputs.append((column, ColumnRef(column)))
            continue
        changed = _replaced(taking, scalar, sites, passed)
        passed.update({used: ColumnRef(used) for used in used_columns(changed) & available})
        outputs.append((column, changed))
    passed = passed or {taking.column(_NOTHING): _NOTHING}  # rows must have a column to be counted
    source: Relation = Project(base.input, tuple(passed.items()))
    for item in reversed(above):
        source = replace(item, input=source)
    return _add_step(taking, source, sites, tuple(outputs))


def _replaced(
    taking: _Taking,
    scalar: Scalar,
    sites: list[Site],
    passed: dict[Column, Scalar],
    selector: Column | None = None,
    place: int = 0,
) -> Scalar:
    """An expression with its calls as columns; the sites, and what is to be passed for their arguments, are added."""
    results: dict[int, Column] = {}
    for call in _direct(scalar):
        arguments: list[Column | Literal] = []
        for argument in call.arguments:
            if _calls(argument):
                raise unsupported("a sequence's function of another one's value", "use two statements")
            if isinstance(argument, Literal):
                arguments.append(argument)
            else:
                arguments.append(column := taking.column(argument))
                passed[column] = argument
        results[id(call)] = taking.column(call)
        sites.append(Site(results[id(call)], call.function, tuple(arguments), selector, place))
    changed: Scalar = transform(scalar, lambda node: ColumnRef(results[id(node)]) if id(node) in results else node)
    return changed


def _add_step(
    taking: _Taking, source: Relation, sites: list[Site], outputs: tuple[tuple[Column, Scalar], ...]
) -> Relation:
    source = _within(taking, source)
    leaf = bound((*source.columns, *(site.column for site in sites)), f"__drawn{len(taking.steps)}_")
    taking.steps.append(Step(leaf.trace, source, tuple(sites)))
    return Project(leaf, outputs)


def _values(taking: _Taking, values: Values) -> Relation:
    """VALUES whose cells call: where rows differ in that, a number for each row tells which of a column's it makes."""
    passed: dict[Column, Scalar] = {}
    outputs: list[tuple[Column, Scalar]] = []
    sites: list[Site] = []
    inner: list[tuple[Column, tuple[Scalar, ...]]] = []
    for column, cells in zip(values.columns, zip(*values.rows, strict=True), strict=True):
        calling = list(dict.fromkeys(cell for cell in cells if _calls(cell)))
        if not calling:
            inner.append((column, cells))
            outputs.append((column, ColumnRef(column)))
            continue
        selector = taking.column(_NOTHING)
        numbers = [calling.index(cell) + 1 if cell in calling else 0 for cell in cells]
        inner.append((selector, tuple(Literal(number, INT4) for number in numbers)))
        branches = [
            (_is_number(selector, place), _replaced(taking, cell, sites, passed, selector, place))
            for place, cell in enumerate(calling, 1)
        ]
        if 0 in numbers:
            inner.append((column, tuple(Literal(None, column.type) if cell in calling else cell for cell in cells)))
        otherwise = ColumnRef(column) if 0 in numbers else Literal(None, column.type)
        only = len(branches) == 1 and 0 not in numbers
        outputs.append((column, branches[0][1] if only else Case(tuple(branches), otherwise, column.type)))
    rows = tuple(zip(*(cells for _, cells in inner), strict=True))
    source: Relation = Values(tuple(column for column, _ in inner), rows)
    if passed:
        kept = tuple((column, ColumnRef(column)) for column in source.columns)
        source = Project(source, (*kept, *passed.items()))
    return _add_step(taking, source, sites, tuple(outputs))


def _is_number(selector: Column, place: int) -> Scalar:
    return Call("eq", (ColumnRef(selector), Literal(place, INT4)), BOOL)


# --- making the calls ------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Caller:
    """Who calls: a session, with the sequences as its transaction sees them."""

    drawings: Drawings
    sequences: SessionSequences
    catalog: Catalog
    search_path: tuple[str, ...]
    read_only: bool = False

    def evaluate(self, relation: Relation, run: Run) -> pa.Table:
        """A relation's rows: those of its steps one after the other, and of the rest over them."""
        drawing = self.drawings.get(relation)
        if drawing is None:
            return run(relation, NOTHING)
        found: dict[str, pa.Table] = {}
        for step in drawing.steps:
            found[f"s_{step.name}"] = self._beside(step, run(step.source, found))
        return run(drawing.relation, found)

    def _beside(self, step: Step, rows: pa.Table) -> pa.Table:
        names = tuple(map(column_name, step.source.columns))
        rows = rows.rename_columns(names)
        places = [_places(site, rows) for site in step.sites]
        results = self._ranges(step, places) or self._calls(step, rows, places)
        for site, values in zip(step.sites, results, strict=True):
            rows = rows.append_column(column_name(site.column), values)
        return numbered(rows)

    def _ranges(self, step: Step, places: list[Numbers]) -> list[pa.Array] | None:
        """All calls at once, where each is nextval of one constant sequence; None where order among them matters."""
        constant = all(site.function == "nextval" and _oid(site) is not None for site in step.sites)
        whole = [site.selector is None for site in step.sites]
        if not constant or (len(step.sites) > 1 and not all(whole)):
            return None
        found: list[pa.Array] = [None] * len(step.sites)
        groups: dict[int | None, list[int]] = {}
        for index, site in enumerate(step.sites):
            groups.setdefault(_oid(site), []).append(index)
        for oid, indexes in groups.items():
            total = sum(int(np.count_nonzero(places[index])) for index in indexes)
            values = self._nextval(self._sequence(oid), total)
            for shift, index in enumerate(indexes):
                found[index] = _scattered(values[shift :: len(indexes)], places[index])
        return found

    def _calls(self, step: Step, rows: pa.Table, places: list[Numbers]) -> list[pa.Array]:
        """Row by row, and in a row from left to right."""
        arguments = [[self._column(argument, rows) for argument in site.arguments] for site in step.sites]
        results: list[list[int | None]] = [[] for _ in step.sites]
        for row in range(rows.num_rows):
            for index, site in enumerate(step.sites):
                values = [column[row] for column in arguments[index]]
                made = places[index][row] and None not in values
                results[index].append(self._call(site.function, values) if made else None)
        return [pa.array(values, pa.int64()) for values in results]

    def _column(self, argument: Column | Literal, rows: pa.Table) -> list[object]:
        if isinstance(argument, Literal):
            return [argument.value] * rows.num_rows
        found: list[object] = rows.column(column_name(argument)).to_pylist()
        return found

    def _call(self, function: str, values: list[Any]) -> int:
        if function == "lastval":
            return self.sequences.lastval(self.catalog)
        sequence = self._sequence(values[0])
        if function == "nextval":
            return int(self._nextval(sequence, 1)[0])
        if function == "currval":
            return self.sequences.currval(sequence)
        self._refuse_read_only("setval")
        return self.sequences.setval(sequence, *values[1:])

    def _nextval(self, sequence: Sequence, count: int) -> Numbers:
        self._refuse_read_only("nextval")
        return self.sequences.nextval(sequence, count)

    def _refuse_read_only(self, function: str) -> None:
        if self.read_only:
            raise SqlError("25006", f"cannot execute {function}() in a read-only transaction")

    def _sequence(self, named: object) -> Sequence:
        if isinstance(named, int):
            found = self.catalog.objects.get(named)
        else:
            schema, name = split_name(str(named))
            found = self.catalog.require(name, schema, self.search_path)
        if found is None:
            raise undefined_table(str(named))
        if not isinstance(found, Sequence):
            raise SqlError("42809", f'"{found.name}" is not a sequence')
        return found


def _oid(site: Site) -> int | None:
    """The sequence that a call names by a constant."""
    argument = site.arguments[0]
    return argument.value if isinstance(argument, Literal) and isinstance(argument.value, int) else None


def _places(site: Site, rows: pa.Table) -> Numbers:
    """The rows in which a call is made."""
    if site.selector is None:
        return np.ones(rows.num_rows, np.bool_)
    found: Numbers = rows.column(column_name(site.selector)).to_numpy() == site.place
    return found


def _scattered(values: Numbers, places: Numbers) -> pa.Array:
    """The values in their rows, in order."""
    if len(values) == len(places):
        return pa.array(values)
    whole = np.zeros(len(places), np.int64)
    whole[places] = values
    return pa.array(whole, mask=~places)
