"""CREATE FUNCTION and calls of user-defined functions: refusals, and the bound form of a call."""

from __future__ import annotations

import pytest

from catalog.values.errors import SqlError
from catalog.values.types import INT4, SqlType
from planner.statements.definitions import CreateFunction, DropFunction
from planner.statements.statement import Query
from tests.planner.binding import Database

REFUSED = {
    "language plpgsql as 'begin return 1; end'": "a function of language plpgsql",
    "language c as 'f'": "a function of language c",
    "language sql security definer as 'select 1'": "SECURITY DEFINER",
    "language sql set search_path = public as 'select 1'": "SET in a function",
    "language sql transform for type int as 'select 1'": "TRANSFORM",
    "language sql as 'select 1; select 2'": "a function of several statements",
    "language sql as 'delete from b'": "a function that changes data",
    "language sql as 'select count(*)::int from s'": 'a function that reads the stream "s"',
    "language sql begin atomic select 1; end": "BEGIN ATOMIC",
}


@pytest.fixture
def database() -> Database:
    from tests.planner.binding import STREAMS, TABLES

    return Database(TABLES + STREAMS)


def defined(database: Database, sql: str) -> CreateFunction:
    statement = database.bind(sql).statement
    assert isinstance(statement, CreateFunction)
    database.catalog = database.catalog.put_function(statement.function)
    return statement


@pytest.mark.parametrize("rest", REFUSED)
def test_what_is_no_expression_is_refused(database: Database, rest: str) -> None:
    with pytest.raises(SqlError) as raised:
        database.bind(f"create function f() returns int {rest}")
    assert raised.value.sqlstate == "0A000"
    assert raised.value.message == f"{REFUSED[rest]} is not supported"


@pytest.mark.parametrize(
    "sql",
    [
        "create function f(x anyelement) returns int language sql as 'select 1'",
        "create function f(out a int) language sql as 'select 1'",
        "create function f() returns void language sql as 'select 1'",
        "create function f() returns b language sql as 'select 1'",
        "create procedure f() language sql as 'select 1'",
    ],
)
def test_other_forms_are_refused(database: Database, sql: str) -> None:
    with pytest.raises(SqlError) as raised:
        database.bind(sql)
    assert raised.value.sqlstate == "0A000"


def test_a_call_becomes_its_body(database: Database) -> None:
    defined(database, "create function f(x int) returns int language sql as 'select x + 1'")
    called = database.bind("select f(i) from a").statement
    written = database.bind("select i + 1 from a").statement
    assert isinstance(called, Query)
    assert isinstance(written, Query)
    assert type(called.relation) is type(written.relation)
    assert called.outputs[0].type == written.outputs[0].type


def test_a_volatile_argument_is_computed_once(database: Database) -> None:
    defined(database, "create function once(x float8) returns float8 language sql as 'select x + 1'")
    defined(database, "create function twice(x float8) returns float8 language sql as 'select x + x'")
    assert isinstance(database.bind("select once(random())").statement, Query)
    with pytest.raises(SqlError) as raised:
        database.bind("select twice(random())")
    assert raised.value.sqlstate == "0A000"


def test_a_function_that_calls_itself_is_refused(database: Database) -> None:
    defined(database, "create function f(x int) returns int language sql as 'select x'")
    with pytest.raises(SqlError) as raised:
        database.bind("create or replace function f(x int) returns int language sql as 'select f(x - 1)'")
    assert raised.value.sqlstate == "0A000"


def test_a_continuous_views_function_stays(database: Database) -> None:
    text = "create {}function f(x int) returns int language sql immutable as 'select x + {}'"
    defined(database, text.format("", 1))
    database.run("create view v as select k, sum(f(v)) from s group by k")
    for sql, sqlstate in ((text.format("or replace ", 2), "0A000"), ("drop function f", "2BP01")):
        with pytest.raises(SqlError) as raised:
            database.bind(sql)
        assert raised.value.sqlstate == sqlstate


def test_drop_finds_a_function_by_name_alone(database: Database) -> None:
    function = defined(database, "create function f(x int) returns int language sql as 'select x'").function
    found = database.bind("drop function f").statement
    assert found == DropFunction((function,))


def test_a_drivers_parameter_for_the_result_is_no_argument(database: Database) -> None:
    defined(database, "create function f(x int) returns int language sql as 'select x'")
    assert isinstance(database.bind("select * from f($1, $2) as r", (INT4, SqlType("void"))).statement, Query)
