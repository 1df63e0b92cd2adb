"""One server without Spark for all tests of this folder that need no other."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import psycopg
import pytest

from tests.rig.server import Millstream
from tests.server.cluster import cluster as cluster
from tests.server.cluster import wanted as wanted
from tests.server.wire import Wire

SETTINGS = {"maintenance_engine": "embedded", "spark_enabled": False, "max_connections": 40}


@pytest.fixture(scope="session")
def plain_server() -> Iterator[Millstream]:
    with Millstream(settings=SETTINGS) as server:
        yield server


@pytest.fixture(scope="module")
def running(plain_server: Millstream) -> Iterator[Millstream]:
    """A server in which a file's tests may create objects with their own names; they are removed before the next
    file."""
    yield plain_server
    with plain_server.connect() as connection:
        connection.execute("DROP SCHEMA public CASCADE; CREATE SCHEMA public; GRANT USAGE ON SCHEMA public TO PUBLIC")


@pytest.fixture
def sql(running: Millstream) -> Iterator[psycopg.Connection[Any]]:
    """An autocommit connection."""
    with running.connect() as connection:
        yield connection


@pytest.fixture
def wire(running: Millstream) -> Iterator[Wire]:
    """A bare socket after the start-up."""
    with Wire(running.port) as client:
        client.start()
        yield client
