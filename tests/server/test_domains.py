"""Domains beyond single statements: COPY, RowDescription, streams, messages, and restarts."""

from __future__ import annotations

from typing import Any

import psycopg
import pytest

from tests.rig.server import Millstream

Client = psycopg.Connection[Any]


@pytest.fixture
def client(sql: Client) -> Client:
    sql.execute("DROP TABLE IF EXISTS t")
    sql.execute("DROP DOMAIN IF EXISTS code, positive")
    sql.execute("CREATE DOMAIN positive AS int CHECK (VALUE > 0)")
    sql.execute("CREATE DOMAIN code AS varchar(3) DEFAULT 'new' NOT NULL CONSTRAINT low CHECK (VALUE = lower(VALUE))")
    sql.execute("CREATE TABLE t (id positive, c code)")
    return sql


def test_a_domain_is_its_base_type_on_the_wire(client: Client) -> None:
    cursor = client.execute("SELECT id, c, 'ab'::code FROM t")
    assert cursor.description is not None
    assert [(item.type_display, item.display_size) for item in cursor.description] == [
        ("int4", None),
        ("varchar(3)", 3),
        ("varchar(3)", 3),
    ]


@pytest.mark.parametrize(
    ("line", "state", "message"),
    [
        ("0\tab", "23514", 'value for domain positive violates check constraint "positive_check"'),
        ("1\tAB", "23514", 'value for domain code violates check constraint "low"'),
        ("1\t\\N", "23502", "domain code does not allow null values"),
        ("1\tabcd", "22001", "value too long for type character varying(3)"),
    ],
)
def test_copy_is_checked(client: Client, line: str, state: str, message: str) -> None:
    with pytest.raises(psycopg.Error) as raised, client.cursor().copy("COPY t FROM STDIN") as copy:
        copy.write(f"5\tok\n{line}\n")
    assert (raised.value.sqlstate, raised.value.diag.message_primary) == (state, message)
    assert client.execute("SELECT count(*) FROM t").fetchone() == (0,)


def test_copy_fills_in_a_domains_default(client: Client) -> None:
    with client.cursor().copy("COPY t (id) FROM STDIN") as copy:
        copy.write("1\n\\N\n")
    assert client.execute("SELECT id, c FROM t ORDER BY id").fetchall() == [(1, "new"), (None, "new")]


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("INSERT INTO t VALUES (-1)", 'value for domain positive violates check constraint "positive_check"'),
        ("INSERT INTO t VALUES (1, NULL)", "domain code does not allow null values"),
        ("SELECT 0::positive", 'value for domain positive violates check constraint "positive_check"'),
        ("SELECT random()::int::positive", "a volatile function as a value of a domain is not supported"),
        ("SELECT '{0}'::positive[]", 'value for domain positive violates check constraint "positive_check"'),
        ("CREATE DOMAIN list AS int[]; SELECT '{}'::list[]", "an array of a domain over arrays is not supported"),
        ("CREATE FOREIGN TABLE s (a positive) SERVER stream", "a foreign table's column of a constrained domain"),
    ],
)
def test_messages(client: Client, query: str, message: str) -> None:
    with pytest.raises(psycopg.Error) as raised:
        client.execute(query.encode())
    assert (raised.value.diag.message_primary or "").startswith(message)


def test_parameters_are_checked(client: Client) -> None:
    for prepare in (False, True):
        client.execute("INSERT INTO t VALUES (%s, %s)", (1, "a"), prepare=prepare)
        with pytest.raises(psycopg.errors.CheckViolation):
            client.execute("INSERT INTO t VALUES (%s, %s)", (0, "a"), prepare=prepare)


def test_streams_take_domains_without_constraints(client: Client) -> None:
    client.execute("CREATE DOMAIN amount AS numeric(8, 2)")
    client.execute("CREATE FOREIGN TABLE paid (k int, a amount) SERVER stream")
    client.execute("CREATE VIEW total AS SELECT k, sum(a) FROM paid GROUP BY k")
    client.execute("INSERT INTO paid VALUES (1, 2.345), (1, 1)")
    assert str(client.execute("SELECT sum FROM total").fetchall()) == "[(Decimal('3.35'),)]"
    with pytest.raises(psycopg.errors.FeatureNotSupported, match="of which stream paid has column a"):
        client.execute("ALTER DOMAIN amount ADD CHECK (VALUE > 0)")
    client.execute("DROP FOREIGN TABLE paid CASCADE")
    client.execute("DROP DOMAIN amount")


@pytest.mark.slow
def test_constraints_survive_a_restart() -> None:
    with Millstream(settings={"spark_enabled": False}) as server:
        with server.connect() as client:
            client.execute("CREATE DOMAIN positive AS int CHECK (VALUE > 0)")
            client.execute("CREATE TABLE t (id positive)")
            client.execute("ALTER DOMAIN positive ADD CONSTRAINT small CHECK (VALUE < 10)")
        server.kill9()
        server.restart()
        with server.connect() as client:
            client.execute("INSERT INTO t VALUES (5)")
            for value in (0, 10):
                with pytest.raises(psycopg.errors.CheckViolation):
                    client.execute("INSERT INTO t VALUES (%s)", (value,))


def test_a_constraint_of_a_domain_below_is_said_to_be_of_the_value_s_own(client: Client) -> None:
    client.execute("CREATE DOMAIN small AS positive CHECK (VALUE < 10)")
    try:
        with pytest.raises(psycopg.errors.CheckViolation) as caught:
            client.execute("SELECT (-1)::small")
    finally:
        client.execute("DROP DOMAIN small")
    assert caught.value.diag.message_primary == 'value for domain small violates check constraint "positive_check"'
    assert (caught.value.diag.datatype_name, caught.value.diag.constraint_name) == ("small", "positive_check")


@pytest.mark.parametrize("name", ["json_populate_record", "jsonb_populate_recordset"])
def test_documents_make_no_rows_of_a_domain_unchecked(client: Client, name: str) -> None:
    client.execute("CREATE TYPE priced AS (k int, x numeric)")
    client.execute("CREATE DOMAIN offer AS priced CHECK ((VALUE).k > 0)")
    try:
        document = '{"k": -1}' if name.endswith("record") else '[{"k": -1}]'
        for call in (f"SELECT {name}(NULL::offer, '{document}')", f"SELECT * FROM {name}(NULL::offer, '{document}')"):
            with pytest.raises(psycopg.errors.FeatureNotSupported, match="offer"):
                client.execute(call.encode())
    finally:
        client.execute("DROP TYPE priced CASCADE")
