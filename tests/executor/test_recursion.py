"""Recursions follow changes: their rows equal the query computed from scratch, over graphs with cycles.

The judge is the same query, which reads the tables as they are; ``tests/law/test_recursions.py`` has PostgreSQL's.
"""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from catalog.values.errors import SqlError
from executor.database.database import Database
from executor.dataflow import recursion
from executor.maintained import maintained_views
from planner.cancellation import Calls
from tests.executor.client import Client, open_database
from tests.executor.test_maintained_views import kept
from tests.executor.view_queries import bag
from tests.rig.recursions import NODES, QUERIES, TABLES, change
from tests.rig.sampling import sample

OPTIONS = "WITH (method = 'incremental', refresh_policy = 'incremental')"


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    with closing(open_database(tmp_path)) as found:
        yield found


def create(client: Client, *queries: str) -> None:
    for place, query in enumerate(queries):
        client.run(f"CREATE MATERIALIZED VIEW r{place} {OPTIONS} AS {query}")


@pytest.mark.parametrize("seed", sample(range(12), (0,)))
def test_recursions_equal_their_queries(database: Database, seed: int, whole: bool) -> None:
    drawn, client, queries = random.Random(seed), Client(database), [*QUERIES.values()]
    client.run(f"{TABLES}; {NODES}")
    for _ in range(drawn.choice((0, 8))):
        client.run(change(drawn))
    create(client, *queries)
    for _ in range(15 if whole else 7):
        for _ in range(drawn.choice((1, 1, 3))):
            client.run(change(drawn))
        for place, query in enumerate(queries):
            assert bag(client.run(f"SELECT * FROM r{place}")) == bag(client.run(query)), query
    assert kept(database) == {f"r{place}" for place in range(len(queries))}


def test_levels_of_a_graph() -> None:
    sources, targets = np.array([0, 1, 1, 4, 4, 5]), np.array([1, 2, 0, 5, 4, 4])
    assert recursion.levels(6, np.array([0, 2]), sources, targets).tolist() == [0, 1, 0, -1, -1, -1]
    assert recursion.levels(6, np.array([5]), sources, targets).tolist() == [-1, -1, -1, -1, 1, 0]
    assert recursion.levels(0, np.array([], np.int64), sources[:0], targets[:0]).tolist() == []


def test_rows_that_hold_each_other_go_with_what_they_rest_on(database: Database) -> None:
    client = Client(database)
    client.run(TABLES)
    create(client, QUERIES["reached"], QUERIES["rounds"])
    client.run("INSERT INTO nodes VALUES (1, 1, 'root'); INSERT INTO edges VALUES (1, 2, 1), (2, 3, 1), (3, 4, 1)")
    assert bag(client.run("SELECT k FROM r0")) == bag([(1,), (2,), (3,), (4,)])
    client.run("INSERT INTO edges VALUES (4, 2, 1)")
    client.run("SELECT * FROM r0, r1")
    client.run("DELETE FROM edges WHERE a = 1")
    assert client.run("SELECT k FROM r0") == [(1,)]
    assert client.run("SELECT k FROM r1") == [(1,)]
    client.run("INSERT INTO edges VALUES (1, 4, 1)")
    assert bag(client.run("SELECT k FROM r0")) == bag([(1,), (2,), (3,), (4,)])
    # An edge goes, and a cycle through what it led to comes.
    client.run("BEGIN; DELETE FROM edges WHERE a = 1; INSERT INTO edges VALUES (3, 3, 1), (2, 4, 1); COMMIT")
    assert client.run("SELECT k FROM r0") == [(1,)]
    assert client.run("SELECT k FROM r1") == [(1,)]
    assert kept(database) == {"r0", "r1"}


def test_a_row_with_two_supports_stays_with_one(database: Database) -> None:
    client = Client(database)
    client.run(TABLES)
    create(client, QUERIES["reached"], QUERIES["rounds"])
    client.run(
        "INSERT INTO nodes VALUES (1, 1, 'root'); INSERT INTO edges VALUES (1, 2, 1), (1, 3, 1), (2, 4, 1), (3, 4, 1)"
    )
    client.run("SELECT * FROM r0, r1")
    client.run("DELETE FROM edges WHERE a = 2")
    assert bag(client.run("SELECT k FROM r0")) == bag([(1,), (2,), (3,), (4,)])
    client.run("DELETE FROM edges WHERE a = 3")
    assert bag(client.run("SELECT k FROM r0")) == bag([(1,), (2,), (3,)])
    # Another way appears as the last one goes: the row rests on a row that came after it.
    client.run("INSERT INTO edges VALUES (3, 5, 1), (5, 6, 1), (1, 6, 1), (6, 5, 1)")
    client.run("SELECT * FROM r0")
    client.run("DELETE FROM edges WHERE a = 3 AND b = 5")
    assert bag(client.run("SELECT k FROM r0")) == bag([(1,), (2,), (3,), (5,), (6,)])
    assert kept(database) == {"r0", "r1"}


def test_recursions_over_streams_and_views(database: Database) -> None:
    client, drawn = Client(database), random.Random(3)
    client.run("CREATE FOREIGN TABLE s (a int, b int) SERVER stream; CREATE TABLE t (a int, b int)")
    client.run("CREATE TABLE starts (k int)")
    client.run("CREATE VIEW links AS SELECT a, b, count(*) AS n FROM s GROUP BY a, b")
    query = (
        "WITH RECURSIVE r AS (SELECT k FROM starts UNION SELECT b FROM r JOIN {} l ON a = k WHERE n > 1)"
        " SELECT k, (SELECT count(*) FROM starts) AS c FROM r"
    )
    paths = (
        "WITH RECURSIVE r AS (SELECT b, ARRAY[a] AS p FROM {0} WHERE a = 1 UNION ALL"
        " SELECT e.b, p || e.a FROM r JOIN {0} e ON e.a = r.b WHERE e.a <> ALL (p)) SELECT b, p FROM r"
    )
    client.run(f"CREATE MATERIALIZED VIEW v {OPTIONS} AS {query.format('links')}")
    client.run(f"CREATE VIEW w WITH (method = 'incremental') AS {paths.format('s')}")
    for _ in range(12):
        rows = ", ".join(f"({drawn.randint(0, 4)}, {drawn.randint(0, 4)})" for _ in range(2))
        client.run(f"INSERT INTO s VALUES {rows}; INSERT INTO t VALUES {rows}")
        if drawn.random() < 0.5:
            client.run(f"INSERT INTO starts VALUES ({drawn.randint(0, 4)})")
        else:
            client.run(f"DELETE FROM starts WHERE k = {drawn.randint(0, 4)}")
        links = "(SELECT a, b, count(*) AS n FROM t GROUP BY a, b)"
        assert bag(client.run("SELECT * FROM v")) == bag(client.run(query.format(links)))
        assert bag(client.run("SELECT * FROM w")) == bag(client.run(paths.format("t")))
    assert kept(database) == {"v", "w"}


ENDLESS = (
    "WITH RECURSIVE r AS (SELECT k FROM nodes UNION SELECT r.k + 1 FROM r JOIN limits ON r.k < most) SELECT * FROM r"
)


def read_until(client: Client, is_over: Callable[[], bool]) -> None:
    """Reads in a thread, and cancels that as a session does."""
    found, calls = list[str](), Calls()

    def read() -> None:
        try:
            client.run("SELECT count(*) FROM r0")
        except SqlError as error:
            found.append(error.sqlstate)

    thread = threading.Thread(target=calls.within, args=(read,))
    thread.start()
    while thread.is_alive():
        if is_over():
            client.session.cancel()
            calls.interrupt()
            client.session.database.core.engine.interrupt(calls)
        thread.join(0.05)
    assert found == ["57014"]


def endless(database: Database) -> Client:
    """A view that is kept, and then asks for more rows than there is time for."""
    client = Client(database)
    client.run(f"{TABLES}; CREATE TABLE limits (most int)")
    create(client, ENDLESS)
    client.run("INSERT INTO nodes VALUES (1, 1, 'x'); INSERT INTO limits VALUES (5)")
    assert len(client.run("SELECT * FROM r0")) == 5
    assert kept(database) == {"r0"}
    client.run("UPDATE limits SET most = 2000000000")
    return client


def test_an_endless_recursion_ends_when_its_reader_does(database: Database) -> None:
    client = endless(database)
    read_until(client, lambda: True)
    client.run("UPDATE limits SET most = 7")
    assert len(client.run("SELECT * FROM r0")) == 7


def test_an_endless_fill_ends_with_its_database(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The background makes the rows of a view meanwhile, which nobody waits for."""
    monkeypatch.setattr(maintained_views, "AT_ONCE", 0)
    with closing(open_database(tmp_path)) as database:
        client = Client(database)
        client.run(f"{TABLES}; CREATE TABLE limits (most int)")
        create(client, ENDLESS)
        client.run("INSERT INTO nodes VALUES (1, 1, 'x'); INSERT INTO limits VALUES (2000000000)")
        read_until(client, lambda: any(known.fill for known in tuple(database.maintained._known.values())))
        (known,) = database.maintained._known.values()
        assert known.fill is not None
        while known.fill._snapshot is None:  # a fill waits for the read that has begun it
            assert not known.fill.is_over
        assert kept(database) == set()


def test_rows_beyond_the_memory_are_given_up(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    client = Client(database)
    client.run(f"{TABLES}; CREATE TABLE limits (most int)")
    create(client, ENDLESS)
    client.run("INSERT INTO nodes VALUES (1, 1, 'x'); INSERT INTO limits VALUES (5)")
    client.run("SELECT * FROM r0")
    (known,) = database.read_services.maintained._known.values()
    assert known.kept is not None
    rows = known.kept._rows
    assert rows is not None
    monkeypatch.setattr(rows, "_most", rows.bytes + 4096)
    client.run("UPDATE limits SET most = 3000")
    assert len(client.run("SELECT * FROM r0")) == 3000
    assert kept(database) == set()


def test_an_error_of_a_step_is_the_readers(database: Database) -> None:
    client = Client(database)
    client.run(TABLES)
    create(
        client,
        "WITH RECURSIVE r AS (SELECT k FROM nodes UNION SELECT 12 / b FROM r JOIN edges ON a = k) SELECT * FROM r",
    )
    client.run("INSERT INTO nodes VALUES (1, 1, 'x'); INSERT INTO edges VALUES (1, 2, 1), (6, 3, 1)")
    assert bag(client.run("SELECT * FROM r0")) == bag([(1,), (6,), (4,)])
    client.run("INSERT INTO edges VALUES (4, 0, 1)")
    with pytest.raises(SqlError, match="division by zero"):
        client.run("SELECT * FROM r0")
    client.run("DELETE FROM edges WHERE b = 0")
    assert bag(client.run("SELECT * FROM r0")) == bag([(1,), (6,), (4,)])
