"""Windows over an order that a view keeps: how many rows a change computes, and what becomes of rows that tie.

The law beside PostgreSQL is tests/law/test_ordered_windows.py.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from executor.database.database import Database
from executor.dataflow.ordered_windows import OrderedRows, Reached
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

    def counted(method: Any) -> Any:
        def run(*arguments: Any) -> Reached | None:
            result: Reached | None = method(*arguments)
            if result is not None:
                found.append((result.old.num_rows, result.candidates.num_rows))
            return result

        return run

    for name in ("change", "wider"):
        monkeypatch.setattr(OrderedRows, name, counted(getattr(OrderedRows, name)))
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
    ["row_number() OVER ({})", "rank() OVER ({})", "sum(v) OVER ({})", "avg(v) OVER ({} ROWS UNBOUNDED PRECEDING)"],
)
def test_a_change_reaches_the_rows_behind_it(
    database: Database, reached: list[tuple[int, int]], call: str, over: str
) -> None:
    client = Client(database)
    query = f"SELECT k, g, {call.format(over)} AS x FROM t"
    kept_view(client, query)
    for statement, wanted in (
        (APPENDED, (0, 1)),
        (MIDDLE, (1, 1)),
        (f"DELETE FROM t WHERE g = 0 AND v = {ROWS // 2 + 1}", (ROWS // 2 + 1, ROWS // 2)),
        (FRONT, (ROWS, ROWS + 1)),
        (f"DELETE FROM t WHERE g = 0 AND v > {ROWS - 9}", (10, 0)),
    ):
        reached.clear()
        client.run(statement)
        assert bag(client.run("SELECT * FROM w")) == bag(client.run(query))
        assert reached == [wanted]


#: A change of some rows that leaves their number, and how many rows it reaches each time that these are computed.
KEEPING = {
    "beside the order": ("UPDATE t SET a = a + 1 WHERE k = {middle}", [(1, 1)]),
    "beside the order, of three rows": (
        "UPDATE t SET a = a + 1 WHERE k IN ({middle}, {middle} + 8, {middle} - 20)",
        [(3, 3)],
    ),
    "two rows change places": (
        "UPDATE t SET v = 2 * ({middle} / 2) + 3 - v WHERE k IN ({middle}, {middle} + 6)",
        [(2, 2)],
    ),
    "the sum stays": ("UPDATE t SET a = a + v - {middle} / 2 - 1 WHERE v IN ({middle} / 2, {middle} / 2 + 2)", None),
}


@pytest.mark.parametrize("name", KEEPING)
@pytest.mark.parametrize(
    "call", ["row_number() OVER ({})", "dense_rank() OVER ({})", "count(v) OVER ({})", "min(v) OVER ({})"]
)
def test_a_change_that_leaves_the_places_reaches_no_rows_behind_it(
    database: Database, reached: list[tuple[int, int]], name: str, call: str
) -> None:
    client = Client(database)
    query = f"SELECT k, g, v, a, {call.format(PARTED)} AS x FROM t"
    beside_view(client, query)
    change, wanted = KEEPING[name]
    client.run(change.format(middle=ROWS))
    assert bag(client.run("SELECT * FROM w")) == bag(client.run(query))
    assert wanted is None or reached == wanted


def beside_view(client: Client, query: str) -> None:
    """``kept_view`` over a table with one more column."""
    client.run("CREATE TABLE t (k int PRIMARY KEY, g int, v int, a int)")
    client.run(f"INSERT INTO t SELECT i, i % 2, i / 2, 0 FROM generate_series(2, {2 * ROWS + 1}) i")
    client.run(f"CREATE MATERIALIZED VIEW w WITH (method = 'incremental', refresh_policy = 'incremental') AS {query}")
    client.run("SELECT * FROM w")


def test_a_running_sum_reaches_the_rows_up_to_where_it_is_what_it_was(
    database: Database, reached: list[tuple[int, int]]
) -> None:
    """Of each change: what is computed first, and what then, where a sum has changed at the end of that."""
    client = Client(database)
    query = f"SELECT k, v, a, sum(a) OVER ({PARTED}) AS s, max(a) OVER ({PARTED}) AS m FROM t"
    beside_view(client, query)
    behind = ROWS - 100
    for change, wanted in (
        ("UPDATE t SET a = 5 WHERE k = 200", [(1, 1), (behind + 1, behind + 1)]),
        ("UPDATE t SET a = a WHERE k = 300", []),
        ("UPDATE t SET a = 5 - a WHERE k IN (200, 202)", [(2, 2), (behind + 1, behind + 1)]),
        ("UPDATE t SET v = 201 - v WHERE k IN (200, 202)", [(2, 2), (behind + 1, behind + 1)]),
        (f"UPDATE t SET k = -k, a = 1 WHERE k = {2 * ROWS}", [(1, 1)]),
    ):
        reached.clear()
        client.run(change)
        assert bag(client.run("SELECT * FROM w")) == bag(client.run(query)), change
        assert reached == wanted, change


@pytest.mark.parametrize("over", [PARTED, WHOLE])
@pytest.mark.parametrize(
    "call",
    [
        "sum(v) OVER ({} ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING)",
        "min(k) OVER ({} RANGE BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING)",
        "last_value(k) OVER ({} ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING)",
    ],
)
def test_a_function_up_to_the_last_row_reaches_the_rows_before_a_change(
    database: Database, reached: list[tuple[int, int]], call: str, over: str
) -> None:
    client = Client(database)
    query = f"SELECT k, g, {call.format(over)} AS x FROM t"
    kept_view(client, query)
    front, last = ("0", 1) if over == PARTED else ("1", 0)  # the partition, or the part of the order, that is first
    for statement, wanted in (
        (f"INSERT INTO t VALUES (10001, {front}, -1)", (0, 1)),
        (f"DELETE FROM t WHERE g = {front} AND v = 10", (11, 10)),
        (f"INSERT INTO t VALUES (10002, {last}, 9999)", None),
    ):
        reached.clear()
        client.run(statement)
        assert bag(client.run("SELECT * FROM w")) == bag(client.run(query))
        assert wanted is None or reached == [wanted]


def test_running_sums_of_doubles_are_never_taken_back(database: Database, reached: list[tuple[int, int]]) -> None:
    """What is large for a while leaves nothing behind; what is beside a sum changes its row alone."""
    client = Client(database)
    client.run("CREATE TABLE t (k int PRIMARY KEY, f double precision, a int)")
    client.run("INSERT INTO t SELECT i, i * 0.1, 0 FROM generate_series(1, 200) i")
    query = "SELECT k, a, sum(f) OVER (ORDER BY k) AS s, avg(f) FILTER (WHERE a < 9) OVER (ORDER BY k) AS m FROM t"
    client.run(f"CREATE MATERIALIZED VIEW w WITH (method = 'incremental', refresh_policy = 'incremental') AS {query}")
    client.run("SELECT * FROM w")
    for statement, wanted in (
        ("INSERT INTO t VALUES (-1, 1e300, 0)", [(200, 201)]),
        ("UPDATE t SET a = 5 WHERE k = 50", [(1, 1)]),
        ("UPDATE t SET f = 'infinity' WHERE k = 60", [(1, 1), (141, 141)]),
        ("UPDATE t SET f = 6 WHERE k = 60", [(1, 1), (141, 141)]),
        ("DELETE FROM t WHERE k = -1", [(201, 200)]),
        ("UPDATE t SET a = 9 WHERE k = 50", [(1, 1), (151, 151)]),
    ):
        reached.clear()
        client.run(statement)
        found, wanted_rows = (
            sorted(client.run(text)) for text in ("SELECT k, s, m FROM w", f"SELECT k, s, m FROM ({query}) q")
        )
        assert [row[0] for row in found] == [row[0] for row in wanted_rows]
        for row, other in zip(found, wanted_rows, strict=True):
            assert row[1:] == pytest.approx(other[1:], rel=1e-12), statement
        assert reached == wanted, statement


@pytest.mark.parametrize("call", ["sum(a) OVER (PARTITION BY g)", "max(a) OVER (PARTITION BY g)"])
def test_a_total_of_a_partition_changes_its_rows_where_it_changes(database: Database, call: str) -> None:
    client = Client(database)
    query = f"SELECT k, g, v, {call} AS x FROM t"
    beside_view(client, query)
    for change in (
        "UPDATE t SET v = -v WHERE k = 200",
        "UPDATE t SET a = 7 WHERE k IN (200, 301)",
        "UPDATE t SET a = a - 1 WHERE k = 200",
        "UPDATE t SET g = NULL WHERE k < 9",
        "DELETE FROM t WHERE g = 1",
        "INSERT INTO t VALUES (-5, NULL, 1, NULL)",
    ):
        client.run(change)
        assert bag(client.run("SELECT * FROM w")) == bag(client.run(query)), change


def test_rows_that_tie_are_in_one_order_and_its_reverse(database: Database) -> None:
    """The first and the last row of rows that all tie are two rows, where no two are equal."""
    client = Client(database)
    calls = (
        "first_value(k) OVER p AS f, last_value(k) OVER (p ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING)"
    )
    kept_view(client, f"SELECT k, g, {calls} AS l FROM t WINDOW p AS (PARTITION BY v ORDER BY g * 0)")
    for place in range(20):
        client.run(f"INSERT INTO t VALUES ({20000 + place}, {place % 2}, {place})")
        client.run(f"DELETE FROM t WHERE k % 97 = {place}")
        rows = client.run("SELECT k, f, l, count(*) OVER (PARTITION BY f, l) FROM w")
        assert rows and all((first == last) == (str(count) == "1") for _, first, last, count in rows)


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
    alone = f"SELECT k, lag(k) OVER ({window}) AS l FROM t"
    for name, text in (("w", query), ("x", alone)):
        client.run(
            f"CREATE MATERIALIZED VIEW {name} WITH (method = 'incremental', refresh_policy = 'incremental') AS {text}"
        )
        client.run(f"SELECT * FROM {name}")
    for statement in (
        "INSERT INTO t VALUES (41, NULL)",
        "INSERT INTO t VALUES (42, -7046029254386353131)",
        "UPDATE t SET k = -k WHERE k = 20",
        "DELETE FROM t WHERE k IN (9, 12)",
        "DELETE FROM t WHERE k = 15",  # the rows beside it are of the other partition
    ):
        client.run(statement)
        assert bag(client.run("SELECT * FROM x")) == bag(client.run(alone)), statement
        assert bag(client.run("SELECT * FROM w")) == bag(client.run(query)), statement


@pytest.mark.parametrize("over", [PARTED, "PARTITION BY g ORDER BY v DESC"])
@pytest.mark.parametrize(
    ("frame", "changes"),
    [
        ("3 PRECEDING AND CURRENT ROW", [(0, 1), (4, 7), (2, 3)]),
        ("1 PRECEDING AND 2 FOLLOWING", [(0, 1), (4, 7), (0, 3)]),
        ("CURRENT ROW AND CURRENT ROW", [(0, 1), (1, 1), (0, 1)]),
        ("4 PRECEDING AND 3 PRECEDING", [(0, 1), (5, 9), (3, 4)]),
    ],
)
def test_a_change_reaches_the_rows_within_a_distance(
    database: Database, reached: list[tuple[int, int]], over: str, frame: str, changes: list[tuple[int, int]]
) -> None:
    client = Client(database)
    query = f"SELECT k, g, sum(k) OVER ({over} RANGE BETWEEN {frame}) AS x, count(*) OVER (PARTITION BY g) AS n FROM t"
    kept_view(client, query)
    for statement, wanted in zip((APPENDED, MIDDLE, FRONT), changes, strict=True):
        reached.clear()
        client.run(statement)
        assert bag(client.run("SELECT * FROM w")) == bag(client.run(query))
        if over == PARTED:
            assert reached == [wanted]
        else:
            assert len(reached) == 1 and reached[0][1] <= 9
