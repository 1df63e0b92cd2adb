"""GRANT and REVOKE on the database and on functions of schemas, compared with PostgreSQL: who may connect and create
objects."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import psycopg
import pytest

from tests.rig.postgres import Postgres
from tests.rig.server import Millstream

pytestmark = [pytest.mark.slow, pytest.mark.postgres]

ALICE, OWNER = "dr_alice", "owner"
HELD: Final = """
SELECT has_database_privilege('dr_alice', current_database(), 'CREATE'),
  has_database_privilege('dr_alice', '{db}', 'CONNECT, CREATE WITH GRANT OPTION'),
  has_database_privilege('dr_alice', (SELECT oid FROM pg_database WHERE datname = '{db}'), 'TEMP')
"""
ACL: Final = (
    "SELECT replace(replace(datacl::text, '{owner}', 'owner'), '{db}', 'db') FROM pg_database WHERE datname = '{db}'"
)

#: The role of each statement; {db} is the database, {owner} the superuser.
STATEMENTS: Final = [
    (ALICE, "CREATE SCHEMA dr_own"),
    (OWNER, HELD),
    (OWNER, "GRANT CREATE ON DATABASE {db} TO dr_alice WITH GRANT OPTION"),
    (OWNER, HELD),
    (OWNER, ACL),
    (ALICE, "CREATE SCHEMA dr_own"),
    (ALICE, "CREATE SCHEMA dr_other AUTHORIZATION dr_bob"),
    (ALICE, "GRANT CREATE ON DATABASE {db} TO dr_bob"),
    (OWNER, "REVOKE CREATE ON DATABASE {db} FROM dr_alice"),
    (OWNER, "REVOKE CREATE ON DATABASE {db} FROM dr_alice CASCADE"),
    (ALICE, "CREATE SCHEMA dr_more"),
    (OWNER, "REVOKE TEMP ON DATABASE {db} FROM PUBLIC"),
    (ALICE, "CREATE TEMP TABLE dr_another (a integer)"),
    (OWNER, "GRANT ALL PRIVILEGES ON DATABASE {db} TO dr_alice"),
    (OWNER, HELD),
    (OWNER, "DROP ROLE dr_bob"),
    (OWNER, "REVOKE ALL ON DATABASE {db} FROM dr_alice"),
    (OWNER, "REVOKE CONNECT ON DATABASE {db} FROM PUBLIC"),
    (ALICE, "connect"),
    (OWNER, "GRANT CONNECT, TEMPORARY ON DATABASE {db} TO PUBLIC"),
    (ALICE, "connect"),
    (OWNER, ACL),
    (OWNER, "GRANT SELECT ON DATABASE {db} TO dr_alice"),
    (OWNER, "GRANT CREATE ON DATABASE nope TO dr_alice"),
    (ALICE, "SELECT has_database_privilege('nope', 'CREATE')"),
    (OWNER, "GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA public TO dr_alice"),
    (OWNER, "REVOKE ALL ON ALL ROUTINES IN SCHEMA dr_own FROM PUBLIC"),
    (OWNER, "GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA dr_nope TO dr_alice"),
    (OWNER, "DROP SCHEMA dr_own"),
    (OWNER, "DROP ROLE dr_alice"),
]


@pytest.fixture(scope="module")
def servers(postgres: Postgres) -> Iterator[list[tuple[str, str]]]:
    """Superusers' connection strings with their databases' names."""
    with Millstream(settings={"spark_enabled": False}) as server:
        with postgres.connect() as client:
            client.execute("CREATE DATABASE rights")
        yield [(server.dsn(), "millstream"), (postgres.dsn("rights"), "rights")]


def test_as_in_postgresql(servers: list[tuple[str, str]]) -> None:
    found, wanted = (list(outcomes(dsn, database)) for dsn, database in servers)
    for (_, statement), ours, theirs in zip(STATEMENTS, found, wanted, strict=True):
        assert ours == theirs, statement


def outcomes(dsn: str, database: str) -> Iterator[tuple[object, ...]]:
    """The result of each statement."""
    with psycopg.connect(dsn, autocommit=True) as owner:
        owner.execute("CREATE ROLE dr_alice LOGIN")
        owner.execute("CREATE ROLE dr_bob")
        with psycopg.connect(dsn, user=ALICE, autocommit=True) as alice:
            for who, statement in STATEMENTS:
                text = statement.replace("{db}", database).replace("{owner}", owner.info.user)
                try:
                    if statement == "connect":
                        psycopg.connect(dsn, user=who).close()
                        yield ("in",)
                    else:
                        yield answer(alice if who == ALICE else owner, text)
                except psycopg.Error as error:
                    message = error.diag.message_primary or str(error).partition("FATAL:")[2]
                    yield error.sqlstate, message.replace(f'"{database}"', "it").replace(f" {database}", " it")


def answer(client: psycopg.Connection[Any], text: str) -> tuple[object, ...]:
    cursor = client.execute(text.encode())
    return cursor.statusmessage, sorted(cursor.fetchall()) if cursor.description is not None else None
