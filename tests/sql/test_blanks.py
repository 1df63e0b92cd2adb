"""Trailing blanks of character without a length, by each way in, compared with PostgreSQL; also in streams and
views."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import psycopg
import pytest

from tests.rig.postgres import Postgres
from tests.rig.server import Millstream

pytestmark = [pytest.mark.slow, pytest.mark.postgres]

Client = psycopg.Connection[Any]

TEXTS: Final = ("a", "a ", "a   ", "", "  ", "bä ", None)


@pytest.fixture(scope="module")
def both(postgres: Postgres) -> Iterator[tuple[Client, Client]]:
    with (
        Millstream(settings={"spark_enabled": False}) as server,
        server.connect() as ours,
        postgres.connect() as theirs,
    ):
        for client in (ours, theirs):
            client.execute("CREATE SCHEMA blanks; SET search_path = blanks")
        yield ours, theirs
        theirs.execute("DROP SCHEMA blanks CASCADE")


def shown(client: Client, table: str) -> list[Any]:
    return client.execute(
        f"SELECT way, n, b, octet_length(b), b = 'a' FROM {table} ORDER BY way, n".encode()
    ).fetchall()


def test_every_way_in_keeps_blanks(both: tuple[Client, Client]) -> None:
    for client in both:
        client.execute("CREATE TABLE ways (way text, n int, b bpchar)")
        cursor = client.cursor()
        for n, text in enumerate(TEXTS):
            for binary in (False, True):
                value = "%b" if binary else "%t"
                insert = f"INSERT INTO ways VALUES ('values {binary}', {n}, {value})"
                client.execute(insert.encode(), (text,))
                query = f"INSERT INTO ways SELECT 'query {binary}', {n}, {value}::bpchar"
                client.execute(query.encode(), (text,), prepare=True)
        for options in ("", "(FORMAT csv)", "(FORMAT binary)"):
            with cursor.copy(f"COPY ways FROM STDIN {options}".encode()) as copy:
                copy.set_types(["text", "int4", "text"])
                for n, text in enumerate(TEXTS):
                    row = (f"copy {options}", n, text)
                    if options == "(FORMAT csv)":
                        quoted = "" if text is None else f'"{text}"'
                        copy.write(f'"{row[0]}",{n},{quoted}\n')
                    else:
                        copy.write_row(row)
    found, wanted = (shown(client, "ways") for client in both)
    assert found == wanted
    for options in ("", "(FORMAT csv)", "(FORMAT binary)"):
        sent = []
        for client in both:
            query = f"COPY (SELECT * FROM ways ORDER BY way, n) TO STDOUT {options}"
            with client.cursor().copy(query.encode()) as copy:
                sent.append(b"".join(copy))
        assert sent[0] == sent[1]


def test_a_parameter_is_read_and_compared(both: tuple[Client, Client]) -> None:
    for client in both:
        client.execute("CREATE TABLE keyed (code char(4) PRIMARY KEY, b bpchar UNIQUE)")
        client.execute("INSERT INTO keyed VALUES ('x', 'p  '), ('y ', 'q')")
    queries = (
        "SELECT *, octet_length(b) FROM keyed WHERE code = %s",
        "SELECT *, octet_length(b) FROM keyed WHERE b = %s",
        "SELECT octet_length(%s::bpchar), octet_length(%s::bpchar(5)), %s::bpchar || '|'",
        "UPDATE keyed SET b = b WHERE b = %s RETURNING b, octet_length(b)",
    )
    for query in queries:
        for text in ("x", "x   ", "p", "p     ", "q", "q "):
            for _ in range(3):
                found, wanted = (
                    client.execute(query.encode(), (text,) * query.count("%s"), prepare=True).fetchall()
                    for client in both
                )
                assert found == wanted, (query, text)


def test_streams_and_views_keep_blanks(both: tuple[Client, Client]) -> None:
    ours, theirs = both
    rows = [(n, text) for n, text in enumerate(TEXTS)]
    ours.execute("CREATE FOREIGN TABLE arrived (n int, b bpchar) SERVER stream")
    theirs.execute("CREATE TABLE arrived (n int, b bpchar)")
    ours.execute("CREATE VIEW grouped AS SELECT b, count(*) AS c, min(n) AS n FROM arrived GROUP BY b")
    theirs.execute("CREATE VIEW grouped AS SELECT b, count(*) AS c, min(n) AS n FROM arrived GROUP BY b")
    for client in both:
        with client.cursor().copy("COPY arrived FROM STDIN") as copy:
            for row in rows:
                copy.write_row(row)
        client.execute("INSERT INTO arrived VALUES (20, 'z  ')")
        client.execute("INSERT INTO arrived VALUES (%s, %s)", (21, "y  "))
    found, wanted = (client.execute("SELECT n, c, b = 'a' FROM grouped ORDER BY n").fetchall() for client in both)
    assert found == wanted
    query = "SELECT n, b, octet_length(b) FROM grouped WHERE n >= 20 ORDER BY n"
    assert ours.execute(query.encode()).fetchall() == theirs.execute(query.encode()).fetchall()
