"""Offsets of time zones where Arrow lacks them: its rules end with 2037, and it does not know zones that a session
defines."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, Final
from zoneinfo import ZoneInfo

import numpy as np

from catalog.values.times.zones import is_ruled, session_zone
from protocol.values.codec import Vector

#: Seconds: clocks change at multiples of a quarter of an hour.
_RULES_END: Final = int(datetime(2037, 12, 31, tzinfo=UTC).timestamp())
_QUARTER: Final = 900


def has_rules(zone: str) -> bool:
    """Whether a zone's offset from UTC may change."""
    return isinstance(session_zone(zone), ZoneInfo)


def is_later(seconds: Vector, zone: str) -> Vector:
    """A mask of the instants, in the years up to 9999, for which this module must find the offset."""
    return ((seconds >= _RULES_END) & has_rules(zone)) | is_ruled(zone)


def east(seconds: Vector, zone: str) -> Vector:
    """A zone's offset at instants, in seconds east of Greenwich."""
    return _asked(seconds, zone, lambda moment: int(moment.utcoffset().total_seconds()), "i8")


def names(seconds: Vector, zone: str) -> Vector:
    """A zone's abbreviation at instants: CET, CEST."""
    return _asked(seconds, zone, datetime.tzname, "O")


def _asked(seconds: Vector, zone: str, ask: Callable[[Any], Any], kind: str) -> Vector:
    rules = session_zone(zone)
    step = 1 if is_ruled(zone) else _QUARTER
    steps, codes = np.unique(seconds // step, return_inverse=True)
    found = np.array([ask(datetime.fromtimestamp(int(item) * step, rules)) for item in steps], kind)
    return found[codes]
