"""One server without Spark for all tests of this folder that need a plain one."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import psycopg
import pytest

from tests.rig.server import Millstream
from tests.server.wire import Wire

SETTINGS = {"maintenance_engine": "embedded", "spark_enabled": False, "max_connections": 40}


@pytest.fixture(scope="session")
def running() -> Iterator[Millstream]:
    """A server that every test may use for objects with names of its own."""
    with Millstream(settings=SETTINGS) as server:
        yield server


@pytest.fixture
def sql(running: Millstream) -> Iterator[psycopg.Connection[Any]]:
    """An autocommit connection."""
    with running.connect() as connection:
        yield connection


@pytest.fixture
def wire(running: Millstream) -> Iterator[Wire]:
    """A bare socket after its start-up."""
    with Wire(running.port) as client:
        client.start()
        yield client
