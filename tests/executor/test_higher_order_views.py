"""Higher-order views at run time: when they are made, what EXPLAIN says of them, and what a change meets."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import wait
from contextlib import closing
from pathlib import Path

import pytest

from executor.database.database import Database
from executor.maintained import known_view
from tests.executor.client import Client, open_database
from tests.executor.view_queries import bag

QUERY = (
    "SELECT name, count(*) AS n, sum(amount) AS s, sum(amount * rate) AS r FROM sales JOIN shops USING (shop)"
    " GROUP BY name"
)
VIEW = "higher-order view: grouping, from which rows are taken back, below joins with small relations"


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    with closing(open_database(tmp_path)) as found:
        yield found


@pytest.fixture
def client(database: Database) -> Client:
    client = Client(database)
    client.run(
        "CREATE TABLE sales (shop int, amount numeric(8, 2)); CREATE TABLE shops (shop int, name text, rate int)"
    )
    client.run("INSERT INTO shops VALUES (1, 'a', 2), (2, 'b', 3), (NULL, 'c', 4)")
    return client


def fill(client: Client, rows: int) -> None:
    client.run(f"INSERT INTO sales SELECT nullif(i % 3, 0), i FROM generate_series(1, {rows}) i")


def create(client: Client, method: str = "incremental") -> None:
    client.run(f"CREATE MATERIALIZED VIEW totals WITH (method = '{method}') AS {QUERY}")


def explained(client: Client, what: str = "SELECT * FROM totals") -> str:
    return "\n".join(line for (line,) in client.run(f"EXPLAIN {what}"))


def test_rows_of_small_relations_meet_groups(client: Client) -> None:
    fill(client, 600)
    create(client)
    assert VIEW in explained(client, f"CREATE MATERIALIZED VIEW v WITH (method = 'incremental') AS {QUERY}")
    client.run("SELECT * FROM totals")
    plan = explained(client)
    assert VIEW in plan and "Rows Kept: 600" not in plan  # the sales themselves are not kept
    for change in (
        "UPDATE shops SET rate = 5, name = 'b' WHERE shop = 1",
        "DELETE FROM sales WHERE shop = 2",
        "INSERT INTO shops VALUES (1, 'd', NULL), (NULL, 'e', 1)",
        "INSERT INTO sales VALUES (2, NULL), (NULL, 1)",
        "DELETE FROM shops WHERE name = 'b'",
    ):
        client.run(change)
        assert bag(client.run("SELECT * FROM totals")) == bag(client.run(QUERY)), change
    assert VIEW in explained(client)


def test_a_view_is_planned_again_once_its_tables_have_grown(client: Client) -> None:
    create(client)
    client.run("SELECT * FROM totals")
    assert VIEW not in explained(client)
    fill(client, 20_000)  # more than is followed
    client.run("SELECT * FROM totals")
    assert VIEW in explained(client)
    for _ in range(3):
        client.run("UPDATE shops SET rate = rate + 1")
        assert bag(client.run("SELECT * FROM totals")) == bag(client.run(QUERY))


def test_rows_that_are_kept_are_made_anew_once_that_has_paid(
    database: Database, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(known_view, "FIRST_CHANGES", 4)
    create(client)
    fill(client, 60)
    client.run("SELECT * FROM totals")
    assert VIEW not in explained(client)
    fill(client, 6_000)
    reads = 0
    while VIEW not in explained(client):
        client.run("UPDATE shops SET rate = rate + 1 WHERE shop = 1")
        assert bag(client.run("SELECT * FROM totals")) == bag(client.run(QUERY))
        wait(tuple(database.read_services.maintained._fills._begun))
        reads += 1
        assert reads < 500


def test_the_method_forces_them(client: Client) -> None:
    fill(client, 6)
    create(client, "higher_order")
    assert VIEW in explained(client)
    client.run("SELECT * FROM totals")
    client.run("UPDATE shops SET name = 'z' WHERE shop IS NOT NULL; INSERT INTO sales VALUES (1, 1)")
    assert bag(client.run("SELECT * FROM totals")) == bag(client.run(QUERY))
    assert VIEW in explained(client)
    client.run("ALTER MATERIALIZED VIEW totals SET (method = 'incremental')")
    assert bag(client.run("SELECT * FROM totals")) == bag(client.run(QUERY))
    assert VIEW not in explained(client)
    client.run("ALTER MATERIALIZED VIEW totals SET (method = 'higher_order')")
    client.run("UPDATE shops SET rate = 7")
    assert bag(client.run("SELECT * FROM totals")) == bag(client.run(QUERY))
    assert VIEW in explained(client)


def test_what_cannot_be_split_is_followed_as_it_is(client: Client) -> None:
    fill(client, 6)
    query = "SELECT name, array_agg(amount ORDER BY amount) AS a FROM sales JOIN shops USING (shop) GROUP BY name"
    client.run(f"CREATE MATERIALIZED VIEW totals WITH (method = 'higher_order') AS {query}")
    client.run("SELECT * FROM totals")
    client.run("UPDATE shops SET name = 'z'")
    assert bag(client.run("SELECT name, a::text FROM totals")) == bag(
        client.run(f"SELECT name, a::text FROM ({query}) x")
    )
    assert VIEW not in explained(client) and "recomputation of touched keys" in explained(client)


def test_an_error_of_rows_without_a_partner_is_no_error_of_the_view(client: Client) -> None:
    """What a row adds is computed before it meets a shop; where that fails, the view is computed anew."""
    client.run("CREATE TABLE large (shop int, a bigint, b bigint)")
    query = "SELECT name, sum(a * b) AS s FROM large JOIN shops USING (shop) GROUP BY name"
    client.run(f"CREATE MATERIALIZED VIEW totals WITH (method = 'higher_order') AS {query}")
    client.run("INSERT INTO large VALUES (1, 2, 3), (9, 9000000000000000000, 9000000000000000000)")
    assert client.run("SELECT * FROM totals") == [("a", 6)]
    client.run("UPDATE large SET b = 1 WHERE shop = 9")
    client.run("UPDATE shops SET name = 'z' WHERE shop = 1")
    assert client.run("SELECT * FROM totals") == [("z", 6)]


def test_a_view_is_read_after_a_view_below_it_has_lost_its_rows(tmp_path: Path) -> None:
    database = open_database(tmp_path)
    try:
        client = Client(database)
        client.run("CREATE TABLE t (u int); CREATE TABLE e (dst int)")
        client.run(
            "CREATE VIEW below WITH (maintained, method = 'incremental') AS SELECT dst FROM t LEFT JOIN e ON u = dst"
        )
        client.run("CREATE MATERIALIZED VIEW above WITH (method = 'incremental') AS SELECT dst FROM below")
        assert client.run("SELECT * FROM above") == []
        client.run("INSERT INTO e VALUES (1); ALTER TABLE t ADD COLUMN n int; INSERT INTO t VALUES (1, 2), (3, 4)")
        assert client.run("SELECT * FROM below ORDER BY 1") == [(1,), (None,)]
        assert client.run("SELECT * FROM above ORDER BY 1") == [(1,), (None,)]
    finally:
        database.close()
