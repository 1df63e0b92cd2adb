"""Joins and groupings of a few rows in Python: the same rows as the embedded engine's, for random values."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from decimal import Decimal
from typing import Any, Final

import pyarrow as pa
import pytest

from catalog.catalog import Catalog
from catalog.values.times.timestamps import INFINITE_DAYS
from executor.embedded.engine import EmbeddedEngine
from executor.small import SmallTable, few_of, table_of
from executor.small import few as as_small
from executor.small.few_rows import CELLS
from executor.small.small_table import FEW
from executor.small.values import as_cells
from planner.algebra.nodes import Relation, Scan, Snapshot
from planner.algebra.walk import find, kinds_of, transform_relations
from planner.rules import optimise
from planner.statements.definitions import CreateTable
from planner.statements.statement import Query
from tests.embedded.sql import bound

TABLES: Final = {
    "a": "k integer, b bigint, t text, v varchar(3), c char(4), d numeric(12,2), e numeric(15,4), y date, o boolean",
    "z": "k bigint, t text, d numeric(8,3), y date, n integer",
}
#: All of these are evaluated without the engine.
QUERIES: Final = (
    "SELECT a.k, z.n, a.d * (1 - z.d) AS x, a.t FROM a JOIN z ON a.k = z.k",
    "SELECT a.k, z.n FROM a JOIN z ON a.k = z.k AND a.y = z.y AND a.b < z.n",
    "SELECT a.k, z.n FROM a JOIN z ON a.t = z.t AND a.v IN ('a', 'b', NULL)",
    "SELECT a.k, z.n FROM a JOIN z ON a.k IS NOT DISTINCT FROM z.k",
    "SELECT a.k, z.n FROM a JOIN z ON a.b > z.n OR a.o",
    "SELECT a.k, a.c, z.n, z.d FROM a LEFT JOIN z ON a.k = z.k AND z.n > 1",
    "SELECT a.k, a.t FROM a WHERE EXISTS (SELECT FROM z WHERE z.k = a.k AND z.n <> a.k)",
    "SELECT a.k, a.t FROM a WHERE NOT EXISTS (SELECT FROM z WHERE z.k = a.k AND z.y > a.y)",
    "SELECT t, c, count(*) AS n, count(d) AS m, sum(d) AS s, sum(d * e) AS p, min(y), max(e) FROM a GROUP BY t, c",
    "SELECT y, o, sum(k) AS s, sum(b) FILTER (WHERE o) AS f, count(*) FILTER (WHERE k > 1) AS g FROM a GROUP BY y, o",
    "SELECT extract(year FROM y) AS x, sum(CASE WHEN c = 'ab' THEN d ELSE -d END) AS s FROM a GROUP BY 1",
    "SELECT z.t, sum(a.d) AS s, count(*) AS n FROM a JOIN z ON a.k = z.k WHERE a.t LIKE 'a%' GROUP BY z.t",
    "SELECT count(*) AS n, sum(d) AS s, min(y) AS y FROM a WHERE k > 2",
    "SELECT k::numeric(9,2) AS k, sum(b)::numeric(38,3) AS b, sum(CASE WHEN o THEN d ELSE 0 END) AS d FROM a"
    " GROUP BY k",
    "SELECT k, t, rank() OVER (PARTITION BY t, o ORDER BY y DESC, d) AS r, dense_rank() OVER (ORDER BY k) AS n FROM a",
    "SELECT k, max(d) OVER (PARTITION BY t) AS m, min(y) FILTER (WHERE o) OVER (PARTITION BY y, k) AS n FROM a",
    "SELECT k, b FROM (SELECT *, row_number() OVER (PARTITION BY k ORDER BY b, t, v, c, d, e, y) AS n FROM a) x"
    " WHERE n <= 2",
)
VALUES: Final[Mapping[str, tuple[Any, ...]]] = {
    "int4": (0, 1, 2, 3),
    "int8": (0, 1, 2, 2**40),
    "text": ("a", "ab", "", "ä"),
    "varchar": ("a", "b", ""),
    "bpchar": ("a", "ab", ""),
    "numeric": (Decimal("0"), Decimal("1.25"), Decimal("-7.5"), Decimal("99999.99")),
    "date": (8824, 20454, -719162, INFINITE_DAYS, -INFINITE_DAYS),
    "bool": (True, False),
}


@pytest.fixture(scope="module")
def engine() -> Iterator[EmbeddedEngine]:
    found = EmbeddedEngine(1)
    yield found
    found.close()


def _relation(query: str) -> Relation:
    """A query over snapshots instead of tables."""
    catalog = Catalog()
    for name, columns in TABLES.items():
        created = bound(f"CREATE TABLE {name} ({columns})", catalog)
        assert isinstance(created, CreateTable)
        catalog = catalog.add(created.table)
    statement = bound(query, catalog)
    assert isinstance(statement, Query)
    relation = transform_relations(
        optimise(statement.relation),
        lambda node: Snapshot(node.name, node.columns, node.sources) if isinstance(node, Scan) else node,
    )
    assert isinstance(relation, Relation)
    return relation


def _rows(leaf: Snapshot, count: int, chance: random.Random, are_finite: bool = True) -> pa.Table:
    arrays = []
    for column in leaf.columns:
        unit = Decimal(1).scaleb(-column.type.scale) if column.type.name == "numeric" else None
        known = VALUES[column.type.name][: 3 if are_finite and column.type.name == "date" else None]
        values = [None if chance.random() < 0.2 else chance.choice(known) for _ in range(count)]
        cells = [value.quantize(unit) if unit is not None and value is not None else value for value in values]
        arrays.append(pa.array(cells, column.type.arrow))
    return pa.Table.from_arrays(arrays, names=list(leaf.sources))


def _shown(cells: list[Any]) -> list[tuple[type, Any]]:
    return [(type(cell), cell) for cell in cells]


def _sorted(table: pa.Table) -> list[str]:
    return sorted(map(repr, pa.table([*map(as_cells, table.columns)], table.column_names).to_pylist()))


@pytest.mark.parametrize("query", QUERIES)
def test_rows_are_those_of_the_engine(engine: EmbeddedEngine, query: str) -> None:
    relation, chance = _relation(query), random.Random(query)
    few = few_of(relation)
    assert few is not None
    leaves = {f"s_{leaf.trace}": leaf for leaf in find(relation, kinds_of(Snapshot))}
    for count in (0, 1, 2, 3, 5, 8, 13):
        bindings = {name: _rows(leaf, count, chance, "extract" in query) for name, leaf in leaves.items()}
        expected = engine.query(relation, bindings)
        small = {name: as_small(rows) for name, rows in bindings.items()}
        assert all(isinstance(rows, SmallTable) for rows in small.values())
        for given in (bindings, small):
            found = few.run(given)
            assert isinstance(found, SmallTable) == (found.num_rows <= FEW)
            if isinstance(found, SmallTable):
                values = [as_cells(column).to_pylist() for column in found.table.columns]
                assert [*map(_shown, found.cells)] == [*map(_shown, values)]  # those of the columns' types
            found = table_of(found)
            assert found.schema == expected.schema
            assert _sorted(found) == _sorted(expected)


def test_many_rows_and_a_table_are_left_to_the_engine() -> None:
    relation = _relation(QUERIES[0])
    few, chance = few_of(relation), random.Random(1)
    assert few is not None
    leaves = find(relation, kinds_of(Snapshot))
    assert few.run({f"s_{leaf.trace}": _rows(leaf, CELLS, chance) for leaf in leaves}) is None
    assert few.run({}) is None
    statement = bound("SELECT 1 AS x FROM t", _with_table())
    assert isinstance(statement, Query)
    assert few_of(statement.relation) is None


def _with_table() -> Catalog:
    created = bound("CREATE TABLE t (k integer)")
    assert isinstance(created, CreateTable)
    return Catalog().add(created.table)


def test_a_sum_that_fits_no_value_is_left_to_the_engine(engine: EmbeddedEngine) -> None:
    relation = _relation("SELECT a.k, a.b + z.k AS x FROM a JOIN z ON a.t = z.t")
    few = few_of(relation)
    assert few is not None
    chance = random.Random(2)
    rows = {f"s_{leaf.trace}": _rows(leaf, 3, chance) for leaf in find(relation, kinds_of(Snapshot))}
    for name, column, value in (("s_a", "b", 2**63 - 1), ("s_z", "k", 1)):
        table = rows[name]
        place = table.schema.get_field_index(column)
        table = table.set_column(place, column, pa.array([value] * 3, pa.int64()))
        rows[name] = table.set_column(table.schema.get_field_index("t"), "t", pa.array(["a"] * 3, pa.string()))
    assert few.run(rows) is None
