"""Operations on vectors: exact arithmetic, finite floats, comparisons, three-valued logic, coalesce, greatest and
least.

Owns: which calls these are (``OPERATIONS``). A result that may not fit its type or 64 bits raises ``Unusual``, and so
does a float that is not finite; an engine then computes the rows, and its error counts.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import numpy as np

from catalog.values.integers import ARITHMETIC, LIMITS
from catalog.values.types import SqlType
from executor.small.values import Unusual
from executor.small.vector_columns import Computed, Rows, alike, at, family
from executor.small.vectors import LARGEST, Nulls, Values, Vector, either, size_of
from planner.algebra.functions import COMPARISONS
from planner.algebra.nodes import Call

#: The comparison with which an earlier argument is chosen over a later one.
_EXTREMES: Final[dict[str, Callable[[Any, Any], Any]]] = {"greatest": operator.ge, "least": operator.le}
_UNARY: Final[dict[str, Callable[[Values], Values]]] = {"abs": np.abs, "square": np.square}


def operation(call: Call, arguments: list[Computed]) -> Computed | None:
    """A call over compiled arguments; None if the engine must compute it."""
    make = OPERATIONS.get(call.function)
    return None if make is None else make(call, arguments)


def _of_double(call: Call, arguments: Sequence[Computed]) -> Computed | None:
    (item,) = arguments
    if not call.type.name == item.type.name == "float8":
        return None
    return _of_float(_UNARY[call.function], call.type, item.run)


def _compared(call: Call, arguments: Sequence[Computed]) -> Computed | None:
    left, right = arguments
    return _comparison(call.function, call.type, left, right) if alike(arguments) else None


def _in(call: Call, arguments: Sequence[Computed]) -> Computed | None:
    if not alike(arguments):
        return None
    first, *others = arguments
    return _connected("or", call.type, [_comparison("eq", call.type, first, item).run for item in others])


def _logic(call: Call, arguments: Sequence[Computed]) -> Computed | None:
    if any(item.type.name != "bool" for item in arguments):
        return None
    if call.function != "not":
        return _connected(call.function, call.type, [item.run for item in arguments])
    run = arguments[0].run
    return Computed(call.type, lambda rows: _negated(run(rows)))


def _coalesce(call: Call, arguments: Sequence[Computed]) -> Computed | None:
    if not alike(arguments):
        return None
    scale = max(item.scale for item in arguments)
    return Computed(call.type, _first(tuple(at(item, scale) for item in arguments)), scale)


def _most(call: Call, arguments: Sequence[Computed]) -> Computed | None:
    if not alike(arguments):
        return None
    scale = max(item.scale for item in arguments)
    return Computed(call.type, _extreme(_EXTREMES[call.function], [at(item, scale) for item in arguments]), scale)


def _arithmetic(call: Call, arguments: Sequence[Computed]) -> Computed | None:
    left, right = arguments
    compute = ARITHMETIC[call.function]
    if call.type.name == "float8" and left.type.name == right.type.name == "float8":
        return Computed(call.type, _of_floats(compute, left.run, right.run))
    if any(family(item) != "number" for item in (call.type, left.type, right.type)):
        return None
    product = call.function == "mul"
    scale = left.scale + right.scale if product else max(left.scale, right.scale)
    declared = call.type.scale if call.type.name == "numeric" else 0
    if scale > declared:
        return None
    bound = _bound(call.type, scale)
    first, second = (left.run, right.run) if product else (at(left, scale), at(right, scale))

    def run(rows: Rows) -> Vector:
        a, b = first(rows), second(rows)
        limit = a.limit * b.limit if product else a.limit + b.limit
        if limit > LARGEST:
            raise Unusual
        values = compute(a.values, b.values)
        if limit > bound:
            limit = size_of(values)
            if limit > bound:
                raise Unusual
        return Vector(values, either(a.null, b.null), limit)

    return Computed(call.type, run, scale)


def _bound(kind: SqlType, scale: int) -> int:
    """The largest count of 10^-``scale`` that a type holds, of either sign."""
    if kind.name == "numeric":
        return int(10 ** (kind.precision - kind.scale + scale)) - 1
    return LIMITS[kind.name] - 1


def _of_floats(
    compute: Callable[[Any, Any], Any], left: Callable[[Rows], Vector], right: Callable[[Rows], Vector]
) -> Callable[[Rows], Vector]:
    def run(rows: Rows) -> Vector:
        a, b = left(rows), right(rows)
        with np.errstate(all="ignore"):
            values = compute(a.values, b.values)
        if not np.isfinite(values).all():
            raise Unusual
        if compute is operator.mul and not values.all() and ((values == 0) & (a.values != 0) & (b.values != 0)).any():
            raise Unusual  # the result underflowed
        return Vector(values, either(a.null, b.null))

    return run


def _of_float(compute: Callable[[Values], Values], kind: SqlType, argument: Callable[[Rows], Vector]) -> Computed:
    def run(rows: Rows) -> Vector:
        found = argument(rows)
        with np.errstate(all="ignore"):
            values = compute(found.values)
        if not np.isfinite(values).all():
            raise Unusual
        return Vector(values, found.null)

    return Computed(kind, run)


def _comparison(name: str, truth: SqlType, left: Computed, right: Computed) -> Computed:
    compare, scale = COMPARISONS[name], max(left.scale, right.scale)
    first, second = at(left, scale), at(right, scale)

    def run(rows: Rows) -> Vector:
        a, b = first(rows), second(rows)
        return Vector(compare(a.values, b.values), either(a.null, b.null))

    return Computed(truth, run)


def truth_of(vector: Vector) -> Values:
    """A mask of the rows in which a condition is true."""
    return vector.values if vector.null is None else vector.values & ~vector.null


def _negated(vector: Vector) -> Vector:
    return Vector(~vector.values, vector.null)


def _connected(name: str, truth: SqlType, runs: Sequence[Callable[[Rows], Vector]]) -> Computed:
    """AND and OR: one value decides the result; otherwise NULL prevails over the other value."""
    decides = name == "or"

    def run(rows: Rows) -> Vector:
        values, null = runs[0](rows)[:2]
        for item in runs[1:]:
            more, unknown = item(rows)[:2]
            if null is not None or unknown is not None:
                known = [_known(values, null, decides), _known(more, unknown, decides)]
                decided = known[0] | known[1]
                both = either(null, unknown)
                assert both is not None
                null = both & ~decided
                values = decided if decides else ~decided
            else:
                values = values | more if decides else values & more
        return Vector(values, null)

    return Computed(truth, run)


def _known(values: Values, null: Nulls, wanted: bool) -> Values:
    """A mask of the rows in which a condition is not NULL and has the given value."""
    found = values if wanted else ~values
    return found if null is None else found & ~null


def chosen(condition: Values, then: Vector, otherwise: Vector) -> Vector:
    null: Nulls = None
    if then.null is not None or otherwise.null is not None:
        sides = (np.False_ if item.null is None else item.null for item in (then, otherwise))
        null = np.where(condition, *sides)
    return Vector(np.where(condition, then.values, otherwise.values), null, max(then.limit, otherwise.limit))


def _first(runs: Sequence[Callable[[Rows], Vector]]) -> Callable[[Rows], Vector]:
    """coalesce: the first value that is not NULL."""

    def run(rows: Rows) -> Vector:
        found = runs[0](rows)
        for item in runs[1:]:
            if found.null is None:
                return found
            found = chosen(~found.null, Vector(found.values, None, found.limit), item(rows))
        return found

    return run


def _extreme(keeps: Callable[[Any, Any], Any], runs: Sequence[Callable[[Rows], Vector]]) -> Callable[[Rows], Vector]:
    """greatest and least, without NULLs; of equal values the first."""

    def run(rows: Rows) -> Vector:
        found = runs[0](rows)
        for item in runs[1:]:
            other = item(rows)
            first = keeps(found.values, other.values)
            if found.null is not None:
                first = first & ~found.null
            found = chosen(first if other.null is None else first | other.null, found, other)
        return found

    return run


#: The operations that numpy computes, by canonical name.
OPERATIONS: Final[Mapping[str, Callable[[Call, Sequence[Computed]], Computed | None]]] = {
    **dict.fromkeys(ARITHMETIC, _arithmetic),
    **dict.fromkeys(_UNARY, _of_double),
    **dict.fromkeys(COMPARISONS, _compared),
    **dict.fromkeys(("and", "or", "not"), _logic),
    **dict.fromkeys(_EXTREMES, _most),
    "in": _in,
    "coalesce": _coalesce,
}
