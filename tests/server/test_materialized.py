"""Materialized views over tables and streams, which are up to date at each read, and their rows in the catalogs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import psycopg
import pytest

from tests.rig.server import Millstream

Client = psycopg.Connection[Any]


def test_materialized_view_over_a_table(sql: Client) -> None:
    sql.execute("CREATE TABLE mat_sold (id integer PRIMARY KEY, what text, price integer)")
    sql.execute("INSERT INTO mat_sold VALUES (1, 'a', 2), (2, 'b', 3)")
    sql.execute(
        "CREATE MATERIALIZED VIEW mat_sums (what, total) AS SELECT what, sum(price) FROM mat_sold GROUP BY what"
    )
    sql.execute("CREATE MATERIALIZED VIEW IF NOT EXISTS mat_sums AS SELECT 1")
    sql.execute("UPDATE mat_sold SET price = 10 WHERE id = 1")
    sql.execute("REFRESH MATERIALIZED VIEW mat_sums")
    assert sql.execute("SELECT * FROM mat_sums ORDER BY 1").fetchall() == [("a", 10), ("b", 3)]
    assert sql.execute("SELECT relkind FROM pg_class WHERE relname = 'mat_sums'").fetchone() == ("m",)
    shown = sql.execute("SELECT matviewname, definition FROM pg_matviews WHERE matviewname LIKE 'mat%'").fetchall()
    assert [name for name, _ in shown] == ["mat_sums"]
    assert sql.execute("SELECT viewname FROM pg_views WHERE viewname = 'mat_sums'").fetchall() == []
    with pytest.raises(psycopg.errors.DependentObjectsStillExist, match="other objects depend on it"):
        sql.execute("DROP TABLE mat_sold")
    with pytest.raises(psycopg.errors.WrongObjectType, match='"mat_sums" is not a view'):
        sql.execute("DROP VIEW mat_sums")
    sql.execute("DROP MATERIALIZED VIEW mat_sums")
    sql.execute("DROP TABLE mat_sold")


def test_materialized_view_over_a_stream(sql: Client) -> None:
    sql.execute("CREATE FOREIGN TABLE mat_clicks (page text) SERVER stream")
    sql.execute("CREATE MATERIALIZED VIEW mat_pages AS SELECT page, count(*) FROM mat_clicks GROUP BY page")
    sql.execute("INSERT INTO mat_clicks VALUES ('/'), ('/')")
    assert sql.execute("SELECT * FROM mat_pages").fetchall() == [("/", 2)]
    assert sql.execute("SELECT relkind FROM pg_class WHERE relname = 'mat_pages'").fetchone() == ("m",)
    shown = sql.execute("SELECT matviewname FROM pg_matviews WHERE matviewname LIKE 'mat%'").fetchall()
    assert shown == [("mat_pages",)]
    assert sql.execute("SELECT name FROM millstream.views WHERE name LIKE 'mat%'").fetchall() == [("mat_pages",)]
    with pytest.raises(psycopg.errors.WrongObjectType, match='"mat_pages" is not a view'):
        sql.execute("CREATE OR REPLACE VIEW mat_pages AS SELECT page, count(*) FROM mat_clicks GROUP BY page")
    sql.execute("ALTER MATERIALIZED VIEW mat_pages RENAME TO mat_hits")
    sql.execute("REFRESH MATERIALIZED VIEW mat_hits")
    with pytest.raises(psycopg.errors.WrongObjectType, match='"mat_hits" is not a view'):
        sql.execute("DROP VIEW mat_hits")
    sql.execute("DROP MATERIALIZED VIEW mat_hits")
    sql.execute("DROP FOREIGN TABLE mat_clicks")


def test_what_is_dumped_comes_back(sql: Client) -> None:
    sql.execute("CREATE TABLE mat_rows AS SELECT 1 AS one")
    for name, query in (("mat_later", "SELECT one FROM mat_rows"), ("mat_constant", "SELECT 1 AS one")):
        sql.execute(f"CREATE MATERIALIZED VIEW {name} AS {query} WITH NO DATA")
        for read in (
            f"SELECT * FROM {name}",
            f"EXPLAIN ANALYZE SELECT * FROM {name}",
            f"COPY (TABLE {name}) TO STDOUT",
        ):
            with pytest.raises(psycopg.errors.ObjectNotInPrerequisiteState, match="has not been populated"):
                sql.execute(read)
        sql.execute(f"EXPLAIN SELECT * FROM {name}")
        sql.execute(f"REFRESH MATERIALIZED VIEW {name}")
        sql.execute(f"PREPARE {name} AS SELECT * FROM {name}")
        sql.execute(f"REFRESH MATERIALIZED VIEW {name} WITH NO DATA")
        with pytest.raises(psycopg.errors.ObjectNotInPrerequisiteState, match="has not been populated"):
            sql.execute(f"EXECUTE {name}")
        sql.execute(f"REFRESH MATERIALIZED VIEW {name}")
        assert sql.execute(f"EXECUTE {name}").fetchall() == [(1,)]
        assert sql.execute(f"SELECT * FROM {name}").fetchall() == [(1,)]
        sql.execute(f"DEALLOCATE {name}")
        sql.execute(f"DROP MATERIALIZED VIEW {name}")
    sql.execute("DROP TABLE mat_rows")


@pytest.mark.parametrize("query", ["SELECT now() AS x FROM mat_once", "SELECT current_user AS x FROM mat_once"])
def test_what_depends_on_the_reader_is_computed_at_each_read(sql: Client, query: str) -> None:
    sql.execute("CREATE TABLE mat_once AS SELECT 1 AS one")
    sql.execute(f"CREATE MATERIALIZED VIEW mat_now AS {query}")
    assert sql.execute("SELECT name FROM millstream.views WHERE name = 'mat_now'").fetchall() == []
    with sql.transaction():
        assert sql.execute("SELECT x FROM mat_now").fetchall() == sql.execute(query).fetchall()
    sql.execute("DROP TABLE mat_once CASCADE")


def test_maintained_views(sql: Client) -> None:
    sql.execute("CREATE TABLE mat_sold (what text, price numeric)")
    sql.execute("CREATE VIEW mat_sums WITH (maintained) AS SELECT what, sum(price) FROM mat_sold GROUP BY what")
    sql.execute("INSERT INTO mat_sold VALUES ('a', 1.50), ('a', 2)")
    assert sql.execute("SELECT what, sum::text FROM mat_sums").fetchall() == [("a", "3.50")]
    found = sql.execute(
        "SELECT relkind, reloptions, relispopulated FROM pg_class WHERE relname = 'mat_sums'"
    ).fetchone()
    assert found == ("v", ["maintained=true"], True)
    assert sql.execute("SELECT table_type FROM information_schema.tables WHERE table_name = 'mat_sums'").fetchall() == [
        ("VIEW",)
    ]
    assert sql.execute("SELECT viewname FROM pg_views WHERE viewname = 'mat_sums'").fetchall() == [("mat_sums",)]
    assert sql.execute("SELECT matviewname FROM pg_matviews WHERE matviewname = 'mat_sums'").fetchall() == []
    sql.execute("DROP VIEW mat_sums")
    sql.execute("DROP TABLE mat_sold")


def test_changes_are_reported(sql: Client) -> None:
    sql.execute("CREATE TABLE mat_sold (what text, price integer)")
    sql.execute("CREATE MATERIALIZED VIEW mat_sums AS SELECT what, sum(price) AS total FROM mat_sold GROUP BY what")
    sql.execute("LISTEN mat_sums")
    sql.execute("INSERT INTO mat_sold VALUES ('a', 1)")
    (notification,) = sql.notifies(timeout=30, stop_after=1)
    assert notification.channel == "mat_sums"
    sql.execute("UNLISTEN *")
    sql.execute("DROP TABLE mat_sold CASCADE")


def test_privileges(sql: Client, running: Millstream) -> None:
    sql.execute("CREATE TABLE mat_secret (a integer); CREATE ROLE mat_reader LOGIN; INSERT INTO mat_secret VALUES (1)")
    sql.execute("CREATE SCHEMA mat_own AUTHORIZATION mat_reader")
    with running.connect(user="mat_reader") as reader:
        for words in ("MATERIALIZED VIEW mat_own.v", "VIEW mat_own.v WITH (maintained)"):
            with pytest.raises(psycopg.errors.InsufficientPrivilege, match="mat_secret"):
                reader.execute(f"CREATE {words} AS SELECT a FROM mat_secret")
        sql.execute("GRANT SELECT ON mat_secret TO mat_reader")
        reader.execute("CREATE MATERIALIZED VIEW mat_own.v AS SELECT a FROM mat_secret")
        reader.execute("CREATE MATERIALIZED VIEW mat_own.w AS SELECT now(), a FROM mat_secret WITH NO DATA")
        sql.execute("REVOKE SELECT ON mat_secret FROM mat_reader")
        assert reader.execute("SELECT a FROM mat_own.v").fetchall() == [(1,)]
        with pytest.raises(psycopg.errors.InsufficientPrivilege, match="mat_secret"):
            reader.execute("REFRESH MATERIALIZED VIEW mat_own.w")
        with pytest.raises(psycopg.errors.InsufficientPrivilege, match="mat_secret"):
            reader.execute("SELECT * FROM mat_secret")
    sql.execute("CREATE MATERIALIZED VIEW mat_shown AS SELECT a FROM mat_secret")
    with running.connect(user="mat_reader") as reader:
        with pytest.raises(psycopg.errors.InsufficientPrivilege, match="mat_shown"):
            reader.execute("SELECT * FROM mat_shown")
        sql.execute("GRANT SELECT ON mat_shown TO mat_reader")
        assert reader.execute("SELECT * FROM mat_shown").fetchall() == [(1,)]
        with pytest.raises(psycopg.errors.InsufficientPrivilege, match="must be owner"):
            reader.execute("REFRESH MATERIALIZED VIEW mat_shown")
    sql.execute("DROP TABLE mat_secret CASCADE; DROP SCHEMA mat_own; DROP ROLE mat_reader")


def test_after_a_kill(tmp_path: Path) -> None:
    with Millstream(data=tmp_path / "data", settings={"spark_enabled": False}) as server:
        with server.connect() as client:
            client.execute("CREATE TABLE mat_sold (what text, price integer)")
            client.execute("CREATE MATERIALIZED VIEW mat_sums AS SELECT what, sum(price) FROM mat_sold GROUP BY what")
            client.execute("CREATE MATERIALIZED VIEW mat_above AS SELECT sum FROM mat_sums WITH NO DATA")
            client.execute("CREATE VIEW mat_below AS SELECT what FROM mat_sold")
            client.execute("CREATE MATERIALIZED VIEW mat_plain AS SELECT what FROM mat_below")
            client.execute("CREATE OR REPLACE VIEW mat_below AS SELECT what, price FROM mat_sold")
            client.execute("INSERT INTO mat_sold VALUES ('a', 1), ('a', 2)")
        server.kill9()
        server.restart()
        with server.connect() as client:
            assert client.execute("SELECT * FROM mat_sums").fetchall() == [("a", 3)]
            assert client.execute("SELECT * FROM mat_plain").fetchall() == [("a",), ("a",)]
            client.execute("REFRESH MATERIALIZED VIEW mat_above; REFRESH MATERIALIZED VIEW mat_plain")
            client.execute("UPDATE mat_sold SET price = price + 1")
        server.kill9()
        server.restart()
        with server.connect() as client:
            assert client.execute("SELECT * FROM mat_above").fetchall() == [(5,)]
            assert client.execute("SELECT name FROM millstream.views ORDER BY 1").fetchall() == [
                ("mat_above",),
                ("mat_plain",),
                ("mat_sums",),
            ]


def test_what_would_show_that_it_is_always_fresh_is_refused(sql: Client) -> None:
    with pytest.raises(psycopg.errors.FeatureNotSupported):
        sql.execute("CREATE MATERIALIZED VIEW mat_no AS SELECT random()")


#: psql's \d query for a relation's indexes.
INDEXES = """SELECT c.relname, indisunique, pg_get_indexdef(indexrelid, 0, true), obj_description(c.oid, 'pg_class')
    FROM pg_index JOIN pg_class c ON c.oid = indexrelid WHERE indrelid = '{}'::regclass ORDER BY 1"""


def test_indexes_stay(tmp_path: Path) -> None:
    wanted = [
        ("mat_by_word", False, "CREATE INDEX mat_by_word ON {} USING btree (lower(word) DESC)", None),
        ("mat_key", True, "CREATE UNIQUE INDEX mat_key ON {} USING btree (word)", "what tells rows apart"),
    ]
    notices: list[str | None] = []
    with Millstream(data=tmp_path / "data", settings={"spark_enabled": False}) as server:
        with server.connect() as client:
            client.add_notice_handler(lambda notice: notices.append(notice.message_primary))
            client.execute("CREATE TABLE mat_words (word text); INSERT INTO mat_words VALUES ('a')")
            client.execute("CREATE FOREIGN TABLE mat_said (word text) SERVER stream")
            client.execute("CREATE MATERIALIZED VIEW mat_table AS SELECT word, count(*) FROM mat_words GROUP BY word")
            client.execute("CREATE SCHEMA beside")
            client.execute(
                "CREATE MATERIALIZED VIEW beside.mat_stream AS SELECT word, count(*) FROM mat_said GROUP BY word"
            )
            for view in ("mat_table", "beside.mat_stream"):
                client.execute(f"CREATE INDEX mat_by_word ON {view} (lower(word) DESC)")
                with pytest.raises(psycopg.errors.ObjectNotInPrerequisiteState, match="concurrently"):
                    client.execute(f"REFRESH MATERIALIZED VIEW CONCURRENTLY {view}")
                client.execute(f"CREATE UNIQUE INDEX mat_key ON {view} (word)")
                client.execute(f"REFRESH MATERIALIZED VIEW CONCURRENTLY {view}")
            client.execute("COMMENT ON INDEX mat_key IS 'what tells rows apart'")
            client.execute("COMMENT ON INDEX beside.mat_key IS 'what tells rows apart'")
            client.execute("INSERT INTO mat_said VALUES ('b')")
        words = "is kept as a name: its rows are computed when it is read, and are not checked"
        assert notices == [
            f'unique index "mat_key" of materialized view "{name}" {words}' for name in ("mat_table", "mat_stream")
        ]
        server.restart()
        with server.connect() as client:
            for view in ("mat_table", "beside.mat_stream"):
                found = [(name, is_unique, text.format(view), comment) for name, is_unique, text, comment in wanted]
                assert client.execute(INDEXES.format(view)).fetchall() == found
                client.execute(f"REFRESH MATERIALIZED VIEW CONCURRENTLY {view}")
            assert client.execute("SELECT * FROM beside.mat_stream").fetchall() == [("b", 1)]
            client.execute("DROP INDEX mat_key, beside.mat_by_word")
            client.execute("DROP MATERIALIZED VIEW mat_table, beside.mat_stream")
            assert client.execute("SELECT relname FROM pg_class WHERE relname LIKE 'mat%' ORDER BY 1").fetchall() == [
                ("mat_said",),
                ("mat_words",),
            ]


def test_index_of_a_plain_continuous_view_is_skipped(sql: Client) -> None:
    notices: list[str | None] = []
    sql.add_notice_handler(lambda notice: notices.append(notice.message_primary))
    sql.execute("CREATE FOREIGN TABLE mat_seen (page text) SERVER stream")
    sql.execute("CREATE VIEW mat_plain AS SELECT page, count(*) FROM mat_seen GROUP BY page")
    sql.execute("CREATE INDEX mat_none ON mat_plain (page)")
    assert notices == ['continuous view "mat_plain" is read without indexes, skipping']
    assert sql.execute("SELECT count(*) FROM pg_class WHERE relname = 'mat_none'").fetchone() == (0,)
    sql.execute("REFRESH MATERIALIZED VIEW CONCURRENTLY mat_plain")
    sql.execute("DROP VIEW mat_plain")
    sql.execute("DROP FOREIGN TABLE mat_seen")


def test_what_needs_something_is_named_with_its_kind_and_schema(sql: Client) -> None:
    """The words are PostgreSQL's."""
    sql.execute("CREATE SCHEMA mat_raw; CREATE SCHEMA mat_silver; CREATE TABLE mat_raw.staff (id integer, job text)")
    sql.execute("CREATE MATERIALIZED VIEW mat_silver.staff AS SELECT id, job FROM mat_raw.staff")
    sql.execute("CREATE VIEW mat_silver.ids AS SELECT id FROM mat_silver.staff")
    needs = "view mat_silver.ids depends on materialized view mat_silver.staff"
    for statement, message, detail in (
        (
            "DROP MATERIALIZED VIEW mat_silver.staff",
            "cannot drop materialized view mat_silver.staff because other objects depend on it",
            needs,
        ),
        (
            "ALTER TABLE mat_raw.staff DROP COLUMN job",
            "cannot drop column job of table mat_raw.staff because other objects depend on it",
            f"materialized view mat_silver.staff depends on column job of table mat_raw.staff\n{needs}",
        ),
        (
            "ALTER TABLE mat_raw.staff ALTER COLUMN job TYPE integer USING 1",
            "cannot alter type of a column used by a view or rule",
            'rule _RETURN on materialized view mat_silver.staff depends on column "job"',
        ),
    ):
        with pytest.raises(psycopg.Error) as caught:
            sql.execute(statement.encode())
        assert (caught.value.diag.message_primary, caught.value.diag.message_detail) == (message, detail)
    sql.execute("DROP SCHEMA mat_raw, mat_silver CASCADE")


def test_explain_tells_views_of_one_name_apart(sql: Client) -> None:
    sql.execute("CREATE SCHEMA mat_low; CREATE SCHEMA mat_high; CREATE TABLE mat_things (k integer, v integer)")
    sql.execute("CREATE MATERIALIZED VIEW mat_low.things AS SELECT k, sum(v) AS v FROM mat_things GROUP BY k")
    sql.execute("CREATE MATERIALIZED VIEW mat_high.things AS SELECT max(v) AS v FROM mat_low.things")
    lines = [line for (line,) in sql.execute("EXPLAIN SELECT * FROM mat_high.things")]
    shown = [line for line in lines if line.startswith("Continuous View")]
    assert shown == ["Continuous View mat_low.things", "Continuous View mat_high.things"]
    ((document,),) = sql.execute("EXPLAIN (FORMAT JSON) SELECT * FROM mat_high.things")
    assert [*document[0]["Continuous Views"]] == ["mat_low.things", "mat_high.things"]
    sql.execute("DROP SCHEMA mat_low, mat_high CASCADE")
    sql.execute("DROP TABLE mat_things")
