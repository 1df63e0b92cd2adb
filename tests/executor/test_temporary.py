"""Temporary relations beside durable ones: the log, restarts, other sessions, and the session's end."""

from __future__ import annotations

from pathlib import Path

import pytest

from catalog.values.errors import SqlError
from executor.tables.temporary import FIRST_OID
from tests.executor.client import Client, open_database
from tests.rig.crash import copy_crashed


@pytest.mark.slow
def test_nothing_of_it_is_logged_or_kept(tmp_path: Path) -> None:
    database = open_database(tmp_path)
    client = Client(database)
    client.run("CREATE TABLE durable (a int)")
    before, catalog = database.core.log.last_lsn, database.core.catalog
    client.run("CREATE TEMP TABLE t (id serial, a int); INSERT INTO t (a) VALUES (1), (2)")
    client.run("CREATE TEMP VIEW v AS SELECT a FROM t")
    client.run("ALTER TABLE t ADD COLUMN b int DEFAULT 3; UPDATE t SET a = a + id")
    client.run("ALTER TABLE t ALTER COLUMN b TYPE text")
    assert client.run("SELECT * FROM t ORDER BY id") == [(1, 2, "3"), (2, 4, "3")]
    assert database.core.log.last_lsn == before
    assert database.core.catalog is catalog
    client.run("BEGIN; INSERT INTO durable SELECT a FROM t; DELETE FROM t; COMMIT")
    assert database.core.log.last_lsn > before
    assert database.core.catalog is catalog
    database.close()
    database = open_database(tmp_path)
    assert Client(database).run("SELECT * FROM durable ORDER BY a") == [(2,), (4,)]
    assert all(oid < FIRST_OID for oid in database.core.tables.definitions)
    assert database.core.catalog.next_oid < FIRST_OID
    database.close()


@pytest.mark.slow
def test_what_a_crash_leaves_is_dropped(tmp_path: Path) -> None:
    database = open_database(tmp_path / "data")
    client = Client(database)
    client.run("CREATE TABLE durable (a int); CREATE TEMP TABLE t (a int); INSERT INTO t VALUES (1)")
    client.run("INSERT INTO durable SELECT a FROM t; ALTER TABLE durable ADD COLUMN b int")
    client.run("CREATE TABLE later AS TABLE t")
    copy_crashed(tmp_path / "data", tmp_path / "crashed")
    database.close()
    database = open_database(tmp_path / "crashed")
    client = Client(database)
    assert [table.name for table in database.core.tables.definitions.values()] == ["durable", "later"]
    assert client.run("SELECT * FROM durable") == [(1, None)]
    assert client.run("SELECT * FROM later") == [(1,)]
    client.run("CREATE TEMP TABLE t (b text); INSERT INTO t VALUES ('x')")
    assert client.run("SELECT * FROM t") == [("x",)]
    database.close()


def test_each_session_has_its_own(tmp_path: Path) -> None:
    database = open_database(tmp_path)
    one, two = Client(database), Client(database)
    one.run("CREATE TEMP TABLE t (a int); INSERT INTO t VALUES (1)")
    two.run("CREATE TEMP TABLE t (a int, b int); INSERT INTO t VALUES (2, 3)")
    assert one.run("SELECT * FROM t") == [(1,)]
    assert two.run("SELECT * FROM t") == [(2, 3)]
    two.run("CREATE TABLE shared AS SELECT a FROM t; DROP TABLE t")
    with pytest.raises(SqlError, match="42P01"):
        two.run("SELECT * FROM t")
    assert one.run("SELECT t.a, shared.a FROM t, shared") == [(1, 2)]
    assert one.run("ALTER TABLE shared ADD COLUMN c int") == "ALTER TABLE"
    assert one.run("SELECT * FROM t") == [(1,)]
    one.session.close()
    assert [table.name for table in database.core.tables.definitions.values()] == ["shared"]
    database.close()


def test_a_session_that_ends_beside_a_writer_takes_its_tables_along(tmp_path: Path) -> None:
    database = open_database(tmp_path)
    one, two, writer = Client(database), Client(database), Client(database)
    one.run("CREATE TEMP TABLE t (a int); INSERT INTO t VALUES (1)")
    two.run("CREATE TABLE w (a int)")
    two.run("BEGIN; CREATE TEMP TABLE u (a int); INSERT INTO u VALUES (1)")
    writer.run("BEGIN; INSERT INTO w VALUES (1)")
    one.session.close()
    assert len(database.core.tables.definitions) == 1
    two.session.close()
    writer.run("COMMIT")
    assert [table.name for table in database.core.tables.definitions.values()] == ["w"]
    database.close()


def test_a_failed_commit_leaves_the_relations_as_they_were(tmp_path: Path) -> None:
    database = open_database(tmp_path)
    client = Client(database)
    client.run("CREATE TEMP TABLE p (id int PRIMARY KEY)")
    client.run("CREATE TEMP TABLE c (id int REFERENCES p DEFERRABLE INITIALLY DEFERRED)")
    with pytest.raises(SqlError, match="23503"):
        client.run("BEGIN; CREATE TEMP TABLE more (a int); INSERT INTO c VALUES (1); COMMIT")
    assert client.run("SELECT * FROM c") == []
    with pytest.raises(SqlError, match="42P01"):
        client.run("SELECT * FROM more")
    client.run("BEGIN; INSERT INTO c VALUES (1); INSERT INTO p VALUES (1); COMMIT")
    assert client.run("SELECT * FROM c") == [(1,)]
    database.close()


@pytest.mark.slow
def test_temporary_rows_beside_streams_and_continuous_views(tmp_path: Path) -> None:
    database = open_database(tmp_path)
    client = Client(database)
    client.run("CREATE FOREIGN TABLE s (k int, n int) SERVER stream; CREATE TEMP TABLE t (k int, n int)")
    client.run("CREATE VIEW v AS SELECT k, sum(n) AS n FROM s GROUP BY k")
    with pytest.raises(SqlError, match="0A000"):
        client.run("CREATE VIEW w AS SELECT s.k, sum(t.n) FROM s, t GROUP BY s.k")
    client.run("BEGIN; INSERT INTO t VALUES (1, 2), (2, 3); INSERT INTO s SELECT * FROM t; COMMIT")
    assert client.run("SELECT v.k, v.n, t.n FROM v JOIN t USING (k) ORDER BY 1") == [(1, 2, 2), (2, 3, 3)]
    client.run("CREATE VIEW above AS SELECT v.k FROM v JOIN t USING (k)")
    assert client.notices == ['view "above" will be a temporary view']
    assert "above" not in {item.name for item in database.core.catalog.objects.values()}
    database.close()
