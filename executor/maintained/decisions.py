"""What was decided of how views are maintained, beside what it turned out to take: ``millstream.decisions``.

Owns: the record, in memory, of the last ``MOST`` decisions. A decision is to follow changes by one dataflow and not by
another, or to compute a view's rows at each read. Its measured time is filled in when the next decision of the view is
noted, so that one can be told that was wrong.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Final

from msgspec import Struct, field
from msgspec.structs import replace

#: Decisions that are remembered.
MOST: Final = 1_000
COMPUTED: Final = "recomputation"
FOLLOWED: Final = "by changes"


class Decision(Struct, frozen=True):
    """How a ``view``, by its oid, is maintained from a time on, what was ``rejected``, and the ``reason``; with the
    milliseconds that a change or an evaluation was expected to take either way, and the median of the last ones."""

    view: int
    chosen: str
    rejected: str | None
    reason: str
    estimated: float | None = None
    estimated_rejected: float | None = None
    measured: float | None = None
    decided_at: datetime = field(default_factory=lambda: datetime.now(UTC))


class Decisions:
    """Those of one database. Safe for many threads."""

    def __init__(self, measured: Callable[[int, str], float | None]) -> None:
        """``measured``: the milliseconds that a view, by its oid, takes now by what was chosen."""
        self._measured = measured
        self._lock = threading.Lock()
        self._past: deque[Decision] = deque(maxlen=MOST)
        self._present: dict[int, Decision] = {}

    def note(self, decision: Decision) -> None:
        """Remembers a decision, unless it is the one that stands."""
        with self._lock:
            before = self._present.pop(decision.view, None)
            if before is not None and (before.chosen, before.reason) == (decision.chosen, decision.reason):
                self._present[decision.view] = before
                return
            if before is not None:
                self._past.append(self._with_outcome(before))
            self._present[decision.view] = decision

    def forget(self, view: int) -> None:
        """A view is no more."""
        with self._lock:
            self._present.pop(view, None)

    def all(self) -> list[Decision]:
        """All that are remembered, the last ones last."""
        with self._lock:
            found = [*self._past, *map(self._with_outcome, self._present.values())]
        return sorted(found, key=lambda item: item.decided_at)

    def _with_outcome(self, decision: Decision) -> Decision:
        return replace(decision, measured=self._measured(decision.view, decision.chosen))
