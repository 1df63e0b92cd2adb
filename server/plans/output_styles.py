"""What an engine makes of values within a query in one style only: texts of intervals, dates, bytea and floats, and the
first two of texts.

Owns: finding these in a statement, and refusing them where the session has another IntervalStyle, DateStyle,
bytea_output or extra_float_digits. What leaves for the client has the session's style (``protocol.values.styles``), and
what stands in the text is read in its order.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import chain
from typing import Any, Final

from msgspec import Struct

from catalog.values.errors import unsupported
from catalog.values.times.time_fields import MDY
from catalog.values.types import RANGES, SqlType
from planner.algebra.nodes import AggregateCall, Call, Cast, Scalar, WindowCall
from protocol.values.styles import ESCAPE, SHORTEST
from server.settings.settings import Settings

_TEXTS: Final = ("text", "varchar", "bpchar", "name")
_DOCUMENTS: Final = ("json", "jsonb")
_WRITTEN: Final = _TEXTS + _DOCUMENTS
_INTERVALS: Final = ("interval",)
_DATES: Final = ("date", "timestamp", "timestamptz")
#: What a text without an order of its own may be read as.
_READ: Final = (*_DATES, "timetz")
_FLOATS: Final = ("float4", "float8")
_RANGES: Final = tuple(name for name, subtype in RANGES.items() if subtype in _DATES)


class Styled(Struct, frozen=True):
    """Whether a statement makes texts or documents of intervals, texts of dates, either of texts, and texts or
    documents of bytea and of floats."""

    shows_intervals: bool = False
    shows_dates: bool = False
    reads_intervals: bool = False
    reads_dates: bool = False
    shows_octets: bool = False
    shows_floats: bool = False


#: What most statements do.
PLAIN: Final = Styled()


def styled(nodes: Mapping[type, list[Any]]) -> Styled:
    """What a statement of these nodes does, by their classes."""
    calls: list[tuple[Any, tuple[Scalar, ...]]] = [(node, (node.argument,)) for node in nodes[Cast]]
    calls += [(node, node.arguments) for node in nodes[Call] if node.function not in _FORMATTED]
    calls += [(node, node.arguments) for node in chain(nodes[AggregateCall], nodes[WindowCall])]
    calls = [call for call in calls if _makes(call[0], _WRITTEN) or _take(call[1], _WRITTEN)]
    if not calls:
        return PLAIN
    found = Styled(
        any(_makes(call, _WRITTEN) and _take(taken, _INTERVALS) for call, taken in calls),
        # Documents show dates in ISO, but ranges of them as texts do.
        any(
            (_makes(call, _TEXTS) and _take(taken, _DATES)) or (_makes(call, _WRITTEN) and _take(taken, _RANGES))
            for call, taken in calls
        ),
        _reads_any(calls, _INTERVALS),
        _reads_any(calls, _READ + _RANGES),
        shows_octets=any(
            _makes(call, _WRITTEN) and _take(taken, ("bytea",))
            for call, taken in calls
            if getattr(call, "function", "") not in _OF_OCTETS
        ),
        shows_floats=any(_makes(call, _WRITTEN) and _take(taken, _FLOATS) for call, taken in calls),
    )
    return PLAIN if found == PLAIN else found


def check_styles(found: Styled, settings: Settings) -> None:
    """Raises 0A000 where the session's style is not the engines'."""
    if found.shows_intervals and settings.value("IntervalStyle") != "postgres":
        raise unsupported(
            "an interval as text within a query, with this IntervalStyle",
            "Select the interval itself, or SET IntervalStyle = postgres.",
        )
    if found.shows_dates and not settings.value("DateStyle").startswith("ISO"):
        raise unsupported(
            "a date as text within a query, with this DateStyle",
            "Select the date itself, use to_char(), or SET DateStyle = ISO.",
        )
    if found.shows_octets and settings.value("bytea_output") == ESCAPE:
        raise unsupported(
            "bytea as text within a query, with this bytea_output",
            "Use encode(), select the bytea itself, or SET bytea_output = hex.",
        )
    if found.shows_floats and int(settings.value("extra_float_digits")) < SHORTEST:
        raise unsupported(
            "a float as text within a query, with extra_float_digits below 1",
            "Select the float itself, use to_char() or round(x::numeric, n), or SET extra_float_digits = 1.",
        )
    if found.reads_intervals and settings.reading.shares_sign:
        raise unsupported(
            "an interval of a text within a query, with this IntervalStyle",
            "Use make_interval(), or SET IntervalStyle = postgres.",
        )
    if found.reads_dates and settings.reading.dates != MDY:
        raise unsupported(
            f"a date of a text within a query, in the order {settings.reading.dates}",
            "Use to_date() or to_timestamp(), or SET DateStyle = MDY.",
        )


def _reads_any(calls: list[tuple[Any, tuple[Scalar, ...]]], names: tuple[str, ...]) -> bool:
    """Whether values of some types are made of texts or documents."""
    return any(_is_made(call.type, names) and _take(taken, _WRITTEN) for call, taken in calls if _reads(call))


#: Functions that make a text of bytea in a form of their own.
_OF_OCTETS: Final = frozenset(
    ("encode_hex", "encode_base64", "octets_encode_escape", "octets_as_text", "octets_decoded", "md5")
)
#: Functions whose second argument says how they show and read.
_FORMATTED: Final = ("to_char", "late")


def _reads(node: Any) -> bool:
    """Whether texts among the arguments are values: those of other functions are names of zones and units."""
    return isinstance(node, Cast) or node.type.row is not None or _take(node.arguments, _DOCUMENTS)


def _makes(node: Any, names: tuple[str, ...]) -> bool:
    return (node.type.element or node.type).name in names


def _take(arguments: Iterable[Scalar], names: tuple[str, ...]) -> bool:
    return any(_is_made(item.type, names) for item in arguments)


def _is_made(kind: SqlType, names: tuple[str, ...]) -> bool:
    """Whether a value is, or has elements or fields, of such a type."""
    if (kind.element or kind).name in names:
        return True
    return kind.row is not None and any(_is_made(field, names) for _, field in kind.row.fields)
