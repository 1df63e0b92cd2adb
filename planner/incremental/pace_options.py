"""What the options of a view say of when it follows changes.

    latency_goal = '200 ms'     a read has at most so much left to follow
    final_work = 0.1            at most this part of what it takes to follow all at once (InQP, section 4.1)
    total_work = 1.5            all steps take at most so many times as much as one would (its dual, section 4.2)
    trigger = 'rows 1000000' | 'every 1 hour' | 'at 06:00' | 'on read'

Owns their texts, and which go together. A read is fresh whatever they say: it follows what is left.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Final

from msgspec import Struct

from catalog.values.errors import SqlError
from catalog.values.times.intervals import parse_interval
from planner.algebra.event_time import span

LATENCY: Final = "latency_goal"
FINAL: Final = "final_work"
TOTAL: Final = "total_work"
TRIGGER: Final = "trigger"
NAMES: Final = (LATENCY, FINAL, TOTAL, TRIGGER)
_GOALS: Final = (LATENCY, FINAL, TOTAL)
_ON_READ: Final = "on read"
_TRIGGERS: Final = "Valid values are 'on read', 'rows' and a number, 'every' and an interval, 'at' and a time of day."
_AT: Final = re.compile(r"at\s+([01]?\d|2[0-3]):([0-5]\d)")
_ROWS: Final = re.compile(r"rows\s+([1-9]\d{0,11})")
_EVERY: Final = re.compile(r"every\s+(\S.*)")
#: The longest interval, a day: it is a pace, not a calendar.
_LONGEST: Final = 86_400.0


class Trigger(Struct, frozen=True):
    """When all changes are followed, unless a read comes first: once there are so many ``rows``, after so many
    ``seconds``, or at a ``minute`` of the day; only then, if it is ``on_read``."""

    rows: int = 0
    seconds: float = 0.0
    minute: int | None = None
    on_read: bool = False

    @property
    def is_timed(self) -> bool:
        """Whether time alone decides."""
        return bool(self.seconds) or self.minute is not None

    @property
    def words(self) -> str:
        """When, of a trigger that is timed."""
        if self.minute is not None:
            return f"at {self.minute // 60:02}:{self.minute % 60:02}"
        return f"every {timedelta(seconds=self.seconds)}"

    def seconds_after(self, now: datetime) -> float:
        """The seconds from a moment, in the view's time zone, to the next one; of a trigger that is timed."""
        if self.minute is None:
            return self.seconds
        today = now.replace(hour=self.minute // 60, minute=self.minute % 60, second=0, microsecond=0)
        then = today if today > now else today + timedelta(days=1)
        return then.timestamp() - now.timestamp()  # what the clocks show may change between


class PaceOptions(Struct, frozen=True):
    """Of the goals at most one: milliseconds of ``latency``, and the ratios ``final`` and ``total``."""

    latency: float | None = None
    final: float | None = None
    total: float | None = None
    trigger: Trigger | None = None

    @property
    def has_goal(self) -> bool:
        """Whether there is a goal."""
        return not (self.latency is None and self.final is None and self.total is None)

    @property
    def has_trigger(self) -> bool:
        """Whether there is a moment at which all changes are followed before a read."""
        return self.trigger is not None and not self.trigger.on_read


def pace_options(options: Mapping[str, str]) -> PaceOptions:
    """Those among a view's options, which have been read."""
    latency, final, total, trigger = (options.get(name) for name in NAMES)
    return PaceOptions(
        None if latency is None else 1000 * read_length(LATENCY, latency, None),
        None if final is None else float(final),
        None if total is None else float(total),
        None if trigger is None else read_trigger(trigger, None),
    )


def read_length(name: str, text: str, position: int | None) -> float:
    """An option's interval in seconds: more than nothing, and a day at most. Raises 22007 and 22023."""
    try:
        value = parse_interval(text)
    except SqlError as error:
        error.position = position
        raise
    seconds = 0.0 if value[0] else span(value) / 1e6
    if not 0 < seconds <= _LONGEST:
        raise _invalid(name, text, "Write an interval above zero, of at most a day, such as '200 ms'.", position)
    return seconds


def read_ratio(name: str, text: str, position: int | None) -> float:
    """The value of ``final_work`` or ``total_work``. Raises 22023."""
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if name == FINAL and not 0 < value <= 1:
        raise _invalid(name, text, "Write a number above 0, and of at most 1, such as 0.1.", position)
    if name == TOTAL and not 1 <= value < float("inf"):
        raise _invalid(name, text, "Write a number of at least 1, such as 1.5.", position)
    return value


def read_trigger(text: str, position: int | None) -> Trigger:
    """A trigger of its text. Raises 22007 and 22023."""
    words = " ".join(text.lower().split())
    if words == _ON_READ:
        return Trigger(on_read=True)
    if found := _ROWS.fullmatch(words):
        return Trigger(rows=int(found[1]))
    if found := _AT.fullmatch(words):
        return Trigger(minute=60 * int(found[1]) + int(found[2]))
    if found := _EVERY.fullmatch(words):
        return Trigger(seconds=read_length(TRIGGER, found[1], position))
    raise _invalid(TRIGGER, text, _TRIGGERS, position)


def require_together(options: Mapping[str, str], positions: Mapping[str, int | None]) -> None:
    """Raises 22023 for options that exclude each other, at the later one of the two. ``positions`` are those of the
    options that a statement names."""
    goals = [name for name in _GOALS if name in options]
    if len(goals) > 1:
        message = f"options {goals[0]} and {goals[1]} exclude each other"
        hint, position = f"Leave one out, or RESET ({goals[0]}) first.", _later(positions, *goals[:2])
        raise SqlError("22023", message, hint=hint, position=position)
    if goals and TRIGGER in options and read_trigger(options[TRIGGER], None).on_read:
        message = f"options {goals[0]} and trigger = 'on read' exclude each other"
        hint, position = "Nothing is followed before a read with this trigger.", _later(positions, goals[0], TRIGGER)
        raise SqlError("22023", message, hint=hint, position=position)


def _later(positions: Mapping[str, int | None], *names: str) -> int | None:
    """The last position of some options."""
    return max((found for name in names if (found := positions.get(name)) is not None), default=None)


def _invalid(name: str, text: str, hint: str, position: int | None) -> SqlError:
    return SqlError("22023", f'invalid value for option "{name}": "{text}"', hint=hint, position=position)
