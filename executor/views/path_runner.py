"""Running a path's statements over an interval of its inputs, on the engine of this process.

Owns: what the leaves of a path's statements stand for.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path as FilePath

import pyarrow as pa

from executor.engine import Inputs, Job, MemoryEngine
from executor.traces.layout import LSN, ORDINAL
from executor.traces.trace import InputTrace
from planner.algebra.nodes import Delta
from planner.algebra.walk import walk
from planner.incremental.names import stored_name
from planner.incremental.programs.program import Path, Program, State, Statement, states_read


class PathRunner:
    """Runs one view's paths. Safe for many threads."""

    def __init__(
        self,
        program: Program,
        engine: MemoryEngine,
        inputs: Mapping[int, InputTrace],
        statics: Mapping[str, pa.Table],
        time_zone: str,
    ) -> None:
        """``inputs`` by oid, ``statics`` by trace name."""
        self.engine = engine
        self.inputs = inputs
        self.statics = statics
        self._time_zone = time_zone
        self._states = program.states
        self._jobs = itertools.count(1)
        #: Ids of the paths that read a row's place.
        self._placed = {path.id for path in program.paths if reads_places(path.statements)}
        #: By the paths' ids, the states that their statements read as they were before a delta.
        self._standing = {path.id: states_read(path.statements) for path in program.paths}

    def rows(self, path: Path, after: int, upto: int) -> int:
        """How many rows an interval of a path's inputs holds."""
        return sum(self.inputs[oid].rows(after, upto) for oid in path.inputs)

    def cut(self, path: Path, after: int, upto: int) -> int:
        """Where an interval of a path had better end, so that memory holds its rows."""
        return min((self.inputs[oid].cut(after, upto) for oid in path.inputs), default=upto)

    def check(self) -> None:
        """Raises why a stream's folder has a file whose rows cannot come."""
        for item in self.inputs.values():
            item.check()

    def run(self, path: Path, after: int, upto: int, before: Callable[[State], list[pa.Table]]) -> dict[str, pa.Table]:
        """Runs of a path's states over (after, upto], by name; ``before`` has a state's rows at ``after``."""
        targets = {statement.target for statement in path.statements}
        states = tuple(state for state in self._states if state.name in targets)
        deltas = {oid: self.inputs[oid].delta(after, upto, path.id in self._placed) for oid in path.inputs}
        standing = {
            state.name: named((state,), state.name, self.engine.merge(state, before(state)))
            for state in states
            if state.name in self._standing[path.id]
        }
        inputs = Inputs(deltas, {**self.statics, **standing} if standing else self.statics)
        job = Job(next(self._jobs), path.statements, states, inputs, after, upto, timezone=self._time_zone)
        return {name: named(states, name, run) for name, run in self.engine.run(job).runs.items()}


def reads_places(statements: Iterable[Statement]) -> bool:
    """Whether statements depend on when a row came."""
    return any(
        not {LSN, ORDINAL}.isdisjoint(item.sources)
        for statement in statements
        for item in walk(statement.relation)
        if isinstance(item, Delta)
    )


def named(states: Iterable[State], name: str, run: pa.Table | tuple[FilePath, ...]) -> pa.Table:
    """A run as its trace keeps it: columns under the names that snapshots refer to."""
    assert not isinstance(run, tuple), "the embedded engine gives tables"
    state = next(state for state in states if state.name == name)
    return run.rename_columns([stored_name(column) for column in state.columns])
