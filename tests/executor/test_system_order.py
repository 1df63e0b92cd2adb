"""Rows of system relations come in the order of insertion where a query has no ORDER BY.

Tools read columns without an ORDER BY, also through joins. PostgreSQL's order depends on its plans there, so the
expected order is given explicitly.
"""

from __future__ import annotations

import pytest

from tests.executor.client import Client

TABLES = (
    "CREATE TABLE cro (a int, b text, c numeric(5,2), d date, e boolean, f timestamptz, g jsonb, h char(3))",
    "CREATE TABLE cro2 (z int PRIMARY KEY, y text, x serial, w date UNIQUE, CHECK (z > 1))",
)
FIRST, SECOND = list("abcdefgh"), list("zyxw")
TYPED = "pg_attribute AS a JOIN pg_type AS t ON t.oid = a.atttypid"
OF_BOTH = "c.relname IN ('cro', 'cro2') AND attnum > 0"
OF_FIRST = "attrelid = 'cro'::regclass AND attnum > 0"


@pytest.fixture
def tables(client: Client) -> Client:
    for text in TABLES:
        client.run(text)
    return client


@pytest.mark.parametrize(
    "text",
    [
        f"SELECT c.relname, a.attname FROM pg_class AS c JOIN pg_attribute AS a ON a.attrelid = c.oid"
        f" JOIN pg_type AS t ON t.oid = a.atttypid WHERE {OF_BOTH}",
        "SELECT c.relname, a.attname FROM pg_attribute AS a"
        " LEFT JOIN pg_attrdef AS d ON d.adrelid = a.attrelid AND d.adnum = a.attnum"
        f" JOIN pg_class AS c ON c.oid = a.attrelid WHERE {OF_BOTH} AND relkind = 'r'",
        f"WITH x AS (SELECT a.attrelid::regclass::text AS relname, a.attname FROM {TYPED}"
        " WHERE attrelid IN ('cro'::regclass, 'cro2'::regclass) AND attnum > 0) SELECT * FROM x",
    ],
)
def test_columns_of_two_tables(tables: Client, text: str) -> None:
    found = tables.run(text)
    assert isinstance(found, list)
    assert [name for table, name in found if table == "cro"] == FIRST
    assert [name for table, name in found if table == "cro2"] == SECOND


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        (f"SELECT ARRAY(SELECT attname FROM {TYPED} WHERE {OF_FIRST})", [(FIRST,)]),
        (
            f"SELECT c.relname, (SELECT string_agg(attname, '') FROM {TYPED} WHERE attrelid = c.oid AND attnum > 0)"
            " FROM pg_class AS c WHERE relname LIKE 'cro%' AND relkind = 'r'",
            [("cro", "".join(FIRST)), ("cro2", "".join(SECOND))],
        ),
        (
            "SELECT c.relname, array_agg(a.attname) FROM pg_class AS c JOIN pg_attribute AS a ON a.attrelid = c.oid"
            f" WHERE {OF_BOTH} GROUP BY c.relname ORDER BY 1",
            [("cro", FIRST), ("cro2", SECOND)],
        ),
        (
            "SELECT relname FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace"
            " WHERE relname LIKE 'cro%' AND relkind = 'r'",
            [("cro",), ("cro2",)],
        ),
    ],
)
def test_lists_and_subqueries(tables: Client, text: str, rows: list[tuple[object, ...]]) -> None:
    assert tables.run(text) == rows
