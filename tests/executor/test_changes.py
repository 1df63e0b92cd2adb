"""The changes of a continuous view: they add up to the view, whatever happens to its inputs."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings

from catalog.objects import View
from catalog.values.errors import SqlError
from executor.database.database import Database
from executor.queries.reader import Reader
from executor.subscriptions import feeds
from executor.subscriptions import view_feed as changes
from executor.subscriptions.arrival_scan import Interval, Patience
from executor.subscriptions.change_scan import ChangeScan
from planner.stream_queries import Changes
from tests.executor.client import Client, open_database
from tests.law.scenario import Scenario, scenarios
from tests.rig.process import wait_until
from tests.rig.sampling import examples

OFTEN: Final = {"maintenance_rows": 7, "maintenance_idle": 0.01}


def row_of(values: tuple[object, ...]) -> str:
    """A row in the form in which rows are compared."""
    return repr(values)


class Subscriber:
    """A subscriber of a view's changes, with the view's content as computed from them."""

    def __init__(self, database: Database, view: str) -> None:
        self.view = view
        self.lsn = 0
        self.rows: Counter[str] = Counter()
        self.connect(database)

    def connect(self, database: Database, since: int | None = None) -> None:
        """Begins with all rows, or goes on behind an LSN."""
        found = database.core.catalog.at("public", self.view)
        assert found is not None
        self._database, self.client = database, Client(database)
        reader, changes = Reader(database.read_services, lambda: False), Changes(since is None, since)
        self.scan = ChangeScan(
            database.core, database.changes, reader.present, found.oid, changes, reader.patience, reader.notify
        )
        self.scan.begin(0)
        if since is None:
            self.rows.clear()

    def reconnect(self, database: Database) -> None:
        """Continues from its last position if that is available; else begins again."""
        try:
            self.connect(database, self.lsn)
        except SqlError as error:
            assert error.sqlstate == "72000"
            self.connect(database)

    def take(self) -> int:
        """Reads the available changes; returns the number of rows."""
        count = 0
        while (interval := self.scan.take(True)) is not None:
            count += interval.rows.num_rows
            self._apply(interval)
        return count

    def _apply(self, interval: Interval) -> None:
        names = ("__at", "__diff", *map(str, range(interval.rows.num_columns - 4)))
        for lsn, diff, *values in zip(*(interval.rows.column(name).to_pylist() for name in names), strict=True):
            assert lsn >= self.lsn
            self.lsn = lsn
            self.rows[row_of(tuple(values))] += diff
        assert min(self.rows.values(), default=1) >= 0

    def check(self) -> None:
        """Checks that its content equals the view, or what is stored of it where SELECT shows decimals by columns of
        their own."""
        self.take()
        found = self._database.core.catalog.at("public", self.view)
        if isinstance(found, View) and len(found.stored) > len(found.columns):
            self.check_stored()
        else:
            assert +self.rows == Counter(map(row_of, self.client.run(f"SELECT * FROM {self.view}")))

    def check_stored(self) -> None:
        """Checks that its content equals the view's stored columns."""
        self.take()
        found = self._database.core.catalog.at("public", self.view)
        assert found is not None
        _, _, rows = Reader(self._database.read_services, lambda: False).present.of_view(found.oid)
        assert +self.rows == Counter(map(row_of, zip(*(column.to_pylist() for column in rows.columns), strict=True)))


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    with closing(open_database(tmp_path, **OFTEN)) as opened:
        yield opened


class Opened:
    """A database that can be restarted."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.database = open_database(folder, **OFTEN)

    def restart(self) -> None:
        """Restarts as a server does."""
        self.database.close()
        self.database = open_database(self._folder, **OFTEN)


@pytest.fixture(scope="module")
def opened(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Opened]:
    made = Opened(tmp_path_factory.mktemp("changes"))
    yield made
    made.database.close()


@pytest.mark.slow
@given(scenario=scenarios(("read", "dimension")))
@settings(max_examples=examples(20), deadline=None, derandomize=True, suppress_health_check=[*HealthCheck])
def test_the_changes_of_any_view_add_up_to_it(opened: Opened, scenario: Scenario) -> None:
    play(opened, scenario)


@pytest.mark.slow
@given(scenario=scenarios(("read", "restart")))
@settings(max_examples=2, deadline=None, derandomize=True, suppress_health_check=[*HealthCheck])
def test_the_changes_of_any_view_over_restarts(opened: Opened, scenario: Scenario) -> None:
    play(opened, scenario)


def play(opened: Opened, scenario: Scenario) -> None:
    """Tells the scenario to a view and its subscribers, who compare after each step."""
    client, number = Client(opened.database), len(opened.database.core.streams)
    stream, dimension, view = f"s{number}", f"d{number}", f"v{number}"
    client.run(f"CREATE TABLE {dimension} (id int, label text)")
    for key, label in scenario.dimension:
        client.run(f"INSERT INTO {dimension} VALUES ({key}, '{label}')")
    windows = scenario.windows
    watermark = f"OPTIONS (watermark '{windows.column} - interval ''1 hour''')" if windows else ""
    client.run(f"CREATE FOREIGN TABLE {stream} ({scenario.declaration}) SERVER stream {watermark}")
    kept = windows.options if windows else ""
    client.run(f"CREATE VIEW {view} {kept} AS {scenario.query(stream, dimension)}")
    reader, late = Subscriber(opened.database, view), Subscriber(opened.database, view)
    for place, step in enumerate(scenario.steps):
        if step == "restart":
            opened.restart()
            client = Client(opened.database)
            reader.reconnect(opened.database)
            late.connect(opened.database)
        elif step == "dimension":
            client.run(f"UPDATE {dimension} SET label = label || '{place}' WHERE id % 2 = {place % 2}")
        elif isinstance(step, tuple):
            schema = next(item.schema for item in opened.database.core.streams.values() if item.stream.name == stream)
            columns = zip(zip(*step, strict=True), schema.types, strict=True)
            arrays = [pa.array(values, kind) for values, kind in columns]
            client.copy(f"COPY {stream} FROM STDIN", [pa.RecordBatch.from_arrays(arrays, schema=schema)])
        reader.check()
    late.check()


VIEWS: Final = {
    "grouped": "SELECT k, count(*) AS n, sum(v) AS t, min(w) AS w FROM s GROUP BY k",
    "filtered": "SELECT k, count(*) AS n FROM s GROUP BY k HAVING count(*) > 2",
    "floats": "SELECT k, avg(v::float8 / 3) AS a FROM s GROUP BY k",
    "different": "SELECT DISTINCT k, v FROM s",
    "total": "SELECT count(*), max(v) FROM s",
    "best": "SELECT k, sum(v) AS t FROM s GROUP BY k ORDER BY t DESC, k LIMIT 2",
    "named": "SELECT n, c FROM (SELECT k, count(*) AS c FROM s GROUP BY k) g JOIN names USING (k)",
    "same": "SELECT n FROM (SELECT k, count(*) / 5 AS n FROM s GROUP BY k) g",
    "above": "SELECT n, count(*) FROM grouped GROUP BY n",
    "two": "SELECT k, a.n, b.m FROM (SELECT k, count(*) AS n FROM s GROUP BY k) a"
    " FULL JOIN (SELECT k, count(*) AS m FROM r GROUP BY k) b USING (k)",
}


@pytest.mark.slow
def test_every_kind_of_view(database: Database) -> None:
    client = Client(database)
    client.run(
        "CREATE FOREIGN TABLE s (k int, v int, w text) SERVER stream; CREATE FOREIGN TABLE r (k int) SERVER stream;"
        "CREATE TABLE names (k int, n text); INSERT INTO names VALUES (1, 'one'), (2, 'two'), (2, 'zwei')"
    )
    readers = []
    for name, text in VIEWS.items():
        client.run(f"CREATE VIEW {name} AS {text}")
        if name != "above":
            readers.append(Subscriber(database, name))
    for number in range(20):
        client.run(f"INSERT INTO s VALUES ({number % 7}, {number * 13 % 5}, NULL), (NULL, {number}, 'é')")
        if number % 5 == 0:
            client.run(f"INSERT INTO r VALUES ({number % 3}); UPDATE names SET n = n || 'x' WHERE k = {number % 3}")
        for reader in readers[number % 3 :: 3]:
            reader.check()
    client.run("DELETE FROM names")
    for reader in readers:
        reader.check()


@pytest.mark.slow
def test_a_large_view_tells_what_has_changed_of_it(database: Database) -> None:
    client = Client(database)
    client.run(
        "CREATE FOREIGN TABLE s (k int, v int) SERVER stream; CREATE VIEW v AS SELECT k, sum(v) t FROM s GROUP BY k"
    )
    client.run("INSERT INTO s SELECT g, g FROM generate_series(1, 20000) g")
    reader = Subscriber(database, "v")
    assert reader.take() == 20000
    client.run("INSERT INTO s VALUES (7, 1), (20001, 5), (9, 0)")
    assert reader.take() == 3  # adding 0 leaves the group unchanged
    assert reader.take() == 0
    reader.check()


@pytest.mark.slow
def test_since(database: Database) -> None:
    client = Client(database)
    client.run("CREATE FOREIGN TABLE s (k int) SERVER stream; CREATE VIEW v AS SELECT k, count(*) n FROM s GROUP BY k")
    before = database.core.sequencer.visible
    client.session.await_rows(Patience(0.001, 0.0), lambda notice: None)
    client.run("INSERT INTO s VALUES (1)")
    first = Subscriber(database, "v")
    first.take()
    client.run("INSERT INTO s VALUES (1), (2)")
    assert client.run(f"SELECT diff, k, n FROM millstream.changes('v', {first.lsn})") == [
        (-1, 1, 1),
        (1, 1, 2),
        (1, 2, 1),
    ]
    assert client.run(f"SELECT k FROM millstream.changes('v', since => {database.core.sequencer.visible})") == []
    assert client.run("SELECT k FROM millstream.changes('v', NULL)") == []
    assert sorted(client.run("SELECT k, n, diff FROM millstream.changes('v')")) == [(1, 2, 1), (2, 1, 1)]
    for lsn, state in ((before, "72000"), (database.core.sequencer.visible + 1, "22023")):
        with pytest.raises(SqlError) as caught:
            client.run(f"SELECT * FROM millstream.changes('v', {lsn})")
        assert caught.value.sqlstate == state
    before = database.core.sequencer.visible
    client.run("DROP VIEW v; CREATE VIEW v AS SELECT k, count(*) n FROM s GROUP BY k")
    with pytest.raises(SqlError, match="72000"):  # of an earlier view with this name
        client.run(f"SELECT * FROM millstream.changes('v', {before})")


def test_what_is_forgotten_is_an_error(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(changes, "HISTORY", 1)
    client = Client(database)
    client.run("CREATE FOREIGN TABLE s (k int) SERVER stream; CREATE VIEW v AS SELECT k, count(*) n FROM s GROUP BY k")
    quick, slow = Subscriber(database, "v"), Subscriber(database, "v")
    for _ in range(3):
        client.run("INSERT INTO s VALUES (1)")
        quick.check()
    with pytest.raises(SqlError, match=r"72000.*discarded"):
        slow.take()
    slow.reconnect(database)
    slow.check()


@pytest.mark.slow
def test_a_reader_that_ends_while_it_looks_takes_nothing_from_others(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = Client(database)
    client.run(
        "CREATE FOREIGN TABLE s (k int, v int) SERVER stream; CREATE VIEW v AS SELECT k, sum(v) t FROM s GROUP BY k"
    )
    client.run("INSERT INTO s SELECT g, g FROM generate_series(1, 100) g")
    ending, other = Subscriber(database, "v"), Subscriber(database, "v")
    ending.check()
    other.check()
    client.run("INSERT INTO s VALUES (7, 1)")

    def cancelled(*arguments: object) -> pa.Table:
        raise SqlError("57014", "canceling statement due to user request")

    with monkeypatch.context() as patch:
        patch.setattr(changes.ViewFeed, "_merged", cancelled)
        with pytest.raises(SqlError, match="57014"):
            ending.scan.take(True)
    client.run("INSERT INTO s VALUES (9, 1)")
    other.check()


@pytest.mark.slow
def test_a_query_waits_for_changes_and_ends_with_its_view(database: Database) -> None:
    client, reading = Client(database), Client(database)
    client.run("CREATE FOREIGN TABLE s (k int) SERVER stream; CREATE VIEW v AS SELECT k, count(*) n FROM s GROUP BY k")
    reading.session.await_rows(Patience(0.0, 0.0), lambda notice: None)
    with ThreadPoolExecutor(1) as pool:
        limited: Future[Any] = pool.submit(
            reading.run, "SELECT k, n FROM millstream.changes('v') WHERE diff > 0 LIMIT 2"
        )
        for number in itertools.count(1):
            client.run(f"INSERT INTO s VALUES ({number})")
            if limited.done():
                break
        assert len(limited.result(60)) == 2
        grouped: Future[Any] = pool.submit(reading.run, "SELECT sum(diff) FROM millstream.changes('v')")
        wait_until(lambda: database.core.versions.waits, 60, "a reader")
        reading.session.cancel()
        with pytest.raises(SqlError, match="57014"):
            grouped.result(60)
        ended: Future[Any] = pool.submit(reading.run, "SELECT * FROM millstream.changes('v', NULL)")
        wait_until(lambda: database.core.versions.waits, 60, "a reader")
        client.run("DROP VIEW v")
        with pytest.raises(SqlError, match="42P01"):
            ended.result(60)
    assert not database.core.versions.waits


@pytest.mark.parametrize(
    ("text", "sqlstate"),
    [
        ("SELECT * FROM millstream.changes('s')", "42809"),
        ("SELECT * FROM millstream.changes('nothing')", "42P01"),
        ("SELECT * FROM millstream.changes()", "42883"),
        ("SELECT * FROM millstream.changes('v', 1, 2)", "42883"),
        ("SELECT * FROM millstream.changes('v', since => 1, since => 2)", "42883"),
        ("SELECT * FROM millstream.changes('v', other => 1)", "42883"),
        ("SELECT * FROM millstream.changes('v', true)", "42804"),
        ("SELECT * FROM millstream.changes('v' || 'w')", "0A000"),
        ("SELECT * FROM millstream.changes('v', 1 + 1 + length('x'))", "0A000"),
        ("SELECT * FROM millstream.changes('v'), s", "0A000"),
        ("SELECT * FROM millstream.changes('v', 1) a, millstream.changes('v', 2) b", "0A000"),
        ("CREATE VIEW w AS SELECT * FROM millstream.changes('v')", "0A000"),
        ("CREATE MATERIALIZED VIEW w AS SELECT * FROM millstream.changes('v')", "0A000"),
        ("CREATE TABLE w AS SELECT * FROM millstream.changes('v')", "0A000"),
        ("SELECT * FROM changes('v')", "42883"),
    ],
)
def test_what_is_refused(database: Database, text: str, sqlstate: str) -> None:
    client = Client(database)
    client.run("CREATE FOREIGN TABLE s (k int) SERVER stream; CREATE VIEW v AS SELECT k, count(*) n FROM s GROUP BY k")
    client.session.await_rows(Patience(0.001, 0.0), lambda notice: None)
    with pytest.raises(SqlError) as caught:
        client.run(text)
    assert caught.value.sqlstate == sqlstate, caught.value


def test_unread_feeds_are_few(database: Database) -> None:
    client = Client(database)
    client.run("CREATE FOREIGN TABLE s (k int) SERVER stream")
    for number in range(feeds.IDLE + 3):
        client.run(f"CREATE VIEW v{number} AS SELECT k, count(*) n FROM s GROUP BY k")
        Subscriber(database, f"v{number}").check()
    assert len(database.changes._feeds) <= feeds.IDLE + 1
