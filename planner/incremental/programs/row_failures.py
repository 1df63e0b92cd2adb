"""What a statement becomes where an expression fails on a row of the stream (the view option ``on_error``).

Owns: ``computed_at_reads``, and ``with_nulls`` and ``tests_of`` over the statement's pipeline: the operators from its
delta up to the first grouping, which see one row of the stream at a time. What stands above has no row to blame.

    with_nulls(R)    R in which each call that may raise, f(x), is null_on_error(f(x)): NULL where f(x) raises
    tests_of(R)      for each operator with expressions e that may raise, the places of the rows with fails(e):
                     Project(Filter(with_nulls(the operator's input), fails(e)), place)

A statement over streams that are joined within bounds of time has such pipelines side by side, and no expression above
them that may raise (``methods.interval.fallible``). The tests of a stream's rows are then those of the statements that
read no other stream, as that which keeps them.

So a call is NULL where it or the statement cannot give a value, and ``coalesce(1 / x, 0)`` is 0 for an x of 0. A row
fails where the whole of an expression raises: one that CASE or a condition before it guards does not. A row of which
an expression below has failed is not judged again by what it has as NULL: it has failed already.

Both relations use functions that only the embedded engine has (``executor.embedded.functions.forgiveness``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final

from msgspec.structs import replace

from catalog.values.types import BOOL, INT8
from planner.algebra.construction import Fresh, conjunction, conjuncts, filtered, has_subquery
from planner.algebra.failures import gives_a_value, may_raise
from planner.algebra.identity import NodeMap
from planner.algebra.nodes import (
    Aggregate,
    AggregateCall,
    Call,
    Case,
    Cast,
    Column,
    ColumnRef,
    Delta,
    Filter,
    Join,
    Literal,
    Project,
    Relation,
    Scalar,
    Snapshot,
    SortKey,
    Unnest,
    WindowCall,
)
from planner.algebra.walk import RELATIONS, SCALARS, Node, children, contains, find, inputs, kinds_of, transform, walk
from planner.incremental.programs.program import Program

#: The value of an expression, or NULL where it raises; whether it raises.
NULL_ON_ERROR: Final = "null_on_error"
FAILS: Final = "fails"
#: The column of a delta with the places of its rows.
PLACE: Final = "__place"

_CALLS: Final = kinds_of(Call)
_DELTAS: Final = kinds_of(Delta)
_GROUPINGS: Final = kinds_of(Aggregate)
_TRUE, _FALSE = Literal(True, BOOL), Literal(False, BOOL)


def forgives_errors(relation: Relation) -> bool:
    """Whether a relation has one of these functions, which an engine runs otherwise than others."""
    return any(call.function in (NULL_ON_ERROR, FAILS) for call in find(relation, _CALLS))


def with_nulls(relation: Relation) -> Relation:
    """A statement's relation that raises nothing on account of a row: what fails is NULL. The relation itself, where no
    rows go through it one by one."""
    found = _pipeline(relation)
    if found is None:
        return relation
    built: Relation
    built, steps = found
    is_of_rows = True
    for node in steps:
        built = _over(node, built)
        if is_of_rows:
            built = _forgiving(built)
        is_of_rows = is_of_rows and not isinstance(node, Aggregate)
    return built


def with_nulls_throughout(relation: Relation) -> Relation:
    """A relation over rows of several streams, or of one several times, that raises nothing on account of a row: each
    operator has NULL for what fails."""
    found: Relation = transform(relation, _forgiving)
    return found


def tests_of(relation: Relation) -> tuple[Relation, ...]:
    """Relations of one column: the places (``PLACE``, of the delta's leaf) of rows on which an expression fails."""
    pipeline = _pipeline(relation)
    if pipeline is None:
        return ()
    delta, steps = pipeline
    place = Fresh(relation).column(PLACE, INT8, False)
    built: Relation = replace(delta, columns=(*delta.columns, place), sources=(*delta.sources, PLACE))
    found: list[Relation] = []
    for node in steps:
        for below, expressions in _judged(node, built):
            failing = [_fails(item) for item in expressions if may_raise(item) and not has_subquery(item)]
            if failing:
                chosen = Filter(below, failing[0] if len(failing) == 1 else Call("or", tuple(failing), BOOL))
                found.append(Project(chosen, ((place, ColumnRef(place)),)))
        if isinstance(node, Aggregate):
            break
        built = _forgiving(_over(node, built))
        if isinstance(built, Project):
            built = Project(built.input, (*built.outputs, (place, ColumnRef(place))))
    return tuple(found)


def _pipeline(relation: Relation) -> tuple[Delta, list[Relation]] | None:
    """A statement's delta, and the operators above it in their order; None where others stand among them."""
    found: list[Relation] = []
    node = relation
    while not isinstance(node, Delta):
        found.append(node)
        match node:
            case Filter() | Project() | Unnest() | Aggregate():
                node = node.input
            case Join():
                node = node.left if _is_streamward(node.left, node.right) else node.right
            case _:
                return None
    return node, found[::-1]


def _is_streamward(one: Relation, other: Relation) -> bool:
    """Whether the rows come by one side of a join; the other one may tell of their times, in groups."""
    if not contains(one, _DELTAS) or not contains(other, _DELTAS):
        return contains(one, _DELTAS)
    return not contains(one, _GROUPINGS)


def _over(node: Relation, below: Relation) -> Relation:
    """An operator of a pipeline over another input."""
    match node:
        case Join() if _is_streamward(node.left, node.right):
            return replace(node, left=below)
        case Join():
            return replace(node, right=below)
        case Filter() | Project() | Unnest() | Aggregate():
            return replace(node, input=below)
        case _:
            raise AssertionError(f"{type(node).__name__} above a delta")


# --- which rows fail --------------------------------------------------------------------------------------------------


def _judged(node: Relation, below: Relation) -> Iterator[tuple[Relation, list[Scalar]]]:
    """The expressions of an operator over ``below``, with the rows for which each is computed."""
    match node:
        case Filter(predicate=predicate):
            yield from _one_by_one(below, predicate)
        case Join(predicate=predicate) if predicate is not None:
            safe = [part for part in conjuncts(predicate) if not may_raise(part)]
            pairs = Join("inner", *_sides(node, below), conjunction(safe))
            yield from _one_by_one(pairs, conjunction(part for part in conjuncts(predicate) if part not in safe))
        case Project(outputs=outputs) | Unnest(items=outputs):
            yield below, [value for _, value in outputs]
        case Aggregate(keys=keys, aggregates=aggregates):
            yield below, [value for _, value in keys] + [item for _, call in aggregates for item in _aggregated(call)]
        case _:
            pass


def _sides(node: Join, below: Relation) -> tuple[Relation, Relation]:
    is_left = _is_streamward(node.left, node.right)
    return (below, node.right) if is_left else (node.left, below)


def _one_by_one(below: Relation, predicate: Scalar | None) -> Iterator[tuple[Relation, list[Scalar]]]:
    """The conjuncts of a condition, each for the rows that those before it leave."""
    for part in conjuncts(predicate):
        yield below, [_in_turn(part)]
        below = filtered(below, (_nulls(part),))


def _in_turn(condition: Scalar) -> Scalar:
    """A condition whose parts are computed only where those before them do not decide it, as in a filter."""
    match condition:
        case Call(function="or", arguments=(first, *others)) if others:
            return Case(((_in_turn(first), _TRUE),), _in_turn(_rest(condition, others)), BOOL)
        case Call(function="and", arguments=(first, *others)) if others:
            return Case(((_in_turn(first), _in_turn(_rest(condition, others))),), _FALSE, BOOL)
        case _:
            return condition


def _rest(condition: Call, others: list[Scalar]) -> Scalar:
    return others[0] if len(others) == 1 else replace(condition, arguments=tuple(others))


def _aggregated(call: AggregateCall) -> Iterator[Scalar]:
    """An aggregate's condition, and its other expressions where that holds."""
    if call.filter is not None:
        yield _in_turn(call.filter)
    for item in (*call.arguments, *(key.expression for key in call.order_by)):
        if call.filter is None:
            yield item
        else:
            yield Case(((_nulls(call.filter), item),), Literal(None, item.type), item.type)


def _fails(scalar: Scalar) -> Scalar:
    return Call(FAILS, (scalar,), BOOL)


# --- NULL in the place of a value -------------------------------------------------------------------------------------


def _forgiving(node: Relation) -> Relation:
    """An operator whose own expressions give NULL where they fail."""
    match node:
        case Filter():
            return replace(node, predicate=_nulls(node.predicate))
        case Join() if node.predicate is not None:
            return replace(node, predicate=_nulls(node.predicate))
        case Project():
            return replace(node, outputs=_each(node.outputs, _nulls))
        case Unnest():
            return replace(node, items=_each(node.items, _nulls))
        case Aggregate():
            calls = tuple((column, _call(call, node)) for column, call in node.aggregates)
            return replace(node, keys=_each(node.keys, _nulls), aggregates=calls)
        case _:
            return node


def _each(
    pairs: tuple[tuple[Column, Scalar], ...], change: Callable[[Scalar], Scalar]
) -> tuple[tuple[Column, Scalar], ...]:
    return tuple((column, change(value)) for column, value in pairs)


def _call(call: AggregateCall, node: Aggregate) -> AggregateCall:
    arguments = tuple(_square(item) if _is_square(item, node) else _nulls(item) for item in call.arguments)
    order = tuple(SortKey(_nulls(key.expression), key.descending, key.nulls_first) for key in call.order_by)
    only = None if call.filter is None else _nulls(call.filter)
    return replace(call, arguments=arguments, order_by=order, filter=only)


def _is_square(item: Scalar, node: Aggregate) -> bool:
    """Whether an aggregate's argument is the square of another one's: that of a variance, which lacks no square of a
    value that it sums, so that one that overflows is an error of the group."""
    if not isinstance(item, Call) or item.function != "mul" or item.arguments[0] != item.arguments[1]:
        return False
    of = item.arguments[0]
    summed = {argument for _, call in node.aggregates for argument in call.arguments}
    return of in summed or (isinstance(of, Cast) and of.argument in summed)


def _square(item: Scalar) -> Scalar:
    assert isinstance(item, Call)
    return replace(item, arguments=tuple(map(_nulls, item.arguments)))


def _nulls(scalar: Scalar) -> Scalar:
    """An expression with NULL for each call in it that fails."""

    def change(node: Any) -> Any:
        if isinstance(node, Call | Cast) and not gives_a_value(node) and not has_subquery(node):
            return Call(NULL_ON_ERROR, (node,), node.type)
        return node

    found: Scalar = transform(scalar, change)
    return found


# --- what is computed later -------------------------------------------------------------------------------------------


def computed_at_reads(program: Program) -> Scalar | None:
    """An expression below a grouping that may fail on rows of a stream and is computed when the view is read, so that
    no statement meets its error; None where there is none.

    Such rows are kept, or grouped below the tables that the view reads as they are. That a constant interval moves a
    time out of its range does not count.
    """
    kept = {state.name for state in program.states if program.live or state.kind == "concatenate"}
    of_rows = NodeMap[bool]()
    for node in reversed([item for item in walk(program.final) if isinstance(item, RELATIONS)]):
        has_rows = any(of_rows[item] for item in inputs(node)) or (isinstance(node, Snapshot) and node.trace in kept)
        if has_rows:
            found = next((item for item in _own(node) if any(map(_counts, walk(item)))), None)
            if found is not None:
                return found
        of_rows[node] = has_rows and not isinstance(node, Aggregate)
    return None


def _counts(node: Node) -> bool:
    """Whether a node may fail, other than by a time out of range."""
    match node:
        case Call(function="add" | "sub", arguments=(_, Literal(type=kind))) if kind.name == "interval":
            return False
        case _:
            return not gives_a_value(node)


def _own(node: Relation) -> Iterator[Scalar]:
    """The expressions of an operator itself."""
    for item in children(node):
        if isinstance(item, SCALARS):
            yield item
        elif isinstance(item, AggregateCall | WindowCall | SortKey):
            yield from (below for below in walk(item) if isinstance(below, SCALARS))
