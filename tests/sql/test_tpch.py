"""All 22 queries of TPC-H, ad hoc over tables, against a real PostgreSQL: values, and columns' names and types."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from tests.rig.postgres import Postgres
from tests.rig.server import Millstream
from tests.rig.tpch import TABLES, Tpch

pytestmark = [pytest.mark.slow, pytest.mark.postgres, pytest.mark.timeout(600)]

QUERIES = sorted(Path(__file__).with_name("tpch").glob("q*.sql"), key=lambda path: int(path.stem[1:]))
SCALE = 0.1
Connection = psycopg.Connection[tuple[object, ...]]


@pytest.fixture(scope="module")
def both(postgres: Postgres, tpch: Tpch) -> Iterator[tuple[Connection, Connection]]:
    """Millstream and PostgreSQL with the same rows."""
    with (
        Millstream(settings={"spark_enabled": False}) as server,
        server.connect() as ours,
        postgres.connect() as theirs,
    ):
        theirs.execute("CREATE SCHEMA tpch; SET search_path = tpch")
        for connection in (ours, theirs):
            _load(connection, tpch)
        theirs.execute("CREATE INDEX ON lineitem (l_partkey, l_suppkey); CREATE INDEX ON lineitem (l_orderkey)")
        theirs.execute("ANALYZE")
        yield ours, theirs
        theirs.execute("DROP SCHEMA tpch CASCADE")


def _load(connection: Connection, tpch: Tpch) -> None:
    for name, columns in TABLES.items():
        connection.execute(f"CREATE TABLE {name} ({columns})".encode())
        with connection.cursor().copy(f"COPY {name} FROM STDIN (FORMAT csv, HEADER)".encode()) as target:
            target.write(tpch.csv(SCALE, name).read_bytes())


@pytest.mark.parametrize("path", QUERIES, ids=lambda path: path.stem)
def test_query_gives_what_postgresql_gives(path: Path, both: tuple[Connection, Connection]) -> None:
    ours, theirs = (connection.execute(path.read_bytes()) for connection in both)
    found, wanted = ours.fetchall(), theirs.fetchall()
    assert ours.description is not None and theirs.description is not None
    shapes = [[(item.name, item.type_code) for item in cursor.description or ()] for cursor in (ours, theirs)]
    assert shapes[0] == shapes[1]
    assert found == wanted
    assert wanted or path.stem in ("q20",)
