"""Views whose joins are left out since a foreign key says that there are partners: they equal their queries whatever
becomes of the key, and of the rows while it is not checked."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from catalog.values.errors import SqlError
from executor.database.database import Database
from tests.executor.client import Client, open_database

KEY = "ALTER TABLE orders ADD CONSTRAINT known FOREIGN KEY (buyer) REFERENCES buyers"
TABLES = f"""
    CREATE TABLE buyers (id int PRIMARY KEY, name text);
    CREATE TABLE orders (id int PRIMARY KEY, buyer int, amount int);
    {KEY};
    INSERT INTO buyers SELECT i, 'b' || i FROM generate_series(1, 5) i;
    INSERT INTO orders SELECT i, i % 6, 10 * i FROM generate_series(1, 5) i;
    INSERT INTO orders VALUES (9, NULL, 90)
"""
QUERIES = {
    "inner": "SELECT o.id, b.id AS buyer, amount FROM orders o JOIN buyers b ON b.id = o.buyer",
    "groups": "SELECT buyer, sum(amount) AS sum FROM orders o JOIN buyers b ON b.id = o.buyer GROUP BY buyer",
    "semi": "SELECT id FROM orders WHERE buyer IN (SELECT id FROM buyers)",
    "anti": "SELECT id FROM orders o WHERE NOT EXISTS (SELECT FROM buyers b WHERE b.id = o.buyer)",
    "left": "SELECT o.id, b.id AS buyer FROM orders o LEFT JOIN buyers b ON b.id = o.buyer",
    "count": "SELECT o.id, (SELECT count(*) FROM buyers b WHERE b.id = o.buyer) AS has FROM orders o",
    "unused": "SELECT o.id FROM orders o LEFT JOIN buyers b ON b.id = o.amount",
}


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    with closing(open_database(tmp_path)) as found:
        yield found


@pytest.fixture
def client(database: Database) -> Client:
    found = Client(database)
    found.run(TABLES)
    create(found)
    return found


def create(client: Client) -> None:
    for name, query in QUERIES.items():
        client.run(f"CREATE MATERIALIZED VIEW {name}_rows WITH (method = 'incremental') AS {query}")


def require_equal(client: Client) -> None:
    for name, query in QUERIES.items():
        rows = client.run(f"SELECT * FROM {name}_rows")
        assert sorted(rows, key=repr) == sorted(client.run(query), key=repr), name  # type: ignore[arg-type]


def left_out(database: Database, *tables: str) -> set[str]:
    """The views whose rows are kept and do not read the table of buyers."""
    known = database.read_services.maintained._known.values()
    kept = (item for item in known if item.kept is not None)
    return {item.runtime.view.name.removesuffix("_rows") for item in kept if item.expanded.facts.left_out}


def test_rows_are_followed_without_their_partners(database: Database, client: Client) -> None:
    require_equal(client)
    assert left_out(database) == set(QUERIES)
    text = "\n".join(line for (line,) in client.run("EXPLAIN SELECT * FROM inner_rows"))  # type: ignore[misc]
    assert "Left Out: join with table buyers: each row of orders has its own there by foreign key known" in text
    assert "changes of table buyers" not in text and "Method: by changes\n" in text
    for change in (
        "INSERT INTO buyers VALUES (6, 'b6')",
        "INSERT INTO orders VALUES (6, 6, 60), (7, NULL, 5)",
        "UPDATE buyers SET name = 'x'",
        "UPDATE orders SET buyer = 1 WHERE buyer IS NULL",
        "DELETE FROM orders WHERE buyer = 6",
        "DELETE FROM buyers WHERE id = 6",
        "TRUNCATE buyers CASCADE",
    ):
        client.run(change)
        require_equal(client)
    assert left_out(database) == set(QUERIES)


def test_a_key_that_is_dropped_is_not_relied_on(tmp_path: Path) -> None:
    with closing(open_database(tmp_path)) as database:
        client = Client(database)
        client.run(TABLES)
        create(client)
        require_equal(client)
        client.run("ALTER TABLE orders ADD COLUMN more int; ALTER TABLE buyers ALTER COLUMN name SET DEFAULT 'x'")
        require_equal(client)
        assert left_out(database) == set(QUERIES)
        client.run("ALTER TABLE orders DROP CONSTRAINT known")
        client.run("INSERT INTO orders VALUES (20, 77, 1)")
        require_equal(client)
        assert left_out(database) == {"count", "unused"}
        with pytest.raises(SqlError, match="violates foreign key"):
            client.run(KEY)
        client.run(f"{KEY} NOT VALID")
        client.run("INSERT INTO orders VALUES (21, 1, 1)")
        require_equal(client)
        assert left_out(database) == {"count", "unused"}
        client.run("DELETE FROM orders WHERE id = 20")
        client.run("ALTER TABLE orders VALIDATE CONSTRAINT known")
        require_equal(client)
        assert left_out(database) == {"count", "unused"}
    with closing(open_database(tmp_path)) as database:  # plans are made anew
        require_equal(Client(database))
        assert left_out(database) == set(QUERIES)


def test_a_referenced_key_that_is_dropped_takes_the_foreign_key_along(database: Database, client: Client) -> None:
    require_equal(client)
    client.run("ALTER TABLE buyers DROP CONSTRAINT buyers_pkey CASCADE")
    client.run("INSERT INTO buyers VALUES (1, 'again'), (10, 'x'), (10, 'y'); INSERT INTO orders VALUES (20, 77, 1)")
    require_equal(client)
    assert left_out(database) == set()


@pytest.mark.parametrize("seed", range(3))
def test_a_transaction_sees_what_is_not_checked_yet(tmp_path: Path, seed: int) -> None:
    drawn = random.Random(seed)
    with closing(open_database(tmp_path)) as database:
        client, other = Client(database), Client(database)
        client.run(TABLES.replace(KEY, f"{KEY} DEFERRABLE INITIALLY DEFERRED"))
        create(client)
        require_equal(other)
        for number in range(30, 36):
            client.run("BEGIN")
            client.run(f"INSERT INTO orders VALUES ({number}, {number}, 1)")
            if drawn.random() < 0.5:
                client.run("DELETE FROM buyers WHERE id = 2")
                client.run("INSERT INTO buyers VALUES (2, 'again')")
            require_equal(client)
            require_equal(other)
            if drawn.random() < 0.5:
                client.run(f"INSERT INTO buyers VALUES ({number}, 'late')")
                client.run("COMMIT")
            elif drawn.random() < 0.5:
                client.run("ROLLBACK")
            else:
                with pytest.raises(SqlError, match="violates foreign key"):
                    client.run("COMMIT")
            require_equal(client)
            require_equal(other)
        assert left_out(database) == set(QUERIES)


def test_an_older_snapshot_is_not_read_by_a_younger_key(database: Database, client: Client) -> None:
    client.run("ALTER TABLE orders DROP CONSTRAINT known; INSERT INTO orders VALUES (20, 77, 1)")
    old = Client(database)
    old.run("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT 1")
    client.run(f"DELETE FROM orders WHERE id = 20; {KEY}")
    require_equal(client)
    assert left_out(database) == set(QUERIES)
    require_equal(old)
    assert (20,) in old.run("SELECT id FROM anti_rows")
    old.run("COMMIT")
    require_equal(old)


def test_a_plan_is_not_followed_before_its_facts_held(database: Database, client: Client) -> None:
    require_equal(client)
    known = {item.runtime.view.name: item for item in database.read_services.maintained._known.values()}["anti_rows"]
    since = known.expanded.facts.since
    assert not known.may_follow(since - 1) and known.may_follow(since)
    client.run("ALTER TABLE orders ALTER CONSTRAINT known DEFERRABLE")
    assert not known.expanded.is_current(database.core)


def test_saved_rows_are_followed_after_a_restart(tmp_path: Path) -> None:
    def rows(change: str) -> list[Any]:
        with closing(open_database(tmp_path)) as database:
            client = Client(database)
            client.run(change)
            require_equal(client)
            assert bool(left_out(database) - {"count", "unused"}) == ("DROP" not in change)
            return sorted(client.values("SELECT * FROM inner_rows"))

    with closing(open_database(tmp_path)) as database:
        client = Client(database)
        client.run(TABLES)
        create(client)
        require_equal(client)
    assert len(rows("INSERT INTO orders VALUES (20, 1, 1)")) == 6
    assert len(rows("ALTER TABLE orders DROP CONSTRAINT known; INSERT INTO orders VALUES (21, 77, 1)")) == 6


def test_views_above_read_less_of_the_views_below(database: Database, client: Client) -> None:
    client.run("CREATE VIEW wide WITH (maintained) AS SELECT o.id, amount, b.id AS buyer, name FROM orders o"
               " JOIN buyers b ON b.id = o.buyer")  # fmt: skip
    client.run("CREATE MATERIALIZED VIEW narrow WITH (method = 'incremental') AS SELECT id, amount FROM wide")
    client.run("INSERT INTO orders VALUES (20, 1, 1)")
    assert client.values("SELECT id FROM narrow ORDER BY 1") == [(1,), (2,), (3,), (4,), (5,), (20,)]
    lines = [line for (line,) in client.run("EXPLAIN SELECT * FROM narrow")]  # type: ignore[misc]
    assert any("Left Out: join with table buyers" in line for line in lines)


def test_a_join_beside_what_may_raise_is_left_out(client: Client, database: Database) -> None:
    values = "SELECT (CAST('{2,NULL}' AS int[]))[1] AS c FROM orders o LEFT JOIN orders p ON p.buyer = o.amount"
    query = f"SELECT DISTINCT 3 AS three FROM ({values}) q LEFT JOIN buyers b ON q.c IS NOT DISTINCT FROM b.id"
    client.run(f"CREATE MATERIALIZED VIEW beside WITH (method = 'incremental') AS {query}")
    assert client.run("SELECT * FROM beside") == [(3,)]
    client.run("DELETE FROM orders")
    assert client.run("SELECT * FROM beside") == []
