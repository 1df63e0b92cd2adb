"""pg_timezone_names and pg_timezone_abbrevs: the time zones, with their current offsets."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo, available_timezones

import pyarrow as pa

from catalog.system.rows import Row
from catalog.values.times.zones import abbreviations, find_zone


def zone_rows() -> Iterator[Row]:
    """Each zone's current abbreviation, its offset from Greenwich, and whether it has daylight saving time now."""
    now = datetime.now(UTC)
    for name in sorted(available_timezones()):
        local = now.astimezone(ZoneInfo(name))
        is_summer = bool(local.dst())
        yield {
            "name": name,
            "abbrev": local.tzname(),
            "utc_offset": _interval(local.utcoffset() or timedelta()),
            "is_dst": is_summer,
        }


def abbreviation_rows() -> Iterator[Row]:
    """The abbreviations that times may be written with, and their meanings."""
    now = datetime.now(UTC)
    for name, known in abbreviations().items():
        east = now.astimezone(find_zone(name)).utcoffset() or timedelta()
        yield {"abbrev": name.upper(), "utc_offset": _interval(east), "is_dst": known.is_summer}


def _interval(length: timedelta) -> pa.MonthDayNano:
    return pa.MonthDayNano((0, 0, length // timedelta(microseconds=1) * 1000))
