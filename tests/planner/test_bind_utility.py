"""Statements about the session: transactions, settings, EXPLAIN, COPY, PREPARE."""

from __future__ import annotations

from typing import Any

import pytest

from catalog.values.errors import SqlError
from catalog.values.types import INT4, TEXT, UNKNOWN
from planner.algebra.nodes import Literal
from planner.statements.statement import (
    CloseCursor,
    CopyIn,
    CopyOptions,
    CopyOut,
    Deallocate,
    Discard,
    ExecutePrepared,
    Explain,
    Fetch,
    Listen,
    NoOperation,
    Notify,
    Prepare,
    Query,
    SetVariable,
    ShowVariable,
    TransactionControl,
    Unlisten,
)
from tests.planner.binding import Database, standard


@pytest.fixture(scope="module")
def database() -> Database:
    return standard()


@pytest.mark.parametrize(
    ("text", "statement"),
    [
        ("begin", TransactionControl("begin")),
        (
            "start transaction isolation level repeatable read, read only",
            TransactionControl("begin", None, "repeatable read", True, tag="START TRANSACTION"),
        ),
        ("begin read write", TransactionControl("begin", None, None, False)),
        ("commit", TransactionControl("commit")),
        ("commit and chain", TransactionControl("commit", chain=True)),
        ("end", TransactionControl("commit")),
        ("abort", TransactionControl("rollback")),
        ("savepoint x", TransactionControl("savepoint", "x")),
        ("release x", TransactionControl("release", "x")),
        ("rollback to savepoint x", TransactionControl("rollback_to", "x")),
        ("set TimeZone = 'UTC'", SetVariable("timezone", "UTC")),
        ("set time zone 'Europe/Berlin'", SetVariable("timezone", "Europe/Berlin")),
        ("set local statement_timeout to 100", SetVariable("statement_timeout", "100", True)),
        ('set search_path = "$user", public', SetVariable("search_path", '"$user", public')),
        ("set names 'utf8'", SetVariable("client_encoding", "utf8")),
        ("set jit = off", SetVariable("jit", "off")),
        ("set x to default", SetVariable("x", None)),
        ("set transaction isolation level serializable", SetVariable("transaction_isolation", "serializable", True)),
        (
            "set session characteristics as transaction read only",
            SetVariable("default_transaction_read_only", "on"),
        ),
        ("reset all", SetVariable("all", None, tag="RESET")),
        ("show all", ShowVariable("all")),
        ("show transaction isolation level", ShowVariable("transaction_isolation")),
        (
            text := "prepare p (int, text) as select $1, $2",
            Prepare("p", "select $1, $2", (INT4, TEXT), 25, text),
        ),
        ("execute p (1, 'a')", ExecutePrepared("p", (Literal(1, INT4), Literal("a", UNKNOWN)), (12, 15))),
        ("deallocate p", Deallocate("p")),
        ("deallocate all", Deallocate(None)),
        ("discard all", Discard("all")),
        ("listen a", Listen("a")),
        ("unlisten *", Unlisten(None)),
        ("notify a, 'x'", Notify("a", "x")),
        ("close all", CloseCursor(None)),
        ("fetch backward all c", Fetch("c", "backward", None)),
        ("move last c", Fetch("c", "absolute", -1, True)),
        ("vacuum analyze a", NoOperation("VACUUM", alone="VACUUM")),
        ("analyze", NoOperation("ANALYZE")),
        ("checkpoint", NoOperation("CHECKPOINT")),
    ],
)
def test_session_statements(database: Database, text: str, statement: object) -> None:
    assert database.bind(text).statement == statement


@pytest.mark.parametrize(
    "text",
    [
        "prepare transaction 'x'",
        "do 'declare a int; begin null; end'",
        "do 'begin loop exit; end loop; end'",
        "do 'begin return; end'",
        "do 'begin execute $$select 1$$ using 2; end'",
    ],
)
def test_what_is_not_there_names_itself(database: Database, text: str) -> None:
    with pytest.raises(SqlError) as caught:
        database.bind(text)
    assert caught.value.sqlstate == "0A000"


def test_explain_takes_options(database: Database) -> None:
    plain, full = (
        database.bind("explain select 1").statement,
        database.bind("explain (analyze, format json) select 1").statement,
    )
    assert isinstance(plain, Explain)
    assert isinstance(full, Explain)
    assert (plain.analyze, plain.format, isinstance(plain.statement, Query)) == (False, "text", True)
    assert (full.analyze, full.format) == (True, "json")


@pytest.mark.parametrize(
    ("options", "found"),
    [
        ("", CopyOptions()),
        ("with (format csv)", CopyOptions("csv", ",", "", False)),
        ("csv header", CopyOptions("csv", ",", "", True)),
        ("with csv header delimiter '|' null 'n' quote '''' escape 'e'", CopyOptions("csv", "|", "n", True, "'", "e")),
        ("(format csv, header true, quote '''')", CopyOptions("csv", ",", "", True, "'", "'")),
        ("(delimiter ';', null '')", CopyOptions("text", ";", "")),
        ("with binary", CopyOptions("binary")),
        ("(format binary, encoding 'utf-8')", CopyOptions("binary")),
    ],
)
def test_copy_options_in_both_spellings(database: Database, options: str, found: CopyOptions) -> None:
    statement = database.bind(f"copy s from stdin {options}").statement
    assert isinstance(statement, CopyIn)
    assert statement.options == found


def test_copy_in_knows_columns_and_defaults(database: Database) -> None:
    database.run("create table c (k int, w text default 'x', n int)")
    found = database.bind("copy c (n, k) from '/f.csv' csv").statement
    assert isinstance(found, CopyIn)
    assert (found.columns, found.path) == ((2, 0), "/f.csv")
    assert found.defaults == ((1, Literal("x", TEXT)),)


def test_copy_out_is_a_query(database: Database) -> None:
    for text, names in (
        ("copy b (t, i) to stdout", ["t", "i"]),
        ("copy (select 1 as x) to stdout", ["x"]),
        ("copy cv to stdout", None),
    ):
        found: Any = database.bind(text).statement
        assert isinstance(found, CopyOut)
        assert [item.name for item in found.query.outputs] == (names or ["k", "total", "count"])


@pytest.mark.parametrize(
    ("text", "sqlstate"),
    [
        ("copy a from stdin (format foo)", "22023"),
        ("copy a from stdin (foo)", "42601"),
        ("copy a from stdin (delimiter 'ab')", "0A000"),
        ("copy a from stdin (format csv, delimiter '\"')", "22023"),
        ("copy a from stdin (format binary, null 'x')", "42601"),
        ("copy a from stdin (delimiter 'a')", "22023"),
        ("copy a (zz) from stdin", "42703"),
        ("copy a (i, i) from stdin", "42701"),
        ("copy av from stdin", "42809"),
        ("copy av to stdout", "42809"),
        ("copy a from program 'x'", "0A000"),
        ("copy a to stdout (header match)", "0A000"),
        ("copy a from stdin (encoding 'sjis')", "0A000"),
        ("copy a from stdin (encoding 'nope')", "22023"),
        ("copy a from stdin where lastval() > 1", "0A000"),
    ],
)
def test_copy_errors_are_postgresqls(database: Database, text: str, sqlstate: str) -> None:
    with pytest.raises(SqlError) as caught:
        database.bind(text)
    assert caught.value.sqlstate == sqlstate


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("CREATE EVENT TRIGGER e ON sql_drop EXECUTE FUNCTION f()", "CREATE EVENT TRIGGER"),
        ("SECURITY LABEL ON TABLE r IS 'x'", "SECURITY LABEL"),
        ("CREATE ACCESS METHOD a TYPE TABLE HANDLER h", "CREATE ACCESS METHOD"),
        ("CREATE TABLESPACE t LOCATION '/t'", "CREATE TABLESPACE"),
        ("CREATE FOREIGN DATA WRAPPER w", "CREATE FOREIGN DATA WRAPPER"),
        ("CREATE OPERATOR FAMILY f USING btree", "CREATE OPERATOR FAMILY"),
        ("SELECT * FROM json_table('[1]'::jsonb, '$[*]' COLUMNS (x int PATH '$'))", "JSON_TABLE"),
        ("SELECT * FROM xmltable('/a' PASSING ('<a/>') COLUMNS x int)", "XMLTABLE"),
        (
            "CREATE FOREIGN TABLE f (a int[]) SERVER files OPTIONS (path '/f')",
            "a foreign table's column of an array type",
        ),
    ],
)
def test_what_is_not_there_is_named_in_full(database: Database, text: str, name: str) -> None:
    with pytest.raises(SqlError, match="is not supported") as caught:
        database.bind(text)
    assert (caught.value.sqlstate, caught.value.message) == ("0A000", f"{name} is not supported")
