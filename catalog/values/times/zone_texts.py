"""The zones within PostgreSQL's date and time texts: offsets, names, and POSIX rules.

Owns: what a zone's text means there, in the steps of PostgreSQL 15's datetime.c (DecodeTimezone) and localtime.c
(tzparse). ``zones`` has the zones of names and the session's.
"""

from __future__ import annotations

import re
from datetime import timedelta, tzinfo
from typing import Final

from catalog.values.errors import SqlError, unsupported
from catalog.values.times.time_fields import Displacement, Malformed
from catalog.values.times.zones import session_zone

#: The zone in a text: its offset east of Greenwich, or a zone's rules.
Zone = timedelta | tzinfo

#: A zone with a user's own name and its hours west, which may be negative or many (POSIX).
_RULE: Final = re.compile(r"[a-z/_.:]+([+-]?)(\d+)(?::(\d+)(?::(\d+))?)?(?P<summers>.+)?", re.ASCII)
_MOST_HOURS: Final = 167


def east_of(text: str) -> timedelta:
    """An offset in seconds east of Greenwich. Raises ``Malformed`` and ``Displacement``."""
    match = re.match(r"[+-](\d+)(?::(\d*)(?::(\d*))?)?", text, re.ASCII)
    if match is None:
        raise Malformed
    hours, minutes, seconds = match[1], match[2] or "0", match[3] or "0"
    if match[2] is None and match.end() == len(text) > 3:
        hours, minutes = hours[:-2] or "0", hours[-2:]
    if int(hours) > 15 or int(minutes) > 59 or int(seconds) > 59:
        raise Displacement
    if match.end() < len(text):
        raise Malformed
    east = timedelta(hours=int(hours), minutes=int(minutes), seconds=int(seconds))
    return -east if text[0] == "-" else east


def zone_named(name: str) -> Zone | None:
    """A zone by its name or a POSIX rule (pg_tzset)."""
    try:
        return session_zone(name)
    except SqlError as error:
        match = _RULE.fullmatch(name)
        if match is None:
            if error.sqlstate == "0A000":
                raise
            return None
    if match["summers"] is not None:
        raise unsupported(
            f'the time zone "{name}", which has no rule for summer time', "Name a region, as Europe/Berlin."
        )
    hours, minutes, seconds = (int(digits or 0) for digits in match.group(2, 3, 4))
    if hours > _MOST_HOURS or minutes > 59 or seconds > 60:
        return None
    west = timedelta(hours=hours, minutes=minutes, seconds=seconds)
    return west if match[1] == "-" else -west
