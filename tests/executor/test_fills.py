"""Rows of views over much data are made in the background, while readers compute the views anew."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from catalog.values.errors import SqlError
from executor.database.database import Database
from executor.dataflow import maintained
from executor.maintained import kept_rows, known_view, maintained_views, read_costs
from executor.maintained.fills import Fill
from executor.maintained.kept_rows import KeptRows
from tests.executor.client import Client, open_database
from tests.executor.test_maintained_views import change, create, kept
from tests.executor.view_queries import MAINTAINED, PARTLY, bag
from tests.rig.sampling import sample

PATIENCE = 60
SUMS = "SELECT g, sum(v) s FROM a GROUP BY g"


@pytest.fixture
def database(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Database]:
    monkeypatch.setattr(maintained_views, "AT_ONCE", 0)
    with closing(open_database(tmp_path)) as found:
        yield found


class Gate:
    """Holds fills up where they make rows."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.reached, self.opened, self.left = threading.Event(), threading.Event(), threading.Event()
        fill, run = KeptRows.fill, Fill.run

        def held(rows: KeptRows, whole: maintained.Whole) -> None:
            self.reached.set()
            assert self.opened.wait(PATIENCE)
            fill(rows, whole)

        def told(item: Fill) -> None:
            run(item)
            self.left.set()

        monkeypatch.setattr(kept_rows.KeptRows, "fill", held)
        monkeypatch.setattr(Fill, "run", told)

    def open(self) -> None:
        """Lets the fill that is held go on, and waits for its end."""
        assert self.reached.wait(PATIENCE)
        self.opened.set()
        assert self.left.wait(PATIENCE)


@pytest.fixture
def gate(monkeypatch: pytest.MonkeyPatch, database: Database) -> Iterator[Gate]:
    found = Gate(monkeypatch)
    yield found
    found.opened.set()


def settle(database: Database) -> None:
    """Waits until no fill is under way."""
    for known in tuple(database.maintained._known.values()):
        pause = threading.Event()
        while known.fill is not None and not known.fill.is_over:
            pause.wait(0.005)


@pytest.mark.parametrize("seed", sample(range(3), (0,)))
def test_views_equal_their_queries_before_and_after(database: Database, seed: int) -> None:
    drawn, client = random.Random(seed), Client(database)
    queries = drawn.sample(MAINTAINED + PARTLY, 8)
    create(client, tuple(queries))
    client.run("INSERT INTO a SELECT i, i % 4, i FROM generate_series(1, 9) i")
    for step in range(8):
        for _ in range(drawn.randint(1, 3)):
            client.run(change(drawn))
        for place, query in enumerate(queries):
            assert bag(client.run(f"SELECT * FROM v{place}")) == bag(client.run(query)), query
        if step % 2:
            settle(database)
    settle(database)
    for place in range(len(queries)):
        client.run(f"SELECT * FROM v{place}")
    assert kept(database) == {f"v{place}" for place in range(len(queries))}


def test_readers_and_writers_go_on_meanwhile(database: Database, gate: Gate) -> None:
    client = Client(database)
    create(client, (SUMS,))
    client.run("INSERT INTO a VALUES (1, 1, 1), (2, 1, 5)")
    assert client.run("SELECT * FROM v0") == [(1, 6)]
    assert gate.reached.wait(PATIENCE)
    client.run("INSERT INTO a VALUES (3, 2, 7); DELETE FROM a WHERE k = 1")
    assert bag(client.run("SELECT * FROM v0")) == bag([(1, 5), (2, 7)])
    told = "\n".join(line for (line,) in client.run("EXPLAIN SELECT * FROM v0"))
    assert "once they have been made in the background" in told
    assert kept(database) == set()
    gate.open()
    client.run("INSERT INTO a VALUES (4, 2, 1)")
    assert bag(client.run("SELECT * FROM v0")) == bag([(1, 5), (2, 8)])
    assert kept(database) == {"v0"}
    client.run("UPDATE a SET g = 3")
    assert client.run("SELECT * FROM v0") == [(3, 13)]
    assert kept(database) == {"v0"}


def test_an_older_snapshot_reads_its_own_moment(database: Database, gate: Gate) -> None:
    client, other = Client(database), Client(database)
    create(client, (SUMS,))
    client.run("INSERT INTO a VALUES (1, 1, 1)")
    other.run("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT * FROM b")
    client.run("INSERT INTO a VALUES (2, 1, 5)")
    assert client.run("SELECT * FROM v0") == [(1, 6)]
    gate.open()
    assert client.run("SELECT * FROM v0") == [(1, 6)]
    assert other.run("SELECT * FROM v0") == [(1, 1)]
    other.run("COMMIT")
    assert other.run("SELECT * FROM v0") == [(1, 6)]


def _drops(database: Database, client: Client) -> None:
    client.run("DROP MATERIALIZED VIEW v0")


def _replaces(database: Database, client: Client) -> None:
    client.run("DROP MATERIALIZED VIEW v0; CREATE MATERIALIZED VIEW v0 AS SELECT k FROM a")


def _gives_back(database: Database, client: Client) -> None:
    for item in tuple(database.core.trace_budget._traces):
        item.give_back(1 << 40)


@pytest.mark.parametrize("end", [_drops, _replaces, _gives_back])
def test_a_fill_that_is_not_wanted_any_more_leaves_nothing(
    database: Database, gate: Gate, end: Callable[[Database, Client], None]
) -> None:
    client = Client(database)
    create(client, (SUMS,))
    client.run("INSERT INTO a VALUES (1, 1, 1)")
    client.run("SELECT * FROM v0")
    assert gate.reached.wait(PATIENCE)
    end(database, client)
    client.run("SELECT 1")
    gate.open()
    assert kept(database) == set()
    assert not database.core._table_changes


def test_a_fill_that_fails_leaves_the_query(database: Database) -> None:
    client = Client(database)
    create(client, ("SELECT g, sum(10 / v) s FROM a GROUP BY g",))
    client.run("INSERT INTO a VALUES (1, 1, 0)")
    with pytest.raises(SqlError, match="division by zero"):
        client.run("SELECT * FROM v0")
    settle(database)
    with pytest.raises(SqlError, match="division by zero"):
        client.run("SELECT * FROM v0")
    client.run("UPDATE a SET v = 5")
    assert client.run("SELECT * FROM v0") == [(1, 2)]


def test_what_takes_too_much_memory_is_not_kept(database: Database) -> None:
    client = Client(database)
    create(client, (SUMS,))
    client.run("INSERT INTO a SELECT i, i, i FROM generate_series(1, 1000) i")
    database.core.trace_budget.limit = 10_000
    assert len(client.run("SELECT * FROM v0")) == 1000
    settle(database)
    assert len(client.run("SELECT * FROM v0")) == 1000
    assert kept(database) == set()


def test_closing_ends_the_fills(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(maintained_views, "AT_ONCE", 0)
    database, held = open_database(tmp_path), Gate(monkeypatch)
    client = Client(database)
    create(client, (SUMS, "SELECT g, max(v) m FROM a GROUP BY g"))
    client.run("INSERT INTO a VALUES (1, 1, 1)")
    client.run("SELECT * FROM v0; SELECT * FROM v1")
    assert held.reached.wait(PATIENCE)
    closer = threading.Thread(target=database.close)
    closer.start()
    held.opened.set()
    closer.join(PATIENCE)
    assert not closer.is_alive()


def test_rows_that_are_expected_not_to_fit_are_not_made(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    """EXPLAIN says so; they are made once there is room. A method that is forced is tried."""
    client, most = Client(database), 10_000
    monkeypatch.setattr(read_costs, "WORTH_SECONDS", 0.0)
    monkeypatch.setattr(read_costs, "OUTLAY_SECONDS", 0.0)
    monkeypatch.setattr(known_view, "most_bytes", lambda core: most)
    client.run("CREATE TABLE a (k int PRIMARY KEY, g int, v int)")
    client.run("INSERT INTO a SELECT i, i, i FROM generate_series(1, 2000) i")
    client.run(f"CREATE MATERIALIZED VIEW m AS {SUMS}")

    def read(times: int) -> None:
        for _ in range(times):
            client.run("UPDATE a SET v = v + 1 WHERE k = 1")
            assert bag(client.run("SELECT * FROM m")) == bag(client.run(SUMS))

    def method() -> str:
        lines = (str(row[0]) for row in client.run("EXPLAIN SELECT * FROM m"))
        return next(line.strip() for line in lines if "Method: " in line)

    def is_made() -> bool:
        """Whether the rows are made after some reads."""
        for _ in range(10):
            known.costs.pause = 0
            read(1)
            settle(database)
            if known.fill is not None:
                return True
        return False

    read(1)
    (known,) = database.maintained._known.values()
    assert not is_made()
    assert method() == "Method: by changes, once they fit into half of trace_memory (recomputation until then)"
    client.run("ALTER MATERIALIZED VIEW m SET (method = 'incremental')")
    assert is_made()
    client.run("ALTER MATERIALIZED VIEW m SET (method = 'recompute')")
    read(1)
    client.run("ALTER MATERIALIZED VIEW m SET (method = 'auto')")
    assert not is_made()
    most = 10_000_000
    assert is_made()


def test_rows_that_did_not_fit_are_not_made_again(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    """Unless they are expected to take less: an estimate may be wrong, and to fill a dataflow takes long."""
    client, expected = Client(database), 500_000.0
    monkeypatch.setattr(read_costs, "WORTH_SECONDS", 0.0)
    monkeypatch.setattr(read_costs, "OUTLAY_SECONDS", 0.0)
    monkeypatch.setattr(kept_rows, "most_bytes", lambda core: 1_000)
    monkeypatch.setattr(known_view, "fitting", lambda flow, statistics, most: (flow, expected))
    client.run("CREATE TABLE a (k int PRIMARY KEY, g int, v int)")
    client.run("INSERT INTO a SELECT i, i, i FROM generate_series(1, 2000) i")
    client.run(f"CREATE MATERIALIZED VIEW m AS {SUMS}")

    def read() -> bool:
        """A read that may begin to make the rows; whether it has."""
        before = known.fill
        known.costs.pause = 0
        client.run("UPDATE a SET v = v + 1 WHERE k = 1")
        assert bag(client.run("SELECT * FROM m")) == bag(client.run(SUMS))
        settle(database)
        return known.fill is not None and known.fill is not before

    client.run("SELECT * FROM m")
    (known,) = database.maintained._known.values()
    assert [read() for _ in range(4)].count(True) == 1
    assert known.refused == expected
    assert known.is_too_large
    expected = 400_000.0
    assert read()
    assert not read()
