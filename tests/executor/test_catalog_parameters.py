"""Queries about the catalog with parameters: planned once for all values, and for lists of any length."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from catalog.values.types import INT2, INT4, INT8, OID, TEXT, SqlType
from executor.database.database import Database
from executor.embedded.connection import Source
from executor.sql.session import DatabaseSession
from planner.bind import bind
from planner.bind.state.context import Context
from planner.parse.parser import parse
from planner.statements.statement import Query
from tests.executor.client import Client, open_database, rows

LONG = "n" * 63
FEATURES = "FROM pg_class WHERE relnamespace = 'public'::regnamespace AND relkind = 'r'"


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Database]:
    opened = open_database(tmp_path_factory.mktemp("data"))
    Client(opened).run(
        f"CREATE TABLE one (id int PRIMARY KEY, v text UNIQUE); CREATE TABLE two (); CREATE TABLE {LONG} ()"
    )
    yield opened
    opened.close()


class Asked:
    """A statement with declared parameter types."""

    def __init__(self, database: Database, text: str, *types: SqlType | None) -> None:
        self.session = DatabaseSession(database, "millstream", "millstream")
        self.session.search_path = ("public",)
        (raw,) = parse(text)
        context = Context(self.session.catalog, self.session.search_path, parameter_types=types)
        statement = bind(raw, context).statement
        assert isinstance(statement, Query)
        self.statement = statement

    def run(self, *parameters: Any) -> list[tuple[Any, ...]]:
        batches = self.session.execute(self.statement, parameters).batches
        assert batches is not None
        return [row for batch in batches for row in rows(batch)]


@pytest.mark.parametrize(
    ("condition", "types", "parameters", "expected"),
    [
        ("relname IN ($1, $2)", (TEXT, TEXT), ("one", "two"), ["one", "two"]),
        ("relname IN ($1, $2)", (TEXT, TEXT), ("one", None), ["one"]),
        ("relname NOT IN ($1, $2)", (TEXT, TEXT), ("one", None), []),
        ("relname NOT IN ($1, $2)", (TEXT, TEXT), ("one", "two"), [LONG]),
        ("NOT (relname IN ($1, $2))", (TEXT, TEXT), (None, "one"), []),
        ("(relname IN ($1, $2)) IS NULL", (TEXT, TEXT), ("one", None), [LONG, "two"]),
        ("relname IN ($1::name, $2::name)", (TEXT, TEXT), (LONG + "x", "it's"), [LONG]),
        ("relname::text IN ($1, $2)", (TEXT, TEXT), (LONG + "x", 'a"b'), []),
        ("relname IN ($1, relkind::text)", (TEXT,), ("two",), ["two"]),
        ("relname IN ($1, 'two')", (TEXT,), ("one",), ["one", "two"]),
        ("oid IN ($1, $2)", (INT2, INT2), (-1, 1259), []),
        ("4294967295 IN ($1::oid, $2::oid) AND relname = 'one'", (INT4, INT4), (-1, 2), ["one"]),
        ("oid IN ($1, $1)", (OID,), (0,), []),
        ("oid IN (-1, 1259)", (), (), []),
        ("relname NOT IN ('one', NULL)", (), (), []),
        ("relnatts IN (2, 3) AND relname IN ('one', 'two')", (), (), ["one"]),
        ("relnatts IN ($1, $2)", (INT2, INT2), (2, 3), ["one"]),
        ("relnatts IN ($1, $2)", (INT8, INT4), (2, 1 << 20), ["one"]),
        ("relnatts = ANY (ARRAY[$1, $2]::int2[])", (INT4, INT4), (2, 3), ["one"]),
        ("$1 IN ($2, $3) AND relname = $4", (INT4, INT4, INT4, TEXT), (1, 2, 1, "one"), ["one"]),
        ("CASE WHEN $1 IN ($2, $3) THEN relname ELSE $4 END = 'two'", (TEXT,) * 4, ("a", "b", "a", ""), ["two"]),
        ("relname = lower($1) OR relname = lower($1)", (TEXT,), ("ONE",), ["one"]),
        ("relname = substr($1, $2)", (TEXT, INT4), ("xxone", 3), ["one"]),
        ("relname LIKE $1 || '%'", (TEXT,), ("t",), ["two"]),
        # The failing part is not evaluated.
        ("CASE WHEN relname = 'none' THEN $1::int = 1 ELSE relname = 'one' END", (TEXT,), ("word",), ["one"]),
    ],
)
def test_rows(
    database: Database, condition: str, types: tuple[SqlType, ...], parameters: tuple[Any, ...], expected: list[str]
) -> None:
    asked = Asked(database, f"SELECT relname {FEATURES} AND ({condition}) ORDER BY relname", *types)
    assert asked.run(*parameters) == [(name,) for name in expected]
    assert asked.run(*parameters) == [(name,) for name in expected]


def test_lists_of_other_lengths_are_the_same_query(database: Database) -> None:
    def of(*names: str | None) -> tuple[Any, list[tuple[Any, ...]]]:
        items = ", ".join(f"${place}" for place in range(2, len(names) + 2))
        text = f"SELECT relname {FEATURES} AND relkind = $1 AND relname IN ({items}) ORDER BY 1"
        asked = Asked(database, text, *[TEXT] * (len(names) + 1))
        query, _ = database.core.plans.general(asked.statement, ("r", *names))
        return query.relation, asked.run("r", *names)

    first, found = of("one", "two")
    assert found == [("one",), ("two",)]
    second, found = of("two", None, "three", LONG)
    assert found == [(LONG,), ("two",)]
    assert second is first


def test_so_are_lists_of_constants(database: Database) -> None:
    def of(*names: str) -> Any:
        statement = Asked(database, f"SELECT relname {FEATURES} AND relname IN ({', '.join(names)}) ORDER BY 1")
        query, parameters = database.core.plans.general(statement.statement, ())
        return query.relation, parameters, statement.run()

    first, parameters, found = of("'one'", "'two'", f"'{LONG}x'")
    assert parameters == (("one", "two", LONG),)
    assert found == [(LONG,), ("one",), ("two",)]
    second, _, found = of("'two'", "NULL")
    assert found == [("two",)]
    assert second is first


def test_queries_with_other_constants_are_others(database: Database) -> None:
    def of(value: str) -> Any:
        statement = Asked(database, f"SELECT {value} FROM pg_class WHERE relname = $1", TEXT).statement
        return database.core.plans.general(statement, ("one",))[0].relation

    assert of("1.0") is of("1.0")
    assert of("1.0") is not of("1.00")
    assert of("1") is not of("'1'")
    assert of("oid") is not of("relname")


def test_the_engine_plans_it_once(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    """DuckDB asks an input for its columns whenever it plans a statement that reads it."""
    asked: list[Source] = []
    schema = Source.__arrow_c_schema__
    monkeypatch.setattr(Source, "__arrow_c_schema__", lambda self: (asked.append(self), schema(self))[1])
    query = Asked(
        database,
        "SELECT relname, generate_subscripts(i.indkey, $5) FROM pg_class c LEFT JOIN pg_index i ON i.indrelid = c.oid"
        " WHERE relkind IN ($1, $2) AND c.oid <> $3 AND relname = lower($4) AND pg_table_is_visible(c.oid)"
        " AND ($3 < 3 OR relname <> lower($4)) ORDER BY 1, 2",
        *(TEXT, TEXT, INT2, TEXT, INT4),
    )
    assert query.run("r", "v", 1, "ONE", 1) == [("one", 0), ("one", 0)]
    assert asked
    asked.clear()
    assert query.run("r", "p", 2, "One", 1) == [("one", 0), ("one", 0)]
    assert query.run("r", "p", 2, "two", 1) == []
    assert query.run("r", "p", 1, "one", 2) == []
    assert not asked


def test_a_definition_is_seen(tmp_path: Path) -> None:
    with_table = "SELECT relname FROM pg_class WHERE relname IN ($1, $2) ORDER BY 1"
    database = open_database(tmp_path)
    client = Client(database)
    client.run("CREATE TABLE a ()")
    found = [Asked(database, with_table, TEXT, TEXT).run("a", "b")]
    client.run("CREATE TABLE b ()")
    found.append(Asked(database, with_table, TEXT, TEXT).run("a", "b"))
    client.run("DROP TABLE a")
    found.append(Asked(database, with_table, TEXT, TEXT).run("a", "b"))
    assert found == [[("a",)], [("a",), ("b",)], [("b",)]]
    database.close()
