"""Bound statements from SQL text, over a catalog made from SQL text, for the tests of this folder."""

from __future__ import annotations

from collections.abc import Iterable

from catalog.catalog import Catalog
from planner.algebra.validate import validate
from planner.bind import Context, bind
from planner.parse.parser import parse
from planner.statements.definitions import CreateStream, CreateTable
from planner.statements.statement import CreateView, Query, Statement


def bound(text: str, catalog: Catalog) -> Statement:
    """Binds one statement; checks that a query's relation is well formed."""
    (raw,) = parse(text)
    statement = bind(raw, Context(catalog)).statement
    if isinstance(statement, Query):
        validate(statement.relation)
    return statement


def catalog_of(statements: Iterable[str]) -> Catalog:
    """The catalog after CREATE TABLE and CREATE FOREIGN TABLE statements."""
    catalog = Catalog()
    for text in statements:
        match bound(text, catalog):
            case CreateTable(table=item):
                catalog = catalog.add(item)
            case CreateStream(stream=item):
                catalog = catalog.add(item)
            case other:
                raise AssertionError(other)
    return catalog


def query_of(text: str, catalog: Catalog) -> Query:
    """Binds a SELECT as a view's query, so that it may read streams."""
    statement = bound(f"CREATE VIEW v AS {text}", catalog)
    assert isinstance(statement, CreateView)
    return statement.query
