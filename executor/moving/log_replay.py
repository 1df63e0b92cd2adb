"""A view's states after more rows of its streams, by the log of their home."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa
from msgspec import Struct
from msgspec.structs import replace

from executor.commit.records import FilesArrived
from executor.core.core import Core
from executor.embedded.engine import EmbeddedEngine
from executor.moving.view_artifact import LeavingView
from executor.replicas.replica import logged_rows
from executor.views.runtime import ViewRuntime
from planner.incremental.programs.program import State


class _Rows(Struct, frozen=True):
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

    def check(self) -> None:
        pass


def brought(core: Core, home: str, leaving: LeavingView, starts: Mapping[int, int], upto: int) -> LeavingView:
    """A view at a later LSN of its home, by whose log; ``starts`` says up to where its states have the rows of each
    stream. Raises the error that rows make the view's value, and what ``logged_rows`` does."""
    found = leaving
    for stream in leaving.streams:  # whose paths are independent of each other
        files: list[FilesArrived] = []
        for rows, named in logged_rows(core, home, stream, starts[stream.oid], upto):
            files += named
            if rows.num_rows:
                found = replace(found, states=_after(core.engine, found, stream.oid, rows))
        if files:
            arrived = {stream.oid: found.arrived[stream.oid].and_then(files)}
            found = replace(found, arrived={**found.arrived, **arrived})
    return replace(found, at=upto)


def _after(engine: EmbeddedEngine, leaving: LeavingView, stream: int, rows: pa.Table) -> dict[str, pa.Table]:
    """A view's states after more rows of a stream."""
    program = leaving.program
    frontiers = {path.id: 0 for path in program.paths}
    feeds = {oid: _Rows(rows if oid == stream else rows.slice(0, 0)) for oid in program.inputs}

    def load(state: State) -> list[pa.Table]:
        return [leaving.states[state.name]]

    runtime = ViewRuntime(leaving.view, program, engine, feeds, leaving.statics, frontiers, load)
    runtime.advance(1)
    return {name: state.snapshot() for name, state in runtime.states.items()}
