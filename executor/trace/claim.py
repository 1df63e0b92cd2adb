"""Claims: advisory leases that keep two engines from doing the same work (architecture section 3).

A claim says who works on which interval of a path, and until when that is believed. It is no lock: only a commit
counts. What it does fix is an upper LSN at which readers cut their memory-only runs, so that the commit replaces whole
ones.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace


@dataclass(frozen=True, slots=True)
class Claim:
    """Somebody computes a path's runs over (``after``, ``upto``]. ``epoch`` grows with every claim of the path."""

    path: int
    after: int
    upto: int
    holder: str
    epoch: int
    expires: float  # by the clock of ``Claims``


class Claims:
    """The claims of one view's paths. Not locked: the owner's lock covers it."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._claims: dict[int, Claim] = {}

    def take(self, path: int, after: int, upto: int, holder: str, lease: float) -> Claim | None:
        """A claim for ``lease`` seconds, or None while somebody else's is alive."""
        if self.live(path) is not None:
            return None
        known = self._claims.get(path)
        claim = Claim(path, after, upto, holder, known.epoch + 1 if known else 1, self._clock() + lease)
        self._claims[path] = claim
        return claim

    def live(self, path: int) -> Claim | None:
        """The claim on a path that has neither ended nor expired."""
        claim = self._claims.get(path)
        return claim if claim is not None and claim.expires > self._clock() else None

    def renew(self, claim: Claim, lease: float) -> Claim | None:
        """The claim with a new lease, or None when a later one took its place."""
        known = self._claims.get(claim.path)
        if known is None or known.epoch != claim.epoch:
            return None
        self._claims[claim.path] = replace(known, expires=self._clock() + lease)
        return self._claims[claim.path]

    def end(self, claim: Claim) -> None:
        """The work is done or given up; a later claim is left alone."""
        known = self._claims.get(claim.path)
        if known is not None and known.epoch == claim.epoch:
            self._claims[claim.path] = replace(known, expires=self._clock())
