"""The same bad input on Millstream and on a real PostgreSQL: SQLSTATE, message, position and context agree."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from tests.rig.postgres import Postgres
from tests.rig.server import Millstream

pytestmark = [pytest.mark.postgres, pytest.mark.slow]

Client = psycopg.Connection[Any]
COLUMNS = "(sensor integer, value smallint, taken date, amount numeric(5,2))"
STATEMENTS = [
    line for line in Path(__file__).with_name("bad_statements.sql").read_text().splitlines() if line[:2] != "--"
]
CSV = [
    b"1,2,2024-01-01\n",
    b"1,2,2024-01-01,1.5,9\n",
    b"one,2,2024-01-01,1.5\n",
    b"1.5,2,2024-01-01,1.5\n",
    b"0x10,2,2024-01-01,1\n",
    b"1,40000,2024-01-01,1.5\n",
    b"9999999999,2,2024-01-01,1.5\n",
    b"1,2,2024-13-01,1.5\n",
    b"1,2,2024-02-30,1.5\n",
    b"1,2,soon,1.5\n",
    b"1,2,20240101,1.5\\\n",
    b"1,2,2024-01-01,1234.5\n",
    b"1,2,2024-01-01,999.999\n",
    b"1,2,2024-01-01,1e400\n",
    b"1,2,2024-01-01,abc\n",
    b'1,2,2024-01-01,"1.5\n',
    b'1,2,2024-01-01,"x"y\n',
    b"1,2,2024-01-01,\xff\n",
    b"1,2,2024-01-01,1\x00\n",
    b"1,2,2024-01-01,1.5\r\n",
    b"\n",
]
TEXT = [
    b"1\t2\n",
    b"1\t2\t2024-01-01\tx\n",
    b"1\t2\t2024-01-01\t1.5\t7\n",
    b"\n",
    b"1\t2\t2024-01-01\t1\r\n",
    b"a\\tb\t2\t2024-01-01\t1\n",
    b"\\N\t\\N\t\\N\t\\N\n\\.\nrubbish\n",
    b"1\t2\t2024-01-01\t\\\\N\n",
    b"1\t2\t2024-01-01\t\xc3\x28\n",
]
_SIGNATURE = b"PGCOPY\n\xff\r\n\0" + bytes(8)
BINARY = [
    b"",
    b"1,2,3\n" * 9,
    _SIGNATURE + struct.pack(">h", 3),
    _SIGNATURE + struct.pack(">hii", 1, 4, 1),
]


@pytest.fixture(scope="module")
def clients(postgres: Postgres) -> Iterator[tuple[Client, Client]]:
    """Both servers with the same relations, the stream a table in PostgreSQL."""
    settings = {"maintenance_engine": "embedded", "spark_enabled": False}
    with Millstream(settings=settings) as server, server.connect() as ours, postgres.connect() as theirs:
        theirs.execute("CREATE SCHEMA bad_input")
        theirs.execute("SET search_path = bad_input")
        ours.execute(f"CREATE FOREIGN TABLE readings {COLUMNS} SERVER stream".encode())
        theirs.execute(f"CREATE TABLE readings {COLUMNS}".encode())
        for client in (ours, theirs):
            client.execute("CREATE VIEW counts AS SELECT count(*), sum(sensor) FROM readings")
            client.execute("CREATE TABLE plants (id integer PRIMARY KEY, name text NOT NULL, height numeric(5,2))")
        yield ours, theirs
        theirs.execute("DROP SCHEMA bad_input CASCADE")


def compare(clients: tuple[Client, Client], action: Callable[[Client], object]) -> None:
    """Checks that both fail alike, or neither does; Millstream may give a position where PostgreSQL has none."""
    ours, theirs = (outcome(client, action) for client in clients)
    if theirs["position"] is None:
        ours["position"] = None
    assert ours == theirs
    counts = [client.execute("SELECT count FROM counts").fetchall() for client in clients]
    assert counts[0] == counts[1]


def outcome(client: Client, action: Callable[[Client], object]) -> dict[str, str | None]:
    """The fields of an error."""
    try:
        action(client)
    except psycopg.Error as error:
        told = error.diag
        return {
            "sqlstate": error.sqlstate,
            "message": told.message_primary,
            "position": told.statement_position,
            "context": told.context,
        }
    return {"sqlstate": None, "message": None, "position": None, "context": None}


@pytest.mark.parametrize("statement", STATEMENTS)
def test_statement_fails_as_in_postgresql(clients: tuple[Client, Client], statement: str) -> None:
    compare(clients, lambda client: client.execute(statement.encode()))


@pytest.mark.parametrize(
    ("form", "good", "bad"),
    [
        *(("csv", b"1,2,2024-01-01,1.50\n", data) for data in CSV),
        *(("text", b"1\t2\t2024-01-01\t\\N\n", data) for data in TEXT),
        *(("binary", b"", data) for data in BINARY),
    ],
)
def test_copy_fails_as_in_postgresql(clients: tuple[Client, Client], form: str, good: bytes, bad: bytes) -> None:
    def copy(client: Client) -> None:
        with client.cursor() as cursor, cursor.copy(f"COPY readings FROM STDIN (FORMAT {form})".encode()) as writer:
            writer.write(good * 2 + bad)

    compare(clients, copy)
