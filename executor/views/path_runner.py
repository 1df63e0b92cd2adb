"""Running a path's statements over an interval of its inputs, on the engine of this process.

Owns: what the leaves of a path's statements stand for, and what becomes of a batch on which they fail, by the view's
option ``on_error``. A batch on which they do not fail costs nothing more.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from pathlib import Path as FilePath

import numpy as np
import pyarrow as pa
from msgspec import Struct
from msgspec.structs import replace

from catalog.objects import RowPolicy, Stream
from catalog.values.errors import SqlError
from executor.engine import Inputs, Job, MemoryEngine
from executor.traces.layout import LSN, ORDINAL
from executor.traces.trace import InputTrace
from executor.views.failing_rows import Runs, error_of, rejections, run_without
from executor.views.failure import is_of_the_rows
from planner.algebra.nodes import Delta, Relation
from planner.algebra.walk import walk
from planner.incremental.names import stored_name
from planner.incremental.programs.program import Path, Program, State, Statement, states_read
from planner.incremental.programs.rejected import REJECTED
from planner.incremental.programs.row_failures import PLACE, tests_of, with_nulls


class Forgiving(Struct, frozen=True):
    """What takes the place of a path's statements where they fail: ``statements`` with NULL for what fails, and
    ``tests`` that give the places of the rows on which something does."""

    statements: tuple[Statement, ...]
    tests: tuple[Relation, ...]


class PathRunner:
    """Runs one view's paths. Safe for many threads."""

    def __init__(
        self,
        program: Program,
        engine: MemoryEngine,
        inputs: Mapping[int, InputTrace],
        statics: Mapping[str, pa.Table],
        time_zone: str,
        streams: Callable[[int], Stream | None] = lambda oid: None,
    ) -> None:
        """``inputs`` by oid, ``statics`` by trace name; ``streams`` knows the streams by oid."""
        self.engine = engine
        self.inputs = inputs
        self.statics = statics
        self._time_zone = time_zone
        self._streams = streams
        self._states = program.states
        self._jobs = itertools.count(1)
        #: Ids of the paths that read a row's place.
        self._placed = {path.id for path in program.paths if reads_places(path.statements)}
        #: By the paths' ids, the states that their statements read as they were before a delta.
        self._standing = {path.id: states_read(path.statements) for path in program.paths}
        #: By the identity of their paths, what takes the place of statements that fail; made when it is first needed.
        self._forgiving: dict[int, tuple[Path, Forgiving]] = {}

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

    def run(
        self, path: Path, after: int, upto: int, before: Callable[[State], list[pa.Table]], policy: RowPolicy = "fail"
    ) -> Runs:
        """Runs of a path's states over (after, upto], by name; ``before`` has a state's rows at ``after``.

        With ``skip`` a run of rejected rows (``REJECTED``) is among them where there are any."""
        deltas = {oid: self.inputs[oid].delta(after, upto, path.id in self._placed) for oid in path.inputs}
        run = partial(self._run, path, after, upto, self._traces(path, before))
        try:
            return run(path.statements, deltas)
        except SqlError as error:
            if policy == "fail" or not is_of_the_rows(error):
                raise
        if policy == "null":
            return run(self._forgiving_of(path).statements, deltas)
        return self._skipping(path, self._delta(path, after, upto), before, partial(run, path.statements))

    def _delta(self, path: Path, after: int, upto: int) -> tuple[int, pa.Table]:
        """The one input of a path, and its rows with their places in the log."""
        (oid,) = path.inputs
        return oid, self.inputs[oid].delta(after, upto)

    def _skipping(
        self,
        path: Path,
        delta: tuple[int, pa.Table],
        before: Callable[[State], list[pa.Table]],
        run: Callable[[Mapping[int, pa.Table]], Runs],
    ) -> Runs:
        """The runs without the rows that fail, and a run of these."""
        oid, rows = delta

        def run_rows(some: pa.Table) -> Runs:
            return run({oid: some})

        leaves = {f"s_{name}": table for name, table in self._traces(path, before).items()}

        def failing(some: pa.Table) -> set[int]:
            placed = {**leaves, f"d{oid}": some.append_column(PLACE, pa.array(np.arange(some.num_rows)))}
            tests = self._forgiving_of(path).tests
            found = (self.engine.query_forgiving(test, placed, self._time_zone) for test in tests)
            return {place for places in found for place in places.column(0).to_pylist()}

        runs, places = run_without(rows, failing, run_rows)
        why = partial(error_of, run=run_rows)
        return {**runs, REJECTED.name: rejections(self._streams(oid), rows, places, before(REJECTED), why)}

    def _forgiving_of(self, path: Path) -> Forgiving:
        known = self._forgiving.get(id(path))
        if known is None:
            known = self._forgiving[id(path)] = path, _forgiving(path)
        return known[1]

    def _traces(self, path: Path, before: Callable[[State], list[pa.Table]]) -> dict[str, pa.Table]:
        """What the statements of a path read beside its inputs, by trace name."""
        standing = {
            state.name: named((state,), state.name, self.engine.merge(state, before(state)))
            for state in self._states
            if state.name in self._standing[path.id]
        }
        return {**self.statics, **standing}

    def _run(
        self,
        path: Path,
        after: int,
        upto: int,
        traces: Mapping[str, pa.Table],
        statements: tuple[Statement, ...],
        deltas: Mapping[int, pa.Table],
    ) -> Runs:
        targets = {statement.target for statement in path.statements}
        states = tuple(state for state in self._states if state.name in targets)
        inputs = Inputs(deltas, traces)
        job = Job(next(self._jobs), statements, states, inputs, after, upto, timezone=self._time_zone)
        return {name: named(states, name, run) for name, run in self.engine.run(job).runs.items()}


def _forgiving(path: Path) -> Forgiving:
    statements = tuple(replace(item, relation=with_nulls(item.relation)) for item in path.statements)
    return Forgiving(statements, tuple(test for item in path.statements for test in tests_of(item.relation)))


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
