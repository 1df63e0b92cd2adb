"""Rows that wait for DuckDB while it is slow or refuses them."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pyarrow as pa
import pytest

from catalog.objects import Table
from catalog.values.errors import SqlError
from executor.database.database import Database
from executor.embedded.connection import Connection
from executor.tables.backlog import NetRows, net_rows
from tests.executor.client import Client, open_database


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    with closing(open_database(tmp_path)) as database:
        Client(database).run("CREATE TABLE t (k int PRIMARY KEY, n int); INSERT INTO t VALUES (1, 1), (2, 2)")
        database.core.tables.backlog.apply()
        database.maintenance.close()  # it would give DuckDB what has waited for a second
        yield database


def changed(database: Database, key: int, before: int | None, after: int | None) -> list[NetRows]:
    (table,) = (item for item in database.core.catalog.objects.values() if isinstance(item, Table) and item.name == "t")
    schema = pa.schema([("k", pa.int32()), ("n", pa.int32())])
    old, new = (
        pa.Table.from_pydict({"k": [] if value is None else [key], "n": [] if value is None else [value]}, schema)
        for value in (before, after)
    )
    return [net_rows(table, old, new)]


def rows(database: Database) -> list[tuple[object, ...]]:
    return Client(database).run("SELECT k, n FROM t ORDER BY k")


def test_who_adds_waits_for_nobody(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    backlog, lsn = database.core.tables.backlog, database.core.sequencer.visible
    begun, go_on = threading.Event(), threading.Event()
    connect = backlog._connect

    def slow() -> Connection:
        begun.set()
        assert go_on.wait(60)
        return connect()

    backlog.add(lsn + 1, changed(database, 1, 1, 10))
    monkeypatch.setattr(backlog, "_connect", slow)
    thread = threading.Thread(target=backlog.apply)
    thread.start()
    assert begun.wait(60)
    backlog.add(lsn + 2, changed(database, 1, 10, 11))  # like an event loop
    assert backlog.first_lsn == lsn + 1
    go_on.set()
    thread.join()
    assert backlog.first_lsn == lsn + 2
    assert rows(database) == [(1, 11), (2, 2)]
    assert backlog.first_lsn is None


def test_what_duckdb_refuses_waits_on_with_what_came_meanwhile(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    backlog, lsn = database.core.tables.backlog, database.core.sequencer.visible

    def refusing() -> Connection:
        backlog.add(lsn + 2, changed(database, 1, 10, None))
        backlog.add(lsn + 3, changed(database, 3, None, 30))
        raise SqlError("53100", "no room")

    backlog.add(lsn + 1, [*changed(database, 1, 1, 10), *changed(database, 2, 2, 20)])
    with monkeypatch.context() as patched:
        patched.setattr(backlog, "_connect", refusing)
        with pytest.raises(SqlError, match="no room"):
            backlog.apply()
    assert backlog.first_lsn == lsn + 1
    assert rows(database) == [(2, 20), (3, 30)]
