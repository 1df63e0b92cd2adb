"""The queries of TPC-DS, ad hoc over tables, against a real PostgreSQL: values, and columns' names and types.

The texts are those of DuckDB's tpcds extension (MIT licence); fourteen have wider parameters, since theirs select
nothing of so little data.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psycopg
import pytest

from tests.rig.postgres import Postgres
from tests.rig.server import Millstream
from tests.rig.tpcds import TABLES, Tpcds

pytestmark = [pytest.mark.slow, pytest.mark.postgres, pytest.mark.timeout(600)]

QUERIES = sorted(Path(__file__).with_name("tpcds").glob("q*.sql"), key=lambda path: int(path.stem[1:]))
SCALE = 0.1
Connection = psycopg.Connection[tuple[object, ...]]


@pytest.fixture(scope="module")
def both(postgres: Postgres, tpcds: Tpcds) -> Iterator[tuple[Connection, Connection]]:
    """Millstream and PostgreSQL with the same rows."""
    with (
        Millstream(settings={"spark_enabled": False}) as server,
        server.connect() as ours,
        postgres.connect() as theirs,
    ):
        theirs.execute("CREATE SCHEMA tpcds; SET search_path = tpcds")
        with ThreadPoolExecutor() as pool:
            list(pool.map(lambda connection: _load(connection, tpcds), (ours, theirs)))
        # It underestimates what common table expressions give, and would join them row by row for minutes.
        theirs.execute("ANALYZE; SET enable_nestloop = off; SET work_mem = '64MB'; SET statement_timeout = '60s'")
        yield ours, theirs
        theirs.execute("DROP SCHEMA tpcds CASCADE")


def _load(connection: Connection, tpcds: Tpcds) -> None:
    for name, columns in TABLES.items():
        connection.execute(f"CREATE TABLE {name} ({columns})".encode())
        with connection.cursor().copy(f"COPY {name} FROM STDIN (FORMAT csv, HEADER)".encode()) as target:
            target.write(tpcds.csv(SCALE, name).read_bytes())


@pytest.mark.parametrize("path", QUERIES, ids=lambda path: path.stem)
def test_query_gives_what_postgresql_gives(path: Path, both: tuple[Connection, Connection]) -> None:
    ours, theirs = (connection.execute(path.read_bytes()) for connection in both)
    found, wanted = ours.fetchall(), theirs.fetchall()
    shapes = [[(item.name, item.type_display) for item in cursor.description or ()] for cursor in (ours, theirs)]
    assert shapes[0] == shapes[1]
    assert found == wanted or sorted(map(repr, found)) == sorted(map(repr, wanted))
    assert wanted
