"""Converts columns to Python values and back, and combines two values of an aggregate.

Owns: the limit of size, which values are unusual, and the types for which Python's equality and order equal SQL's.
"""

from __future__ import annotations

import datetime
import weakref
from collections.abc import Callable, Sequence
from decimal import Context, Decimal
from itertools import chain
from math import isfinite
from typing import Any, Final

import pyarrow as pa

from catalog.values.types import SPANS, SqlType
from planner.algebra.nodes import AggregateCall, ColumnRef

#: The most values (rows times columns) for which Python is quicker than an engine.
CELLS: Final = 768
#: A context that computes decimals of all occurring sizes exactly.
EXACT: Final = Context(prec=120)
#: The most digits of an integer type.
DIGITS: Final = {"int2": 5, "int4": 10, "int8": 19}
INTEGERS: Final = tuple(DIGITS)
#: Types whose values are equal in Python exactly if they are equal in SQL.
KEYS: Final = frozenset(
    (
        *INTEGERS,
        "numeric",
        "text",
        "varchar",
        "bpchar",
        "bool",
        "date",
        "time",
        "timetz",
        "timestamp",
        "timestamptz",
        "uuid",
        "bytea",
        "enum",
        *SPANS,
    )
)
#: Types that Python orders as SQL does.
ORDERED: Final = frozenset(
    (*INTEGERS, "numeric", "float8", "float4", "date", "timestamp", "timestamptz", "timetz", "enum")
)
_SUMMED: Final = frozenset((*INTEGERS, "numeric", "float8"))

#: Arrow's types with numbers that may not be finite, alone or in lists.
_FLOATING: Final = frozenset(kind.id for kind in (pa.float16(), pa.float32(), pa.float64()))
_LIST: Final = pa.list_(pa.null()).id
_DECIMAL: Final = pa.decimal128(1).id
#: The types of cells of dates and timestamps, by Arrow's types.
_MOMENTS: Final = {pa.date32().id: pa.int32(), pa.timestamp("us").id: pa.int64()}
_FIRST_DAY: Final = datetime.date(1970, 1, 1).toordinal()
_EPOCH: Final = datetime.datetime(1970, 1, 1)
_EPOCH_IN_UTC: Final = _EPOCH.replace(tzinfo=datetime.UTC)
_MICROSECOND: Final = datetime.timedelta(microseconds=1)
#: By Arrow's type of integers, or of moments, what lies above their cells.
_BITS: Final = {
    kind.id: 1 << (kind.bit_width - 1) for kind in (pa.int16(), pa.int32(), pa.int64(), pa.date32(), pa.timestamp("us"))
}
#: By other types of Arrow's, the type of their values, of which all fit.
_PYTHON: Final = {pa.bool_().id: bool, pa.string().id: str, pa.large_string().id: str}

Cells = list[Any]
Fold = Callable[[Any, Any], Any]


class Unusual(Exception):
    """A value that only the engine handles."""


#: Errors of Python for values that it cannot hold, and of pyarrow for values that do not fit a column.
FAILURES: Final = (Unusual, ArithmeticError, ValueError, TypeError, pa.ArrowException)


def _add(left: Any, right: Any) -> Any:
    if type(left) is Decimal:
        return EXACT.add(left, right)
    return left + right


def _combine(left: list[float], right: list[float]) -> list[float]:
    """The spread of two sets of doubles, or of pairs of doubles, together (``planner.algebra.partial_aggregates``)."""
    n, m = left[0], right[0]
    if not n or not m:
        return left if n else right
    weight = n * m / (n + m)
    x = left[1] / n - right[1] / m
    found = [n + m, left[1] + right[1], left[2] + right[2] + weight * x * x]
    if len(left) == len(found):
        return found
    y = left[3] / n - right[3] / m
    return [
        *found,
        left[3] + right[3],
        left[4] + right[4] + weight * y * y,
        left[5] + right[5] + weight * x * y,
    ]


#: Functions that combine two values of an aggregate, by the aggregate's canonical name.
FOLDS: Final[dict[str, Fold]] = {
    "sum": _add,
    # of equal values the later, which distinguishes 0 from -0 as float8smaller() and float8larger() do
    "min": lambda left, right: left if left < right else right,
    "max": lambda left, right: left if left > right else right,
    "bool_and": lambda left, right: left and right,
    "bool_or": lambda left, right: left or right,
    "merged_spread": _combine,
    "merged_paired_spread": _combine,
}
_SPREADS: Final = ("merged_spread", "merged_paired_spread")


def fold_of(call: AggregateCall, type_: SqlType) -> Fold | None:
    """The function that combines two values of an aggregate's column; None if the engine must merge them."""
    (argument,) = call.arguments if len(call.arguments) == 1 else (None,)
    if not isinstance(argument, ColumnRef) or argument.type != type_ or call.distinct or call.filter or call.order_by:
        return None
    if call.function in _SPREADS:
        return FOLDS[call.function]
    allowed = _SUMMED if call.function == "sum" else ORDERED if call.function in ("min", "max") else ("bool",)
    return FOLDS.get(call.function) if type_.name in allowed else None


def folded(values: Cells, groups: list[int], count: int, fold: Fold) -> Cells:
    """The combined value of each group; NULLs are skipped."""
    found: Cells = [None] * count
    for group, value in zip(groups, values, strict=True):
        if value is not None:
            known = found[group]
            found[group] = value if known is None else fold(known, value)
    return found


def cell_of(value: Any) -> Any:
    """A value of Python's as a cell. Raises ``Unusual`` for one that does not compare in Python as in SQL."""
    if type(value) is float and not isfinite(value):
        raise Unusual
    if type(value) is datetime.date:
        return value.toordinal() - _FIRST_DAY
    if isinstance(value, datetime.datetime):
        return (value - (_EPOCH if value.tzinfo is None else _EPOCH_IN_UTC)) // _MICROSECOND
    return value


def day_of(cell: int) -> datetime.date:
    """The day of a date's cell. Raises one of ``FAILURES`` for one that Python has not."""
    return datetime.date.fromordinal(cell + _FIRST_DAY)


def as_cells(column: pa.ChunkedArray | pa.Array) -> pa.ChunkedArray | pa.Array:
    """A column whose values in Python are cells: dates and timestamps are numbers of days and of microseconds, which
    Python has of all, infinite ones too."""
    whole = _MOMENTS.get(column.type.id)
    if whole is None:
        return column
    if isinstance(column, pa.ChunkedArray):
        return pa.chunked_array([chunk.view(whole) for chunk in column.chunks], whole)
    return column.view(whole)


def cells_of(column: pa.ChunkedArray | pa.Array) -> Cells:
    """A column's values. Raises ``Unusual`` for values that Python lacks or compares differently."""
    values: Cells = as_cells(column).to_pylist()
    _require_finite(values, column.type)
    return values


def _require_finite(values: Cells, type_: pa.DataType) -> None:
    """Raises ``Unusual`` for a double that is infinite or NaN, also within an array."""
    kind = type_.id
    if kind == _LIST and type_.value_type.id in _FLOATING:
        values = list(chain.from_iterable(value for value in values if value is not None))
    elif kind not in _FLOATING:
        return
    if not all(value is None or isfinite(value) for value in values):
        raise Unusual


#: Python values of small tables by column, kept while the tables live: a merge's result is the input of the next merge.
_KNOWN: Final[dict[int, tuple[weakref.ref[pa.Table], dict[int, Cells]]]] = {}


def known_cells(table: pa.Table, index: int) -> Cells:
    """``cells_of`` a small table's column; callers must not change the list."""
    columns = _columns_of(table)
    cells = columns.get(index)
    if cells is None:
        cells = columns[index] = cells_of(table.column(index))
    return cells


def keep_cells(table: pa.Table, cells: dict[int, Cells]) -> None:
    """Remembers the Python values of columns."""
    _columns_of(table).update(cells)


def _columns_of(table: pa.Table) -> dict[int, Cells]:
    key = id(table)
    entry = _KNOWN.get(key)
    if entry is None or entry[0]() is not table:
        entry = _KNOWN[key] = (weakref.ref(table, lambda _: _KNOWN.pop(key, None)), {})
    return entry[1]


def array_of(values: Cells, type_: pa.DataType) -> pa.Array:
    """A column of values; raises for a value that does not fit."""
    _require_finite(values, type_)
    return pa.array(values, type_)


class Values:
    """A column in Arrow's form and as Python's values, each made when it is asked for."""

    __slots__ = ("_array", "_cells", "_make_array", "_make_cells", "type")

    def __init__(
        self, type_: pa.DataType, cells: Callable[[], Cells], array: Callable[[], pa.ChunkedArray | pa.Array]
    ) -> None:
        self.type = type_
        self._make_cells, self._make_array = cells, array
        self._cells: Cells | None = None
        self._array: pa.ChunkedArray | pa.Array | None = None

    @property
    def cells(self) -> Cells:
        """Python's values. Raises one of ``FAILURES``."""
        if self._cells is None:
            self._cells = self._make_cells()
        return self._cells

    @property
    def array(self) -> pa.ChunkedArray | pa.Array:
        """Arrow's form. Raises one of ``FAILURES``."""
        if self._array is None:
            self._array = self._make_array()
        return self._array

    def taken(self, places: Sequence[int | None]) -> Values:
        """The values at some places; NULL for None."""

        def cells() -> Cells:
            known = self.cells
            return [None if place is None else known[place] for place in places]

        return Values(self.type, cells, lambda: self.array.take(pa.array(places, pa.int64())))


def computed(cells: Cells, type_: pa.DataType) -> Values:
    """A column of values that Python has computed; raises for a value that does not fit. Its cells are those of the
    type: an integer is a decimal in a column of numerics, and a double is rounded in one of float4."""
    if _fit(cells, type_):
        return stored(cells, type_)
    array = array_of(cells, type_)
    return Values(type_, lambda: cells_of(array), lambda: array)


def stored(cells: Cells, type_: pa.DataType) -> Values:
    """A column of values that fit."""
    return Values(type_, lambda: cells, lambda: pa.array(cells, type_))


def _fit(cells: Cells, type_: pa.DataType) -> bool:
    """Whether values are known to be cells of a type, without making a column of them: that takes ten times as long."""
    kind = type_.id
    if kind in _BITS:
        limit = _BITS[kind]
        return all(cell is None or (type(cell) is int and -limit <= cell < limit) for cell in cells)
    if kind == _DECIMAL:
        limit = 10 ** (type_.precision - type_.scale)
        return all(cell is None or _is_within(cell, limit, type_.scale) for cell in cells)
    python = _PYTHON.get(kind)
    return python is not None and all(cell is None or type(cell) is python for cell in cells)


def _is_within(cell: Any, limit: int, scale: int) -> bool:
    if type(cell) is not Decimal or not cell.is_finite():
        return False
    exponent = cell.as_tuple().exponent
    return isinstance(exponent, int) and exponent >= -scale and -limit < cell < limit
