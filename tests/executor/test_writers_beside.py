"""Concurrent transactions that write: nothing is lost, and a start after a crash finds all committed changes."""

from __future__ import annotations

import random
from contextlib import closing
from pathlib import Path

import pytest

from catalog.values.errors import SqlError
from executor.database.database import Database
from tests.executor.client import Client, open_database
from tests.rig.beside import Beside
from tests.rig.crash import copy_crashed

TABLES = (
    "CREATE TABLE account (id int PRIMARY KEY, n int NOT NULL, name text UNIQUE);"
    "CREATE TABLE owner (id int PRIMARY KEY, n int);"
    "CREATE TABLE owned (id int PRIMARY KEY, owner int REFERENCES owner ON DELETE CASCADE, n int);"
    "CREATE TABLE history (account int, change int);"
    "INSERT INTO account SELECT i, 0, 'a' || i FROM generate_series(0, 9) i;"
    "INSERT INTO owner SELECT i, 0 FROM generate_series(0, 5) i"
)
EVERY = ("account", "owner", "owned", "history")


def dump(database: Database) -> dict[str, object]:
    """All rows of all tables."""
    client = Client(database)
    names = client.run("SELECT relname FROM pg_class WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace")
    assert isinstance(names, list)
    return {name: sorted(map(repr, client.run(f"SELECT * FROM {name}"))) for (name,) in names}


def statements(source: random.Random, worker: int) -> list[str]:
    """The statements of one transaction; every change of an account is recorded in the history."""
    found: list[str] = []
    for _ in range(source.randrange(1, 4)):
        account, change, owner = source.randrange(10), source.randrange(1, 5), source.randrange(6)
        name = f"w{worker}_{source.randrange(10**9)}"
        where = source.choice((f"id = {account}", f"id + 0 = {account}", f"name = 'a{account}'"))
        found += source.choice(
            (
                [
                    f"UPDATE account SET n = n + {change} WHERE {where}",
                    f"INSERT INTO history VALUES ({account}, {change})",
                ],
                [
                    f"UPDATE account SET n = n + {change} WHERE {where}",
                    f"INSERT INTO history SELECT {account}, {change}",
                ],
                [f"UPDATE account SET n = n + {change}", f"INSERT INTO history SELECT id, {change} FROM account"],
                [f"INSERT INTO owned VALUES ({source.randrange(1000)}, {owner}, {worker}) ON CONFLICT DO NOTHING"],
                [f"UPDATE owner SET n = n + 1 WHERE id = {owner}", f"UPDATE owned SET n = n + 1 WHERE owner = {owner}"],
                [f"DELETE FROM owned WHERE id < {source.randrange(1000)}"],
                [f"DELETE FROM owner WHERE id = {owner}", f"INSERT INTO owner VALUES ({owner}, 0)"],
                ["SAVEPOINT s", f"UPDATE account SET n = n + 100 WHERE {where}", "ROLLBACK TO s"],
                [f"CREATE TEMP TABLE IF NOT EXISTS own (n int); INSERT INTO own VALUES ({change})"],
                [f"CREATE TABLE {name} (n int); INSERT INTO history VALUES ({account}, 0)"],
            )
        )
    return found


def work(database: Database, worker: int, count: int) -> int:
    """One client's transactions; returns how many were committed."""
    source, client, done = random.Random(worker), Client(database), 0
    for _ in range(count):
        try:
            client.run("BEGIN")
            for text in statements(source, worker):
                client.run(text)
            client.run("COMMIT" if source.random() < 0.9 else "ROLLBACK")
            done += 1
        except SqlError as error:
            assert error.sqlstate in ("40001", "40P01"), error
            client.run("ROLLBACK")
    client.session.close()
    return done


@pytest.mark.parametrize("count", [12, pytest.param(150, marks=pytest.mark.whole)])
def test_many_writers_lose_nothing_and_a_start_finds_what_was_there(tmp_path: Path, count: int) -> None:
    with closing(open_database(tmp_path / "live")) as database:
        Client(database).run(TABLES)
        workers = [Beside(lambda worker=worker: work(database, worker, count)) for worker in range(4)]
        assert sum(worker.result() for worker in workers) > count
        client = Client(database)
        wrong = "SELECT id, n, (SELECT coalesce(sum(change), 0) FROM history WHERE account = id) AS s FROM account"
        assert client.run(f"SELECT * FROM ({wrong}) x WHERE n <> s") == []
        assert client.run("SELECT count(*) FROM owned WHERE owner NOT IN (SELECT id FROM owner)") == [(0,)]
        assert database.core.tables.locks.shown() == []
        before = dump(database)
        copy_crashed(tmp_path / "live", tmp_path / "crashed")
        database.core.tables.backlog.apply()
        assert dump(database) == before
    for folder in ("crashed", "live"):
        with closing(open_database(tmp_path / folder)) as database:
            assert dump(database) == before


@pytest.fixture
def clients(tmp_path: Path):  # type: ignore[no-untyped-def]
    with closing(open_database(tmp_path / "shared")) as database:
        Client(database).run(TABLES)
        yield Client(database), Client(database), Client(database)


Clients = tuple[Client, Client, Client]


def test_definitions_of_two_open_transactions_are_both_there(clients: Clients) -> None:
    first, second, other = clients
    for client, name in ((first, "one"), (second, "two")):
        client.run("BEGIN")
        client.run(
            f"CREATE TABLE {name} (id serial PRIMARY KEY, n int); CREATE VIEW {name}_view AS SELECT n FROM {name}"
        )
        client.run(f"INSERT INTO {name} (n) VALUES (1)")
    other.run("CREATE TABLE three (n int)")
    first.run("INSERT INTO three VALUES (1)")
    first.run("DROP TABLE history")
    first.run("SAVEPOINT s; CREATE TABLE gone (n int); ROLLBACK TO s")
    second.run("COMMENT ON TABLE two IS 'two'; ALTER TABLE two ADD COLUMN m int DEFAULT 7")
    second.run("COMMIT")
    assert first.run("SELECT n, m FROM two") == [(1, 7)]
    with pytest.raises(SqlError, match="does not exist"):
        other.run("SELECT * FROM one")
    first.run("COMMIT")
    assert other.run("SELECT * FROM one_view, two_view, three") == [(1, 1, 1)]
    oids = other.run("SELECT count(DISTINCT oid), count(*) FROM pg_class")
    assert isinstance(oids, list) and oids[0][0] == oids[0][1]
    with pytest.raises(SqlError):
        other.run("SELECT * FROM history")


def test_a_statement_sees_what_others_committed_before_it(clients: Clients) -> None:
    """READ COMMITTED: also in a transaction that has written, by key or by a query, and after a savepoint."""
    first, second, _ = clients
    for change in ("UPDATE account SET n = 5 WHERE id = 1", "UPDATE account SET n = 5 WHERE id + 0 = 1"):
        first.run("BEGIN")
        first.run(change)
        before = first.run("SELECT sum(n) FROM owner")
        second.run("UPDATE owner SET n = n + 1 WHERE id = 1; UPDATE owner SET n = n + 1 WHERE id + 0 = 2")
        assert first.run("SELECT sum(n) FROM owner") == [(before[0][0] + 2,)]  # type: ignore[index, misc]
        first.run("SAVEPOINT s; UPDATE owner SET n = n + 10 WHERE id = 1; ROLLBACK TO s")
        second.run("UPDATE owner SET n = n + 1")
        assert first.run("SELECT sum(n) FROM owner") == [(before[0][0] + 8,)]  # type: ignore[index, misc]
        assert first.run("SELECT n FROM account WHERE id = 1") == [(5,)]
        second.run("UPDATE account SET n = 9 WHERE id = 2")
        assert first.run("SELECT n FROM account WHERE id IN (1, 2) ORDER BY id") == [(5,), (9,)]
        first.run("ROLLBACK")


def test_repeatable_transactions_write_on_their_snapshot(clients: Clients) -> None:
    first, second, _ = clients
    first.run("BEGIN ISOLATION LEVEL REPEATABLE READ")
    assert first.run("SELECT count(*) FROM history") == [(0,)]
    second.run("INSERT INTO history VALUES (1, 1)")
    first.run("UPDATE account SET n = 1 WHERE id = 1; SAVEPOINT s; UPDATE account SET n = 2")
    assert first.run("SELECT count(*), sum(a.n) FROM account a LEFT JOIN history h ON h.account = a.id") == [(10, 20)]
    with pytest.raises(SqlError) as caught:
        first.run("INSERT INTO history VALUES (2, 2)")
    assert caught.value.sqlstate == "40001"
    first.run("ROLLBACK; BEGIN ISOLATION LEVEL REPEATABLE READ; UPDATE account SET n = 3 WHERE id = 1")
    second.run("INSERT INTO owner VALUES (100, 1)")
    first.run("COMMIT")
    assert second.run("SELECT n FROM account WHERE id = 1") == [(3,)]


def test_a_failed_transaction_blocks_no_other(clients: Clients) -> None:
    first, second, _ = clients
    first.run("BEGIN; UPDATE account SET n = 1")
    with pytest.raises(SqlError):
        first.run("SELECT 1 / 0")
    assert second.run("UPDATE account SET n = 2") == "UPDATE 10"
    first.run("COMMIT")
    assert second.run("SELECT sum(n) FROM account") == [(20,)]
