"""Users' functions over restarts, beside streams and continuous views, and in transactions."""

from __future__ import annotations

from pathlib import Path

import pytest

from catalog.values.errors import SqlError
from tests.executor.client import Client, open_database

DEFINITIONS = """
    CREATE TYPE mood AS ENUM ('sad', 'ok');
    CREATE FUNCTION tens(x int) RETURNS int LANGUAGE sql IMMUTABLE AS 'SELECT x / 10';
    CREATE FUNCTION glad(m mood DEFAULT 'ok') RETURNS boolean IMMUTABLE RETURN m = 'ok';
    CREATE FOREIGN TABLE s (n int) SERVER stream;
    CREATE VIEW counts AS SELECT tens(n) AS ten, count(*) AS c FROM s GROUP BY tens(n);
    CREATE TABLE t (a int, b int DEFAULT tens(70), CHECK (tens(a) < 5));
    INSERT INTO s VALUES (11), (12), (25);
"""


@pytest.mark.slow
def test_functions_are_there_after_a_restart(tmp_path: Path) -> None:
    database = open_database(tmp_path)
    Client(database).run(DEFINITIONS)
    database.close()
    for again in (1, 2):
        database = open_database(tmp_path)
        client = Client(database)
        assert sorted(client.run("SELECT * FROM counts")) == [(1, 2), (2, 1)]
        assert client.run("SELECT tens(57), glad(), glad('sad')") == [(5, True, False)]
        assert client.run(f"INSERT INTO t (a) VALUES ({again}) RETURNING b") == [(7,)]
        with pytest.raises(SqlError, match="violates check constraint"):
            client.run("INSERT INTO t (a) VALUES (50)")
        database.close()


def test_a_schema_and_its_functions_have_another_name(tmp_path: Path) -> None:
    database = open_database(tmp_path)
    client = Client(database)
    client.run("CREATE SCHEMA one; CREATE FUNCTION one.f(x int) RETURNS int LANGUAGE sql AS 'SELECT x + 1'")
    client.run("ALTER SCHEMA one RENAME TO two")
    assert client.run("SELECT two.f(1)") == [(2,)]
    client.run("CREATE VIEW v AS SELECT two.f(2)")
    with pytest.raises(SqlError) as raised:
        client.run("DROP SCHEMA two")
    assert raised.value.sqlstate == "2BP01"
    client.run("DROP SCHEMA two CASCADE")
    assert client.session.catalog.at("public", "v") is None
    database.close()


def test_views_follow_a_schema_and_its_functions_after_a_restart(tmp_path: Path) -> None:
    database = open_database(tmp_path)
    client = Client(database)
    client.run("CREATE SCHEMA one; CREATE FUNCTION one.f(x int) RETURNS int LANGUAGE sql AS 'SELECT x + 1'")
    client.run(
        "CREATE VIEW v AS SELECT one.f(2) AS n; ALTER SCHEMA one RENAME TO two; ALTER FUNCTION two.f(int) RENAME TO g"
    )
    assert client.run("SELECT * FROM v") == [(3,)]
    database.close()
    database = open_database(tmp_path)
    assert Client(database).run("SELECT * FROM v") == [(3,)]
    database.close()


def test_a_schema_whose_functions_texts_call_keeps_its_name(tmp_path: Path) -> None:
    database = open_database(tmp_path)
    client = Client(database)
    client.run("CREATE SCHEMA one; CREATE FUNCTION one.f(x int) RETURNS int LANGUAGE sql AS 'SELECT x + 1'")
    client.run("CREATE TABLE t (a int DEFAULT one.f(1))")
    with pytest.raises(SqlError, match="RENAME of a schema of whose functions") as raised:
        client.run("ALTER SCHEMA one RENAME TO two")
    assert raised.value.sqlstate == "0A000" and raised.value.hint
    database.close()


@pytest.mark.slow
def test_a_replaced_body_is_everybodys_with_the_commit(tmp_path: Path) -> None:
    database = open_database(tmp_path)
    one, other = Client(database), Client(database)
    one.run("CREATE FUNCTION f() RETURNS int LANGUAGE sql AS 'SELECT 1'")
    one.run("BEGIN; CREATE OR REPLACE FUNCTION f() RETURNS int LANGUAGE sql AS 'SELECT 2'")
    assert (one.run("SELECT f()"), other.run("SELECT f()")) == ([(2,)], [(1,)])
    one.run("COMMIT")
    assert other.run("SELECT f()") == [(2,)]
    database.close()
