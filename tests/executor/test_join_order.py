"""Joins are ordered by the tables' statistics, not as FROM names the tables (TPC-H 5 and 9)."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest

from catalog.objects import Table
from executor.embedded.printing.dialect import DuckPrinter
from planner.rules import optimise
from planner.statements import Query
from tests.executor.client import Client, open_database
from tests.rig.benchmarks import FOLDER
from tests.rig.tpch import TABLES, Tpch

#: What a plan may do more than the best one.
MOST = 1.5


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory, tpch: Tpch) -> Iterator[Client]:
    """All tables of TPC-H with 60,000 line items."""
    database = open_database(tmp_path_factory.mktemp("joins") / "data")
    found = Client(database)
    for name, columns in TABLES.items():
        found.run(f"CREATE TABLE {name} ({columns})")
        table = found.session.catalog.find(name)
        assert isinstance(table, Table)
        listed = ", ".join(f"{column.name} {column.type}" for column in table.columns)
        options = f"path '{tpch.csv(0.01, name)}', format 'csv', header 'true'"
        found.run(f"CREATE FOREIGN TABLE of_{name} ({listed}) SERVER files OPTIONS ({options})")
        found.run(f"INSERT INTO {name} SELECT * FROM of_{name}")
    yield found
    database.close()


def rows(client: Client, text: str) -> int:
    """Rows that all operators of DuckDB's plan of a query gave."""
    statement = client.bind(text)
    assert isinstance(statement, Query)
    sql = DuckPrinter().print_relation(optimise(statement.relation))
    snapshot = client.session.database.tables.snapshot()
    try:
        (found,) = snapshot._connection.execute(f"EXPLAIN (ANALYZE, FORMAT json) {sql}").fetchall()
    finally:
        snapshot.close()
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
