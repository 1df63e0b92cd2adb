"""Scalar expressions over a handful of rows, a column at a time.

Owns: which expressions Python evaluates (``OPERATIONS``), each as a function from rows to the values of one column.
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
from planner.algebra.nodes import Call, Cast, Column, ColumnRef, Literal, Parameter, Scalar

#: Types of constants whose values are the cells.
_VALUES: Final = (*INTEGERS, "numeric", "bool", "text")
#: By variance or deviation, by how much less than the count the squares are divided, and what is done with that.
_SPREADS: Final[dict[str, tuple[int, Callable[[float], float]]]] = {
    "var_pop": (0, float),
    "var_samp": (1, float),
    "stddev_pop": (0, sqrt),
    "stddev_samp": (1, sqrt),
}

#: Rows under way: their number, and each column, as Arrow has it or as Python does.
Arrays = Mapping[Column, pa.ChunkedArray | pa.Array]


class Rows(Struct, frozen=True):
    count: int
    arrays: Arrays
    #: The cells of columns where they are known.
    known: Callable[[Column], Cells] | None = None
    parameters: Sequence[Any] = ()

    def cells(self, column: Column) -> Cells:
        return cells_of(self.arrays[column]) if self.known is None else self.known(column)


Computed = Callable[[Rows], Cells]
#: What computes one row's value.
Function = Callable[..., Any]
_Types = Sequence[SqlType]
Operation = Callable[[Call, _Types], Function | None]


def compiled(scalar: Scalar) -> Computed | None:
    """An expression over all rows; None where it is the engine's."""
    match scalar:
        case ColumnRef(column=column):
            return lambda rows: rows.cells(column)
        case Literal(value=value) if scalar.type.name in _VALUES or value is None:
            return lambda rows: [value] * rows.count
        case Parameter(index=index) if scalar.type.name in _VALUES:
            return lambda rows: [rows.parameters[index]] * rows.count
        case Cast() if keeps(scalar.argument.type, scalar.type) and holds(scalar.type, scalar.argument.type):
            return compiled(scalar.argument)
        case Call():
            return _call(scalar)
        case _:
            return None


def keeps(source: SqlType, target: SqlType) -> bool:
    """Whether a number that fits another type is the same there."""
    if target.name == "numeric":
        return source.name in DIGITS or (source.name == "numeric" and source.scale <= target.scale)
    return source.name in DIGITS and target.name in DIGITS


def holds(target: SqlType, source: SqlType) -> bool:
    """Whether every number of a type fits the other."""

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
    """A variance or a deviation of a spread; statistics of pairs are the engine's."""
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
    """Whether values of these types compare exactly: numbers that are no floats."""
    return all(item.name in (*INTEGERS, "numeric") for item in types)


def _arithmetic(call: Call, types: _Types) -> Function | None:
    kinds = (call.type.name, *(item.name for item in types))
    return _whole(ARITHMETIC[call.function], call.type.name) if all(name in LIMITS for name in kinds) else None


def _negation(call: Call, types: _Types) -> Function | None:
    name = call.type.name
    return _whole(operator.neg, name) if name in LIMITS and types[0].name == name else None


def _whole(function: Callable[..., Any], name: str) -> Function:
    """Arithmetic of integers with results that the type of this name holds."""
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
    """What is computed alike for all types."""
    return lambda call, types: function


#: The operations that Python evaluates, by canonical name: the function of one row's values, for a call and the types
#: of its arguments; None for types that are the engine's.
OPERATIONS: Final[Mapping[str, Operation]] = {
    "avg_final": lambda call, types: average_of(types[0]),
    "quotient_scale": lambda call, types: quotient_scale_of(*types[:2]),
    "scaled_text": lambda call, types: scaled_text_of(types[0]) if shows(types[0]) else None,
    "spread_final": lambda call, types: _statistic_of(call.arguments[0]),
    "finite": _fixed(lambda value, _: value),  # cells are finite
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
