"""CREATE OR REPLACE VIEW over streams: an unchanged view keeps its rows, and no view loses rows without a notice."""

from __future__ import annotations

from typing import Any

import psycopg
import pytest

Client = psycopg.Connection[Any]

SAME = (
    "CREATE OR REPLACE VIEW rep_g AS SELECT a, count(*) AS n FROM rep_s GROUP BY a",
    "create or replace view rep_g (a, n) as select x.a, count(*)\n  from public.rep_s as x\n group by x.a",
    "CREATE OR REPLACE VIEW public.rep_g WITH (restart = true) AS SELECT a, count(*) AS n FROM rep_s GROUP BY 1",
)
CHANGED = (
    "SELECT a, count(*) AS n FROM rep_s WHERE a > 1 GROUP BY a",
    "SELECT a, count(b) AS n FROM rep_s GROUP BY a",
    "SELECT a, count(*) AS n FROM rep_other GROUP BY a",
    "SELECT a, count(*) AS n, max(b) AS m FROM rep_s GROUP BY a",
    "SELECT a, 1::bigint AS n FROM rep_t",
)


@pytest.fixture
def client(sql: Client) -> Any:
    sql.execute("CREATE FOREIGN TABLE rep_s (a int, b int, at timestamptz) SERVER stream")
    sql.execute("CREATE FOREIGN TABLE rep_other (a int) SERVER stream")
    sql.execute("CREATE TABLE rep_t (a int)")
    sql.execute("CREATE VIEW rep_g AS SELECT a, count(*) AS n FROM rep_s GROUP BY a")
    sql.execute("INSERT INTO rep_s VALUES (1, 1), (2, 2), (2, 3)")
    yield sql
    sql.execute("RESET search_path")
    sql.execute("RESET timezone")
    sql.execute("DROP FOREIGN TABLE rep_s, rep_other CASCADE")
    sql.execute("DROP TABLE rep_t CASCADE")


def rows(client: Client) -> list[tuple[Any, ...]]:
    return client.execute("SELECT * FROM public.rep_g ORDER BY 1").fetchall()


def test_the_same_definition_keeps_the_rows(client: Client) -> None:
    oid = client.execute("SELECT 'rep_g'::regclass::oid").fetchone()
    for count, text in enumerate(SAME, 1):
        client.execute(text.encode())
        client.execute("INSERT INTO rep_s VALUES (2, 0)")
        assert rows(client) == [(1, 1), (2, 2 + count)]
    assert client.execute("SELECT 'rep_g'::regclass::oid").fetchone() == oid


def test_views_above_it_stay(client: Client) -> None:
    client.execute("CREATE VIEW rep_gg AS SELECT n, count(*) AS c FROM rep_g GROUP BY n")
    for text in SAME:
        client.execute(text.encode())
    assert client.execute("SELECT * FROM rep_gg ORDER BY 1").fetchall() == [(1, 1), (2, 1)]
    with pytest.raises(psycopg.errors.FeatureNotSupported, match="other objects depend on it"):
        client.execute(f"CREATE OR REPLACE VIEW rep_g WITH (restart = true) AS {CHANGED[0]}".encode())


@pytest.mark.parametrize("text", CHANGED)
def test_another_definition_is_refused_or_begins_again(client: Client, text: str) -> None:
    with pytest.raises(psycopg.errors.FeatureNotSupported) as raised:
        client.execute(f"CREATE OR REPLACE VIEW rep_g AS {text}".encode())
    assert raised.value.diag.message_primary == (
        'cannot replace continuous view "rep_g" with another definition: its rows would be lost'
    )
    assert "WITH (restart = true)" in (raised.value.diag.message_hint or "")
    assert rows(client) == [(1, 1), (2, 2)]
    told: list[tuple[str | None, str | None]] = []
    client.add_notice_handler(lambda notice: told.append((notice.severity, notice.message_primary)))
    client.execute(f"CREATE OR REPLACE VIEW rep_g WITH (restart = true) AS {text}".encode())
    assert told == [("WARNING", 'view "rep_g" starts again: its result of earlier rows of rep_s is lost')]
    assert rows(client) == []


def test_what_a_name_means_now_counts(client: Client) -> None:
    client.execute("CREATE SCHEMA rep_else")
    client.execute("CREATE FOREIGN TABLE rep_else.rep_s (a int) SERVER stream")
    client.execute("SET search_path = rep_else, public")
    with pytest.raises(psycopg.errors.FeatureNotSupported, match="with another definition"):
        client.execute("CREATE OR REPLACE VIEW public.rep_g AS SELECT a, count(*) AS n FROM rep_s GROUP BY a")
    client.execute("CREATE OR REPLACE VIEW public.rep_g AS SELECT a, count(*) AS n FROM public.rep_s GROUP BY a")
    client.execute("RESET search_path")
    client.execute("ALTER FOREIGN TABLE rep_s RENAME TO rep_kept")
    client.execute("ALTER FOREIGN TABLE rep_kept ADD COLUMN more text")
    client.execute("CREATE OR REPLACE VIEW rep_g AS SELECT a, count(*) AS n FROM rep_kept GROUP BY a")
    client.execute("CREATE FOREIGN TABLE rep_s (a int) SERVER stream")
    with pytest.raises(psycopg.errors.FeatureNotSupported, match="with another definition"):
        client.execute("CREATE OR REPLACE VIEW rep_g AS SELECT a, count(*) AS n FROM rep_s GROUP BY a")
    assert rows(client) == [(1, 1), (2, 2)]
    client.execute("DROP FOREIGN TABLE rep_s")
    client.execute("ALTER FOREIGN TABLE rep_kept RENAME TO rep_s")
    client.execute("DROP SCHEMA rep_else CASCADE")


def test_time_zones_count_where_they_change_the_meaning(client: Client) -> None:
    by_day = "SELECT at::date AS day, count(*) AS n FROM rep_s GROUP BY 1"
    client.execute(f"CREATE VIEW rep_days AS {by_day}".encode())
    client.execute("SET timezone = 'Asia/Tokyo'")
    client.execute(SAME[0].encode())
    assert rows(client) == [(1, 1), (2, 2)]
    with pytest.raises(psycopg.errors.FeatureNotSupported, match="with another definition"):
        client.execute(f"CREATE OR REPLACE VIEW rep_days AS {by_day}".encode())


def test_options_are_those_of_the_last_statement(client: Client) -> None:
    text = SAME[0].replace(" AS", " WITH (maintenance_engine = embedded) AS", 1)
    client.execute(text.encode())
    options = "SELECT reloptions FROM pg_class WHERE relname = 'rep_g'"
    assert client.execute(options.encode()).fetchone() == (["maintenance_engine=embedded"],)
    client.execute(SAME[0].encode())
    assert client.execute(options.encode()).fetchone() == (None,)
    assert rows(client) == [(1, 1), (2, 2)]


def test_columns_stay_what_they_are_called(client: Client) -> None:
    client.execute("ALTER VIEW rep_g RENAME COLUMN n TO many")
    with pytest.raises(psycopg.errors.InvalidTableDefinition, match='cannot change name of view column "many" to "n"'):
        client.execute(SAME[0].encode())
    client.execute("CREATE OR REPLACE VIEW rep_g AS SELECT a, count(*) AS many FROM rep_s GROUP BY a")
    assert rows(client) == [(1, 1), (2, 2)]


def test_an_ordinary_view_may_become_a_continuous_one(client: Client) -> None:
    client.execute("CREATE VIEW rep_plain AS SELECT a, count(*) AS n FROM rep_t GROUP BY a")
    client.execute("CREATE OR REPLACE VIEW rep_plain AS SELECT a, count(*) AS n FROM rep_s GROUP BY a")
    client.execute("INSERT INTO rep_s VALUES (7, 7)")
    assert client.execute("SELECT * FROM rep_plain").fetchall() == [(7, 1)]
    client.execute("CREATE OR REPLACE VIEW rep_new WITH (restart = true) AS SELECT count(*) FROM rep_s")
    assert client.execute("SELECT * FROM rep_new").fetchall() == [(0,)]
