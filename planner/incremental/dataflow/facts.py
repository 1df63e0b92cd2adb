"""What is known of the rows of tables, whatever they are: unique keys, and foreign keys that have been validated.

A fact holds of the rows as of any commit since the table has been defined so: DEFERRABLE constraints, too, are checked
before a transaction commits. Within a transaction, between two statements or while a check is deferred, it may not
hold, so that what is planned by facts reads committed rows alone.

    origin      a column's values are those of a table's column, or NULL, and two such columns are of one row of it
    partner     each row whose foreign key has no NULL has a row in the referenced table
    is_key      no two rows of a relation have the same values in some columns, none of which is NULL

Owns these questions. What is made of the answers is ``dataflow.rewrites.by_facts``'s.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from msgspec import Struct

from catalog.objects import Table
from catalog.values.types import TEXT, SqlType
from planner.algebra.nodes import (
    Aggregate,
    Column,
    ColumnRef,
    Filter,
    InZone,
    Join,
    Limit,
    Project,
    Relation,
    Scan,
    Sort,
    Unnest,
    Window,
)
from planner.incremental.dataflow.keyable import is_keyable, same_value

#: The tables that a plan may rely on, by oid.
Tables = Mapping[int, Table]

_INTEGERS = ("int2", "int4", "int8")
_FLOATS = ("float4", "float8")


class Simpler(Struct, frozen=True):
    """A relation without what facts make needless; ``left_out`` says what that is, and why."""

    relation: Relation
    left_out: tuple[str, ...] = ()


class Origin(Struct, frozen=True):
    """A column of a relation that has the values of a table's column, or NULL."""

    scan: Scan
    source: str


def origin(relation: Relation, column: Column) -> Origin | None:
    """Where a column's values come from; None where they are computed, or of several tables."""
    while column in relation.columns:
        match relation:
            case Scan(kind="table"):
                return Origin(relation, relation.sources[relation.columns.index(column)])
            case Project(outputs=pairs) | Aggregate(keys=pairs):
                value = same_value(dict(pairs)[column]) if column in dict(pairs) else None
                if not isinstance(value, ColumnRef):
                    return None
                column, relation = value.column, relation.input
            case Filter() | Sort() | Limit() | Window() | Unnest() | InZone():
                relation = relation.input
            case Join(left=left, right=right):
                relation = left if column in left.columns else right
            case _:
                return None
    return None


def partner(tables: Tables, child: Scan, columns: Sequence[str], target: Scan, keys: Sequence[str]) -> str | None:
    """Why each row of a table has, where none of its ``columns`` is NULL, a row of ``target`` whose ``keys`` have the
    same values, in this order; None where it may have none."""
    own, other = tables.get(child.oid), tables.get(target.oid)
    if own is None or other is None:
        return None
    pairs = set(zip(columns, keys, strict=True))
    if child.oid == target.oid and all(one == another for one, another in pairs):
        return "each of its rows meets itself"
    for key in own.foreign_keys:
        found = set(zip(key.columns, key.target_columns, strict=True))
        if key.validated and key.target == target.oid and found == pairs:
            return f"each row of {own.name} has its own there by foreign key {key.name}"
    return None


def is_unique(tables: Tables, oid: int, names: Collection[str]) -> bool:
    """Whether no two rows of a table have the same values in some columns, none of which is NULL."""
    table = tables.get(oid)
    return table is not None and any(set(names).issuperset(key.columns) for key in table.keys)


def is_key(tables: Tables, relation: Relation, columns: Collection[Column]) -> bool:
    """Whether no two rows of a relation have the same values in some columns, none of which is NULL."""
    known = set(columns)
    while True:
        match relation:
            case Scan(kind="table"):
                shown = zip(relation.columns, relation.sources, strict=True)
                return is_unique(tables, relation.oid, [source for column, source in shown if column in known])
            case Aggregate(keys=keys):
                return all(column in known and is_keyable(column.type) for column, _ in keys)
            case Project(outputs=outputs):
                values = (same_value(value) for column, value in outputs if column in known)
                known = {value.column for value in values if isinstance(value, ColumnRef)}
                relation = relation.input
            case Filter() | Sort() | Limit() | Window() | InZone():
                relation = relation.input
            case Join(kind="semi" | "anti"):
                relation = relation.left
            case _:
                return False


def can_stand_for(value: SqlType, key: SqlType) -> bool:
    """Whether a value of a foreign key looks like the equal one of the key, once it is of its type: zeros of floats
    may differ in their signs."""
    if not (is_keyable(value) and is_keyable(key)) or value.name in _FLOATS:
        return False
    if value.name in _INTEGERS and key.name in _INTEGERS:
        return _INTEGERS.index(value.name) <= _INTEGERS.index(key.name)
    return value == key or (value.name == "varchar" and key == TEXT)
