"""Dates and times as items of paths: the results of .datetime(), their texts and their order.

Owns: ``Moment``. Items of different types are compared after PostgreSQL's casts (compareDatetime() in jsonpath_exec.c):
a date is its midnight, and a value without a zone is in the session's zone, in the functions whose names end in _tz.
"""

from __future__ import annotations

from datetime import datetime, timedelta, tzinfo
from typing import Final

from msgspec import Struct

from catalog.values.errors import SqlError
from catalog.values.jsonpath.errors import PathError
from catalog.values.times.pattern_fields import shape_of
from catalog.values.times.pattern_reading import Beyond, Standard, read_standard
from catalog.values.times.zones import session_zone, to_utc

#: The result of .type(), by whether the item has a date, a time and a zone.
_NAMES: Final = {
    (True, False, False): "date",
    (False, True, False): "time without time zone",
    (False, True, True): "time with time zone",
    (True, True, False): "timestamp without time zone",
    (True, True, True): "timestamp with time zone",
}
_SHORT: Final = {
    "date": "date",
    "time without time zone": "time",
    "time with time zone": "timetz",
    "timestamp without time zone": "timestamp",
    "timestamp with time zone": "timestamptz",
}
#: The ISO patterns, which are tried in this order.
_ZONES: Final = ("TZH:TZM", "TZH")
_CLOCKS: Final = ("HH24:MI:SS.US", "HH24:MI:SS")
_DAYS: Final = ("yyyy-mm-dd ", 'yyyy-mm-dd"T"')
_PATTERNS: Final = (
    "yyyy-mm-dd",
    *(f"{clock}{zone}" for clock in _CLOCKS for zone in _ZONES),
    *_CLOCKS,
    *(f"{days}{clock}{zone}" for days in _DAYS for clock in _CLOCKS for zone in _ZONES),
    *(f"{days}{clock}" for days in _DAYS for clock in _CLOCKS),
)
_DATED: Final = frozenset(("date", "timestamp without time zone", "timestamp with time zone"))
_MINUTE: Final = timedelta(minutes=1)


class Moment(Struct, frozen=True):
    """A date or a time: ``name`` is its type, ``local`` the value in its text, ``east`` its offset in seconds east of
    Greenwich."""

    name: str
    local: datetime
    east: timedelta | None

    def __str__(self) -> str:
        """The text in JSON (JsonEncodeDateTime)."""
        days = self.local.date().isoformat() if self.name in _DATED else ""
        if self.name == "date":
            return days
        clock = self.local.time().isoformat("microseconds").rstrip("0").removesuffix(".")
        return days + ("T" if days else "") + clock + ("" if self.east is None else _offset(self.east))


def _offset(east: timedelta) -> str:
    minutes = abs(east) // _MINUTE
    return f"{'-' if east < timedelta() else '+'}{minutes // 60:02}:{minutes % 60:02}"


def read_moment(text: str, template: str | None) -> Moment:
    """A text read with a template, or with the first ISO pattern that it fits. Raises PathError, and 22007 and 0A000
    for unsupported templates and years."""
    if template is not None:
        shape_of(template)
        return _read(text, template)
    for pattern in _PATTERNS:
        try:
            return _read(text, pattern)
        except PathError:
            pass
    hint = "Use a datetime template argument to specify the input data format."
    raise PathError("22031", f'datetime format is not recognized: "{text}"', hint=hint)


def _read(text: str, pattern: str) -> Moment:
    try:
        found: Standard = read_standard(text, pattern)
    except Beyond:
        raise
    except SqlError as error:
        raise PathError(error.sqlstate, error.message, error.detail, error.hint) from None
    shape = found.shape
    return Moment(_NAMES[shape.is_dated, shape.is_timed, shape.is_zoned], found.local, found.east)


def order(left: Moment, right: Moment, zone: str) -> int | None:
    """-1, 0 or 1; None for a time of day and a date. Raises 0A000 if ``zone``, the session's, is needed and empty."""
    if (left.name in _DATED) != (right.name in _DATED):
        return None
    if (left.east is None) != (right.east is None):
        if not zone:
            names = sorted((left, right), key=lambda item: item.east is not None)
            words = " to ".join(_SHORT[item.name] for item in names)
            hint = "Use *_tz() function for time zone support."
            raise SqlError("0A000", f"cannot convert value from {words} without time zone usage", hint=hint)
        left, right = _zoned(left, zone), _zoned(right, zone)
    first, second = _place(left), _place(right)
    return (first > second) - (first < second)


def _zoned(item: Moment, zone: str) -> Moment:
    """A value in the session's zone if it has none; a time of day has the zone's current offset."""
    if item.east is not None:
        return item
    found: tzinfo = session_zone(zone)
    if item.name in _DATED:
        utc = to_utc(item.local, found)
        return Moment("timestamp with time zone", item.local, item.local - utc.replace(tzinfo=None))
    east = datetime.now(found).utcoffset()
    assert east is not None
    return Moment("time with time zone", item.local, east)


def _place(item: Moment) -> tuple[timedelta, timedelta]:
    """The instant as a sort key; times of day at the same instant are sorted from east to west."""
    east = item.east or timedelta()
    since = item.local - datetime.min - east
    return (since, timedelta()) if item.name in _DATED else (since, -east)
