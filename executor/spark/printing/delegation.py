"""Expressions that Spark does not compute as PostgreSQL does, handed to the embedded engine's kernel, batch by batch.

Owns: ``delegated``, which replaces each expression that Spark does not print whole by a call of a function:

    Project(R, f(a, g(b)))    =    Project(R, delegated("f(a, g(b)) over the arguments a, b", a, b))

and ``functions_of``, which lists the functions that a session must know to run a relation. An expression is delegated
as a whole, since Spark computes such functions for all rows, whatever CASE, COALESCE, AND or OR stands around them;
subqueries in it are arguments like columns. Spark keeps the conjuncts of a filter that it supports as far as their
order allows, and a join's comparison of one side with the other. Grouping, ordering and numbering get the values as
columns of a projection below, so that Spark's own patterns see columns alone.

The other side of the function is ``executor.spark.workers.kernel_calls``.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from hashlib import sha256
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import asdict, replace

from catalog.values.types import BOOL, TEXT
from executor.printing.nodes import Expr, function, number
from executor.spark.printing.carried_types import is_held, require_compared, require_groups, spark_name
from executor.spark.printing.functions.overflows import is_long
from planner.algebra.construction import (
    SUBQUERIES,
    Fresh,
    conjunction,
    conjuncts,
    has_subquery,
    keep_columns,
    volatility,
)
from planner.algebra.failures import may_raise
from planner.algebra.nodes import (
    Aggregate,
    AggregateCall,
    Call,
    Column,
    ColumnRef,
    Filter,
    Fixpoint,
    InSubquery,
    Join,
    Literal,
    Project,
    Relation,
    Scalar,
    SetOperation,
    Snapshot,
    Sort,
    SortKey,
    Unnest,
    Values,
    Window,
    WindowCall,
)
from planner.algebra.serialize import encode_relation
from planner.algebra.walk import RELATIONS, SCALARS, Node, children, descend, inputs, transform, used_columns, walk
from planner.lowering.intervals import length
from planner.rules.joins.cardinality import Cardinality
from planner.statistics import Statistics

#: The call in algebra: the expression's document, the time zone, whether it is volatile, and its arguments.
DELEGATED: Final = "delegated"
_OWN: Final = 3
#: What an expression takes from outside.
ARGUMENTS: Final = (ColumnRef, *SUBQUERIES)
_COMPARISONS: Final = frozenset(("eq", "ne", "lt", "le", "gt", "ge", "is_distinct", "is_not_distinct"))
#: Whether Spark prints a node over what it prints.
Takes = Callable[[Scalar], bool]


class Function(Struct, frozen=True):
    """A function of Spark's that computes a document's expression; ``type`` is what it gives, in Spark's words."""

    name: str
    document: str
    time_zone: str
    type: str
    is_volatile: bool


def delegated(relation: Relation, takes: Takes, time_zone: str) -> Relation:
    """The relation with calls of ``DELEGATED``. Raises 0A000 for what compares carriers of intervals."""
    found: Relation = transform(relation, _Delegation(relation, takes, time_zone).change)
    return found


def functions_of(relations: Sequence[Relation]) -> tuple[Function, ...]:
    """What the calls in relations need, each once."""
    calls = (node for relation in relations for node in walk(relation) if isinstance(node, Call))
    return tuple(dict.fromkeys(_function(node) for node in calls if node.function == DELEGATED))


def values_of(relations: Sequence[Relation], statistics: Statistics) -> float:
    """How many values the kernel computes, about: for each call, the rows of what is below its operator."""
    total = 0.0
    for relation in relations:
        rows = Cardinality(relation, statistics)
        for node in walk(relation):
            if isinstance(node, RELATIONS) and (below := inputs(node)):
                own = (item for item in children(node) if not isinstance(item, RELATIONS))
                calls = sum(map(_calls, own))
                total += calls * max(map(rows.rows, below)) if calls else 0
    return total


def _calls(node: Any) -> int:
    """Calls in an expression, or in what holds some; those in its subqueries are their operators' own."""
    return sum(isinstance(item, Call) and item.function == DELEGATED for item in _own(node))


def printed(dialect: object, arguments: list[Expr], node: Call) -> Expr:
    """A call without arguments gets a constant, by which the function knows how many rows there are."""
    return function(_function(node).name, *(arguments[_OWN:] or [number(1)]))


def _function(node: Call) -> Function:
    document, time_zone, is_volatile = (item.value for item in node.arguments[:_OWN] if isinstance(item, Literal))
    name = f"MS_{sha256(f'{time_zone} {document}'.encode()).hexdigest().upper()}"
    return Function(name, str(document), str(time_zone), spark_name(node.type), bool(is_volatile))


class _Delegation:
    """One relation's; ``change`` is given every node of it, children first."""

    def __init__(self, relation: Relation, takes: Takes, time_zone: str) -> None:
        self._takes = takes
        self._time_zone = time_zone
        self._fresh = Fresh(relation)

    def change(self, node: Node) -> Node:
        """A node whose own expressions are delegated where they have to be."""
        match node:
            case InSubquery():
                require_compared(node.argument.type)
                return replace(node, argument=self._whole(node.argument))
            case Project() | Values():
                changed: Node = _over_scalars(node, self._whole)
                return changed
            case Filter():
                predicate = conjunction(self._conjuncts(node))
                return node if predicate is None else replace(node, predicate=predicate)
            case Join():
                parts = (self._condition(part, node) for part in conjuncts(node.predicate))
                return replace(node, predicate=conjunction(parts))
            case Aggregate() | Window() | Sort() | Unnest():
                return self._lifted(node)
            case SetOperation() | Fixpoint():
                _require_rows(node)
                return node
            case _:
                return node

    def _whole(self, value: Scalar) -> Scalar:
        """The expression, or the call of it."""
        return _call(value, self._time_zone) if self._is_refused(value) else value

    def _is_refused(self, value: Scalar) -> bool:
        """Whether Spark does not print it, and holds what goes in and comes out."""
        nodes = list(_own(value))
        if all(map(self._takes, nodes)) and not is_long(nodes):
            return False
        ends = (value, *(node for node in nodes if isinstance(node, ARGUMENTS)))
        return all(is_held(item.type) for item in ends)

    def _conjuncts(self, node: Filter) -> Iterator[Scalar]:
        """Those that Spark takes, up to the first that it does not, and of the others those that raise nothing; then
        all else as one, in its order.
        """
        rest: list[Scalar] = []
        for part in conjuncts(node.predicate):
            if not self._is_refused(part) and (not rest or _is_harmless(part)):
                yield part
            else:
                rest.append(part)
        left = conjunction(rest)
        if left is not None:
            yield self._whole(left)

    def _condition(self, part: Scalar, node: Join) -> Scalar:
        """A conjunct of a join's; a comparison of one side with the other stays one, by which Spark joins."""
        if isinstance(part, Call) and part.function in _COMPARISONS and _is_of_sides(part, node):
            found = replace(part, arguments=tuple(map(_compared, part.arguments)))
            if self._takes(found):
                return replace(found, arguments=tuple(_compared(self._whole(item)) for item in part.arguments))
        return self._whole(part)

    def _lifted(self, node: Aggregate | Window | Sort | Unnest) -> Relation:
        """What is delegated as columns of a projection below."""
        _require_keys(node)
        values: dict[Scalar, Column] = {}

        def lift(item: Scalar) -> Scalar:
            value = self._whole(item)
            if value is item:
                return item
            if value not in values:
                values[value] = self._fresh.column("delegated", value.type)
            return ColumnRef(values[value])

        found: Any = _over_scalars(node, lift)
        if not values:
            same: Relation = found
            return same
        passed = ((column, ColumnRef(column)) for column in node.input.columns)
        below = Project(node.input, (*passed, *((column, value) for value, column in values.items())))
        return keep_columns(replace(found, input=below), node.columns)


def _over_scalars(value: Any, change: Callable[[Scalar], Scalar]) -> Any:
    """A relation, or what stands in its fields, with its own expressions changed."""
    match value:
        case tuple():
            return tuple(_over_scalars(item, change) for item in value)
        case SortKey(expression=expression):
            return replace(value, expression=change(expression))
        case AggregateCall() | WindowCall() | Project() | Values() | Aggregate() | Window() | Sort() | Unnest():
            own = {name: item for name, item in asdict(value).items() if name != "input"}
            return replace(value, **{name: _over_scalars(item, change) for name, item in own.items()})
        case _:
            return change(value) if isinstance(value, SCALARS) else value


def _is_of_sides(part: Call, node: Join) -> bool:
    """Whether one argument is of a join's one side, and the other of the other."""
    one, other = map(used_columns, part.arguments)
    left, right = set(node.left.columns), set(node.right.columns)
    return (one <= left and other <= right) or (one <= right and other <= left)


def _compared(value: Scalar) -> Scalar:
    """What a value is compared by."""
    return length(value) if value.type.name == "interval" else value


def _own(value: Scalar) -> Iterator[Scalar]:
    """An expression's nodes without those of its subqueries."""
    stack: list[Any] = [value]
    while stack:
        node = stack.pop()
        yield node
        if not isinstance(node, SUBQUERIES):
            stack.extend(children(node))


def _call(value: Scalar, time_zone: str) -> Call:
    """The call of an expression: its columns and subqueries become arguments, in the order in which they stand."""
    arguments: dict[object, tuple[Scalar, Column]] = {}

    def change(node: Any) -> Any:
        if not isinstance(node, ARGUMENTS):
            return node
        key = node if isinstance(node, ColumnRef) else id(node)
        if key not in arguments:
            place = len(arguments)
            arguments[key] = node, Column(place, f"a{place}", node.type)
        return ColumnRef(arguments[key][1])

    computed = descend(value, change)
    columns = tuple(column for _, column in arguments.values())
    leaf = Snapshot(f"arguments_{_kinds(columns)}", columns, tuple(column.name for column in columns))
    projection = Project(leaf, ((Column(len(columns), "value", value.type), computed),))
    document = Literal(json.dumps(encode_relation(projection)), TEXT)
    own = (document, Literal(time_zone, TEXT), Literal(volatility(value) == "volatile", BOOL))
    return Call(DELEGATED, (*own, *(item for item, _ in arguments.values())), value.type)


def _kinds(columns: Sequence[Column]) -> str:
    """The columns' types in a name: the kernel keeps what it has prepared for one name as long as its types stay."""
    return sha256("\n".join(str(column.type.arrow) for column in columns).encode()).hexdigest()[:16]


def _is_harmless(part: Scalar) -> bool:
    """Whether it may stand before what it stood behind: it raises nothing, or is a join in truth. Of numerics only
    those of one scale do not, which Spark need not bring to one.
    """
    numerics = {item.type for item in _own(part) if item.type.name == "numeric"}
    return has_subquery(part) or (len(numerics) < 2 and not may_raise(part))


def _require_keys(node: Aggregate | Window | Sort | Unnest) -> None:
    """Raises 0A000 where rows would be grouped or ordered by carriers of intervals."""
    grouped: list[Scalar] = []
    ordered: list[SortKey] = []
    match node:
        case Aggregate():
            grouped += [key for _, key in node.keys]
            grouped += [item for _, call in node.aggregates if call.distinct for item in call.arguments]
            ordered += [key for _, call in node.aggregates for key in call.order_by]
        case Window():
            grouped += [item for _, call in node.calls for item in call.partition]
            ordered += [key for _, call in node.calls for key in call.order_by]
        case Sort():
            ordered += node.keys
    for item in (*grouped, *(key.expression for key in ordered)):
        require_groups(item.type)


def _require_rows(node: SetOperation | Fixpoint) -> None:
    """Raises 0A000 where whole rows that carry intervals would be compared."""
    if not (node.all and (isinstance(node, Fixpoint) or node.kind == "union")):
        for column in node.columns:
            require_groups(column.type)
