"""How long a record waits for its rows: for clients that insert again as soon as they are answered.

Eight such clients fall into two groups of four, one at the disk and one on its way there, and each sync is for half of
them. A record that waits the tenth of a millisecond that an answered client takes to come back has them all, and the
disk is asked half as often (PostgreSQL's ``commit_delay``, which has to be set, knows neither when nor for how many).
Owns the decision only: ``executor/streams/appender`` gathers.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

#: Seconds that a record waits at most: what a sync takes on a fast disk, so that the wait never costs more than it.
LONGEST: Final = 0.0002
#: Records after which one waits for twice as many statements as lately came in time.
_TRIAL: Final = 16


class CommitDelay:
    """Learns how many statements come back in time. For one thread."""

    def __init__(self, clock: Callable[[], float] = time.perf_counter) -> None:
        self._clock = clock
        #: How many statements came in time lately, and what the next record waits for.
        self._prompt = self._expected = 1
        self._records = 0
        self._until = 0.0

    def expect(self, known: int) -> None:
        """A sync has ended, and ``known`` statements are answered now or wait: those that the next record may have.

        Clients that did not come back in time are not waited for, except now and then.
        """
        if known > self._prompt:
            self._records += 1
            if self._records == _TRIAL:
                self._records, self._prompt = 0, min(2 * self._prompt, known)
        self._expected = min(known, self._prompt)
        self._until = self._clock() + LONGEST

    def goes_on(self, here: int) -> bool:
        """Whether a record that has ``here`` statements waits on."""
        if here >= self._expected or self._expected == 1:  # a client alone is not waited for
            return False
        if self._clock() < self._until:
            return True
        self._prompt = max(here, 1)
        return False
