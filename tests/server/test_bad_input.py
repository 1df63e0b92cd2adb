"""Bad input gives PostgreSQL's SQLSTATE with line or position, and no effect of the failed statement is visible."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from tests.rig.server import Millstream

STREAM = "CREATE FOREIGN TABLE readings (sensor integer, value smallint, taken date, amount numeric(5,2)) SERVER stream"
VIEW = "CREATE VIEW counts AS SELECT count(*), sum(sensor) FROM readings"


@pytest.fixture(scope="module")
def server(running: Millstream) -> Iterator[Millstream]:
    with running.connect() as client:
        client.execute(STREAM.encode())
        client.execute(VIEW.encode())
        client.execute("CREATE TABLE plants (id integer PRIMARY KEY, name text NOT NULL, height numeric(5,2))")
        yield running
        client.execute("DROP TABLE plants; DROP FOREIGN TABLE readings CASCADE")


@pytest.fixture
def client(server: Millstream) -> Iterator[psycopg.Connection[Any]]:
    with server.connect() as connection:
        yield connection


def fails(client: psycopg.Connection[Any], statement: str) -> psycopg.Error:
    """The statement's error; checks that the stream and the table are unchanged."""
    before = shown(client)
    with pytest.raises(psycopg.Error) as caught:
        client.execute(statement.encode())
    assert shown(client) == before
    return caught.value


def copy_fails(client: psycopg.Connection[Any], command: str, data: bytes) -> psycopg.Error:
    """The error of a COPY FROM STDIN; checks that the stream and the table are unchanged."""
    before = shown(client)
    with pytest.raises(psycopg.Error) as caught, client.cursor() as cursor, cursor.copy(command.encode()) as copy:
        copy.write(data)
    assert shown(client) == before
    return caught.value


def shown(client: psycopg.Connection[Any]) -> list[Any]:
    """Everything that the failing statements could have changed."""
    plants = client.execute("SELECT * FROM plants ORDER BY id").fetchall()
    return [client.execute("SELECT * FROM counts").fetchall(), plants]


GOOD = b"1,2,2024-01-01,1.50\n"


@pytest.mark.parametrize(
    ("bad", "state", "context"),
    [
        (b"1,2,2024-01-01\n", "22P04", "COPY readings, line 3"),
        (b"1,2,2024-01-01,1.5,9\n", "22P04", "COPY readings, line 3"),
        (b"one,2,2024-01-01,1.5\n", "22P02", 'COPY readings, line 3, column sensor: "one"'),
        (b"1,40000,2024-01-01,1.5\n", "22003", 'COPY readings, line 3, column value: "40000"'),
        (b"9999999999,2,2024-01-01,1.5\n", "22003", 'COPY readings, line 3, column sensor: "9999999999"'),
        (b"1,2,2024-13-01,1.5\n", "22008", 'COPY readings, line 3, column taken: "2024-13-01"'),
        (b"1,2,soon,1.5\n", "22007", 'COPY readings, line 3, column taken: "soon"'),
        (b"1,2,2024-01-01,1234.5\n", "22003", "COPY readings, line 3, column amount"),
        (b'1,2,2024-01-01,"1.5\n', "22P04", "COPY readings, line "),
        (b"1,2,2024-01-01,\xff\n", "22021", "COPY readings, line 3"),
    ],
)
def test_malformed_csv_row_names_its_line(
    client: psycopg.Connection[Any], bad: bytes, state: str, context: str
) -> None:
    error = copy_fails(client, "COPY readings FROM STDIN (FORMAT csv)", GOOD * 2 + bad)
    assert (error.sqlstate, (error.diag.context or "")[: len(context)]) == (state, context)


@pytest.mark.parametrize(
    ("bad", "state"),
    [
        (b"1\t2\n", "22P04"),
        (b"1\t2\t2024-01-01\tx\n", "22P02"),
        (b"1\t2\t2024-01-01\t1.5\t7\n", "22P04"),
    ],
)
def test_malformed_text_row_names_its_line(client: psycopg.Connection[Any], bad: bytes, state: str) -> None:
    error = copy_fails(client, "COPY readings FROM STDIN", b"1\t2\t2024-01-01\t\\N\n" * 4 + bad)
    assert error.sqlstate == state
    assert (error.diag.context or "").startswith("COPY readings, line 5")


@pytest.mark.slow
def test_bad_row_far_into_a_large_copy_undoes_all_of_it(client: psycopg.Connection[Any]) -> None:
    error = copy_fails(client, "COPY readings FROM STDIN (FORMAT csv)", GOOD * 300_000 + b"x,2,2024-01-01,1.5\n")
    assert error.sqlstate == "22P02"
    assert error.diag.context == 'COPY readings, line 300001, column sensor: "x"'


def test_binary_copy_without_its_signature(client: psycopg.Connection[Any]) -> None:
    assert copy_fails(client, "COPY readings FROM STDIN (FORMAT binary)", b"1,2,3\n" * 9).sqlstate == "22P04"


@pytest.mark.parametrize(
    ("statement", "state", "position"),
    [
        ("INSERT INTO readings VALUES ('one', 2, '2024-01-01', 1)", "22P02", "one"),
        ("INSERT INTO readings VALUES (1, 40000, '2024-01-01', 1)", "22003", None),
        ("INSERT INTO readings VALUES (1, 2, '2024-02-30', 1)", "22008", "2024-02-30"),
        ("INSERT INTO readings VALUES (1, 2, '2024-01-01', 12345)", "22003", None),
        ("INSERT INTO readings VALUES (1, 2, true, 1)", "42804", "true"),
        ("INSERT INTO readings VALUES (1, 2, '2024-01-01', 1, 5)", "42601", "5)"),
        ("INSERT INTO readings (sensor, height) VALUES (1, 2)", "42703", "height"),
        ("INSERT INTO nowhere VALUES (1)", "42P01", "nowhere"),
        ("SELECT colour FROM plants", "42703", "colour"),
        ("SELECT * FROM nowhere", "42P01", "nowhere"),
        ("SELECT nofunction(1)", "42883", "nofunction"),
        ("SELECT 1 + true", "42883", "+ true"),
        ("SELECT * FORM plants", "42601", "FORM"),
        ("SELECT 1/0", "22012", None),
        ("SELECT 2147483647 + 1", "22003", None),
        ("INSERT INTO plants VALUES (1, NULL)", "23502", None),
        ("INSERT INTO plants VALUES (1, 'a'), (1, 'b')", "23505", None),
        ("CREATE TABLE plants (id integer)", "42P07", None),
        ("COPY nowhere FROM STDIN", "42P01", None),
        ("COPY readings (sensor, colour) FROM STDIN", "42703", None),
    ],
)
def test_statement_fails_with_its_state_and_position(
    client: psycopg.Connection[Any], statement: str, state: str, position: str | None
) -> None:
    error = fails(client, statement)
    assert error.sqlstate == state, error
    if position is not None:
        assert error.diag.statement_position is not None
        assert statement[int(error.diag.statement_position) - 1 :].lstrip("'").startswith(position)


def test_one_bad_row_of_an_insert_undoes_the_others(client: psycopg.Connection[Any]) -> None:
    values = ",".join("(1, 2, '2024-01-01', 1)" for _ in range(50))
    assert fails(client, f"INSERT INTO readings VALUES {values}, (1, 2, '2024-01-01', 1/0)").sqlstate == "22012"


def test_error_inside_a_transaction_discards_its_stream_rows(client: psycopg.Connection[Any]) -> None:
    before = shown(client)
    client.execute("BEGIN")
    client.execute("INSERT INTO readings VALUES (1, 2, '2024-01-01', 1)")
    with pytest.raises(psycopg.errors.DivisionByZero):
        client.execute("SELECT 1/0")
    with pytest.raises(psycopg.errors.InFailedSqlTransaction):
        client.execute("SELECT 1")
    client.execute("ROLLBACK")
    assert shown(client) == before


@pytest.mark.parametrize(
    ("statement", "state"),
    [
        ("CREATE FOREIGN TABLE nothing () SERVER stream", "42601"),
        ("CREATE FOREIGN TABLE other (a integer) SERVER elsewhere", "42704"),
        ("CREATE FOREIGN TABLE twice (a integer, a text) SERVER stream", "42701"),
        ("CREATE FOREIGN TABLE odd (a nosuchtype) SERVER stream", "42704"),
        ("CREATE FOREIGN TABLE keyed (a integer PRIMARY KEY) SERVER stream", "0A000"),
    ],
)
def test_bad_stream_is_not_created(client: psycopg.Connection[Any], statement: str, state: str) -> None:
    assert fails(client, statement).sqlstate == state
    name = statement.split()[3]
    with pytest.raises(psycopg.errors.UndefinedTable):
        client.execute(f"INSERT INTO {name} VALUES (1)".encode())


def test_server_name_stream_is_reserved(client: psycopg.Connection[Any]) -> None:
    assert fails(client, "CREATE SERVER stream FOREIGN DATA WRAPPER mine").sqlstate == "42939"


@pytest.mark.parametrize(
    ("query", "position"),
    [
        ("SELECT count(random()) FROM readings", "random"),
        ("SELECT count(*) FROM readings WHERE taken < clock_timestamp()", "clock_timestamp"),
    ],
)
def test_view_whose_rows_change_by_themselves_is_refused_with_what_to_write_instead(
    client: psycopg.Connection[Any], query: str, position: str
) -> None:
    statement = f"CREATE VIEW broken AS {query}"
    error = fails(client, statement)
    assert error.sqlstate == "0A000", error
    assert "depend on no role" in (error.diag.message_detail or "")
    assert error.diag.message_hint
    assert error.diag.statement_position is not None
    assert statement[int(error.diag.statement_position) - 1 :].startswith(position)
    with pytest.raises(psycopg.errors.UndefinedTable):
        client.execute("SELECT * FROM broken")


@pytest.mark.parametrize(
    ("query", "reason"),
    [
        ("SELECT sensor, value FROM readings", "no grouping takes in"),
        ("SELECT r.sensor, count(*) FROM readings r JOIN readings s USING (sensor) GROUP BY 1", "are joined before"),
        ("SELECT s.value, count(*) FROM readings s JOIN counts c ON s.value = c.count GROUP BY 1", 'with "counts"'),
        ("SELECT count(*) FROM (SELECT * FROM readings LIMIT 5) AS few", "LIMIT is applied before"),
        ("SELECT sensor, row_number() OVER () FROM readings", "window function"),
    ],
)
def test_view_that_keeps_the_rows_of_a_stream_says_so(client: psycopg.Connection[Any], query: str, reason: str) -> None:
    told: list[tuple[str | None, ...]] = []
    client.add_notice_handler(
        lambda it: told.append((it.severity, it.message_primary, it.message_detail, it.message_hint))
    )
    client.execute(f"CREATE VIEW keeping AS {query}".encode())
    ((severity, message, detail, hint),) = told
    assert severity == "NOTICE"
    assert 'keeps the rows of stream "readings"' in (message or "")
    assert reason in (message or "")
    assert detail
    assert hint
    client.execute("DROP VIEW keeping")


def test_view_whose_rows_change_by_way_of_a_function_is_refused(client: psycopg.Connection[Any]) -> None:
    client.execute("CREATE FUNCTION taken_now() RETURNS date LANGUAGE sql AS 'SELECT clock_timestamp()::date'")
    error = fails(client, "CREATE VIEW broken AS SELECT count(*) FROM readings WHERE taken < taken_now()")
    assert error.sqlstate == "0A000"
    assert "depend on no role" in (error.diag.message_detail or "")
    client.execute("DROP FUNCTION taken_now()")


def test_missing_server_file(client: psycopg.Connection[Any], tmp_path: Path) -> None:
    error = fails(client, f"COPY readings FROM '{tmp_path}/absent.csv' (FORMAT csv)")
    assert error.sqlstate == "58P01"
    assert "absent.csv" in str(error)


def test_row_that_breaks_one_view_stops_nothing_else(client: psycopg.Connection[Any]) -> None:
    client.execute("CREATE FOREIGN TABLE ratios (a integer, b integer) SERVER stream")
    client.execute("CREATE VIEW quotient AS SELECT sum(a / b) FROM ratios")
    client.execute("CREATE VIEW product AS SELECT sum(a * b) FROM ratios")
    client.execute("INSERT INTO ratios VALUES (6, 3)")
    assert client.execute("SELECT * FROM quotient").fetchone() == (2,)
    client.execute("INSERT INTO ratios VALUES (1, 0)")
    client.execute("INSERT INTO ratios VALUES (5, 5)")
    for _ in range(2):
        with pytest.raises(psycopg.errors.DivisionByZero):
            client.execute("SELECT * FROM quotient")
    assert client.execute("SELECT * FROM product").fetchone() == (43,)
