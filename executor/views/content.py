"""A state's rows in memory, at the LSN that its view has reached.

Rows are ``base`` + ``tails``: those that arrived are merged in when somebody reads all of it, and a few more are no
reason to copy a large one. What the view's retention has done with goes when they are merged.
"""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa
from msgspec import Struct, field

from executor.embedded.engine import EmbeddedEngine
from planner.incremental.programs.program import State

#: The tails are folded into the base when they have more rows than this, and more than this share of the base.
TAIL_ROWS = 4096
TAIL_SHARE = 0.125
#: Tails kept apart before they are merged into one.
TAILS = 16


class Content(Struct):
    """One state's rows at the LSN that its view has reached."""

    state: State
    base: pa.Table
    needed: Callable[[pa.Table], pa.Table] = lambda table: table
    tails: list[pa.Table] = field(default_factory=list)
    merged: pa.Table | None = None

    @property
    def tables(self) -> list[pa.Table]:
        """What the rows are in, not merged."""
        return [self.base, *self.tails]

    def add(self, run: pa.Table, engine: EmbeddedEngine) -> None:
        """Takes a run in."""
        if run.num_rows == 0:
            return
        self.tails.append(run)
        self.merged = None
        if len(self.tails) > TAILS:
            self.tails = [engine.merge(self.state, self.tails)]
        rows = sum(tail.num_rows for tail in self.tails)
        if rows > TAIL_ROWS and rows > TAIL_SHARE * self.base.num_rows:
            self._fold(engine)

    def emptied(self) -> Content:
        """The same state without rows."""
        return Content(self.state, self.base.slice(0, 0), self.needed)

    def kept(self) -> Content:
        """The rows as they are now, whatever is added here later; the retention drops none of them."""
        return Content(self.state, self.base, tails=list(self.tails), merged=self.merged)

    def snapshot(self, engine: EmbeddedEngine) -> pa.Table:
        """All rows, merged by key."""
        if self.tails and self.base.num_rows <= TAIL_ROWS:
            self._fold(engine)
        if not self.tails:
            return self.base
        if self.merged is None:
            self.merged = engine.merge(self.state, self.tables)
        return self.merged

    def _fold(self, engine: EmbeddedEngine) -> None:
        """Makes base and tails the new base."""
        merged = self.merged if self.merged is not None else engine.merge(self.state, self.tables)
        self.base, self.tails, self.merged = self.needed(merged), [], None
