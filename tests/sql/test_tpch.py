"""All 22 queries of TPC-H, ad hoc over tables, against a real PostgreSQL: values, and columns' names and types.

The embedded engine answers at scale 0.02; Spark, which takes seconds to compile a query, at 0.01; both at 0.1 with
``--whole``.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path

import psycopg
import pytest

from tests.rig.benchmarks import load, queries
from tests.rig.postgres import Postgres
from tests.rig.server import Millstream
from tests.rig.tpch import TABLES, Tpch

pytestmark = [pytest.mark.slow, pytest.mark.postgres, pytest.mark.timeout(600)]

QUERIES = queries("tpch")
WHOLE_SCALE, SCALE, SPARK_SCALE = 0.1, 0.02, 0.01
#: Queries without a row at one of these scales.
EMPTY = ("q20",)
Connection = psycopg.Connection[tuple[object, ...]]


@pytest.fixture(scope="module")
def both(postgres: Postgres, tpch: Tpch, whole: bool) -> Iterator[tuple[Connection, Connection]]:
    """Millstream and PostgreSQL with the same rows."""
    with Millstream(settings={"spark_enabled": False}) as server:
        yield from _loaded(server, postgres, tpch, WHOLE_SCALE if whole else SCALE)


@pytest.fixture(scope="module")
def on_spark(
    spark_server: Millstream, postgres: Postgres, tpch: Tpch, whole: bool
) -> Iterator[tuple[Connection, Connection]]:
    """Both servers with Spark as Millstream's engine, with fewer rows unless ``--whole`` is given."""
    for ours, theirs in _loaded(spark_server, postgres, tpch, WHOLE_SCALE if whole else SPARK_SCALE):
        ours.execute("SET query_engine = 'spark'")
        yield ours, theirs


def _loaded(
    server: Millstream, postgres: Postgres, tpch: Tpch, scale: float
) -> Iterator[tuple[Connection, Connection]]:
    schema = f"tpch_{server.port}"
    with server.connect() as ours, postgres.connect() as theirs:
        theirs.execute(f"CREATE SCHEMA {schema}; SET search_path = {schema}".encode())
        for connection in (ours, theirs):
            load(connection, TABLES, partial(tpch.csv, scale))
        theirs.execute("CREATE INDEX ON lineitem (l_partkey, l_suppkey); CREATE INDEX ON lineitem (l_orderkey)")
        theirs.execute("ANALYZE")
        yield ours, theirs
        theirs.execute(f"DROP SCHEMA {schema} CASCADE".encode())
        ours.execute(f"DROP TABLE {', '.join(TABLES)}".encode())


@pytest.mark.parametrize("path", QUERIES, ids=lambda path: path.stem)
def test_query_gives_what_postgresql_gives(path: Path, both: tuple[Connection, Connection]) -> None:
    _compare(path, both, EMPTY)


@pytest.mark.spark
@pytest.mark.sample(5)  # the law and separation run the others' shapes on Spark
@pytest.mark.parametrize("path", QUERIES, ids=lambda path: path.stem)
def test_query_on_spark_gives_what_postgresql_gives(path: Path, on_spark: tuple[Connection, Connection]) -> None:
    _compare(path, on_spark, EMPTY)


def _compare(path: Path, both: tuple[Connection, Connection], empty: tuple[str, ...]) -> None:
    ours, theirs = (connection.execute(path.read_bytes()) for connection in both)
    found, wanted = ours.fetchall(), theirs.fetchall()
    assert ours.description is not None and theirs.description is not None
    shapes = [[(item.name, item.type_code) for item in cursor.description or ()] for cursor in (ours, theirs)]
    assert shapes[0] == shapes[1]
    assert found == wanted
    assert wanted or path.stem in empty
