"""Scalar expressions over few rows, a column at a time.

Owns: the expressions that Python evaluates (``OPERATIONS``), each compiled to a function from rows to one column's
values.
"""

from __future__ import annotations

import datetime
import operator
import re
from collections.abc import Callable, Mapping, Sequence
from math import sqrt
from typing import Any, Final

from msgspec import Struct

from catalog.values.integers import ARITHMETIC, LIMITS
from catalog.values.types import LARGE_QUOTIENT, QUOTIENT, SPREAD, SqlType
from executor.small.quotients import average_of, quotient_scale_of, scaled_text_of, shows
from executor.small.values import DIGITS, EXACT, INTEGERS, Cells, Unusual, Values, cell_of, day_of
from planner.algebra.functions import COMPARISONS
from planner.algebra.nodes import Call, Case, Cast, Column, ColumnRef, Literal, Parameter, Scalar

#: Types whose constants have the same values as cells.
_VALUES: Final = (*INTEGERS, "numeric", "bool", "text", "varchar")
#: Types of other constants that are cells where Python has the value.
_MOMENTS: Final = {"date": datetime.date, "timestamp": datetime.datetime, "timestamptz": datetime.datetime}
#: Types of which two values are equal, or in order, for Python as for SQL.
_COMPARED: Final = (*_MOMENTS, "bool")
#: Types of texts; constants of char(n) are those that have no blanks at their end, as columns have none.
_TEXTS: Final = (("text", "varchar"), ("bpchar",))
_STRINGS: Final = ("text", "varchar", "bpchar")
#: The parts of a date that Python has as attributes.
_FIELDS: Final = ("year", "month", "day")
_WILDCARDS: Final = {"%": ".*", "_": "."}
#: For each variance or deviation: what is subtracted from the count in the divisor, and a function of the quotient.
_SPREADS: Final[dict[str, tuple[int, Callable[[float], float]]]] = {
    "var_pop": (0, float),
    "var_samp": (1, float),
    "stddev_pop": (0, sqrt),
    "stddev_samp": (1, sqrt),
}


class Rows(Struct, frozen=True):
    """Rows during evaluation: their number, and their columns."""

    count: int
    columns: Mapping[Column, Values]
    parameters: Sequence[Any] = ()
    #: The values of rows that have no ``columns``.
    known: Callable[[Column], Cells] | None = None

    def cells(self, column: Column) -> Cells:
        return self.columns[column].cells if self.known is None else self.known(column)

    def taken(self, places: Sequence[int]) -> Rows:
        """Some of the rows, in the given order."""
        columns = {column: values.taken(places) for column, values in self.columns.items()}
        return Rows(len(places), columns, self.parameters)


#: Arithmetic of decimals of any size, and of integers with them.
_DECIMAL: Final = {"add": EXACT.add, "sub": EXACT.subtract, "mul": EXACT.multiply}

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
        case Literal(value=value) if type(value) is _MOMENTS.get(scalar.type.name) or _is_char(scalar):
            cell = cell_of(value)
            return lambda rows: [cell] * rows.count
        case Parameter(index=index) if scalar.type.name in _VALUES:
            return lambda rows: [rows.parameters[index]] * rows.count
        case Cast() if keeps(scalar.argument.type, scalar.type) and holds(scalar.type, scalar.argument.type):
            return compiled(scalar.argument)
        case Cast() if (
            scalar.argument.type.name in _STRINGS and scalar.type.name in _TEXTS[0] and not scalar.type.modifiers
        ):
            return compiled(scalar.argument)
        case Case():
            return _case(scalar)
        case Call():
            return _call(scalar)
        case _:
            return None


def _is_char(literal: Literal) -> bool:
    return literal.type.name == "bpchar" and isinstance(literal.value, str) and not literal.value.endswith(" ")


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
    kinds = (call.type, *types)
    if all(kind.name in LIMITS for kind in kinds):
        return _whole(ARITHMETIC[call.function], call.type.name)
    if call.type.name != "numeric" or not all(map(_is_exact, kinds)):
        return None
    scales = [kind.scale if kind.name == "numeric" else 0 for kind in types]
    if call.type.scale < (sum(scales) if call.function == "mul" else max(scales)):
        return None
    return _decimal(_DECIMAL[call.function], call.type)


def _is_exact(kind: SqlType) -> bool:
    """Whether cells of a type are integers, or decimals of a fixed scale."""
    return kind.name in LIMITS or (kind.name == "numeric" and kind.modifiers not in (QUOTIENT, LARGE_QUOTIENT, SPREAD))


def _negation(call: Call, types: _Types) -> Function | None:
    name = call.type.name
    if name == "numeric":
        return _decimal(EXACT.minus, call.type) if _is_exact(call.type) and types[0] == call.type else None
    return _whole(operator.neg, name) if name in LIMITS and types[0].name == name else None


def _decimal(function: Callable[..., Any], kind: SqlType) -> Function:
    """Exact arithmetic of decimals whose results must fit a numeric type."""
    limit = 10 ** (kind.precision - kind.scale)

    def compute(*values: Any) -> Any:
        if None in values:
            return None
        result = function(*values)
        if not -limit < result < limit:
            raise Unusual
        return result

    return compute


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
    names = {item.name for item in types}
    is_same = len(names) == 1 and names <= set(_COMPARED)
    is_text = call.function in ("eq", "ne") and _are_texts(types)
    return _strict(COMPARISONS[call.function]) if is_same or is_text or _alike(types) else None


def _are_texts(types: _Types) -> bool:
    names = {item.name for item in types}
    return any(names <= set(kinds) for kinds in _TEXTS)


def _in(call: Call, types: _Types) -> Function | None:
    if not (_are_texts(types) or _alike(types)):
        return None

    def compute(value: Any, *others: Any) -> Any:
        if value is None:
            return None
        return True if value in others else None if None in others else False

    return compute


def _extract(call: Call, types: _Types) -> Function | None:
    """A field of a date."""
    field = call.arguments[0]
    if not isinstance(field, Literal) or field.value not in _FIELDS or types[1].name != "date":
        return None
    name = str(field.value)
    return lambda _, cell: None if cell is None else getattr(day_of(cell), name)


def _like(call: Call, types: _Types) -> Function | None:
    """Whether a text matches a constant pattern without escapes."""
    pattern = call.arguments[1]
    if len(types) != 2 or not isinstance(pattern, Literal) or not isinstance(pattern.value, str):
        return None
    if "\\" in pattern.value or types[0].name not in _TEXTS[0]:
        return None
    parts = (_WILDCARDS.get(letter) or re.escape(letter) for letter in pattern.value)
    matches = re.compile("".join(parts), re.DOTALL).fullmatch
    return lambda value, _: None if value is None else matches(value) is not None


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
    "in": _in,
    "extract": _extract,
    "like": _like,
    **dict.fromkeys(ARITHMETIC, _arithmetic),
    **dict.fromkeys(COMPARISONS, _comparison),
}
