"""Sums of products over a join, made of sums that a grouping below the join has kept (``pushed_calls``).

With x of the inner grouping's rows R alone, and y and p of what is the same for all rows of a group::

    sum over a group's rows of     y              x * y             case when p then x else y end
    is                             y * rows       sum(x) * y        case when p then sum(x) else y * rows end

These are the degree-one terms of DBToaster's calculus (section 3.1, a sum over a join of factors). Both sides are NULL
for the same groups: a sum over values that are all NULL is NULL, and p is the same for each row.

Guard: the values are integers and numerics of known scales. A product is in its type's range whatever its factors are
(``failures.never_overflows``), since it is not computed. What R's rows add may be computed for rows that meet no row of
the other side.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from catalog.values.types import SqlType, numeric
from planner.algebra.failures import never_overflows
from planner.algebra.nodes import AggregateCall, Call, Case, Cast, ColumnRef, Literal, Scalar
from planner.algebra.partial_aggregates import sum_type
from planner.algebra.walk import used_columns, walk
from planner.incremental.rewrites.inner_groupings import InnerGrouping

_DIGITS: Final = {"int2": 5, "int4": 10, "int8": 19}
#: Makes what a group adds, once all of it is known to be there.
_Made = Callable[[], Scalar]


def group_total(groups: InnerGrouping, value: Scalar, kind: SqlType) -> Scalar | None:
    """What a group adds to the sum of a value, as a numeric ``kind``; None where that is no sum of products."""
    made = _total(groups, value, kind)
    return None if made is None else made()


def _total(groups: InnerGrouping, value: Scalar, kind: SqlType) -> _Made | None:
    if isinstance(value, Literal):
        return lambda: _times_rows(groups, value, kind)
    if not _is_exact(value.type) or _scale(value.type) > kind.scale:
        return None
    if not _of_rows(groups, value):
        return lambda: _times_rows(groups, value, kind)
    if isinstance(value, Cast) and _widens(value.argument.type, value.type):
        return _total(groups, value.argument, kind)
    if groups.is_own(value):
        return (lambda: _sum(groups, value, kind)) if groups.is_safe(value) else None
    match value:
        case Case():
            return _chosen(groups, value, kind)
        case Call(function="mul", arguments=(left, right)) if never_overflows(value):
            return _product(groups, (left, right), kind)
        case _:
            return None


def _of_rows(groups: InnerGrouping, value: Scalar) -> bool:
    """Whether an expression uses columns of the rows below."""
    return any(groups.is_own(ColumnRef(column)) for column in used_columns(value))


def _sum(groups: InnerGrouping, value: Scalar, kind: SqlType) -> Scalar:
    fill = AggregateCall("sum", (value,), sum_type(value.type))
    names = [item.column.name for item in walk(value) if isinstance(item, ColumnRef)]
    return _as(ColumnRef(groups.state(f"sum_{names[0]}", fill)), kind)


def _times_rows(groups: InnerGrouping, value: Scalar, kind: SqlType) -> Scalar:
    if isinstance(value, Literal) and not value.value:  # NULL and 0
        return _as(value, kind)
    return Call("mul", (_as(value, kind), Cast(groups.rows, numeric(19, 0))), kind)


def _chosen(groups: InnerGrouping, value: Case, kind: SqlType) -> _Made | None:
    results = [_total(groups, item, kind) for item in (*(item for _, item in value.branches), value.otherwise)]
    made = [item for item in results if item is not None]
    if len(made) < len(results):
        return None

    def case() -> Scalar:
        conditions = (groups.raised(condition) for condition, _ in value.branches)
        *branches, otherwise = (item() for item in made)
        return Case(tuple(zip(conditions, branches, strict=True)), otherwise, kind)

    return case


def _product(groups: InnerGrouping, factors: tuple[Scalar, Scalar], kind: SqlType) -> _Made | None:
    """The product of a sum over the rows below and a factor that is the same for all of them."""
    for own, other in (factors, factors[::-1]):
        below = None if _of_rows(groups, other) else _total(groups, own, numeric(38, _scale(own.type)))
        if below is not None:
            found, factor = below, other
            return lambda: Call("mul", (found(), factor), kind)
    return None


def _is_exact(kind: SqlType) -> bool:
    return kind.name in _DIGITS or (kind.name == "numeric" and not kind.is_loose)


def _widens(source: SqlType, target: SqlType) -> bool:
    """Whether a type has all values of another as they are."""
    if not _is_exact(source) or target.name != "numeric" or target.is_loose:
        return False
    digits = _DIGITS[source.name] if source.name in _DIGITS else source.precision - source.scale
    return _scale(source) <= target.scale and digits <= target.precision - target.scale


def _scale(kind: SqlType) -> int:
    return kind.scale if kind.name == "numeric" else 0


def _as(value: Scalar, kind: SqlType) -> Scalar:
    return value if value.type == kind else Cast(value, kind)
