"""Views that read a view whose rows are kept: they follow its changes, and its rows are in memory once for all of them.

The judge is the upper query over the lower one as a subquery, which reads the tables as they are.
"""

from __future__ import annotations

import random
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from datetime import datetime
from pathlib import Path

import pytest

from executor.database.database import Database
from executor.maintained import expanded_views, kept_rows, maintained_views
from executor.maintained.known_view import KnownView
from tests.executor.client import Client, open_database
from tests.executor.test_fills import settle
from tests.executor.test_maintained_views import change, create, kept
from tests.executor.view_queries import MAINTAINED, TABLES, bag, names
from tests.rig.sampling import sample

#: Queries over a view; ``{first}`` is its first column.
UPPER = (
    "SELECT * FROM {below}",
    "SELECT count(*) FROM {below}",
    "SELECT {first}, count(*) FROM {below} GROUP BY 1",
    "SELECT x.{first}, count(*) FROM {below} x JOIN {below} y ON x.{first} IS NOT DISTINCT FROM y.{first} GROUP BY 1",
    "SELECT * FROM {below} WHERE {first} IS NOT NULL",
    "SELECT DISTINCT {first} FROM {below}",
    "SELECT {first}, row_number() OVER (PARTITION BY {first}) FROM {below}",
    "SELECT k, many FROM a, (SELECT count(*) many FROM {below}) x",
    "SELECT {first} FROM {below} ORDER BY {first} DESC NULLS LAST LIMIT 2",
    "SELECT count(*) FROM (SELECT {first} FROM {below} UNION ALL SELECT {first} FROM {below}) x",
)
GROUPED = "SELECT g, sum(v) s, count(*) n FROM a GROUP BY g"


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    with closing(open_database(tmp_path)) as found:
        yield found


def known(database: Database, view: str) -> KnownView:
    return next(item for item in database.maintained._known.values() if item.runtime.view.name == view)


def sources(database: Database, view: str) -> set[str]:
    """The views whose kept rows a view's dataflow reads."""
    return {database.core.view(oid).view.name for oid in known(database, view).reads}


@pytest.mark.parametrize("place", sample(range(len(MAINTAINED)), (0, 34, 53)))
def test_views_over_a_view_equal_their_queries(database: Database, place: int) -> None:
    drawn, client, lower = random.Random(place), Client(database), MAINTAINED[place]
    create(client, (lower,))
    listed = names(client, lower)
    first = "c0" if listed else client.bind(lower).outputs[0].name
    queries = [text.format(below="v0", first=first) for text in UPPER]
    for number, query in enumerate(queries):
        columns = names(client, query)
        client.run(f"CREATE MATERIALIZED VIEW u{number}{columns} WITH (method = 'incremental') AS {query}")
    for _ in range(6):
        for _ in range(drawn.randint(1, 3)):
            client.run(change(drawn))
        for number in drawn.sample(range(-1, len(UPPER)), 6):
            if number < 0:
                assert bag(client.run("SELECT * FROM v0")) == bag(client.run(lower))
                continue
            query = f"WITH v0{listed} AS ({lower}) {queries[number]}"
            assert bag(client.run(f"SELECT * FROM u{number}")) == bag(client.run(query)), query
    rows = known(database, "v0").kept
    assert rows is not None
    for number in range(len(UPPER)):
        client.run(f"SELECT * FROM u{number}")
        assert sources(database, f"u{number}") == ({"v0"} if rows.follows_changes_alone else set())
    assert kept(database) == {"v0", *(f"u{number}" for number in range(len(UPPER)))}


@pytest.fixture
def chain(database: Database) -> Client:
    """Three views, each over the one before it, of which the last is read."""
    client = Client(database)
    client.run(TABLES)
    client.run("INSERT INTO a SELECT i, i % 7, i FROM generate_series(1, 40) i")
    client.run(f"CREATE MATERIALIZED VIEW one WITH (method = 'incremental') AS {GROUPED}")
    client.run("CREATE MATERIALIZED VIEW two WITH (method = 'incremental') AS SELECT n, sum(s) s FROM one GROUP BY n")
    client.run("CREATE MATERIALIZED VIEW three WITH (method = 'incremental') AS SELECT max(s) s, count(*) n FROM two")
    check(client)
    assert [sources(database, name) for name in ("one", "two", "three")] == [set(), {"one"}, {"two"}]
    return client


TWO = f"SELECT n, sum(s) s FROM ({GROUPED}) one GROUP BY n"
QUERIES = {"one": GROUPED, "two": TWO, "three": f"SELECT max(s) s, count(*) n FROM ({TWO}) two"}


def check(client: Client, *views: str) -> None:
    for view in views or ("three",):
        assert bag(client.run(f"SELECT * FROM {view}")) == bag(client.run(QUERIES[view]))


def test_a_view_whose_source_is_lost_is_computed_and_kept_again(database: Database, chain: Client) -> None:
    maintained = database.maintained
    for lost in ("one", "two", "one"):
        maintained._give_back(known(database, lost))
        chain.run("UPDATE a SET v = v + 1 WHERE k < 4")
        check(chain, "three", "one")
    for _ in range(12):
        chain.run("UPDATE a SET v = v + 1 WHERE k = 7")
        check(chain)
    assert kept(database) == {"one", "two", "three"}


def test_many_changes_between_two_reads(database: Database, chain: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    """The changes of a view that is read often are kept, joined, for one above it that is read seldom."""
    rows = known(database, "two").kept
    assert rows is not None
    rows._recent._most = 6
    for number in range(30):
        chain.run(f"UPDATE a SET v = v + {number} WHERE k = {number % 9 + 1}")
        check(chain, "two")
    monkeypatch.setattr(kept_rows.KeptRows, "fill", None)  # none is made anew
    check(chain)
    assert known(database, "two").kept is rows


def test_readers_of_older_snapshots(database: Database, chain: Client) -> None:
    other = Client(database)
    chain.run("BEGIN ISOLATION LEVEL REPEATABLE READ")
    before = {view: bag(chain.run(query)) for view, query in QUERIES.items()}
    other.run("INSERT INTO a VALUES (100, 3, 50)")
    check(other, "one")
    for view, rows in before.items():
        assert bag(chain.run(f"SELECT * FROM {view}")) == rows
    check(other, *QUERIES)
    for view, rows in before.items():
        assert bag(chain.run(f"SELECT * FROM {view}")) == rows
    chain.run("COMMIT")
    check(chain, *QUERIES)
    assert kept(database) == {"one", "two", "three"}


def test_readers_and_writers_at_once(database: Database, chain: Client) -> None:
    """Each reader sees all views at one moment, while others bring them forward."""
    is_over = threading.Event()

    def write() -> None:
        client = Client(database)
        try:
            for number in range(60):
                client.run(f"UPDATE a SET v = v + 1, g = (g + 1) % 7 WHERE k % 9 = {number % 9}")
        finally:
            is_over.set()

    def read(views: tuple[str, ...]) -> None:
        client = Client(database)
        while not is_over.is_set():
            client.run("BEGIN ISOLATION LEVEL REPEATABLE READ")
            found = [bag(client.run(f"SELECT * FROM {view}")) for view in views]
            assert found == [bag(client.run(QUERIES[view])) for view in views]
            client.run("COMMIT")

    with ThreadPoolExecutor(4) as threads:
        readers = [threads.submit(read, views) for views in (("three", "one"), ("one", "two", "three"), ("two",))]
        threads.submit(write).result()
        for reader in readers:
            reader.result()
    check(chain, *QUERIES)


def test_own_changes_are_seen(database: Database, chain: Client) -> None:
    chain.run("BEGIN; DELETE FROM a WHERE k < 20")
    check(chain, *QUERIES)
    chain.run("ROLLBACK")
    check(chain, *QUERIES)


def test_a_view_is_replaced_below_others(database: Database, chain: Client) -> None:
    chain.run("CREATE OR REPLACE VIEW plain AS SELECT g, s FROM one")
    chain.run("CREATE MATERIALIZED VIEW over_plain WITH (method = 'incremental') AS SELECT sum(s) s FROM plain")
    wanted = bag(chain.run(f"SELECT sum(s) FROM ({GROUPED}) x"))
    assert bag(chain.run("SELECT * FROM over_plain")) == wanted
    assert sources(database, "over_plain") == {"one"}
    chain.run("ALTER TABLE a ADD COLUMN more int DEFAULT 3; INSERT INTO a VALUES (200, 2, 9)")
    check(chain, *QUERIES)
    chain.run("ALTER MATERIALIZED VIEW one RENAME COLUMN s TO total")
    chain.run("UPDATE a SET v = v * 2")
    assert bag(chain.run("SELECT * FROM three")) == bag(chain.run(QUERIES["three"]))
    chain.run("DROP MATERIALIZED VIEW three; INSERT INTO a VALUES (201, 5, 9)")
    check(chain, "two")


def test_rows_are_made_in_the_background_from_the_lowest_view_on(
    database: Database, chain: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(maintained_views, "AT_ONCE", 0)
    for item in tuple(database.maintained._known.values()):
        database.maintained._give_back(item)
    for _ in range(20):
        chain.run("UPDATE a SET v = v + 1 WHERE k = 7")
        check(chain)
        settle(database)
    assert kept(database) == {"one", "two", "three"}
    assert [sources(database, name) for name in ("one", "two", "three")] == [set(), {"one"}, {"two"}]


def test_views_that_are_too_large_together(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    """The rows of the views below are kept for the sake of one that is not followed without, whatever they cost."""
    monkeypatch.setattr(expanded_views, "_LARGE", 40)
    client = Client(database)
    client.run(TABLES)
    client.run("INSERT INTO a SELECT i, i % 7, i FROM generate_series(1, 40) i")
    client.run(f"CREATE MATERIALIZED VIEW one AS {GROUPED}")
    client.run("CREATE MATERIALIZED VIEW two AS SELECT n, sum(s) s FROM one GROUP BY n")
    query = "SELECT max(two.s) s, count(*) n FROM two JOIN one ON two.n = one.n"
    options = "WITH (method = 'incremental', refresh_policy = 'incremental')"
    client.run(f"CREATE MATERIALIZED VIEW three {options} AS {query}")
    shown = client.run("SELECT method FROM millstream.paths WHERE view = 'three'")
    assert ("changes of view two",) in shown and ("changes of view one",) in shown
    for number in range(5):
        client.run(f"UPDATE a SET v = v + 1, g = g + {number % 2} WHERE k < 4")
        assert client.run("SELECT * FROM three") == client.run(f"WITH one AS ({GROUPED}), two AS ({TWO}) {query}")
    assert sources(database, "three") == {"one", "two"}


def test_rows_that_are_computed_of_what_is_kept_are_no_source(database: Database) -> None:
    client = Client(database)
    ranked = "SELECT k, w, ntile(4) OVER (ORDER BY w, k) r FROM (SELECT a.k, b.w FROM a JOIN b ON a.k = b.k) x"
    create(client, (ranked,))
    client.run("INSERT INTO a SELECT i, i % 7, i FROM generate_series(1, 40) i; INSERT INTO b SELECT k, g, v FROM a")
    client.run("CREATE MATERIALIZED VIEW u WITH (method = 'incremental') AS SELECT count(*) FROM v0 WHERE r > 2")
    for _ in range(3):
        client.run("UPDATE a SET v = v - 3 WHERE k % 3 = 1")
        wanted = client.run(f"SELECT count(*) FROM ({ranked}) x WHERE r > 2")
        assert client.run("SELECT * FROM u") == wanted
    assert sources(database, "u") == set()


def test_explain_names_the_view(database: Database, chain: Client) -> None:
    shown = "\n".join(row[0] for row in chain.run("EXPLAIN SELECT * FROM three"))
    assert "changes of view two" in shown


#: A view that is kept is read by a part that the second view above computes at each read.
OVER_KEPT = """
CREATE TABLE t1 (id integer PRIMARY KEY, a integer, b timestamp);
CREATE TABLE t2 (src integer);
CREATE TABLE t3 (id integer PRIMARY KEY, a integer, b integer, c integer);
INSERT INTO t1 VALUES (6, 0, '2024-03-01'), (8, 5, '2024-02-29');
INSERT INTO t2 VALUES (1);
INSERT INTO t3 VALUES (2, 5, 0, 1), (10, 1, 3, 0);
CREATE MATERIALIZED VIEW v0 WITH (method = 'incremental') AS SELECT count(*) AS n FROM t1;
CREATE MATERIALIZED VIEW v1 WITH (method = 'recompute') AS
    SELECT t1.b FROM t1 JOIN (SELECT 5 AS c0 FROM t3 x FULL JOIN t3 y ON x.b = y.c
    WHERE 1 IN (SELECT n FROM v0) OR y.c <> x.id) z ON t1.a IS NOT DISTINCT FROM c0 LIMIT 1;
CREATE MATERIALIZED VIEW v2 WITH (method = 'incremental') AS
    SELECT (SELECT b FROM v1) AS b, least FROM t2 CROSS JOIN (SELECT min(a) AS least FROM t3) m;
"""


@pytest.mark.parametrize("isolation", ["REPEATABLE READ", "READ COMMITTED"])
def test_a_view_that_is_read_beside_kept_rows_is_found(database: Database, isolation: str) -> None:
    client, other = Client(database), Client(database)
    client.run(OVER_KEPT)
    first = [(datetime(2024, 2, 29), 1)]
    client.run(f"BEGIN ISOLATION LEVEL {isolation}")
    assert client.run("SELECT * FROM v2") == first
    assert client.run("DELETE FROM t3 RETURNING id") == [(2,), (10,)]
    client.run("COMMIT")
    assert other.run("SELECT count(*) FROM t3") == [(0,)]
    for session in (client, other):
        assert session.run("SELECT * FROM v2") == [(None, None)]
        assert session.run("SELECT * FROM v1") == []
    assert "v2" in kept(database)
    other.run("INSERT INTO t3 VALUES (3, 7, 1, 1); UPDATE t1 SET b = NULL WHERE id = 8; INSERT INTO t2 VALUES (2)")
    assert client.run("SELECT * FROM v2") == other.run(
        "SELECT (SELECT b FROM v1) AS b, least FROM t2 CROSS JOIN (SELECT min(a) AS least FROM t3) m"
    )
