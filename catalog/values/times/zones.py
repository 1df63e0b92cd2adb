"""Time zones by the names that PostgreSQL accepts, for Python and for Arrow.

Owns: look-up of names, abbreviations and fixed offsets. What abbreviations mean is PostgreSQL's Default set
(``catalog.postgres``); the rules of zones are the system's tz database. Some names are both a zone and an abbreviation,
with different meanings: CET as the session's zone has summer time, in a text it is always UTC+1.
"""

from __future__ import annotations

import io
import re
import struct
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from functools import cache
from typing import Final
from zoneinfo import ZoneInfo, available_timezones

from msgspec import Struct

from catalog.postgres import rows
from catalog.values.errors import SqlError, unsupported

_HOURS: Final = re.compile(r"([+-]?)(\d{1,2})(?::(\d{2}))?\Z", re.ASCII)
_RULE: Final = re.compile(
    r"(?:[A-Za-z]{3,}|<[A-Za-z0-9:+-]*>)?([+-]?)(\d{1,2})(?::([0-5]\d))?(?::([0-5]\d))?\Z", re.ASCII
)
#: Hours, minutes and seconds with colons, or hours and minutes without.
_DISPLACEMENT: Final = re.compile(r"([+-])(\d{1,8})(?::(\d{1,2})(?::(\d{1,2}))?)?\Z", re.ASCII)
_NAME, _CLOCK, _DAY = (
    r"(?:[A-Za-z]{3,}|<[A-Za-z0-9:+-]{3,}>)",
    r"[0-9]{1,3}(?::[0-5]?\d){0,2}",
    r"(?:J?\d{1,3}|M\d{1,2}\.\d\.\d)",
)
#: A name and hours west of Greenwich, the same for summer time, and the days on which summer time begins and ends.
_SUMMERS: Final = re.compile(
    rf"{_NAME}[+-]?{_CLOCK}{_NAME}(?:[+-]?{_CLOCK})?(?:,{_DAY}(?:/[+-]?{_CLOCK})?){{2}}\Z", re.ASCII
)
_UNRULED: Final = re.compile(rf"{_NAME}[+-]?{_CLOCK}{_NAME}(?:[+-]?{_CLOCK})?\Z", re.ASCII)
_FARTHEST: Final = 15
#: Names of zones without rules, for which abbreviations and the tz database agree.
UTC_NAMES: Final = ("UTC", "GMT", "Etc/UTC", "Etc/GMT", "UCT", "Zulu")
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
#: The distance between two checks of a zone's offset, and the years that are checked.
_STEP: Final = timedelta(days=7)
_FROM, _TO = datetime(1880, 1, 1, tzinfo=UTC), datetime(2038, 1, 1, tzinfo=UTC)


class Abbreviation(Struct, frozen=True):
    """A zone abbreviation after a time: a fixed offset ``east`` of Greenwich, or the meaning that a ``zone`` gives
    it."""

    east: timedelta | None
    zone: str
    is_summer: bool


@cache
def abbreviations() -> Mapping[str, Abbreviation]:
    """The abbreviations of PostgreSQL's Default set, in lower case."""
    found = {}
    for row in rows("timezone_abbreviations"):
        name, meaning = str(row["abbrev"]), str(row["meaning"])
        east = None if "/" in meaning else timedelta(seconds=int(meaning))
        found[name.lower()] = Abbreviation(east, "" if east is not None else meaning, row["is_dst"] == "t")
    return found


class _Changing(tzinfo):
    """An abbreviation whose meaning has changed over time (DetermineTimeZoneAbbrevOffset)."""

    def __init__(self, name: str, zone: str) -> None:
        self._name, self._zone = name.upper(), ZoneInfo(zone)

    def east_at(self, moment: datetime) -> timedelta:
        """Its offset at a moment: the zone's offset when it last had this abbreviation, else when it first has it; if
        it never has, the zone's offset at the moment."""
        uses = [(since, east) for since, name, east in _clocks(self._zone.key) if name == self._name]
        before = [east for since, east in uses if since <= moment]
        if uses:
            return before[-1] if before else uses[0][1]
        return moment.astimezone(self._zone).utcoffset() or timedelta()

    def utcoffset(self, when: datetime | None, /) -> timedelta | None:
        return None if when is None else self.east_at(to_utc(when.replace(tzinfo=None), self._zone))

    def dst(self, when: datetime | None, /) -> timedelta | None:
        return None

    def tzname(self, when: datetime | None, /) -> str:
        return self._name

    def fromutc(self, when: datetime, /) -> datetime:
        return when + self.east_at(when.replace(tzinfo=UTC))


@cache
def _clocks(zone: str) -> tuple[tuple[datetime, str | None, timedelta], ...]:
    """A zone's abbreviations and offsets, each with the moment of the change to it."""
    rules = ZoneInfo(zone)

    def clock(moment: datetime) -> tuple[str | None, timedelta]:
        local = moment.astimezone(rules)
        return local.tzname(), local.utcoffset() or timedelta()

    looked = _FROM
    found = [(looked, *clock(looked))]
    while looked < _TO:
        after = looked + _STEP
        if clock(after) != found[-1][1:]:
            low, high = looked, after
            while high - low > timedelta(seconds=1):
                middle = (low + (high - low) / 2).replace(microsecond=0)
                low, high = (middle, high) if clock(middle) == clock(low) else (low, middle)
            found.append((high, *clock(after)))
        looked = after
    return tuple(found)


@cache
def _names() -> dict[str, str]:
    return {name.lower(): name for name in available_timezones()}


@cache
def find_zone(name: str) -> tzinfo:
    """The zone for an abbreviation, a name, or hours east of Greenwich (``+2``, ``-03:30``). Raises 22023."""
    match = _HOURS.match(name)
    if match:
        offset = timedelta(hours=int(match[2]), minutes=int(match[3] or 0))
        return timezone(-offset if match[1] == "-" else offset)
    known = abbreviations().get(name.lower())
    if known is None:
        return session_zone(name)
    if known.east is None:
        return _Changing(name, known.zone)
    return timezone(known.east) if known.east else UTC


@cache
def session_zone(name: str) -> tzinfo:
    """The zone for a name or a POSIX rule, which a session's setting may be. Raises 22023."""
    known = _names().get(name.lower())
    if known is None:
        found = _posix_zone(name.upper())
        if found is None:
            raise SqlError("22023", f'time zone "{name}" not recognized')
        return found
    return UTC if known in UTC_NAMES else ZoneInfo(known)


@cache
def _posix_zone(text: str) -> tzinfo | None:
    """The zone that a text describes: an optional name and hours west of Greenwich, with the rule of summer time if
    there is one (tzset(3)); None for other texts."""
    fixed = _RULE.match(text)
    if fixed is not None:
        name = re.split(r"[-+0-9]", text, maxsplit=1)[0] if text[0] != "<" else text[1 : text.index(">")]
        east = fixed_offset(text) or timedelta()
        if abs(east) >= timedelta(days=1):
            raise unsupported(f"the time zone {text}", "Use hours below 24.")
        return timezone(east, name)
    if _SUMMERS.match(text) is None:
        if _UNRULED.match(text):
            raise unsupported(
                "a time zone with summer time but no rule for it", f"Add the rule, as in '{text},M3.2.0,M11.1.0'."
            )
        return None
    block = struct.pack(">4sc15x6l7x", b"TZif", b"2", 0, 0, 0, 0, 1, 1)  # a zone file with only the rule
    try:
        return ZoneInfo.from_file(io.BytesIO(block + block + f"\n{text}\n".encode()))
    except ValueError:
        return None


def posix_name(text: str) -> str | None:
    """PostgreSQL's name of a zone that a text describes; None for other texts."""
    return text.upper() if _posix_zone(text.upper()) is not None else None


def is_region(name: str) -> bool:
    """Whether a zone is in the tz database."""
    return name.lower() in _names()


def is_ruled(name: str) -> bool:
    """Whether a session's zone has a summer time rule of its own, which neither Arrow nor an engine knows."""
    zone = session_zone(name)
    return isinstance(zone, ZoneInfo) and not zone.key


def east_at(micros: int, name: str) -> int:
    """A zone's offset, in microseconds east of Greenwich, at an instant in microseconds since 1970."""
    moment = _EPOCH + timedelta(microseconds=micros)
    return (moment.astimezone(find_zone(name)).utcoffset() or timedelta()) // timedelta(microseconds=1)


def east_of_local(micros: int, name: str) -> int:
    """A zone's offset at a local time."""
    local = _EPOCH.replace(tzinfo=None) + timedelta(microseconds=micros)
    return (local - to_utc(local, find_zone(name)).replace(tzinfo=None)) // timedelta(microseconds=1)


def fixed_offset(name: str) -> timedelta | None:
    """The constant offset of a zone that is an abbreviation, or hours west with an optional name (POSIX); None for
    other zones, and for abbreviations whose meaning has changed."""
    known = abbreviations().get(name.lower())
    if known is not None:
        return known.east
    match = _RULE.match(name)
    if match is None or name.lower() in _names():
        return None
    west = timedelta(hours=int(match[2]), minutes=int(match[3] or 0), seconds=int(match[4] or 0))
    return west if match[1] == "-" else -west


def displacement(text: str) -> timedelta | None:
    """The offset of ``+2``, ``-0330`` or ``+05:30:15`` east of Greenwich; None for texts in another form. Raises
    OverflowError for offsets out of range (DecodeTimezone)."""
    match = _DISPLACEMENT.match(text)
    if match is None:
        return None
    sign, number, minutes, seconds = match[1], int(match[2]), int(match[3] or 0), int(match[4] or 0)
    hours, minutes = divmod(number, 100) if len(match[2]) > 2 else (number, minutes)
    if hours > _FARTHEST or minutes > 59 or seconds > 59:
        raise OverflowError
    offset = timedelta(hours=hours, minutes=minutes, seconds=seconds)
    return -offset if sign == "-" else offset


@cache
def arrow_zone(name: str) -> str:
    """The zone by Arrow's name, UTC for a zone that Arrow lacks (``is_ruled``). Raises 22023."""
    zone = session_zone(name)
    if isinstance(zone, ZoneInfo):
        return zone.key or "UTC"
    seconds = int((zone.utcoffset(None) or timedelta()).total_seconds())
    sign = "-" if seconds < 0 else "+"
    return "UTC" if seconds == 0 else f"{sign}{abs(seconds) // 3600:02}:{abs(seconds) // 60 % 60:02}"


def to_utc(local: datetime, zone: tzinfo) -> datetime:
    """The instant of a local time in a zone.

    A local time that a clock change skips is read with the offset before the change, and one that it repeats with the
    offset after it (DetermineTimeZoneOffset).
    """
    before, after = local.replace(tzinfo=zone, fold=0), local.replace(tzinfo=zone, fold=1)
    skipped = (before.utcoffset() or timedelta()) < (after.utcoffset() or timedelta())
    return (before if skipped else after).astimezone(UTC)
