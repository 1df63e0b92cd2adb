"""Clocks of time zones later than Arrow knows them: its rules end with 2037, Python's do not."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, Final

import numpy as np

from catalog.zones import session_zone
from protocol.values.codec import Vector

#: Seconds. Clocks change at quarters of an hour.
_RULES_END: Final = int(datetime(2037, 12, 31, tzinfo=UTC).timestamp())
_QUARTER: Final = 900


def has_rules(zone: str) -> bool:
    """Whether a zone, as Arrow names it, is not always as far from Greenwich."""
    return zone != "UTC" and zone[0] not in "+-"


def is_later(seconds: Vector, zone: str) -> Vector:
    """Which moments a zone's clock is asked of here, of the years to 9999."""
    return (seconds >= _RULES_END) & has_rules(zone)


def east(seconds: Vector, zone: str) -> Vector:
    """How many seconds east of Greenwich a zone's clock is at moments."""
    return _asked(seconds, zone, lambda moment: int(moment.utcoffset().total_seconds()), "i8")


def names(seconds: Vector, zone: str) -> Vector:
    """What a zone's clock is called at moments: CET, CEST."""
    return _asked(seconds, zone, datetime.tzname, "O")


def _asked(seconds: Vector, zone: str, ask: Callable[[Any], Any], kind: str) -> Vector:
    rules = session_zone(zone)
    quarters, codes = np.unique(seconds // _QUARTER, return_inverse=True)
    found = np.array([ask(datetime.fromtimestamp(int(item) * _QUARTER, rules)) for item in quarters], kind)
    return found[codes]
