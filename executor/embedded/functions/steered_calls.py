"""``late`` in DuckDB: calls with a computed argument where PostgreSQL's function is otherwise printed with a constant.

Owns: ``register``, which defines the functions ``late_*`` in an instance, one for each result type (``RESULTS``). Each
takes a batch of rows and a description of the call in JSON, groups the rows by the values of the arguments that are
otherwise constants (``planner.bind.calls.overloading.deferred_calls``), and evaluates one relation per group. The
relation stays prepared on another connection of the instance. Errors carry their SQLSTATE, as those of macros do.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Any, Final

import numpy as np
import pyarrow as pa

from catalog.codec import classes, decode
from catalog.values.errors import SqlError
from catalog.values.types import SqlType
from executor.embedded.functions.batches import create, raised
from executor.printing.nodes import leaf_name
from planner.algebra.nodes import Column, ColumnRef, Literal, Project, Relation, Scalar, Snapshot
from planner.bind.binder import bind_values
from planner.bind.calls.overloading.deferred_calls import STRICT, places

#: Arguments: a relation, its leaves' tables and the time zone; returns the relation's rows.
Query = Callable[[Relation, dict[str, pa.Table], str], pa.Table]
#: Result types, by the suffix of the function's name.
RESULTS: Final = {
    "text": "VARCHAR",
    "bytea": "BLOB",
    "date": "DATE",
    "float8": "DOUBLE",
    "interval": "INTERVAL",
    "numeric": "DECIMAL(38, 18)",
    "timestamp": "TIMESTAMP",
    "timestamptz": "TIMESTAMP WITH TIME ZONE",
}
_CLASSES: Final = classes(SqlType)
_RELATIONS: Final = 256


def register(connection: Any, query: Query) -> None:
    """Defines the functions in an instance; ``query`` runs a relation on another connection of the instance."""

    def batch(*columns: pa.ChunkedArray) -> pa.Array:
        what, *values = columns
        try:
            return _computed(what[0].as_py(), values, query)
        except SqlError as error:
            raise raised(error) from None

    for name, result in RESULTS.items():
        create(connection, f"late_{name}", batch, result)


def _computed(what: str, columns: list[pa.ChunkedArray], query: Query) -> pa.Array:
    """The results of the call for a batch, in the order of its rows."""
    name, kinds, kind, time_zone = decode(json.loads(what), _CLASSES)
    names = [f"a{place}" for place in range(len(columns))]
    arrays = [column.cast(item.arrow) for column, item in zip(columns, kinds, strict=True)]
    table = pa.Table.from_arrays(arrays, names)
    present = np.full(len(table), True)
    for column in table.columns if name in STRICT else ():
        present &= column.is_valid().to_numpy()
    parts: list[pa.Array] = []
    rows: list[np.ndarray] = []
    for members, values in _groups(table, np.flatnonzero(present), places(name, len(columns))):
        relation = _relation(name, kinds, kind, values, time_zone)
        found = query(relation, {leaf_name(_leaf(kinds)): table.take(members)}, time_zone)
        parts.extend(found.column(0).chunks)
        rows.append(members)
    if not parts:
        return pa.nulls(len(table), kind.arrow)
    order = np.full(len(table), -1, np.int64)
    members = np.concatenate(rows)
    order[members] = np.arange(len(members))
    return pa.concat_arrays(parts).take(pa.array(order, mask=order < 0))


def _groups(
    table: pa.Table, rows: np.ndarray, constants: tuple[int, ...]
) -> Iterator[tuple[np.ndarray, tuple[object, ...]]]:
    """The rows for each combination of the constants' values, and the values; rows with a NULL are left out, as their
    result is NULL."""
    codes = np.zeros(len(rows), np.int64)
    dictionaries = []
    for place in constants:
        column = table.column(place).take(rows).combine_chunks().dictionary_encode("encode")
        size = len(column.dictionary)
        codes = codes * size + column.indices.to_numpy(zero_copy_only=False)
        dictionaries.append(column.dictionary)
    for code in np.unique(codes):
        members = rows[codes == code]
        values, rest = [], int(code)
        for dictionary in reversed(dictionaries):
            rest, place = divmod(rest, len(dictionary))
            values.append(_literal(dictionary[place].as_py()))
        if None not in values:
            yield members, tuple(reversed(values))


def _literal(value: Any) -> object:
    """The value of a literal; intervals are in microseconds."""
    if isinstance(value, pa.MonthDayNano):
        return value.months, value.days, value.nanoseconds // 1000
    return value


def _leaf(kinds: tuple[SqlType, ...]) -> Snapshot:
    columns = tuple(Column(place, f"a{place}", kind) for place, kind in enumerate(kinds))
    return Snapshot("late_" + "_".join(str(kind) for kind in kinds), columns, tuple(item.name for item in columns))


@lru_cache(_RELATIONS)
def _relation(
    name: str, kinds: tuple[SqlType, ...], kind: SqlType, values: tuple[object, ...], time_zone: str
) -> Relation:
    """The constant form of the call, over the rows of a group."""
    leaf = _leaf(kinds)
    arguments: list[Scalar] = [ColumnRef(column) for column in leaf.columns]
    for place, value in zip(places(name, len(kinds)), values, strict=True):
        arguments[place] = Literal(value, kinds[place])
    return Project(leaf, ((Column(len(kinds), "value", kind), bind_values(name, arguments, kind, time_zone)),))
