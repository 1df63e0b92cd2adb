"""From SQL text to bound statements over a catalog made by SQL text: the binder in front of this folder's tests."""

from __future__ import annotations

from collections.abc import Iterable

from catalog.catalog import Catalog
from planner.bind import Context, bind
from planner.parse.parser import parse
from planner.statements.definitions import CreateStream, CreateTable
from planner.statements.statement import CreateView, Query, Statement


def bound(text: str, catalog: Catalog) -> Statement:
    """One bound statement."""
    (raw,) = parse(text)
    return bind(raw, Context(catalog)).statement


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
    """A SELECT bound as a view's, so that it may read streams."""
    statement = bound(f"CREATE VIEW v AS {text}", catalog)
    assert isinstance(statement, CreateView)
    return statement.query
