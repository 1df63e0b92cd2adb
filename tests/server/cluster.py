"""Servers with one storage folder, as processes that die or stand still at failpoints that tests choose, and one server
that survives a file's tests.

Shared by the cluster tests of queries, views and streams.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from executor.failpoints import VARIABLE
from tests.rig.process import stat, wait_until
from tests.rig.server import Millstream
from tests.server.test_separation import BRIEF, NUMBERS

TABLE = "CREATE TABLE t (k int); INSERT INTO t SELECT g FROM generate_series(1, 350) g"


def server(storage: Path, name: str, lease: float = 600, failpoint: str = "") -> Millstream:
    """A server of a storage folder, not started. Its lease outlasts a test unless given. It makes no automatic copies,
    so that it reaches a failpoint only when a test lets it."""
    shared = {"storage": storage, "server_name": name, "server_lease": lease, "view_copy_interval": 0}
    settings = {**shared, "spark_enabled": False}
    return Millstream(settings=settings, environment={VARIABLE: failpoint})


def expire(storage: Path, name: str) -> None:
    """Makes the lease of a server that has died, or stands still, expire at once: tests do not wait for that, and a
    slow machine makes no other server count as lost."""
    entry, changed = storage / "servers" / f"{name}.json", storage / f"{name}.expired"
    changed.write_text(json.dumps({**json.loads(entry.read_text()), "lease": 0}))
    changed.replace(entry)


def stands_still(server: Millstream) -> bool:
    """Whether it was killed, or stopped."""
    try:
        return stat(server.pid)[0] in "ZT"
    except (FileNotFoundError, ProcessLookupError):  # the process that forked it knows already that it has ended
        return True


class Cluster:
    """A storage folder, and a server ``s`` that survives all tests of a file."""

    def __init__(self, folder: Path) -> None:
        self.storage = folder
        self._names = (f"x{number}" for number in itertools.count())
        self.survivor = server(folder, "s")

    def doomed(self, failpoint: str) -> Millstream:
        """A server that dies, or stands still, at a failpoint, and counts as lost once its lease is made to expire."""
        return server(self.storage, next(self._names), failpoint=failpoint)

    def queries(self) -> list[str]:
        """The files of queries on storage, valid or not."""
        return sorted(path.name for path in self.storage.glob("queries/*"))

    def settled(self) -> None:
        """Waits until no query runs or is still to be taken over, including queries of which only a claim is left."""
        with self.survivor.connect() as client:
            query = "SELECT count(*) FROM millstream.queries WHERE state <> 'finished'"

            def is_settled() -> bool:
                return client.execute(query).fetchone() == (0,) and not any(self.storage.glob("claims/*.json"))

            wait_until(is_settled, 60, "end of all queries")


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    cluster = Cluster(tmp_path_factory.mktemp("storage"))
    with cluster.survivor as survivor, survivor.connect() as client:
        client.execute(TABLE)
        yield cluster


@pytest.fixture(scope="module")
def wanted(cluster: Cluster) -> list[Any]:
    with cluster.survivor.connect() as client:
        return client.execute(BRIEF.format(next(NUMBERS)).encode()).fetchall()


def name_of(server: Millstream) -> str:
    return str(server.settings["server_name"])
