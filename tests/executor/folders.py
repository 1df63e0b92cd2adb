"""A folder that the streams of tests follow, its rows, and the expected content of the view over them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from catalog.objects import View
from tests.executor.client import Client
from tests.executor.moving import VIEW, Servers
from tests.rig.process import wait_until

Row = tuple[int, str, str]


class Folder:
    """A folder into which whole files are moved, and their rows in the order of arrival."""

    def __init__(self, path: Path, format: str) -> None:
        self.path = path
        self.format = format
        self.rows: list[Row] = []
        self._files = 0
        path.mkdir(exist_ok=True)

    @property
    def stream(self) -> str:
        options = f"source 'files', path '{self.path}', format '{self.format}'"
        return f"CREATE FOREIGN TABLE s (k int, n numeric(12,2), t text) SERVER stream OPTIONS ({options})"

    def put(self, rows: list[Row]) -> Path:
        """Adds one file."""
        name = f"{self._files:04}.{self.format}"
        self._files += 1
        if self.format == "parquet":
            columns = zip(*rows, strict=True) if rows else ((), (), ())
            kinds = (pa.int32(), pa.string(), pa.string())
            arrays = [pa.array(values, kind) for values, kind in zip(columns, kinds, strict=True)]
            table = pa.Table.from_arrays(arrays, ["k", "n", "t"])
            table = table.set_column(1, "n", table.column("n").cast(pa.decimal128(12, 2)))
            pq.write_table(table, self.path / f"_{name}")
        else:
            (self.path / f"_{name}").write_text("".join(f"{k},{n},{t}\n" for k, n, t in rows))
        (self.path / f"_{name}").rename(self.path / name)
        self.rows += rows
        return self.path / name

    def add(self, client: Client, count: int) -> Path:
        """Adds a file with some rows, and waits until it has arrived."""
        start = len(self.rows)
        path = self.put([(number % 3, f"{number}.50", f"{number}") for number in range(start, start + count)])
        self.await_all(client)
        return path

    def await_all(self, home: Client) -> None:
        """Waits until all files have arrived at the home."""
        query = "SELECT rows FROM millstream.streams WHERE name = 's'"
        wait_until(lambda: home.run(query) == [(len(self.rows),)], 60, "the files' arrival")

    def wanted(self) -> list[tuple[Any, ...]]:
        """The view's query over all rows, evaluated from scratch."""
        keys = sorted({row[0] for row in self.rows})
        groups = [(key, [row for row in self.rows if row[0] == key]) for key in keys]
        return [(key, len(own), sum(map(amount, own)), [row[2] for row in own]) for key, own in groups]


def amount(row: Row) -> Any:
    return pa.scalar(row[1]).cast(pa.decimal128(12, 2)).as_py()


def view_of(client: Client, name: str = "v") -> View:
    view = client.session.database.core.catalog.require("public", name)
    assert isinstance(view, View)
    return view


only_csv = pytest.mark.parametrize("folder", ["csv"], indirect=True)


@pytest.fixture(params=["parquet", "csv"])
def folder(request: pytest.FixtureRequest, servers: Servers, tmp_path: Path) -> Folder:
    servers.options |= {"source_poll": 0.02}
    return Folder(tmp_path / "incoming", request.param)


@pytest.fixture
def a(servers: Servers, folder: Folder) -> Client:
    client = servers.client("a")
    client.run(folder.stream)
    client.run(VIEW)
    return client
