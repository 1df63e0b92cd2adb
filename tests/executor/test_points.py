"""Point reads: the index with its patches gives the same rows as the whole view, whatever arrives in between."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from catalog.values.errors import SqlError
from executor.database.database import Database
from executor.key_access.point_sources import point_reader
from executor.traces import keyed_rows, state
from executor.traces.parts import Parts
from planner.algebra.nodes import Value
from planner.statements.statement import Query
from tests.embedded.sql import query
from tests.executor.client import Client, key_services, open_database


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    opened = open_database(tmp_path)
    yield opened
    opened.close()


KEYS = ("'a'", "'b'", "NULL")
STREAM = "CREATE FOREIGN TABLE s (k int, t text, n int, d date, f float8) SERVER stream"


def _bound(database: Database, text: str) -> Query:
    return query(text, database.core.catalog)


def _read(database: Database, text: str, *parameters: Value) -> list[tuple[Any, ...]]:
    """The row that a point read finds."""
    reader = point_reader(*key_services(database), _bound(database, text), database.core.catalog)
    assert reader is not None, text
    found = reader.read(parameters)
    assert found is not None
    table, place = found.table, found.place
    peeked = reader.peek(parameters)
    assert peeked is not None
    assert (peeked.place is None) == (place is None)
    if place is None:
        return []
    row = reader.picked.of(table.slice(place, 1))
    assert reader.picked.of(peeked.table.slice(peeked.place, 1)).equals(row)
    return [tuple(column[0].as_py() for column in row.columns)]


@pytest.mark.slow
@pytest.mark.parametrize(("rows", "patches"), [(1024, 256), (1024, 3), (8, 2)])
def test_patches_are_the_view(database: Database, monkeypatch: pytest.MonkeyPatch, rows: int, patches: int) -> None:
    monkeypatch.setattr(state, "PATCH_ROWS", rows)
    monkeypatch.setattr(keyed_rows, "_GATHERED", patches)
    client = Client(database)
    client.run(STREAM)
    client.run(
        "CREATE VIEW v AS SELECT k, t, count(*) AS c, sum(n) AS n, avg(n) AS a FROM s GROUP BY k, t HAVING sum(n) > 3"
    )
    chance = random.Random(rows + patches)
    for step in range(30):
        values = [
            f"({chance.randrange(30)}, {chance.choice(KEYS)}, {chance.randrange(-4, 9)})"
            for _ in range(chance.choice((1, 1, 2, 40)))
        ]
        client.run(f"INSERT INTO s (k, t, n) VALUES {', '.join(values)}")
        if step % 3 == 2:
            continue  # several runs for one patch
        for _ in range(4):
            k, t = chance.randrange(32), chance.choice("ab")
            whole = client.run(f"SELECT k, t, c, n, a FROM v WHERE k + 0 = {k} AND t = '{t}'")
            assert _read(database, f"SELECT k, t, c, n, a FROM v WHERE t = '{t}' AND k = $1", k) == whole


def test_rows_of_many_chunks() -> None:
    chunks = [pa.table({"a": pa.array([number, -number], pa.int64())}) for number in range(5)]
    parts = Parts.of(pa.concat_tables([chunks[0].slice(0, 0), *chunks, chunks[0].slice(0, 0)]))
    taken = parts.take([9, 0, 2, 3, 8])
    assert sorted(taken.column("a").to_pylist()) == sorted([-4, 0, 1, -1, 4])


@pytest.mark.slow
def test_many_runs_between_two_reads(database: Database) -> None:
    client = Client(database)
    client.run(STREAM)
    client.run("CREATE VIEW v AS SELECT k, count(*) AS c FROM s GROUP BY k; INSERT INTO s (k) VALUES (1), (2)")
    assert _read(database, "SELECT c FROM v WHERE k = 1") == [(1,)]
    for _ in range(80):
        client.run("INSERT INTO s (k) VALUES (1), (3)")
        client.run("SELECT count(*) FROM v")
    assert _read(database, "SELECT c FROM v WHERE k = 1") == [(81,)]
    assert _read(database, "SELECT c FROM v WHERE k = 3") == [(80,)]
    assert _read(database, "SELECT c FROM v WHERE k = 2") == [(1,)]


def test_an_error_of_the_final_relation_leaves_no_half_index(database: Database) -> None:
    client = Client(database)
    client.run(STREAM)
    client.run("CREATE VIEW v AS SELECT k, 10 / sum(n) AS q FROM s GROUP BY k; INSERT INTO s (k, n) VALUES (1, 5)")
    assert _read(database, "SELECT q FROM v WHERE k = 1") == [(2,)]
    client.run("INSERT INTO s (k, n) VALUES (2, 0)")
    for _ in range(2):
        with pytest.raises(SqlError, match="22012"):
            _read(database, "SELECT q FROM v WHERE k = 1")
    client.run("INSERT INTO s (k, n) VALUES (2, 2), (1, 5)")
    assert _read(database, "SELECT q FROM v WHERE k = 1") == [(1,)]
    assert _read(database, "SELECT q FROM v WHERE k = 2") == [(5,)]


@pytest.mark.slow
def test_what_is_a_look_up(database: Database) -> None:
    client = Client(database)
    client.run(STREAM)
    for key in ("k", "t", "d", "f"):
        client.run(f"CREATE VIEW by_{key} AS SELECT {key}, count(*) AS c FROM s GROUP BY {key}")

    def is_look_up(text: str) -> bool:
        return point_reader(*key_services(database), _bound(database, text), database.core.catalog) is not None

    assert is_look_up("SELECT c FROM by_k WHERE k = 7")
    assert is_look_up("SELECT c FROM by_k WHERE 7::smallint = k")
    assert is_look_up("SELECT c FROM by_d WHERE d = '2024-01-01'")
    assert not is_look_up("SELECT c FROM by_k WHERE k = 7.0")
    assert not is_look_up("SELECT c FROM by_k WHERE k = 7000000000")
    assert not is_look_up("SELECT c FROM by_k WHERE k > 7")
    assert not is_look_up("SELECT c + 1 FROM by_k WHERE k = 7")
    assert not is_look_up("SELECT c FROM by_f WHERE f = 'NaN'")  # equal to itself in SQL, but not in Python
    client.run("INSERT INTO s (f) VALUES ('NaN')")
    assert client.run("SELECT c FROM by_f WHERE f = 'NaN'") == [(1,)]
