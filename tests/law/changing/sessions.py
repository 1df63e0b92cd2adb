"""Sessions of a Millstream in this process, and connections to PostgreSQL.

Both give answers as texts. A statement that waits for a lock of the other session fails soon, with 55P03.
"""

from __future__ import annotations

import datetime
import traceback
from typing import Any, Final

from msgspec.structs import asdict
from pglast import ast
from psycopg.pq import DiagnosticField, ExecStatus, PGconn, abc

from catalog.values.errors import SqlError, failed_transaction
from executor.database.database import Database
from executor.sql.replanning import Planned
from executor.transactions.result import Result
from planner.parse.parser import parse
from planner.statements.statement import CloseCursor, CopyIn, DeclareCursor, Fetch, Output
from protocol.copy import CopyFormat, CopyReader
from protocol.values.registry import encode_few
from server.session.cursors import Cursors, SqlCursor
from tests.executor.client import Client
from tests.law.changing.answers import Answer, Row
from tests.law.changing.steps import SESSIONS

SCHEMA: Final = "law"
#: Seconds that a statement waits for a lock.
PATIENCE: Final = 0.03


class Session(Client):
    """A session of Millstream whose answers are texts, as a client gets them. Plans are kept, as the server does."""

    def __init__(self, database: Database, schema: str) -> None:
        super().__init__(database, schema)
        self._plans: dict[str, Planned] = {}
        self._catalog = self.session.catalog
        self.cursors = Cursors()

    def planned(self, text: str) -> Planned:
        """A bound statement, planned once for a version of the catalog."""
        if self.session.catalog is not self._catalog:
            self._plans.clear()
            self._catalog = self.session.catalog
        if text not in self._plans:
            self._plans[text] = super().planned(text)
        return self._plans[text]

    def answer(self, text: str, data: bytes | None = None) -> Answer:
        """Runs a statement; ``data`` are COPY's."""
        try:
            return self._answer(text, data)
        except SqlError as error:
            self._fails()
            return Answer(error.sqlstate, message=error.message)
        except Exception:
            self._fails()
            return Answer("XX000", message=traceback.format_exc())

    @property
    def is_in_block(self) -> bool:
        """Whether a transaction is open."""
        return self.session.status != "I"

    def _fails(self) -> None:
        if self.session.status == "T":
            self.session.fail()
        if self.session.status == "I":
            self.cursors.rollback()

    def _answer(self, text: str, data: bytes | None) -> Answer:
        (raw,) = parse(text)
        if data is not None:
            return self._copied(text, data)
        if isinstance(raw.node, ast.TransactionStmt):
            result = self.session.execute(self.bind(text))
            if self.session.status == "I":
                self.cursors.rollback() if result.tag == "ROLLBACK" else self.cursors.commit()
        elif self.session.status == "E":
            raise failed_transaction()
        else:
            result = self._run(self.planned(text))
        self.notices += [notice.message for notice in result.notices]
        if result.batches is None:
            return Answer("", result.tag)
        rows = [row for batch in result.batches for row in _texts(batch.columns, result.outputs)]
        return Answer("", result.tag, tuple(item.type.oid for item in result.outputs), tuple(rows))

    def _run(self, planned: Planned) -> Result:
        """Runs a statement; those about cursors as a server does."""
        match planned.statement:
            case Fetch(name=name) as statement:
                return self.cursors.find(name).fetch(statement)
            case CloseCursor(name=name):
                self.cursors.close(name)
                return Result("CLOSE CURSOR" if name else "CLOSE CURSOR ALL")
            case DeclareCursor() as statement:
                self.cursors.check(statement, in_block=self.is_in_block)
                rows = self.session.execute_planned(planned)
                self.cursors.add(SqlCursor.of(statement, rows, datetime.datetime.now(datetime.UTC), 0))
                if not self.is_in_block:
                    self.cursors.commit()
                return Result("DECLARE CURSOR")
            case _:
                return self.session.execute_planned(planned)

    def _copied(self, text: str, data: bytes) -> Answer:
        planned = self.planned(text)
        statement = planned.statement
        assert isinstance(statement, CopyIn)
        columns = [statement.target.columns[place] for place in statement.columns]
        reader = CopyReader(
            [item.type for item in columns],
            [item.name for item in columns],
            CopyFormat(**asdict(statement.options)),
            statement.target.name,
            scaled=tuple(place for place, item in enumerate(columns) if item.keeps_scale),
        )
        return Answer("", f"COPY {self.copy_planned(planned, [*reader.feed(data), *reader.finish()])}")


def _texts(columns: list[Any], outputs: tuple[Output, ...]) -> list[Row]:
    fields = [encode_few(column, item.type, 0, "UTC") for column, item in zip(columns, outputs, strict=True)]
    return [
        tuple(None if field is None else bytes(field).decode() for field in row) for row in zip(*fields, strict=True)
    ]


class Theirs:
    """Connections to PostgreSQL."""

    def __init__(self, dsn: str) -> None:
        self._connections = [_connect(dsn) for _ in range(SESSIONS)]

    def begin(self) -> None:
        """An empty schema."""
        for connection in self._connections:
            connection.exec_(b"ROLLBACK")
            connection.exec_(b"CLOSE ALL")
        found = self.answer(0, f"DROP SCHEMA IF EXISTS {SCHEMA} CASCADE; CREATE SCHEMA {SCHEMA}")
        assert not found.state, found

    def answer(self, session: int, text: str, data: bytes | None = None) -> Answer:
        """Runs a statement; ``data`` are COPY's."""
        connection = self._connections[session]
        result = connection.exec_(text.encode())
        if result.status == ExecStatus.COPY_IN:
            assert data is not None
            connection.put_copy_data(data)
            connection.put_copy_end()
            found = connection.get_result()
            assert found is not None
            assert connection.get_result() is None
            result = found
        if result.status not in (ExecStatus.TUPLES_OK, ExecStatus.COMMAND_OK):
            state = result.error_field(DiagnosticField.SQLSTATE) or b"lost"
            message = result.error_field(DiagnosticField.MESSAGE_PRIMARY) or result.error_message
            return Answer(state.decode(), message=message.decode())
        tag, kinds = (result.command_status or b"").decode(), tuple(map(result.ftype, range(result.nfields)))
        return Answer("", tag, kinds, tuple(_row(result, row) for row in range(result.ntuples)))

    def close(self) -> None:
        """Ends the connections."""
        for connection in self._connections:
            connection.finish()


def _row(result: abc.PGresult, row: int) -> Row:
    values = (result.get_value(row, column) for column in range(result.nfields))
    return tuple(None if value is None else value.decode() for value in values)


def _connect(dsn: str) -> abc.PGconn:
    found = PGconn.connect(dsn.encode())
    for text in (
        f"SET search_path = {SCHEMA}",
        "SET TimeZone = 'UTC'",
        f"SET lock_timeout = {int(PATIENCE * 1000)}",
        "SET client_min_messages = error",
        "SET statement_timeout = '30s'",
    ):
        found.exec_(text.encode())
    return found
