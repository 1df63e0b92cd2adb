"""ADBC: results as Arrow, Arrow tables as rows, and its description of databases, tables and columns."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from typing import Any

import adbc_driver_postgresql.dbapi as adbc
import pyarrow as pa
import pytest

from tests.rig.server import Millstream

pytestmark = pytest.mark.slow

MOMENT = dt.datetime(2024, 2, 29, 1, 2, 3, 4, tzinfo=dt.UTC)
EVENTS = pa.table(
    {
        "id": pa.array([1, 2, None], pa.int32()),
        "word": ["x", "y", None],
        "share": pa.array([1.5, None, 2.5]),
        "day": pa.array([MOMENT.date()] * 3),
        "at": pa.array([MOMENT] * 3, pa.timestamp("us", "UTC")),
        "flag": pa.array([True, False, None]),
        "raw": pa.array([b"a", b"", None]),
    }
)


@pytest.fixture
def client(server: Millstream) -> Iterator[Any]:
    connection = adbc.connect(server.dsn())
    yield connection
    connection.close()


def answer(cursor: Any, query: str, parameters: Any = None) -> pa.Table:
    """A query's result."""
    cursor.execute(query, parameters)
    return cursor.fetch_arrow_table()


def test_results_are_arrow(client: Any) -> None:
    with client.cursor() as cursor:
        found = answer(cursor, "SELECT $1::integer + 1 AS n, ARRAY['a', NULL] AS words, 1.50 AS price", (41,))
        assert found.schema.field("words").type == pa.list_(pa.string())
        assert found.select(["n", "words"]).to_pylist() == [{"n": 42, "words": ["a", None]}]
        assert found["price"].combine_chunks().storage.to_pylist() == ["1.50"]
        found = answer(cursor, "SELECT g, g::text AS word FROM generate_series(1, 70000) g")
        assert found["g"].to_pylist() == list(range(1, 70_001)) and found["word"][-1].as_py() == "70000"
        assert cursor.adbc_execute_schema("SELECT 1 AS n, now() AS at").names == ["n", "at"]


def test_arrow_tables_become_rows(client: Any) -> None:
    with client.cursor() as cursor:
        for mode, count in (("create", 3), ("append", 6), ("replace", 3), ("create_append", 6)):
            assert cursor.adbc_ingest("events", EVENTS, mode=mode) == 3
            assert answer(cursor, "SELECT count(*) FROM events")[0][0].as_py() == count
        found = answer(cursor, "SELECT DISTINCT * FROM events ORDER BY id NULLS LAST")
        assert found.to_pylist() == EVENTS.to_pylist()
        cursor.executemany("INSERT INTO events (id, word) VALUES ($1, $2)", [(7, "z"), (8, "w")])
        assert cursor.adbc_ingest("passing", EVENTS.select(["id"]), temporary=True) == 3
    client.rollback()


def test_a_stream_takes_arrow(client: Any) -> None:
    with client.cursor() as cursor:
        cursor.execute("CREATE FOREIGN TABLE arrivals (id integer, word text) SERVER stream")
        cursor.execute("CREATE VIEW words AS SELECT word, count(*) AS n FROM arrivals GROUP BY word")
        client.commit()
        assert cursor.adbc_ingest("arrivals", EVENTS.select(["id", "word"]), mode="append") == 3
        client.commit()
        assert sorted(answer(cursor, "SELECT * FROM words")["n"].to_pylist()) == [1, 1, 1]


def test_what_there_is(client: Any) -> None:
    with client.cursor() as cursor:
        cursor.execute("CREATE TABLE parents (id integer PRIMARY KEY, at timestamptz)")
        cursor.execute("CREATE TABLE children (parent integer REFERENCES parents, tag text UNIQUE)")
    schema = client.adbc_get_table_schema("parents")
    assert (schema.names, schema.types) == (["id", "at"], [pa.int32(), pa.timestamp("us", "UTC")])
    (catalog,) = client.adbc_get_objects(db_schema_filter="public").read_all().to_pylist()
    (found,) = catalog["catalog_db_schemas"]
    tables = {item["table_name"]: item for item in found["db_schema_tables"]}
    assert [item["column_name"] for item in tables["children"]["table_columns"]] == ["parent", "tag"]
    kinds = {item["constraint_type"]: item for item in tables["children"]["table_constraints"]}
    assert kinds["FOREIGN KEY"]["constraint_column_usage"][0]["fk_table"] == "parents"
    assert kinds["UNIQUE"]["constraint_column_names"] == ["tag"]
    assert "foreign_table" in client.adbc_get_table_types()
    client.rollback()
