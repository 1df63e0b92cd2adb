"""COPY with the client: formats, sizes, failure, and the pipeline's order."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import psycopg
import pytest

from tests.rig.server import Millstream
from tests.server.wire import SYNC, Wire, bind, error_fields, execute, letters, parse, rows, tags

Client = psycopg.Connection[Any]


def copy_in(client: Client, command: str, *pieces: bytes) -> int:
    """COPY FROM STDIN; the number of rows."""
    with client.cursor() as cursor:
        with cursor.copy(command.encode()) as copy:
            for piece in pieces:
                copy.write(piece)
        return cursor.rowcount


def copy_out(client: Client, command: str) -> bytes:
    """COPY TO STDOUT."""
    with client.cursor() as cursor, cursor.copy(command.encode()) as copy:
        return b"".join(copy)


def test_text_csv_and_binary_there_and_back(sql: Client) -> None:
    sql.execute("CREATE TABLE formats (a integer, b text, c numeric(6,2), d date, e boolean)")
    sql.execute(
        "INSERT INTO formats VALUES (1, E'tab\\there, \"q\"', 1.5, '2024-02-29', true), (2, NULL, NULL, NULL, NULL)"
    )
    sql.execute("INSERT INTO formats VALUES (3, '', 0, '1999-12-31', false)")
    expected = sql.execute("SELECT * FROM formats ORDER BY a").fetchall()
    for options in ("(FORMAT text)", "(FORMAT csv, HEADER)", "(FORMAT binary)"):
        data = copy_out(sql, f"COPY (SELECT * FROM formats ORDER BY a) TO STDOUT {options}")
        sql.execute("DELETE FROM formats")
        assert copy_in(sql, f"COPY formats FROM STDIN {options}", data) == 3
        assert sql.execute("SELECT * FROM formats ORDER BY a").fetchall() == expected, options


def test_text_out_is_postgresqls(sql: Client) -> None:
    data = copy_out(sql, "COPY (SELECT 1, NULL, E'a\\tb\\\\c', 1.50::numeric(5,2)) TO STDOUT")
    assert data == b"1\t\\N\ta\\tb\\\\c\t1.50\n"


def test_rows_cut_anywhere_arrive_whole(sql: Client) -> None:
    sql.execute("CREATE FOREIGN TABLE pieces (a integer, b text) SERVER stream")
    sql.execute("CREATE VIEW pieces_sum AS SELECT count(*), sum(a), count(b) AS n FROM pieces")
    data = b"".join(b'%d,"line %d\nsays ""hello"""\n' % (number, number) for number in range(2000))
    pieces = [data[start : start + 7] for start in range(0, len(data), 7)]
    assert copy_in(sql, "COPY pieces FROM STDIN (FORMAT csv)", *pieces) == 2000
    assert sql.execute("SELECT * FROM pieces_sum").fetchone() == (2000, 1999000, 2000)


def test_a_large_copy_keeps_arrival_order(sql: Client) -> None:
    sql.execute("CREATE FOREIGN TABLE ordered (a integer, b integer) SERVER stream")
    sql.execute("CREATE VIEW ordered_rows AS SELECT b, array_agg(a) AS all_a, count(*) AS n FROM ordered GROUP BY b")
    block = [b"%d,%d\n" % (number, number % 2) for number in range(400_000)]
    pieces = [b"".join(block[start : start + 5000]) for start in range(0, len(block), 5000)]
    assert copy_in(sql, "COPY ordered FROM STDIN (FORMAT csv)", *pieces) == 400_000
    row = sql.execute("SELECT all_a, n FROM ordered_rows WHERE b = 1").fetchone()
    assert row is not None
    assert row[1] == 200_000
    assert row[0] == list(range(1, 400_000, 2))


def test_columns_and_defaults(sql: Client) -> None:
    sql.execute("CREATE TABLE partly (a integer, b text DEFAULT 'none', c integer)")
    copy_in(sql, "COPY partly (c, a) FROM STDIN", b"1\t2\n3\t\\N\n")
    assert sql.execute("SELECT * FROM partly ORDER BY c").fetchall() == [(2, "none", 1), (None, "none", 3)]


def test_generated_columns_are_computed_and_left_out(sql: Client) -> None:
    sql.execute("CREATE TABLE made (a integer, b integer GENERATED ALWAYS AS (a * 2) STORED, c text, CHECK (b < 100))")
    assert copy_in(sql, "COPY made FROM STDIN", b"1\tx\n\\N\ty\n") == 2
    assert copy_in(sql, "COPY made (a) FROM STDIN", b"3\n") == 1
    assert sql.execute("SELECT * FROM made").fetchall() == [(1, 2, "x"), (None, None, "y"), (3, 6, None)]
    assert copy_out(sql, "COPY made TO STDOUT") == b"1\tx\n\\N\ty\n3\t\\N\n"
    with pytest.raises(psycopg.errors.CheckViolation):
        copy_in(sql, "COPY made (a) FROM STDIN", b"50\n")
    for command in ("COPY made (b) FROM STDIN", "COPY made (b) TO STDOUT"):
        with pytest.raises(psycopg.errors.InvalidColumnReference, match='column "b" is a generated column'):
            copy_in(sql, command) if "FROM" in command else copy_out(sql, command)


def test_an_error_ends_the_copy_at_once_and_the_session_goes_on(running: Millstream) -> None:
    with Wire(running.port) as wire:
        wire.start()
        wire.query("CREATE FOREIGN TABLE strict (a integer) SERVER stream")
        wire.query("CREATE VIEW strict_count AS SELECT count(*) FROM strict")
        wire.send(("Q", b"COPY strict FROM STDIN; SELECT 1\0"))
        assert letters(wire.until("G")) == "G"
        wire.send(("d", b"1\nx\n"), ("c", b""))
        messages = wire.until_ready()
        assert letters(messages) == "EZ"
        fields = error_fields(messages)
        assert (fields["C"], fields["W"]) == ("22P02", 'COPY strict, line 2, column a: "x"')
        wire.send(("d", b"2\n"), ("c", b""), ("Q", b"SELECT * FROM strict_count\0"))
        assert rows(wire.until_ready()) == [(b"0",)]


def test_statements_after_a_copy_in_the_same_text(wire: Wire) -> None:
    wire.query("CREATE TABLE followed (a integer)")
    wire.send(("Q", b"COPY followed FROM STDIN; SELECT count(*) FROM followed; COPY followed FROM STDIN\0"))
    wire.until("G")
    wire.send(("d", b"1\n2\n"), ("c", b""))
    messages = wire.until("G")
    assert tags(messages) == ["COPY 2", "SELECT 1"]
    assert rows(messages) == [(b"2",)]
    wire.send(("d", b"3\n"), ("c", b""))
    assert tags(wire.until_ready()) == ["COPY 1"]
    assert rows(wire.query("SELECT count(*) FROM followed")) == [(b"3",)]


def test_copy_fail(wire: Wire) -> None:
    wire.query("CREATE TABLE given_up (a integer)")
    wire.send(("Q", b"COPY given_up FROM STDIN\0"), ("d", b"1\n"), ("f", b"no more\0"))
    messages = wire.until_ready()
    fields = error_fields(messages)
    assert (fields["C"], fields["M"]) == ("57014", "COPY from stdin failed: no more")
    assert rows(wire.query("SELECT count(*) FROM given_up")) == [(b"0",)]


def test_copy_in_a_transaction(sql: Client) -> None:
    sql.execute("CREATE TABLE undone (a integer)")
    sql.execute("BEGIN")
    copy_in(sql, "COPY undone FROM STDIN", b"1\n2\n")
    assert sql.execute("SELECT count(*) FROM undone").fetchone() == (2,)
    sql.execute("ROLLBACK")
    assert sql.execute("SELECT count(*) FROM undone").fetchone() == (0,)


def test_copy_in_the_extended_protocol(wire: Wire) -> None:
    wire.query("CREATE TABLE extended_copy (a integer)")
    wire.send(parse("COPY extended_copy FROM STDIN"), bind(), execute(), SYNC)
    assert letters(wire.until("G")) == "12G"
    wire.send(("d", b"5\n"), ("c", b""), SYNC)
    assert letters(wire.until_ready()) == "CZ"
    wire.send(parse("COPY extended_copy TO STDOUT"), bind(), execute(), SYNC)
    messages = wire.until_ready()
    assert letters(messages) == "12HdcCZ"
    assert b"".join(body for letter, body in messages if letter == "d") == b"5\n"


def test_copy_from_a_file_of_the_server(sql: Client, tmp_path: Path) -> None:
    sql.execute("CREATE FOREIGN TABLE from_file (a integer, b text) SERVER stream")
    sql.execute("CREATE VIEW from_file_sum AS SELECT count(*), sum(a) FROM from_file")
    file = tmp_path / "rows.csv"
    file.write_bytes(b"a,b\n" + b"".join(b"%d,x\n" % number for number in range(100_000)))
    assert sql.execute(f"COPY from_file FROM '{file}' (FORMAT csv, HEADER)".encode()).rowcount == 100_000
    assert sql.execute("SELECT * FROM from_file_sum").fetchone() == (100_000, 4999950000)
    file.write_bytes(b"a,b\n1,x\nbad,x\n")
    with pytest.raises(psycopg.errors.InvalidTextRepresentation) as caught:
        sql.execute(f"COPY from_file FROM '{file}' (FORMAT csv, HEADER)".encode())
    assert caught.value.diag.context == 'COPY from_file, line 3, column a: "bad"'
    with pytest.raises(psycopg.errors.UndefinedFile):
        sql.execute("COPY from_file FROM '/no/such/file'")


def test_a_vanishing_client_leaves_nothing(running: Millstream, sql: Client) -> None:
    sql.execute("CREATE TABLE vanished (a integer)")
    with Wire(running.port) as wire:
        wire.start()
        wire.send(("Q", b"COPY vanished FROM STDIN\0"))
        wire.until("G")
        wire.send(("d", b"1\n" * 100))
    copy_in(sql, "COPY vanished FROM STDIN", b"7\n")  # waits for the table's writer, so the other one has ended
    assert sql.execute("SELECT * FROM vanished").fetchall() == [(7,)]


def test_binary_copy_from_psycopg(sql: Client) -> None:
    sql.execute("CREATE FOREIGN TABLE binaries (a bigint, b double precision, c text) SERVER stream")
    sql.execute("CREATE VIEW binaries_sum AS SELECT count(*), sum(a), sum(b) AS b, max(c) FROM binaries")
    with sql.cursor() as cursor, cursor.copy("COPY binaries FROM STDIN (FORMAT binary)") as copy:
        copy.set_types(["int8", "float8", "text"])
        for number in range(5000):
            copy.write_row((number, number / 2, f"r{number}"))
    assert sql.execute("SELECT * FROM binaries_sum").fetchone() == (5000, 12497500, 6248750.0, "r999")


def test_copy_in_response_tells_format_and_columns(wire: Wire) -> None:
    wire.query("CREATE TABLE shapes (a integer, b text, c date)")
    for options, binary in (("", 0), ("(FORMAT binary)", 1)):
        wire.send(("Q", f"COPY shapes (a, c) FROM STDIN {options}\0".encode()))
        messages = wire.until("G")
        assert messages[-1][1] == struct.pack(">bhhh", binary, 2, binary, binary)
        wire.send(("f", b"enough\0"))
        wire.until_ready()


def test_a_copy_of_less_than_a_block_is_undone_with_its_error(running: Millstream) -> None:
    """Parsing, NOT NULL or the end of the data fails, in a stream and in a block of statements."""
    with Wire(running.port) as wire:
        wire.start()
        wire.query("CREATE FOREIGN TABLE small_copy (a integer NOT NULL) SERVER stream")
        wire.query("CREATE VIEW small_copy_count AS SELECT count(*) FROM small_copy")
        for data, state in ((b"1\nx\n", "22P02"), (b"1\n\\N\n", "23502"), (b"1\t2\n", "22P04")):
            wire.send(("Q", b"BEGIN; COPY small_copy FROM STDIN; COMMIT\0"))
            wire.until("G")
            wire.send(("d", data), ("c", b""))
            assert error_fields(wire.until_ready())["C"] == state
            assert tags(wire.query("ROLLBACK")) == ["ROLLBACK"]
            wire.send(("Q", b"COPY small_copy FROM STDIN\0"))
            wire.until("G")
            wire.send(("d", data), ("c", b""))
            assert error_fields(wire.until_ready())["C"] == state
        assert rows(wire.query("SELECT * FROM small_copy_count")) == [(b"0",)]
        wire.send(("Q", b"COPY small_copy FROM STDIN\0"))
        wire.until("G")
        wire.send(("c", b""))
        assert tags(wire.until_ready()) == ["COPY 0"]


def test_a_copy_that_is_known_is_still_checked(wire: Wire) -> None:
    """With a kept plan, the transaction's restrictions and the table's changes still apply."""
    wire.query("CREATE TABLE known_copy (a integer)")
    for data in (b"1\n", b"2\n"):
        wire.send(("Q", b"COPY known_copy FROM STDIN\0"))
        wire.until("G")
        wire.send(("d", data), ("c", b""))
        assert tags(wire.until_ready()) == ["COPY 1"]
    for refusal, state in (("BEGIN READ ONLY", "25006"), ("BEGIN; SELECT 1/0", "25P02")):
        wire.query(refusal)
        assert error_fields(wire.query("COPY known_copy FROM STDIN"))["C"] == state
        wire.query("ROLLBACK")
    wire.query("DROP TABLE known_copy; CREATE TABLE known_copy (a integer, b text)")
    wire.send(("Q", b"COPY known_copy FROM STDIN\0"))
    wire.until("G")
    wire.send(("d", b"3\tx\n"), ("c", b""))
    assert tags(wire.until_ready()) == ["COPY 1"]
    assert rows(wire.query("COPY known_copy TO STDOUT")) == []
    assert rows(wire.query("SELECT * FROM known_copy")) == [(b"3", b"x")]


def test_a_file_of_the_server(sql: Client, tmp_path: Path) -> None:
    sql.execute("CREATE TABLE filed (a int, b text)")
    sql.execute("INSERT INTO filed VALUES (1, 'x,y'), (2, NULL)")
    for options in ("(FORMAT text)", "(FORMAT csv, HEADER)", "(FORMAT binary)"):
        file = tmp_path / "out"
        assert sql.execute(f"COPY (SELECT * FROM filed ORDER BY a) TO '{file}' {options}".encode()).rowcount == 2
        assert file.read_bytes() == copy_out(sql, f"COPY (SELECT * FROM filed ORDER BY a) TO STDOUT {options}")
        sql.execute("DELETE FROM filed")
        assert sql.execute(f"COPY filed FROM '{file}' {options}".encode()).rowcount == 2
    for path, error, message in (
        ("out", psycopg.errors.InvalidName, "relative path not allowed for COPY to file"),
        (str(tmp_path), psycopg.errors.WrongObjectType, "for writing: Is a directory"),
        (f"{tmp_path}/no/where", psycopg.errors.UndefinedFile, "for writing: No such file or directory"),
    ):
        with pytest.raises(error, match=message):
            sql.execute(f"COPY filed TO '{path}'".encode())


def test_files_of_the_server_are_not_everybodys(running: Millstream, sql: Client, tmp_path: Path) -> None:
    sql.execute("CREATE ROLE reader_of_files; CREATE TABLE own_rows (a text); GRANT ALL ON own_rows TO reader_of_files")
    with running.connect() as client:
        for direction, role in (("FROM", "pg_read_server_files"), ("TO", "pg_write_server_files")):
            text = f"COPY own_rows {direction} '{tmp_path}/rows'".encode()
            client.execute("SET ROLE reader_of_files")
            with pytest.raises(psycopg.errors.InsufficientPrivilege, match=f"{role} role to COPY"):
                client.execute(text)
            client.execute("RESET ROLE")
            client.execute(f"GRANT {role} TO reader_of_files".encode())
            client.execute("SET ROLE reader_of_files")
            (tmp_path / "rows").write_text("one\n")
            assert client.execute(text).rowcount == 1
            client.execute("RESET ROLE")
    sql.execute("DROP TABLE own_rows; DROP ROLE reader_of_files")


def test_privileges_on_columns_suffice(sql: Client) -> None:
    sql.execute("CREATE ROLE copier")
    sql.execute("CREATE TABLE some_columns (a integer, b integer)")
    sql.execute("GRANT SELECT (a), INSERT (a) ON some_columns TO copier")
    sql.execute("SET ROLE copier")
    with sql.cursor().copy("COPY some_columns (a) FROM STDIN") as copy:
        copy.write("1\n")
    with sql.cursor().copy("COPY some_columns (a) TO STDOUT") as copy:
        assert b"".join(copy) == b"1\n"
    for statement in ("COPY some_columns TO STDOUT", "COPY some_columns (a, b) FROM STDIN"):
        with pytest.raises(psycopg.errors.InsufficientPrivilege), sql.cursor().copy(statement.encode()):
            pass
    sql.execute("RESET ROLE")
    sql.execute("DROP TABLE some_columns")
    sql.execute("DROP ROLE copier")


def test_what_cannot_be_written_is_not_deleted(sql: Client) -> None:
    sql.execute("CREATE TABLE unwritten (a integer)")
    sql.execute("INSERT INTO unwritten VALUES (1), (2)")
    with pytest.raises(psycopg.errors.DiskFull):
        sql.execute("COPY (DELETE FROM unwritten RETURNING a) TO '/dev/full'")
    assert sql.execute("SELECT count(*) FROM unwritten").fetchone() == (2,)
    assert copy_out(sql, "COPY (DELETE FROM unwritten RETURNING a) TO STDOUT") == b"1\n2\n"
    assert sql.execute("SELECT count(*) FROM unwritten").fetchone() == (0,)


def test_names_of_oids_come_and_go_as_text(sql: Client) -> None:
    sql.execute("CREATE TABLE named (a regclass, b regtype[], c regproc, d integer)")
    data = b"named\t{integer,text}\tnow\t1\npg_class\t\\N\t\\N\t2\n\\N\t{}\t\\N\t3\n"
    assert copy_in(sql, "COPY named FROM STDIN", data) == 3
    assert copy_out(sql, "COPY named TO STDOUT") == data
    query = "SELECT a, b FROM named WHERE d = 1"
    assert copy_out(sql, f"COPY ({query}) TO STDOUT (FORMAT csv, HEADER)") == b'a,b\nnamed,"{integer,text}"\n'
    binary = copy_out(sql, "COPY (SELECT 'pg_class'::regclass) TO STDOUT (FORMAT binary)")
    assert struct.pack(">hii", 1, 4, 1259) in binary
    assert sql.execute("SELECT a::oid::int, b::text FROM named WHERE d = 2").fetchone() == (1259, None)
    with pytest.raises(psycopg.errors.UndefinedTable):
        copy_in(sql, "COPY named (a) FROM STDIN", b"no_such_table\n")
    sql.execute("DROP TABLE named")
