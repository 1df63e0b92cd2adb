"""Expressions over ranges: input, output, constructors and operators.

Owns: ``BUILDS``. ``executor.embedded.functions.composites.ranges`` has the macros that these builders call.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from sqlglot import exp

from catalog.values import ranges
from catalog.values.times.timestamps import INFINITE_DAYS
from catalog.values.types import INT8, RANGES, SqlType
from executor.embedded.printing.entry_points import EntryPoints
from executor.embedded.printing.nodes import bound, macro
from executor.printing.nodes import Build, Expr, function, number, text
from planner.algebra.nodes import Call


def read(printer: EntryPoints, argument: Expr, kind: SqlType) -> Expr:
    """A range from a text (range_in). Raises 22P02, and the errors of the bounds' type."""
    return function("ranges_read", argument, text(kind.name), text(printer.timezone))


def written(argument: Expr, kind: SqlType, shown: Callable[[Expr, SqlType], Expr]) -> Expr:
    """The text of a range (range_out); ``shown`` writes a bound."""
    subtype = ranges.subtype_of(kind)

    def build(value: Expr) -> Expr:
        sides = (shown(_bound_of(value.copy(), kind, side), subtype) for side in ("lower", "upper"))
        return macro("ms_range_text", value, *sides)

    return bound(argument, build)


def number_of(printer: EntryPoints, value: Expr, kind: SqlType) -> Expr:
    """The number that a cut holds for a bound's value."""
    subtype = ranges.subtype_of(kind)
    value = exp.Cast(this=value, to=printer.type(subtype))
    match subtype.name:
        case "numeric" | "date" as name:
            return macro(f"ms_range_of_{name}", value)
        case "timestamp" | "timestamptz":
            return macro("ms_range_of_micros", value)
        case _:
            return exp.Cast(this=value, to=printer.type(INT8))


def _bound_of(value: Expr, kind: SqlType, side: str) -> Expr:
    """A bound's value, NULL for an absent bound."""
    found = macro(f"ms_range_{side}_{ranges.width_of(kind)}", value)
    match subtype := RANGES[kind.name]:
        case "numeric" | "date":
            return macro(f"ms_range_{subtype}", found)
        case "timestamp":
            return macro("ms_range_moment", found)
        case "timestamptz":
            return function("timezone", text("UTC"), macro("ms_range_moment", found))
        case "int4":
            return exp.cast(found, "int")
        case _:
            return found


def _make(printer: EntryPoints, arguments: list[Expr], node: Call) -> Expr:
    kind = node.type
    lower, upper, flags = *(number_of(printer, item, kind) for item in arguments[:2]), arguments[2]
    subtype = RANGES[kind.name]
    if subtype not in ranges.LARGEST:
        return macro(f"ms_range_make_{ranges.width_of(kind)}", lower, upper, flags)
    largest, sqlstate, message = ranges.LARGEST[subtype]
    infinite = number(INFINITE_DAYS) if subtype == "date" else exp.cast(exp.null(), "bigint")
    words = text(f"!{sqlstate}!{message}")
    return macro("ms_range_make_discrete", lower, upper, flags, number(largest), words, infinite)


def _side(side: str) -> Build:
    return lambda printer, arguments, node: _bound_of(arguments[0], node.arguments[0].type, side)


def _value_within(range_: int) -> Build:
    """Whether a range, at a given place among the arguments, contains a value."""

    def build(printer: EntryPoints, arguments: list[Expr], node: Call) -> Expr:
        kind = node.arguments[range_].type
        value = number_of(printer, arguments[1 - range_], kind)
        return macro(f"ms_range_contains_{ranges.width_of(kind)}", arguments[range_], value)

    return build


def _named(name: str) -> Build:
    return lambda printer, arguments, node: macro(f"ms_{name}", *arguments)


BUILDS: Final[dict[str, Build]] = {
    "range_make": _make,
    "range_lower": _side("lower"),
    "range_upper": _side("upper"),
    "range_contains_value": _value_within(0),
    "range_contained_value": _value_within(1),
    **{
        name: _named(name)
        for name in (
            *(f"range_{test}" for test in ("is_empty", "lower_inc", "upper_inc", "lower_inf", "upper_inf")),
            *(f"range_{test}" for test in ("contains", "contained", "overlaps", "before", "after", "adjacent")),
            *(f"range_{test}" for test in ("overleft", "overright")),
            *(f"range_{made}" for made in ("union", "merge", "intersect", "minus")),
        )
    },
}
