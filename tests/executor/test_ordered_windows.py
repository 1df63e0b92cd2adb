"""Windows over an order that a view keeps: how many rows a change computes, and what becomes of rows that tie.

The law beside PostgreSQL is tests/law/test_ordered_windows.py.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from executor.database.database import Database
from executor.dataflow.ordered_windows import OrderedRows, Reached
from executor.dataflow.rows.multiset import Multiset
from tests.executor.client import Client, open_database
from tests.executor.view_queries import bag

ROWS = 400


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    with closing(open_database(tmp_path)) as found:
        yield found


@pytest.fixture
def reached(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, int]]:
    """How many rows each change has taken away, and how many it has computed others from."""
    found: list[tuple[int, int]] = []
    change = OrderedRows.change

    def counted(self: OrderedRows, kept: Multiset, *arguments: object) -> Reached:
        result = change(self, kept, *arguments)  # type: ignore[arg-type]
        found.append((result.old.num_rows, result.candidates.num_rows))
        return result

    monkeypatch.setattr(OrderedRows, "change", counted)
    return found


def kept_view(client: Client, query: str) -> None:
    """A view over two partitions of ``ROWS`` rows, which is kept."""
    client.run("CREATE TABLE t (k int PRIMARY KEY, g int, v int)")
    client.run(f"INSERT INTO t SELECT i, i % 2, i / 2 FROM generate_series(2, {2 * ROWS + 1}) i")
    client.run(f"CREATE MATERIALIZED VIEW w WITH (method = 'incremental', refresh_policy = 'incremental') AS {query}")
    client.run("SELECT * FROM w")


APPENDED = "INSERT INTO t VALUES (10001, 0, 1000)"
#: A row with ROWS / 2 rows of its partition before it.
MIDDLE = f"UPDATE t SET k = -k WHERE g = 0 AND v = {ROWS // 2 + 1}"
FRONT = "INSERT INTO t VALUES (10002, 0, -1)"
PARTED, WHOLE = "PARTITION BY g ORDER BY v", "ORDER BY g DESC, v"


@pytest.mark.parametrize("over", [PARTED, WHOLE])
@pytest.mark.parametrize(
    ("call", "changes"),
    [
        ("lag(k) OVER ({})", [(0, 2), (2, 3), (1, 2)]),
        ("lead(k, 2) OVER ({})", [(2, 3), (3, 5), (0, 3)]),
        ("sum(k) OVER ({} ROWS BETWEEN 3 PRECEDING AND 1 FOLLOWING)", [(1, 5), (5, 9), (3, 5)]),
        ("sum(k) OVER ({} ROWS BETWEEN 3 FOLLOWING AND 4 FOLLOWING)", [(4, 5), (5, 9), (0, 5)]),
    ],
)
def test_a_change_reaches_the_rows_around_it(
    database: Database, reached: list[tuple[int, int]], over: str, call: str, changes: list[tuple[int, int]]
) -> None:
    client = Client(database)
    query = f"SELECT k, g, {call.format(over)} AS x FROM t"
    kept_view(client, query)
    for statement, wanted in zip((APPENDED, MIDDLE, FRONT), changes, strict=True):
        reached.clear()
        client.run(statement)
        assert bag(client.run("SELECT * FROM w")) == bag(client.run(query))
        if over == PARTED or statement != FRONT:  # in front of one partition's rows are those of the other one
            assert reached == [wanted]
        else:
            assert len(reached) == 1 and reached[0][1] <= 9


@pytest.mark.parametrize("over", [PARTED, WHOLE])
@pytest.mark.parametrize(
    "call",
    ["row_number() OVER ({})", "rank() OVER ({})", "sum(k) OVER ({})", "avg(v) OVER ({} ROWS UNBOUNDED PRECEDING)"],
)
def test_a_change_reaches_the_rows_behind_it(
    database: Database, reached: list[tuple[int, int]], call: str, over: str
) -> None:
    client = Client(database)
    query = f"SELECT k, g, {call.format(over)} AS x FROM t"
    kept_view(client, query)
    for statement, wanted in (
        (APPENDED, (0, 1)),
        (MIDDLE, (ROWS // 2 + 1, ROWS // 2 + 1)),
        (FRONT, (ROWS + 1, ROWS + 2)),
        (f"DELETE FROM t WHERE g = 0 AND v > {ROWS - 9}", (10, 0)),
    ):
        reached.clear()
        client.run(statement)
        assert bag(client.run("SELECT * FROM w")) == bag(client.run(query))
        assert reached == [wanted]


def test_rows_that_tie_have_one_order(database: Database) -> None:
    client = Client(database)
    calls = "row_number() OVER p AS r, lag(k) OVER p AS l, count(*) OVER (p ROWS UNBOUNDED PRECEDING) AS c"
    kept_view(client, f"SELECT k, g, v, {calls} FROM t WINDOW p AS (PARTITION BY g ORDER BY v / 50)")
    for place in range(12):
        client.run(f"INSERT INTO t VALUES ({20000 + place}, {place % 2}, {place * 29})")
        client.run(f"DELETE FROM t WHERE k % 97 = {place}")
        rows = client.run("SELECT g, r, l, c, k, v FROM w ORDER BY g, r")
        before: dict[str, tuple[str, int]] = {}
        for g, r, lagged, c, k, v in rows:
            last, tie = before.get(g, (None, 0))
            assert (lagged, c) == (last, r)
            assert int(v) // 50 >= tie
            before[g] = (k, int(v) // 50)
        for g in ("0", "1"):
            numbers = [int(row[1]) for row in rows if str(row[0]) == g]
            assert numbers == list(range(1, len(numbers) + 1))


def test_rows_that_no_hash_tells_apart_are_computed_with_their_partition(
    database: Database, reached: list[tuple[int, int]]
) -> None:
    client = Client(database)
    client.run("CREATE TABLE t (g int, v int, a int[])")
    client.run("INSERT INTO t SELECT 1, i / 2, ARRAY[i] FROM generate_series(1, 100) i")
    query = "SELECT g, v, a, row_number() OVER (PARTITION BY g ORDER BY v, a) AS r, sum(v) OVER (PARTITION BY g"
    query += " ORDER BY v, a ROWS 1 PRECEDING) AS s FROM t"
    text = "SELECT v, r, s FROM"
    tied = query.replace("ORDER BY v, a", "ORDER BY v")
    client.run(f"CREATE MATERIALIZED VIEW w WITH (method = 'incremental', refresh_policy = 'incremental') AS {tied}")
    client.run("SELECT * FROM w")
    for statement in ("INSERT INTO t VALUES (1, 30, ARRAY[7])", "DELETE FROM t WHERE v = 30 AND a <> ARRAY[7]"):
        reached.clear()
        client.run(statement)
        assert bag(client.run(f"{text} w")) == bag(client.run(f"{text} ({query}) x"))
        assert reached[0][1] >= 99


def test_a_partition_whose_hash_is_another_ones(database: Database) -> None:
    """NULL has the hash of one number."""
    client = Client(database)
    client.run("CREATE TABLE t (k int, g bigint)")
    client.run("INSERT INTO t SELECT i, CASE i % 2 WHEN 0 THEN -7046029254386353131 END FROM generate_series(1, 40) i")
    window = "PARTITION BY g ORDER BY k"
    query = f"SELECT k, lag(k) OVER ({window}) AS l, sum(k) OVER ({window}) AS s FROM t"
    client.run(f"CREATE MATERIALIZED VIEW w WITH (method = 'incremental') AS {query}")
    client.run("SELECT * FROM w")
    for statement in (
        "INSERT INTO t VALUES (41, NULL)",
        "INSERT INTO t VALUES (42, -7046029254386353131)",
        "UPDATE t SET k = -k WHERE k = 20",
        "DELETE FROM t WHERE k IN (9, 12)",
    ):
        client.run(statement)
        assert bag(client.run("SELECT * FROM w")) == bag(client.run(query)), statement
