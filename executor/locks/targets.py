"""What can be locked."""

from __future__ import annotations

from msgspec import Struct

from executor.traces.keyed_rows import Columns, Key


class Relation(Struct, frozen=True, cache_hash=True):
    """A relation, in the modes of statements and LOCK TABLE."""

    oid: int


class Rows(Struct, frozen=True, cache_hash=True):
    """All rows of a table. Changes of single rows by key share it (ROW EXCLUSIVE); a change of rows found by a query
    takes it alone (SHARE ROW EXCLUSIVE); FOR SHARE excludes both (SHARE)."""

    oid: int


class Row(Struct, frozen=True, cache_hash=True):
    """The row of a table that has, had or will have a key."""

    oid: int
    columns: Columns
    key: Key


class Keys(Struct, frozen=True, cache_hash=True):
    """The keys of a table to which other tables refer. Rows that begin to refer to them share it (ROW EXCLUSIVE);
    deletes and key changes exclude such rows (SHARE)."""

    oid: int


class Definition(Struct, frozen=True, cache_hash=True):
    """One object's definition in the catalog, by oid."""

    oid: int


class Name(Struct, frozen=True, cache_hash=True):
    """A name in a schema that an object takes or gives up."""

    schema: str
    name: str


class Advisory(Struct, frozen=True, cache_hash=True):
    """A client's number, in the columns of pg_locks: the halves of one bigint (``parts`` 1), or two integers (2)."""

    high: int
    low: int
    parts: int


Target = Relation | Rows | Row | Keys | Definition | Name | Advisory


def advisory(*numbers: int) -> Advisory:
    """The target for the arguments of an advisory lock function."""
    if len(numbers) == 1:
        return Advisory(numbers[0] >> 32 & 0xFFFFFFFF, numbers[0] & 0xFFFFFFFF, 1)
    return Advisory(numbers[0] & 0xFFFFFFFF, numbers[1] & 0xFFFFFFFF, 2)
