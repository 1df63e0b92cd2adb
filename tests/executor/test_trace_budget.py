"""The budget of all traces: what is read does not depend on what memory held, and memory holds no more than it says."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any, Final

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from executor.database.database import Database
from executor.key_access.point_sources import point_reader
from executor.traces.budget import Held, TraceBudget
from executor.upkeep.paths import all_paths
from planner.statements.statement import Query
from tests.executor.client import Client, open_database
from tests.rig.sampling import examples

TINY: Final = 3000
#: Bytes of the largest chunk of a ring: what a step adds at most.
CHUNK: Final = 2000

_KEY = st.integers(0, 9)
_STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("one"), st.sampled_from("st"), _KEY, _KEY),
        st.tuples(st.just("many"), st.sampled_from("st"), _KEY, st.integers(1, 40)),
        st.tuples(st.just("change"), _KEY, _KEY),
        st.tuples(st.sampled_from(["row", "group"]), _KEY),
        st.tuples(st.just("view"), st.sampled_from(["sums", "joined", "newest"])),
        st.sampled_from([("maintain",), ("begin",), ("commit",)]),
    ),
    min_size=5,
    max_size=25,
)


class Holder:
    """A trace that gives back all it has, unless it is in use."""

    def __init__(self, budget: TraceBudget, size: int) -> None:
        self.in_use = False
        self.held: Held = budget.register(self._give_back)
        self.held.add(size)

    def _give_back(self, size: int) -> None:
        assert size > 0
        if not self.in_use:
            self.held.set(0)


def test_the_trace_that_was_read_the_longest_time_ago_gives_back_first() -> None:
    budget = TraceBudget(100)
    first, second, third = (Holder(budget, size) for size in (40, 30, 30))
    budget.keep()
    assert budget.held == 100
    first.held.read()
    third.held.add(10)
    budget.keep()
    assert [item.held.bytes for item in (first, second, third)] == [40, 0, 40]
    third.in_use = True
    first.held.add(50)
    budget.keep()
    assert [item.held.bytes for item in (first, second, third)] == [0, 0, 40]
    third.held.close()
    third.held.add(7)
    assert (budget.held, third.held.bytes) == (0, 0)


class Pair:
    """Two databases with the same rows: one has next to no memory for them, the other all that they need. In each, one
    session writes, and another one reads."""

    def __init__(self, folder: Path, stack: ExitStack) -> None:
        self.databases: list[Database] = []
        for name, memory in (("tiny", TINY), ("large", 1 << 30)):
            chosen = {"trace_memory": memory, "maintenance_rows": 1 << 30, "maintenance_idle": 1e6}
            self.databases.append(stack.enter_context(closing(open_database(folder / name, **chosen))))
        self.tiny = self.databases[0]
        self.count = 0

    def begin(self) -> None:
        """New streams, views and tables, and new sessions."""
        self.count += 1
        schema, self.rows, self.is_open = f"n{self.count}", 0, False
        self.writers = [Client(database, schema) for database in self.databases]
        self.readers = [Client(database, schema) for database in self.databases]
        self.write(f"CREATE SCHEMA {schema}")
        for name in "st":
            self.write(f"CREATE FOREIGN TABLE {name} (k int, v int, note text) SERVER stream")
        self.write("CREATE TABLE kept (k int PRIMARY KEY, n int)")
        self.write("INSERT INTO kept SELECT i, i FROM generate_series(0, 4) i")
        self.write("CREATE VIEW sums AS SELECT k, count(*) AS c, sum(v) AS v FROM s GROUP BY k")
        self.write("CREATE VIEW newest AS SELECT k, array_agg(v) AS every, max(note) AS note FROM t GROUP BY k")
        self.write("CREATE VIEW joined AS SELECT a.k, a.c, b.note FROM sums a LEFT JOIN newest b ON a.k = b.k")

    def end(self) -> None:
        """They are gone."""
        if self.is_open:
            self.read("COMMIT")
        self.write(f"DROP SCHEMA n{self.count} CASCADE")

    def write(self, text: str) -> None:
        """Runs statements on both, of equal outcome."""
        _alike(self.writers, text)

    def read(self, text: str) -> None:
        """Runs statements on both, of equal outcome, in the sessions that read."""
        _alike(self.readers, text)

    def step(self, kind: str, *about: Any) -> None:
        """Does one thing on both."""
        match kind:
            case "one" | "many":
                stream, k, count = about
                self.rows += 1
                rows = f"SELECT {k} + i % 3, i, 'note {self.rows}' FROM generate_series(1, {count}) i"
                self.write(f"INSERT INTO {stream} {rows}" if kind == "many" else _one(stream, k, count))
            case "change":
                k, n = about
                self.write(f"INSERT INTO kept VALUES ({k}, {n}) ON CONFLICT (k) DO UPDATE SET n = kept.n + {n}")
            case "row":
                self.read_by_key("SELECT n FROM kept WHERE k = $1::int", *about)
            case "group":
                self.read_by_key("SELECT c, v FROM sums WHERE k = $1::int", *about)
            case "view":
                self.read(f"SELECT * FROM {about[0]} ORDER BY k")
            case "begin" | "commit":
                if self.is_open == (kind == "commit"):
                    self.read("COMMIT" if self.is_open else "BEGIN ISOLATION LEVEL REPEATABLE READ")
                    self.is_open = not self.is_open
            case _:
                for database in self.databases:
                    _maintain(database)

    def read_by_key(self, text: str, key: int) -> None:
        """Reads a row without an engine, where it is at hand."""
        found = []
        for database, client in zip(self.databases, self.writers, strict=True):
            query = client.bind(text)
            assert isinstance(query, Query)
            reader = point_reader(database.core, database.indexes, database.table_keys, query, database.core.catalog)
            assert reader is not None
            row = reader.read((key,))
            if row is not None:
                table = row.table.select(reader.picked.columns)
                found.append([] if row.place is None else table.slice(row.place, 1).to_pylist())
        assert len(found) < 2 or found[0] == found[1], text
        _alike(self.writers, text.replace("$1::int", str(key)))


def _alike(clients: list[Client], text: str) -> None:
    tiny, large = (client.run(text) for client in clients)
    assert tiny == large, text


def _one(stream: str, k: int, v: int) -> str:
    return f"INSERT INTO {stream} VALUES ({k}, {v}, 'note')"


def _maintain(database: Database) -> None:
    for sources, tasks in all_paths(database.core):
        for task in tasks:
            database.maintenance.embedded.run(sources, task)
    database.frontiers.release()


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    with ExitStack() as stack:
        yield Pair(tmp_path_factory.mktemp("budget"), stack)


@pytest.mark.slow
@settings(max_examples=examples(20), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(steps=_STEPS)
def test_answers_do_not_depend_on_the_budget(pair: Pair, steps: list[tuple[Any, ...]]) -> None:
    pair.begin()
    budget = pair.tiny.core.trace_budget
    for step in steps:
        pair.step(*step)
        assert pair.is_open or budget.held <= TINY + CHUNK, step
    pair.end()


@pytest.mark.slow
def test_content_is_given_back_and_read_again(pair: Pair) -> None:
    pair.begin()
    (sums,) = (item for item in pair.tiny.core.runtimes() if item.view.name == "sums")
    pair.step("many", "s", 1, 40)
    _maintain(pair.tiny)
    pair.step("view", "sums")
    pair.tiny.core.trace_budget.limit = 0
    pair.step("one", "s", 1, 1)
    pair.tiny.core.trace_budget.keep()
    assert [state.tables[0].num_rows for state in sums.states.values()] == [0]
    pair.step("view", "sums")
    pair.step("begin")  # a snapshot of the view as it is
    pair.step("one", "s", 2, 1)
    for _ in range(2):
        _maintain(pair.tiny)
        _maintain(pair.databases[1])
        pair.step("view", "sums")
    pair.step("commit")
    pair.step("view", "sums")
    pair.tiny.core.trace_budget.limit = TINY
    pair.end()
