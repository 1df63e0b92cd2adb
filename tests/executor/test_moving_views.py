"""Continuous views that go from server to server: whoever maintains them, they are their query over what was said to be
there."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from catalog.errors import SqlError
from catalog.objects import View
from executor.database import Database
from executor.moving import views
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

    @property
    def running(self) -> tuple[str, ...]:
        """Those that were not stopped."""
        return tuple(self._open)

    def stop(self, name: str) -> None:
        if name in self._open:
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


def test_nothing_stays_of_what_a_view_came_with(servers: Servers, a: Client, tmp_path: Path) -> None:
    rows = Rows()
    rows.insert(a, 5)
    servers.migrate("a", "b")
    assert servers.client("b").run(READ) == rows.wanted()
    (program,) = (tmp_path / "b").rglob("v*-static/*")
    assert program.name == "program.json"
    servers.stop("b")
    (program.parent / "handover.json").write_text('{"rows": {"left": 1, "gone": 1}}')  # as a crash leaves it
    (program.parent / "left.parquet").write_bytes(b"")
    assert servers.client("b").run(READ) == rows.wanted()
    assert list((tmp_path / "b").rglob("v*-static/*")) == [program]


def test_a_home_that_is_down_is_read_all_the_same(servers: Servers, a: Client) -> None:
    rows = Rows()
    rows.insert(a, 5)
    servers.migrate("a", "b")
    rows.insert(a, 5)
    servers.stop("a")
    assert servers.client("b").run(READ) == rows.wanted()
    servers.stop("b")
    assert servers.client("b").run(READ) == rows.wanted()
    rows.insert(servers.client("a"), 5)
    assert servers.client("b").run(READ) == rows.wanted()


def test_two_views_share_a_replica(servers: Servers, a: Client) -> None:
    a.run("CREATE VIEW w AS SELECT count(*), max(n) FROM s")
    rows = Rows()
    rows.insert(a, 5)
    servers.migrate("a", "b")
    rows.insert(a, 5)
    servers.migrate("a", "b", "w")
    rows.insert(a, 5)
    b = servers.client("b")
    assert b.run(READ) == rows.wanted()
    assert b.run("SELECT * FROM w") == [(15, 14)]
    assert len(servers["b"].streams) == 1
    servers.migrate("b", "a")
    rows.insert(a, 5)
    assert b.run("SELECT * FROM w") == [(20, 19)]
    assert a.run(READ) == rows.wanted()
    servers.migrate("b", "a", "w")
    assert a.run("SELECT * FROM w") == [(20, 19)]
    wait_until(lambda: not servers["b"].streams, 20, "the replica's end")


def test_a_view_that_is_dropped_at_home_is_nowhere(servers: Servers, a: Client) -> None:
    servers.migrate("a", "b")
    a.run("DROP VIEW v")
    wait_until(lambda: not servers["b"].streams, 20, "the guest's end")
    with pytest.raises(SqlError, match="42P01"):
        servers.client("b").run(READ)
    a.run(VIEW)
    servers.migrate("a", "b")
    assert servers.client("b").run(READ) == []


def test_what_another_server_must_know_of_stays_as_it_is(servers: Servers, a: Client) -> None:
    servers.migrate("a", "b")
    b = servers.client("b")
    for statement in (
        "ALTER FOREIGN TABLE s ADD COLUMN x int",
        "ALTER VIEW v RENAME TO w",
        "ALTER FOREIGN TABLE s RENAME TO t",
    ):
        with pytest.raises(SqlError, match=r'55000: relation ".*" is in use by server "b"'):
            a.run(statement)
    for statement in ("DROP VIEW v", "DROP FOREIGN TABLE s CASCADE", "ALTER VIEW v RENAME TO w"):
        with pytest.raises(SqlError, match=r'55000: relation ".*" belongs to server "a"'):
            b.run(statement)
    with pytest.raises(SqlError, match="0A000"):
        b.run("CREATE VIEW w AS SELECT count(*) FROM s")
    with pytest.raises(SqlError, match='42809: stream "s" is filled on server "a"'):
        b.run("INSERT INTO s VALUES (1, 1, '')")
    servers.migrate("b", "a")
    a.run("ALTER FOREIGN TABLE s ADD COLUMN x int DEFAULT 7")
    servers.migrate("a", "b")
    a.run("INSERT INTO s VALUES (1, 1, '', 1)")
    assert b.run(READ) == [(1, 1, 1, [""])]


def test_a_table_below_the_grouping_goes_along(servers: Servers, a: Client) -> None:
    a.run("CREATE TABLE d (x int, label text); INSERT INTO d VALUES (1, 'one'), (2, 'two')")
    a.run("CREATE VIEW w AS SELECT label, count(*) FROM s JOIN d ON k = x GROUP BY label")
    servers.migrate("a", "b", "w")
    a.run("INSERT INTO d VALUES (3, 'three'); INSERT INTO s VALUES (1, 1, ''), (2, 1, ''), (2, 1, ''), (3, 1, '')")
    wanted = [("one", 1), ("two", 2)]
    b = servers.client("b")
    assert b.run("SELECT * FROM w ORDER BY label") == wanted
    assert "JOIN d ON" in str(b.run("SELECT pg_get_viewdef('w'::regclass)"))
    servers.migrate("b", "a", "w")
    assert a.run("SELECT * FROM w ORDER BY label") == wanted


def test_a_name_that_is_taken(servers: Servers, a: Client) -> None:
    rows = Rows()
    rows.insert(a, 5)
    servers.client("b").run("CREATE TABLE v (k int)")
    with pytest.raises(SqlError, match='42P07: server "b" cannot take view "v": relation "v" already exists'):
        servers.migrate("a", "b")
    rows.insert(a, 5)
    assert a.run(READ) == rows.wanted()
    servers.migrate("a", "c")
    with pytest.raises(SqlError, match="42P07"):
        servers.migrate("c", "b")
    rows.insert(a, 5)
    assert servers.client("c").run(READ) == rows.wanted()


@pytest.mark.parametrize(
    ("definitions", "what"),
    [
        (
            "CREATE TABLE d (x int); CREATE VIEW w AS SELECT g.k FROM (SELECT k FROM s GROUP BY k) g JOIN d ON k = x",
            '"d"',
        ),
        (
            "CREATE VIEW w AS SELECT x.k FROM (SELECT k FROM s GROUP BY k) x JOIN v ON v.k = x.k",
            '"v"',
        ),
        (
            "CREATE TYPE e AS ENUM ('a'); CREATE FOREIGN TABLE z (x e) SERVER stream;"
            "CREATE VIEW w AS SELECT x, count(*) FROM z GROUP BY x",
            "types",
        ),
    ],
)
def test_what_cannot_leave(definitions: str, what: str, servers: Servers, a: Client) -> None:
    a.run(definitions)
    with pytest.raises(SqlError, match=f"0A000: migrating view.*{what}"):
        servers.migrate("a", "b", "w")


@pytest.mark.parametrize("name", ["t0.parquet", "manifest.json"])
def test_a_forged_state_is_not_taken(
    name: str, servers: Servers, a: Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = Rows()
    rows.insert(a, 5)

    def forging(step: str) -> None:
        if step == "view-written":
            (path,) = (tmp_path / "storage").glob(f"views/*/*/{name}")
            path.write_bytes(path.read_bytes().replace(b"count", b"cuont").replace(b"PAR1", b"PAR2"))

    monkeypatch.setattr(views, "failpoint", forging)
    with pytest.raises(SqlError, match="XX001"):
        servers.migrate("a", "b")
    rows.insert(a, 5)
    assert a.run(READ) == rows.wanted()


def test_a_storage_that_cannot_be_read_is_no_forged_state(
    servers: Servers, a: Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = Rows()
    rows.insert(a, 5)

    def breaking(step: str) -> None:
        if step == "view-written":
            (path,) = (tmp_path / "storage").glob("views/*/*/manifest.json")
            path.unlink()
            path.mkdir()  # reading it is an error of the system's

    monkeypatch.setattr(views, "failpoint", breaking)
    with pytest.raises(SqlError, match="58030"):
        servers.migrate("a", "b")
    rows.insert(a, 5)
    assert a.run(READ) == rows.wanted()


#: What a view shows of its stream; what it takes in order of arrival, a table must be told to.
SHAPES = (
    "SELECT k, count(*) AS c, sum(n) AS n, avg(d) AS d, min(t) AS a, array_agg(t{order}) AS b FROM {rows} GROUP BY k",
    "SELECT count(*) AS c, count(DISTINCT t) AS d, string_agg(t, ','{order}) AS t, max(i) AS i FROM {rows}",
    "SELECT t, k, sum(d) FILTER (WHERE n > 3) AS d, bool_or(n > 5) AS b FROM {rows} WHERE k < 4 GROUP BY ROLLUP (t, k)",
)
COLUMNS = "(i bigint, k int, n numeric(12,2), d double precision, t text)"


class Scenario:
    """Views of the server ``a``, wherever they are, and a table with all rows of their stream."""

    def __init__(self, servers: Servers) -> None:
        self._servers = servers
        client = servers.client("a")
        client.run(f"CREATE FOREIGN TABLE s {COLUMNS} SERVER stream; CREATE TABLE judge {COLUMNS}")
        for number, shape in enumerate(SHAPES):
            client.run(f"CREATE VIEW v{number} AS {shape.format(order='', rows='s')}")
        self._owners = ["a"] * len(SHAPES)
        self._rows = 0

    def insert(self, chance: random.Random) -> None:
        """Some rows, or many."""
        rows = []
        for _ in range(chance.choice((1, 7, 400))):
            self._rows += 1
            rows.append(
                (self._rows, chance.randrange(6), chance.randrange(9), chance.randrange(8) / 8, chance.choice("abc"))
            )
        values = ", ".join(map(repr, rows))
        self._servers.client("a").run(f"INSERT INTO s VALUES {values}; INSERT INTO judge VALUES {values}")

    def migrate(self, chance: random.Random) -> None:
        """A view goes on to any other server."""
        number = chance.randrange(len(SHAPES))
        target = chance.choice([name for name in "abc" if name != self._owners[number]])
        self._servers.migrate(self._owners[number], target, f"v{number}")
        self._owners[number] = target

    def read(self) -> None:
        """All views are what they should be."""
        for number, (shape, owner) in enumerate(zip(SHAPES, self._owners, strict=True)):
            wanted = self._servers.client("a").run(shape.format(order=" ORDER BY i", rows="judge"))
            found = self._servers.client(owner).run(f"SELECT * FROM v{number}")
            assert sorted(map(repr, found)) == sorted(map(repr, wanted)), (number, owner)


@pytest.mark.parametrize("seed", range(6))
def test_the_law_over_migrations(seed: int, servers: Servers) -> None:
    """Random rows, batches, migrations and restarts: each view is its query over the rows that were acknowledged."""
    chance = random.Random(seed)
    servers.options |= {"maintenance_rows": chance.choice((1, 50, 100_000)), "log_segment_bytes": 1 << 16}
    scenario = Scenario(servers)
    for _ in range(24):
        match chance.randrange(6):
            case 0 | 1:
                scenario.insert(chance)
            case 2 | 3:
                scenario.migrate(chance)
            case 4:
                servers.stop(chance.choice(servers.running or ("a",)))
            case _:
                scenario.read()
    scenario.read()


def test_a_drained_server_has_no_views(servers: Servers, a: Client) -> None:
    a.run("CREATE TABLE d (x int); CREATE VIEW w AS SELECT g.k FROM (SELECT k FROM s GROUP BY k) g JOIN d ON k = x")
    rows = Rows()
    rows.insert(a, 5)
    b = servers.client("b")
    assert servers["b"].separation.moving.drain("a", lambda: False) == 1, "the other one cannot leave"
    rows.insert(a, 5)
    assert b.run(READ) == rows.wanted()
    assert a.run("SELECT name, server, home FROM millstream.views ORDER BY name") == [("v", "b", "a"), ("w", "a", "a")]
    assert b.run("SELECT name, server, home FROM millstream.views") == [("v", "b", "a")]
