"""The queries of TPC-DS, ad hoc over tables, against a real PostgreSQL: values, and columns' names and types.

The texts are those of DuckDB's tpcds extension (MIT licence); fourteen have wider parameters, since the original ones
select no rows of so little data.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path

import psycopg
import pytest

from tests.rig.benchmarks import load, queries, read
from tests.rig.beside import at_once
from tests.rig.postgres import Postgres
from tests.rig.sampling import sample
from tests.rig.server import Millstream
from tests.rig.tpcds import TABLES, Tpcds

pytestmark = [pytest.mark.slow, pytest.mark.postgres, pytest.mark.timeout(600)]

QUERIES = queries("tpcds")
#: The queries that run without ``--whole``; none reads the largest table, which takes half of the time to load.
CHOSEN = [path for path in QUERIES if "customer_demographics" not in path.read_text()][::8]
SCALE = 0.1
Connection = psycopg.Connection[tuple[object, ...]]


@pytest.fixture(scope="module")
def both(postgres: Postgres, tpcds: Tpcds, whole: bool) -> Iterator[tuple[Connection, Connection]]:
    """Millstream and PostgreSQL with the same rows."""
    tables = TABLES if whole else read(TABLES, CHOSEN)
    with (
        Millstream(settings={"spark_enabled": False}) as server,
        server.connect() as ours,
        postgres.connect() as theirs,
    ):
        theirs.execute("CREATE SCHEMA tpcds; SET search_path = tpcds")
        at_once(partial(load, connection, tables, partial(tpcds.csv, SCALE)) for connection in (ours, theirs))
        # PostgreSQL underestimates the rows of common table expressions, and would join them row by row for minutes.
        theirs.execute("ANALYZE; SET enable_nestloop = off")
        theirs.execute("SET statement_timeout = '60s'")
        yield ours, theirs
        theirs.execute("DROP SCHEMA tpcds CASCADE")


@pytest.mark.parametrize("path", sample(QUERIES, CHOSEN), ids=lambda path: path.stem)
def test_query_gives_what_postgresql_gives(path: Path, both: tuple[Connection, Connection]) -> None:
    ours, theirs = (connection.execute(path.read_bytes()) for connection in both)
    found, wanted = ours.fetchall(), theirs.fetchall()
    shapes = [[(item.name, item.type_display) for item in cursor.description or ()] for cursor in (ours, theirs)]
    assert shapes[0] == shapes[1]
    assert found == wanted or sorted(map(repr, found)) == sorted(map(repr, wanted))
    assert wanted
