"""The law's judge: one Millstream and one PostgreSQL schema that get equal statements and must give equal answers.

Streams are ordinary tables in PostgreSQL, and a continuous view's query runs there from scratch each time. A row is
inserted into PostgreSQL only after Millstream has acknowledged it.
"""

from __future__ import annotations

import csv
import random
import uuid
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise
from typing import Any

import psycopg
from psycopg import sql

from tests.rig.compare import assert_same_rows
from tests.rig.postgres import Postgres
from tests.rig.server import Millstream


class Mirror:
    """Two connections; ``views`` maps each view's name to its query."""

    def __init__(self, server: Millstream, judge: psycopg.Connection[Any]) -> None:
        self.server = server
        self.client = server.connect()
        self.judge = judge
        self.views: dict[str, str] = {}
        self.acknowledged = 0

    def table(self, name: str, columns: str) -> None:
        """An ordinary table in both."""
        self.both(f"CREATE TABLE {name} ({columns})")

    def stream(self, name: str, columns: str, options: str = "") -> None:
        """A stream in Millstream, a table in PostgreSQL."""
        _run(self.client, f"CREATE FOREIGN TABLE {name} ({columns}) SERVER stream {options}")
        _run(self.judge, f"CREATE TABLE {name} ({columns})")

    def view(self, name: str, query: str, judged: str | None = None, options: str = "") -> None:
        """A continuous view in Millstream; for PostgreSQL only its text, or another text with the same meaning."""
        _run(self.client, f"CREATE VIEW {name} {options} AS {query}")
        self.views[name] = judged or query

    def copy(self, table: str, data: bytes) -> None:
        """COPY of CSV lines without header: into Millstream first, then into PostgreSQL."""
        for connection in (self.client, self.judge):
            with connection.cursor() as cursor, cursor.copy(_bytes(f"COPY {table} FROM STDIN (FORMAT csv)")) as copy:
                copy.write(data)
        self.acknowledged += data.count(b"\n")

    def insert(self, table: str, rows: Sequence[Sequence[object]], one_statement: bool) -> None:
        """INSERT of rows: one statement with many VALUES of literals, or one prepared statement many times."""
        if not rows:
            return
        width = len(rows[0])
        for connection in (self.client, self.judge):
            with connection.cursor() as cursor:
                if one_statement:
                    values = (sql.SQL("({})").format(sql.SQL(",").join(map(sql.Literal, row))) for row in rows)
                    cursor.execute(sql.SQL("INSERT INTO {} VALUES {}").format(sql.Identifier(table), _comma(values)))
                else:
                    cursor.executemany(_bytes(f"INSERT INTO {table} VALUES ({','.join(['%s'] * width)})"), rows)
        self.acknowledged += len(rows)

    def both(self, statement: str) -> None:
        """The same statement on both."""
        for connection in (self.client, self.judge):
            _run(connection, statement)

    def check(self, *names: str) -> None:
        """Checks that each view (all by default) equals its query evaluated from scratch."""
        for name in names or self.views:
            actual = _run(self.client, f"SELECT * FROM {name}").fetchall()
            expected = _run(self.judge, self.views[name]).fetchall()
            assert_same_rows(actual, expected, f"{name} after {self.acknowledged} rows")

    def check_outcomes(self, *names: str) -> None:
        """Checks views (all by default) and their queries, both of which may raise the same SQLSTATE."""
        for name in names or self.views:
            query = self.views[name]
            found, wanted = _outcome(self.client, f"SELECT * FROM {name}"), _outcome(self.judge, query)
            if isinstance(found, list) and isinstance(wanted, list):
                assert_same_rows(found, wanted, f"{name}: {query}")
            else:
                assert found == wanted, f"{name}: {query}"

    def restart(self, crash: bool) -> None:
        """Ends the server, in order or by SIGKILL, starts it again, and connects again."""
        self.client.close()
        if crash:
            self.server.kill9()
        self.server.restart()
        self.client = self.server.connect()

    def jobs(self, engine: str) -> int:
        """How many maintenance jobs an engine has finished since the server's start."""
        query = "SELECT count(*) FROM millstream.jobs WHERE status = 'done' AND engine = %s"
        row = self.client.execute(query, (engine,)).fetchone()
        assert row is not None
        return int(row[0])


@contextmanager
def mirrored(server: Millstream, postgres: Postgres) -> Iterator[Mirror]:
    """A mirror with its own PostgreSQL schema, which is dropped at its end."""
    schema = f"mirror_{uuid.uuid4().hex}"
    with postgres.connect() as judge:
        _run(judge, f"CREATE SCHEMA {schema}")
        _run(judge, f"SET search_path = {schema}")
        mirror = Mirror(server, judge)
        try:
            yield mirror
        finally:
            mirror.client.close()
            _run(judge, f"DROP SCHEMA {schema} CASCADE")


def cut(lines: Sequence[bytes], pieces: int, source: random.Random) -> Iterator[Sequence[bytes]]:
    """The lines in order, in a number of pieces of very different sizes (from one row to a large share)."""
    marks = sorted({0, len(lines), *(int(len(lines) * source.random() ** 2) for _ in range(pieces // 2))})
    marks = sorted({*marks, *(min(mark + source.randint(1, 40), len(lines)) for mark in marks)})
    for start, end in pairwise(marks):
        yield lines[start:end]


def parse(lines: Iterable[bytes]) -> list[list[str]]:
    """CSV lines as rows of text, for INSERT."""
    return list(csv.reader(line.decode() for line in lines))


def _run(connection: psycopg.Connection[Any], text: str) -> psycopg.Cursor[Any]:
    return connection.execute(_bytes(text))


def _outcome(connection: psycopg.Connection[Any], text: str) -> list[tuple[Any, ...]] | str | None:
    """The rows, or the error's SQLSTATE."""
    try:
        return _run(connection, text).fetchall()
    except psycopg.Error as error:
        return error.sqlstate


def _bytes(text: str) -> bytes:
    """psycopg accepts a query composed at run time only as bytes (its str is a LiteralString)."""
    return text.encode()


def _comma(parts: Iterable[sql.Composable]) -> sql.Composed:
    return sql.SQL(",").join(parts)
