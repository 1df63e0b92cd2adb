"""Streams that follow a folder, with the embedded engine alone."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from catalog.errors import SqlError
from tests.executor.client import Client, open_database

VIEW = "CREATE VIEW v AS SELECT page, sum(n) AS n FROM files GROUP BY page"


def write(folder: Path, name: str, rows: dict[str, list[object]]) -> None:
    """A file that appears whole."""
    pq.write_table(pa.table(rows), folder / f"_{name}")
    (folder / f"_{name}").rename(folder / name)


def wait_until(condition: Callable[[], bool]) -> None:
    """Waits for the background thread, at most 20 seconds."""
    deadline = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < deadline, "nothing happened"
        time.sleep(0.02)


def shows(client: Client, expected: list[tuple[str, int]]) -> bool:
    """Whether the view has these rows."""
    return client.run("SELECT * FROM v ORDER BY page") == expected


def test_files_that_arrive_are_rows_and_stay_so_after_restarts(tmp_path: Path) -> None:
    folder = tmp_path / "incoming"
    folder.mkdir()
    database = open_database(tmp_path / "data", source_poll=0.02, maintenance_idle=0.02)
    client = Client(database)
    client.run(
        "CREATE FOREIGN TABLE files (page text, n int) SERVER stream "
        f"OPTIONS (source 'files', path '{folder}', format 'parquet')"
    )
    client.run(VIEW)
    with pytest.raises(SqlError, match="42809"):
        client.run("INSERT INTO files VALUES ('a', 1)")
    write(folder, "one.parquet", {"page": ["a", "b"], "n": [1, 2]})
    wait_until(partial(shows, client, [("a", 1), ("b", 2)]))
    for round_ in range(3):
        database.close()
        write(folder, f"more{round_}.parquet", {"page": ["a"], "n": [10]})
        database = open_database(tmp_path / "data", source_poll=0.02, maintenance_idle=0.02)
        client = Client(database)
        expected = [("a", 11 + 10 * round_), ("b", 2)]
        wait_until(partial(shows, client, expected))
    database.close()
