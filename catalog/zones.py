"""Time zones by the names that PostgreSQL takes, for Python and for Arrow.

Owns: look-up of names, abbreviations and fixed offsets. The rules themselves are the system's tz database.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from functools import cache
from typing import Final
from zoneinfo import ZoneInfo, available_timezones

from catalog.errors import SqlError

_HOURS: Final = re.compile(r"([+-]?)(\d{1,2})(?::(\d{2}))?\Z", re.ASCII)
_RULE: Final = re.compile(
    r"(?:[A-Za-z]{3,}|<[A-Za-z0-9+-]*>)?([+-]?)(\d{1,2})(?::([0-5]\d))?(?::([0-5]\d))?\Z", re.ASCII
)
#: Hours east of Greenwich of the abbreviations of PostgreSQL's Default set that people write.
ABBREVIATIONS: Final = {
    "z": 0, "zulu": 0, "ut": 0, "utc": 0, "gmt": 0, "wet": 0, "west": 1, "bst": 1, "cet": 1, "cest": 2, "met": 1,
    "mest": 2, "eet": 2, "eest": 3, "msk": 3, "ist": 2, "jst": 9, "kst": 9, "est": -5, "edt": -4, "cst": -6,
    "cdt": -5, "mst": -7, "mdt": -6, "pst": -8, "pdt": -7, "akst": -9, "akdt": -8, "hst": -10,
}  # fmt: skip
#: Of these, those of daylight saving time.
SUMMER: Final = frozenset(("west", "bst", "cest", "mest", "eest", "edt", "cdt", "mdt", "pdt", "akdt"))


@cache
def _names() -> dict[str, str]:
    return {name.lower(): name for name in available_timezones()}


@cache
def find_zone(name: str) -> tzinfo:
    """The zone of a name, an abbreviation, or hours east of Greenwich (``+2``, ``-03:30``). Raises 22023."""
    lower = name.lower()
    if lower in ABBREVIATIONS:
        hours = ABBREVIATIONS[lower]
        return UTC if hours == 0 else timezone(timedelta(hours=hours))
    match = _HOURS.match(name)
    if match:
        offset = timedelta(hours=int(match[2]), minutes=int(match[3] or 0))
        return timezone(-offset if match[1] == "-" else offset)
    if lower in _names():
        return ZoneInfo(_names()[lower])
    raise SqlError("22023", f'time zone "{name}" not recognized')


def fixed_offset(name: str) -> timedelta | None:
    """How far east of Greenwich a zone always is that is an abbreviation, or hours west of it behind a name of one's
    own or none (POSIX); None for every other, and for Moscow's, which was another one for some years."""
    if name.lower() in ABBREVIATIONS and name.lower() != "msk":
        return timedelta(hours=ABBREVIATIONS[name.lower()])
    match = _RULE.match(name)
    if match is None or name.lower() in _names():
        return None
    west = timedelta(hours=int(match[2]), minutes=int(match[3] or 0), seconds=int(match[4] or 0))
    return west if match[1] == "-" else -west


@cache
def arrow_zone(name: str) -> str:
    """The zone as Arrow names it. Raises 22023."""
    zone = find_zone(name)
    if isinstance(zone, ZoneInfo):
        return zone.key
    seconds = int((zone.utcoffset(None) or timedelta()).total_seconds())
    sign = "-" if seconds < 0 else "+"
    return "UTC" if seconds == 0 else f"{sign}{abs(seconds) // 3600:02}:{abs(seconds) // 60 % 60:02}"


def to_utc(local: datetime, zone: tzinfo) -> datetime:
    """An instant of a zone's wall clock.

    A time that a change of the clock skips is read by the clock before it, one that comes twice by the clock after it
    (DetermineTimeZoneOffset).
    """
    before, after = local.replace(tzinfo=zone, fold=0), local.replace(tzinfo=zone, fold=1)
    skipped = (before.utcoffset() or timedelta()) < (after.utcoffset() or timedelta())
    return (before if skipped else after).astimezone(UTC)
