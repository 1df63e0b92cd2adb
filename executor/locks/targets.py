"""What is locked."""

from __future__ import annotations

from msgspec import Struct

from executor.traces.keyed_rows import Columns, Key


class Relation(Struct, frozen=True, cache_hash=True):
    """A relation, in the modes that statements and LOCK TABLE take on it."""

    oid: int


class Rows(Struct, frozen=True, cache_hash=True):
    """All rows of a table. Changes of single rows by key share it (ROW EXCLUSIVE); changes of rows that a query finds
    have it alone (SHARE ROW EXCLUSIVE), and FOR SHARE keeps both away (SHARE)."""

    oid: int


class Row(Struct, frozen=True, cache_hash=True):
    """The row of a table that has, had or gets a key."""

    oid: int
    columns: Columns
    key: Key


class Keys(Struct, frozen=True, cache_hash=True):
    """The keys of a table that others refer to: rows that come to refer to them share it (ROW EXCLUSIVE), and rows that
    go, or get another key, keep those away (SHARE)."""

    oid: int


class Definition(Struct, frozen=True, cache_hash=True):
    """What one object is in the catalog, by oid."""

    oid: int


class Name(Struct, frozen=True, cache_hash=True):
    """A name in a schema that an object gets or gives up."""

    schema: str
    name: str


class Advisory(Struct, frozen=True, cache_hash=True):
    """A number of the client's, in pg_locks' columns: the halves of one bigint (``parts`` 1), or two integers (2)."""

    high: int
    low: int
    parts: int


Target = Relation | Rows | Row | Keys | Definition | Name | Advisory


def advisory(*numbers: int) -> Advisory:
    """The target of an advisory lock function's arguments."""
    if len(numbers) == 1:
        return Advisory(numbers[0] >> 32 & 0xFFFFFFFF, numbers[0] & 0xFFFFFFFF, 1)
    return Advisory(numbers[0] & 0xFFFFFFFF, numbers[1] & 0xFFFFFFFF, 2)
