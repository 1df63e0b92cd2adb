"""Scalar expressions over few rows, a column at a time.

Owns: the expressions that Python evaluates (``OPERATIONS``), each compiled to a function from rows to one column's
values.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from math import sqrt
from typing import Any, Final

import pyarrow as pa
from msgspec import Struct

from catalog.values.integers import ARITHMETIC, LIMITS
from catalog.values.types import SqlType
from executor.small.quotients import average_of, quotient_scale_of, scaled_text_of, shows
from executor.small.values import DIGITS, INTEGERS, Cells, Unusual, cells_of
from planner.algebra.functions import COMPARISONS
from planner.algebra.nodes import Call, Case, Cast, Column, ColumnRef, Literal, Parameter, Scalar

#: Types whose constants have the same values as cells.
_VALUES: Final = (*INTEGERS, "numeric", "bool", "text")
#: For each variance or deviation: what is subtracted from the count in the divisor, and a function of the quotient.
_SPREADS: Final[dict[str, tuple[int, Callable[[float], float]]]] = {
    "var_pop": (0, float),
    "var_samp": (1, float),
    "stddev_pop": (0, sqrt),
    "stddev_samp": (1, sqrt),
}

#: Rows during evaluation: their number, and each column in Arrow's form or as Python values.
Arrays = Mapping[Column, pa.ChunkedArray | pa.Array]


class Rows(Struct, frozen=True):
    count: int
    arrays: Arrays
    #: The Python values of columns that were converted already.
    known: Callable[[Column], Cells] | None = None
    parameters: Sequence[Any] = ()

    def cells(self, column: Column) -> Cells:
        return cells_of(self.arrays[column]) if self.known is None else self.known(column)


Computed = Callable[[Rows], Cells]
#: A function that computes one row's value.
Function = Callable[..., Any]
_Types = Sequence[SqlType]
Operation = Callable[[Call, _Types], Function | None]


def compiled(scalar: Scalar) -> Computed | None:
    """An expression compiled for all rows; None if the engine must compute it."""
    match scalar:
        case ColumnRef(column=column):
            return lambda rows: rows.cells(column)
        case Literal(value=value) if scalar.type.name in _VALUES or value is None:
            return lambda rows: [value] * rows.count
        case Parameter(index=index) if scalar.type.name in _VALUES:
            return lambda rows: [rows.parameters[index]] * rows.count
        case Cast() if keeps(scalar.argument.type, scalar.type) and holds(scalar.type, scalar.argument.type):
            return compiled(scalar.argument)
        case Case():
            return _case(scalar)
        case Call():
            return _call(scalar)
        case _:
            return None


def _case(case: Case) -> Computed | None:
    """The first result whose condition is true. All conditions and results are computed for all rows, so that one that
    fails in a row leaves all rows to the engine."""
    results = [*(result for _, result in case.branches), case.otherwise]
    if not all(_is_null(item) or item.type == case.type for item in results):
        return None
    otherwise = compiled(case.otherwise)
    branches = [(compiled(condition), compiled(result)) for condition, result in case.branches]
    if otherwise is None:
        return None
    known = [(condition, result) for condition, result in branches if condition is not None and result is not None]
    if len(known) < len(branches):
        return None

    def values(rows: Rows) -> Cells:
        found = list(otherwise(rows))
        for condition, result in reversed(known):
            chosen = zip(condition(rows), result(rows), found, strict=True)
            found = [value if holds else other for holds, value, other in chosen]
        return found

    return values


def _is_null(scalar: Scalar) -> bool:
    return isinstance(scalar, Literal) and scalar.value is None


def keeps(source: SqlType, target: SqlType) -> bool:
    """Whether a number keeps its value and display in another type that can hold it."""
    if target.name == "numeric":
        return source.name in DIGITS or (source.name == "numeric" and source.scale <= target.scale)
    return source.name in DIGITS and target.name in DIGITS


def holds(target: SqlType, source: SqlType) -> bool:
    """Whether one type can hold every number of the other."""

    def whole(kind: SqlType) -> int:
        return kind.precision - kind.scale if kind.name == "numeric" else DIGITS[kind.name]

    return whole(target) >= whole(source)


def _call(call: Call) -> Computed | None:
    arguments = [compiled(item) for item in call.arguments]
    make = OPERATIONS.get(call.function)
    function = None if make is None else make(call, [item.type for item in call.arguments])
    if function is None or any(item is None for item in arguments):
        return None
    known = [item for item in arguments if item is not None]
    return lambda rows: list(map(function, *(item(rows) for item in known)))


def _statistic_of(kind: Scalar) -> Callable[[Any, Any], Any] | None:
    """A variance or deviation from a spread; the engine computes statistics of pairs."""
    found = _SPREADS.get(str(kind.value)) if isinstance(kind, Literal) else None
    if found is None:
        return None
    less, finish = found

    def statistic(_: Any, state: Any) -> Any:
        if state is None or state[0] <= less:
            return None
        return finish(state[2] / (state[0] - less))

    return statistic


def _alike(types: Sequence[SqlType]) -> bool:
    """Whether values of these types compare exactly: equal types, or numbers other than floats."""
    return all(item.name in (*INTEGERS, "numeric") for item in types)


def _arithmetic(call: Call, types: _Types) -> Function | None:
    kinds = (call.type.name, *(item.name for item in types))
    return _whole(ARITHMETIC[call.function], call.type.name) if all(name in LIMITS for name in kinds) else None


def _negation(call: Call, types: _Types) -> Function | None:
    name = call.type.name
    return _whole(operator.neg, name) if name in LIMITS and types[0].name == name else None


def _whole(function: Callable[..., Any], name: str) -> Function:
    """Integer arithmetic whose results must fit the type of this name."""
    limit = LIMITS[name]

    def compute(*values: Any) -> Any:
        if None in values:
            return None
        result = function(*values)
        if not -limit <= result < limit:
            raise Unusual
        return result

    return compute


def _comparison(call: Call, types: _Types) -> Function | None:
    return _strict(COMPARISONS[call.function]) if _alike(types) else None


def _strict(function: Callable[[Any, Any], bool]) -> Function:
    return lambda left, right: None if left is None or right is None else function(left, right)


def _coalesce(call: Call, types: _Types) -> Function | None:
    if any(item.name != call.type.name for item in types):
        return None
    return lambda *values: next((value for value in values if value is not None), None)


def _fixed(function: Function) -> Operation:
    """An operation that is the same for all types."""
    return lambda call, types: function


#: The operations that Python evaluates, by canonical name: for a call and its arguments' types, a function of one row's
#: values, or None if the engine must compute these types.
OPERATIONS: Final[Mapping[str, Operation]] = {
    "avg_final": lambda call, types: average_of(types[0]),
    "quotient_scale": lambda call, types: quotient_scale_of(*types[:2]),
    "scaled_text": lambda call, types: scaled_text_of(types[0]) if shows(types[0]) else None,
    "spread_final": lambda call, types: _statistic_of(call.arguments[0]),
    "finite": _fixed(lambda value, _: value),  # cells are finite numbers
    "coalesce": _coalesce,
    "and": _fixed(lambda *values: False if False in values else None if None in values else True),
    "or": _fixed(lambda *values: True if True in values else None if None in values else False),
    "not": _fixed(lambda value: None if value is None else not value),
    "is_null": _fixed(lambda value: value is None),
    "is_not_null": _fixed(lambda value: value is not None),
    "neg": _negation,
    **dict.fromkeys(ARITHMETIC, _arithmetic),
    **dict.fromkeys(COMPARISONS, _comparison),
}
