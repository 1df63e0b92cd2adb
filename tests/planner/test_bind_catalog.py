"""Every system relation and every function about the catalog can be bound: their texts are data."""

from __future__ import annotations

import pytest

from catalog.catalog import Catalog
from catalog.system import system_catalog
from catalog.system.functions import READ, SCALARS, SHOWN
from planner.bind import Context, bind
from planner.parse import parse


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


@pytest.mark.parametrize("kind", sorted(SHOWN))
def test_names_of_oids(catalog: Catalog, kind: str) -> None:
    bind(parse(f"SELECT oid::{kind}::text FROM pg_class")[0], Context(catalog))


@pytest.mark.parametrize("kind", sorted(READ))
def test_oids_of_names(catalog: Catalog, kind: str) -> None:
    bind(parse(f"SELECT relname::{kind} FROM pg_class")[0], Context(catalog))
