"""pgcli: its queries at start and for completions, and its own commands, compared with PostgreSQL."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import Any, Final

import pytest
from pgcli.pgexecute import PGExecute
from pgspecial.main import PGSpecial

from tests.rig.postgres import Postgres
from tests.rig.server import Millstream

pytestmark = [pytest.mark.slow, pytest.mark.postgres]

OBJECTS: Final = (
    "CREATE SCHEMA cli",
    "CREATE TYPE cli.mood AS ENUM ('good', 'bad')",
    "CREATE TABLE cli.parents (id integer PRIMARY KEY, name text DEFAULT 'x', feels cli.mood)",
    "CREATE TABLE cli.children (id serial, parent integer REFERENCES cli.parents, UNIQUE (parent))",
    "CREATE VIEW cli.named AS SELECT name FROM cli.parents",
)
COMMANDS: Final = (
    *(
        "\\d cli.parents",
        "\\d+ cli.children",
        "\\d+ cli.named",
        "\\dt cli.*",
        "\\dv+ cli.*",
        "\\di cli.*",
        "\\ds cli.*",
    ),
    *("\\dT cli.*", "\\dn", "\\du", "\\l", "\\df abs", "\\dx", "\\dp cli.*", "\\ddp", "\\db", "\\dE", "\\dm", "\\dD"),
    *("\\sv cli.named", "SELECT 1 AS one", "SELECT nothing"),
)


@pytest.fixture(scope="module")
def both(server: Millstream, postgres: Postgres) -> Iterator[tuple[PGExecute, PGExecute]]:
    """pgcli connected to both servers, with the same objects."""
    with postgres.connect() as client:
        client.execute("CREATE DATABASE for_cli")
    at = {"host": "127.0.0.1", "password": ""}
    found = (
        PGExecute(database="millstream", user="millstream", port=str(server.port), **at),
        PGExecute(database="for_cli", user="postgres", port=str(postgres.port), **at),
    )
    for client in found:
        for statement in OBJECTS:
            list(client.run(statement))
    yield found
    for client in found:
        client.conn.close()


def ours(rows: Any) -> list[Any]:
    """The objects in the test's schema; columns without their defaults, whose texts differ between the servers."""
    return sorted((row[:5] for row in rows if row[0] == "cli"), key=repr)


def test_completions(both: tuple[PGExecute, PGExecute]) -> None:
    for kind in ("tables", "views", "table_columns", "view_columns", "datatypes"):
        found, wanted = (ours(getattr(client, kind)()) for client in both)
        assert found == wanted != [], kind
    keys = [list(client.foreignkeys()) for client in both]
    assert keys[0] == keys[1] != []
    functions = [{item.func_name for item in client.functions()} for client in both]
    assert {"abs", "count", "generate_series"} <= functions[0]
    for client in both:
        assert client.search_path() == ["pg_catalog", "public"]
        assert {"cli", "pg_catalog"} <= set(client.schemata())
        assert client.dbname in client.databases()


def test_commands_have_postgresqls_columns(both: tuple[PGExecute, PGExecute], caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.CRITICAL)
    for command in COMMANDS:
        found, wanted = (outcome(client, command) for client in both)
        assert found == wanted, command


def outcome(client: PGExecute, command: str) -> list[object]:
    """Whether a command succeeds, and the columns of its output."""
    try:
        results = list(client.run(command, pgspecial=PGSpecial()))
    except Exception as error:
        return [type(error).__name__]
    return [(bool(ok), None if head is None else list(head)) for _, _, head, _, _, ok, _ in results]
