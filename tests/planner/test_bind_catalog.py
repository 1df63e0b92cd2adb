"""Every system relation and every function about the catalog can be bound, as their definitions are data."""

from __future__ import annotations

import pytest

from catalog.catalog import Catalog
from catalog.system import system_catalog
from catalog.system.functions import OF_SUBQUERIES, READ, SCALARS, SHOWN
from planner.algebra.nodes import Scan
from planner.algebra.walk import walk
from planner.bind import Context, bind
from planner.parse.parser import parse
from planner.statements.statement import Query


@pytest.fixture(scope="module")
def catalog() -> Catalog:
    return system_catalog()


@pytest.mark.slow
def test_relations(catalog: Catalog) -> None:
    bound = [
        bind(parse(f"SELECT * FROM {item.schema}.{item.name}")[0], Context(catalog))
        for item in catalog.objects.values()
    ]
    assert len(bound) > 200


@pytest.mark.parametrize("signature", sorted(SCALARS))
def test_functions(catalog: Catalog, signature: str) -> None:
    name, _, types = signature.partition("(")
    arguments = [f'NULL::"{kind.strip()}"' for kind in types.rstrip(")").split(",") if kind.strip()]
    bind(parse(f"SELECT pg_catalog.{name}({', '.join(arguments)})")[0], Context(catalog))


@pytest.mark.parametrize("signature", sorted(OF_SUBQUERIES))
def test_an_argument_that_is_a_subquery_is_computed_once(catalog: Catalog, signature: str) -> None:
    name, _, kind = signature.rstrip(")").partition("(")
    text = f"SELECT {name}(pg_table_size(oid)::{kind}) FROM pg_class"
    bound = bind(parse(text)[0], Context(catalog)).statement
    assert isinstance(bound, Query)
    assert [item.name for item in walk(bound.relation) if isinstance(item, Scan)].count("sizes") == 1


@pytest.mark.parametrize("kind", sorted(SHOWN))
def test_names_of_oids(catalog: Catalog, kind: str) -> None:
    bind(parse(f"SELECT oid::{kind}::text FROM pg_class")[0], Context(catalog))


@pytest.mark.parametrize("kind", sorted(READ))
def test_oids_of_names(catalog: Catalog, kind: str) -> None:
    bind(parse(f"SELECT relname::{kind} FROM pg_class")[0], Context(catalog))
