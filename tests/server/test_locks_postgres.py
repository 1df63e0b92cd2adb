"""Which statements of two sessions wait for each other, compared with a real PostgreSQL."""

from __future__ import annotations

from typing import Any

import psycopg
import pytest

from tests.rig.postgres import Postgres
from tests.rig.sampling import sample
from tests.rig.server import Millstream

Client = psycopg.Connection[Any]

_SETUP = (
    "DROP TABLE IF EXISTS child, parent, la, lb CASCADE",
    "CREATE TABLE la (i int PRIMARY KEY, n int)",
    "CREATE TABLE lb (i int PRIMARY KEY, n int)",
    "CREATE TABLE parent (id int PRIMARY KEY, n int)",
    "CREATE TABLE child (id int PRIMARY KEY, parent int REFERENCES parent)",
    "INSERT INTO la VALUES (1, 1), (2, 2)",
    "INSERT INTO lb VALUES (1, 1), (2, 2)",
    "INSERT INTO parent VALUES (1, 1), (2, 2)",
    "CREATE VIEW lv AS SELECT * FROM lb",
)
_MODES = ("ACCESS SHARE", "ROW SHARE", "ROW EXCLUSIVE", "SHARE UPDATE EXCLUSIVE", "SHARE", "SHARE ROW EXCLUSIVE",
          "EXCLUSIVE", "ACCESS EXCLUSIVE")  # fmt: skip
_FIRST = (
    *(f"LOCK TABLE la IN {mode} MODE" for mode in _MODES),
    "SELECT * FROM la",
    "SELECT * FROM la WHERE i = 1",
    "SELECT * FROM la FOR UPDATE",
    "SELECT * FROM la FOR SHARE",
    "INSERT INTO la VALUES (3, 3)",
    "UPDATE la SET n = n + 1",
    "UPDATE la SET n = n + 1 WHERE i = 1",
    "DELETE FROM la WHERE i = 1",
    "TRUNCATE la",
    "CREATE INDEX la_n ON la (n)",
    "ALTER TABLE la ADD COLUMN m int",
    "DROP TABLE la",
    "CREATE TABLE lc (i int)",
    "CREATE TEMP TABLE lt (i int)",
    "CREATE VIEW la_view AS SELECT * FROM la",
    "INSERT INTO child VALUES (1, 1)",
    "UPDATE parent SET n = 5 WHERE id = 1",
    "DELETE FROM parent WHERE id = 1",
)
_SECOND = (
    "SELECT count(*) FROM la",
    "SELECT * FROM la WHERE i = 2",
    "SELECT * FROM la FOR UPDATE",
    "SELECT * FROM lb FOR UPDATE",
    "INSERT INTO la VALUES (4, 4)",
    "UPDATE la SET n = n + 1 WHERE i = 1",
    "INSERT INTO lb VALUES (4, 4)",
    "UPDATE lb SET n = 3 WHERE i = 1",
    "TRUNCATE lb",
    "CREATE TABLE lc (i int)",
    "CREATE TABLE ld (i int)",
    "CREATE TEMP TABLE lt (i int)",
    "CREATE VIEW lw AS SELECT 1",
    "CREATE INDEX lb_n ON lb (n)",
    "ALTER TABLE la ADD COLUMN m int",
    "DROP TABLE lb CASCADE",
    "DROP VIEW lv",
    "GRANT SELECT ON lb TO PUBLIC",
    "INSERT INTO child VALUES (2, 2)",
    "INSERT INTO child VALUES (2, 1)",
    "UPDATE parent SET n = 6 WHERE id = 2",
    "DELETE FROM parent WHERE id = 1",
    "LOCK TABLE la IN ROW EXCLUSIVE MODE",
    "LOCK TABLE la IN SHARE MODE NOWAIT",
)
#: Rows found by a query are locked with all others of their table, and so are referenced rows.
_COARSER = {
    ("INSERT INTO la VALUES (3, 3)", "SELECT * FROM la FOR UPDATE"),
    ("INSERT INTO la VALUES (3, 3)", "INSERT INTO la VALUES (4, 4)"),
    ("INSERT INTO la VALUES (3, 3)", "UPDATE la SET n = n + 1 WHERE i = 1"),
    ("SELECT * FROM la FOR UPDATE", "INSERT INTO la VALUES (4, 4)"),
    ("SELECT * FROM la FOR SHARE", "INSERT INTO la VALUES (4, 4)"),
    ("UPDATE la SET n = n + 1", "INSERT INTO la VALUES (4, 4)"),
    ("UPDATE la SET n = n + 1 WHERE i = 1", "INSERT INTO la VALUES (4, 4)"),
    ("DELETE FROM la WHERE i = 1", "INSERT INTO la VALUES (4, 4)"),
    ("INSERT INTO child VALUES (1, 1)", "INSERT INTO child VALUES (2, 2)"),
    ("INSERT INTO child VALUES (1, 1)", "INSERT INTO child VALUES (2, 1)"),
    ("DELETE FROM parent WHERE id = 1", "INSERT INTO child VALUES (2, 2)"),
    ("DELETE FROM parent WHERE id = 1", "UPDATE parent SET n = 6 WHERE id = 2"),
    ("UPDATE parent SET n = 5 WHERE id = 1", "UPDATE parent SET n = 6 WHERE id = 2"),
}


def _waits(first: Client, second: Client, held: str, text: str) -> str:
    """Whether a statement waits while a transaction has run some statements."""
    first.execute("BEGIN")
    first.execute(held.encode())
    second.execute("BEGIN")
    try:
        second.execute(text.encode())
        return "goes through"
    except psycopg.errors.LockNotAvailable as error:
        return f"waits: {error.diag.message_primary}"
    except psycopg.Error as error:
        return str(error.sqlstate)
    finally:
        second.execute("ROLLBACK")
        first.execute("ROLLBACK")


@pytest.mark.postgres
@pytest.mark.parametrize("held", sample(_FIRST, (_FIRST[0], _FIRST[5], *_FIRST[7:9], *_FIRST[12:15], *_FIRST[19:24])))
def test_which_statements_wait_for_each_other(running: Millstream, postgres: Postgres, held: str) -> None:
    found = {}
    for name, server in (("ours", running), ("PostgreSQL's", postgres)):
        with server.connect() as first, server.connect() as second:
            for text in _SETUP:
                first.execute(text.encode())
            second.execute("SET lock_timeout = '100ms'")
            found[name] = {text: _waits(first, second, held, text) for text in _SECOND if (held, text) not in _COARSER}
            first.execute("DROP TABLE child, parent, la, lb CASCADE")
    assert found["ours"] == found["PostgreSQL's"]
