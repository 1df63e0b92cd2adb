"""Views equal their queries over exactly the rows on which no expression fails, or with NULL for what fails.

In random order rows come, readers read, the background works, and the server ends or dies, so that failing rows are met
in batches of any sizes and by everything that runs a view's statements. The judges are tables with the same rows, here
and in a real PostgreSQL, and queries that guard each expression.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import NamedTuple

import pytest

from catalog.values.errors import SqlError
from executor.database.database import Database
from executor.options import Options
from tests.executor.client import Client, open_database
from tests.executor.view_queries import bag
from tests.rig.crash import copy_crashed
from tests.rig.mirror import Mirror, mirrored
from tests.rig.postgres import Postgres
from tests.rig.process import wait_until
from tests.rig.sampling import ENGINES, sample
from tests.rig.server import Millstream, java_is_there

COLUMNS = "id int, k int NOT NULL, a int NOT NULL, b int NOT NULL, t text, n numeric"
QUOTIENT = "(a / NULLIF(b, 0))"
PRODUCT = "(CASE WHEN abs(a) <= 7 THEN a * 300000000 END)"
NUMBER = "t ~ '^-?[0-9]+$'"
INTEGER = f"(CASE WHEN {NUMBER} THEN t::int END)"
IS_NUMBER = f"(t IS NULL OR {NUMBER})"


class Case(NamedTuple):
    """A view's query, and the rows on which it does not fail."""

    query: str
    fine: str

    @property
    def with_nulls(self) -> str:
        """The query with NULL for what fails."""
        found = self.query.replace("a / b", QUOTIENT).replace("t::int", INTEGER)
        return found.replace("a * 300000000", PRODUCT)

    def judged(self, policy: str) -> str:
        """A query that never fails, for a table of all rows."""
        rows = f"(SELECT * FROM events WHERE {self.fine}) AS events"
        return self.with_nulls if policy == "null" else self.with_nulls.replace("FROM events", f"FROM {rows}")


CASES = {
    "grouped": Case("SELECT k, count(*) AS n, sum(a / b), count(a / b), avg(a / b) FROM events GROUP BY k", "b <> 0"),
    "keyed": Case("SELECT a / b, count(*), max(n) FROM events GROUP BY 1", "b <> 0"),
    "filtered": Case("SELECT k, max(t::int), count(*) FROM events WHERE t::int > 0 GROUP BY k", IS_NUMBER),
    "listed": Case(
        "SELECT id, a / b AS q, t::int + 1 AS i FROM events WHERE k > 1", f"(k <= 1 OR b <> 0 AND {IS_NUMBER})"
    ),
    "collected": Case("SELECT k, array_agg(a / b ORDER BY id) FROM events GROUP BY k", "b <> 0"),
    "first": Case("SELECT DISTINCT ON (k) k, a / b FROM events ORDER BY k, a / b DESC", "b <> 0"),
    "chosen": Case("SELECT sum(n) FILTER (WHERE a / b > 0), coalesce(max(a / b), 0) FROM events", "b <> 0"),
    "apart": Case("SELECT * FROM (SELECT sum(a / b) FROM events) x, (SELECT count(*) FROM events) y", "b <> 0"),
    "unnested": Case("SELECT x, count(*) FROM events, unnest(ARRAY[a / b, k]) AS x GROUP BY x", "b <> 0"),
    "shared": Case("SELECT id, coalesce(a / b, 0) AS q, a / b + 1 AS r, a / b - 1 > 0 AS p FROM events", "b <> 0"),
    "compared": Case("SELECT id, a * 300000000 = 7 AS p FROM events WHERE a * 300000000 <> 4", "abs(a) <= 7"),
    "counted": Case(
        "SELECT k, count(coalesce(a / b, 0)) AS n, count(a / b IS NULL) AS m FROM events GROUP BY k", "b <> 0"
    ),
    "guarded": Case("SELECT id, CASE WHEN b = 0 THEN 0 ELSE a / b END FROM events WHERE b = 0 OR a / b > 0", "true"),
}
POLICIES = ("skip", "null")
SETTINGS = {"spark_enabled": False, "log_segment_bytes": 1 << 20, "storage_latency": 0.0, "maintenance_rows": 1}


def row(source: random.Random, number: int) -> list[str]:
    """A row's values; one in four fails somewhere."""
    fails = source.random() < 0.25
    b = 0 if fails and source.random() < 0.7 else source.choice([-2, 1, 3])
    t = "x" if fails and source.random() < 0.5 else source.choice(["7", "-12", "30"])
    return [
        str(number),
        str(source.randint(1, 3)),
        str(source.randint(-9, 9)),
        str(b),
        t,
        f"{source.randint(0, 99) / 10}",
    ]


def rejected_ids(rows: list[tuple[str, int, str]]) -> dict[str, list[int]]:
    """By view the ids of the rows left out, whose numbers count from 1."""
    found: dict[str, list[int]] = {}
    for view, number, text in sorted(rows):
        found.setdefault(view, []).append(int(json.loads(text)["id"]))
        assert number == len(found[view])
    return found


class Scene:
    """A database in this process whose background work the test runs, with some of the views, and a table as their
    stream."""

    def __init__(self, folder: Path, source: random.Random) -> None:
        self._folders = (folder / str(place) for place in range(100))
        self._folder, self._source, self._count = next(self._folders), source, 0
        self._cases = {name: CASES[name] for name in source.sample(list(CASES), 4)}
        self._open()
        self.client.run(f"CREATE SCHEMA judge; CREATE TABLE judge.events ({COLUMNS})")
        self.client.run(f"CREATE FOREIGN TABLE events ({COLUMNS}) SERVER stream")
        for name, case in self._cases.items():
            for policy in POLICIES:
                self.client.run(f"CREATE VIEW {name}_{policy} WITH (on_error = '{policy}') AS {case.query}")

    def _open(self) -> None:
        self.database = Database(Options(self._folder, **SETTINGS))  # type: ignore[arg-type]
        self.client, self._judge = Client(self.database), Client(self.database, "judge")

    def insert(self) -> None:
        """Inserts some rows, in one transaction."""
        rows = [row(self._source, self._count + place) for place in range(self._source.choice([1, 1, 3, 20]))]
        self._count += len(rows)
        values = ", ".join("({}, {}, {}, {}, '{}', {})".format(*each) for each in rows)
        for client in (self.client, self._judge):
            client.run(f"INSERT INTO events VALUES {values}")

    def read(self) -> None:
        """Reads some view."""
        self.client.run(f"SELECT * FROM {self._source.choice(list(self._cases))}_{self._source.choice(POLICIES)}")

    def maintain(self) -> None:
        """The background commits what is due."""
        self.database.maintenance.round("embedded")

    def restart(self) -> None:
        """The server ends and begins."""
        self.database.close()
        self._open()

    def crash(self) -> None:
        """The server dies and begins."""
        copy = next(self._folders)
        copy_crashed(self._folder, copy)
        self.database.close()
        self._folder = copy
        self._open()

    def check(self) -> None:
        """All views, and the rows that they have left out."""
        for name, case in self._cases.items():
            for policy in POLICIES:
                actual = self.client.run(f"SELECT * FROM {name}_{policy}")
                assert bag(actual) == bag(self._judge.run(case.judged(policy))), (name, policy)
        found = self.client.run('SELECT view, number, "row" FROM millstream.rejected')
        assert isinstance(found, list)
        ids = rejected_ids(found)
        for name, case in self._cases.items():
            failing = self._judge.run(f"SELECT id FROM events WHERE NOT ({case.fine}) ORDER BY id")
            assert [(each,) for each in ids.pop(f"{name}_skip", [])] == failing, name
        assert not ids


@pytest.mark.parametrize("seed", sample(range(24), (0,)))
def test_any_order_of_events_gives_the_same_rows(tmp_path: Path, seed: int, whole: bool) -> None:
    source = random.Random(seed)
    scene = Scene(tmp_path, source)
    try:
        for step in range(20 if whole else 10):
            source.choice([scene.insert, scene.insert, scene.read, scene.maintain])()
            if step in (9, 17):
                source.choice([scene.crash, scene.restart])()
        scene.check()
        scene.restart()
        scene.check()
    finally:
        scene.database.close()


# -- beside PostgreSQL -------------------------------------------------------------------------------------------------


@pytest.fixture
def mirror(request: pytest.FixtureRequest, postgres: Postgres) -> Iterator[Mirror]:
    engine = request.param
    if engine == "spark" and not java_is_there():
        pytest.skip("needs Java")
    settings = {"maintenance_engine": engine, "spark_enabled": engine == "spark", "maintenance_rows": 20}
    with Millstream(settings=settings) as server, mirrored(server, postgres) as pair:
        pair.stream("events", COLUMNS)
        for name in ("grouped", "filtered", "listed", "apart", "unnested")[: 5 if engine == "embedded" else 2]:
            case = CASES[name]
            for policy in POLICIES:
                pair.view(f"{name}_{policy}", case.query, case.judged(policy), f"WITH (on_error = '{policy}')")
        yield pair


@pytest.mark.slow
@pytest.mark.postgres
@pytest.mark.parametrize("mirror", ENGINES, indirect=True)
def test_views_equal_postgresql_s_answers(mirror: Mirror) -> None:
    source = random.Random(7)
    for count in (1, 60, 60):
        rows = [row(source, mirror.acknowledged + place) for place in range(count)]
        mirror.copy("events", "".join(",".join(each) + "\n" for each in rows).encode())
        if count == 1:
            mirror.check()
            mirror.restart(crash=True)
    behind = "SELECT max(rows_behind) FROM millstream.views"  # no reader has met them
    wait_until(lambda: mirror.client.execute(behind).fetchone() == (0,), what="maintenance")
    mirror.check()
    found = mirror.client.execute('SELECT view, number, "row" FROM millstream.rejected').fetchall()
    ids = rejected_ids(found)
    for name in mirror.views:
        failing = f"SELECT id FROM events WHERE NOT ({CASES[name.partition('_')[0]].fine}) ORDER BY id"
        wanted = mirror.judge.execute(failing.encode()).fetchall() if name.endswith("skip") else []
        assert [(each,) for each in ids.get(name, [])] == wanted, name


# -- views that have failed --------------------------------------------------------------------------------------------

STREAM = "CREATE FOREIGN TABLE s (a int, b int) SERVER stream"
QUOTIENTS = "SELECT a / b AS q, count(*) AS n FROM s GROUP BY a / b"


@pytest.fixture
def failed(tmp_path: Path) -> Iterator[tuple[Client, Path]]:
    """A view of two rows that has failed on a third; behind it a fourth."""
    with_work = open_database(tmp_path, maintenance_rows=1)
    client = Client(with_work)
    client.run(f"{STREAM}; CREATE VIEW v AS {QUOTIENTS}; CREATE VIEW above AS SELECT sum(n) AS n FROM v")
    client.run("INSERT INTO s VALUES (4, 2)")
    assert client.run("SELECT * FROM v") == [(2, 1)]
    begun = "SELECT durable_lsn > created_lsn FROM millstream.views WHERE name = 'v'"
    wait_until(lambda: client.run(begun) == [(True,)])
    client.run("INSERT INTO s VALUES (6, 2), (1, 0)")
    assert sqlstate(client, "SELECT * FROM v") == "22012"
    client.run("INSERT INTO s VALUES (9, 3)")
    try:
        yield client, tmp_path
    finally:
        with_work.close()


def sqlstate(client: Client, text: str) -> str:
    """The SQLSTATE of the error that a statement raises."""
    with pytest.raises(SqlError) as caught:
        client.run(text)
    return caught.value.sqlstate


@pytest.mark.parametrize(
    ("statement", "rows"),
    [
        ("ALTER VIEW v SET (on_error = 'skip')", [(2, 1), (3, 2)]),
        ("ALTER VIEW v SET (on_error = 'null')", [(2, 1), (3, 2), (None, 1)]),
        (f"CREATE OR REPLACE VIEW v WITH (on_error = 'skip') AS {QUOTIENTS}", [(2, 1), (3, 2)]),
    ],
)
def test_a_failed_view_goes_on(failed: tuple[Client, Path], statement: str, rows: list[tuple[object, ...]]) -> None:
    client, _ = failed
    client.run(statement)
    assert bag(client.run("SELECT * FROM v")) == bag(rows)
    client.run("INSERT INTO s VALUES (4, 2)")
    assert client.run("SELECT n FROM above") == [(sum(int(str(row[1])) for row in rows) + 1,)]
    assert client.run("SELECT error FROM millstream.views WHERE name = 'v'") == [(None,)]


def test_a_failed_view_goes_on_after_restarts(failed: tuple[Client, Path]) -> None:
    client, folder = failed
    client.session.database.frontiers.release()  # the log goes on, but for what the view lacks
    client.session.database.close()
    reopened = open_database(folder)
    try:
        client = Client(reopened)
        assert sqlstate(client, "SELECT * FROM v") == "22012"
        client.run("ALTER VIEW v SET (on_error = 'skip')")
    finally:
        reopened.close()
    reopened = open_database(folder)
    try:
        client = Client(reopened)
        assert bag(client.run("SELECT * FROM v")) == bag([(2, 1), (3, 2)])
        assert client.run("SELECT stream, sqlstate, \"row\" FROM millstream.rejected WHERE view = 'v'") == [
            ("s", "22012", '{"a": "1", "b": "0"}')
        ]
    finally:
        reopened.close()


def test_a_view_whose_rows_are_gone_cannot_go_on(tmp_path: Path) -> None:
    database = open_database(tmp_path, maintenance_rows=1, backlog_bytes=1000)
    try:
        client = Client(database)
        client.run(f"{STREAM}; CREATE VIEW v AS {QUOTIENTS}; INSERT INTO s VALUES (1, 0)")
        assert sqlstate(client, "SELECT * FROM v") == "22012"
        client.run("INSERT INTO s SELECT 1, 1 FROM generate_series(1, 1000)")
        client.session.database.frontiers.release()
        assert sqlstate(client, "ALTER VIEW v SET (on_error = 'skip')") == "55000"
        replaced = "SELECT a AS q, count(*) AS n FROM s GROUP BY a"
        client.run(f"CREATE OR REPLACE VIEW v WITH (on_error = 'skip', restart = true) AS {replaced}")
        assert client.run("SELECT * FROM v") == []
    finally:
        database.close()


# -- files that streams follow -----------------------------------------------------------------------------------------

#: Lines of files with two columns, and what ``null`` makes of those that do not fit; None for no row at all.
LINES: dict[str, dict[str, tuple[object, ...] | None]] = {
    "csv": {"x,a": (None, "a"), "7": None, '8,"c"d,e': None, '"x","a\nb"': (None, "a\nb"), "9,a,b": None},
    "json": {'{"n": "x", "t": "a"}': (None, "a"), "[7]": None, '{"n": 7.5}': (None, None), '{"n"': None, "{}{}": None},
}


def written(form: str, number: int) -> str:
    """A line that fits."""
    return f"{number},t{number}" if form == "csv" else json.dumps({"n": number, "t": f"t{number}"})


class Followed:
    """A file of lines of which some do not fit, and the streams that follow its folder."""

    def __init__(self, folder: Path, form: str, source: random.Random) -> None:
        self._form, self._wrong = form, LINES[form]
        self._folder = folder / form
        self._lines = [written(form, place) for place in range(200)]
        self._places = sorted(source.sample(range(200), 30))
        for place in self._places:
            self._lines[place] = source.choice(list(self._wrong))
        self._folder.mkdir()
        (self._folder / f"one.{form}").write_text("".join(line + "\n" for line in self._lines))

    def create(self, client: Client) -> None:
        """The streams."""
        for policy in POLICIES:
            about = f"source 'files', path '{self._folder}', format '{self._form}', on_error '{policy}'"
            client.run(f"CREATE FOREIGN TABLE {self._form}_{policy} (n int, t text) SERVER stream OPTIONS ({about})")

    def check(self, client: Client, views: str) -> None:
        """The rows of new views, and the lines that are none."""
        fitting: list[tuple[object, ...]] = [
            (place, f"t{place}") for place in range(len(self._lines)) if place not in self._places
        ]
        found = [self._wrong[self._lines[place]] for place in self._places]
        rows = {"skip": fitting, "null": fitting + [row for row in found if row is not None]}
        gone = {"skip": self._places, "null": [place for place in self._places if not self._wrong[self._lines[place]]]}
        for policy in POLICIES:
            stream = f"{self._form}_{policy}"
            client.run(f"CREATE VIEW {views}_{stream} AS SELECT n, t FROM {stream}")
            wait_until(partial(has_rows, client, stream))
            assert bag(client.run(f"SELECT * FROM {views}_{stream}")) == bag(rows[policy])
            rejected = (
                f"SELECT number, line, \"row\" FROM millstream.rejected WHERE stream = '{stream}' ORDER BY number"
            )
            known = [(count, self._number(place), self._lines[place]) for count, place in enumerate(gone[policy], 1)]
            assert client.run(rejected.format(stream)) == known

    def _number(self, place: int) -> int:
        """The number of a line, some of which have a break within quotes."""
        return 1 + sum(line.count("\n") + 1 for line in self._lines[:place])


def has_rows(client: Client, stream: str) -> bool:
    """Whether a file has arrived in a stream."""
    return client.run(f"SELECT rows > 0 FROM millstream.streams WHERE name = '{stream}'") == [(True,)]


def test_lines_of_files_that_do_not_fit(tmp_path: Path) -> None:
    source = random.Random(5)
    files = [Followed(tmp_path, form, source) for form in LINES]
    for views in ("first", "again"):  # from what was kept of the file as it arrived, and from the file itself
        database = open_database(tmp_path / "data", source_poll=0.02)
        try:
            client = Client(database)
            for each in files:
                if views == "first":
                    each.create(client)
                each.check(client, views)
        finally:
            database.close()


# -- what has no policy ------------------------------------------------------------------------------------------------


FOLLOWED = "SERVER stream OPTIONS (source 'files', path '/nowhere'"


@pytest.mark.parametrize(
    ("statement", "state"),
    [
        ("CREATE VIEW v WITH (on_error = 'skip') AS SELECT a / b AS q FROM t", "0A000"),
        ("CREATE MATERIALIZED VIEW v WITH (on_error = 'null') AS SELECT a / b AS q FROM t", "0A000"),
        ("CREATE VIEW v WITH (maintained, on_error = 'fail') AS SELECT a / b AS q FROM t", "0A000"),
        ("ALTER VIEW of_table SET (on_error = 'skip')", "0A000"),
        ("CREATE VIEW v WITH (on_error = 'skip') AS SELECT s.a / r.b AS q FROM s JOIN r ON s.a = r.a", "0A000"),
        ("CREATE VIEW v WITH (on_error = 'null') AS SELECT json_agg(a / b) FROM s", "0A000"),
        (
            "CREATE VIEW v WITH (on_error = 'skip') AS SELECT t.b, sum(s.a / s.b) FROM s JOIN t USING (a) GROUP BY 1",
            "0A000",
        ),
        ("ALTER VIEW of_pairs SET (on_error = 'null')", "0A000"),
        ("CREATE FOREIGN TABLE f (a int) SERVER stream OPTIONS (on_error 'skip')", "0A000"),
        (f"CREATE FOREIGN TABLE f (a int) {FOLLOWED}, on_error 'skip')", "0A000"),
        (f"CREATE FOREIGN TABLE f (a int) {FOLLOWED}, format 'csv', on_error 'no')", "22023"),
        ("CREATE VIEW v WITH (on_error = 'ignore') AS SELECT a / b AS q FROM s", "22023"),
    ],
)
def test_refused(refusing: Client, statement: str, state: str) -> None:
    assert sqlstate(refusing, statement) == state


@pytest.fixture(scope="module")
def refusing(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    database = open_database(tmp_path_factory.mktemp("refusing"))
    client = Client(database)
    client.run(f"{STREAM}; CREATE FOREIGN TABLE r (a int, b int) SERVER stream; CREATE TABLE t (a int, b int)")
    client.run("CREATE VIEW of_table AS SELECT a / b AS q FROM t")
    client.run("CREATE VIEW of_pairs AS SELECT s.a / r.b AS q FROM s JOIN r ON s.a = r.a")
    yield client
    database.close()


def test_an_overflow_of_a_sum_is_no_row_s_error(tmp_path: Path) -> None:
    database = open_database(tmp_path)
    try:
        client = Client(database)
        client.run("CREATE FOREIGN TABLE s (n numeric(38, 0)) SERVER stream")
        client.run("CREATE VIEW v WITH (on_error = 'skip') AS SELECT sum(n) AS n FROM s")
        client.run(f"INSERT INTO s VALUES ({'9' * 38}), ({'9' * 38})")
        assert sqlstate(client, "SELECT * FROM v") == "22003"
        assert client.run("SELECT count(*) FROM millstream.rejected") == [(0,)]
    finally:
        database.close()
