"""Servers of one storage in this process, and a view that moves between them."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from catalog.objects import View
from executor.cluster import lock, pulse, storage
from executor.database.database import Database
from executor.moving import exported_states, guests
from executor.moving.answers import answer
from executor.remote_reads import home_tables as borrowing
from executor.remote_reads import remote_views as elsewhere
from executor.replicas import replica
from tests.executor.client import Client, open_database
from tests.executor.test_migration import lose

#: The seconds for which servers wait for each other.
_PATIENCE = (
    (lock, "STANDSTILL"),
    (lock, "PATIENCE"),
    (storage, "PATIENCE"),
    (pulse, "_PATIENCE"),
    (elsewhere, "_PATIENCE"),
    (exported_states, "_PATIENCE"),
    (guests, "PATIENCE"),
    (borrowing, "_PATIENCE"),
    (replica, "_MOMENT"),
)
STREAM = "CREATE FOREIGN TABLE s (k int, n numeric(12,2), t text) SERVER stream"
VIEW = "CREATE VIEW v AS SELECT k, count(*) AS c, sum(n) AS n, array_agg(t) AS t FROM s GROUP BY k"
READ = "SELECT k, c, n, t FROM v ORDER BY k"


class Servers:
    """Servers of one storage, which can be started again with their data."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._open: dict[str, Database] = {}
        self.options: dict[str, Any] = {"maintenance_idle": 0.05}

    def __getitem__(self, name: str) -> Database:
        if name not in self._open:
            shared = {"storage": str(self._folder / "storage"), "server_name": name, "server_lease": 600.0}
            opened = open_database(self._folder / name, **shared, **self.options, address=name)
            opened.elsewhere.ask = self._ask
            self._open[name] = opened
        return self._open[name]

    def _ask(self, address: str, question: bytes, is_over: Callable[[], bool]) -> bytes:
        """Passes questions between servers, in place of connections."""
        if address not in self._open:
            raise ConnectionRefusedError("nobody is there")
        return answer(self._open[address].own_reader(), question)

    def questions(self, name: str) -> list[bytes]:
        """Passes a server's questions from now on."""
        asked: list[bytes] = []
        database = self[name]

        def ask(address: str, question: bytes, is_over: Callable[[], bool]) -> bytes:
            asked.append(question)
            return self._ask(address, question, is_over)

        database.elsewhere.ask = ask
        return asked

    def client(self, name: str) -> Client:
        return Client(self[name])

    @property
    def running(self) -> tuple[str, ...]:
        """The servers that are running."""
        return tuple(self._open)

    def stop(self, name: str) -> None:
        if name in self._open:
            self._open.pop(name).close()

    def empty(self, name: str) -> None:
        """Deletes a server's own folder, as a new disk would, and gives its log up."""
        self.stop(name)
        shutil.rmtree(self._folder / name)
        shutil.rmtree(self._folder / "storage" / "servers" / name)

    def close(self) -> None:
        for name in tuple(self._open):
            self.stop(name)

    def lose(self, name: str, by: str) -> None:
        """Makes a server's lease expire for the others; the server itself may not notice."""
        lose(self[name], self[by])

    def copied(self, name: str, view: str) -> None:
        """Makes a copy of a guest's states now."""
        database = self[name]
        runtime = next(item for item in database.core.runtimes() if item.view.name == view)
        replica = database.replicas.get(runtime.program.inputs[0])
        assert replica is not None
        database.view_migration.checkpoints.make(runtime, replica)

    def knows(self, view: str) -> bool:
        """Whether a view has ever left."""
        return any(entry.view == view for entry in self["a"].view_migration.ownership.all())

    def owner(self, view: str) -> str:
        """Whose a view is, by its entry."""
        entries = self["a"].view_migration.ownership.all()
        return next(entry.owner if entry.taken else "" for entry in entries if entry.view == view)

    def migrate(self, source: str, target: str, name: str = "v") -> str:
        _ = self[target]
        view = self[source].core.catalog.require("public", name)
        assert isinstance(view, View)
        told = self[source].view_migration.migrate(view, target, lambda: False)
        # A home lets go what it held a moment after it has said that the view is back.
        for runtime in self[target].core.runtimes():
            if runtime.shared:
                self[target].view_migration.refresh_entry(runtime)
        return told


def wait_longer() -> Callable[[], None]:
    """Lets servers wait for each other as in these tests, until the result is called."""
    before = [(module, name, getattr(module, name)) for module, name in _PATIENCE]
    for module, name in _PATIENCE:
        setattr(module, name, 60.0)

    def end() -> None:
        for module, name, value in before:
            setattr(module, name, value)

    return end


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Servers that wait for each other long enough for a busy machine."""
    for module, name in _PATIENCE:
        monkeypatch.setattr(module, name, 60.0)


@pytest.fixture
def servers(tmp_path: Path, patient: None) -> Iterator[Servers]:
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
    """The acknowledged rows, and the expected content of the view over them."""

    def __init__(self) -> None:
        self._rows: list[tuple[int, int, str]] = []

    def insert(self, client: Client, count: int) -> None:
        """Inserts some rows."""
        start = len(self._rows)
        rows = [(number % 3, number, f"{number}") for number in range(start, start + count)]
        values = ", ".join(f"({k}, {n}, '{t}')" for k, n, t in rows)
        client.run(f"INSERT INTO s VALUES {values}")
        self._rows += rows

    def wanted(self) -> list[tuple[Any, ...]]:
        """The view's query, evaluated from scratch."""
        keys = sorted({row[0] for row in self._rows})
        groups = [(key, [row for row in self._rows if row[0] == key]) for key in keys]
        return [(key, len(own), sum(row[1] for row in own), [row[2] for row in own]) for key, own in groups]


def lost(by: Database, *names: str) -> None:
    """Servers that were stopped count as lost."""
    registry = by.core.registry
    with by.core.shared.exclusive():
        for name in names:
            registry._put(replace(registry.require(name), state="lost"))
