"""Views whose traces an earlier version has named go on, at their home and on other servers."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Final

import pyarrow.parquet as pq
import pytest

from executor.database.database import Database
from executor.options import Options
from executor.traces.manifest import MANIFEST
from executor.upkeep.paths import all_paths
from executor.views.storage import RUNS
from planner.incremental.programs.rejected import REJECTED
from tests.executor import earlier_traces
from tests.executor.client import Client
from tests.executor.moving import READ, Rows, Servers
from tests.executor.test_retention import STREAM, VIEW, insert, rows

#: States of all kinds, with a watermark that other states read; a static; and a view over views.
VIEWS: Final = f"""
    {STREAM};
    CREATE TABLE names (k int, name text);
    INSERT INTO names VALUES (1, 'one'), (2, 'two');
    {VIEW};
    CREATE VIEW named AS SELECT name, count(*) AS n, avg(k) AS k FROM s JOIN names USING (k) GROUP BY name;
    CREATE VIEW above AS SELECT name, named.n, v.n AS of FROM named, v;
"""


def _opened(folder: Path) -> Database:
    """One whose background work is done by the test."""
    return Database(Options(folder, spark_enabled=False))


def _settle(database: Database) -> None:
    for sources, tasks in all_paths(database.core):
        for task in tasks:
            database.maintenance.embedded.run(sources, task)


def _all(database: Database) -> list[list[tuple[object, ...]]]:
    return [sorted(rows(database, view), key=repr) for view in ("v", "named", "above")]


def _traces(folder: Path) -> list[str]:
    """The names of states but for that of rejected rows, and of the columns of their runs' files."""
    found = []
    for path in sorted(folder.rglob(MANIFEST)):
        states = json.loads(path.read_bytes())["content"]["states"]
        states.pop(REJECTED.name, None)
        for name, state in sorted(states.items()):
            columns = {tuple(pq.read_schema(path.parent / f["name"]).names) for r in state["runs"] for f in r["files"]}
            found += [name, *sorted(" ".join(item) for item in columns)]
    return found


def test_its_views_go_on(tmp_path: Path) -> None:
    """Beside a server with the same rows whose folder is as it was written."""
    folders = earlier, twin = tmp_path / "earlier", tmp_path / "twin"
    for folder in folders:
        with closing(_opened(folder)) as database:
            Client(database).run(VIEWS)
            insert(database, 1)
            insert(database, 2, "y")
            _settle(database)
            insert(database, 3, "left in the log")
    assert earlier_traces.rewrite(earlier) == 2
    before = _traces(earlier)
    assert [line for line in before if "_" in line] == [
        *(f"v{oid}_state_{place}" for oid, states in ((16386, 4), (16387, 1)) for place in range(1, states + 1))
    ]
    with closing(_opened(earlier)) as first, closing(_opened(twin)) as second:
        assert _all(first) == _all(second)
        for number in range(RUNS + 2):
            for database in (first, second):
                insert(database, 4 + number % 3, f"{number}")
                _settle(database)
            assert _all(first) == _all(second)
        for database in (first, second):
            Client(database).run(VIEW.replace("CREATE", "CREATE OR REPLACE"))
        assert _all(first) == _all(second)
    assert _traces(earlier) == before
    with closing(_opened(earlier)) as first, closing(_opened(twin)) as second:
        assert _all(first) == _all(second)
        Client(first).run(VIEW.replace("VIEW v", "VIEW again"))
        old, new = (next(item for item in first.core.runtimes() if item.view.name == name) for name in ("v", "again"))
        twins = next(item for item in second.core.runtimes() if item.view.name == "v")
        assert set(new.states) == set(twins.states)
        assert set(new.states).isdisjoint(old.states)


@pytest.fixture
def rewritten(servers: Servers, a: Client, tmp_path: Path) -> Iterator[Rows]:
    """Rows of a view at its home, whose folder is of an earlier version."""
    found = Rows()
    found.insert(a, 20)
    servers.stop("a")
    assert earlier_traces.rewrite(tmp_path / "a") == 1
    yield found


def test_a_view_leaves_and_returns(servers: Servers, rewritten: Rows) -> None:
    servers.migrate("a", "b")
    rewritten.insert(servers.client("a"), 5)
    assert servers.client("b").run(READ) == rewritten.wanted()
    servers.migrate("b", "a")
    rewritten.insert(servers.client("a"), 5)
    assert servers.client("a").run(READ) == rewritten.wanted()


def test_a_guest_of_an_earlier_version_returns(servers: Servers, rewritten: Rows, tmp_path: Path) -> None:
    """It had called the traces after the guest, whose columns are those of its home's."""
    servers.client("b").run("CREATE TABLE other (k int)")  # so that the guest has another oid
    servers.migrate("a", "b")
    assert servers.client("b").run(READ) == rewritten.wanted()
    servers.stop("b")
    assert earlier_traces.rewrite(tmp_path / "b", step=0) == 1
    called = {name for name in _traces(tmp_path / "b") if "_" in name}
    assert called.isdisjoint(_traces(tmp_path / "a"))
    servers.migrate("b", "a")
    rewritten.insert(servers.client("a"), 5)
    assert servers.client("a").run(READ) == rewritten.wanted()
