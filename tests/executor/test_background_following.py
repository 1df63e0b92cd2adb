"""Rows of views follow changes before the next read, at a pace that slows down until there is one."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from catalog.values.errors import SqlError
from executor.database.database import Database
from executor.maintained import background_following
from executor.maintained.background_following import FIRST, BackgroundFollowing, Followed, Rhythm
from executor.maintained.kept_rows import KeptRows
from tests.executor.client import Client, open_database
from tests.executor.test_maintained_views import create
from tests.executor.test_recursion import endless

PATIENCE = 60.0
SOON = Rhythm(True, False)
CHAIN = (
    "SELECT g, sum(v) s FROM a GROUP BY g",
    "SELECT s % 3 h, count(*) n FROM v0 GROUP BY s % 3",
    "SELECT max(n) most FROM v1",
)


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    with closing(open_database(tmp_path)) as found:
        yield found


def until(is_so: Callable[[], bool]) -> None:
    """Waits until something holds."""
    end = time.monotonic() + PATIENCE
    while not is_so():
        assert time.monotonic() < end
        time.sleep(0.01)


def rows_of(database: Database, name: str) -> KeptRows | None:
    """The rows that are kept of a view."""
    known = database.maintained._known.values()
    return next((item.kept for item in known if item.runtime.view.name == name), None)


def is_current(database: Database, name: str) -> bool:
    """Whether the rows of a view are kept and stand at the last change."""
    rows = rows_of(database, name)
    with database.core.sequencer.lock:
        return rows is not None and rows.lsn == database.core.sequencer.visible


def test_a_view_that_is_read_follows_the_next_change_and_all_below_it_do(database: Database) -> None:
    client = Client(database)
    create(client, CHAIN)
    client.run("INSERT INTO a SELECT i, i % 7, i, 'x' FROM generate_series(1, 100) i")
    client.run("SELECT * FROM v2")
    for _ in range(5):
        client.run("UPDATE a SET v = v + 1 WHERE k = 5")
        until(lambda: all(is_current(database, f"v{place}") for place in range(3)))
    assert client.run("SELECT * FROM v1 ORDER BY h") == client.run(
        "SELECT s % 3 h, count(*) n FROM (SELECT g, sum(v) s FROM a GROUP BY g) v0 GROUP BY s % 3 ORDER BY h"
    )


def test_a_view_of_a_stream_follows_what_arrives(database: Database) -> None:
    client = Client(database)
    client.run("CREATE FOREIGN TABLE s (g int, v int) SERVER stream; CREATE TABLE a (g int PRIMARY KEY, t text)")
    client.run("INSERT INTO a SELECT i, 'x' || i FROM generate_series(0, 9) i")
    query = "SELECT t, n FROM a JOIN (SELECT g, count(*) n FROM s GROUP BY g) q USING (g)"
    client.run(f"CREATE VIEW v WITH (method = 'incremental') AS {query}")
    client.run("INSERT INTO s SELECT i % 10, i FROM generate_series(1, 50) i")
    client.run("SELECT * FROM v")
    client.run("INSERT INTO s VALUES (3, 1), (4, 1)")
    until(lambda: is_current(database, "v"))
    assert sorted(client.run("SELECT * FROM v WHERE n > 5")) == [("x3", 6), ("x4", 6)]


class Steps:
    """Counts the steps of a view that something always changes: those of all nodes, and those of some."""

    def __init__(self, database: Database, monkeypatch: pytest.MonkeyPatch, rhythm: Rhythm | None = SOON) -> None:
        self.count, self.some, self.newest, self.core = 0, 0, 0, database.core
        self._rhythm = rhythm
        monkeypatch.setattr(self.core, "version_of", lambda oids: self.newest)
        monkeypatch.setattr(self.core, "reads_of", lambda oid: (oid,))
        self.following = BackgroundFollowing(self.core, self)

    def rhythm(self, oid: int) -> Rhythm | None:
        """Always the same."""
        return self._rhythm

    def follow(self, oid: int, is_whole: bool) -> Followed:
        """A step that reads ten rows of a thousand that the next node waits for."""
        self.count += is_whole
        self.some += not is_whole
        return Followed(10 * (self.count + self.some), 1_000)

    def change(self) -> None:
        """Tells of a change."""
        with self.core.sequencer.lock:
            self.newest += 1
            self.core.versions.change(1, self.newest)


def test_the_pace_slows_down_until_the_next_read(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    steps = Steps(database, monkeypatch)
    with closing(steps.following):
        for _ in range(2):
            before, started = steps.count, time.monotonic()
            steps.following.read(1, steps.newest)
            while time.monotonic() < started + 0.4:
                steps.change()
                time.sleep(0.001)
            most = math.log2((time.monotonic() - started) / FIRST) + 1
            assert 1 <= steps.count - before <= most


def test_a_view_that_nobody_reads_is_left_alone(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(background_following, "STEPS", 3)
    steps = Steps(database, monkeypatch)
    with closing(steps.following):
        steps.following.read(1, 0)

        def is_left() -> bool:
            steps.change()
            return not steps.following._paced

        until(is_left)
        assert steps.count == 3
        assert not database.core.versions.waits


def test_nodes_go_on_at_paces_of_their_own_where_nobody_reads(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(background_following, "STEPS", 3)
    monkeypatch.setattr(background_following, "LOOKS", 0.01)
    steps = Steps(database, monkeypatch, Rhythm(True, True))
    with closing(steps.following):
        steps.following.read(1, 0)

        def is_at_pace() -> bool:
            steps.change()
            return steps.some > 5

        until(is_at_pace)
        assert steps.count == 3
        steps.following.read(1, steps.newest)
        until(lambda: is_at_pace() and steps.count == 6)


def test_a_view_is_looked_at_when_a_node_is_expected_to_go_on(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(background_following, "LOOKS", 1_000.0)
    steps = Steps(database, monkeypatch, Rhythm(False, True))
    with closing(steps.following):
        steps.following.read(1, 0)
        until(lambda: steps.change() is None and steps.some == 2)  # ten rows at the first look, ten more at the second
        (paced,) = steps.following._paced.values()
        until(lambda: paced.due is not None and paced.due > time.monotonic() + 100 * FIRST / 2)
        assert steps.some == 2


def test_all_nodes_go_on_at_a_trigger(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    steps = Steps(database, monkeypatch, Rhythm(False, True, 0.05))
    with closing(steps.following):
        steps.following.read(1, 0)
        until(lambda: steps.count >= 3)
        assert not steps.some


def test_reads_alone_follow_changes_of_a_view_without_a_rhythm(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps = Steps(database, monkeypatch, None)
    with closing(steps.following):
        steps.following.read(1, 0)
        assert not steps.following._paced
        assert not database.core.versions.waits


def test_a_step_without_an_end_keeps_no_reader_waiting(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(background_following, "LONGEST", 0.1)
    client = endless(database)
    until(lambda: rows_of(database, "r0") is None)
    client.run("UPDATE limits SET most = 7")
    assert len(client.run("SELECT * FROM r0")) == 7


def test_a_row_that_fails_fails_the_reader_alone(database: Database, caplog: pytest.LogCaptureFixture) -> None:
    client = Client(database)
    client.run("CREATE FOREIGN TABLE s (g int, v int) SERVER stream; CREATE TABLE a (g int PRIMARY KEY, t text)")
    query = "SELECT t, n FROM a JOIN (SELECT g, sum(1 / v) n FROM s GROUP BY g) q USING (g)"
    client.run(f"CREATE VIEW v WITH (method = 'incremental') AS {query}; INSERT INTO s VALUES (1, 1)")
    client.run("SELECT * FROM v")
    following = database.maintained._following
    client.run("INSERT INTO s VALUES (1, 0)")
    until(lambda: not following._paced)
    with pytest.raises(SqlError, match="division by zero"):
        client.run("SELECT * FROM v")
    assert not [item for item in caplog.records if item.levelname in ("WARNING", "ERROR")]


def test_a_reader_takes_a_later_moment_where_the_rows_have_passed_its_own(database: Database) -> None:
    client, other = Client(database), Client(database)
    create(client, CHAIN)
    client.run("INSERT INTO a SELECT i, i % 7, i, 'x' FROM generate_series(1, 100) i")
    client.run("SELECT * FROM v0")
    runtime = next(item for item in database.core.runtimes() if item.view.name == "v0")
    moments = threading.Event()
    take = other.session.reader.moments.take

    def taken(*arguments: object) -> object:
        found = take(*arguments)  # type: ignore[arg-type]
        moments.set()
        return found

    found: list[object] = []
    reader = threading.Thread(target=lambda: found.append(other.run("SELECT sum(s) FROM v0")))
    with pytest.MonkeyPatch.context() as patched, runtime.lock:
        patched.setattr(other.session.reader.moments, "take", taken)
        reader.start()
        assert moments.wait(PATIENCE)
        client.run("UPDATE a SET v = v + 1 WHERE k = 5")
        assert client.run("SELECT sum(s) FROM v0") == [(5051,)]
        before = rows_of(database, "v0")
    reader.join()
    assert found == [[(5051,)]]
    assert rows_of(database, "v0") is before is not None
