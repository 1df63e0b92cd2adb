"""Continuous views that go from server to server: whoever maintains them, they are their query over what was said to be
there."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from catalog.errors import SqlError
from catalog.objects import View
from executor.database import Database
from tests.executor.client import Client, open_database
from tests.rig.process import wait_until

pytestmark = pytest.mark.slow

STREAM = "CREATE FOREIGN TABLE s (k int, n numeric(12,2), t text) SERVER stream"
VIEW = "CREATE VIEW v AS SELECT k, count(*) AS c, sum(n) AS n, array_agg(t) AS t FROM s GROUP BY k"
READ = "SELECT k, c, n, t FROM v ORDER BY k"


class Servers:
    """Servers of one storage, which are started again with what they had."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._open: dict[str, Database] = {}
        self.options: dict[str, Any] = {"maintenance_idle": 0.05}

    def __getitem__(self, name: str) -> Database:
        if name not in self._open:
            shared = {"storage": str(self._folder / "storage"), "server_name": name, "server_lease": 600.0}
            self._open[name] = open_database(self._folder / name, **shared, **self.options)
        return self._open[name]

    def client(self, name: str) -> Client:
        return Client(self[name])

    def stop(self, name: str) -> None:
        self._open.pop(name).close()

    def close(self) -> None:
        for name in tuple(self._open):
            self.stop(name)

    def migrate(self, source: str, target: str, name: str = "v") -> str:
        _ = self[target]
        view = self[source].catalog.require(name)
        assert isinstance(view, View)
        return self[source].view_moving.migrate(view, target, lambda: False)


@pytest.fixture
def servers(tmp_path: Path) -> Iterator[Servers]:
    opened = Servers(tmp_path)
    yield opened
    opened.close()


@pytest.fixture
def a(servers: Servers) -> Client:
    client = servers.client("a")
    client.run(STREAM)
    client.run(VIEW)
    return client


class Rows:
    """What was acknowledged, and what the view is over it."""

    def __init__(self) -> None:
        self._rows: list[tuple[int, int, str]] = []

    def insert(self, client: Client, count: int) -> None:
        """Some rows more."""
        start = len(self._rows)
        rows = [(number % 3, number, f"{number}") for number in range(start, start + count)]
        values = ", ".join(f"({k}, {n}, '{t}')" for k, n, t in rows)
        client.run(f"INSERT INTO s VALUES {values}")
        self._rows += rows

    def wanted(self) -> list[tuple[Any, ...]]:
        """From scratch."""
        keys = sorted({row[0] for row in self._rows})
        groups = [(key, [row for row in self._rows if row[0] == key]) for key in keys]
        return [(key, len(own), sum(row[1] for row in own), [row[2] for row in own]) for key, own in groups]


def test_there_and_back(servers: Servers, a: Client) -> None:
    rows = Rows()
    rows.insert(a, 5)
    for _ in range(3):
        assert servers.migrate("a", "b") == "v"
        b = servers.client("b")
        assert b.run(READ) == rows.wanted()
        rows.insert(a, 4)
        assert b.run(READ) == rows.wanted(), "rows come as they are acknowledged"
        with pytest.raises(SqlError, match='view "v" is on server "b"'):
            a.run(READ)
        servers.migrate("b", "a")
        rows.insert(a, 3)
        assert a.run(READ) == rows.wanted()
        wait_until(lambda: not servers["b"].streams, 20, "the replica's end")
