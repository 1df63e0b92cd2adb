"""The changes of views whose rows are kept up to date: they add up to the view, and no look reads all rows."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from executor.database.database import Database
from executor.maintained import kept_rows, maintained_views
from executor.queries.present_rows import PresentRows
from tests.executor.client import Client, open_database
from tests.executor.test_changes import Subscriber
from tests.executor.test_fills import Gate
from tests.executor.test_maintained_views import change, create, kept
from tests.executor.view_queries import MAINTAINED, PARTLY
from tests.rig.sampling import sample


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    with closing(open_database(tmp_path)) as found:
        yield found


@pytest.mark.parametrize("seed", sample(range(6), (0,)))
def test_changes_add_up_to_the_view(database: Database, monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    drawn, client = random.Random(seed), Client(database)
    monkeypatch.setattr(kept_rows, "RECENT", drawn.choice((1, 256)))
    queries = tuple(drawn.sample(MAINTAINED + PARTLY, 8))
    create(client, queries)
    views = [f"v{place}" for place in range(len(queries))]
    readers = [Subscriber(database, view) for view in views]
    for _ in range(12):
        for _ in range(drawn.randint(1, 3)):
            client.run(change(drawn))
        for view in drawn.sample(views, 3):
            client.run(f"SELECT * FROM {view}")
        for reader in readers:
            if drawn.random() < 0.6:
                reader.check_stored()
        if drawn.random() < 0.2:
            for item in tuple(database.core.trace_budget._traces):
                item.give_back(1 << 40)
    for reader in readers:
        reader.check_stored()


def test_a_look_reads_no_more_than_what_has_changed(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    client = Client(database)
    create(client, ("SELECT a.k, b.t, w FROM a JOIN b USING (k)", "SELECT g, sum(v) s, count(*) n FROM a GROUP BY g"))
    client.run("CREATE FOREIGN TABLE s (k int, v int) SERVER stream")
    client.run("CREATE VIEW v2 WITH (method = 'incremental') AS SELECT a.g, s.v FROM s JOIN a USING (k)")
    client.run("INSERT INTO a SELECT i, i % 25, i, 'x' FROM generate_series(1, 50) i")
    client.run("INSERT INTO s SELECT i % 25, i FROM generate_series(1, 50) i")
    client.run("INSERT INTO b SELECT i, 1, i, 't' FROM generate_series(1, 50) i")
    readers = [Subscriber(database, f"v{place}") for place in range(3)]
    for reader in readers:
        reader.check()
    assert kept(database) == {"v0", "v1", "v2"}
    with monkeypatch.context() as patch:
        patch.setattr(PresentRows, "of_view", None)
        for number in range(3):
            client.run(f"UPDATE a SET g = g + 1, t = 'y{number}' WHERE k < 4; DELETE FROM b WHERE k = {number + 1}")
            client.run(f"INSERT INTO s VALUES ({number}, 7), (3, 8)")
            counts = [reader.take() for reader in readers]
            assert all(0 < count < 20 for count in counts), counts
    for reader in readers:
        reader.check()


def test_a_look_between_the_moments_of_kept_rows_counts_nothing_twice(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(maintained_views, "AT_ONCE", 0)
    client, gate = Client(database), Gate(monkeypatch)
    create(client, ("SELECT k, v FROM a JOIN (SELECT 1 AS one) o ON k > 0 GROUP BY k, v",))
    client.run("INSERT INTO a SELECT i, 1, i FROM generate_series(1, 50) i")
    reader = Subscriber(database, "v0")
    reader.check()  # computes the rows, and begins to make those that are kept
    assert gate.reached.wait(60)
    client.run("DELETE FROM a WHERE k = 7; INSERT INTO a VALUES (70, 1, 70)")
    reader.check()  # is beyond the moment of the rows that are being made
    gate.open()
    client.run("DELETE FROM a WHERE k = 8; INSERT INTO a VALUES (80, 1, 80)")
    client.run("SELECT * FROM v0")  # brings the kept rows past the reader
    assert kept(database) == {"v0"}
    reader.check()
    client.run("DELETE FROM a WHERE k = 9")
    reader.check()
