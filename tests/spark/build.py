"""Small algebra for tests of the Spark engine: a stream with a column of every kind, and random rows for it."""

from __future__ import annotations

import datetime as dt
import random
from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from catalog.values.types import BOOL, DATE, FLOAT8, INT2, INT4, INT8, TEXT, TIMESTAMP, TIMESTAMPTZ, SqlType, numeric
from planner.algebra.nodes import (
    Aggregate,
    AggregateCall,
    Call,
    Column,
    ColumnRef,
    Delta,
    Filter,
    Join,
    Literal,
    Project,
    Relation,
    Scalar,
    Snapshot,
)
from planner.incremental.programs.program import State, Statement

STREAM = 16400
COLUMNS: dict[str, SqlType] = {
    "k": INT4,
    "s": INT2,
    "i": INT4,
    "b": INT8,
    "n": numeric(15, 2),
    "m": numeric(12, 4),
    "f": FLOAT8,
    "t": TEXT,
    "ok": BOOL,
    "d": DATE,
    "ts": TIMESTAMP,
    "tz": TIMESTAMPTZ,
    "__lsn": INT8,
    "__ordinal": INT8,
}
SCHEMA = pa.schema([pa.field(name, kind.arrow) for name, kind in COLUMNS.items()])
_ids = iter(range(1000, 1_000_000))


def column(name: str, kind: SqlType) -> Column:
    """A new column."""
    return Column(next(_ids), name, kind)


def delta(*names: str) -> tuple[Delta, dict[str, ColumnRef]]:
    """The stream's delta with some of its columns, and references to them."""
    columns = tuple(column(name, COLUMNS[name]) for name in names)
    return Delta(STREAM, "stream", columns, names), {item.name: ColumnRef(item) for item in columns}


def snapshot(trace: str, kinds: dict[str, SqlType]) -> tuple[Snapshot, dict[str, ColumnRef]]:
    """A static with named columns."""
    columns = tuple(column(name, kind) for name, kind in kinds.items())
    return Snapshot(trace, columns, tuple(kinds)), {item.name: ColumnRef(item) for item in columns}


def call(function: str, kind: SqlType, *arguments: Scalar) -> Call:
    """A function call."""
    return Call(function, arguments, kind)


def lit(value: object, kind: SqlType) -> Literal:
    """A constant."""
    return Literal(value, kind)


def where(relation: Relation, predicate: Scalar) -> Filter:
    """A filter."""
    return Filter(relation, predicate)


def join(kind: Any, left: Relation, right: Relation, predicate: Scalar) -> Join:
    """A join."""
    return Join(kind, left, right, predicate)


def grouped(
    name: str, relation: Relation, keys: Sequence[Scalar], aggregates: list[AggregateCall], merges: list[str]
) -> tuple[Statement, State]:
    """A grouping into an aggregate state, as planner/incremental makes it."""
    key_columns = [(column(f"key{i}", item.type), item) for i, item in enumerate(keys)]
    value_columns = [(column(f"value{i}", item.type), item) for i, item in enumerate(aggregates)]
    aggregate = Aggregate(relation, tuple(key_columns), tuple(value_columns))
    columns = tuple(column(item.name, item.type) for item in aggregate.columns)
    values = columns[len(keys) :]
    merge = tuple(
        (item, AggregateCall(how, (ColumnRef(item),), item.type)) for item, how in zip(values, merges, strict=True)
    )
    return Statement(name, aggregate), State(name, "aggregate", columns, columns[: len(keys)], merge)


def listed(
    name: str, relation: Relation, outputs: Sequence[Scalar], kind: Any = "concatenate"
) -> tuple[Statement, State]:
    """A projection into a concatenate (or distinct) state."""
    project = Project(relation, tuple((column(f"out{i}", item.type), item) for i, item in enumerate(outputs)))
    columns = tuple(column(item.name, item.type) for item in project.columns)
    return Statement(name, project), State(name, kind, columns, columns if kind == "distinct" else ())


def rows(count: int, seed: int, groups: int = 7) -> pa.Table:
    """Random rows, with NULL for a tenth of the values."""
    pick = random.Random(seed)

    def some(value: object) -> object:
        return None if pick.random() < 0.1 else value

    made = [
        {
            "k": some(pick.randrange(groups)),
            "s": some(pick.randrange(-300, 300)),
            "i": some(pick.randrange(-(10**6), 10**6)),
            "b": some(pick.randrange(-(2**63), 2**63)),
            "n": some(Decimal(pick.randrange(-(10**14), 10**14)).scaleb(-2)),
            "m": some(Decimal(pick.randrange(-(10**11), 10**11)).scaleb(-4)),
            "f": some(pick.choice([0.0, 1.5, -2.5, 3.5, 1e9, -7.25, 0.1])),
            "t": some(pick.choice(["a", "B", "é", "", "it's", "back\\slash", "x%y_z", " pad ", "日本", "${x}", "aXb"])),
            "ok": some(pick.random() < 0.5),
            "d": some(dt.date(1990, 1, 1) + dt.timedelta(pick.randrange(20_000))),
            "ts": some(dt.datetime(1969, 12, 31) + dt.timedelta(microseconds=pick.randrange(10**16))),
            "tz": some(dt.datetime(2020, 1, 1, tzinfo=dt.UTC) + dt.timedelta(microseconds=pick.randrange(10**15))),
            "__lsn": index // 10 + 1,
            "__ordinal": index % 10,
        }
        for index in range(count)
    ]
    return pa.Table.from_pylist(made, schema=SCHEMA)


def stored(table: pa.Table, path: Path) -> Path:
    """A table as a Parquet file."""
    pq.write_table(table, path, compression="snappy")
    return path
