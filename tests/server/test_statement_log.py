"""The log of clients and their statements: on request, complete, and without passwords."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest
from psycopg.rows import tuple_row

from planner.parse.parser import without_passwords
from tests.rig.process import wait_until
from tests.rig.server import Millstream

SETTINGS = {"maintenance_engine": "embedded", "spark_enabled": False, "log_format": "json"}
#: Fields of a line of text.
_FIELDS = re.compile(r'(\w+)=("(?:[^"\\]|\\.)*"|\S+)')
FORGED = 'q address=1.2.3.4 user=root "\\'


@pytest.fixture(scope="module")
def logging() -> Iterator[Millstream]:
    """A server that logs connections and disconnections."""
    with Millstream(settings={**SETTINGS, "log_connections": True, "log_disconnections": True}) as server:
        yield server


def _events(server: Millstream, name: str) -> list[dict[str, Any]]:
    lines = [json.loads(line) for line in server.log().splitlines()]
    return [line for line in lines if line["logger"].rpartition(".")[2] == name]


def _logged(server: Millstream, client: psycopg.Connection[Any], level: str, *texts: str) -> list[str]:
    """The logged ones of some statements."""
    before = len(_events(server, "statement_log"))
    client.execute(f"SET log_statement = '{level}'".encode())
    for text in texts:
        client.execute(text.encode())
    client.execute("SET log_statement = none")
    return [event["text"] for event in _events(server, "statement_log")[before:]]


@pytest.mark.slow
def test_statements_are_logged_by_their_class(logging: Millstream) -> None:
    ddl = ("CREATE TABLE t (a integer)", "GRANT SELECT ON t TO public", "SELECT 1 AS a INTO u", "DROP TABLE u")
    mod = ("INSERT INTO t VALUES (1)", "UPDATE t SET a = 2", "TRUNCATE t", "EXPLAIN ANALYZE DELETE FROM t")
    rest = ("SELECT a FROM t", "EXPLAIN DELETE FROM t", "BEGIN", "COMMIT", "SELECT a FROM t")
    asked = {"none": (), "ddl": ddl, "mod": (*ddl, *mod), "all": (*ddl, *mod, *rest, *rest)}
    with logging.connect() as client:
        for level, wanted in asked.items():
            found = _logged(logging, client, level, *ddl, *mod, *rest, *rest)
            assert found == [*wanted, *(["SET log_statement = none"] if level == "all" else [])]
            client.execute("DROP TABLE t")


@pytest.mark.slow
def test_a_prepared_statement_is_logged_each_time_with_its_values(logging: Millstream) -> None:
    with logging.connect(row_factory=tuple_row) as client:
        client.execute("CREATE TABLE p (a integer, b text)")
        client.execute("SET log_statement = 'all'")
        before = len(_events(logging, "statement_log"))
        for number in range(12):
            client.execute("INSERT INTO p VALUES (%s, %s)", (number, "x y"), prepare=True)
            client.execute("SELECT b FROM p WHERE a = %s", (number,), prepare=True)
        found = _events(logging, "statement_log")[before:]
        assert len(found) == 24
        assert [event["parameters"] for event in found[-2:]] == ["['11', 'x y']", "['11']"]
        client.execute("DROP TABLE p")


@pytest.mark.slow
def test_only_superusers_choose_what_is_logged(logging: Millstream) -> None:
    with logging.connect() as client:
        client.execute("CREATE ROLE plain LOGIN")
        client.execute("SET ROLE plain")
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            client.execute("SET log_statement = none")
        client.execute("RESET ROLE; DROP ROLE plain")


@pytest.mark.slow
def test_connections_are_logged_with_names_that_forge_nothing(logging: Millstream) -> None:
    with logging.connect() as client:
        client.execute(b'CREATE ROLE "q address=1.2.3.4 user=root ""\\" LOGIN')
    with psycopg.connect(host="127.0.0.1", port=logging.port, user=FORGED, dbname="millstream"):
        pass
    with pytest.raises(psycopg.OperationalError):
        psycopg.connect(host="127.0.0.1", port=logging.port, user="none\nsuch=1", dbname="millstream")
    wait_until(lambda: any(event.get("user") == FORGED for event in _events(logging, "session")), 60, "the end")
    (ended,) = (event for event in _events(logging, "session") if event.get("user") == FORGED)
    (began, *_) = (event for event in _events(logging, "startup") if event.get("user") == FORGED)
    assert (began["method"], began["host"], ended["pid"]) == ("trust", "127.0.0.1", began["pid"])
    assert any(event["port"] == began["port"] for event in _events(logging, "connection"))
    (failed,) = (event for event in _events(logging, "startup") if event.get("user") == "none\nsuch=1")
    assert failed["address"] == "127.0.0.1"
    fields = {name: value.strip('"') for name, value in _FIELDS.findall(began["message"])}
    assert (fields["user"], fields["host"]) == ('q address=1.2.3.4 user=root \\"\\\\', "127.0.0.1")
    assert "address" not in fields


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("SELECT 'x'", "SELECT 'x'"),
        ("CREATE ROLE a PASSWORD 'pw'", "CREATE ROLE a PASSWORD '********'"),
        ("alter role a encrypted password /* p */ E'p\\'w'; SELECT 1",
         "alter role a encrypted password /* p */ '********'; SELECT 1"),
        ("CREATE USER é PASSWORD $x$pw$x$ LOGIN", "CREATE USER é PASSWORD '********' LOGIN"),
        ("CREATE USER a PASSWORD U&'pw'", "CREATE USER a PASSWORD '********'"),
        ("ALTER ROLE a PASSWORD NULL", "ALTER ROLE a PASSWORD NULL"),
        ("DO $$BEGIN CREATE ROLE a PASSWORD 'pw'; END$$", "DO $$BEGIN CREATE ROLE a PASSWORD '********'; END$$"),
        ("DO 'BEGIN EXECUTE ''CREATE ROLE a PASSWORD ''''pw''''''; END'",
         "DO 'BEGIN EXECUTE ''CREATE ROLE a PASSWORD ''''********''''''; END'"),
        ("SELECT E'password \\'pw\\''", "SELECT '********'"),
        ("SELECT password FROM t WHERE a = 'pw'", "SELECT password FROM t WHERE a = 'pw'"),
        ("PASSWORD 'pw", "<text that mentions a password>"),
    ],
)  # fmt: skip
def test_passwords_are_not_shown(text: str, shown: str) -> None:
    assert without_passwords(text) == shown
