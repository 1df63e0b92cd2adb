"""CREATE OR REPLACE VIEW below other views: restarts, concurrent transactions, and refusals."""

from __future__ import annotations

from pathlib import Path

import pytest

from catalog.values.errors import SqlError
from tests.executor.client import Client, open_database

DEFINITIONS = """
    CREATE TABLE t (id int, a int);
    CREATE TABLE u (id int, a int);
    INSERT INTO t VALUES (1, 10);
    INSERT INTO u VALUES (2, 20);
    CREATE VIEW v AS SELECT id, a FROM t;
    CREATE VIEW w AS SELECT * FROM v;
    CREATE VIEW x AS SELECT a + 1 AS b FROM w;
"""
REPLACED = "CREATE OR REPLACE VIEW v AS SELECT id, a, 5 AS five FROM u"


@pytest.mark.slow
def test_views_above_are_the_same_after_a_restart(tmp_path: Path) -> None:
    database = open_database(tmp_path)
    client = Client(database)
    client.run(DEFINITIONS)
    client.run(REPLACED)
    client.run("DROP TABLE t")
    database.close()
    database = open_database(tmp_path)
    client = Client(database)
    assert (client.run("SELECT * FROM w"), client.run("SELECT * FROM x")) == ([(2, 20)], [(21,)])
    with pytest.raises(SqlError) as raised:
        client.run("DROP TABLE u")
    assert raised.value.sqlstate == "2BP01"
    client.run("DROP TABLE u CASCADE")
    assert client.session.catalog.at("public", "x") is None
    database.close()


def test_others_see_it_with_the_commit(tmp_path: Path) -> None:
    database = open_database(tmp_path)
    one, other = Client(database), Client(database)
    one.run(DEFINITIONS)
    other.run("CREATE TEMPORARY VIEW own AS SELECT * FROM w")
    one.run("BEGIN")
    one.run(REPLACED)
    assert (one.run("SELECT * FROM x"), other.run("SELECT * FROM x")) == ([(21,)], [(11,)])
    one.run("COMMIT")
    assert other.run("SELECT * FROM own") == [(2, 20)]
    database.close()


def test_what_a_continuous_view_reads_stays(tmp_path: Path) -> None:
    database = open_database(tmp_path)
    client = Client(database)
    client.run(DEFINITIONS)
    client.run("CREATE FOREIGN TABLE s (id int) SERVER stream")
    client.run("CREATE VIEW c AS SELECT w.id, count(*) AS n FROM s JOIN w ON w.id = s.id GROUP BY w.id")
    with pytest.raises(SqlError) as raised:
        client.run(REPLACED)
    assert (raised.value.sqlstate, raised.value.detail) == ("0A000", "view c depends on view v")
    client.run("DROP VIEW c")
    client.run(REPLACED)
    with pytest.raises(SqlError, match="other objects depend"):
        client.run("CREATE OR REPLACE VIEW v AS SELECT id, count(*)::int AS a, 5 AS five FROM s GROUP BY id")
    client.run("CREATE MATERIALIZED VIEW m AS SELECT id FROM t")
    with pytest.raises(SqlError, match='"m" is not a view'):
        client.run("CREATE OR REPLACE VIEW m AS SELECT id FROM t")
    database.close()
