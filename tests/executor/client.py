"""SQL text to rows with a Database in this process: like the server, but without sockets."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa

from catalog.objects import PUBLIC
from executor.core.core import Core
from executor.database.database import Database
from executor.key_access.table_keys import TableKeys
from executor.key_access.view_indexes import ViewIndexes
from executor.options import Options
from executor.sql.replanning import Planned
from executor.sql.session import DatabaseSession
from planner.bind import bind
from planner.bind.state.context import Context
from planner.parse.parser import parse
from planner.statements.statement import Query, Statement


def open_database(folder: Path, **options: Any) -> Database:
    """A database without Spark, with short pauses, whose short queries can leave, too."""
    settings: dict[str, Any] = {"spark_enabled": False, "log_segment_bytes": 1 << 20, "storage_latency": 0.0}
    settings |= options
    return Database.open(Options(folder, **settings))


def key_services(database: Database) -> tuple[Core, ViewIndexes, TableKeys]:
    """What answers point reads."""
    return database.core, database.indexes, database.table_keys


class Client:
    """One session."""

    def __init__(self, database: Database, schema: str = PUBLIC) -> None:
        self.session: DatabaseSession = DatabaseSession(database, "millstream", "millstream")
        self.session.search_path = (schema,)
        self.notices: list[str] = []

    def run(self, text: str) -> list[tuple[Any, ...]] | str:
        """Runs statements; returns the last one's rows, or its tag."""
        answer: list[tuple[Any, ...]] | str = ""
        for raw in parse(text):
            result = self.session.execute(bind(raw, self._context()).statement)
            self.notices += [notice.message for notice in result.notices]
            answer = result.tag if result.batches is None else [row for batch in result.batches for row in rows(batch)]
        return answer

    def values(self, text: str) -> list[tuple[Any, ...]]:
        """A query's rows with numerics without trailing zeros, including numerics that are carried as text."""
        statement, rows = self.bind(text), self.run(text)
        assert isinstance(statement, Query)
        assert isinstance(rows, list)
        are_numbers = [item.type.name == "numeric" for item in statement.outputs]
        return [
            tuple(
                Decimal(value).normalize() if is_number and value is not None else value
                for value, is_number in zip(row, are_numbers, strict=True)
            )
            for row in rows
        ]

    def bind(self, text: str) -> Statement:
        """A bound statement, to be executed later."""
        (raw,) = parse(text)
        return bind(raw, self._context()).statement

    def _context(self) -> Context:
        separated = self.session.database.separation.columns
        session = self.session
        return Context(session.catalog, session.search_path, time_zone=session.time_zone, separated=separated)

    def planned(self, text: str) -> Planned:
        """A bound statement, to be executed later and planned again if necessary."""
        return Planned(self.bind(text), self.session.catalog, lambda: self.planned(text))

    def copy(self, text: str, batches: list[pa.RecordBatch]) -> int:
        """COPY ... FROM STDIN with parsed rows."""
        return self.copy_planned(self.planned(text), batches)

    def copy_planned(self, planned: Planned, batches: list[pa.RecordBatch]) -> int:
        """COPY ... FROM STDIN with a statement planned before."""
        sink = self.session.copy_in(planned)
        for batch in batches:
            sink.write(sink.prepare(batch))
        return sink.finish()


@contextmanager
def in_own_schema(database: Database) -> Iterator[Client]:
    """A session with its own schema, so that tests can share a database, as opening one takes longer than most
    tests."""
    client = Client(database, schema="own")
    client.run("CREATE SCHEMA own")
    yield client
    client.run("DROP SCHEMA own CASCADE")


def rows(batch: pa.RecordBatch) -> list[tuple[Any, ...]]:
    """A batch as tuples."""
    return list(zip(*(column.to_pylist() for column in batch.columns), strict=True))
