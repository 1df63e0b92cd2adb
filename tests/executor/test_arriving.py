"""Queries of streams are queries over exactly the rows that arrive while they run (thesis, chapter 3)."""

from __future__ import annotations

import itertools
import random
import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from msgspec.structs import replace

from catalog.values import multiranges, ranges
from catalog.values.errors import SqlError
from catalog.values.types import SqlType
from executor.database.database import Database
from executor.subscriptions.arrival_scan import Patience, StreamScan
from planner.bind import bind
from planner.bind.state.context import Context
from planner.parse.parser import parse
from tests.executor.client import Client, open_database
from tests.law.scenario import Scenario, scenarios
from tests.rig.beside import Beside
from tests.rig.process import wait_until
from tests.rig.sampling import examples

#: ``{s}`` is a stream in one run and a table with the same rows in another; ``{totals}`` is a view as of the query's
#: begin.
QUERIES: Final = {
    "rows": "SELECT k, v * 2 AS twice, w FROM {s} WHERE v > 2",
    "joined": "SELECT n, v, w FROM names JOIN {s} s USING (k)",
    "kept": "SELECT s.k, v, n FROM {s} s LEFT JOIN names USING (k) WHERE w IS NOT NULL",
    "existing": "SELECT k, v FROM {s} WHERE k IN (SELECT k FROM names)"
    " AND NOT EXISTS (SELECT FROM names n WHERE n.k = v)",
    "grouped": "SELECT k, count(*), sum(v), avg(v), min(w), count(DISTINCT v), sum(v) FILTER (WHERE v > 3) FROM {s}"
    " GROUP BY k",
    "total": "SELECT count(*), sum(v), max(w) FROM {s}",
    "ordered": "SELECT k, sum(v) AS total FROM {s} GROUP BY k ORDER BY total DESC, k LIMIT 2",
    "having": "SELECT n, sum(v) FROM {s} s JOIN names USING (k) GROUP BY n"
    " HAVING count(*) > (SELECT count(*) FROM names)",
    "above": "SELECT n, t.total FROM names LEFT JOIN (SELECT k, sum(v) AS total FROM {s} GROUP BY k) t USING (k)",
    "aggregated twice": "SELECT c, count(*) FROM (SELECT k, count(*) AS c FROM {s} GROUP BY k) g GROUP BY c",
    "sets": "SELECT k, v, count(*) FROM {s} GROUP BY ROLLUP (k, v)",
    "values": "SELECT k, array_agg(v ORDER BY v), string_agg(w, ',' ORDER BY w) FROM {s} GROUP BY k",
    "distinct": "SELECT DISTINCT k, w FROM {s}",
    "sorted": "SELECT * FROM {s} ORDER BY v, w, k OFFSET 3 FETCH FIRST 7 ROWS ONLY",
    "window": "SELECT k, v, w, rank() OVER (PARTITION BY k ORDER BY v) FROM {s}",
    "outer": "SELECT n, v FROM names LEFT JOIN {s} s USING (k)",
    "full": "SELECT n, v FROM names FULL JOIN {s} s USING (k)",
    "self": "SELECT a.k, b.v FROM {s} a JOIN {s} b ON a.k = b.k AND a.v = b.v + 1",
    "union": "SELECT k FROM {s} UNION ALL SELECT k FROM names",
    "except": "SELECT k FROM names EXCEPT SELECT k FROM {s}",
    "lateral": "SELECT n, x.v FROM names, LATERAL (SELECT v FROM {s} s WHERE s.k = names.k ORDER BY v DESC LIMIT 1) x",
    "correlated": "SELECT n, (SELECT max(v) FROM {s} s WHERE s.k < names.k) FROM names",
    "recursive": "WITH RECURSIVE r AS (SELECT min(k) AS k FROM {s}"
    " UNION SELECT k + 1 FROM r WHERE k < 3) SELECT * FROM r",
    "nothing": "SELECT k FROM {s} WHERE v > 1000 LIMIT 1",
    "limit expression": "SELECT count(*) FROM (SELECT * FROM {s} ORDER BY v LIMIT 1 + 1) x",
    "view": "SELECT t.k, t.total, s.v FROM {s} s JOIN {totals} t USING (k)",
}


@dataclass
class Clock:
    """The scans' clock, which jumps ahead when the test lets them end."""

    ahead: float = 0.0

    def now(self) -> float:
        """Seconds."""
        return time.monotonic() + self.ahead


class Bench:
    """A database with a stream, and queries over it in threads of their own."""

    def __init__(self, folder: Path, **options: Any) -> None:
        self.database: Database = open_database(folder, **options)
        self.client = Client(self.database)
        self.clock = Clock()
        self._pool = ThreadPoolExecutor(40)
        self.client.run(
            "CREATE FOREIGN TABLE s (k int, v int, w text) SERVER stream; CREATE TABLE names (k int, n text);"
            "INSERT INTO names VALUES (1, 'one'), (2, 'two'), (3, 'three'), (3, 'drei'), (9, 'nine')"
        )

    @property
    def stream(self) -> Any:
        """The runtime of the latest stream."""
        return list(self.database.core.streams.values())[-1]

    def start(self, text: str, **patience: float) -> tuple[Client, Future[Any]]:
        """Begins a query; returns once it waits for rows."""
        client, waiting = Client(self.database), len(self.stream.waiting)
        settings = {"timeout": 1e5, "progress": 0.0, **patience}
        client.session.await_rows(
            Patience(settings["timeout"], settings["progress"], self.clock.now),
            lambda notice: client.notices.append(notice.message),
        )
        future = self._pool.submit(client.run, text)
        wait_until(lambda: future.done() or len(self.stream.waiting) > waiting, 60, "a scan")
        return client, future

    def silence(self) -> None:
        """A long time passes without rows."""
        self.clock.ahead += 1e6
        for stream in self.database.core.streams.values():
            for event in stream.waiting:
                event.set()

    def close(self) -> None:
        """Ends the database, and queries that a failed test has left running."""
        self.silence()
        self._pool.shutdown()
        self.database.close()


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    made = Bench(tmp_path)
    yield made
    made.close()


def _rows(source: random.Random, count: int) -> list[str]:
    texts = ("NULL", "'a'", "'b'", "'é'")
    return [f"({source.randint(1, 5)}, {source.randint(0, 9)}, {source.choice(texts)})" for _ in range(count)]


@pytest.mark.slow
@pytest.mark.parametrize("count", [0, 1, 120])
def test_a_query_of_a_stream_is_the_query_over_the_rows_that_came_meanwhile(bench: Bench, count: int) -> None:
    source, run = random.Random(count), bench.client.run
    run("CREATE VIEW totals AS SELECT k, sum(v) AS total FROM s GROUP BY k; CREATE TABLE t (k int, v int, w text)")
    run(f"INSERT INTO s VALUES {', '.join(_rows(source, 20))}")  # before the queries, so not for them
    run("CREATE TABLE kept AS SELECT * FROM totals")
    started = {name: bench.start(text.format(s="s", totals="totals"))[1] for name, text in QUERIES.items()}
    run("INSERT INTO names VALUES (4, 'too late')")
    rows = _rows(source, count)
    while rows:
        size = source.choice((1, 1, 3, 50))
        for target in ("s", "t"):
            run(f"INSERT INTO {target} VALUES {', '.join(rows[:size])}")
        rows = rows[size:]
        if source.random() < 0.2:
            bench.database.frontiers.release()
    run("DELETE FROM names WHERE n = 'too late'")
    bench.silence()
    for name, future in started.items():
        found, wanted = future.result(60), run(QUERIES[name].format(s="t", totals="kept"))
        if name not in ("ordered", "sorted"):
            found, wanted = sorted(found, key=repr), sorted(wanted, key=repr)
        assert found == wanted, name


def test_what_comes_while_a_scan_is_held_up_counts(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """The scan is delayed for longer than it waits for rows, between its check for rows and its check of the clock."""
    take, late = StreamScan.take, ["(1, 1, 'a')", "(2, 2, 'b')"]

    def held_up(self: StreamScan, places: bool) -> Any:
        found = take(self, places)
        if found is None and late:
            bench.client.run(f"INSERT INTO s VALUES {late.pop()}")
            bench.clock.ahead += 1e6
        return found

    monkeypatch.setattr(StreamScan, "take", held_up)
    _, asked = bench.start("SELECT count(*) FROM s")
    assert asked.result(60) == [(2,)]


def _carried(row: tuple[Any, ...], types: tuple[str, ...]) -> tuple[Any, ...]:
    """A row in the form of batches, with k first; ranges and multiranges as bytes."""
    readers = {"int4range": ranges.read, "int4multirange": multiranges.read}
    return tuple(
        value if value is None or kind not in readers else readers[kind](value, SqlType(kind), int)
        for value, kind in zip(row, ("integer", *types), strict=True)
    )


@pytest.mark.slow
@given(scenario=scenarios(("read",)))
@settings(max_examples=examples(25), deadline=None, derandomize=True, suppress_health_check=[*HealthCheck])
def test_a_grouping_of_a_stream_is_the_continuous_view_of_its_lifetime(bench: Bench, scenario: Scenario) -> None:
    if scenario.windows is not None:  # only views drop groups
        scenario = replace(scenario, windows=replace(scenario.windows, retention=None, final=False))
    run, number = bench.client.run, len(bench.database.core.streams)
    query = scenario.query(f"stream{number}", f"dimension{number}")
    run(f"CREATE TABLE dimension{number} (id int, label text)")
    for key, label in scenario.dimension:
        run(f"INSERT INTO dimension{number} VALUES ({key}, '{label}')")
    run(f"CREATE FOREIGN TABLE stream{number} ({scenario.declaration}) SERVER stream")
    run(f"CREATE VIEW view{number} AS {query}")
    _, asked = bench.start(query)
    _, came = bench.start(f"SELECT * FROM stream{number}")
    schema = bench.stream.schema
    rows = [[_carried(row, scenario.columns) for row in step] for step in scenario.steps if isinstance(step, tuple)]
    for step in rows:
        arrays = [pa.array(column, kind) for column, kind in zip(zip(*step, strict=True), schema.types, strict=True)]
        bench.client.copy(f"COPY stream{number} FROM STDIN", [pa.RecordBatch.from_arrays(arrays, schema=schema)])
    bench.silence()
    assert sorted(asked.result(60), key=repr) == sorted(run(f"SELECT * FROM view{number}"), key=repr), query
    assert came.result(60) == [row for step in rows for row in step]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("text", "rows"),
    [
        ("SELECT v FROM s LIMIT 3", [1, 2, 3]),
        ("SELECT v FROM s OFFSET 2 LIMIT 2", [3, 4]),
        ("SELECT v FROM s WHERE v > 4 LIMIT 1", [5]),
        ("SELECT v + 1 FROM s FETCH FIRST ROW ONLY", [2]),
        ("SELECT v FROM s JOIN names USING (k) LIMIT 2", [1, 2]),
    ],
)
def test_a_limit_ends_the_query_as_soon_as_it_is_reached(bench: Bench, text: str, rows: list[int]) -> None:
    _, future = bench.start(text, timeout=0.0)
    for v in itertools.count(1):
        bench.client.run(f"INSERT INTO s VALUES (1, {v}, NULL)")
        if v > 5:
            break
    assert future.result(60) == [(v,) for v in rows]
    assert bench.stream.waiting == ()


def test_limit_0_does_not_wait(bench: Bench) -> None:
    assert bench.start("SELECT * FROM s LIMIT 0", timeout=0.0)[1].result(60) == []


def test_rows_that_no_view_needs_stay_for_a_scan_and_go_with_it(bench: Bench) -> None:
    ring = bench.stream.feed
    mark = ring.mark()
    bench.client.run("INSERT INTO s VALUES (1, 1, 'a'); INSERT INTO s VALUES (2, 2, 'b')")
    upto = bench.database.core.sequencer.visible
    bench.database.frontiers.release()
    assert ring.delta(mark.after, upto).column("k").to_pylist() == [1, 2]
    mark.after = upto
    bench.database.frontiers.release()
    assert ring.buffered_rows == 0
    bench.client.run("INSERT INTO s VALUES (3, 3, 'c')")
    del mark
    bench.database.frontiers.release()
    assert ring.buffered_rows == 0


@pytest.mark.slow
def test_rows_that_memory_has_no_room_for_end_the_scan_that_lags_and_hold_nobody(tmp_path: Path) -> None:
    bench = Bench(tmp_path, trace_memory=20_000)
    try:
        rows = iter(_cursor(bench, "SELECT k, v FROM s"))
        bench.client.run("INSERT INTO s VALUES (0, 0, 'a')")
        assert next(rows).num_rows == 1
        for number in range(10):
            values = ", ".join(f"({number}, {v}, 'a longer text')" for v in range(200))
            bench.client.run(f"INSERT INTO s VALUES {values}")
        bench.database.frontiers.release()
        assert bench.stream.feed.bytes <= 20_000
        with pytest.raises(SqlError, match="overwritten") as caught:
            next(rows)
        assert caught.value.sqlstate == "72000"
        assert bench.stream.waiting == ()
    finally:
        bench.close()


@pytest.mark.slow
def test_rows_that_left_memory_are_read_from_the_log_while_it_has_them(tmp_path: Path) -> None:
    bench = Bench(tmp_path, trace_memory=20_000, maintenance_rows=1 << 30, maintenance_idle=1e6)
    try:
        bench.client.run("CREATE VIEW held AS SELECT k, count(*) FROM s GROUP BY k")
        rows = iter(_cursor(bench, "SELECT k, v FROM s"))
        for number in range(10):
            values = ", ".join(f"({number}, {v}, 'a longer text')" for v in range(200))
            bench.client.run(f"INSERT INTO s VALUES {values}")
        bench.database.frontiers.release()
        assert bench.stream.feed.bytes <= 20_000
        assert next(rows).num_rows > 0
    finally:
        bench.close()


def _cursor(bench: Bench, text: str) -> Any:
    """The batches of a query, as the server reads them."""
    client = Client(bench.database)
    client.session.await_rows(Patience(0.0, 0.0), lambda notice: None)
    (raw,) = parse(text)
    batches = client.session.execute(bind(raw, Context(client.session.catalog)).statement).batches
    assert batches is not None
    return batches


def test_a_cancel_ends_a_scan_that_waits(bench: Bench) -> None:
    for text in ("SELECT * FROM s", "SELECT count(*) FROM s", "SELECT * FROM s ORDER BY v"):
        client, future = bench.start(text)
        client.session.cancel()
        with pytest.raises(SqlError) as caught:
            future.result(60)
        assert caught.value.sqlstate == "57014"
        assert bench.stream.waiting == ()


def test_dropping_the_stream_ends_the_scan(bench: Bench) -> None:
    _, future = bench.start("SELECT count(*) FROM s", timeout=0.0)
    bench.client.run("DROP FOREIGN TABLE s")
    with pytest.raises(SqlError) as caught:
        future.result(60)
    assert caught.value.sqlstate == "42P01"


def test_a_scan_goes_on_when_a_column_is_added_and_ends_when_one_is_dropped(bench: Bench) -> None:
    _, future = bench.start("SELECT count(*), sum(v) FROM s")
    bench.client.run("ALTER FOREIGN TABLE s ADD x int DEFAULT 5; INSERT INTO s VALUES (1, 2, '', 3)")
    bench.silence()
    assert future.result(60) == [(1, 2)]
    _, future = bench.start("SELECT count(*), sum(v) FROM s")
    bench.client.run("ALTER FOREIGN TABLE s DROP v; INSERT INTO s VALUES (1, '', 3)")
    bench.silence()
    with pytest.raises(SqlError, match='42703: column "v" of stream "s" was dropped'):
        future.result(60)


@pytest.mark.slow
def test_an_error_of_a_row_is_the_query_s(bench: Bench) -> None:
    for text in ("SELECT 1 / v FROM s", "SELECT sum(1 / v) FROM s", "SELECT 1 / v FROM s ORDER BY 1"):
        _, future = bench.start(text)
        bench.client.run("INSERT INTO s VALUES (1, 0, NULL)")
        with pytest.raises(SqlError) as caught:
            future.result(60)
        assert caught.value.sqlstate == "22012"


def test_a_scan_says_how_far_it_is(bench: Bench) -> None:
    client, future = bench.start("SELECT count(*) FROM s", progress=0.001)
    wait_until(lambda: bool(client.notices), 60, "a notice")
    bench.client.run("INSERT INTO s VALUES (1, 1, NULL), (1, 2, NULL)")
    wait_until(lambda: 'stream "s": 2 rows so far' in client.notices, 60, "the rows")
    bench.silence()
    assert future.result(60) == [(2,)]
    assert client.notices[0] == 'stream "s": 0 rows so far'


@pytest.mark.slow
def test_a_block_sees_what_is_committed_while_the_query_runs(bench: Bench) -> None:
    bench.client.run("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM names")
    writer = Client(bench.database)
    writer.run("INSERT INTO s VALUES (1, 1, 'before'); INSERT INTO names VALUES (1, 'uno')")
    bench.client.session.await_rows(Patience(1e5, 0.0, bench.clock.now), lambda notice: None)
    with ThreadPoolExecutor(1) as pool:
        future = pool.submit(bench.client.run, "SELECT n, w FROM s JOIN names USING (k)")
        wait_until(lambda: len(bench.stream.waiting) == 1, 60, "the scan")
        writer.run("INSERT INTO s VALUES (1, 1, 'meanwhile')")
        bench.silence()
        assert future.result(60) == [("one", "meanwhile")]
    bench.client.run("COMMIT")


def test_a_stream_of_the_same_transaction_is_refused(bench: Bench) -> None:
    with pytest.raises(SqlError) as caught:
        bench.client.run("BEGIN; CREATE FOREIGN TABLE fresh (k int) SERVER stream; SELECT * FROM fresh")
    assert caught.value.sqlstate == "0A000"
    bench.client.run("ROLLBACK")


def test_a_query_of_two_streams_says_what_to_do(bench: Bench) -> None:
    bench.client.run("CREATE FOREIGN TABLE other (k int) SERVER stream")
    with pytest.raises(SqlError) as caught:
        bench.client.run("SELECT * FROM s JOIN other USING (k)")
    assert caught.value.sqlstate == "0A000"
    assert "continuous view" in (caught.value.hint or "")


@pytest.mark.slow
def test_explain_analyze_runs_the_query(bench: Bench) -> None:
    _, future = bench.start("EXPLAIN ANALYZE SELECT * FROM s ORDER BY v")
    bench.client.run("INSERT INTO s VALUES (1, 1, NULL), (1, 2, NULL)")
    bench.silence()
    lines = future.result(60)
    assert ("Actual Rows: 2",) in lines
    assert ("Query of a Stream: rows are collected until the stream is silent",) in lines


def test_writers_do_not_wait_for_a_scan(bench: Bench) -> None:
    """A scan whose result is not read delays neither rows of the stream nor writers of tables."""
    rows = iter(_cursor(bench, "SELECT s.v FROM s JOIN names USING (k)"))
    bench.client.run("INSERT INTO s VALUES (1, 1, NULL)")
    assert next(rows).num_rows == 1
    changes = "INSERT INTO s VALUES (1, 2, NULL); UPDATE names SET n = 'x'; DROP TABLE names"
    assert Beside(Client(bench.database).run, changes).result() == "DROP TABLE"
    assert next(rows).to_pydict().popitem()[1] == [2]
