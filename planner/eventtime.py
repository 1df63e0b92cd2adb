"""Lengths of windows over event time, in microseconds.

A day is 24 hours here, as in date_bin: a window has the same length in every time zone.
"""

from __future__ import annotations

from typing import Final

from catalog.types import INTERVAL
from planner.expression import Call, Literal, Scalar

_DAY: Final = 86_400_000_000


def microseconds(length: Scalar) -> int:
    """A constant interval without months."""
    assert isinstance(length, Literal)
    assert isinstance(length.value, tuple)
    months, days, micros = length.value
    assert months == 0, "windows have no months"
    return int(days) * _DAY + int(micros)


def later(start: Scalar, size: int) -> Scalar:
    """A time ``size`` microseconds later."""
    return Call("add", (start, Literal((0, 0, size), INTERVAL)), start.type)
