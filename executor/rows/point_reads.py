"""Point reads: one row of a continuous view or a table by its key, without an engine.

Owns: recognising ``SELECT columns FROM relation WHERE key = $1 [AND ...]`` on a view whose program names a point key,
or on a table with a unique key, and asking the one that keeps such rows (architecture sections 2 and 3), which
``executor.key_access.point_sources`` finds.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

import pyarrow as pa
from msgspec import Struct

from catalog.objects import Table
from catalog.values.types import SqlType
from executor.small.quotients import scaled_text_of, shows
from executor.small.values import INTEGERS, KEYS
from executor.traces.index import NO_ROW, Row
from planner.algebra.construction import conjuncts
from planner.algebra.nodes import (
    Call,
    Cast,
    Column,
    ColumnRef,
    Filter,
    Literal,
    Parameter,
    Project,
    Relation,
    Scalar,
    Scan,
    Value,
)
from planner.statements.statement import Query

_STRINGS = ("text", "varchar")

Key = tuple[object, ...]


class Picked(Struct, frozen=True):
    """The columns that a query picks of a row, and for each the one that says how many decimals it shows, if any."""

    columns: tuple[str, ...]
    scales: tuple[str | None, ...]

    @property
    def is_written(self) -> bool:
        """Whether there are numerics that show their own decimals, which are written one by one."""
        return any(self.scales)

    @property
    def read(self) -> tuple[str, ...]:
        """All columns that are needed."""
        return tuple(dict.fromkeys((*self.columns, *filter(None, self.scales))))

    def of(self, table: pa.Table) -> pa.Table:
        """The picked columns of a table's rows, such numerics as texts."""
        found = table.select(list(self.columns))
        for place, scale in enumerate(self.scales):
            if scale is not None:
                values = found.column(place)
                kind = SqlType("numeric", (values.type.precision, values.type.scale))
                texts = map(scaled_text_of(kind), values.to_pylist(), table.column(scale).to_pylist())
                found = found.set_column(place, self.columns[place], pa.array(texts, pa.string()))
        return found


class Lookup(Struct, frozen=True):
    """What a recognised query asks: the relation, its output columns, and each key column's value."""

    oid: int
    kind: str
    picked: Picked
    key: tuple[tuple[str, Scalar], ...]


def recognise(relation: Relation) -> Lookup | None:
    """The look-up that a relation is, or None."""
    project = relation if isinstance(relation, Project) else None
    below = project.input if project is not None else relation
    if not isinstance(below, Filter) or not isinstance(below.input, Scan):
        return None
    scan = below.input
    if scan.kind not in ("view", "table"):
        return None
    names = dict(zip(scan.columns, scan.sources, strict=True))
    outputs = project.outputs if project is not None else tuple((c, ColumnRef(c)) for c in scan.columns)
    shown = [parts for _, value in outputs if (parts := _shown(value)) is not None]
    key, rest = split_equalities(below.predicate, names)
    if len(shown) != len(outputs) or rest:
        return None
    picked = Picked(
        tuple(names[column] for column, _ in shown),
        tuple(None if scale is None else names[scale] for _, scale in shown),
    )
    return Lookup(scan.oid, scan.kind, picked, tuple((name, key[name][0]) for name in sorted(key)))


def _shown(value: Scalar) -> tuple[Column, Column | None] | None:
    """The column that an output is, and the one that says how many decimals of it are shown."""
    match value:
        case ColumnRef(column=column):
            return column, None
        case Call(function="scaled_text", arguments=(ColumnRef(column=column), ColumnRef(column=scale))) if shows(
            column.type
        ):
            return column, scale
        case _:
            return None


def split_equalities(
    predicate: Scalar, names: Mapping[Column, str]
) -> tuple[dict[str, tuple[Literal | Parameter, Scalar]], list[Scalar]]:
    """The columns that a condition wants to be equal to a value, each with that value and its conjunct; and the other
    conjuncts."""
    found: dict[str, tuple[Literal | Parameter, Scalar]] = {}
    rest: list[Scalar] = []
    for item in conjuncts(predicate):
        equality = _equality(item, names)
        if equality is None or equality[0] in found:
            rest.append(item)
        else:
            found[equality[0]] = (equality[1], item)
    return found, rest


def _equality(item: Scalar, names: Mapping[Column, str]) -> tuple[str, Literal | Parameter] | None:
    if not isinstance(item, Call) or item.function != "eq":
        return None
    left, right = item.arguments
    column, value = (left, right) if isinstance(left, ColumnRef) else (right, left)
    if isinstance(value, Cast) and not value.explicit:
        value = value.argument
    if not isinstance(column, ColumnRef) or not isinstance(value, Literal | Parameter):
        return None
    if column.column not in names or not _same_values(value.type.name, column.type.name):
        return None
    return names[column.column], value


def key_value(item: Scalar, parameters: Sequence[object]) -> object:
    """The value of a key's column."""
    assert isinstance(item, Parameter | Literal)
    return parameters[item.index] if isinstance(item, Parameter) else item.value


def _same_values(given: str, column: str) -> bool:
    """Whether a value is equal to a key in Python exactly where it is in SQL, whatever implicit cast is between."""
    if given in INTEGERS:
        return column in INTEGERS or column == "numeric"
    return (given == column and column in KEYS) or (given in _STRINGS and column in _STRINGS)


class Finder(Protocol):
    """A transaction that has changed tables."""

    def find_row(self, table: Table, columns: tuple[str, ...], key: Key) -> Row | None:
        """A table's row by a unique key; None where that takes time."""
        ...


class Source(Protocol):
    """A keeper of a relation's rows by key."""

    def peek(self, key: Key) -> Row | None:
        """The row at the present LSN; None where that cannot be told at once."""
        ...

    def read(self, key: Key) -> Row | None:
        """Reads a row, which may take a while; None if an engine must be asked."""
        ...

    def within(self, write: Finder, key: Key) -> Row | None:
        """The row as a transaction sees it that has changed tables; None where that takes time."""
        ...


class PointReader:
    """A prepared point read. ``read`` blocks; ``peek`` answers at once or not at all."""

    def __init__(self, source: Source, query: Query, lookup: Lookup, key: tuple[str, ...]) -> None:
        """``key`` names the key's columns in the source's order."""
        self._source = source
        self.relation = lookup.oid
        self.picked = lookup.picked
        self.outputs = query.outputs
        values = dict(lookup.key)
        self._parts = tuple(values[name] for name in key)
        #: Of a key that is the parameters, one after the other, as nearly every key is.
        self._is_parameters = all(
            isinstance(item, Parameter) and item.index == index for index, item in enumerate(self._parts)
        )

    def _key(self, parameters: tuple[Value, ...]) -> Key | None:
        """The values in the index's order; None where one is NULL, which equals nothing."""
        key: Key = parameters
        if not self._is_parameters or len(parameters) != len(self._parts):
            key = tuple(key_value(item, parameters) for item in self._parts)
        return None if None in key else key

    def peek(self, parameters: tuple[Value, ...]) -> Row | None:
        """The row if the index is fresh; None when ``read`` must be called."""
        key = self._key(parameters)
        return NO_ROW if key is None else self._source.peek(key)

    def read(self, parameters: tuple[Value, ...]) -> Row | None:
        """The row at the present LSN; None where the query must go the ordinary way."""
        key = self._key(parameters)
        return NO_ROW if key is None else self._source.read(key)

    def within(self, write: Finder, parameters: tuple[Value, ...]) -> Row | None:
        """The row as a transaction sees it that has changed tables; None where that takes time."""
        key = self._key(parameters)
        return NO_ROW if key is None else self._source.within(write, key)
