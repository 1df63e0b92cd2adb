"""What is known about NULL: which columns never are, and which predicates a NULL makes fail.

All answers are safe: a column that is not known to be without NULL may have one.
"""

from __future__ import annotations

from typing import Final

from catalog.values.types import BOOL
from planner.algebra.construction import conjunction, conjuncts
from planner.algebra.failures import TOTAL, may_raise, never_overflows
from planner.algebra.functions import OPERATORS
from planner.algebra.identity import NodeMap
from planner.algebra.nodes import (
    Aggregate,
    Call,
    Case,
    Cast,
    Column,
    ColumnRef,
    Exists,
    Filter,
    Join,
    Limit,
    Literal,
    Project,
    Relation,
    Scalar,
    Sort,
    Unnest,
    Window,
)
from planner.algebra.walk import inputs

#: Functions that are NULL whenever an argument is, and only then.
STRICT: Final = frozenset(OPERATORS) - {"and", "or", "is_distinct", "is_not_distinct"} | {"not", "neg", "abs"}


def never_null(relation: Relation) -> frozenset[Column]:
    """Output columns of a relation that are NULL in no row."""
    known = NodeMap[frozenset[Column]]()
    for node in reversed(list(_operators(relation))):
        below = [known[item] for item in inputs(node)]
        known[node] = _never_null(node, below)
    return known[relation]


def _operators(relation: Relation) -> list[Relation]:
    found, stack = [], [relation]
    while stack:
        node = stack.pop()
        found.append(node)
        stack.extend(inputs(node))
    return found


def _never_null(node: Relation, below: list[frozenset[Column]]) -> frozenset[Column]:
    match node:
        case Filter() | Sort() | Limit() | Window() | Unnest():
            return below[0]
        case Project(outputs=outputs):
            return frozenset(column for column, value in outputs if is_never_null(value, below[0]))
        case Aggregate(keys=keys, aggregates=aggregates):
            counts = {column for column, call in aggregates if call.function == "count"}
            return frozenset(column for column, value in keys if is_never_null(value, below[0])) | counts
        case Join(kind=kind):
            kept = {"inner": (0, 1), "left": (0,), "right": (1,), "full": (), "semi": (0,), "anti": (0,)}[kind]
            return frozenset[Column]().union(*(below[side] for side in kept))
        case _:
            return frozenset(column for column in node.columns if not column.nullable)


def is_never_null(scalar: Scalar, known: frozenset[Column]) -> bool:
    """Whether a scalar over columns of which ``known`` are never NULL is never NULL itself, and no part of it raises an
    error: views may take that for NULL, or leave the row out (``incremental.programs.row_failures``)."""
    return not may_raise(scalar) and _has_value(scalar, known)


def _has_value(scalar: Scalar, known: frozenset[Column]) -> bool:
    match scalar:
        case Literal(value=value):
            return value is not None
        case ColumnRef(column=column):
            return column in known
        case Cast(argument=argument):
            return _has_value(argument, known)
        case Exists():
            return True
        case Call(function="coalesce", arguments=arguments):
            return any(_has_value(item, known) for item in arguments)
        case Call(function=function, arguments=arguments):
            strict = function in STRICT or function in ("and", "or")
            return function in TOTAL or (strict and all(_has_value(item, known) for item in arguments))
        case _:
            return False


def presence(scalar: Scalar, known: frozenset[Column]) -> Scalar:
    """Whether a scalar over columns of which ``known`` are never NULL is not NULL itself, asked of what it is made of:
    of x * y IS NOT NULL that x and y are not, where a product is never out of its type's range."""
    match scalar:
        case Literal(value=value):
            return Literal(value is not None, BOOL)
        case Case(branches=branches, otherwise=otherwise):
            results = [presence(item, known) for item in (*(item for _, item in branches), otherwise)]
            if all(item == results[0] for item in results):
                return results[0]
            pairs = zip((condition for condition, _ in branches), results, strict=False)
            return Case(tuple(pairs), results[-1], BOOL)
        case Call(arguments=(left, right)) if never_overflows(scalar):
            arguments = (left, right)
            parts = dict.fromkeys(part for item in arguments for part in conjuncts(presence(item, known)))
            return conjunction(parts) or Literal(True, BOOL)
        case _ if is_never_null(scalar, known):
            return Literal(True, BOOL)
        case _:
            return Call("is_not_null", (scalar,), BOOL)


def rejects_null(predicate: Scalar) -> frozenset[Column]:
    """Columns of which a single NULL keeps the predicate from being true."""
    match predicate:
        case Call(function="and", arguments=arguments):
            return frozenset[Column]().union(*map(rejects_null, arguments))
        case Call(function="or", arguments=arguments):
            return frozenset.intersection(*map(rejects_null, arguments))
        case Call(function="is_true", arguments=(argument,)):
            return rejects_null(argument)
        case Call(function="is_not_null" | "is_false", arguments=(argument,)):
            return null_with(argument)
        case _:
            return null_with(predicate)


def null_with(scalar: Scalar) -> frozenset[Column]:
    """Columns of which a single NULL makes the scalar NULL."""
    match scalar:
        case ColumnRef(column=column):
            return frozenset((column,))
        case Cast(argument=argument):
            return null_with(argument)
        case Call(function="in", arguments=(first, *_)):
            return null_with(first)
        case Call(function=function, arguments=arguments) if function in STRICT:
            return frozenset[Column]().union(*map(null_with, arguments))
        case _:
            return frozenset()
