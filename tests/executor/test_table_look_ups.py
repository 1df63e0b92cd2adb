"""Views of which rows are looked up in tables, since they do not fit into memory: they equal their queries."""

from __future__ import annotations

import random
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from executor.database.database import Database
from executor.maintained import known_view, maintained_views
from executor.maintained.known_view import fitting
from tests.executor.client import Client, open_database
from tests.executor.test_fills import settle
from tests.executor.test_maintained_views import change, create
from tests.executor.view_queries import MAINTAINED, PARTLY, TABLES, bag
from tests.rig.sampling import sample

JOINED = "SELECT b.g, count(*) n, sum(a.v) s FROM a JOIN b ON a.k = b.k JOIN c ON c.k = b.g GROUP BY b.g"


@pytest.fixture
def database(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Database]:
    """With no room for rows that may be looked up."""
    monkeypatch.setattr(maintained_views, "AT_ONCE", 0)
    monkeypatch.setattr(known_view, "fitting", lambda flow, statistics, most: fitting(flow, statistics, 0))
    with closing(open_database(tmp_path)) as found:
        yield found


def looking_up(database: Database) -> set[str]:
    """The views that follow changes and look rows up."""
    known = database.maintained._known.values()
    return {item.runtime.view.name for item in known if item.kept is not None and item.kept.looks_up}


def explained(client: Client, view: str) -> list[str]:
    return [str(row[0]).strip() for row in client.run(f"EXPLAIN SELECT * FROM {view}")]


@pytest.mark.parametrize("seed", sample(range(6), (0,)))
def test_views_equal_their_queries(database: Database, seed: int, whole: bool) -> None:
    drawn, client, queries = random.Random(seed), Client(database), (*MAINTAINED, *PARTLY)
    create(client, queries)
    found: set[str] = set()
    for _ in range(10 if whole else 4):
        for _ in range(drawn.randint(1, 3)):
            client.run(change(drawn))
        for place, query in enumerate(queries):
            if drawn.random() < 0.6:
                assert bag(client.run(f"SELECT * FROM v{place}")) == bag(client.run(query)), query
        settle(database)
        found |= looking_up(database)
    assert found


def test_explain_says_so(database: Database) -> None:
    client = Client(database)
    create(client, (JOINED,))
    client.run(
        "INSERT INTO a VALUES (1, 1, 1); INSERT INTO b (k, g, w) VALUES (1, 1, 1); INSERT INTO c (k, t) VALUES (1, 'x')"
    )
    client.run("SELECT * FROM v0")
    settle(database)
    client.run("INSERT INTO a VALUES (2, 1, 4); INSERT INTO b (k, g, w) VALUES (2, 1, 5)")
    assert client.run("SELECT * FROM v0") == [(1, 2, 5)]
    told = explained(client, "v0")
    assert "Rows Looked Up: in the table, by the key of rows that change" in told
    assert "Followed: when the view is read" in told
    assert looking_up(database) == {"v0"}


def test_reads_of_a_transaction_see_its_moment(database: Database) -> None:
    """A snapshot from before a change computes the rows; one from after it follows the change."""
    client, other = Client(database), Client(database)
    create(client, (JOINED,))
    client.run(
        "INSERT INTO a VALUES (1, 1, 1); INSERT INTO b (k, g, w) VALUES (1, 1, 1); INSERT INTO c (k, t) VALUES (1, 'x')"
    )
    client.run("SELECT * FROM v0")
    settle(database)
    other.run("BEGIN ISOLATION LEVEL REPEATABLE READ")
    assert other.run("SELECT * FROM v0") == [(1, 1, 1)]
    client.run("UPDATE a SET v = 7; UPDATE b SET g = 2; INSERT INTO c (k, t) VALUES (2, 'y')")
    assert client.run("SELECT * FROM v0") == [(2, 1, 7)]
    assert other.run("SELECT * FROM v0") == [(1, 1, 1)]
    other.run("COMMIT")
    assert other.run("SELECT * FROM v0") == [(2, 1, 7)]
    client.run("BEGIN; UPDATE a SET v = 8")
    assert client.run("SELECT * FROM v0") == [(2, 1, 8)]
    assert other.run("SELECT * FROM v0") == [(2, 1, 7)]
    client.run("ROLLBACK")
    assert looking_up(database) == {"v0"}


def test_views_above_equal_their_queries(database: Database) -> None:
    """Their rows are not made of those of a view that looks rows up, which only its readers bring forward."""
    client, drawn = Client(database), random.Random(5)
    client.run(TABLES)
    client.run(f"CREATE MATERIALIZED VIEW below WITH (method = 'incremental') AS {JOINED}")
    above = "SELECT max(s) m, sum(n) n FROM {}"
    client.run(f"CREATE MATERIALIZED VIEW above WITH (method = 'incremental') AS {above.format('below')}")
    for _ in range(12):
        client.run(change(drawn))
        assert client.run("SELECT * FROM above") == client.run(above.format(f"({JOINED}) q"))
        assert bag(client.run("SELECT * FROM below")) == bag(client.run(JOINED))
        settle(database)


def test_readers_beside_writers(database: Database) -> None:
    client = Client(database)
    create(client, (JOINED,))
    client.run(
        "INSERT INTO c (k, t) VALUES (1, 'x'); INSERT INTO b (k, g, w) SELECT i, 1, i FROM generate_series(1, 50) i"
    )
    client.run("INSERT INTO a SELECT i, 1, 1 FROM generate_series(1, 50) i")
    client.run("SELECT * FROM v0")
    settle(database)
    failed: list[BaseException] = []

    def write() -> None:
        writer = Client(database)
        try:
            for number in range(100):
                writer.run(f"UPDATE a SET v = v + 1 WHERE k = {number % 50 + 1}")
        except BaseException as error:
            failed.append(error)

    thread = threading.Thread(target=write)
    thread.start()
    sums = []
    while thread.is_alive():
        ((_, count, total),) = client.run("SELECT * FROM v0")
        assert count == 50
        sums.append(total)
    thread.join()
    assert not failed
    assert sums == sorted(sums)
    assert client.run("SELECT * FROM v0") == [(1, 50, 150)]
