"""pg_dump --schema-only: what it writes of a Millstream makes the same again, and what it writes of PostgreSQL, too."""

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
#: What is renamed and added: views go on meaning what they meant.
CHANGES: Final = (
    "ALTER TABLE pairs RENAME COLUMN b TO bb",
    "ALTER TABLE pairs ADD COLUMN later text",
    "ALTER TABLE refs RENAME TO referring",
    "ALTER TYPE shop.mood RENAME TO feelings",
    "ALTER TABLE shop.customers RENAME COLUMN balance TO saldo",
)
GRANTS: Final = (
    "CREATE ROLE dump_reader",
    "GRANT SELECT (a, c), UPDATE (c) ON pairs TO dump_reader",
    "GRANT SELECT (one) ON over_view TO dump_reader",
    "GRANT INSERT ON pairs TO dump_reader WITH GRANT OPTION",
    "REVOKE EXECUTE ON FUNCTION shop.dearer(numeric) FROM PUBLIC",
    "REVOKE USAGE ON TYPE shop.feelings FROM PUBLIC",
    "GRANT USAGE ON TYPE shop.feelings TO dump_reader",
    "ALTER DEFAULT PRIVILEGES IN SCHEMA shop GRANT SELECT, INSERT ON TABLES TO dump_reader",
)
STREAMS: Final = (
    "CREATE FOREIGN TABLE clicks (at timestamptz, page text, n int) SERVER stream"
    " OPTIONS (watermark 'at - interval ''1 minute''')",
    "CREATE VIEW pages WITH (maintenance_engine = 'embedded') AS SELECT page, count(*), sum(n) FROM clicks GROUP BY 1",
    "CREATE VIEW most AS SELECT * FROM pages ORDER BY sum DESC LIMIT 2",
)


def dump(dsn: str, *options: str) -> str:
    """What pg_dump writes, without its one-time key and the server's version."""
    command = ["pg_dump", "--schema-only", "--no-owner", *options, "--dbname", dsn]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    return "\n".join(line for line in lines if not line.startswith(("\\restrict", "\\unrestrict", "-- Dumped")))


def restore(dsn: str, text: str) -> None:
    """psql -1 -f."""
    command = ["psql", "-X", "-q", "-1", "-v", "ON_ERROR_STOP=1", "-f", "-", dsn]
    done = subprocess.run(command, input=text, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.fixture(scope="module")
def dumped(server: Millstream) -> str:
    """What there is, dumped so that the script first removes it."""
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
    ):
        assert words in dumped, words


def columns_of(client: psycopg.Connection[tuple[object, ...]], view: str) -> list[tuple[str, int]]:
    """Names and types of a view's columns."""
    cursor = client.execute(sql.SQL("SELECT * FROM {}").format(sql.Identifier(*view.split("."))))
    return [(column.name, column.type_code) for column in cursor.description or ()]


def test_views_texts_are_named_by_the_search_path(server: Millstream, dumped: str) -> None:
    with server.connect() as client:
        query = "SELECT pg_get_viewdef('public.plain'::regclass), pg_get_viewdef('shop.sums'::regclass)"
        (plain, sums) = client.execute(query).fetchone() or ("", "")
        assert "(pairs.bb + 1) AS more" in plain and "FROM pairs" in plain  # b is called bb by now
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
