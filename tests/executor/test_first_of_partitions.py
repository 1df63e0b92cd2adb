"""The first rows of partitions that a view keeps: which rows a change reads, and which rows stay among those that tie.

The law beside PostgreSQL is tests/law/test_first_of_partitions.py.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from executor.database.database import Database
from executor.dataflow.operators import Changes
from tests.executor.client import Client, open_database
from tests.executor.view_queries import bag

ROWS = 300


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    with closing(open_database(tmp_path)) as found:
        yield found


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many rows of nodes changes have looked up, one number for each time."""
    found: list[int] = []
    rows = Changes._rows

    def counted(self: Changes, *arguments: object) -> object:
        table = rows(self, *arguments)  # type: ignore[arg-type]
        found.append(table.num_rows)
        return table

    monkeypatch.setattr(Changes, "_rows", counted)
    return found


def view(client: Client, query: str) -> None:
    """A view over two partitions of ``ROWS`` rows, which is kept."""
    client.run("CREATE TABLE t (k int PRIMARY KEY, g int, v int)")
    client.run(f"INSERT INTO t SELECT i, i % 2, i / 2 FROM generate_series(2, {2 * ROWS + 1}) i")
    client.run(f"CREATE MATERIALIZED VIEW w WITH (method = 'incremental') AS {query}")
    client.run("SELECT * FROM w")


@pytest.mark.parametrize(
    ("partition", "each"), [("PARTITION BY g", ROWS), ("PARTITION BY g > 0", ROWS), ("", 2 * ROWS)]
)
def test_a_partition_is_read_once_its_kept_rows_are_gone(
    database: Database, read: list[int], partition: str, each: int
) -> None:
    client = Client(database)
    numbered = f"SELECT *, row_number() OVER ({partition} ORDER BY v, k) r FROM t"
    query = f"SELECT k, g, v FROM ({numbered}) x WHERE r <= 2"
    view(client, query)

    def change(statement: str) -> list[int]:
        """The rows that the read after a change has looked up."""
        client.run(statement)
        read.clear()
        found = client.run("SELECT * FROM w")
        looked_up = list(read)
        assert bag(found) == bag(client.run(query))
        return looked_up

    assert change("INSERT INTO t VALUES (10001, 0, 1000), (10002, 1, 1000)") == []
    assert change("INSERT INTO t VALUES (10003, 0, -1)") == []
    assert change("UPDATE t SET v = v + 7 WHERE v = 200") == []
    assert change("DELETE FROM t WHERE v > 250") == []
    assert change("DELETE FROM t WHERE k = 10003") == []
    left = int(client.run("SELECT count(*) FROM t WHERE g = 0 OR " + ("true" if not partition else "false"))[0][0])
    front = (
        f"DELETE FROM t WHERE k = (SELECT k FROM t WHERE g = 0 {'' if partition else 'OR true'} ORDER BY v, k LIMIT 1)"
    )
    assert left < each
    looked_up = [change(front) for _ in range(18)]
    assert looked_up == [[left - place - 1] if place % 9 == 7 else [] for place in range(18)]


def test_a_partition_with_few_rows_is_read_whole(database: Database, read: list[int]) -> None:
    client = Client(database)
    view(
        client, "SELECT k, r FROM (SELECT *, row_number() OVER (PARTITION BY g ORDER BY v, k) r FROM t) x WHERE r <= 3"
    )
    for rows in range(1, 6):
        client.run(f"INSERT INTO t VALUES ({20000 + rows}, 7, {rows})")
        read.clear()
        assert (20000 + rows in {key for key, _ in client.run("SELECT * FROM w")}) == (rows <= 3)
        assert read == ([rows] if rows <= 3 else [])


@pytest.mark.parametrize("function", ["rank", "dense_rank"])
def test_rows_that_tie_are_all_there(database: Database, read: list[int], function: str) -> None:
    client = Client(database)
    query = f"SELECT k, r FROM (SELECT *, {function}() OVER (PARTITION BY g ORDER BY v) r FROM t) x WHERE r <= 2"
    view(client, query)
    client.run("SELECT * FROM w")
    for statement in (
        "INSERT INTO t SELECT i, 0, 1 FROM generate_series(5000, 5100) i",
        "INSERT INTO t SELECT i, 1, 2 FROM generate_series(6000, 6100) i",
        "DELETE FROM t WHERE k BETWEEN 5000 AND 5098",
        "UPDATE t SET v = 100 WHERE k = 5099",
        "UPDATE t SET v = 0 WHERE k % 50 = 0",
    ):
        client.run(statement)
        assert bag(client.run("SELECT * FROM w")) == bag(client.run(query))
    assert read == []


def test_rows_stay_among_those_that_tie(database: Database) -> None:
    client = Client(database)
    view(
        client, "SELECT g, k FROM (SELECT *, row_number() OVER (PARTITION BY g ORDER BY v % 1) r FROM t) x WHERE r = 2"
    )

    def chosen() -> tuple[int, int]:
        """The row of each partition."""
        (zero, one), (other, two) = sorted(client.run("SELECT * FROM w"))
        assert (zero, other) == (0, 1)
        return int(one), int(two)

    before = chosen()
    for place in range(10):
        client.run(f"INSERT INTO t VALUES ({-place - 1}, {place % 2}, 3), ({-place - 100}, {place % 2}, -3)")
        assert chosen() == before
    client.run(f"DELETE FROM t WHERE k = {before[0]}")
    after = chosen()
    assert after[0] > 0 and after[0] != before[0]
    assert after[1] == before[1]


def test_equal_rows_go_one_by_one(database: Database) -> None:
    client = Client(database)
    client.run("CREATE TABLE t (g int, v int, a int[])")
    client.run("INSERT INTO t SELECT 1, 0, ARRAY[1] FROM generate_series(1, 5) UNION ALL SELECT 1, 0, NULL")
    query = "SELECT v, a, r FROM (SELECT *, row_number() OVER (PARTITION BY g ORDER BY v, a NULLS FIRST) r FROM t) x"
    client.run(f"CREATE MATERIALIZED VIEW w WITH (method = 'incremental') AS {query} WHERE r <= 4")
    text = "SELECT v, a::text, r FROM"
    for statement in (
        "INSERT INTO t VALUES (1, 1, ARRAY[1]), (1, 1, ARRAY[1]), (1, -1, NULL), (1, -1, NULL)",
        "DELETE FROM t WHERE v = -1",
        "DELETE FROM t WHERE a IS NULL",
        "INSERT INTO t SELECT * FROM t",
        "DELETE FROM t WHERE v = 0",
    ):
        client.run(statement)
        assert bag(client.run(f"{text} w")) == bag(client.run(f"{text} ({query}) y WHERE r <= 4")), statement
