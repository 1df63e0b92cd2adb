"""Rows that a transaction has changed, changed and read again by it: the engine finds each of them.

DuckDB 2.0 loses rows where it joins a table by row ids and some of the rows are the transaction's own, once in ten
times with the tables below. So statements here run many times over.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from executor.database.database import Database
from tests.executor.client import Client, open_database

#: How often each transaction runs.
OFTEN = 60
VALUES = "(1, 0, 'a'), (2, 0, 'b'), (3, 0, 'c'), (4, 0, 'd'), (5, 0, 'e')"


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    with closing(open_database(tmp_path)) as found:
        yield found


@pytest.mark.parametrize("key", ["PRIMARY KEY", ""])
def test_a_second_statement_changes_all_rows_that_it_finds(database: Database, key: str) -> None:
    """Of the first statement's rows, and of those that are as they were."""
    client = Client(database)
    client.run(f"CREATE TABLE t (id integer {key}, n integer, x text)")
    for _ in range(OFTEN):
        client.run(f"DELETE FROM t; INSERT INTO t VALUES {VALUES}")
        assert len(client.run("SELECT * FROM t")) == 5
        client.run("BEGIN; UPDATE t SET n = 1 WHERE id <> 3; UPDATE t SET n = n + 1 WHERE id < 5; COMMIT")
        assert client.run("SELECT id, n FROM t ORDER BY id") == [(1, 2), (2, 2), (3, 1), (4, 2), (5, 1)]
        client.run("BEGIN; UPDATE t SET n = 7 WHERE id <> 3; DELETE FROM t WHERE n > 0; COMMIT")
        assert client.run("SELECT * FROM t") == []


def test_a_transaction_is_replayed_with_all_its_changes(database: Database) -> None:
    client = Client(database)
    client.run("CREATE TABLE t (id integer PRIMARY KEY, n integer, x text)")
    for _ in range(OFTEN):
        client.run(f"DELETE FROM t; INSERT INTO t VALUES {VALUES}")
        client.run("SELECT * FROM t")
        client.run("BEGIN; UPDATE t SET n = 1 WHERE id <> 3; UPDATE t SET n = n + 1; SAVEPOINT p; DELETE FROM t")
        client.run("ROLLBACK TO p; COMMIT")
        assert client.run("SELECT id, n FROM t ORDER BY id") == [(1, 2), (2, 2), (3, 1), (4, 2), (5, 2)]


def test_the_first_rows_of_an_order_are_among_a_transactions_own(database: Database) -> None:
    client = Client(database)
    client.run("CREATE TABLE t (id integer PRIMARY KEY, n integer, x text, y text)")
    drawn = random.Random(1)
    for _ in range(4 * OFTEN):
        client.run("DELETE FROM t")
        client.run("INSERT INTO t VALUES " + ", ".join(f"({number}, 0, 'x', 'y')" for number in range(6)))
        client.run("SELECT * FROM t")
        kept = drawn.randrange(6)
        client.run(f"BEGIN; UPDATE t SET n = 1 WHERE id <> {kept}")
        rows = [(number, int(number != kept)) for number in range(6)]
        expected = sorted(rows, key=lambda row: (-row[1], row[0]))
        for count in (2, 6):
            found = client.run(f"SELECT * FROM t ORDER BY n DESC, id LIMIT {count}")
            assert [row[:2] for row in found] == expected[:count]
        client.run("ROLLBACK")


@pytest.mark.parametrize("key", ["PRIMARY KEY", ""])
def test_columns_may_be_called_as_the_engine_calls_tables(database: Database, key: str) -> None:
    """Rows that are changed by key, and by value, in the transaction and after it; a column's fields are called as the
    key is."""
    client = Client(database)
    client.run("CREATE TYPE fields AS (id text, n text)")
    client.run(f"CREATE TABLE t (id integer {key}, t fields, o fields, n integer)")
    client.run("INSERT INTO t VALUES (1, ('a', 'b'), ('c', 'd'), 1), (2, NULL, NULL, 2)")
    assert len(client.run("SELECT * FROM t")) == 2
    client.run("UPDATE t SET n = 7 WHERE id = 1")
    assert client.run("SELECT id, n, (t).id FROM t ORDER BY n DESC") == [(1, 7, "a"), (2, 2, None)]
    client.run(
        "BEGIN; UPDATE t SET n = 8; SAVEPOINT p; DELETE FROM t; ROLLBACK TO p; DELETE FROM t WHERE id = 2; COMMIT"
    )
    assert client.run("SELECT id, n, (o).n FROM t") == [(1, 8, "d")]
