"""Deferred foreign keys: COMMIT succeeds if every row has its partner, and otherwise nothing is stored."""

from __future__ import annotations

import random
from contextlib import closing
from pathlib import Path

import pytest

from catalog.values.errors import SqlError
from tests.executor.client import Client, open_database

TABLES = (
    "CREATE TABLE p (id int PRIMARY KEY, n int);"
    "CREATE TABLE c (id int, p int REFERENCES p DEFERRABLE INITIALLY DEFERRED)"
)
ORPHANS = "SELECT count(*) FROM c WHERE p IS NOT NULL AND p NOT IN (SELECT id FROM p)"


@pytest.mark.slow
def test_a_commit_that_misses_a_partner_leaves_nothing(tmp_path: Path) -> None:
    with closing(open_database(tmp_path)) as database:
        client = Client(database)
        client.run(TABLES)
        client.run("CREATE FOREIGN TABLE s (n int) SERVER stream; CREATE VIEW v AS SELECT count(*) FROM s")
        client.run("BEGIN; INSERT INTO s VALUES (1); INSERT INTO c VALUES (1, 1)")
        with pytest.raises(SqlError, match="violates foreign key constraint") as caught:
            client.run("COMMIT")
        assert caught.value.detail == 'Key (p)=(1) is not present in table "p".'
        assert client.session.status == "I"
        client.run("BEGIN; INSERT INTO s VALUES (1); INSERT INTO c VALUES (2, 2); INSERT INTO p VALUES (2); COMMIT")
        assert client.run("SELECT c.id, v.count FROM c, v") == [(2, 1)]
    with closing(open_database(tmp_path)) as database:
        client = Client(database)
        client.run("BEGIN; DELETE FROM p")
        with pytest.raises(SqlError, match="update or delete on table") as caught:
            client.run("COMMIT")
        assert caught.value.detail == 'Key (id)=(2) is still referenced from table "c".'
        assert client.run("SELECT * FROM p") == [(2, None)]


def _statement(source: random.Random) -> str:
    key, other = source.randrange(8), source.randrange(8)
    return source.choice(
        (
            f"INSERT INTO p VALUES ({key}) ON CONFLICT DO NOTHING",
            f"DELETE FROM p WHERE id IN ({key}, {other})",
            f"UPDATE p SET id = id + 8 WHERE id = {key} AND NOT EXISTS (SELECT FROM p WHERE id = {key + 8})",
            f"INSERT INTO c VALUES ({key}, {other}), ({other}, {key})",
            f"INSERT INTO c SELECT id, id FROM p WHERE id > {key}",
            f"UPDATE c SET p = {key} WHERE id = {other}",
            f"DELETE FROM c WHERE p = {key}",
            f"MERGE INTO c USING (VALUES ({key})) AS v (n) ON c.id = v.n WHEN MATCHED THEN DELETE"
            f" WHEN NOT MATCHED THEN INSERT VALUES ({key}, {other})",
            *("SAVEPOINT a", "SAVEPOINT b", "ROLLBACK TO a", "ROLLBACK TO a", "SET CONSTRAINTS ALL DEFERRED"),
            "SET CONSTRAINTS c_p_fkey IMMEDIATE",
        )
    )


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2))
def test_a_transaction_commits_where_its_end_has_every_partner(tmp_path: Path, seed: int) -> None:
    source = random.Random(seed)
    outcomes: set[bool] = set()
    with closing(open_database(tmp_path)) as database:
        client = Client(database)
        client.run(TABLES)
        for _ in range(25):
            client.run("BEGIN; SAVEPOINT a; SAVEPOINT b")
            for _ in range(source.randrange(1, 9)):
                text, is_whole = _statement(source), client.run(ORPHANS) == [(0,)]
                try:
                    client.run(text)
                    assert is_whole or not text.endswith("IMMEDIATE")
                except SqlError as error:
                    assert error.sqlstate == "23503"
                    assert not is_whole or not text.endswith("IMMEDIATE")
                    client.run("ROLLBACK TO a")
            whole = client.run(ORPHANS) == [(0,)]
            outcomes.add(whole)
            if whole:
                client.run("COMMIT")
            else:
                with pytest.raises(SqlError, match="violates foreign key constraint"):
                    client.run("COMMIT")
            assert client.run(ORPHANS) == [(0,)]
    assert outcomes == {True, False}


def test_an_update_that_leaves_the_key_alone_waits_for_nothing(tmp_path: Path) -> None:
    """In a table that refers to itself, a row's check is queued only if its key or its reference changes."""
    with closing(open_database(tmp_path)) as database:
        client = Client(database)
        client.run(
            "CREATE TABLE node (id int PRIMARY KEY, up int REFERENCES node DEFERRABLE INITIALLY DEFERRED, n int)"
        )
        client.run("INSERT INTO node VALUES (1, NULL, 0), (2, 1, 0)")
        client.run("BEGIN; UPDATE node SET n = n + 1; CREATE INDEX node_n ON node (n); COMMIT")
        assert client.run("SELECT id, up, n FROM node ORDER BY id") == [(1, None, 1), (2, 1, 1)]
        for change in ("UPDATE node SET up = 2 WHERE id = 1", "UPDATE node SET id = 3 WHERE id = 2"):
            with pytest.raises(SqlError) as caught:
                client.run(f"BEGIN; {change}; CREATE INDEX node_up ON node (up)")
            assert caught.value.sqlstate == "55006"
            client.run("ROLLBACK")
        client.run("BEGIN; UPDATE node SET id = id + 10")
        with pytest.raises(SqlError) as caught:
            client.run("COMMIT")
        assert caught.value.sqlstate == "23503"
