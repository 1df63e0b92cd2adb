"""Running a path's statements over an interval of its inputs, on the engine of this process.

Owns: what the leaves of a path's statements stand for, and what becomes of a batch on which they fail, by the view's
option ``on_error``. A batch on which they do not fail costs nothing more.

Rows that meet tables as of their own LSNs (``WITH (tables = 'arrival')``) are run in parts between whose rows no table
changes, each part over the states that the one before it leaves:

    run (after, upto]  =  run (after, c1 - 1], then (c1 - 1, c2 - 1], ...      c1, c2, ...: the LSNs of changes
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Collection, Iterable, Mapping
from functools import partial
from pathlib import Path as FilePath
from typing import Protocol

import numpy as np
import pyarrow as pa
from msgspec import Struct
from msgspec.structs import replace

from catalog.objects import RowPolicy, Stream
from catalog.values.errors import SqlError
from executor.embedded.detached_statements import thread_seconds
from executor.engine import Inputs, Job, MemoryEngine
from executor.traces.layout import LSN, ORDINAL
from executor.traces.trace import InputTrace
from executor.views.failing_rows import Runs, error_of, of_one, rejections, run_without
from executor.views.failure import is_of_the_rows
from executor.views.needed_rows import needed_rows
from planner.algebra.nodes import Delta, Relation
from planner.algebra.walk import walk
from planner.incremental.cost.work import NONE, Step, Work
from planner.incremental.names import stored_name
from planner.incremental.programs.needed_rows import Needs, needs_of
from planner.incremental.programs.program import Path, Program, State, Statement, needed_deltas, states_read
from planner.incremental.programs.rejected import REJECTED
from planner.incremental.programs.row_failures import PLACE, tests_of, with_nulls, with_nulls_throughout


class Forgiving(Struct, frozen=True):
    """What takes the place of a path's statements where they fail: ``statements`` with NULL for what fails, and
    ``tests``, by the oids of the inputs, that give the places of the rows on which something does."""

    statements: tuple[Statement, ...]
    tests: Mapping[int, tuple[Relation, ...]]


class PastRows(Protocol):
    """The static relations that rows of streams meet as of their own LSNs."""

    @property
    def lost(self) -> tuple[int, int]:
        """The LSNs (after, upto] at which they are not known any more."""
        ...

    def changes(self, names: Collection[str], after: int, upto: int) -> list[int]:
        """The LSNs of (after, upto] at which some of them change, by name."""
        ...

    def rows(self, names: Collection[str], lsn: int) -> Mapping[str, pa.Table]:
        """The rows of some of them at an LSN."""
        ...

    def close(self) -> None:
        """The view is no more."""
        ...


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
        past: PastRows | None = None,
    ) -> None:
        """``inputs`` by oid, ``statics`` by trace name; ``streams`` knows the streams by oid, and ``past`` the statics
        that rows meet as of their own LSNs."""
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
        #: By the ids of paths over several inputs, the oids of those without whose changes a statement adds nothing.
        self._needed = {
            path.id: tuple(needed_deltas(item.relation) for item in path.statements)
            for path in program.paths
            if path.inputs[1:]
        }
        #: By the paths' ids and the inputs that have changed, what a path's statements need of the states.
        self._needs: dict[tuple[int, frozenset[int]], tuple[Path, Needs]] = {}
        self._past = past
        #: By the paths' ids, the statics that their rows meet as of their own LSNs.
        arrival = {static.name for static in program.arrival_statics}
        self._arrival = {path.id: arrival & standing for path in program.paths if (standing := self._standing[path.id])}
        #: What runs have taken, by the id of their path and their state; the time is the whole path's.
        self.work: dict[tuple[int, str], Work] = {}
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
        found: dict[str, list[pa.Table]] = {}

        def standing(state: State) -> list[pa.Table]:
            return [*before(state), *found.get(state.name, ())]

        started, read = thread_seconds(), self.rows(path, after, upto)
        for start, end in self._parts(path, after, upto):
            for name, rows in self._run_part(path, start, end, standing, policy).items():
                found.setdefault(name, []).append(rows)
        joined = {name: self._joined(name, runs) for name, runs in found.items()}
        self._note(path, read, joined, thread_seconds() - started)
        return joined

    def _note(self, path: Path, read: int, runs: Runs, seconds: float) -> None:
        """Counts what a run of a path has taken, at each of its states."""
        for name, rows in runs.items():
            step = Step(read, rows.num_rows, 0, seconds * 1000)
            self.work[path.id, name] = self.work.get((path.id, name), NONE).after(step)

    def _parts(self, path: Path, after: int, upto: int) -> list[tuple[int, int]]:
        """The parts of an interval that have rows, between which the tables change that these rows meet."""
        ends = self._ends(path, after, upto)
        parts = zip((after, *ends), (*ends, upto), strict=True)
        return [(start, end) for start, end in parts if not ends or self.rows(path, start, end)] or [(after, upto)]

    def _ends(self, path: Path, after: int, upto: int) -> list[int]:
        """The LSNs within an interval of a path behind each of which a table changes that its rows meet."""
        names = self._arrival.get(path.id)
        if not names:
            return []
        assert self._past is not None
        since, known = self._past.lost
        if max(after, since) < min(upto, known) and self.rows(path, max(after, since), min(upto, known)):
            message = f"the log no longer has the tables' changes up to LSN {known}, which rows of the view meet"
            raise SqlError("XX001", message)
        return [lsn - 1 for lsn in self._past.changes(names, after, upto) if lsn - 1 > after]

    def first_part(self, path: Path, after: int, upto: int) -> int:
        """The end of the first part of an interval, within which all rows meet the same tables."""
        return self._parts(path, after, upto)[0][1] if self._arrival.get(path.id) else upto

    def past_statics(self, path: Path, lsn: int) -> Mapping[str, pa.Table]:
        """What the rows of a path meet at an LSN, by trace name, beside the statics that are kept."""
        names = self._arrival.get(path.id)
        if not names:
            return {}
        assert self._past is not None
        return self._past.rows(names, lsn)

    def _joined(self, name: str, runs: list[pa.Table]) -> pa.Table:
        """The runs of a state's parts as one."""
        if len(runs) == 1:
            return runs[0]
        state = next(state for state in (*self._states, REJECTED) if state.name == name)
        return named((state,), name, self.engine.merge(state, runs))

    def _run_part(
        self, path: Path, after: int, upto: int, before: Callable[[State], list[pa.Table]], policy: RowPolicy
    ) -> Runs:
        """``run`` over rows that meet the same tables."""
        deltas = {oid: self.inputs[oid].delta(after, upto, path.id in self._placed) for oid in path.inputs}
        needed = {**self.statics, **self.past_statics(path, upto), **self._needed_rows(path, before, deltas)}
        try:
            return self._run(path, after, upto, needed, path.statements, deltas)
        except SqlError as error:
            if policy == "fail" or not is_of_the_rows(error):
                raise
        traces = self._traces(path, before, upto)
        run = partial(self._run, path, after, upto, traces)
        if policy == "null":
            return run(self._forgiving_of(path).statements, deltas)
        placed = {oid: self.inputs[oid].delta(after, upto) for oid in path.inputs}
        return self._skipping(path, placed, before, traces, partial(run, path.statements))

    def _skipping(
        self,
        path: Path,
        deltas: Mapping[int, pa.Table],
        before: Callable[[State], list[pa.Table]],
        traces: Mapping[str, pa.Table],
        run: Callable[[Mapping[int, pa.Table]], Runs],
    ) -> Runs:
        """The runs without the rows that fail, and a run of these; ``deltas`` have the rows' places in the log."""
        leaves = {f"s_{name}": table for name, table in traces.items()}

        def failing(oid: int) -> set[int]:
            numbers = pa.array(np.arange(deltas[oid].num_rows))
            placed = {**leaves, f"d{oid}": deltas[oid].append_column(PLACE, numbers)}
            tests = self._forgiving_of(path).tests.get(oid, ())
            found = (self.engine.query_forgiving(test, placed, self._time_zone) for test in tests)
            return {place for places in found for place in places.column(0).to_pylist()}

        runs, places = run_without(deltas, failing, run)
        rejected = []
        for oid in (oid for oid in path.inputs if len(places[oid])):
            why = partial(error_of, run=of_one(deltas, oid, run))
            known = before(REJECTED)
            rejected.append(rejections(self._streams(oid), deltas[oid], places[oid], known, why))
        return {**runs, REJECTED.name: pa.concat_tables(rejected)} if rejected else runs

    def _forgiving_of(self, path: Path) -> Forgiving:
        known = self._forgiving.get(id(path))
        if known is None:
            known = self._forgiving[id(path)] = path, _forgiving(path)
        return known[1]

    def _traces(self, path: Path, before: Callable[[State], list[pa.Table]], lsn: int) -> dict[str, pa.Table]:
        """What the statements of a path read beside its inputs, by trace name; ``lsn``: that of rows that meet
        tables."""
        standing = {
            state.name: named((state,), state.name, self.engine.merge(state, before(state)))
            for state in self._states
            if state.name in self._standing[path.id]
        }
        return {**self.statics, **self.past_statics(path, lsn), **standing}

    def _needed_rows(
        self, path: Path, before: Callable[[State], list[pa.Table]], deltas: Mapping[int, pa.Table]
    ) -> dict[str, pa.Table]:
        """What the statements of a path that run beside some deltas can meet of the states that they read."""
        if not self._standing[path.id]:
            return {}
        given = frozenset(oid for oid, delta in deltas.items() if delta.num_rows)
        key = path.id, given if path.id in self._needed else frozenset(path.inputs)
        known, needs = self._needs.get(key, (None, {}))
        if known is not path:  # another one has taken its place, with other names
            needed = self._needed.get(path.id, (frozenset[int](),) * len(path.statements))
            pairs = zip(path.statements, needed, strict=True)
            needs = needs_of(item.relation for item, read in pairs if read <= given)
            self._needs[key] = path, needs
        states = {state.name: state for state in self._states}
        found = needed_rows(states, needs, deltas, before)
        return {
            name: named((states[name],), name, self.engine.merge(states[name], runs)) for name, runs in found.items()
        }

    def _run(
        self,
        path: Path,
        after: int,
        upto: int,
        traces: Mapping[str, pa.Table],
        statements: tuple[Statement, ...],
        deltas: Mapping[int, pa.Table],
    ) -> Runs:
        if len(path.inputs) > 1:  # a statement adds nothing where a delta that it needs is empty
            given = {oid for oid, delta in deltas.items() if delta.num_rows}
            pairs = zip(statements, self._needed[path.id], strict=True)
            statements = tuple(statement for statement, read in pairs if read <= given)
        targets = {statement.target for statement in statements}
        states = tuple(state for state in self._states if state.name in targets)
        inputs = Inputs(deltas, traces)
        job = Job(next(self._jobs), statements, states, inputs, after, upto, timezone=self._time_zone)
        return {name: named(states, name, run) for name, run in self.engine.run(job).runs.items()}


def _forgiving(path: Path) -> Forgiving:
    is_joined = any(item.method == "interval" for item in path.statements)
    forgiving = with_nulls_throughout if is_joined else with_nulls
    statements = tuple(replace(item, relation=forgiving(item.relation)) for item in path.statements)
    tests: dict[int, tuple[Relation, ...]] = {}
    for item in path.statements:
        oids = {node.oid for node in walk(item.relation) if isinstance(node, Delta)}
        if len(oids) == 1:
            tests[min(oids)] = (*tests.get(min(oids), ()), *tests_of(item.relation))
    return Forgiving(statements, tests)


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
