"""Clocks of time zones where Arrow does not know them: its rules end with 2037, and it has none of a session's own."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, Final
from zoneinfo import ZoneInfo

import numpy as np

from catalog.values.times.zones import is_ruled, session_zone
from protocol.values.codec import Vector

#: Seconds. Clocks change at quarters of an hour.
_RULES_END: Final = int(datetime(2037, 12, 31, tzinfo=UTC).timestamp())
_QUARTER: Final = 900


def has_rules(zone: str) -> bool:
    """Whether a zone is not always as far from Greenwich."""
    return isinstance(session_zone(zone), ZoneInfo)


def is_later(seconds: Vector, zone: str) -> Vector:
    """Which moments a zone's clock is asked of here, of the years to 9999."""
    return ((seconds >= _RULES_END) & has_rules(zone)) | is_ruled(zone)


def east(seconds: Vector, zone: str) -> Vector:
    """How many seconds east of Greenwich a zone's clock is at moments."""
    return _asked(seconds, zone, lambda moment: int(moment.utcoffset().total_seconds()), "i8")


def names(seconds: Vector, zone: str) -> Vector:
    """What a zone's clock is called at moments: CET, CEST."""
    return _asked(seconds, zone, datetime.tzname, "O")


def _asked(seconds: Vector, zone: str, ask: Callable[[Any], Any], kind: str) -> Vector:
    rules = session_zone(zone)
    step = 1 if is_ruled(zone) else _QUARTER
    steps, codes = np.unique(seconds // step, return_inverse=True)
    found = np.array([ask(datetime.fromtimestamp(int(item) * step, rules)) for item in steps], kind)
    return found[codes]
