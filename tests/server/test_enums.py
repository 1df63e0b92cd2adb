"""Enums on the wire: their own oid in RowDescription, labels in text and binary, as parameters and through COPY."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from psycopg import sql

from tests.rig.server import Millstream
from tests.server.wire import SYNC, Wire, bind, execute, parse, rows

pytestmark = pytest.mark.slow  # a server of its own

Connection = psycopg.Connection[tuple[object, ...]]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Millstream]:
    data: Path = tmp_path_factory.mktemp("enums")
    with Millstream(data, settings={"spark_enabled": False}) as server:
        with server.connect() as client:
            client.execute("CREATE TYPE mood AS ENUM ('sad', 'ok', 'so so', 'happy')")
            client.execute("CREATE TABLE t (id int, m mood, ms mood[])")
            client.execute("CREATE FOREIGN TABLE s (id int, m mood) SERVER stream")
            client.execute("CREATE VIEW v AS SELECT m, count(*) FROM s GROUP BY m")
        yield server


@pytest.mark.parametrize("binary", [False, True])
def test_labels_come_in_both_formats(server: Millstream, binary: bool) -> None:
    with server.connect() as client:
        cursor = client.execute("SELECT 'so so'::mood, NULL::mood, '{ok,NULL,so so}'::mood[]", binary=binary)
        assert cursor.description is not None
        one, null, many = cursor.description
        assert one.type_code >= 16384
        assert one.type_code == null.type_code
        assert many.type_code == one.type_code - 1
        assert one.internal_size == 4
        row = cursor.fetchone()
        assert row is not None
        assert row[:2] == (b"so so" if binary else "so so", None)
        if binary:
            oid = one.type_code.to_bytes(4)
            fields = b"\0\0\0\2ok" + b"\xff\xff\xff\xff" + b"\0\0\0\5so so"
            assert row[2] == b"\0\0\0\1\0\0\0\1" + oid + b"\0\0\0\3\0\0\0\1" + fields
        else:
            assert row[2] == '{ok,NULL,"so so"}'


def test_parameters_are_labels(server: Millstream) -> None:
    with server.connect() as client:
        client.execute("DELETE FROM t")
        client.execute("INSERT INTO t VALUES (%s, %s, %s)", (1, "happy", ["ok", "sad"]))
        for row in ((2, "ok", None), (3, "sad", []), (4, None, ["so so"])):
            client.execute("INSERT INTO t VALUES (%s, %s, %s)", row, prepare=True)
        for label, wanted in (("ok", [1, 2]), ("happy", [1])):
            found = client.execute("SELECT id FROM t WHERE m >= %s ORDER BY id", (label,), prepare=True).fetchall()
            assert [row[0] for row in found] == wanted
            found = client.execute("SELECT id FROM t WHERE m >= %b::mood ORDER BY id", (label,)).fetchall()
            assert [row[0] for row in found] == wanted
        with pytest.raises(psycopg.errors.InvalidTextRepresentation, match='value for enum mood: "gay"'):
            client.execute("SELECT id FROM t WHERE m = %s", ("gay",))
        assert client.execute("SELECT ms FROM t ORDER BY id").fetchall() == [
            ("{ok,sad}",),
            (None,),
            ("{}",),
            ('{"so so"}',),
        ]


@pytest.mark.parametrize("target", ["t", "s"])
@pytest.mark.parametrize("format", ["text", "csv", "binary"])
def test_copy(server: Millstream, target: str, format: str) -> None:
    with server.connect() as client:
        client.execute("DELETE FROM t")
        client.execute("INSERT INTO t VALUES (1, 'so so'), (2, NULL), (3, 'happy')")
        options = sql.SQL("(FORMAT {})").format(sql.SQL(format))  # type: ignore[arg-type]
        with client.cursor().copy(
            sql.SQL("COPY (SELECT id, m FROM t ORDER BY id) TO STDOUT {}").format(options)
        ) as copy:
            data = b"".join(bytes(piece) for piece in copy)
        before = dict(client.execute("SELECT m, count FROM v").fetchall())
        into = sql.SQL("COPY {} (id, m) FROM STDIN {}").format(sql.Identifier(target), options)
        with client.cursor().copy(into) as copy:
            copy.write(data)
        if target == "t":
            found = client.execute("SELECT id, m, count(*) FROM t GROUP BY id, m ORDER BY id").fetchall()
            assert found == [(1, "so so", 2), (2, None, 2), (3, "happy", 2)]
        else:
            after = dict(client.execute("SELECT m, count FROM v").fetchall())
            assert {key: after[key] - before.get(key, 0) for key in after} == dict.fromkeys(("so so", None, "happy"), 1)


def test_copy_names_the_line_of_an_unknown_label(server: Millstream) -> None:
    with server.connect() as client:
        with (
            pytest.raises(psycopg.errors.InvalidTextRepresentation) as raised,
            client.cursor().copy("COPY t FROM STDIN") as copy,
        ):
            copy.write("1\tok\t\\N\n2\tbad\t\\N\n")
        assert raised.value.diag.message_primary == 'invalid input value for enum mood: "bad"'
        assert raised.value.diag.context == 'COPY t, line 2, column m: "bad"'


def test_details_of_errors_show_labels(server: Millstream) -> None:
    with server.connect() as client:
        client.execute("CREATE TABLE k (m mood PRIMARY KEY, n int CHECK (n > 0))")
        client.execute("INSERT INTO k VALUES ('ok', 1)")
        with pytest.raises(psycopg.errors.UniqueViolation) as unique:
            client.execute("INSERT INTO k VALUES ('ok', 1)")
        assert unique.value.diag.message_detail == "Key (m)=(ok) already exists."
        with pytest.raises(psycopg.errors.CheckViolation) as check:
            client.execute("INSERT INTO k VALUES ('sad', 0)")
        assert check.value.diag.message_detail == "Failing row contains (sad, 0)."
        plan = "\n".join(str(row[0]) for row in client.execute("EXPLAIN SELECT * FROM k WHERE m > 'sad'").fetchall())
        assert "'sad'::mood" in plan


def test_oids_and_values_survive_a_restart(server: Millstream) -> None:
    def described(client: Connection) -> tuple[int, object]:
        cursor = client.execute("SELECT m FROM t WHERE id = 9")
        assert cursor.description is not None
        return cursor.description[0].type_code, cursor.fetchone()

    with server.connect() as client:
        client.execute("INSERT INTO t VALUES (9, 'happy')")
        client.execute("ALTER TYPE mood ADD VALUE 'fine' AFTER 'ok'")
        client.execute("ALTER TYPE mood RENAME VALUE 'happy' TO 'glad'")
        before = described(client)
        assert before[1] == ("glad",)
    for crash in (True, False):
        if crash:
            server.kill9()
        server.restart()
        with server.connect() as client:
            assert described(client) == before
            assert client.execute("SELECT enum_range(NULL::mood)").fetchone() == ('{sad,ok,fine,"so so",glad}',)
            client.execute("CREATE TYPE another AS ENUM ('x')")
            cursor = client.execute("SELECT 'x'::another")
            assert cursor.description is not None
            assert cursor.description[0].type_code > before[0]
            client.execute("DROP TYPE another")


def test_a_declared_parameter_is_of_the_enum_as_it_is_now(server: Millstream) -> None:
    with server.connect() as client:
        client.execute("CREATE TYPE growing AS ENUM ('a')")
        client.execute("PREPARE p(growing) AS SELECT $1, $1 > 'a'")
        client.execute("ALTER TYPE growing ADD VALUE 'b'")
        assert client.execute("EXECUTE p('b')").fetchone() == ("b", True)
        cursor = client.execute("SELECT 'b'::growing")
        assert cursor.description is not None
        with Wire(server.port) as wire:
            wire.start()
            oid = cursor.description[0].type_code
            wire.send(parse("SELECT $1, $2", oids=(oid, oid - 1)), bind((b"b", b"{a,b}")), execute(), SYNC)
            assert rows(wire.until_ready()) == [(b"b", b"{a,b}")]
