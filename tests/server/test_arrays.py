"""Arrays as drivers send and read them: parameters of = ANY ($1), and columns in both formats, also by COPY."""

from __future__ import annotations

import datetime
import decimal
import uuid
from pathlib import Path
from typing import Any

import psycopg
import pytest

from tests.rig.server import Millstream
from tests.server.conftest import SETTINGS
from tests.server.test_clients import COLUMNS, run_asyncpg

Client = psycopg.Connection[Any]


@pytest.fixture(scope="module")
def things(running: Millstream) -> Millstream:
    with running.connect() as client:
        client.execute(
            "CREATE TABLE things (id integer PRIMARY KEY, big int8, name text, price numeric(8,2), day date)"
        )
        client.execute("INSERT INTO things VALUES (1, 10, 'one', 1.5, '2020-01-01'), (2, 20, 'two', 2.5, NULL)")
        client.execute("INSERT INTO things VALUES (3, NULL, NULL, NULL, '2020-01-03')")
    return running


@pytest.mark.parametrize("binary", [False, True])
@pytest.mark.parametrize(
    ("column", "values", "ids"),
    [
        ("id", [1, 3, 7], [1, 3]),
        ("id", [], []),
        ("id", [2, None], [2]),
        ("big", [10, 2**40], [1]),
        ("big", [20], [2]),
        ("name", ["two", "a,b", 'q"'], [2]),
        ("price", [decimal.Decimal("1.50"), decimal.Decimal("9")], [1]),
        ("price", [1], []),
        ("day", [datetime.date(2020, 1, 3)], [3]),
    ],
)
def test_any_of_a_parameter_with_psycopg(
    things: Millstream, column: str, values: list[Any], ids: list[int], binary: bool
) -> None:
    mark = "%b" if binary else "%t"
    with things.connect() as client:
        for prepare in (False, True):
            query = f"SELECT id FROM things WHERE {column} = ANY({mark}) ORDER BY id".encode()
            assert client.execute(query, (values,), prepare=prepare).fetchall() == [(number,) for number in ids]


def test_any_of_a_parameter_with_asyncpg(things: Millstream) -> None:
    async def work(connection: Any) -> Any:
        found = [await connection.fetch("SELECT id FROM things WHERE name = ANY($1)", ["one", "x"])]
        found.append(await connection.fetch("SELECT id FROM things WHERE name <> ALL($1) ORDER BY id", ["one", "x"]))
        found.append(await connection.fetch("SELECT id FROM things WHERE NOT name = ANY($1)", None))
        found.append(await connection.fetch("SELECT name || $1 FROM things WHERE id = 1", "!"))
        found.append(await connection.fetch("SELECT array_append($1::text[], name) FROM things WHERE id = 1", ["a"]))
        return [[row[0] for row in rows] for rows in found]

    assert run_asyncpg(things, work) == [[1], [2], [], ["one!"], [["a", "one"]]]


def test_any_in_update_and_delete(sql: Client) -> None:
    sql.execute("CREATE TABLE marked (id integer PRIMARY KEY, seen boolean)")
    sql.execute("INSERT INTO marked VALUES (1), (2), (3), (4)")
    assert sql.execute("UPDATE marked SET seen = true WHERE id = ANY(%s)", ([1, 4],)).rowcount == 2
    assert sql.execute("DELETE FROM marked WHERE id = ANY(%s)", ([2, 3, 9],)).rowcount == 2
    assert sql.execute("SELECT * FROM marked ORDER BY id").fetchall() == [(1, True), (4, True)]


_ARRAYS: dict[str, list[object]] = {f"{name}[]": [*pair, None] for name, pair in COLUMNS.items()}
_ARRAYS |= {"int[][]": [[1, 2], [3, None]], "text[][]": [["a", None], ["b c", ""]]}


@pytest.mark.slow
@pytest.mark.parametrize("binary", [False, True])
def test_every_array_type_there_and_back_and_after_a_restart(tmp_path: Path, binary: bool) -> None:
    columns = ", ".join(f"c{number} {name}" for number, name in enumerate(_ARRAYS))
    marks = ", ".join(["%b" if binary else "%t"] * len(_ARRAYS))
    wanted = [tuple(_ARRAYS.values()), tuple([] for _ in _ARRAYS)]
    with Millstream(tmp_path / "data", SETTINGS) as server:
        with server.connect() as client:
            client.execute(f"CREATE TABLE lists (id integer, {columns})".encode())
            for number, row in enumerate(wanted):
                client.execute(f"INSERT INTO lists VALUES ({number}, {marks})".encode(), row)
        server.kill9()
        server.restart()
        with server.connect() as client, client.cursor(binary=binary) as cursor:
            found = cursor.execute("SELECT * FROM lists ORDER BY id").fetchall()
            how = b"(FORMAT binary)" if binary else b""
            with client.cursor().copy(b"COPY lists TO STDOUT " + how) as copy:
                data = b"".join(map(bytes, copy))
            with client.cursor().copy(b"COPY lists FROM STDIN " + how) as copy:
                copy.write(data)
            again = cursor.execute("SELECT * FROM lists ORDER BY id").fetchall()
    assert [row[1:] for row in found] == wanted
    assert [row[1:] for row in again] == [wanted[0]] * 2 + [wanted[1]] * 2


def test_malformed_and_foreign_arrays_are_refused(sql: Client) -> None:
    with pytest.raises(psycopg.errors.InvalidTextRepresentation):
        sql.execute("SELECT 1 = ANY(%s::int[])", ("{1,",))
    assert sql.execute("SELECT 2 = ANY(%s::int[])", ("{{1},{2}}",)).fetchone() == (True,)
    sql.execute("CREATE TABLE flat (a int[])")
    for nested in ("{{1},{2}}", [[1], [2]]):  # as a text, and as an array of known type
        sql.execute("INSERT INTO flat VALUES (%s)", (nested,))
    assert sql.execute("SELECT a FROM flat").fetchall() == [([[1], [2]],)] * 2
    with pytest.raises(psycopg.errors.FeatureNotSupported):
        sql.execute("CREATE FOREIGN TABLE listed (a int[]) SERVER stream")
    assert sql.execute("SELECT %s = ANY(%s)", (uuid.UUID(int=1), [uuid.UUID(int=1)])).fetchone() == (True,)


def test_documents_and_sets_over_a_stream_are_read(sql: Client) -> None:
    sql.execute("CREATE FOREIGN TABLE said (who integer, words text) SERVER stream")
    sql.execute("CREATE VIEW spread AS SELECT who, json_agg(words ORDER BY words) AS n FROM said GROUP BY who")
    sql.execute("CREATE VIEW listed AS SELECT string_to_table(words, ' ') AS w, count(*) AS n FROM said GROUP BY 1")
    sql.execute("CREATE VIEW beside AS SELECT w, count(*) AS n FROM said, string_to_table(words, ' ') w GROUP BY w")
    sql.execute("CREATE VIEW counted AS SELECT who, generate_series(1, count(*)) AS n FROM said GROUP BY who")
    sql.execute(
        "CREATE VIEW tallied AS SELECT who, count(*) AS n FROM said JOIN generate_series(1, 2) g ON g = who"
        " WHERE words <> ALL('{x,y}') AND who = ANY('{2,3}') GROUP BY who"
    )
    sql.execute("INSERT INTO said VALUES (1, 'a'), (2, 'b c'), (2, 'd'), (2, 'x'), (3, 'e')")
    assert sql.execute("SELECT * FROM tallied").fetchall() == [(2, 2)]
    documents = [(1, ["a"]), (2, ["b c", "d", "x"]), (3, ["e"])]
    assert sql.execute("SELECT * FROM spread ORDER BY who").fetchall() == documents
    words = [("a", 1), ("b", 1), ("c", 1), ("d", 1), ("e", 1), ("x", 1)]
    assert sql.execute("SELECT * FROM listed ORDER BY w").fetchall() == words
    assert sql.execute("SELECT * FROM beside ORDER BY w").fetchall() == words
    assert sql.execute("SELECT * FROM counted ORDER BY who, n").fetchall() == [(1, 1), (2, 1), (2, 2), (2, 3), (3, 1)]
    assert sql.execute(
        "SELECT g, n FROM generate_series(1, 3) g LEFT JOIN tallied ON who = g ORDER BY g"
    ).fetchall() == [
        (1, None),
        (2, 2),
        (3, None),
    ]
