"""The read set of a plan: the plan survives definitions that do not concern it, and no others."""

from __future__ import annotations

import pytest

from catalog.catalog import Catalog
from catalog.read_set import Look
from catalog.system import system_catalog
from planner.bind import Context, bind
from planner.parse.parser import parse
from planner.statements.statement import Statement
from server.plans.planning import PlanCache, Surroundings
from tests.planner.binding import Database

BEFORE = """
CREATE SCHEMA own;
CREATE TABLE t (a int PRIMARY KEY, b text);
CREATE TABLE u (a int, c numeric(8, 2) DEFAULT 1);
CREATE VIEW v AS SELECT a, b FROM t WHERE a > 0;
"""
QUERIES = (
    "SELECT * FROM t",
    "SELECT t.b, u.c FROM t JOIN u USING (a)",
    "SELECT * FROM v",
    "SELECT a FROM public.t WHERE b = $1",
    "SELECT relname FROM pg_class WHERE pg_table_is_visible(oid) AND relnamespace = 'public'::regnamespace",
    "SELECT 't'::regclass, current_schemas(true)",
    "SELECT 1 + length('x')",
    "INSERT INTO u (a) VALUES ($1)",
    "UPDATE t SET b = 'x' FROM u WHERE u.a = t.a",
)
DEFINITIONS = (
    "CREATE TABLE x (a int)",
    "CREATE TABLE own.t (a int)",
    "CREATE VIEW w AS SELECT 1 AS one",
)


def _database(text: str = BEFORE) -> Database:
    database = Database()
    database.catalog = system_catalog()
    database.run(text)
    return database


def _bound(text: str, catalog: Catalog, search_path: tuple[str, ...] = ("public",)) -> Statement:
    (raw,) = parse(text)
    return bind(raw, Context(catalog, search_path)).statement


@pytest.mark.parametrize("text", QUERIES)
def test_what_still_holds_is_bound_alike(text: str) -> None:
    """The law of ``Seen``: if it holds, binding again gives the same plan."""
    database = _database()
    start = database.catalog
    versions = []
    for definition in DEFINITIONS:
        database.run(definition)
        versions.append(database.catalog)
    for name in ("t", "u", "v"):
        versions.append(start.drop(start.names["public", name]))
    held = 0
    for path in (("public",), ("own", "public")):
        look = Look(start)
        statement = _bound(text, look.catalog, path)
        for catalog in versions:
            if look.seen.holds(catalog):
                held += 1
                assert _bound(text, catalog, path) == statement
    assert held


def test_only_what_is_looked_at_counts() -> None:
    database = _database()
    look = Look(database.catalog)
    _bound("SELECT * FROM t", look.catalog)
    seen = look.seen
    database.run("CREATE TABLE x (a int)")
    assert seen.holds(database.catalog)
    assert seen.within(database.catalog).holds(database.catalog)
    gone = database.catalog.drop(database.catalog.names["public", "t"])
    assert not seen.holds(gone)
    again = _database(BEFORE.replace("b text", "b int")).catalog
    assert not seen.holds(again)


def test_a_name_that_was_not_found_counts() -> None:
    """A table of the same name in an earlier schema of the path."""
    database = _database()
    look = Look(database.catalog)
    _bound("SELECT * FROM t", look.catalog, ("own", "public"))
    database.run("CREATE TABLE own.t (other int)")
    assert not look.seen.holds(database.catalog)


def test_a_read_of_the_whole_catalog_depends_on_every_change() -> None:
    database = _database()
    look = Look(database.catalog)
    list(look.catalog.contents("own"))
    assert look.seen.holds(database.catalog)
    database.run("CREATE TABLE x (a int)")
    assert not look.seen.holds(database.catalog)


def test_plans_of_rows_outlive_other_definitions() -> None:
    database, cache = _database(), PlanCache()

    def around() -> Surroundings:
        return Surroundings(database.catalog, ("public",), "UTC", "millstream", "millstream", "millstream")

    (query,), (definition,) = cache.parse("SELECT * FROM t"), cache.parse("CREATE TABLE x (a int)")
    plan, other = cache.plan(query, (), around()), cache.plan(definition, (), around())
    database.run("CREATE TABLE y (a int)")
    kept = cache.planned(query, (), around())
    assert kept is not None
    assert kept.statement is plan.statement
    assert kept.catalog is database.catalog
    assert kept.serial != plan.serial
    assert cache.planned(definition, (), around()) is None
    assert cache.plan(definition, (), around()).statement != other.statement
    database.catalog = database.catalog.drop(database.catalog.names["public", "t"])
    assert cache.planned(query, (), around()) is None
