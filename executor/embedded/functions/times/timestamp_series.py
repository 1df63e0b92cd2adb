"""generate_series() of instants in a zone with clock changes (timestamptz_pl_interval).

Owns: ``moment_series``. Each instant is the one before it plus a step, whose months and days follow the zone's
calendar.
"""

from __future__ import annotations

import calendar
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Final

from catalog.values.errors import SqlError
from catalog.values.times.zones import session_zone, to_utc

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MICRO: Final = timedelta(microseconds=1)
_DAY: Final = 86_400_000_000


def moment_series(first: int, last: int, months: int, days: int, micros: int, zone: str) -> list[int]:
    """The instants from first to last, in microseconds since 1970. Raises 22023 and 22008."""
    direction = (months * 30 + days) * _DAY + micros
    if not direction:
        raise SqlError("22023", "step size cannot equal zero")
    rules = session_zone(zone)
    found = []
    while (first <= last) if direction > 0 else (first >= last):
        found.append(first)
        try:
            first = _after(first, months, days, rules) + micros
        except (OverflowError, ValueError):
            raise SqlError("22008", "timestamp out of range") from None
    return found


def _after(moment: int, months: int, days: int, rules: tzinfo) -> int:
    """The instant this many months, then days later in a zone's calendar."""
    if months:
        local = _local(moment, rules)
        year, month = divmod(local.year * 12 + local.month - 1 + months, 12)
        day = min(local.day, calendar.monthrange(year, month + 1)[1])
        moment = _instant(local.replace(year=year, month=month + 1, day=day), rules)
    if days:
        moment = _instant(_local(moment, rules) + timedelta(days=days), rules)
    return moment


def _local(moment: int, rules: tzinfo) -> datetime:
    return (_EPOCH + moment * _MICRO).astimezone(rules).replace(tzinfo=None)


def _instant(local: datetime, rules: tzinfo) -> int:
    return (to_utc(local, rules) - _EPOCH) // _MICRO
