"""How a session's settings affect the reading of dates and intervals.

Owns: ``Reading``, the order of DateStyle and the rule of IntervalStyle. Texts stored in the catalog are read with the
defaults, whatever the settings are.
"""

from __future__ import annotations

from typing import Final

from msgspec import Struct

from catalog.values.times.time_fields import MDY


class Reading(Struct, frozen=True):
    """The order of the numbers in a date, and whether a sign before an interval may apply to all its fields
    (``catalog.values.times.intervals.parse_interval``)."""

    dates: str = MDY
    shares_sign: bool = False


USUAL: Final = Reading()
