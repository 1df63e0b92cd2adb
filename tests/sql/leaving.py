"""Queries of a benchmark that leave their server after every pipeline, and continue on one that has only their
artifacts."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pytest
from msgspec import Struct

from executor.database.database import Database
from executor.separation.service import FOLDER
from tests.executor.client import Client, open_database
from tests.executor.separating import Asked, leave, separable


class Servers(Struct, frozen=True):
    """The server where queries begin, and one without tables, where they continue."""

    source: Database
    target: Database

    def go_on(self, query_id: str) -> Any:
        """The rows of a query that has left, computed by the other server; both servers delete the query."""
        shutil.copytree(_folder(self.source) / query_id, _folder(self.target) / query_id)
        found = Client(self.target).run(f"SELECT * FROM millstream.resume('{query_id}')")
        for database in (self.source, self.target):
            assert database.separation.stored.delete(query_id)
        return found


def _folder(database: Database) -> Path:
    return database.core.options.shared_directory / FOLDER


@contextmanager
def servers(folder: Path, tables: dict[str, str], csv: Callable[[str], Path]) -> Iterator[Servers]:
    """Two servers; the first one has the tables, with the rows of CSV files."""
    source, target = open_database(folder / "source"), open_database(folder / "target")
    try:
        load(source, tables, csv)
        yield Servers(source, target)
    finally:
        target.close()
        source.close()


def load(database: Database, tables: dict[str, str], csv: Callable[[str], Path]) -> None:
    """Creates tables with the rows of CSV files."""
    client = Client(database)
    for name, columns in tables.items():
        client.run(f"CREATE TABLE {name} ({columns})")
        client.copy(f"COPY {name} FROM STDIN", rows_of(database, name, csv(name)))


def rows_of(database: Database, name: str, path: Path) -> list[pa.RecordBatch]:
    columns = next(item for item in database.core.catalog.objects.values() if item.name == name).columns
    kinds = pyarrow.csv.ConvertOptions(
        column_types={column.name: column.type.arrow for column in columns}, strings_can_be_null=True
    )
    found: list[pa.RecordBatch] = pyarrow.csv.read_csv(path, convert_options=kinds).to_batches()
    return found


def leaves_everywhere(servers: Servers, query: str, wanted: Any, monkeypatch: pytest.MonkeyPatch) -> int:
    """Suspends a query after each of its pipelines except the last, and checks the other server's rows; returns how
    many times."""
    client = separable(servers.source)
    for after in range(1, 100):
        with monkeypatch.context() as patch:
            Asked(patch, after)
            query_id = leave(client, query)
        if query_id is None:
            return after - 1
        found = servers.go_on(query_id)
        assert (found if "order by" in query.lower() else sorted(found)) == wanted, after
    raise AssertionError("it never ends")
