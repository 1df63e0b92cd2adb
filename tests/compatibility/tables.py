"""The tables of generated cases: ``w`` with a column of every type and edge values; ``a``, ``b``, ``c`` for joins.

Owns: the values of each type as literals, and the statements that create the tables, which are the same for both
servers.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Final

from msgspec import Struct

#: Literals by type: ordinary values first, then edge values. NULL is added for a column's rows.
VALUES: Final[dict[str, tuple[str, ...]]] = {
    "bool": ("true", "false"),
    "int2": ("1", "-7", "0", "12", "32767", "-32768"),
    "int4": ("2", "-3", "0", "10", "2147483647", "-2147483648"),
    "int8": ("3", "-11", "0", "100", "9223372036854775807", "-9223372036854775808"),
    "numeric": ("1.5", "-2.25", "0", "10", "1234567.891", "-0.0001", "99999999999.99"),
    "float4": ("1.5", "-2.5", "0", "1e10", "'NaN'", "'Infinity'", "1e-20"),
    "float8": ("2.5", "-0.5", "0", "'1e100'", "'NaN'", "'-Infinity'", "123456.789"),
    "text": ("'abc'", "'Hello World'", "''", "' pad '", "'äöü€'", "'a%b_c\\d'", "'12'", "'b,c,a'", "'2020-02-03'"),
    "varchar": ("'abc'", "'xyz'", "''", "'é'", "'true'"),
    "bpchar": ("'ab'", "'a '", "''", "'zz'"),
    "name": ("'abc'", "'Name'", "''"),
    "bytea": (r"'\x00ff'", r"'\x'", "'abc'", r"'\x616263'"),
    "date": ("'2020-02-29'", "'1999-12-31'", "'1970-01-01'", "'0001-01-01'", "'2024-07-04'", "'9999-12-31'"),
    "time": ("'12:34:56'", "'00:00'", "'23:59:59.999999'"),
    "timestamp": ("'2020-02-29 12:34:56.789'", "'1999-12-31 23:59:59'", "'1970-01-01'", "'2024-07-04 01:02:03'"),
    "timestamptz": ("'2020-02-29 12:34:56.789+00'", "'1999-12-31 23:59:59+02'", "'1970-01-01'", "'2024-03-31 01:30'"),
    "interval": ("'1 day'", "'1 year 2 mons -3 days 04:05:06.7'", "'0'", "'-1 month'", "'36:00:00'", "'400 days'"),
    "uuid": ("'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'", "'00000000-0000-0000-0000-000000000000'"),
    "json": ('\'{"a": 1, "b": [1, 2, null]}\'', "'[1, \"x\"]'", "'null'", "'\"s\"'", "'1.50'", "'{}'"),
    "jsonb": ('\'{"a": 1, "b": {"c": [1, 2]}}\'', "'[1, \"a\"]'", "'null'", "'\"s\"'", "'1.50'", "'{}'", "'true'"),
    "_int4": ("'{1,2,3}'", "'{}'", "'{NULL,5}'", "'{3,3}'"),
    "_text": ("'{a,b}'", "'{}'", "'{NULL,\"x y\",abc}'"),
    "_numeric": ("'{1.5,2}'", "'{}'"),
}
#: Rows of ``w``.
ROWS: Final = 12
SEED: Final = 20261121


class Column(Struct, frozen=True):
    """A column of a table of generated queries."""

    name: str
    type: str
    values: tuple[str, ...]


_SMALL: Final = tuple(map(str, range(-2, 6)))
_DATES: Final = ("'2024-01-01'", "'2024-01-31'", "'2024-02-29'", "'2023-12-31'")
_WORDS: Final = ("'a'", "'b'", "'ab'", "'B'", "''", "'ä'")
#: Tables of generated queries: values so small that they match in joins and never overflow.
JOINED: Final[dict[str, tuple[Column, ...]]] = {
    "a": (
        Column("id", "int4", ()),
        Column("g", "int4", ("1", "2", "3")),
        Column("i", "int4", _SMALL),
        Column("l", "int8", _SMALL),
        Column("n", "numeric(8,2)", ("1.50", "0", "-2.25", "10.00", "3.10")),
        Column("f", "float8", ("0.5", "-1", "2.25", "0")),
        Column("t", "text", _WORDS),
        Column("d", "date", _DATES),
        Column("o", "bool", ("true", "false")),
    ),
    "b": (
        Column("id", "int4", ()),
        Column("g", "int4", ("1", "2", "4")),
        Column("j", "int2", _SMALL),
        Column("m", "numeric", ("1.5", "0", "-2.25", "7")),
        Column("t", "varchar(4)", _WORDS),
        Column("s", "timestamp", ("'2024-01-01 00:00'", "'2024-02-29 10:00:01'")),
    ),
    "c": (Column("k", "int4", _SMALL), Column("s", "text", _WORDS), Column("v", "int8", _SMALL)),
}
SIZES: Final = {"a": 24, "b": 14, "c": 8}


def written(name: str) -> str:
    """A type's name as SQL writes it."""
    return f"{name[1:]}[]" if name.startswith("_") else name


def column(name: str) -> str:
    """The column of ``w`` with a type."""
    return f"c{name}"


def statements() -> Iterator[str]:
    """DDL and rows."""
    kinds = list(VALUES)
    yield f"CREATE TABLE w (id int4, {', '.join(f'{column(name)} {written(name)}' for name in kinds)})"
    for at in range(ROWS):
        cells = ", ".join("NULL" if at == ROWS - 1 else VALUES[name][at % len(VALUES[name])] for name in kinds)
        yield f"INSERT INTO w VALUES ({at}, {cells})"
    source = random.Random(SEED)
    for table, columns in JOINED.items():
        yield f"CREATE TABLE {table} ({', '.join(f'{item.name} {item.type}' for item in columns)})"
        rows = (_row(columns, at, source) for at in range(SIZES[table]))
        yield f"INSERT INTO {table} VALUES {', '.join(rows)}"


def _row(columns: tuple[Column, ...], at: int, source: random.Random) -> str:
    def cell(item: Column) -> str:
        if not item.values:
            return str(at)
        return "NULL" if source.random() < 0.15 else source.choice(item.values)

    return f"({', '.join(map(cell, columns))})"
