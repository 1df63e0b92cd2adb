"""pg_get_viewdef() and similar: PostgreSQL's own texts, and a definition that creates the same view again."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import LiteralString, cast

import psycopg
import pytest

from tests.rig.postgres import Postgres
from tests.rig.server import Millstream

pytestmark = [pytest.mark.slow, pytest.mark.postgres]

SETUP, LISTED = Path(__file__).with_name("viewdefs.sql").read_text().split("-- views\n")
VIEWS = LISTED.splitlines()
Connection = psycopg.Connection[tuple[object, ...]]


@pytest.fixture(scope="module")
def both(postgres: Postgres) -> Iterator[tuple[Connection, Connection]]:
    """Millstream and PostgreSQL, each with a schema that has all views."""
    with postgres.connect() as theirs:
        theirs.execute("CREATE DATABASE viewdefs")
    with (
        Millstream(settings={"spark_enabled": False}) as server,
        server.connect() as ours,
        psycopg.connect(postgres.dsn("viewdefs"), autocommit=True) as theirs,
    ):
        for client in (ours, theirs):
            client.execute(SETUP.encode())
            for number, query in enumerate(VIEWS):
                client.execute(f"CREATE VIEW v{number} AS {query}".encode())
        yield ours, theirs


def texts(client: Connection, function: LiteralString) -> dict[str, str]:
    """The definitions of all views of the corpus."""
    rows = client.execute(
        cast("LiteralString", f"SELECT relname, {function} FROM pg_class c WHERE relname ~ '^v[0-9]'")
    )
    return {str(name): str(text) for name, text in rows}


@pytest.mark.parametrize(
    "function",
    ["pg_get_viewdef(c.oid)", "pg_get_viewdef(c.oid, true)", "pg_get_viewdef(c.oid, 0)", "pg_get_viewdef(relname)"],
)
def test_texts_are_postgresqls(both: tuple[Connection, Connection], function: LiteralString) -> None:
    ours, theirs = (texts(client, function) for client in both)
    assert len(ours) == len(VIEWS) > 100
    different = [f"{text}\n--- {ours[name]}" for name, text in theirs.items() if ours[name] != text]
    assert not different, "\n".join(different)


def test_with_the_schema_where_the_path_lacks_it(both: tuple[Connection, Connection]) -> None:
    found = []
    for client in both:
        client.execute("SET search_path = ''")
        found.append(texts(client, "pg_catalog.pg_get_viewdef(c.oid)"))
        client.execute("RESET search_path")
    assert found[0] == found[1]
    words = "\n".join(found[0].values())
    assert "public.twice(t.a)" in words
    assert "'sad'::public.mood" in words


def test_a_text_makes_the_same_view_again(both: tuple[Connection, Connection]) -> None:
    for pretty in ("false", "true"):
        function = cast("LiteralString", f"pg_get_viewdef(c.oid, {pretty})")
        types, written = columns(both[0]), texts(both[0], function)
        for client in both:
            for name, text in written.items():
                client.execute(f"CREATE OR REPLACE VIEW {name} AS {text}".encode())
        assert columns(both[0]) == types
        again, theirs = (texts(client, function) for client in both)
        assert {name: text for name, text in again.items() if theirs[name] != text} == {}
        # Five texts change once, as PostgreSQL's own do: its parser merges nested ANDs, such as those of BETWEEN.
        assert len([name for name, text in again.items() if written[name] != text]) <= 5


def columns(client: Connection) -> list[tuple[object, ...]]:
    """Names and types of the views' columns."""
    return client.execute(
        "SELECT attrelid::regclass::text, attname, atttypid, atttypmod FROM pg_attribute"
        " WHERE attrelid::regclass::text ~ '^v[0-9]' AND attnum > 0 ORDER BY 1, attnum"
    ).fetchall()


def test_views_of_catalogs_show_them(both: tuple[Connection, Connection]) -> None:
    shown = [
        client.execute(
            "SELECT definition, (SELECT view_definition FROM information_schema.views"
            " WHERE table_schema = 'public' AND table_name = 'v5') FROM pg_views WHERE viewname = 'v5'"
        ).fetchall()
        for client in both
    ]
    assert shown[0] == shown[1]
    assert "((t.b = 'x'::text)" in str(shown[0])


def test_psql_shows_them(both: tuple[Connection, Connection]) -> None:
    written = []
    for client in both:
        options = ["-X", "-h", "127.0.0.1", "-p", str(client.info.port), "-U", client.info.user, client.info.dbname]
        commands = ["-c", r"\sv v33", "-c", r"\d+ v12", "-c", r"\sv+ v43"]
        written.append(subprocess.run(["psql", *options, *commands], capture_output=True, text=True, check=True).stdout)
    assert written[0] == written[1]
    assert "LEFT JOIN u USING (a, v)" in written[0]


CHANGED = (
    "CREATE SCHEMA viewdefs_moved",
    "CREATE TABLE viewdefs_moved.base (k int, label text, old date)",
    "CREATE VIEW moved_1 AS SELECT k, label, old AS day FROM viewdefs_moved.base WHERE old > '2020-01-01'",
    "CREATE VIEW moved_2 AS SELECT b.k, x.label FROM viewdefs_moved.base b JOIN viewdefs_moved.base x ON b.k = x.k",
    "CREATE VIEW moved_3 AS SELECT * FROM viewdefs_moved.base",
    "CREATE VIEW moved_4 (one, two) AS SELECT k, (SELECT max(label) FROM viewdefs_moved.base) FROM viewdefs_moved.base",
    "CREATE VIEW moved_5 AS SELECT one FROM moved_4 ORDER BY one",
    "ALTER TABLE viewdefs_moved.base RENAME COLUMN k TO key",
    "ALTER TABLE viewdefs_moved.base ADD COLUMN later int",
    "ALTER TABLE viewdefs_moved.base RENAME TO renamed",
    "ALTER VIEW moved_4 RENAME COLUMN one TO first",
)


def test_renamed_since(both: tuple[Connection, Connection]) -> None:
    for client in both:
        for statement in CHANGED:
            client.execute(statement.encode())
    found = [
        client.execute(
            "SELECT relname, pg_get_viewdef(oid), pg_get_viewdef(oid, true) FROM pg_class"
            " WHERE relname ~ '^moved' ORDER BY 1"
        ).fetchall()
        for client in both
    ]
    assert found[0] == found[1]
    assert "renamed.key AS k" in str(found[0])


def test_exchanged_names(both: tuple[Connection, Connection]) -> None:
    """A relation gets the former name of another one, including one of an outer query: the columns stay the same."""
    for client in both:
        client.execute("CREATE SCHEMA exchanged")
        client.execute("SET search_path = exchanged, public")
        for statement in (
            "CREATE TABLE one (k int)",
            "CREATE TABLE other (k int)",
            "CREATE VIEW inside AS SELECT (SELECT one.k FROM other LIMIT 1) AS k FROM one",
            "CREATE TABLE public.one (k int)",
            "CREATE VIEW of_schemas AS SELECT (SELECT exchanged.one.k FROM public.one LIMIT 1) AS k FROM exchanged.one",
            "INSERT INTO exchanged.one VALUES (1)",
            "INSERT INTO other VALUES (2)",
            "INSERT INTO public.one VALUES (3)",
        ):
            client.execute(statement)
        ((given,),) = client.execute("SELECT pg_get_viewdef('of_schemas'::regclass)").fetchall()
        assert client.execute(str(given).encode()).fetchall() == [(1,)]
        client.execute("ALTER TABLE one RENAME TO third")
        client.execute("ALTER TABLE other RENAME TO one")
        ((text,),) = client.execute("SELECT pg_get_viewdef('inside'::regclass)").fetchall()
        assert client.execute(str(text).encode()).fetchall() == [(1,)]
        client.execute("RESET search_path")
        client.execute("DROP TABLE public.one CASCADE")


def test_what_is_not_known_is_shown_as_written(both: tuple[Connection, Connection]) -> None:
    ours, _ = both
    for query in (
        "SELECT b FROM t TABLESAMPLE SYSTEM (10)",
        "SELECT s.k FROM (t JOIN u ON true) AS s (k)",
        "SELECT k FROM json_each('{}') AS e (k, v)",
        "SELECT a, x.n FROM t, ROWS FROM (generate_series(1, 2), generate_series(1, 3)) AS x (n, m)",
    ):
        ours.execute(f"CREATE OR REPLACE VIEW as_written AS {query}".encode())
        ((text,),) = ours.execute("SELECT pg_get_viewdef('as_written'::regclass)").fetchall()
        assert str(text).startswith(" SELECT ")
        ours.execute(f"CREATE OR REPLACE VIEW as_written AS {text}".encode())
        assert ours.execute("SELECT pg_get_viewdef('as_written'::regclass)").fetchall() == [(text,)]
        ours.execute("DROP VIEW as_written")
