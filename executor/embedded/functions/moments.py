"""Dates, times and intervals from texts: usual ones by DuckDB, all others as PostgreSQL's input functions read them.

Owns: ``read``, and the functions of the engine that it calls. DuckDB reads whole ISO texts, on which both agree.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from sqlglot import exp

from catalog.intervals import carried_interval
from catalog.moments import carried_day, carried_moment, parse_date, parse_time, parse_timestamp, parse_timestamptz
from catalog.types import SqlType
from executor.embedded.functions.batches import Functions
from executor.printing.nodes import Expr, case, function, text

if TYPE_CHECKING:
    from executor.embedded.printing.dialect import DuckPrinter

_DAY: Final = r"\d{4}-\d\d-\d\d"
_CLOCK: Final = r"([01]\d|2[0-3]):[0-5]\d(:[0-5]\d(\.\d{1,6})?)?"
_OFFSET: Final = r"(Z|[+-](0\d|1[0-4])(:?[0-5]\d)?)"
#: One unit, or a clock: where both read the same.
_SPAN: Final = r"-?\d{1,4} (year|month|mon|week|day|hour|minute|second)s?|-?\d{1,4}:[0-5]\d:[0-5]\d(\.\d{1,6})?"
_PLAIN: Final = {
    "interval": _SPAN,
    "date": _DAY,
    "time": _CLOCK,
    "timestamp": f"{_DAY}([ T]{_CLOCK})?",
    "timestamptz": f"{_DAY}[ T]{_CLOCK}{_OFFSET}",
}


def _day(written: str) -> object:
    return carried_day(parse_date(written))


def _timestamp(written: str) -> object:
    return carried_moment(parse_timestamp(written))


def _timestamptz(written: str, zone: str) -> object:
    return carried_moment(parse_timestamptz(written, zone))


FUNCTIONS: Final[Functions] = {
    "moments_interval": (carried_interval, "INTERVAL"),
    "moments_date": (_day, "DATE"),
    "moments_time": (parse_time, "TIME"),
    "moments_timestamp": (_timestamp, "TIMESTAMP"),
    "moments_timestamptz": (_timestamptz, "TIMESTAMP WITH TIME ZONE"),
}


def read(printer: DuckPrinter, argument: Expr, target: SqlType) -> Expr:
    """PostgreSQL's input of a text as one of these types. Raises 22007, 22008, 22009, 22015 and 22023."""
    others = [argument.copy(), text(printer.timezone)] if target.name == "timestamptz" else [argument.copy()]
    usual = case([(function("regexp_full_match", argument.copy(), text(_PLAIN[target.name])), argument)], exp.null())
    tried = exp.TryCast(this=usual, to=printer.type(target))
    return function("coalesce", tried, function(f"moments_{target.name}", *others))
