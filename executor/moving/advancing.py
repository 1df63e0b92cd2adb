"""A view's states after more rows of its stream, away from any database."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from executor.embedded.engine import EmbeddedEngine
from executor.moving.artifact import LeavingView
from executor.views.runtime import ViewRuntime
from planner.program import State


@dataclass(frozen=True, slots=True)
class _Rows:
    """A stream's rows as a feed that has nothing else, at LSN 1."""

    table: pa.Table

    @property
    def total_rows(self) -> int:
        return int(self.table.num_rows)

    def rows(self, after: int, upto: int) -> int:
        return self.total_rows

    def delta(self, after: int, upto: int, places: bool = True) -> pa.Table:
        return self.table

    def publish(self, lsn: int, part: object) -> int:
        raise AssertionError("no rows come")

    def release(self, upto: int) -> None:
        pass


def states_after(engine: EmbeddedEngine, leaving: LeavingView, rows: pa.Table) -> dict[str, pa.Table]:
    """A view's states after more rows. Raises the error that these make the view's value."""
    program, oid = leaving.program, leaving.stream.oid
    feeds, frontiers = {oid: _Rows(rows)}, {oid: 0}

    def load(state: State) -> list[pa.Table]:
        return [leaving.states[state.name]]

    runtime = ViewRuntime(leaving.view, program, engine, feeds, leaving.statics, frontiers, load)
    runtime.advance(1)
    return {name: content.snapshot(engine) for name, content in runtime.contents.items()}
