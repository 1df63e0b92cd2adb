"""COPY's options, on Millstream (tables and streams) and on a real PostgreSQL: counts, rows, data and errors."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest

from tests.rig.postgres import Postgres
from tests.rig.server import Millstream

pytestmark = [pytest.mark.slow, pytest.mark.postgres]
Client = psycopg.Connection[Any]

TABLES = """
CREATE TABLE t (a integer, b text, n numeric(6,2));
CREATE TABLE given (a integer PRIMARY KEY, b text DEFAULT 'none', c date DEFAULT current_date, d boolean DEFAULT
  now() > '2020-01-01', CHECK (a < 100));
CREATE SEQUENCE places;
CREATE TABLE numbered (place bigint DEFAULT nextval('places'), a integer, d numeric);
CREATE TABLE made (a integer, b text, g integer GENERATED ALWAYS AS (a * 2) STORED);
"""

#: Commands over t with data, for a table and for a stream; the rows afterwards must be equal, and so must errors.
BOTH: list[tuple[str, bytes]] = [
    ("COPY t FROM STDIN (FORMAT csv, FORCE_NOT_NULL (b))", b'1,,2\n2,"",3\n3,x,\n'),
    ("COPY t FROM STDIN (FORMAT csv, FORCE_NULL (b, n))", b'1,,2\n2,"","3"\n3,x,""\n"4","a ""q""",1\n'),
    ("COPY t FROM STDIN (FORMAT csv, FORCE_NULL (b), FORCE_NOT_NULL (b))", b'1,,2\n2,"",3\n3,x,\n'),
    ("COPY t FROM STDIN (FORMAT csv, NULL 'NULL', FORCE_NULL (b))", b'1,"NULL",2\n2,NULL,3\n3,x"NULL",1\n'),
    ("COPY t FROM STDIN (FORMAT csv, NULL 'NULL', FORCE_NOT_NULL (b))", b'1,"NULL",2\n2,NULL,3\n3,NU"LL",1\n'),
    ("COPY t FROM STDIN (FORMAT csv, FORCE_NOT_NULL (a))", b",x,2\n"),
    ("COPY t FROM STDIN CSV FORCE NOT NULL b", b"1,,2\n"),
    ("COPY t (b, a) FROM STDIN (FORMAT csv, FORCE_NULL (b))", b'"",1\n'),
    ("COPY t (a) FROM STDIN (FORMAT csv, FORCE_NULL (b))", b"1\n"),
    ("COPY t FROM STDIN (FORMAT csv, FORCE_NULL (z))", b""),
    ("COPY t FROM STDIN (FORMAT csv, FORCE_NULL (b, b))", b""),
    ("COPY t FROM STDIN (FORMAT csv, FORCE_NULL b)", b""),
    ("COPY t FROM STDIN (FORMAT csv, FORCE_NULL *)", b""),
    ("COPY t FROM STDIN (FORCE_NULL (b))", b""),
    ("COPY t FROM STDIN (FORCE_NOT_NULL (b))", b""),
    ("COPY t FROM STDIN (FORMAT csv, FORCE_QUOTE (b))", b""),
    ("COPY t FROM STDIN (FORMAT csv, DEFAULT 'x')", b""),
    ("COPY t FROM STDIN (FORMAT csv, ON_ERROR stop)", b""),
    ("COPY t FROM STDIN (FORMAT csv, HEADER match)", b"a,b,n\n1,x,2\n"),
    ("COPY t FROM STDIN (FORMAT csv, HEADER match)", b'"a",b,n\r\n1,x,2\r\n'),
    ("COPY t (n, a) FROM STDIN (FORMAT csv, HEADER match)", b"n,a\n1,2\n"),
    ("COPY t FROM STDIN (FORMAT csv, HEADER match)", b"n,a\n1,2\n"),
    ("COPY t FROM STDIN (FORMAT csv, HEADER match)", b"a,b,n,x\n"),
    ("COPY t FROM STDIN (FORMAT csv, HEADER match)", b"A,b,n\nx,2,3\n"),
    ("COPY t FROM STDIN (FORMAT csv, HEADER match)", b"a,,n\n"),
    ("COPY t FROM STDIN (FORMAT csv, HEADER match)", b""),
    ("COPY t FROM STDIN (HEADER match)", b"a\tb\tn\n1\tx\t2\n"),
    ("COPY t FROM STDIN (HEADER match)", b"a\t\\N\tn\n"),
    ("COPY t FROM STDIN (HEADER match)", b"a\\tb\tn\n"),
    ("COPY t FROM STDIN (HEADER on)", b"whatever\n1\tx\t2\n"),
    ("COPY t FROM STDIN (HEADER wrong)", b""),
    ("COPY t FROM STDIN (HEADER match, FORMAT binary)", b""),
    ("COPY t FROM STDIN WHERE a > 1 AND b <> 'z'", b"1\tx\t2\n2\ty\t3\n3\tz\t4\n4\t\\N\t5\n"),
    ("COPY t FROM STDIN (FORMAT csv) WHERE t.n * 2 > 5 OR b IS NULL", b"1,x,2\n2,,1\n3,z,3\n"),
    ("COPY t (a) FROM STDIN WHERE b IS NULL AND a % 2 = 0", b"1\n2\n3\n4\n"),
    ("COPY t FROM STDIN WHERE false", b"1\tx\t2\n"),
    ("COPY t FROM STDIN WHERE 1 / (a - 1) > 0", b"1\tx\t2\n"),
    ("COPY t FROM STDIN WHERE now() > '2020-01-01' AND current_user = current_user", b"1\tx\t2\n"),
    ("COPY t FROM STDIN WHERE a", b""),
    ("COPY t FROM STDIN WHERE z = 1", b""),
    ("COPY t FROM STDIN WHERE count(*) = 1", b""),
    ("COPY t FROM STDIN WHERE row_number() OVER () = 1", b""),
    ("COPY t FROM STDIN WHERE generate_series(1, 2) = 1", b""),
    ("COPY t FROM STDIN WHERE EXISTS (SELECT 1)", b""),
    ("COPY t TO STDOUT WHERE a = 1", b""),
    ("COPY t FROM STDIN (ENCODING 'LATIN1')", b"1\tgr\xfc\xdf\t2\n2\t\xa7\\n\xb5\t3\n"),
    ("COPY t FROM STDIN (ENCODING 'windows-1251', FORMAT csv)", b'1,"\xcf\xf0\xe8,""",2\n'),
    ("COPY t FROM STDIN (ENCODING 'WIN1252')", b"1\tx\t2\n3\t\x81\t1\n"),
    ("COPY t FROM STDIN (ENCODING 'WIN1252')", b"x\tx\t2\n3\t\x81\t1\n"),
    ("COPY t FROM STDIN (ENCODING 'WIN1252', FORMAT csv)", b'1,x,2\n3,"x\ny\x81",1\n'),
    ("COPY t FROM STDIN (ENCODING 'EUC_CN')", b"1\t\xc4\xe3\xba\xc3\t2\n"),
    ("COPY t FROM STDIN (ENCODING 'EUC_CN')", b"1\tx\t2\n3\t\xa1\n"),
    ("COPY t FROM STDIN (ENCODING 'koi8-r', HEADER match, FORMAT csv)", b"a,b,n\n1,\xd0\xd2\xc9,2\n"),
    ("COPY t FROM STDIN (ENCODING 'nope')", b""),
    ("COPY t FROM STDIN (FORMAT csv, FORMAT csv)", b""),
]

#: Commands with data, and queries for their effects; on tables only.
TABLE_ONLY: list[tuple[str, bytes, str]] = [
    ("COPY given (a) FROM STDIN WHERE b = 'none' AND a <> 2", b"1\n2\n3\n", "SELECT a, b, c, d FROM given"),
    ("COPY given (a) FROM STDIN WHERE a < 100", b"4\n100\n", "SELECT a FROM given"),
    ("COPY given (a) FROM STDIN", b"100\n", "SELECT a FROM given"),
    ("COPY numbered (a, d) FROM STDIN WHERE a > 1", b"1\t1.50\n2\t2.0\n3\t3\n", "SELECT place, a, d FROM numbered"),
    ("COPY numbered (a, d) FROM STDIN WHERE d > 2.5", b"1\t1.50\n3\t3.00\n", "SELECT place, a, d::text FROM numbered"),
    ("COPY numbered (a, d) FROM STDIN WHERE place > 6", b"1\t1.50\n3\t3.00\n", "SELECT place, a FROM numbered"),
    ("COPY made FROM STDIN WHERE a > 1", b"1\tx\n2\ty\n", "SELECT a, b, g FROM made"),
    ("COPY made FROM STDIN WHERE g > 1", b"1\tx\n", "SELECT count(*) FROM made"),
]

OUT = [
    "COPY (SELECT 1, 'x', NULL::text, '') TO STDOUT (FORMAT csv, FORCE_QUOTE *)",
    "COPY (SELECT 1 AS a, 'a \"q\"' AS b, NULL::text AS c) TO STDOUT (FORMAT csv, FORCE_QUOTE (b, c), HEADER)",
    "COPY (SELECT 1 AS a, 'x\\y' AS b) TO STDOUT (FORMAT csv, FORCE_QUOTE (a, b), QUOTE '''', ESCAPE '\\')",
    "COPY (SELECT 1 AS a) TO STDOUT (FORMAT csv, FORCE_QUOTE (z))",
    "COPY filled (n, b) TO STDOUT (FORMAT csv, FORCE_QUOTE (n))",
    "COPY filled TO STDOUT (FORMAT csv, FORCE_QUOTE (b), HEADER)",
    "COPY filled TO STDOUT CSV FORCE QUOTE a, b",
    "COPY filled (a) TO STDOUT (FORMAT csv, FORCE_QUOTE (b))",
    "COPY filled TO STDOUT (FORMAT csv, FORCE_QUOTE (z))",
    "COPY filled TO STDOUT (FORCE_QUOTE (b))",
    "COPY filled TO STDOUT (FORMAT csv, FORCE_NULL (b))",
    "COPY filled TO STDOUT (FORMAT csv, HEADER match)",
    "COPY filled TO STDOUT (HEADER)",
    "COPY (SELECT 'grün§', 1, NULL, E'a\\nb' UNION ALL SELECT 'x', 2, 'ÿ', '') TO STDOUT (ENCODING 'LATIN1')",
    "COPY (SELECT 'grün€' AS \"ä,b\", 1) TO STDOUT (ENCODING 'WIN1252', FORMAT csv, HEADER)",
    "COPY (SELECT '你好', 1) TO STDOUT (ENCODING 'EUC_CN')",
    "COPY (SELECT 1, 'grün€') TO STDOUT (ENCODING 'LATIN1')",
    "COPY (SELECT 1 AS \"€\") TO STDOUT (ENCODING 'LATIN1', FORMAT csv, HEADER)",
    "COPY (SELECT 'grün', 1) TO STDOUT (ENCODING 'LATIN1', FORMAT binary)",
    "COPY (WITH w AS (SELECT 1 AS a) SELECT a, a + 1 FROM w) TO STDOUT (FORMAT csv)",
    "COPY (VALUES (1, 'x'), (2, NULL)) TO STDOUT (FORMAT csv, HEADER)",
    "COPY (TABLE filled) TO STDOUT",
    "COPY (SELECT 1 FROM nope) TO STDOUT",
]


#: Commands that change tables and copy the returned rows, with queries for their effects.
CHANGES = [
    "COPY (INSERT INTO returned VALUES (1, 'x', 2.50), (2, NULL, 3) RETURNING a, b, n) TO STDOUT",
    "COPY (INSERT INTO returned SELECT g, 'y', g FROM generate_series(3, 5) g RETURNING *) TO STDOUT CSV HEADER",
    "COPY (UPDATE returned SET b = upper(b), n = n + 1 WHERE a < 4 RETURNING a, b, n, a + 1 AS more) TO STDOUT CSV",
    "COPY (UPDATE returned SET b = 'none' WHERE a > 100 RETURNING a) TO STDOUT CSV HEADER",
    "COPY (DELETE FROM returned WHERE a = 2 RETURNING a, n) TO STDOUT (FORMAT binary)",
    "COPY (INSERT INTO returned VALUES (1, 'z', 1) ON CONFLICT (a) DO UPDATE SET b = excluded.b RETURNING *) TO STDOUT",
    "COPY (WITH gone AS (DELETE FROM returned WHERE a = 3 RETURNING a) SELECT a * 10 FROM gone) TO STDOUT",
    "COPY (WITH more AS (SELECT 7 AS a) INSERT INTO returned SELECT a, 'w', a FROM more RETURNING a) TO STDOUT",
    "COPY (INSERT INTO returned VALUES (1, 'again', 1) RETURNING a) TO STDOUT",
    "COPY (INSERT INTO returned VALUES (9, 'x', 1)) TO STDOUT",
    "COPY (DELETE FROM returned RETURNING nope) TO STDOUT",
    "COPY (UPDATE returned SET n = 1 / 0 RETURNING a) TO STDOUT",
    "COPY (SELECT 1 AS a INTO later) TO STDOUT",
    "COPY (DELETE FROM returned RETURNING a) TO STDOUT (FORMAT csv, FORCE_QUOTE (z))",
]


@pytest.fixture(scope="module")
def clients(postgres: Postgres) -> Iterator[tuple[Client, Client]]:
    with (
        Millstream(settings={"spark_enabled": False}) as server,
        server.connect() as ours,
        postgres.connect() as theirs,
    ):
        for client in (ours, theirs):
            client.execute("CREATE SCHEMA copying")
            client.execute("SET search_path = copying")
            client.execute(TABLES)
            client.execute("CREATE TABLE filled (a integer, b text, n numeric(6,2))")
            client.execute("INSERT INTO filled VALUES (1, 'x', 2), (2, NULL, NULL)")
            client.execute("CREATE TABLE returned (a integer PRIMARY KEY, b text, n numeric)")
        ours.execute("CREATE SCHEMA flowing")
        ours.execute("CREATE FOREIGN TABLE flowing.t (a integer, b text, n numeric(6,2)) SERVER stream")
        ours.execute("CREATE VIEW arrived AS SELECT a, b, n, count(*) AS copies FROM flowing.t GROUP BY a, b, n")
        yield ours, theirs
        theirs.execute("DROP SCHEMA copying CASCADE")


def copied(client: Client, command: str, data: bytes) -> tuple[object, ...]:
    """A COPY FROM's count, or its error."""
    try:
        with client.cursor() as cursor:
            with cursor.copy(command.encode()) as copy:
                copy.write(data)
            return (cursor.rowcount,)
    except psycopg.Error as error:
        return _about(error)


def sent(client: Client, command: str) -> tuple[object, ...]:
    """A COPY TO's messages, or its error."""
    try:
        with client.cursor() as cursor, cursor.copy(command.encode()) as copy:
            return tuple(map(bytes, copy))
    except psycopg.Error as error:
        return _about(error)


def _about(error: psycopg.Error) -> tuple[object, ...]:
    diag = error.diag
    computed = error.sqlstate == "22012"  # many rows at once: the error has no line
    context = None if computed else diag.context
    return error.sqlstate, diag.message_primary, diag.message_detail, context, diag.statement_position


def arrived(client: Client) -> Counter[tuple[object, ...]]:
    """The stream's rows so far."""
    return Counter({row[:3]: row[3] for row in client.execute("SELECT a, b, n, copies FROM arrived")})


@pytest.mark.parametrize(("command", "data"), BOTH)
def test_into_tables_and_streams(clients: tuple[Client, Client], command: str, data: bytes) -> None:
    ours, outcomes = clients[0], []
    for client in clients:
        outcome = copied(client, command, data)
        outcomes.append((outcome, Counter(client.execute("SELECT * FROM t").fetchall())))
        client.execute("DELETE FROM t")
    assert outcomes[0] == outcomes[1]
    before = arrived(ours)
    ours.execute("SET search_path = flowing, copying")
    outcome = copied(ours, command, data)
    ours.execute("SET search_path = copying")
    assert (outcome, arrived(ours) - before) == outcomes[1]


@pytest.mark.parametrize(("command", "data", "query"), TABLE_ONLY)
def test_into_tables(clients: tuple[Client, Client], command: str, data: bytes, query: str) -> None:
    found, wanted = (
        (copied(client, command, data), Counter(client.execute(query.encode()).fetchall())) for client in clients
    )
    assert found == wanted


@pytest.mark.parametrize(
    ("options", "data", "line"),
    [
        ("", b"1\tx\n100\ty\n3\tz\n", 'line 2: "100\ty"'),
        ("", b"1\tx\\\ny\n\\N\tq\n", 'line 2: "\\N\tq"'),
        ("(HEADER)", b"a\tb\n1\tx\n200\ty", 'line 3: "200\ty"'),
        ("(FORMAT csv, HEADER)", b'a,b\r\n1,"x\r\ny"\r\n"300","z, ""q"""\r\n', 'line 4: ""300","z, ""q""""'),
        ("(FORMAT csv)", b"5,\n,x\n", 'line 2: ",x"'),
        ("(FORMAT csv, ENCODING 'LATIN1')", b"500,gr\xfcn\n", 'line 1: "500,gr\xfcn"'),
    ],
)
def test_a_broken_constraint_names_its_line(
    clients: tuple[Client, Client], options: str, data: bytes, line: str
) -> None:
    for client in clients:
        assert copied(client, f"COPY given (a, b) FROM STDIN {options}", data)[3] == f"COPY given, {line}"


def test_a_stream_names_the_line_of_a_missing_value(clients: tuple[Client, Client]) -> None:
    ours, _ = clients
    ours.execute("CREATE FOREIGN TABLE flowing.needing (a int NOT NULL, b text) SERVER stream")
    found = copied(ours, "COPY flowing.needing FROM STDIN (FORMAT csv)", b"1,x\n2,\n,y\n")
    assert found[3] == 'COPY needing, line 3: ",y"'


@pytest.mark.parametrize("command", OUT)
def test_out(clients: tuple[Client, Client], command: str) -> None:
    found, wanted = (sent(client, command) for client in clients)
    assert found == wanted


def test_out_of_changes(clients: tuple[Client, Client]) -> None:
    for command in CHANGES:
        found, wanted = (
            (sent(client, command), client.execute("SELECT a, b, n::text FROM returned ORDER BY a").fetchall())
            for client in clients
        )
        assert found == wanted, command


def test_out_of_changes_is_a_change(clients: tuple[Client, Client]) -> None:
    """A rolled back change leaves nothing, and a read-only transaction refuses it."""
    command = "COPY (INSERT INTO returned VALUES (50, 'q', 1) RETURNING a) TO STDOUT"
    for client in clients:
        with pytest.raises(ZeroDivisionError), client.transaction():
            assert sent(client, command) == (b"50\n",)
            raise ZeroDivisionError
        assert client.execute("SELECT count(*) FROM returned WHERE a = 50").fetchone() == (0,)
        client.execute("SET default_transaction_read_only = on")
        refused = sent(client, command)
        client.execute("RESET default_transaction_read_only")
        assert refused[:2] == ("25006", "cannot execute INSERT in a read-only transaction"), refused
