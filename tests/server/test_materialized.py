"""Materialized views over tables and streams, which are fresh whenever they are read, and how catalogs show them."""

from __future__ import annotations

from typing import Any

import psycopg
import pytest

Client = psycopg.Connection[Any]


def test_materialized_view_over_a_table(sql: Client) -> None:
    sql.execute("CREATE TABLE mat_sold (id integer PRIMARY KEY, what text, price integer)")
    sql.execute("INSERT INTO mat_sold VALUES (1, 'a', 2), (2, 'b', 3)")
    sql.execute(
        "CREATE MATERIALIZED VIEW mat_sums (what, total) AS SELECT what, sum(price) FROM mat_sold GROUP BY what"
    )
    sql.execute("CREATE MATERIALIZED VIEW IF NOT EXISTS mat_sums AS SELECT 1")
    sql.execute("UPDATE mat_sold SET price = 10 WHERE id = 1")
    sql.execute("REFRESH MATERIALIZED VIEW CONCURRENTLY mat_sums")
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
    notices: list[str | None] = []
    sql.add_notice_handler(lambda notice: notices.append(notice.message_primary))
    sql.execute("CREATE MATERIALIZED VIEW mat_later AS SELECT 1 AS one WITH NO DATA")
    assert notices == ['materialized view "mat_later" is always fresh, WITH NO DATA is ignored']
    sql.execute("REFRESH MATERIALIZED VIEW mat_later")
    assert sql.execute("SELECT * FROM mat_later").fetchall() == [(1,)]
    sql.execute("DROP MATERIALIZED VIEW mat_later")


def test_what_would_show_that_it_is_always_fresh_is_refused(sql: Client) -> None:
    with pytest.raises(psycopg.errors.FeatureNotSupported):
        sql.execute("CREATE MATERIALIZED VIEW mat_no AS SELECT random()")
