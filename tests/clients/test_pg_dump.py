"""pg_dump, pg_restore: a dump of Millstream creates the same objects again, and a dump of PostgreSQL can be
restored."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Final

import psycopg
import pytest
from psycopg import sql

from tests.rig.postgres import Postgres
from tests.rig.server import Millstream

pytestmark = [pytest.mark.postgres, pytest.mark.slow]

OBJECTS: Final = Path(__file__).with_name("dumped.sql").read_text()
#: Renamed and added objects, after which views keep their meaning.
CHANGES: Final = (
    "ALTER TABLE pairs RENAME COLUMN b TO bb",
    "ALTER TABLE pairs ADD COLUMN later text",
    "ALTER TABLE refs RENAME TO referring",
    "ALTER TYPE shop.mood RENAME TO feelings",
    "ALTER TABLE shop.customers RENAME COLUMN balance TO saldo",
)
GRANTS: Final = (
    "CREATE ROLE dump_reader",
    'CREATE ROLE "Dump reader, 2"',
    'CREATE SCHEMA "of another" AUTHORIZATION "Dump reader, 2"',
    'GRANT SELECT ON shop.places TO "Dump reader, 2"',
    "GRANT SELECT (a, c), UPDATE (c) ON pairs TO dump_reader",
    "GRANT SELECT (one) ON over_view TO dump_reader",
    "GRANT INSERT ON pairs TO dump_reader WITH GRANT OPTION",
    "REVOKE EXECUTE ON FUNCTION shop.dearer(numeric) FROM PUBLIC",
    "REVOKE USAGE ON TYPE shop.feelings FROM PUBLIC",
    "GRANT USAGE ON TYPE shop.feelings TO dump_reader",
    "ALTER DEFAULT PRIVILEGES IN SCHEMA shop GRANT SELECT, INSERT ON TABLES TO dump_reader",
)
ROWS: Final = (
    "INSERT INTO shop.places (at, others, amounts, feelings, worth, relation, notes) VALUES"
    """ (ROW('Main St, "B"', 5), ARRAY[ROW('a b', NULL)::shop.address, NULL], '{1,2}', '{sad,NULL}', 1.50,"""
    " 'pairs', E'a\\tb\\\\c\\n'), (NULL, '{}', NULL, NULL, 12.3400, NULL, NULL)",
    "INSERT INTO shop.customers (name, email, tags, note) VALUES ('Bob', 'b@c', '{a,\"b c\"}', '{\"n\": 1.0}')",
    "INSERT INTO shop.orders (customer, price, pieces, code, raw, lasts) SELECT id, 1.5, 3, 'ab', '\\x00ff', '1 day'"
    " FROM shop.customers",
    "REFRESH MATERIALIZED VIEW shop.named",  # a schema alone was restored before
)
#: With rows: the options of pg_dump, and the command that reads its output.
FORMATS: Final = {
    "plain": ([], ["psql", "-X", "-q", "-1", "-v", "ON_ERROR_STOP=1", "-f"]),
    "custom": (["-Fc"], ["pg_restore", "--exit-on-error"]),
    "inserts": (["--inserts"], ["psql", "-X", "-q", "-1", "-v", "ON_ERROR_STOP=1", "-f"]),
}
STREAMS: Final = (
    "CREATE FOREIGN TABLE clicks (at timestamptz, page text, n int) SERVER stream"
    " OPTIONS (watermark 'at - interval ''1 minute''')",
    "CREATE VIEW pages WITH (maintenance_engine = 'embedded') AS SELECT page, count(*), sum(n) FROM clicks GROUP BY 1",
    "CREATE VIEW most AS SELECT * FROM pages ORDER BY sum DESC LIMIT 2",
    "CREATE VIEW shop.kept WITH (maintained) AS SELECT customer, sum(price) FROM shop.orders GROUP BY customer",
)


def dump(dsn: str, *options: str, rows: bool = False) -> str:
    """The output of pg_dump without its one-time key and the server's version."""
    command = ["pg_dump", "--no-owner", *([] if rows else ["--schema-only"]), *options, "--dbname", dsn]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    return "\n".join(line for line in lines if not line.startswith(("\\restrict", "\\unrestrict", "-- Dumped")))


def restore(dsn: str, text: str) -> None:
    """Restores with psql -1 -f."""
    command = ["psql", "-X", "-q", "-1", "-v", "ON_ERROR_STOP=1", "-f", "-", dsn]
    done = subprocess.run(command, input=text, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.fixture(scope="module")
def dumped(server: Millstream) -> str:
    """A dump of all objects, whose script drops them first."""
    with server.connect() as client:
        client.execute(OBJECTS.encode())
        for statement in (*CHANGES, *STREAMS, *GRANTS):
            client.execute(statement.encode())
        client.execute("INSERT INTO pairs VALUES (1, 2, 'c'), (2, 3, NULL)")
        client.execute("INSERT INTO referring VALUES (1, 2), (2, 3)")
    return dump(server.dsn(), "--clean", "--if-exists")


VIEWS: Final = ("shop.sums", "plain", "over_view", "starred", "joined", "either", "moods", "ranked", "most")


def test_a_dump_makes_the_same_again(server: Millstream, dumped: str) -> None:
    with server.connect() as client:
        before = {name: columns_of(client, name) for name in VIEWS}
        restore(server.dsn(), dumped)
        assert {name: columns_of(client, name) for name in VIEWS} == before
    assert dump(server.dsn(), "--clean", "--if-exists") == dumped
    for words in (
        "GRANT SELECT(a) ON",
        "GRANT SELECT(one) ON",
        "ON TYPE shop.feelings TO",
        "ALTER DEFAULT PRIVILEGES FOR ROLE",
        "RETURNS TABLE",
        "UNIQUE (notes) DEFERRABLE INITIALLY DEFERRED",
        "COMMENT ON COLUMN shop.address.number",
        "one shop.feelings DEFAULT 'ok'::shop.feelings, others shop.feelings[]",
        "RETURNS SETOF shop.places",
        'TO "Dump reader, 2"',
    ):
        assert words in dumped, words


def columns_of(client: psycopg.Connection[tuple[object, ...]], view: str) -> list[tuple[str, int]]:
    """The names and types of a view's columns."""
    cursor = client.execute(sql.SQL("SELECT * FROM {}").format(sql.Identifier(*view.split("."))))
    return [(column.name, column.type_code) for column in cursor.description or ()]


def test_views_texts_are_named_by_the_search_path(server: Millstream, dumped: str) -> None:
    with server.connect() as client:
        query = "SELECT pg_get_viewdef('public.plain'::regclass), pg_get_viewdef('shop.sums'::regclass)"
        (plain, sums) = client.execute(query).fetchone() or ("", "")
        assert "(pairs.bb + 1) AS more" in plain and "FROM pairs" in plain  # b was renamed to bb
        assert "shop.customers" in sums
        client.execute("SET search_path = ''")
        assert "FROM public.pairs" in str(client.execute(query).fetchone())


def test_a_dump_of_postgresql_is_restored(postgres: Postgres) -> None:
    with postgres.connect() as client:
        client.execute("CREATE DATABASE dumped")
    with psycopg.connect(postgres.dsn("dumped")) as client:
        client.execute(OBJECTS.encode())
    written = dump(postgres.dsn("dumped"))
    with Millstream(settings={"spark_enabled": False}) as other:
        restore(other.dsn(), written)
        ours = dump(other.dsn(), "--clean", "--if-exists")
        restore(other.dsn(), ours)
        assert dump(other.dsn(), "--clean", "--if-exists") == ours
    for line in written.splitlines():
        if line.startswith(("CREATE", "COMMENT", "ALTER")) and "INDEX" not in line:
            assert line in ours


@pytest.mark.sample(5)
@pytest.mark.parametrize("form", FORMATS)
def test_rows_are_restored_in_every_format(server: Millstream, dumped: str, tmp_path: Path, form: str) -> None:
    options, command = FORMATS[form]
    written = tmp_path / "written"
    with server.connect() as client:
        client.execute("TRUNCATE shop.places, shop.customers CASCADE")
        for statement in ROWS:
            client.execute(statement.encode())
    subprocess.run(["pg_dump", "--no-owner", *options, "-f", written, "--dbname", server.dsn()], check=True)
    with Millstream(settings={"spark_enabled": False}) as other:
        with other.connect() as client:
            client.execute("CREATE ROLE dump_reader")
            client.execute('CREATE ROLE "Dump reader, 2"')
        files = [str(written), other.dsn()] if command[0] == "psql" else ["-d", other.dsn(), str(written)]
        done = subprocess.run([*command, *files], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        ours = dump(other.dsn(), rows=True)
        assert ours == dump(server.dsn(), rows=True)
    for words in ("12.3400\t\\N", "\tpublic.pairs\t", "1.50", "REFRESH MATERIALIZED VIEW", '{a,"b c"}'):
        assert words in ours, words
