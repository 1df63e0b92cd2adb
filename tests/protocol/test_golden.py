"""PostgreSQL's own answers for values and COPY data, recorded in golden/*.json."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import psycopg
import pyarrow as pa
import pytest
from psycopg import sql

from catalog.values.errors import SqlError
from protocol.copy import CopyReader
from protocol.values.codec import ColumnError
from protocol.values.registry import (
    decode_binary_column,
    decode_text_column,
    decode_value,
    encode_binary,
    encode_text,
)
from tests.protocol.cases import CASES, COPY_FORMATS, COPY_TABLES, TIMEZONE, copy_inputs, type_of
from tests.rig.postgres import Postgres

FOLDER = Path(__file__).parent / "golden"
COPY_COUNT = 250
#: Inputs that Millstream refuses (0A000) and PostgreSQL accepts.
REFUSED = {("numeric(10,2)", "NaN"), ("time without time zone", "23:59:59.9999999")}


def golden(name: str) -> Any:
    return json.loads((FOLDER / f"{name}.json").read_text())


@pytest.mark.parametrize("name", CASES)
def test_values_are_read_and_printed_as_postgresql_does(name: str) -> None:
    answers = golden("values")[name]
    assert answers.keys() == set(CASES[name])
    for text, answer in answers.items():
        if (name, text) in REFUSED:
            assert outcome(name, text)[0] == "0A000", text
        else:
            assert outcome(name, text) == answer, text


def outcome(name: str, text: str) -> list[str]:
    """Printed text and binary form, or SQLSTATE and message; asserts that all ways agree."""
    type_ = type_of(name)
    texts = pa.array([None, text])
    try:
        column = decode_text_column(texts, type_, TIMEZONE)
    except ColumnError as error:
        assert error.index == 1
        with pytest.raises(SqlError) as alone:
            decode_value(text.encode(), type_, 0, TIMEZONE)
        assert alone.value.message == error.error.message
        return [error.error.sqlstate, error.error.message]
    assert column.type == type_.arrow
    binary = encode_binary(column, type_).cast(pa.binary())
    again = decode_binary_column(binary, type_)
    assert encode_binary(again, type_).cast(pa.binary()).equals(binary)
    printed = encode_text(column, type_, TIMEZONE)
    value = decode_value(text.encode(), type_, 0, TIMEZONE)
    same = decode_value(binary[1].as_py(), type_, 1)
    assert same == value or value != value
    assert binary[0].as_py() is printed[0].as_py() is None
    return [printed[1].as_py(), binary[1].as_py().hex()]


@pytest.mark.parametrize("name", COPY_FORMATS)
@pytest.mark.parametrize("block_size", [1, 1 << 20])
def test_copy_reads_what_postgresql_reads(name: str, block_size: int) -> None:
    answers = golden("copy")[name]
    inputs = copy_inputs(name, COPY_COUNT)
    assert len(answers) == len(inputs)
    for (table, text), answer in zip(inputs, answers, strict=True):
        assert copy_outcome(name, table, text.encode(), block_size) == answer, text


def copy_outcome(name: str, table: str, data: bytes, block_size: int) -> Any:
    """Rows, or SQLSTATE and message."""
    names, types = zip(*COPY_TABLES[table], strict=True)
    reader = CopyReader(list(map(type_of, types)), names, COPY_FORMATS[name][0], table, block_size=block_size)
    try:
        batches = [batch for start in range(0, len(data), 3) for batch in reader.feed(data[start : start + 3])]
        batches += reader.finish()
    except SqlError as error:
        return {"error": [error.sqlstate, error.message]}
    return [list(row.values()) for batch in batches for row in batch.to_pylist()]


@pytest.mark.slow
@pytest.mark.postgres
def test_golden_files_are_what_postgresql_says(postgres: Postgres, rewrite: bool) -> None:
    with postgres.connect() as connection:
        connection.execute(f"SET TimeZone = '{TIMEZONE}'")
        for name, answers in (("values", ask_values(connection)), ("copy", ask_copy(connection))):
            if rewrite:
                FOLDER.mkdir(exist_ok=True)
                text = json.dumps(answers, ensure_ascii=False, indent=0)
                (FOLDER / f"{name}.json").write_text(text + "\n")
            assert golden(name) == answers


def ask_values(connection: psycopg.Connection[Any]) -> dict[str, dict[str, list[str]]]:
    answers: dict[str, dict[str, list[str]]] = {}
    for name, texts in CASES.items():
        table = sql.Identifier(f"golden {name}")
        connection.execute(sql.SQL("CREATE TEMP TABLE {} (v {})").format(table, sql.SQL(name)))
        answers[name] = {}
        for text in texts:
            connection.execute(sql.SQL("TRUNCATE {}").format(table))
            escaped = text.replace("\\", "\\\\").replace("\n", "\\n")
            try:
                with connection.cursor().copy(sql.SQL("COPY {} FROM STDIN").format(table)) as copy:
                    copy.write(escaped + "\n")
            except psycopg.Error as error:
                answers[name][text] = [str(error.sqlstate), str(error.diag.message_primary)]
                continue
            cursor = connection.cursor(binary=True)
            cursor.execute(sql.SQL("SELECT format('%s', v), v FROM {}").format(table))
            assert cursor.pgresult is not None
            printed, binary = (cursor.pgresult.get_value(0, column) for column in (0, 1))
            answers[name][text] = [(printed or b"").decode(), (binary or b"").hex()]
    return answers


def ask_copy(connection: psycopg.Connection[Any]) -> dict[str, Any]:
    answers: dict[str, Any] = {}
    for table, columns in COPY_TABLES.items():
        connection.execute(f"CREATE TEMP TABLE {table} ({', '.join(map(' '.join, columns))})")
    for name, (_, options, _) in COPY_FORMATS.items():
        answers[name] = []
        for table, text in copy_inputs(name, COPY_COUNT):
            connection.execute(f"TRUNCATE {table}")
            try:
                with connection.cursor().copy(f"COPY {table} FROM STDIN ({options})") as copy:
                    copy.write(text)
            except psycopg.Error as error:
                answers[name].append({"error": [error.sqlstate, error.diag.message_primary]})
                continue
            rows = connection.execute(f"SELECT * FROM {table}").fetchall()
            answers[name].append([list(row) for row in rows])
    return answers
