"""The order of rows from set-returning functions in the select list, for an engine that sorts many rows in parallel."""

from __future__ import annotations

import pytest

from tests.executor.client import Client


@pytest.mark.parametrize("order", ["ORDER BY id", "ORDER BY g, id", "ORDER BY g", "ORDER BY id LIMIT 2000"])
def test_rows_made_of_one_row_stay_together_and_in_order(client: Client, order: str) -> None:
    client.run("CREATE TABLE t (id int, g int); INSERT INTO t SELECT i, i % 7 FROM generate_series(1, 20000) i")
    found = client.run(f"SELECT id, generate_series(1, 5) FROM t {order}")
    assert isinstance(found, list)
    assert [number for _, number in found] == [1, 2, 3, 4, 5] * (len(found) // 5)
    assert all(found[at][0] == found[at + 4][0] for at in range(0, len(found), 5))


def test_they_do_where_nothing_else_tells_them_apart(client: Client) -> None:
    client.run("CREATE TABLE t (id int, g int); INSERT INTO t SELECT i, i % 2 FROM generate_series(1, 5000) i")
    found = client.run("SELECT unnest(ARRAY[id, -id, 0]) FROM t ORDER BY g")
    assert isinstance(found, list)
    assert all((found[at][0], 0) == (-found[at + 1][0], found[at + 2][0]) for at in range(0, len(found), 3))


def test_a_view_of_a_stream_takes_such_an_order(client: Client) -> None:
    """The order has no meaning there."""
    client.run("CREATE FOREIGN TABLE s (id int, n int) SERVER stream")
    rows = "SELECT id, generate_series(1, n) AS e FROM s ORDER BY n"
    client.run(f"CREATE VIEW v AS SELECT id, sum(e) FROM ({rows}) q GROUP BY id")
    client.run("INSERT INTO s VALUES (1, 2), (2, 3), (1, 1)")
    assert client.run("SELECT * FROM v ORDER BY id") == [(1, 4), (2, 6)]
