"""How a session's settings say that texts of dates and intervals are read.

Owns: ``Reading``, the order of DateStyle and the rule that comes with IntervalStyle. Texts that the catalog keeps are
read in the default way, whatever the settings are.
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
