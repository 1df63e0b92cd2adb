"""One database for all tests of a file that need only a schema of their own."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing

import pytest

from executor.database.database import Database
from tests.executor.client import Client, in_own_schema, open_database
from tests.executor.moving import a as a
from tests.executor.moving import patient as patient
from tests.executor.moving import servers as servers
from tests.executor.separating import everywhere as everywhere
from tests.executor.separating import in_slices as in_slices


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Database]:
    """A database without Spark."""
    with closing(open_database(tmp_path_factory.mktemp("database"))) as opened:
        yield opened


@pytest.fixture
def client(database: Database) -> Iterator[Client]:
    """A session whose schema is dropped after the test, with all objects in it."""
    with in_own_schema(database) as made:
        yield made
