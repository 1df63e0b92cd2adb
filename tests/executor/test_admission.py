"""Back-pressure: writers wait while views lag too far behind, and no writer waits forever."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pyarrow as pa
import pytest

from catalog.values.errors import SqlError
from executor.database.database import Database
from executor.options import Options
from executor.upkeep.admission import LOOK, Admission
from planner.bind import bind
from planner.bind.state.context import Context
from planner.parse.parser import parse
from planner.statements.statement import Insert
from tests.executor.client import Client, open_database
from tests.rig.process import wait_until

STREAM = "CREATE FOREIGN TABLE s (k int, n int) SERVER stream"
VIEW = "CREATE VIEW v AS SELECT k, sum(n) AS n FROM s GROUP BY k"


class Clock:
    """A clock that a test moves."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def test_a_look_holds_for_a_moment_and_opens_when_the_backlog_is_gone() -> None:
    backlog, clock = {7: 100}, Clock()
    admission = Admission(100, backlog.__getitem__, clock)
    assert admission.is_open(7)
    backlog[7] = 101
    assert admission.is_open(7), "looked at already"
    clock.now += LOOK
    assert not admission.is_open(7)
    backlog[7] = 0
    clock.now += LOOK
    assert admission.is_open(7)
    admission.wait(7, "s", lambda: False)


def test_a_view_created_since_one_looked_lags_by_nothing(tmp_path: Path) -> None:
    with closing(open_database(tmp_path)) as database:
        Client(database).run(STREAM)
        (stream,) = database.core.streams.values()
        visible = database.core.sequencer.visible
        assert stream.backlog(visible + 1) == 0


def test_waiting_ends_when_cancelled_when_moved_and_when_closed() -> None:
    backlog = {7: 101}
    admission = Admission(100, backlog.__getitem__)
    with pytest.raises(SqlError, match="57014"):
        admission.wait(7, "s", lambda: True)
    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(admission.wait, 7, "s", lambda: False)
        wait_until(lambda: admission.waiting(7) == 1)
        backlog[7] = 0
        admission.moved()
        first.result(60)
        backlog[7] = 101
        wait_until(lambda: not admission.is_open(7))
        second = pool.submit(admission.wait, 7, "s", lambda: False)
        wait_until(lambda: admission.waiting(7) == 1)
        admission.close()
        with pytest.raises(SqlError, match="57P01"):
            second.result(60)
    assert admission.waiting(7) == 0


@pytest.fixture
def resting(tmp_path: Path) -> Iterator[Database]:
    """A database whose background work has not begun, and whose backlog limit is a few thousand rows."""
    options = Options(
        tmp_path, spark_enabled=False, maintenance_rows=1 << 40, maintenance_idle=1e9, backlog_bytes=20_000
    )
    database = Database(options)
    yield database
    database.close()


def batch(rows: int) -> pa.RecordBatch:
    """Rows of one group."""
    return pa.RecordBatch.from_pydict({"k": [1] * rows, "n": [1] * rows}, pa.schema({"k": pa.int32(), "n": pa.int32()}))


def fill(database: Database) -> Client:
    """Fills a stream until its view is too far behind."""
    client = Client(database)
    client.run(STREAM)
    client.run(VIEW)
    client.copy("COPY s FROM STDIN", [batch(10_000)])
    (oid,) = database.core.streams
    wait_until(lambda: not database.admission.is_open(oid))
    return client


@pytest.mark.slow
def test_writers_wait_for_maintenance_which_then_puts_nothing_off(resting: Database) -> None:
    """Neither the rows nor the idle time would make the view due, and the waiting COPY counts as load."""
    client, other = fill(resting), Client(resting)
    (oid,) = resting.core.streams
    with ThreadPoolExecutor(2) as pool:
        insert = pool.submit(client.run, "INSERT INTO s VALUES (1, 1)")
        copy = pool.submit(other.copy, "COPY s FROM STDIN", [batch(10), batch(10)])
        wait_until(lambda: resting.admission.waiting(oid) == 2)
        streams = "SELECT writers_waiting FROM millstream.streams"
        assert Client(resting).run(streams) == [(2,)]
        assert Client(resting).run("SELECT n FROM v") == [(10_000,)], "readers wait for nothing"
        resting.maintenance.start()
        assert insert.result(60) == "INSERT 0 1"
        assert copy.result(60) == 20
    assert client.run("SELECT n FROM v") == [(10_021,)]


@pytest.mark.slow
def test_a_waiting_writer_can_be_cancelled_and_its_transaction_fails(resting: Database) -> None:
    client = fill(resting)
    (oid,) = resting.core.streams
    client.run("BEGIN")
    with ThreadPoolExecutor(1) as pool:
        insert = pool.submit(client.run, "INSERT INTO s VALUES (1, 1)")
        wait_until(lambda: resting.admission.waiting(oid) == 1)
        client.session.cancel()
        with pytest.raises(SqlError, match="57014"):
            insert.result(60)
    assert client.session.status == "E"
    client.run("ROLLBACK")
    assert client.run("SELECT n FROM v") == [(10_000,)]


def test_a_transaction_does_not_wait_for_itself(resting: Database) -> None:
    client = Client(resting)
    client.run(STREAM)
    client.run(VIEW)
    client.run("BEGIN")
    for _ in range(4):
        client.copy("COPY s FROM STDIN", [batch(30_000), batch(30_000)])
    client.run("COMMIT")
    assert client.run("SELECT n FROM v") == [(240_000,)]


@pytest.mark.slow
@pytest.mark.parametrize("end", ["DROP VIEW v", "error"])
def test_a_view_that_is_dropped_or_in_error_lets_writers_go_on(resting: Database, end: str) -> None:
    client = fill(resting)
    (oid,) = resting.core.streams
    if end == "error":
        client.run("CREATE VIEW w AS SELECT sum(1 / (n - 2)) AS x FROM s")
        client.run("DROP VIEW v")
        wait_until(lambda: resting.admission.is_open(oid))
        client.run("INSERT INTO s VALUES (1, 2)")
        client.copy("COPY s FROM STDIN", [batch(10_000)])
        wait_until(lambda: not resting.admission.is_open(oid))
        with pytest.raises(SqlError, match="22012"):
            client.run("SELECT * FROM w")
    else:
        client.run(end)
    wait_until(lambda: resting.admission.is_open(oid))
    assert client.run("INSERT INTO s VALUES (1, 1)") == "INSERT 0 1"


def test_a_short_insert_goes_past_the_worker_threads_only_while_it_need_not_wait(resting: Database) -> None:
    client = Client(resting)
    client.run(STREAM)
    insert = bind(parse("INSERT INTO s VALUES (1, 1)")[0], Context(resting.core.catalog)).statement
    assert isinstance(insert, Insert)
    done = threading.Event()
    assert client.session.at_once.append(insert, [()], lambda error: done.set())
    assert done.wait(60)
    client.run(VIEW)
    client.copy("COPY s FROM STDIN", [batch(10_000)])
    (oid,) = resting.core.streams
    wait_until(lambda: not resting.admission.is_open(oid))
    assert not client.session.at_once.append(insert, [()], lambda error: None)
