"""Whether a thread that must not wait long may wait for the disk: the rule of commits on the event loop's own thread.

Handing a commit to the writer thread costs two thread switches and, while both threads have work, waits for Python's
lock: together more than a sync of a good disk (some 100 us). Waiting on the loop's thread costs every other client that
time instead. So it waits while the disk has been quick, and where it is not, tries again so seldom that the tries
themselves cost nothing to speak of. Owns the estimate and its constants; knows nothing of logs or threads.
"""

from __future__ import annotations

from typing import Final

#: Seconds that a commit may take on the loop's thread, on average: what a loop with thirty requests makes others wait
#: anyway.
QUICK: Final = 0.001
#: What one commit counts at most: the average is then beyond ``QUICK`` when most commits are slow, which is the disk,
#: and not when some are, which may as well be a processor that others use.
_MOST: Final = 2 * QUICK
#: The share of time that tries on a slow disk may take of the loop.
_SHARE: Final = 0.01
#: The weight of the newest commit in the average: a disk that takes 5 ms each time is recognised after some 20 commits.
_WEIGHT: Final = 1 / 32


class Patience:
    """A running average of how long commits took."""

    def __init__(self) -> None:
        self._average = 0.0
        self._again = 0.0  # when the next try on a slow disk may come

    def allows(self, now: float) -> bool:
        """Whether to wait for the disk at this time (seconds of a monotonic clock)."""
        return self._average < QUICK or now >= self._again

    def took(self, seconds: float, now: float) -> None:
        """A commit took so long. The first one after slow ones counts alone."""
        if self._average >= QUICK:
            self._average = seconds
        else:
            self._average += (min(seconds, _MOST) - self._average) * _WEIGHT
        if self._average >= QUICK:
            self._again = now + seconds / _SHARE
