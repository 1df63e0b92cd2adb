"""Joins are ordered by the tables' statistics, not by the order in FROM (TPC-H 5 and 9), over files, too."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv as pc
import pyarrow.parquet as pq
import pytest

from catalog.objects import Table
from executor.embedded.connection import Bindings, Connection
from executor.embedded.printing.dialect import DuckPrinter
from executor.embedded.results import OpenRows
from executor.files import file_tables
from executor.files.file_tables import FileRows
from planner.algebra.nodes import Relation
from planner.algebra.walk import replace_parameters
from planner.rules import optimise
from planner.statements.statement import Query
from tests.executor.client import Client, open_database
from tests.rig.benchmarks import FOLDER
from tests.rig.tpch import TABLES, Tpch

#: How many times more work than the best plan a plan may do.
MOST = 1.5


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory, tpch: Tpch) -> Iterator[Client]:
    """All tables of TPC-H with 60,000 line items."""
    database = open_database(tmp_path_factory.mktemp("joins") / "data")
    found = Client(database)
    found.run("CREATE SCHEMA parquet")
    for name, columns in TABLES.items():
        found.run(f"CREATE TABLE {name} ({columns})")
        table = found.session.catalog.at("public", name)
        assert isinstance(table, Table)
        listed = ", ".join(f"{column.name} {column.type}" for column in table.columns)
        options = f"path '{tpch.csv(0.01, name)}', format 'csv', header 'true'"
        found.run(f"CREATE FOREIGN TABLE of_{name} ({listed}) SERVER files OPTIONS ({options})")
        found.run(f"INSERT INTO {name} SELECT * FROM of_{name}")
        path = tpch.parts(0.01, name, 2, "parquet")[0].parent
        exact = listed.replace("key integer", "key bigint")
        found.run(f"CREATE FOREIGN TABLE parquet.{name} ({exact}) SERVER files OPTIONS (path '{path}')")
    yield found
    database.close()


def rows(client: Client, text: str) -> int:
    """The rows that all operators of DuckDB's plan of a query returned."""
    statement = client.bind(text)
    assert isinstance(statement, Query)
    sql = DuckPrinter().print_relation(optimise(statement.relation))
    snapshot = client.session.database.core.tables.snapshot()
    try:
        return _given(snapshot._connection, sql)
    finally:
        snapshot.close()


def _given(connection: Connection, sql: str) -> int:
    (found,) = connection.execute(f"EXPLAIN (ANALYZE, FORMAT json) {sql}").fetchall()
    total = _counted(json.loads(found[1]))
    assert total
    return total


def _counted(document: dict[str, Any]) -> int:
    total, stack = 0, list(document["operator"])
    while stack:
        node = stack.pop()
        total += node["intermediate_rows"]
        stack.extend(node.get("children", ()))
    return total


def reordered(text: str, names: str) -> str:
    """A query with its tables named in another order."""
    listed = r",\s*".join(r"\w+" for _ in names.split(","))
    changed = re.sub(rf"from {listed}(\s+)where", rf"from {names}\1where", text, count=1)
    assert changed != text
    return changed


@pytest.mark.slow
@pytest.mark.sample(2)
@pytest.mark.parametrize(
    ("query", "names"),
    [
        ("q5", "region, customer, supplier, lineitem, nation, orders"),
        ("q5", "supplier, customer, nation, orders, region, lineitem"),
        ("q9", "orders, supplier, part, partsupp, nation, lineitem"),
        ("q9", "nation, orders, part, supplier, partsupp, lineitem"),
    ],
)
def test_the_order_in_from_does_not_matter(client: Client, query: str, names: str) -> None:
    text = (FOLDER / "tpch" / f"{query}.sql").read_text()
    changed = reordered(text, names)
    assert client.run(changed) == client.run(text)
    assert rows(client, changed) <= MOST * rows(client, text)


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The rows that all operators returned, for each query over files that the engine reads."""
    given: list[int] = []
    run = Connection._opened

    def counting(
        self: Connection, relation: Relation, bindings: Bindings, parameters: Any, timezone: str
    ) -> pa.Table | OpenRows:
        read = {name: rows for name, rows in bindings.items() if isinstance(rows, FileRows)}
        if read:
            sql = DuckPrinter(read=read).print_relation(replace_parameters(relation, parameters))
            given.append(_given(self, sql))
        return run(self, relation, bindings, parameters, timezone)

    monkeypatch.setattr(file_tables, "_FEW_ROWS", 10_000)
    monkeypatch.setattr(Connection, "_opened", counting)
    return given


@pytest.mark.parametrize("kind", ["parquet", "csv", "table"])
def test_of_rows_beside_large_files_the_engine_knows_how_many_there_are(
    client: Client, kind: str, counted: list[int], tmp_path: Path
) -> None:
    """As in TPC-H 5, where all customers were joined with all suppliers of their nation: here 2,000,000 pairs."""
    large = pa.table({"b": [i % 2000 for i in range(20_000)], "c": [i * 7 % 2000 for i in range(20_000)]})
    pq.write_table(large, tmp_path / "large.parquet")
    side = pa.table({"id": range(2000), "nation": [i % 2 for i in range(2000)]})
    pq.write_table(side, tmp_path / "side.parquet")
    pc.write_csv(side, tmp_path / "side.csv")
    client.run(f"CREATE FOREIGN TABLE l (b bigint, c bigint) SERVER files OPTIONS (path '{tmp_path}/large.parquet')")
    columns, path = "(id bigint, nation bigint)", f"{tmp_path}/side.{kind}"
    for name in ("b", "c"):
        if kind == "table":
            client.run(f"CREATE TABLE {name} {columns}")
            client.run(f"INSERT INTO {name} SELECT g, g % 2 FROM generate_series(0, 1999) AS g")
        else:
            options = f"path '{path}', format '{kind}'" + (", header 'true'" if kind == "csv" else "")
            client.run(f"CREATE FOREIGN TABLE {name} {columns} SERVER files OPTIONS ({options})")
    try:
        text = "SELECT count(*) FROM b, c, l WHERE b.nation = c.nation AND l.b = b.id AND l.c = c.id"
        assert client.run(text) == [(20_000,)]
        assert len(counted) == 1
        assert counted[0] < 200_000
    finally:
        for name in ("b", "c"):
            client.run(f"DROP {'TABLE' if kind == 'table' else 'FOREIGN TABLE'} {name}")
        client.run("DROP FOREIGN TABLE l")


@pytest.mark.slow
def test_what_exists_in_files_is_joined(client: Client, counted: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    """TPC-H 21: the engine does not know that columns of files contain no NULL."""
    text = (FOLDER / "tpch" / "q21.sql").read_text()
    wanted, of_tables = client.run(text), rows(client, text)
    monkeypatch.setattr(client.session, "search_path", ("parquet", "public"))
    assert client.run(text) == wanted
    assert len(counted) == 1
    assert counted[0] <= MOST * of_tables
