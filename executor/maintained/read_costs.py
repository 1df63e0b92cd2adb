"""What reads of a view take either way: computing its rows anew, and following the changes.

Owns: the measure and when one way counts as dearer. The measure is the processor time of the reading thread, to which
other clients of a busy machine add little; an engine's other threads run while this one does. Medians of a few reads
are compared, so that one read more or less than the others changes no decision.

Keeping rows is an outlay: filling them takes several evaluations, which the changes that are followed earn back. Where
they are given up since following is dearer, what is not earned back is written off over the evaluations that come
before the next trial, so that trials add at most ``SHARE`` to the time of a view that is better computed.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from msgspec import Struct, field

from executor.embedded.detached_statements import thread_seconds

#: Seconds of an evaluation from which on a view's rows are kept.
WORTH_SECONDS: Final = 0.003
#: Seconds that evaluations of a view take together before its rows are kept.
OUTLAY_SECONDS: Final = 0.2
#: Changes that are followed before their cost counts.
TRIALS: Final = 3
#: The part of the time of evaluations that trials may add.
SHARE: Final = 0.1
#: Changes without a loss after which the losses before are of no account.
_SOUND: Final = 16
#: The most evaluations between a loss and the next trial.
_LONGEST_PAUSE: Final = 1024
#: Times of which the median counts.
_RECENT: Final = 5


class _Times(Struct):
    """The seconds of the last reads of a way, without the first one: it makes plans and indexes."""

    count: int = 0
    total: float = 0.0
    recent: list[float] = field(default_factory=list)

    def add(self, seconds: float) -> None:
        self.count += 1
        self.total += seconds
        if self.count > 1:
            self.recent = [*self.recent[1 - _RECENT :], seconds]

    @property
    def median(self) -> float | None:
        """Of an even number of times the lower one in the middle."""
        return statistics.median_low(self.recent) if self.recent else None


class Total(Struct, frozen=True):
    """How often something was done, and the seconds of processor time that all of it has taken."""

    count: int = 0
    seconds: float = 0.0

    def after(self, seconds: float) -> Total:
        """With one more."""
        return Total(self.count + 1, self.seconds + seconds)


#: What is done with a view's rows: they are computed anew, made to be kept, or follow a change.
KINDS: Final = ("evaluation", "fill", "change")


class ReadCosts(Struct):
    """Those of one view."""

    _computed: _Times = field(default_factory=_Times)
    _followed: _Times = field(default_factory=_Times)
    _losses: int = 0
    #: Seconds of filling the rows that are kept, the last time.
    filled: float = 0.0
    #: Seconds that following changes has saved since the rows were filled, less those of filling them.
    _balance: float = 0.0
    #: Evaluations until rows are kept again.
    pause: int = 0
    #: Of each of ``KINDS``, all that there has been.
    totals: dict[str, Total] = field(default_factory=lambda: dict.fromkeys(KINDS, Total()))

    @contextmanager
    def computing(self) -> Iterator[None]:
        """Around an evaluation."""
        started = thread_seconds()
        yield
        seconds = thread_seconds() - started
        self._computed.add(seconds)
        self._add("evaluation", seconds)
        self.pause = max(0, self.pause - 1)

    @contextmanager
    def filling(self) -> Iterator[None]:
        """Around the evaluations that fill what is kept."""
        started = thread_seconds()
        yield
        self.fill(thread_seconds() - started)

    def fill(self, seconds: float) -> None:
        """To fill what is kept has taken so long."""
        self.filled, self._balance = seconds, -seconds
        self._add("fill", seconds)

    def follow(self, seconds: float) -> None:
        """To follow a change has taken so long."""
        self._followed.add(seconds)
        self._add("change", seconds)
        self._balance += (self.computed or 0.0) - seconds
        if self._followed.count > _SOUND:
            self._losses = 0

    def leave(self, seconds: float) -> None:
        """To follow a change would have taken so long."""
        self._followed.add(seconds)

    def step(self, seconds: float) -> None:
        """To bring a part of what is kept forward has taken so long."""
        self._add("change", seconds)
        self._balance -= seconds

    def lose(self) -> None:
        """Rows that were kept are given up. They are kept again after evaluations that take as long as filling them,
        at least."""
        self._losses += 1
        evaluations = self.filled / self.computed if self.computed else 0
        written_off = -self._balance / (SHARE * self.computed) if self.computed and self.is_dear else 0
        self.pause = int(min(max(1 << self._losses, evaluations, written_off), _LONGEST_PAUSE))
        self._followed = _Times(recent=self._followed.recent)

    def _add(self, kind: str, seconds: float) -> None:
        self.totals[kind] = self.totals[kind].after(seconds)

    @property
    def computed(self) -> float | None:
        """Seconds of an evaluation, once known."""
        return self._computed.median

    @property
    def followed(self) -> float | None:
        """Seconds of following a change, once known."""
        return self._followed.median

    def milliseconds(self, is_followed: bool) -> float | None:
        """Milliseconds of following a change, or of an evaluation, once known."""
        seconds = self.followed if is_followed else self.computed
        return None if seconds is None else seconds * 1000

    @property
    def is_worth(self) -> bool:
        """Whether evaluations take long enough for rows to be kept."""
        is_long = self.computed is not None and self.computed >= WORTH_SECONDS
        return is_long and self._computed.total >= OUTLAY_SECONDS

    @property
    def is_dear(self) -> bool:
        """Whether following changes takes longer than computing anew."""
        if self._followed.count < TRIALS or self.followed is None or self.computed is None:
            return False
        return self.followed > self.computed
