"""Schemas over restarts, beside streams and continuous views, and between transactions."""

from __future__ import annotations

from pathlib import Path

import pytest

from catalog.system import system_catalog
from catalog.values.errors import SqlError
from executor.definitions.stored_catalog import dump_catalog, load_catalog
from tests.executor.client import Client, open_database

SAME_NAMES = """
    CREATE SCHEMA one;
    CREATE SCHEMA two;
    CREATE FOREIGN TABLE one.clicks (page text, n int) SERVER stream;
    CREATE FOREIGN TABLE two.clicks (page text, n int) SERVER stream;
    CREATE VIEW one.counts AS SELECT page, sum(n) AS s FROM one.clicks GROUP BY page;
    CREATE VIEW two.counts AS SELECT page, sum(n) AS s FROM two.clicks GROUP BY page;
    CREATE TABLE one.names (page text PRIMARY KEY, title text);
    CREATE TABLE two.names (page text PRIMARY KEY, title text);
    CREATE VIEW one.titled AS SELECT title, s FROM one.counts JOIN one.names USING (page);
    INSERT INTO one.clicks VALUES ('a', 1), ('a', 2);
    INSERT INTO two.clicks VALUES ('a', 10);
    INSERT INTO one.names VALUES ('a', 'Alpha');
    INSERT INTO two.names VALUES ('a', 'Aleph');
"""


@pytest.mark.slow
def test_same_names_in_two_schemas_over_restarts(tmp_path: Path) -> None:
    database = open_database(tmp_path)
    Client(database).run(SAME_NAMES)
    oids = {name: item.oid for name, item in database.core.catalog.schemas.items()}
    database.close()
    for total in (3, 4):
        database = open_database(tmp_path)
        client = Client(database)
        assert {name: item.oid for name, item in database.core.catalog.schemas.items()} == oids
        assert client.run("SELECT * FROM one.counts") == [("a", total)]
        assert client.run("SELECT * FROM two.counts") == [("a", 10)]
        assert client.run("SELECT * FROM one.titled") == [("Alpha", total)]
        assert client.run("SELECT title FROM two.names") == [("Aleph",)]
        client.run("INSERT INTO one.clicks VALUES ('a', 1)")
        database.close()


@pytest.mark.slow
def test_what_was_renamed_and_moved_is_there_after_a_restart(tmp_path: Path) -> None:
    database = open_database(tmp_path)
    client = Client(database)
    client.run(f"{SAME_NAMES}; ALTER SCHEMA one RENAME TO first; CREATE SCHEMA third")
    client.run("ALTER FOREIGN TABLE first.clicks SET SCHEMA third; ALTER VIEW first.counts SET SCHEMA third")
    client.run("ALTER TABLE first.names SET SCHEMA third; DROP SCHEMA two CASCADE")
    for total in (4, 5):
        client.run("INSERT INTO third.clicks VALUES ('a', 1)")
        assert client.run("SELECT * FROM third.counts") == [("a", total)]
        assert client.run("SELECT * FROM first.titled") == [("Alpha", total)]
        assert client.run("UPDATE third.names SET title = title RETURNING title") == [("Alpha",)]
        with pytest.raises(SqlError, match=r'42P01: relation "two\.counts" does not exist'):
            client.run("SELECT * FROM two.counts")
        database.close()
        database = open_database(tmp_path)
        client = Client(database)
    assert client.run("SELECT name FROM millstream.streams") == [("third.clicks",)]
    assert client.run("SELECT name FROM millstream.views") == [("third.counts",)]
    database.close()


def test_public_stays_dropped(tmp_path: Path) -> None:
    database = open_database(tmp_path)
    client = Client(database)
    client.run("DROP SCHEMA public")
    with pytest.raises(SqlError, match="3F000: no schema has been selected to create in"):
        client.run("CREATE TABLE t (a int)")
    database.close()
    database = open_database(tmp_path)
    assert "public" not in database.core.catalog.schemas
    Client(database).run("CREATE SCHEMA public; CREATE TABLE t (a int)")
    database.close()


def test_a_catalog_that_was_stored_before_there_were_schemas_has_public() -> None:
    start = system_catalog()
    text = dump_catalog(start).replace('"schemas"', '"none"')
    assert load_catalog(text, start).schemas == start.schemas


def test_a_table_does_not_survive_that_its_schema_goes_meanwhile(tmp_path: Path) -> None:
    database = open_database(tmp_path)
    client, other = Client(database), Client(database)
    client.run("CREATE SCHEMA s")
    planned = client.planned("CREATE TABLE s.t (a int)")
    other.run("DROP SCHEMA s")
    with pytest.raises(SqlError, match='3F000: schema "s" does not exist'):
        client.session.execute_planned(planned)
    other.run("CREATE SCHEMA s; CREATE TABLE s.t (a int)")
    planned = other.planned("DROP SCHEMA s CASCADE")
    client.run("ALTER SCHEMA s RENAME TO r")
    with pytest.raises(SqlError, match='3F000: schema "s" does not exist'):
        other.session.execute_planned(planned)
    assert client.run("SELECT * FROM r.t") == []
    database.close()


def test_errors_name_what_is_hidden_with_its_schema(tmp_path: Path) -> None:
    database = open_database(tmp_path)
    client = Client(database)
    client.run("CREATE SCHEMA s; CREATE TABLE s.t (id int PRIMARY KEY); CREATE VIEW v AS SELECT id FROM s.t")
    with pytest.raises(SqlError) as caught:
        client.run("DROP SCHEMA s")
    assert caught.value.message == "cannot drop schema s because other objects depend on it"
    assert caught.value.detail == "table s.t depends on schema s\nview v depends on table s.t"
    assert client.run("DROP SCHEMA s CASCADE") == "DROP SCHEMA"
    assert client.notices == ["drop cascades to 2 other objects"]
    database.close()
