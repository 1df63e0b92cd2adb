"""States of a view: whoever computes and commits what, a row is counted once."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from executor.trace.claim import Claim
from executor.trace.manifest import Manifest, NewRun, StateSchema
from executor.trace.parquet import write_table
from executor.trace.state import Version, ViewStates

SCHEMA = pa.schema([("c1", pa.int64()), ("c2", pa.int64())])
STATES = {name: StateSchema("aggregate", (("c1", "int64"), ("c2", "int64")), ("c1",)) for name in ("s", "t")}
PATHS = 2


def merge(state: str, tables: Sequence[pa.Table]) -> pa.Table:
    grouped = pa.concat_tables(tables).group_by("c1").aggregate([("c2", "sum")])
    return grouped.rename_columns(["c1", "c2"]).sort_by("c1").cast(SCHEMA)


def computed(after: int, upto: int, path: int = 0) -> dict[str, pa.Table]:
    """The runs of an interval in which LSN n brought one row of group n % 3, and to state t a row of weight 10."""
    lsns = range(after + 1, upto + 1)
    table = pa.table({"c1": [lsn % 3 + 10 * path for lsn in lsns], "c2": [1 for _ in lsns]}, SCHEMA)
    ten = pa.table({"c1": [path], "c2": [10 * (upto - after)]}, SCHEMA)
    return {"s": merge("s", [table]), "t": ten}


def expected(state: str, lsn: int) -> list[tuple[int, int]]:
    both = [computed(0, lsn, path)[state] for path in range(PATHS)] if lsn else []
    return pairs(merge(state, both)) if both else []


def pairs(table: pa.Table) -> list[tuple[int, int]]:
    return list(zip(table.column("c1").to_pylist(), table.column("c2").to_pylist(), strict=True))


def read(states: ViewStates, state: str, lsn: int, version: Version | None = None) -> list[tuple[int, int]]:
    tables = [run.table for run in states.snapshot_runs(lsn, version)[state] if run.table is not None]
    return pairs(merge(state, tables)) if tables else []


class Clock:
    """A clock that the test moves."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


def make(folder: Path, clock: Callable[[], float]) -> ViewStates:
    manifest = Manifest.create(folder / "v1", "v1", "server", {}, STATES, (0,) * PATHS)
    return ViewStates(manifest, dict.fromkeys(STATES, SCHEMA), merge, clock)


def reopen(states: ViewStates, clock: Callable[[], float]) -> ViewStates:
    return ViewStates(Manifest.open(states.manifest.folder), dict.fromkeys(STATES, SCHEMA), merge, clock)


def bring(states: ViewStates, lsn: int) -> None:
    for path in range(PATHS):
        for after, upto in states.missing(path, lsn):
            assert states.add(path, after, upto, computed(after, upto, path))


_STEPS = st.one_of(
    st.tuples(st.just("rows"), st.integers(1, 5)),
    st.tuples(st.just("read"), st.just(0)),
    st.tuples(st.just("claim"), st.integers(0, PATHS - 1)),
    st.tuples(st.just("finish"), st.integers(0, PATHS - 1)),
    st.tuples(st.just("expire"), st.just(0)),
    st.tuples(st.just("commit memory"), st.integers(0, PATHS - 1)),
    st.tuples(st.just("steal"), st.integers(0, PATHS - 1)),
    st.tuples(st.just("coalesce"), st.integers(0, PATHS - 1)),
    st.tuples(st.just("compact"), st.integers(0, PATHS - 1)),
    st.tuples(st.just("restart"), st.just(0)),
)


class History:
    """Readers, workers with claims that may be dead already, compaction and restarts, on one view."""

    def __init__(self, folder: Path) -> None:
        self.clock = Clock()
        self.states = make(folder, self.clock)
        self.lsn = 0
        self.claims: dict[int, list[Claim]] = {path: [] for path in range(PATHS)}
        self.held: list[tuple[int, Version]] = []

    def step(self, what: str, number: int) -> None:
        match what:
            case "rows":
                self.lsn += number
            case "read":
                bring(self.states, self.lsn)
                self.held.append((self.lsn, self.states.version))
            case "claim":
                claim = self.states.claim(number, self.lsn, "worker", 10.0)
                self.claims[number] += [claim] if claim is not None else []
            case "finish" if self.claims[number]:
                self._finish(self.claims[number].pop())
            case "expire":
                self.clock.now += 11
            case "commit memory":
                self.states.commit_memory(number, self.lsn)
            case "steal":
                self._commit(number, self.states.version.content.frontiers[number], self.lsn)
            case "coalesce":
                self.states.coalesce(number)
            case "compact":
                self.states.compact("s", number)
            case "restart":
                self.held.clear()
                self.states = reopen(self.states, self.clock)

    def _finish(self, claim: Claim) -> None:
        frontier = self.states.version.content.frontiers[claim.path]
        assert self._commit(claim.path, claim.after, claim.upto) == (frontier == claim.after)
        self.states.release(claim)

    def _commit(self, path: int, after: int, upto: int) -> bool:
        return after < upto and self.states.commit(path, after, upto, computed(after, upto, path))

    def check(self) -> None:
        for lsn, version in self.held:
            assert read(self.states, "s", lsn, version) == expected("s", lsn)
        bring(self.states, self.lsn)
        for state in STATES:
            assert read(self.states, state, self.lsn) == expected(state, self.lsn)


@settings(max_examples=50, deadline=None)
@given(st.lists(_STEPS, max_size=30))
def test_each_row_counts_once(tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[str, int]]) -> None:
    history = History(tmp_path_factory.mktemp("view"))
    for what, number in steps:
        history.step(what, number)
    history.check()
    history.step("restart", 0)
    history.check()


def test_claim_cuts_what_readers_compute(tmp_path: Path, clock: Clock) -> None:
    states = make(tmp_path, clock)
    claim = states.claim(0, 10, "spark", 5.0)
    assert claim is not None
    assert (claim.after, claim.upto, claim.epoch) == (0, 10, 1)
    assert states.claim(0, 12, "embedded", 5.0) is None
    assert states.missing(0, 15) == ((0, 10), (10, 15))
    assert states.missing(1, 15) == ((0, 15),)
    assert not states.add(0, 0, 15, computed(0, 15))
    bring(states, 15)
    assert states.commit(0, 0, 10, computed(0, 10))
    (left,) = states.version.memory[0]
    assert (left.after, left.upto) == (10, 15)
    assert read(states, "s", 15) == expected("s", 15)


def test_claim_ends_where_a_memory_run_ends(tmp_path: Path, clock: Clock) -> None:
    states = make(tmp_path, clock)
    bring(states, 10)
    bring(states, 20)
    for upto, end in ((5, 10), (10, 10), (15, 10), (20, 20), (30, 30)):
        claim = states.claim(0, upto, "spark", 5.0)
        assert claim is not None
        assert claim.upto == end
        states.release(claim)


def test_expired_claim_is_taken_over(tmp_path: Path, clock: Clock) -> None:
    states = make(tmp_path, clock)
    first = states.claim(0, 10, "spark", 5.0)
    assert first is not None
    clock.now = 4.0
    assert states.renew(first, 5.0) is not None
    clock.now = 8.0
    assert states.claim(0, 10, "embedded", 5.0) is None
    clock.now = 9.5
    second = states.claim(0, 12, "embedded", 5.0)
    assert second is not None
    assert second.epoch == first.epoch + 1
    assert states.renew(first, 5.0) is None
    states.release(first)
    assert states.claim(0, 12, "spark", 5.0) is None  # the second lives
    assert states.commit(0, 0, 10, computed(0, 10))  # only a commit counts, even that of the dead
    assert not states.commit(0, 0, 12, computed(0, 12))


def test_nothing_to_claim(tmp_path: Path, clock: Clock) -> None:
    states = make(tmp_path, clock)
    assert states.claim(0, 0, "spark", 5.0) is None
    assert not states.commit_memory(0, 100)


def test_coalescing_keeps_chains_short(tmp_path: Path, clock: Clock) -> None:
    states = make(tmp_path, clock)
    for lsn in range(1, 200):
        bring(states, lsn)
        states.coalesce(0)
    assert len(states.version.memory[0]) < 10
    assert len(states.version.memory[1]) == 199
    assert read(states, "s", 199) == expected("s", 199)


def test_old_files_stay_while_somebody_reads_them(tmp_path: Path, clock: Clock) -> None:
    states = make(tmp_path, clock)
    for lsn in (5, 10, 15):
        assert states.commit(0, lsn - 5, lsn, computed(lsn - 5, lsn))
    assert states.commit(1, 0, 15, computed(0, 15, 1))
    states = reopen(states, clock)
    held: list[Version] = [states.version]
    old = [states.manifest.folder / run.files[0].name for run in held[0].content.runs["s"] if run.path == 0]
    assert states.compact("s", 0)
    assert all(path.exists() for path in old)
    assert read(states, "s", 15, held[0]) == expected("s", 15)
    held.clear()
    bring(states, 16)  # the next version looks after them
    assert not any(path.exists() for path in old)
    assert read(states, "s", 16) == expected("s", 16)


def test_files_of_an_engine_are_committed_as_they_are(tmp_path: Path, clock: Clock) -> None:
    states = make(tmp_path, clock)
    runs: dict[str, NewRun | pa.Table] = {}
    for name, table in computed(0, 9).items():
        path = states.manifest.folder / f"{name}.parquet"
        write_table(path, table)
        runs[name] = NewRun((path,), table.num_rows)
    assert states.commit(0, 0, 9, runs)
    (run,) = _loaded(states, "s")
    assert pairs(run) == pairs(computed(0, 9)["s"])


def _loaded(states: ViewStates, name: str) -> list[pa.Table]:
    return [states.load(name, stored).table for stored in states.version.content.runs[name]]


def test_lost_commit_leaves_no_file(tmp_path: Path, clock: Clock) -> None:
    states = make(tmp_path, clock)
    assert states.commit(0, 0, 5, computed(0, 5))
    before = set(states.manifest.folder.iterdir())
    stale: Mapping[str, NewRun | pa.Table] = computed(0, 7)
    assert not states.commit(0, 0, 7, stale)
    assert set(states.manifest.folder.iterdir()) == before
