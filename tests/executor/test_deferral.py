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


ACTIONS = {
    "none": "",
    "set": "ON DELETE SET NULL ON UPDATE SET NULL",
    "move": "ON DELETE CASCADE ON UPDATE CASCADE",
}
ALWAYS, NEVER = "none, set, move", ""


def _filled(client: Client, actions: str) -> None:
    client.run(
        "CREATE TABLE p (id int PRIMARY KEY, n int);"
        "CREATE TABLE c (id int PRIMARY KEY, n int, p int CONSTRAINT fk REFERENCES p"
        f" {actions} DEFERRABLE INITIALLY DEFERRED);"
        "CREATE TABLE pair (a int, b int, UNIQUE (a, b));"
        "CREATE TABLE half (a int, b int, n int, FOREIGN KEY (a, b) REFERENCES pair (a, b)"
        f" {actions} DEFERRABLE INITIALLY DEFERRED);"
        "CREATE TABLE u (id int PRIMARY KEY DEFERRABLE INITIALLY DEFERRED, n int);"
        "INSERT INTO p VALUES (1, 0), (2, 0), (3, 0); INSERT INTO c VALUES (1, 0, 1), (2, 0, 2), (3, 0, NULL);"
        "INSERT INTO pair VALUES (1, 1), (2, NULL); INSERT INTO half VALUES (1, 1, 0), (5, NULL, 0);"
        "INSERT INTO u VALUES (1, 0), (2, 0), (5, 0)"
    )


#: Changes, tables, and the actions for which PostgreSQL 15 truncates these tables after the change.
WAITING: list[tuple[str, str, str]] = [
    ("INSERT INTO c VALUES (9, 0, NULL)", "c", NEVER),
    ("INSERT INTO c VALUES (9, 0, 1); DELETE FROM c WHERE id = 9", "c", NEVER),
    ("UPDATE c SET p = NULL", "c", ALWAYS),
    ("UPDATE c SET n = n + 1", "c", ALWAYS),
    ("UPDATE c SET p = 1 WHERE id = 1", "c", ALWAYS),
    ("UPDATE c SET p = 2 WHERE id = 1", "c", NEVER),
    ("UPDATE c SET p = CASE id WHEN 1 THEN NULL ELSE 3 END", "c", NEVER),
    ("UPDATE c SET n = 1; UPDATE c SET n = 2", "c", NEVER),
    ("UPDATE c SET n = 1 WHERE id = 1; UPDATE c SET n = 2 WHERE id = 2", "c", ALWAYS),
    ("UPDATE c SET n = 1 WHERE id = 1; UPDATE c SET n = 2 WHERE id = 1", "c", NEVER),
    ("UPDATE c SET n = 1 WHERE id = 3; UPDATE c SET n = 2 WHERE id = 3", "c", ALWAYS),
    ("SAVEPOINT a; UPDATE c SET n = 1; ROLLBACK TO a; UPDATE c SET n = 2", "c", ALWAYS),
    ("DELETE FROM c", "c", ALWAYS),
    ("MERGE INTO c USING p ON c.p = p.id WHEN MATCHED THEN UPDATE SET p = NULL", "c", ALWAYS),
    ("DELETE FROM p WHERE id = 1", "c", ALWAYS),
    ("UPDATE p SET id = id + 10 WHERE id = 1", "c", "none, set"),
    ("DELETE FROM p WHERE id = 3", "p, c", "set, move"),
    ("UPDATE p SET id = 13 WHERE id = 3", "p, c", "set, move"),
    ("UPDATE p SET id = id, n = 7", "p, c", ALWAYS),
    ("MERGE INTO p USING (VALUES (3, 0), (3, 1)) v (id, n) ON p.id = v.id AND v.n = 0 WHEN MATCHED THEN DELETE"
     " WHEN NOT MATCHED THEN INSERT VALUES (v.id, 1)", "p, c", "set, move"),
    ("UPDATE half SET a = 7 WHERE a = 5", "half", ALWAYS),
    ("UPDATE half SET a = NULL WHERE a = 1", "half", ALWAYS),
    ("INSERT INTO half VALUES (7, NULL)", "half", NEVER),
    ("DELETE FROM pair WHERE a = 2", "pair, half", ALWAYS),
    ("UPDATE pair SET b = 2 WHERE a = 2", "pair, half", ALWAYS),
    ("DELETE FROM pair WHERE a = 1", "pair, half", "set, move"),
    ("INSERT INTO u VALUES (7, 0)", "u", ALWAYS),
    ("INSERT INTO u VALUES (1, 0); DELETE FROM u WHERE id = 1", "u", NEVER),
    ("DELETE FROM u WHERE id = 1; INSERT INTO u VALUES (1, 0)", "u", ALWAYS),
    ("UPDATE u SET id = id + 1", "u", NEVER),
    ("UPDATE u SET id = id - 1", "u", ALWAYS),
    ("UPDATE u SET id = id + 100", "u", ALWAYS),
]  # fmt: skip


@pytest.mark.parametrize("action", ACTIONS)
def test_a_table_can_be_truncated_where_no_check_waits(tmp_path: Path, action: str) -> None:
    with closing(open_database(tmp_path)) as database:
        client = Client(database)
        _filled(client, ACTIONS[action])
        for change, tables, actions in WAITING:
            client.run(f"BEGIN; {change}")
            if actions == "always" or (action and action in actions and actions != NEVER):
                assert client.run(f"TRUNCATE {tables}") == "TRUNCATE TABLE", change
            else:
                with pytest.raises(SqlError, match="pending trigger events") as caught:
                    client.run(f"TRUNCATE {tables}")
                assert caught.value.sqlstate == "55006", change
            client.run("ROLLBACK")


def test_a_check_that_waits_keeps_no_name_comment_or_privilege_from_changing(tmp_path: Path) -> None:
    with closing(open_database(tmp_path)) as database:
        client = Client(database)
        _filled(client, "")
        client.run("CREATE INDEX c_n ON c (n)")
        for command in (
            "ALTER TABLE c RENAME CONSTRAINT c_pkey TO c_k",
            "ALTER INDEX c_n RENAME TO c_m",
            "ALTER INDEX c_k RENAME TO c_key",
            "COMMENT ON TABLE c IS 'x'",
            "COMMENT ON COLUMN c.n IS 'x'",
            "GRANT SELECT (n) ON c TO PUBLIC",
        ):
            client.run(f"BEGIN; INSERT INTO c VALUES (9, 0, 77); {command}; INSERT INTO p VALUES (77); COMMIT")
            client.run("DELETE FROM c WHERE id = 9; DELETE FROM p WHERE id = 77")


def test_a_foreign_key_stays_while_the_table_it_refers_to_has_checks_waiting(tmp_path: Path) -> None:
    with closing(open_database(tmp_path)) as database:
        client = Client(database)
        _filled(client, "")
        client.run("BEGIN; DELETE FROM p WHERE id = 3")
        with pytest.raises(SqlError, match='cannot ALTER TABLE "p" because it has pending trigger events'):
            client.run("ALTER TABLE c DROP CONSTRAINT fk")
        client.run("ROLLBACK")
        client.run("BEGIN; DELETE FROM p; ALTER TABLE c DROP COLUMN p; COMMIT")
        assert client.run("SELECT * FROM p") == []
