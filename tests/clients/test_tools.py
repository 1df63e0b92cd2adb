"""Queries of graphical tools (``tools.sql``), on Millstream and on PostgreSQL over the same objects.

The names and types of columns and the numbers of rows must be equal, as each query asks for objects that both servers
have.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import psycopg
import pytest
from pglast import split

from tests.rig.postgres import Postgres
from tests.rig.server import Millstream

pytestmark = [pytest.mark.slow, pytest.mark.postgres]

Client = psycopg.Connection[Any]
QUERIES: Final = split(Path(__file__).with_name("tools.sql").read_text(), with_parser=False)
OBJECTS: Final = Path(__file__).with_name("dumped.sql").read_text()
#: Declared types have different oids on each server.
_DECLARED: Final = 16_384


@pytest.fixture(scope="module")
def both(server: Millstream, postgres: Postgres) -> Iterator[tuple[Client, Client]]:
    with postgres.connect() as client:
        client.execute("CREATE DATABASE inspected")
    with server.connect() as ours, psycopg.connect(postgres.dsn("inspected"), autocommit=True) as theirs:
        for client in (ours, theirs):
            client.execute(OBJECTS.encode())
        yield ours, theirs


@pytest.mark.parametrize("query", QUERIES)
def test_answered_as_by_postgresql(both: tuple[Client, Client], query: str) -> None:
    found, wanted = (outcome(client, query) for client in both)
    assert found == wanted


def outcome(client: Client, query: str) -> tuple[object, ...]:
    """The columns and the number of rows, or the error."""
    try:
        cursor = client.execute(query.encode())
    except psycopg.Error as error:
        return (error.sqlstate,)
    columns = [(item.name, min(item.type_code, _DECLARED)) for item in cursor.description or ()]
    return columns, len(cursor.fetchall())
