"""The state of an instance after one of DuckDB's assertions fails: a failed query affects nothing else."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import duckdb
import pyarrow as pa
import pytest

from catalog.values.errors import SqlError
from catalog.values.types import BOOL, INT4, TEXT
from executor.embedded.connection import Connection
from executor.embedded.instance import Instance
from planner.algebra.nodes import Call, Column, ColumnRef, Join, Relation, Scan

SCHEMA, NAME = Column(1, "schema", INT4), Column(2, "name", TEXT)
CLASS, OF, KIND = Column(3, "class", INT4), Column(4, "of", INT4), Column(5, "kind", INT4)
CLASSES, OTHER = Column(6, "class", INT4), Column(7, "other", INT4)
SCHEMAS, CHOSEN = Column(8, "schema", INT4), Column(9, "name", TEXT)

ROWS = {
    "v1": pa.table({"a": pa.array(range(1, 6), pa.int32()), "b": [f"s{i}" for i in range(1, 6)]}),
    "v2": pa.table({name: pa.array([i % 5 + 1 for i in range(115)], pa.int32()) for name in "abc"}),
    "v3": pa.table({name: pa.array([i % 5 + 1 for i in range(351)], pa.int32()) for name in "ab"}),
}


def equal(left: Column, right: Column) -> Call:
    return Call("eq", (ColumnRef(left), ColumnRef(right)), BOOL)


def chained() -> Relation:
    """An equality join, a join by OR above it, and an equality join above that, for which DuckDB 2.0.0's joins
    raise."""
    first = Join(
        "inner",
        Scan(2, "t", "view", (CLASS, OF, KIND), ("a", "b", "c")),
        Scan(1, "s", "view", (SCHEMA, NAME), ("a", "b")),
        equal(OF, SCHEMA),
    )
    either = Call("or", (equal(CLASS, CLASSES), equal(KIND, CLASSES)), BOOL)
    second = Join("inner", first, Scan(3, "u", "view", (CLASSES, OTHER), ("a", "b")), either)
    third = Join("inner", second, Scan(1, "s", "view", (SCHEMAS, CHOSEN), ("a", "b")), equal(OTHER, SCHEMAS))
    return third


class Failing:
    """A cursor whose first call fails with an error of DuckDB."""

    def __init__(self, cursor: Any, error: duckdb.Error) -> None:
        self._cursor = cursor
        self._error: duckdb.Error | None = error

    def execute(self, sql: str) -> Any:
        error, self._error = self._error, None
        if error is not None:
            raise error
        return self._cursor.execute(sql)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._cursor, name)


@pytest.fixture
def instance() -> Iterator[Instance]:
    found = Instance(threads=1)
    yield found
    found.close()


def test_a_query_is_attempted_again_with_its_joins_apart(instance: Instance) -> None:
    connection = instance.acquire()
    relation = chained()
    expected = connection.query(relation, ROWS)
    error = duckdb.InternalException("INTERNAL Error: dict-surviving cache")
    again = Connection(Failing(instance.acquire()._cursor, error))
    found = again.query(relation, ROWS)
    keys = [(name, "ascending") for name in expected.column_names]
    assert found.num_rows == expected.num_rows > 0
    assert found.sort_by(keys).equals(expected.sort_by(keys))


@pytest.mark.parametrize(
    ("error", "sql", "is_broken"),
    [
        (duckdb.FatalException("FATAL Error: a block"), "COMMIT", True),
        (duckdb.InternalException("INTERNAL Error: an index"), "INSERT INTO t VALUES (1)", True),
        (duckdb.InternalException("INTERNAL Error: a join"), "CREATE TEMPORARY TABLE t AS SELECT 1", False),
        (duckdb.ConstraintException("Constraint Error: a key"), "COMMIT", False),
    ],
)
def test_changes_that_fail_within_the_engine_are_the_last(error: duckdb.Error, sql: str, is_broken: bool) -> None:
    told: list[SqlError] = []
    with duckdb.connect() as cursor, pytest.raises(SqlError):
        Connection(Failing(cursor, error), told.append).execute(sql)
    assert bool(told) is is_broken


def test_after_them_nothing_is_computed_before_a_restart(instance: Instance) -> None:
    connection = instance.acquire()
    connection._broken(SqlError("XX000", "FATAL Error: a block"))
    with pytest.raises(SqlError, match="FATAL Error: a block") as caught:
        instance.acquire()
    assert (caught.value.sqlstate, caught.value.hint) == ("XX000", "Restart the server.")
