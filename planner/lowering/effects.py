"""Splits relations that call functions with an effect (of sequences, pg_notify, pg_terminate_backend): the calls are
made between computations of the engines.

Owns where they may be called. A projection with such calls becomes a step: its input with the calls' arguments, which
an engine computes, the calls' results beside them, and the rest of the projection over both::

    Limit(Sort(Project(I, (nextval(s) + a, b))))      Project(Snapshot(step), (c1 + a, b))
                                                       step: Limit(Sort(Project(I, (a, b)))), c1 = nextval(s)

So a bulk INSERT takes its whole range of numbers at once, and the calls follow the order and number of the result's
rows (PostgreSQL also postpones volatile expressions above a sort). A filter with such a call becomes a filter over a
projection with it, if it is clear for which rows the call is made. If the row's values decide whether to call, or the
call reads a row of an outer query, it is 0A000.
"""

from __future__ import annotations

from typing import Any, Final

from msgspec import Struct, field
from msgspec.structs import replace

from catalog.values.errors import unsupported
from catalog.values.types import INT4
from planner.algebra.bound_rows import bound
from planner.algebra.construction import SUBQUERIES, Fresh, conjunction, conjuncts, equality
from planner.algebra.functions import DRAWN_FUNCTIONS
from planner.algebra.identity import NodeMap
from planner.algebra.nodes import (
    Aggregate,
    Call,
    Case,
    Column,
    ColumnRef,
    Filter,
    Join,
    Limit,
    Literal,
    Project,
    Relation,
    Scalar,
    Sort,
    Values,
)
from planner.algebra.walk import children, descend, produced_columns, transform, used_columns, walk

_NOTHING: Final = Literal(0, INT4)
_LAZY: Final = frozenset(("coalesce", "and", "or"))


class Site(Struct, frozen=True):
    """One call: its result column, its arguments (columns of the step, or constants), and the rows for which it is
    made: those where ``selector`` equals ``place`` (without a selector: all)."""

    column: Column
    function: str
    arguments: tuple[Column | Literal, ...]
    selector: Column | None = None
    place: int = 0


class Step(Struct, frozen=True):
    """Rows that an engine computes, and calls to make for them; the result is the leaf ``name`` of what follows."""

    name: str
    source: Relation
    sites: tuple[Site, ...]


class Drawing(Struct, frozen=True):
    """A relation with calls, split: ``relation`` reads the steps' rows."""

    original: Relation
    steps: tuple[Step, ...]
    relation: Relation


def calls_of(node: Any) -> list[Call]:
    """The calls of functions with an effect in a tree."""
    return [item for item in walk(node) if isinstance(item, Call) and item.function in DRAWN_FUNCTIONS]


def _name(call: Call) -> str:
    """The text with which the query names the function."""
    named = call.arguments[0] if call.function == "session_call" else None
    return str(named.value) if isinstance(named, Literal) else call.function


class _Taking(Struct):
    """The steps so far, and a source of new columns."""

    fresh: Fresh
    steps: list[Step] = field(default_factory=list)

    def column(self, like: Scalar) -> Column:
        return self.fresh.column("drawn", like.type)


def take_apart(relation: Relation) -> Drawing:
    """Splits a relation with calls into steps. Raises 0A000 for calls outside of projections, filters and VALUES."""
    taking = _Taking(Fresh(relation))
    for query in (item for item in walk(relation) if isinstance(item, SUBQUERIES)):
        _refuse_search(query)
    rest = _within(taking, relation)
    for call in calls_of(rest):
        raise unsupported(f"{_name(call)}() in this place", "Call it in a select list, VALUES or SET.")
    return Drawing(relation, tuple(taking.steps), rest)


def _within(taking: _Taking, relation: Relation) -> Relation:
    found: Relation = descend(relation, lambda node: _change(taking, node))
    return found


def _change(taking: _Taking, node: Any) -> Any:
    """A projection with calls, under the operators that sort and cut its rows, as a projection over a step."""
    if isinstance(node, Values) and calls_of(node):
        return _values(taking, node)
    if isinstance(node, Filter) and calls_of(node.predicate):
        return _filter(taking, node)
    if isinstance(node, Aggregate) and any(calls_of(aggregate) for _, aggregate in node.aggregates):
        return _aggregate(taking, node)
    above: list[Limit | Sort] = []
    base = node
    while isinstance(base, Limit | Sort):
        above.append(base)
        base = base.input
    if any(isinstance(item, Limit) for item in above):
        _refuse_cut(base)
    if not isinstance(base, Project) or not any(_direct(scalar) for _, scalar in base.outputs):
        return node
    keys = {column for item in above for column in _used_above(item)}
    if any(column in keys and _direct(scalar) for column, scalar in base.outputs):
        return node  # sorted by a call: the projection itself is reached next
    if used_columns(base) - produced_columns(base):
        raise unsupported("a function with an effect in a correlated subquery", "Join the query instead.")
    return _project(taking, base, above, keys)


def _filter(taking: _Taking, node: Filter) -> Relation:
    """A filter with a call, as a filter over a projection that makes the call for each row of one relation that meets
    the conditions before it. Raises 0A000 if PostgreSQL's plan decides for which rows the call is made."""
    *before, last = conjuncts(node.predicate)
    for call in (call for part in before for call in calls_of(part)):
        raise unsupported(f"{_name(call)}() before another condition", "Write it as the last condition of WHERE.")
    (call, *_) = _direct(last) or calls_of(last)
    if any(isinstance(item, Join) for item in walk(node.input)):
        raise unsupported(f"{_name(call)}() in WHERE over a join", "Call it in a select list.")
    condition = conjunction(before)
    rows = node.input if condition is None else Filter(node.input, condition)
    kept = tuple((column, ColumnRef(column)) for column in node.columns)
    found = taking.column(last)
    return Project(Filter(Project(rows, (*kept, (found, last))), ColumnRef(found)), kept)


def _aggregate(taking: _Taking, node: Aggregate) -> Relation:
    """An aggregation over calls, as one over a projection that makes the calls."""
    called = NodeMap[Column]()
    made: list[tuple[Column, Scalar]] = []
    for _, aggregate in node.aggregates:
        for call in (call for argument in aggregate.arguments for call in _direct(argument)):
            called[call] = taking.column(call)
            made.append((called[call], call))
    kept = tuple((column, ColumnRef(column)) for column in node.input.columns)
    rows = Project(node.input, (*kept, *made))

    def change(item: Any) -> Any:
        return ColumnRef(called[item]) if item in called else item

    aggregates = tuple((column, transform(aggregate, change)) for column, aggregate in node.aggregates)
    return replace(node, input=rows, aggregates=aggregates)


def _refuse_search(query: Any) -> None:
    """Refuses a subquery whose rows are filtered by a call, as EXISTS and IN read as few rows as possible. Raises
    0A000."""
    for item in walk(query):
        if isinstance(item, Filter) and not isinstance(item.input, Values) and (calls := calls_of(item.predicate)):
            raise unsupported(f"{_name(calls[0])}() in WHERE of a subquery", "Put the subquery into FROM.")


def _refuse_cut(node: Any) -> None:
    """Refuses a query that returns a part of its rows and filters by a call. Raises 0A000."""
    while isinstance(node, Project | Filter):
        call = next(iter(calls_of(node.predicate)), None) if isinstance(node, Filter) else None
        if call is not None:
            raise unsupported(f"{_name(call)}() in WHERE beside LIMIT", "Apply the LIMIT in a subquery in FROM.")
        node = node.input


def _used_above(item: Limit | Sort) -> set[Column]:
    scalars = [key.expression for key in item.keys] if isinstance(item, Sort) else [item.count, item.offset]
    return {column for scalar in scalars if scalar is not None for column in used_columns(scalar)}


def _direct(scalar: Scalar) -> list[Call]:
    """The calls in an expression, except in its subqueries. Raises 0A000 for calls that are made for some rows only."""
    found: list[Call] = []
    stack: list[tuple[Any, bool]] = [(scalar, False)]
    while stack:
        node, lazy = stack.pop()
        if isinstance(node, Call) and node.function in DRAWN_FUNCTIONS:
            if lazy:
                raise unsupported(f"{_name(node)}() that depends on a condition", "Call it for every row.")
            found.append(node)
        lazy = lazy or isinstance(node, Case) or (isinstance(node, Call) and node.function in _LAZY)
        if not isinstance(node, SUBQUERIES):
            stack += [(child, lazy) for child in reversed(children(node))]
    return found


def _project(taking: _Taking, base: Project, above: list[Limit | Sort], keys: set[Column]) -> Relation:
    """The projection over a new step. The columns ``keys`` are computed below the sort that needs them."""
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
    passed = passed or {taking.column(_NOTHING): _NOTHING}  # rows need a column to be counted
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
    """An expression with columns in place of its calls. Adds the calls' sites, and the expressions of their
    arguments."""
    results = NodeMap[Column]()
    for call in _direct(scalar):
        arguments: list[Column | Literal] = []
        for argument in call.arguments:
            if calls_of(argument):
                raise unsupported("a function with an effect over the value of another one", "Use two statements.")
            if isinstance(argument, Literal):
                arguments.append(argument)
            else:
                arguments.append(column := taking.column(argument))
                passed[column] = argument
        results[call] = taking.column(call)
        sites.append(Site(results[call], call.function, tuple(arguments), selector, place))
    changed: Scalar = transform(scalar, lambda node: ColumnRef(results[node]) if node in results else node)
    return changed


def _add_step(
    taking: _Taking, source: Relation, sites: list[Site], outputs: tuple[tuple[Column, Scalar], ...]
) -> Relation:
    source = _within(taking, source)
    leaf = bound((*source.columns, *(site.column for site in sites)), f"__drawn{len(taking.steps)}_")
    taking.steps.append(Step(leaf.trace, source, tuple(sites)))
    return Project(leaf, outputs)


def _values(taking: _Taking, values: Values) -> Relation:
    """VALUES with calls in cells. If the rows make different calls for a column, a number in each row says which one it
    makes."""
    passed: dict[Column, Scalar] = {}
    outputs: list[tuple[Column, Scalar]] = []
    sites: list[Site] = []
    inner: list[tuple[Column, tuple[Scalar, ...]]] = []
    for column, cells in zip(values.columns, zip(*values.rows, strict=True), strict=True):
        calling = list(dict.fromkeys(cell for cell in cells if calls_of(cell)))
        if not calling:
            inner.append((column, cells))
            outputs.append((column, ColumnRef(column)))
            continue
        selector = taking.column(_NOTHING)
        numbers = [calling.index(cell) + 1 if cell in calling else 0 for cell in cells]
        inner.append((selector, tuple(Literal(number, INT4) for number in numbers)))
        branches = [
            (
                equality(ColumnRef(selector), Literal(place, INT4)),
                _replaced(taking, cell, sites, passed, selector, place),
            )
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
