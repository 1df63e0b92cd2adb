"""How a session's settings have texts of dates and intervals read.

Owns: ``Reading``, the order of DateStyle and the rule that comes with IntervalStyle. What is kept is read in the usual
way by everybody.
"""

from __future__ import annotations

from typing import Final

from msgspec import Struct

from catalog.values.times.time_fields import MDY


class Reading(Struct, frozen=True):
    """The order in which a date's numbers stand, and whether a sign before an interval may be that of all its fields
    (``catalog.values.times.intervals.parse_interval``)."""

    dates: str = MDY
    shares_sign: bool = False


USUAL: Final = Reading()
