"""A real PostgreSQL is the judge of names, types, modifiers, parameters and errors with their positions."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import psycopg
import pytest
from psycopg.pq import DiagnosticField, ExecStatus

from catalog.values.errors import SqlError
from planner.bind import Bound
from planner.statements.statement import Query
from tests.planner.binding import STATEMENTS, TABLES, Database
from tests.rig.postgres import Postgres

pytestmark = pytest.mark.postgres


@pytest.fixture(scope="module")
def database() -> Database:
    return Database(TABLES)


@pytest.fixture(scope="module")
def connection(postgres: Postgres) -> Iterator[psycopg.Connection[Any]]:
    with postgres.connect() as found:
        found.execute("create schema bind")
        found.execute("set search_path = bind")
        found.execute(TABLES)
        yield found
        found.execute("drop schema bind cascade")


def ours(database: Database, text: str) -> tuple[Any, ...]:
    try:
        bound = database.bind(text)
    except SqlError as error:
        return (error.sqlstate, error.message, error.position, error.hint)
    return _described(bound)


def _described(bound: Bound) -> tuple[Any, ...]:
    statement: Any = bound.statement
    returning = getattr(statement, "returning", None)
    outputs = statement.outputs if isinstance(statement, Query) else returning.outputs if returning else ()
    columns = [(item.name, item.type.oid, item.typmod, item.table != 0, item.attribute) for item in outputs]
    return (columns, [kind.oid for kind in bound.parameters])


def theirs(connection: psycopg.Connection[Any], text: str) -> tuple[Any, ...]:
    result = connection.pgconn.prepare(b"", text.encode())
    if result.status == ExecStatus.FATAL_ERROR:
        fields = (
            DiagnosticField.SQLSTATE,
            DiagnosticField.MESSAGE_PRIMARY,
            DiagnosticField.STATEMENT_POSITION,
            DiagnosticField.MESSAGE_HINT,
        )
        state, message, position, hint = ((result.error_field(field) or b"").decode() for field in fields)
        return (state, message, int(position) if position else None, hint or None)
    found = connection.pgconn.describe_prepared(b"")
    columns = [
        ((found.fname(at) or b"").decode(), found.ftype(at), found.fmod(at), found.ftable(at) != 0, found.ftablecol(at))
        for at in range(found.nfields)
    ]
    return (columns, [found.param_type(at) for at in range(found.nparams)])


@pytest.mark.parametrize("text", STATEMENTS)
def test_binding_is_postgresqls(connection: psycopg.Connection[Any], database: Database, text: str) -> None:
    assert ours(database, text) == theirs(connection, text)


def definition_error(connection: psycopg.Connection[Any], text: str) -> tuple[Any, ...] | None:
    try:
        with connection.transaction(force_rollback=True):
            connection.execute(text)  # type: ignore[call-overload]
    except psycopg.Error as error:
        return (error.diag.sqlstate, error.diag.message_primary, error.diag.message_detail)
    return None


@pytest.mark.parametrize(
    "text",
    [
        "create table a (x int)",
        "create table z (x int, x text)",
        "create table z (x nosuch)",
        "create table z (x int primary key, y int primary key)",
        "create table z (x int, primary key (y))",
        "create table z (x int, unique (x, x))",
        "create table z (x int references nosuch)",
        "create table z (x int references b)",
        "create table z (x int references a (t))",
        "create table z (x text references a)",
        "create table z (x int, y int, foreign key (x, y) references a)",
        "create table z (x int default 'abc')",
        "create table z (x int default y, y int)",
        "create table z (x int default true)",
        "create table z (x int default (select 1))",
        "create table z (x int default sum(1))",
        "create table z (x int default 1 default 2)",
        "create table z (x int check (y > 1))",
        "create table z (x int check (x))",
        "create table z (x int check (x in (select 1)))",
        "create table z (x int, constraint c check (x > 1), constraint c check (x > 2))",
        "create table z (x varchar(0))",
        "create table z (x numeric(0))",
        "create table z (x numeric(2000))",
        "create table z (x text(5))",
        "create table z (x int not null default 5, y varchar(3) check (y <> 'a'), check (x > 1 and y is not null))",
        "create table nosch.z (x int)",
        "create view w as select zz from a",
        "create view w as select 1, 2",
        "create view w (p, q, r) as select 1, 2",
        "create view av as select 1",
        "create or replace view av as select i from a",
        "create or replace view av as select i as z, t, n from a",
        "create or replace view av as select i, t, n::text as nn from a",
        "create or replace view av as select i, t, n*2 as nn, v from a",
        "create or replace view a as select 1",
        "create view w as select $1",
        "drop table nosuch",
        "drop view nosuch",
        "drop table av",
        "drop view a",
        "drop table a",
        "drop table region",
        "drop table region, nation",
        "drop view av",
        "drop foreign table a",
        "truncate nosuch",
        "truncate region",
        "truncate region, nation",
        "truncate av",
        "copy (select zz from a) to stdout",
        "create foreign table fs (x int) server nosuch",
        "explain (foo) select 1",
    ],
)
def test_definitions_fail_as_postgresqls_do(connection: psycopg.Connection[Any], database: Database, text: str) -> None:
    try:
        database.bind(text)
        found = None
    except SqlError as error:
        found = (error.sqlstate, error.message, error.detail)
    assert found == definition_error(connection, text)
