"""Random values of each kind, as SQL literals and as fields of COPY.

Equal numerics are written in one way, so that a group of them shows the same decimals whichever row represents it.
"""

from __future__ import annotations

import random
from typing import Final

from tests.law.changing.schemas import TYPES, Column, Table

VALUES: Final[dict[str, tuple[str, ...]]] = {
    "int": ("0", "1", "2", "3", "4", "5"),
    "big": ("0", "1", "2", "3", "10000000000"),
    "num": ("0", "1", "2", "1.5", "2.25", "-0.125"),
    "dec": ("0.00", "1.00", "1.50", "2.25", "-3.10"),
    "text": ("a", "b", "c", "ab", "", "a b", "é"),
    "bool": ("true", "false"),
    "date": ("2024-02-28", "2024-02-29", "2024-03-01", "2024-03-02"),
    "ts": ("2024-02-28 10:00:00", "2024-02-29 00:00:00", "2024-02-29 23:59:59.5", "2024-03-01 12:30:00"),
    "flt": ("0", "0.5", "-1.25", "3", "0.1", "1000000", "1e15", "NaN", "Infinity"),
    "arr": ("{}", "{1}", "{1,2}", "{2,NULL}", "{3,3,1}"),
    "small": ("0", "1", "2", "7"),
    "tz": ("2024-02-28 10:00:00+00", "2024-02-29 00:00:00+00", "2024-03-01 12:30:00+00"),
    "iv": ("1 day", "02:00:00", "1 mon", "-00:00:30"),
    "js": ('{"a": 1}', "[1, 2]", '"x"', "null", '{"a": [2], "b": "y"}'),
    "uuid": ("00000000-0000-0000-0000-000000000001", "a0000000-0000-0000-0000-000000000002"),
    "range": ("[1,3)", "empty", "[2,)", "[2,6)", "(,)"),
    "mood": ("sad", "ok", "happy"),
    "chr": ("a", "ab", "", "b", "B c"),
    "time": ("00:00:00", "10:00:00", "23:59:59.5"),
}
#: The minutes of events: most are early, so that few rows are late, and many lie on the bounds of an interval.
_MINUTES: Final = (0, 0, 0, 1, 1, 1, 2, 2, 2, 3, 3, 4, 4, 5, 6, 7, 9)
#: Keys are numbered from 1 to this number.
KEYS: Final = 12
#: Kinds whose literals need no quotes.
_BARE: Final = ("int", "big", "num", "dec", "bool", "flt", "small")


def literal(source: random.Random, kind: str, typed: bool = True) -> str:
    """A value that is not NULL; ``typed`` with its type where the text alone does not tell it."""
    value = source.choice(VALUES[kind])
    if kind in _BARE and not (typed and kind in ("num", "dec", "flt", "big", "small")):
        return written(kind, value)
    return f"'{value}'::{TYPES[kind]}" if typed and kind != "text" else f"'{value}'"


def null(kind: str) -> str:
    """NULL of a kind."""
    return f"NULL::{TYPES[kind]}"


def row(source: random.Random, table: Table, columns: tuple[Column, ...]) -> tuple[str | None, ...]:
    """Values of a row as texts; None: NULL. A key may be one that exists."""
    return tuple(_value(source, table, column) for column in columns)


def _value(source: random.Random, table: Table, column: Column) -> str | None:
    if source.random() < (0.15 if column.is_nullable else 0.01):
        return None
    if column.name in table.key or column.is_unique or column.references:
        return key(source, column.kind)
    if column.is_time:
        return f"2024-02-29 00:{source.choice(_MINUTES):02}:00"
    return source.choice(VALUES[column.kind])


def key(source: random.Random, kind: str) -> str:
    """A value of a key, or of a column that references one."""
    return _key(kind, source.randint(1, KEYS))


def _key(kind: str, number: int) -> str:
    return f"k{number}" if kind == "text" else str(number)


def first_rows(source: random.Random, table: Table, known: dict[str, list[str]]) -> list[tuple[str | None, ...]]:
    """Rows for an empty table that violate nothing; ``known`` are the keys of the tables that were filled before, to
    which those of this table are added."""
    number = source.choice((4, 6, 8, 10)) if source.random() < 0.92 else 0
    places = source.sample(range(1, KEYS + 1), number)
    found = [tuple(_first(source, table, item, place, known) for item in table.columns) for place in places]
    key = table.single_key
    if key is not None:
        known[table.name] = [_key(key.kind, place) for place in places]
    return found


def _first(source: random.Random, table: Table, column: Column, place: int, known: dict[str, list[str]]) -> str | None:
    if column.references:
        return source.choice((None, *known[column.references] * 2))
    if column.name in table.key or column.is_unique:
        return _key(column.kind, place)
    return None if column.is_nullable and source.random() < 0.12 else source.choice(VALUES[column.kind])


def as_values(columns: tuple[Column, ...], values: tuple[str | None, ...]) -> str:
    """A row of VALUES."""
    return f"({', '.join(written(column.kind, value) for column, value in zip(columns, values, strict=True))})"


def written(kind: str, value: str | None) -> str:
    """A value as a literal whose type follows from where it stands."""
    if value is None:
        return "NULL"
    return value if kind in _BARE and value not in ("NaN", "Infinity") else f"'{value}'"


def as_line(values: tuple[str | None, ...]) -> str:
    """A line of COPY in text format."""
    return "\t".join("\\N" if value is None else value for value in values)
