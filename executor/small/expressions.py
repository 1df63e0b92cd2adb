"""Scalar expressions over a handful of rows, a column at a time.

Owns: which expressions Python evaluates, each to a function from rows to the values of one column, and the average of
a sum and a count at PostgreSQL's scale.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from decimal import Decimal
from math import sqrt
from typing import Any, Final

import pyarrow as pa
from msgspec import Struct

from catalog.types import QUOTIENT, UNCONSTRAINED, SqlType
from executor.small.values import DIGITS, EXACT, INTEGERS, Cells, Unusual, cells_of
from planner.expression import Call, Cast, Column, ColumnRef, Literal, Parameter, Scalar
from planner.functions import COMPARISONS

_LARGEST: Final = 10**38
#: Types of constants whose values are the cells.
_VALUES: Final = (*INTEGERS, "numeric", "bool", "text")
_ARITHMETIC: Final[dict[str, Callable[[int, int], int]]] = {
    "add": operator.add,
    "sub": operator.sub,
    "mul": operator.mul,
}
_BITS: Final = {"int2": 15, "int4": 31, "int8": 63}

#: By variance or deviation, by how much less than the count the squares are divided, and what is done with that.
_SPREADS: Final[dict[str, tuple[int, Callable[[float], float]]]] = {
    "var_pop": (0, float),
    "var_samp": (1, float),
    "stddev_pop": (0, sqrt),
    "stddev_samp": (1, sqrt),
}

#: Rows under way: their number, and each column, as Arrow has it or as Python does.
Arrays = dict[Column, pa.ChunkedArray | pa.Array]


class Rows(Struct, frozen=True):
    count: int
    arrays: Arrays
    #: The cells of columns where they are known.
    known: Callable[[Column], Cells] | None = None
    parameters: Sequence[Any] = ()

    def cells(self, column: Column) -> Cells:
        return cells_of(self.arrays[column]) if self.known is None else self.known(column)


Computed = Callable[[Rows], Cells]


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
    function = _function(call)
    if function is None or any(item is None for item in arguments):
        return None
    known = [item for item in arguments if item is not None]
    return lambda rows: list(map(function, *(item(rows) for item in known)))


def _function(call: Call) -> Callable[..., Any] | None:
    """What computes one row's value."""
    types = [item.type for item in call.arguments]
    match call.function:
        case "avg_final":
            return average_of(types[0])
        case "quotient_scale":
            return _quotient_scale_of(*types[:2])
        case "scaled_text" if shows(types[0]):
            return scaled_text_of(types[0])
        case "spread_final":
            return _statistic_of(call.arguments[0])
        case "finite":
            return lambda value, _: value  # cells are finite
        case "coalesce" if all(item.name == call.type.name for item in types):
            return lambda *values: next((value for value in values if value is not None), None)
        case "and":
            return lambda *values: False if False in values else None if None in values else True
        case "or":
            return lambda *values: True if True in values else None if None in values else False
        case "not":
            return lambda value: None if value is None else not value
        case "is_null":
            return lambda value: value is None
        case "is_not_null":
            return lambda value: value is not None
        case name if (
            name in _ARITHMETIC and len(types) == 2 and all(item.name in _BITS for item in (call.type, *types))
        ):
            return _whole(_ARITHMETIC[name], 1 << _BITS[call.type.name])
        case "neg" if types[0].name in _BITS and types[0].name == call.type.name:
            return _whole(lambda value: -value, 1 << _BITS[call.type.name])
        case name if name in COMPARISONS and _alike(types):
            return _strict(COMPARISONS[name])
        case _:
            return None


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


def _whole(function: Callable[..., int], limit: int) -> Callable[..., Any]:
    """Arithmetic of integers whose results lie in [-limit, limit)."""

    def compute(*values: Any) -> Any:
        if None in values:
            return None
        result = function(*values)
        if not -limit <= result < limit:
            raise Unusual
        return result

    return compute


def _strict(function: Callable[[Any, Any], bool]) -> Callable[[Any, Any], Any]:
    return lambda left, right: None if left is None or right is None else function(left, right)


def shows(kind: SqlType) -> bool:
    """Whether ``scaled_text_of`` writes numbers of this type."""
    return kind.name == "numeric" and kind.modifiers in (QUOTIENT, UNCONSTRAINED)


def scaled_text_of(kind: SqlType) -> Callable[[Any, Any], Any]:
    """What writes a number with so many decimals, or with more where it has them; where nobody knows how many, those of
    a quotient as its value lets expect."""
    unknown = _expected_decimals if kind.modifiers == QUOTIENT else lambda _: 0

    def write(value: Any, shown: Any) -> Any:
        if value is None:
            return None
        own = EXACT.normalize(value).as_tuple().exponent
        assert isinstance(own, int)  # a number is finite here
        return f"{value:.{max(unknown(value) if shown is None else shown, -own, 0)}f}"

    return write


def _expected_decimals(value: Decimal) -> int:
    """16 for up to four digits before the point, 4 fewer for every four more; 4 more for none, and for a power of
    10000 (``embedded.functions.quotients``)."""
    whole = str(abs(int(value)))
    starts_alike = whole == "0" or (value == int(value) and whole.rstrip("0") == "1" and len(whole) % 4 == 1)
    return min(max(16 - 4 * ((len(whole) - 1) // 4) + 4 * starts_alike, 0), 20)


def _quotient_scale_of(left: SqlType, right: SqlType) -> Callable[[Any, Any, Any], Any] | None:
    """The decimals that a quotient of these types shows, at least as many as its third argument says."""
    if not all(kind.name in (*INTEGERS, "numeric") for kind in (left, right)):
        return None
    scale = max(kind.scale if kind.name == "numeric" else 0 for kind in (left, right))

    def decimals(a: Any, b: Any, least: Any) -> Any:
        if a is None or b is None or not b:
            return None
        return quotient_decimals(_units(a, scale), _units(b, scale), scale, least or 0)

    return decimals


def _units(value: Any, scale: int) -> int:
    """A number without its sign as a count of 10^-scale."""
    return int(EXACT.scaleb(abs(value), scale)) if type(value) is Decimal else abs(value) * 10**scale


def average_of(total: SqlType) -> Callable[[Any, Any], Any] | None:
    """avg from a sum of this type and a count."""
    if total.name == "float8":
        return lambda value, count: None if value is None or not count else value / count
    if total.name not in (*INTEGERS, "numeric"):
        return None
    scale = total.scale if total.name == "numeric" else 0
    shown = 0 if total.name != "numeric" or SqlType("numeric", (38, scale)).is_loose else min(scale, 20)
    power = 10**scale

    def average(value: Any, count: Any) -> Any:
        if value is None or not count:
            return None
        units = int(EXACT.scaleb(value, scale)) if type(value) is Decimal else value
        result = quotient(units, count * power, scale, shown)
        if abs(result) >= _LARGEST:
            raise Unusual
        return EXACT.scaleb(Decimal(result), -20)

    return average


def quotient(left: int, right: int, scale: int, shown: int) -> int:
    """left / right, both units of 10^-scale, as units of 10^-20, at the scale that PostgreSQL's division chooses.

    The cast and macros of the embedded engine do the same (``embedded.macros``).
    """
    a, b = abs(left), abs(right)
    if a == 0:
        return 0
    digits = quotient_decimals(a, b, scale, shown)
    cut = 10 ** (20 - digits)
    whole, rest = divmod(a * 10**20, b)
    if cut > 1:
        whole = (whole + cut // 2) // cut * cut
    elif rest >= b - rest:
        whole += 1
    return -whole if (left < 0) != (right < 0) else whole


def quotient_decimals(a: int, b: int, scale: int, shown: int) -> int:
    """The decimals of a / b, neither negative, b not zero, both units of 10^-scale.

    numeric.c, select_div_scale: 16 significant digits by the weights of both sides in base 10000, and at least
    ``shown`` decimals.
    """
    x, y = _weight(a, scale) if a else 0, _weight(b, scale)
    starts_lower = (_first(a, x, scale) if a else 0) <= _first(b, y, scale)
    return min(20, max(shown, 16 - 4 * (x - y - starts_lower)))


def _weight(units: int, scale: int) -> int:
    """The exponent of a number's first digit in base 10000."""
    return (len(str(units)) + 3999 - scale) // 4 - 1000


def _first(units: int, weight: int, scale: int) -> int:
    """The first digit in base 10000."""
    exponent = 4 * weight + scale
    power: int = 10 ** abs(exponent)
    return units // power if exponent >= 0 else units * power
