"""Dates, times and intervals read from texts, and fitted to their type's precision.

Owns: ``read`` and ``fitted``. DuckDB reads whole ISO texts, which mean the same in PostgreSQL; the functions of
``executor.embedded.functions.times.moments`` read all others.
"""

from __future__ import annotations

from typing import Final

from sqlglot import exp

from catalog.values.times.precision import is_fitted, smallest_field, unit_of
from catalog.values.types import SqlType
from executor.embedded.printing.entry_points import EntryPoints
from executor.embedded.printing.nodes import macro
from executor.printing.nodes import Expr, case, function, number, text

#: A year; 0000 does not exist.
_DAY: Final = r"([1-9]\d{3}|\d[1-9]\d\d|\d\d[1-9]\d|\d{3}[1-9])-\d\d-\d\d"
_CLOCK: Final = r"([01]\d|2[0-3]):[0-5]\d(:[0-5]\d(\.\d{1,6})?)?"
_OFFSET: Final = r"(Z|[+-](0\d|1[0-4])(:?[0-5]\d)?)"
#: A single unit or a time, which both systems read alike.
_SPAN: Final = r"-?\d{1,4} (year|month|mon|week|day|hour|minute|second)s?|-?\d{1,4}:[0-5]\d:[0-5]\d(\.\d{1,6})?"
_PLAIN: Final = {
    "interval": _SPAN,
    "date": _DAY,
    "time": _CLOCK,
    "timestamp": f"{_DAY}([ T]{_CLOCK})?",
    "timestamptz": f"{_DAY}[ T]{_CLOCK}{_OFFSET}",
}
#: The unit of an interval's smallest field, for the interval's time.
_CUT: Final = {"hour": 3_600_000_000, "minute": 60_000_000, "second": 1}


def fitted(value: Expr, kind: SqlType) -> Expr:
    """A time or an interval as its type stores it (``catalog.values.times.precision``)."""
    unit, smallest = number(unit_of(kind)), smallest_field(kind)
    if not is_fitted(kind):
        return value
    if kind.name != "interval":
        return macro(f"ms_rounded_{kind.name}", value, unit)
    months, has_days = number(12 if smallest == "year" else 1), exp.Boolean(this=smallest not in ("year", "month"))
    return macro("ms_fitted_interval", value, months, has_days, number(_CUT.get(smallest, 0)), unit)


def read(printer: EntryPoints, argument: Expr, target: SqlType) -> Expr:
    """A text read as one of these types, as PostgreSQL's input functions do. Raises 22007, 22008, 22009, 22015 and
    22023."""
    others = [argument.copy(), text(printer.timezone)] if target.name == "timestamptz" else [argument.copy()]
    usual = case([(function("regexp_full_match", argument.copy(), text(_PLAIN[target.name])), argument)], exp.null())
    tried = exp.TryCast(this=usual, to=printer.type(target))
    return function("coalesce", tried, function(f"moments_{target.name}", *others))
