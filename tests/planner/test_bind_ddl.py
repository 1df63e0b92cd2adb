"""Definitions: tables, streams, views and their options, DROP."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from catalog.objects import Check, ForeignKey, UniqueKey
from catalog.values.errors import SqlError
from catalog.values.types import INT4, INT8, SqlType
from planner.statements.definitions import CreateStream, CreateTable, Drop, Truncate
from planner.statements.statement import AlterView, CreateView, NoOperation
from tests.planner.binding import Database, standard


@pytest.fixture
def database() -> Database:
    return standard()


def test_a_tables_constraints_get_postgresqls_names(database: Database) -> None:
    text = """create table z (x int primary key check (x > 1) references region,
        y varchar(3) not null default 'a' || 'b', n bigint, unique (y, n), unique (y),
        constraint c check (n > x), check (n > x), check (n > x),
        foreign key (n) references z (x) on delete cascade) with (fillfactor = 70)"""
    found = database.bind(text).statement
    assert isinstance(found, CreateTable)
    table = found.table
    assert [(c.name, c.type, c.not_null, c.default) for c in table.columns] == [
        ("x", INT4, True, None),
        ("y", SqlType("varchar", (3,)), True, "('a'::text || 'b'::text)"),
        ("n", INT8, False, None),
    ]
    assert table.keys == (
        UniqueKey("z_pkey", ("x",), True),
        UniqueKey("z_y_n_key", ("y", "n")),
        UniqueKey("z_y_key", ("y",)),
    )
    assert table.checks == (
        Check("z_x_check", "(x > 1)"),
        Check("c", "(n > x)"),
        Check("z_check", "(n > x)"),
        Check("z_check1", "(n > x)"),
    )
    region = database.catalog.at("public", "region")
    assert region is not None
    assert table.foreign_keys == (
        ForeignKey("z_x_fkey", ("x",), region.oid, ("r_regionkey",)),
        ForeignKey("z_n_fkey", ("n",), table.oid, ("x",), "c"),
    )


def test_if_not_exists_says_that_it_exists(database: Database) -> None:
    for text in ("create table if not exists a (x int)", "create foreign table if not exists s (x int) server stream"):
        statement: Any = database.bind(text).statement
        assert statement.exists


@pytest.mark.parametrize("server", ["stream", "pipelinedb"])
def test_streams_are_foreign_tables(database: Database, server: str) -> None:
    columns = "k int not null, w text default 'x'"
    text = f"create foreign table z ({columns}) server {server} options (source 'files', path '/d')"
    found = database.bind(text).statement
    assert isinstance(found, CreateStream)
    assert [(c.name, c.not_null, c.default) for c in found.stream.columns] == [
        ("k", True, None),
        ("w", False, "'x'::text"),
    ]
    assert found.stream.option("path") == "/d"


@pytest.mark.parametrize(
    ("text", "sqlstate"),
    [
        ("create foreign table z (k int) server other", "42704"),
        ("create foreign table z () server stream", "42601"),
        ("create foreign table z (k interval) server stream options (source 'files', path '/d')", "0A000"),
        ("create foreign table z (k int primary key) server stream", "0A000"),
        ("create foreign table z (k int check (k > 1)) server stream", "0A000"),
        ("create foreign table z (k int) server stream options (nosuch 'x')", "HV00D"),
        ("create foreign table z (k int) server stream options (source 'kafka')", "22023"),
        ("create foreign table s (k int) server stream", "42P07"),
        ("create server stream foreign data wrapper x", "42939"),
        ("create server other foreign data wrapper x", "0A000"),
        ("create temp view z as select count(*) from s", "0A000"),
        ("create foreign table pg_temp.z (k int) server stream", "0A000"),
        ("create temp table public.z (k int)", "42P16"),
        ("create table z (k int) on commit drop", "42P16"),
        ("create table pg_catalog.z (k int)", "42501"),
        ("create table millstream.z (k int)", "42501"),
        ("create schema z create table y.t (k int)", "42P15"),
        ("create schema pg_z", "42939"),
        ("drop schema millstream", "2BP01"),
        ("alter schema pg_catalog rename to z", "42501"),
        ("alter table a set schema pg_catalog", "42501"),
        ("alter table a set schema nosuch", "3F000"),
        ("create type pg_temp.z as enum ('a')", "0A000"),
        ("create domain pg_temp.z as int", "0A000"),
        ("create foreign table z (k int[]) server stream", "0A000"),
        ("create table z (k pg_catalog.timestamp(3, 1))", "22023"),
        ("create foreign table z (k timestamp(3)) server files options (path '/x')", "0A000"),
        ("create table z (k jsonpath)", "0A000"),
        ("create table z (i int, n int, foreign key (i) references a (i) on delete set null (n))", "42P10"),
        ("create table z (k numeric(50, 2))", "0A000"),
        ("create table z (__rowid int)", "42939"),
        ("create table z (k int) partition by range (k)", "0A000"),
        ("create view z as select 1 with check option", "0A000"),
        ("create view z with (retention = '1 day') as select count(*) from s", "55000"),
        ("create view z with (nosuch = 1) as select count(*) from s", "22023"),
        ("create view z with (maintenance_engine = flink) as select count(*) from s", "22023"),
        ("create view z with (action = transform) as select count(*) from s", "0A000"),
        ("alter table s add column z int not null", "0A000"),
        ("alter table b attach partition z default", "0A000"),
        ("drop schema public", "2BP01"),
    ],
)
def test_what_cannot_be_defined_is_an_error(database: Database, text: str, sqlstate: str) -> None:
    with pytest.raises(SqlError) as caught:
        database.bind(text)
    assert caught.value.sqlstate == sqlstate


def view(database: Database, text: str) -> CreateView:
    found = database.bind(text).statement
    assert isinstance(found, CreateView)
    return found


def test_a_view_over_a_stream_is_continuous(database: Database) -> None:
    found = view(
        database, "create view z (a, b) with (maintenance_engine = spark) as select k, sum(v) from s group by k"
    )
    assert (found.view.continuous, found.view.options) == (True, (("maintenance_engine", "spark"),))
    assert [column.name for column in found.view.columns] == ["a", "b"]
    assert found.view.definition == "select k, sum(v) from s group by k"
    assert dict(found.view.settings) == {"TimeZone": "UTC", "search_path": "public"}


def test_pipelinedbs_and_materialized_spellings_are_the_same(database: Database) -> None:
    query = "select k, count(*) from s group by k"
    plain = view(database, f"create view z as {query}").view
    assert view(database, f"create view z with (action=materialize) as {query}").view == plain
    made = view(database, f"create materialized view z as {query} with no data")
    assert made.view == replace(plain, materialized=True) and len(made.notices) == 1


def test_a_view_is_continuous_through_subqueries_and_with(database: Database) -> None:
    text = "create view z as with q as (select k from s) select count(*) from (select k from q) p"
    assert view(database, text).view.continuous


def test_an_unread_with_query_does_not_count(database: Database) -> None:
    found = view(database, "create view z as with q as (select k from s) select i from a").view
    assert not found.continuous
    assert len(found.depends_on) == 1


def test_replacing_keeps_the_oid(database: Database) -> None:
    found = view(database, "create or replace view av as select i, t, n + 1 - 1 - n * 0 as nn from a where i > 3")
    old = database.catalog.at("public", "av")
    assert old is not None
    assert (found.replaces, found.view.oid) == (True, old.oid)


def test_options_are_altered(database: Database) -> None:
    database.run("alter view cv set (maintenance_engine = embedded)")
    found = database.bind("alter view cv set (maintenance_engine = 'auto')").statement
    assert isinstance(found, AlterView)
    assert found.view.options == (("maintenance_engine", "auto"),)
    reset: Any = database.bind("alter materialized view cv reset (maintenance_engine)").statement
    assert reset.view.options == ()
    assert database.bind("alter view if exists nosuch set (maintenance_engine = auto)").statement == NoOperation(
        "ALTER VIEW"
    )


def test_cascade_drops_dependents_first(database: Database) -> None:
    database.run("create view w as select k from cv; create view ww as select w.k, cv.total from w, cv")
    oids = {name: database.catalog.names[("public", name)] for name in ("s", "cv", "w", "ww")}
    found = database.bind("drop foreign table s cascade").statement
    assert isinstance(found, Drop)
    assert found.oids == (oids["ww"], oids["w"], oids["cv"], oids["s"])
    assert found.notices == ("drop cascades to 3 other objects",)


def test_restrict_names_the_dependents(database: Database) -> None:
    with pytest.raises(SqlError) as caught:
        database.bind("drop foreign table s")
    error = caught.value
    assert (error.sqlstate, error.detail) == ("2BP01", "view cv depends on foreign table s")
    assert error.message == "cannot drop foreign table s because other objects depend on it"


def test_missing_objects_are_tolerated_on_request(database: Database) -> None:
    found = database.bind("drop view if exists nosuch, cv").statement
    assert isinstance(found, Drop)
    assert found.notices == ('view "nosuch" does not exist, skipping',)
    assert len(found.oids) == 1


def test_truncate_takes_referencing_tables_along(database: Database) -> None:
    found = database.bind("truncate region cascade").statement
    assert isinstance(found, Truncate)
    assert [table.name for table in found.targets] == ["region", "nation"]


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("truncate s", "Rows of a stream are never deleted"),
        ("select * from s tablesample system (10)", "by a condition"),
    ],
)
def test_what_a_stream_does_not_do_says_what_to_do(database: Database, text: str, hint: str) -> None:
    with pytest.raises(SqlError) as caught:
        database.bind(text)
    assert caught.value.sqlstate == "0A000"
    assert caught.value.hint is not None
    assert hint in caught.value.hint
