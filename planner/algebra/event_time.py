"""Windows over event time: their lengths, a stream's watermark, and which windows a view keeps.

Owns the arithmetic, in microseconds: a day is 24 hours here, as in date_bin, so that a window has the same length in
every time zone. The watermark of a view's stream is the latest value of one column less a delay. It depends on the
view's rows of that stream alone, so at an LSN it is equal for all batches, engines and restarts that led there.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from msgspec import Struct

from catalog.values.types import INTERVAL
from planner.algebra.nodes import Call, Literal, Scalar

_DAY: Final = 86_400_000_000


#: Stands for whether a view shows a session, by the time of its last row and the gap: ``incremental.retention`` says.
SHOWN_SESSION: Final = "shown_session"


class Watermark(Struct, frozen=True):
    """The latest value of a stream's ``column``, less ``delay`` microseconds."""

    column: str
    delay: int


class Keeping(Struct, frozen=True):
    """The groups that a continuous view shows, by the end of their windows and the watermark (by the stream's oid).

    With ``retention``, in microseconds: those that ended less than so long before the watermark, or later. With
    ``final``: those that ended at the watermark or before it.
    """

    watermarks: Mapping[int, Watermark]
    retention: int | None
    final: bool


def microseconds(length: Scalar) -> int:
    """A constant interval without months."""
    assert isinstance(length, Literal)
    assert isinstance(length.value, tuple)
    return span(length.value)


def span(value: tuple[int, int, int]) -> int:
    """An interval's (months, days, microseconds) without months."""
    months, days, micros = value
    assert months == 0, "windows have no months"
    return days * _DAY + micros


def later(start: Scalar, size: int) -> Scalar:
    """A time ``size`` microseconds later."""
    return Call("add", (start, Literal((0, 0, size), INTERVAL)), start.type)
