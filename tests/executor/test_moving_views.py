"""Continuous views that go from server to server: whoever maintains them, they are their query over what was said to be
there."""

from __future__ import annotations

import itertools
import random
import shutil
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from catalog.errors import SqlError
from catalog.objects import View
from executor.database import Database
from executor.moving import artifact, checkpoints, entering, views
from executor.moving.artifact import LeavingView
from executor.moving.elsewhere import answer
from executor.moving.heirs import Heirs
from executor.moving.ownership import Owned
from executor.moving.questions import Question, decode_answer, encode_question
from planner.statements import Query
from tests.executor.client import Client, open_database
from tests.executor.test_migration import LEASE, lose
from tests.executor.test_separation import outcome
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
            opened = open_database(self._folder / name, **shared, **self.options, address=name)
            opened.elsewhere.ask = self._ask
            self._open[name] = opened
        return self._open[name]

    def _ask(self, address: str, question: bytes, is_over: Callable[[], bool]) -> bytes:
        """What connections between servers do."""
        if address not in self._open:
            raise ConnectionRefusedError("nobody is there")
        return answer(self._open[address].session("", ""), question)

    def client(self, name: str) -> Client:
        return Client(self[name])

    @property
    def running(self) -> tuple[str, ...]:
        """Those that were not stopped."""
        return tuple(self._open)

    def stop(self, name: str) -> None:
        if name in self._open:
            self._open.pop(name).close()

    def empty(self, name: str) -> None:
        """A server's own folder is gone, as with a new disk."""
        self.stop(name)
        shutil.rmtree(self._folder / name)

    def close(self) -> None:
        for name in tuple(self._open):
            self.stop(name)

    def lose(self, name: str, by: str) -> None:
        """The lease of a server has run out, as another finds; it may not know that."""
        lose(self[name], self[by])

    def copied(self, name: str, view: str) -> None:
        """A copy of a guest's states is made now."""
        database = self[name]
        runtime = next(item for item in database.runtimes() if item.view.name == view)
        replica = database.replicas.get(runtime.paths[0].path.stream)
        assert replica is not None
        database.view_moving.checkpoints.make(runtime, replica)

    def knows(self, view: str) -> bool:
        """Whether a view has ever left."""
        return any(entry.view == view for entry in self["a"].view_moving.ownership.all())

    def owner(self, view: str) -> str:
        """Whose a view is, by its entry."""
        entries = self["a"].view_moving.ownership.all()
        return next(entry.owner if entry.taken else "" for entry in entries if entry.view == view)

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
        assert a.run(READ) == rows.wanted(), "at home, too"
        servers.migrate("b", "a")
        rows.insert(a, 3)
        assert a.run(READ) == rows.wanted()
        wait_until(lambda: not servers["b"].streams, 20, "the replica's end")


@pytest.mark.parametrize(
    "query",
    [
        "SELECT * FROM v ORDER BY k",
        "SELECT c, k FROM v WHERE k = 1",
        "SELECT count(*) FROM v",
        "SELECT t FROM v WHERE k > 0 AND n > 3 ORDER BY k",
        "SELECT x.k, y.c FROM v x JOIN v y ON x.k = y.k + 1 WHERE x.c > 0 ORDER BY 1",
        "SELECT label, c FROM v JOIN d ON x = k ORDER BY 1",
        "SELECT x, (SELECT sum(n) FROM v WHERE k = x) FROM d ORDER BY 1",
        "SELECT * FROM w ORDER BY k",
        "SELECT w.k, v.c FROM w JOIN v ON v.k = w.k WHERE v.k < 2 ORDER BY 1",
        "SELECT k FROM v WHERE k = (SELECT min(x) FROM d)",
        "SELECT k FROM v WHERE now() > '2020-01-01' AND k = 1",
        "SELECT k, 1 / (k - 7) FROM v WHERE 5 / (k + 1) > 2 ORDER BY 1",
        "SELECT c FROM v WHERE 1 / (k - 1) > 0",
        "SELECT n FROM u",
    ],
)
def test_what_is_read_at_home(query: str, servers: Servers, a: Client) -> None:
    a.run("CREATE VIEW w AS SELECT g.k, v.n FROM (SELECT k FROM s GROUP BY k) g JOIN v ON v.k = g.k")
    a.run("CREATE VIEW u AS SELECT 1 / (sum(n) - 66) AS n FROM s")
    a.run("CREATE TABLE d (x int, label text); INSERT INTO d VALUES (1, 'one'), (2, 'two')")
    Rows().insert(a, 12)
    wanted = outcome(a, query)
    assert wanted != []
    for name in ("v", "u"):
        servers.migrate("a", "b", name)
    assert outcome(a, query) == wanted
    writing = servers.client("a")
    writing.run("BEGIN; INSERT INTO d VALUES (7, 'none'); DELETE FROM d WHERE x = 7")
    assert outcome(writing, query) == wanted
    writing.run("ROLLBACK")


def test_reads_at_home_have_what_was_acknowledged(servers: Servers, a: Client) -> None:
    a.run("CREATE TABLE d (x int); INSERT INTO d VALUES (0), (1), (2)")
    servers.migrate("a", "b")
    rows = Rows()
    for count in (3, 5, 40):
        rows.insert(a, count)
        assert a.run(READ) == rows.wanted()
        assert a.run("SELECT k, c, n, t FROM v JOIN d ON x = k ORDER BY k") == rows.wanted(), "with a table at one LSN"
    servers.migrate("b", "c")
    rows.insert(a, 5)
    assert a.run(READ) == rows.wanted(), "wherever it goes"


def test_a_snapshot_that_is_older_than_the_last_copy(servers: Servers, a: Client) -> None:
    """The rows between the two are no longer at hand."""
    a.run("CREATE TABLE d (x int)")
    servers.migrate("a", "b")
    servers["b"].view_moving.checkpoints.close()
    rows = Rows()
    rows.insert(a, 5)
    reading = servers.client("a")
    reading.run("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT * FROM d")
    rows.insert(a, 5)
    servers.copied("b", "v")
    (runtime,) = servers["a"].runtimes()
    (entry,) = servers["a"].view_moving.ownership.all()
    wait_until(lambda: runtime.held == entry.at, 20, "the home's knowing of the copy")
    (stream,) = servers["a"].streams.values()
    stream.feed.release(entry.at)
    rows.insert(a, 5)
    with pytest.raises(SqlError, match="40001"):
        reading.run("SELECT k FROM v")
    reading.run("ROLLBACK")
    assert reading.run(READ) == rows.wanted()


def test_only_what_is_needed_is_asked_for(servers: Servers, a: Client) -> None:
    Rows().insert(a, 12)
    servers.migrate("a", "b")
    answers: list[pa.Table] = []
    ask = servers["a"].elsewhere.ask

    def listening(address: str, question: bytes, is_over: Callable[[], bool]) -> bytes:
        found = ask(address, question, is_over)
        answers.append(decode_answer(found).rows)
        return found

    servers["a"].elsewhere.ask = listening
    assert a.run("SELECT c FROM v WHERE k = 1") == [(4,)]
    assert a.run("SELECT count(*) FROM v") == [(3,)]
    assert [(sorted(rows.column_names), rows.num_rows) for rows in answers] == [(["c", "k"], 1), (["k"], 3)]
    plan = str(a.run("EXPLAIN SELECT c FROM v"))
    assert "b (asked for what the query reads)" in plan
    assert 'on server "b"' in plan
    about = "SELECT server, home, fresh_lsn, rows_behind FROM millstream.views"
    assert a.run(about) == [("b", "a", None, None)]
    assert servers.client("b").run("SELECT server, home FROM millstream.views") == [("b", "a")]


def test_an_owner_that_cannot_be_reached(servers: Servers, a: Client) -> None:
    rows = Rows()
    rows.insert(a, 5)
    servers.migrate("a", "b")
    servers.stop("b")
    with pytest.raises(SqlError, match='08001: view "v" is on server "b", which cannot be reached at b') as raised:
        a.run(READ)
    assert raised.value.hint is not None
    _ = servers["b"]
    assert a.run(READ) == rows.wanted()


@pytest.mark.parametrize("data", [b"", b"{}", b'{"view": "v", "relation": {}, "time_zone": "UTC"}'])
def test_a_question_that_is_none(data: bytes, a: Client) -> None:
    with pytest.raises(SqlError, match="08P01"):
        decode_answer(answer(a.session, data))
    with pytest.raises(SqlError, match="08P01"):
        decode_answer(data)


def test_a_question_that_reads_more_than_the_view(servers: Servers, a: Client) -> None:
    """What an answer computes is filters over the view, whatever is asked."""
    a.run("CREATE TABLE secret (x int)")
    servers.migrate("a", "b")
    (runtime,) = servers["b"].runtimes()
    for text in ("SELECT x FROM secret", "SELECT k FROM v JOIN secret ON x = k", "SELECT DISTINCT k FROM v"):
        query = a.bind(text)
        assert isinstance(query, Query)
        data = encode_question(Question(runtime.shared, servers["a"].plans.get(query.relation).relation, "UTC"))
        with pytest.raises(SqlError, match="08P01"):
            decode_answer(answer(servers["b"].session("", ""), data))


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


def test_a_view_of_a_lost_server_goes_on_at_its_home(servers: Servers, a: Client) -> None:
    """From its last copy and the home's log; and who was lost notices, though it lives."""
    rows = Rows()
    rows.insert(a, 5)
    servers.migrate("a", "b")
    for is_copied in (True, False):
        rows.insert(a, 7)
        if is_copied:
            servers.copied("b", "v")
        rows.insert(a, 3)
        b = servers.client("b")
        assert b.run(READ) == rows.wanted()
        servers.lose("b", "a")
        wait_until(lambda: servers.owner("v") == "a", 20, "the take-over")
        assert a.run(READ) == rows.wanted()
        assert a.run("SELECT server, home FROM millstream.views") == [("a", "a")]
        wait_until(lambda: not servers["b"].streams, 20, "the guest's end")
        with pytest.raises(SqlError, match=r"55000: server .* must not write to the storage"):
            servers["b"].view_moving.ownership.delete("0")
        servers.stop("b")
        rows.insert(a, 4)
        servers.migrate("a", "b")
        rows.insert(a, 4)
        assert servers.client("b").run(READ) == rows.wanted()


def test_a_lost_server_changes_nothing(servers: Servers, a: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    """It stands still while it writes a copy, and its view goes on elsewhere, with newer rows."""
    rows = Rows()
    rows.insert(a, 5)
    servers.migrate("a", "b")
    rows.insert(a, 5)

    def standing_still(step: str) -> None:
        if step == "view-copied":
            monkeypatch.undo()
            servers.lose("b", "a")
            wait_until(lambda: servers.owner("v") == "a", 20, "the take-over")
            rows.insert(a, 5)

    monkeypatch.setattr(checkpoints, "failpoint", standing_still)
    with pytest.raises(SqlError, match="its lease was taken over"):
        servers.copied("b", "v")
    assert a.run(READ) == rows.wanted()
    wait_until(lambda: not servers["b"].streams, 20, "the guest's end")


def test_a_lost_server_deletes_no_copy_of_others(servers: Servers, a: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    """It stands still when its copy is named; the view goes home and on to a third server, which is lost as well."""
    rows = Rows()
    servers.migrate("a", "b")
    _ = servers["c"]
    for name in ("b", "c"):
        servers[name].view_moving.checkpoints.close()
    rows.insert(a, 5)

    def standing_still(step: str) -> None:
        if step == "view-kept":
            monkeypatch.undo()
            servers.lose("b", "a")
            wait_until(lambda: servers.owner("v") == "a", 20, "the take-over")
            servers.migrate("a", "c")

    monkeypatch.setattr(checkpoints, "failpoint", standing_still)
    servers.copied("b", "v")
    rows.insert(a, 5)
    servers.lose("c", "a")
    wait_until(lambda: servers.owner("v") == "a", 20, "the take-over")
    assert a.run(READ) == rows.wanted()


def test_no_copy_stays_that_is_not_needed(servers: Servers, a: Client, tmp_path: Path) -> None:
    rows = Rows()
    rows.insert(a, 5)
    for source, target in ("ab", "bc", "cb"):
        _ = servers[target]
        servers[target].view_moving.checkpoints.close()
        servers.migrate(source, target)
        (entry,) = servers["a"].view_moving.ownership.all()
        assert [path.name for path in (tmp_path / "storage").glob("views/*/*")] == [entry.handover]
        rows.insert(a, 5)
        servers.copied(target, "v")
        (entry,) = servers["a"].view_moving.ownership.all()
        assert [path.name for path in (tmp_path / "storage").glob("views/*/*")] == [entry.handover]
    servers.migrate("b", "a")
    wait_until(lambda: not list((tmp_path / "storage").glob("views/*/*")), 20, "the last copy's end")


def test_who_was_to_take_a_view_is_lost(servers: Servers, a: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = Rows()
    rows.insert(a, 5)
    _ = servers["b"]
    monkeypatch.setattr(servers["b"].view_moving, "_take", lambda *given: None)
    asked: list[SqlError] = []

    def migrate() -> None:
        try:
            servers.migrate("a", "b")
        except SqlError as error:
            asked.append(error)

    asking = threading.Thread(target=migrate)
    asking.start()
    wait_until(lambda: servers.knows("v"), 20, "the entry")
    servers.lose("b", "a")
    asking.join()
    assert str(asked[0]) == '55000: server "b" cannot take view "v": server "b" is gone'
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


def lost(by: Database, *names: str) -> None:
    """Servers that were stopped count as lost."""
    registry = by.separation.registry
    with by.shared.exclusive():
        for name in names:
            registry._put(replace(registry.require(name), state="lost"))


def test_home_and_owner_are_lost(servers: Servers, a: Client) -> None:
    """Any server goes on, over the home's log; and what becomes the home's again is all there."""
    rows = Rows()
    rows.insert(a, 5)
    servers.migrate("a", "b")
    rows.insert(a, 5)
    c = servers.client("c")
    servers.stop("b")
    servers.stop("a")
    lost(servers["c"], "a", "b")
    wait_until(lambda: bool(servers["c"].runtimes()), 20, "the take-over")
    assert c.run(READ) == rows.wanted()
    again = servers.client("a")
    rows.insert(again, 5)
    assert again.run(READ) == rows.wanted()
    assert c.run(READ) == rows.wanted()
    servers.migrate("c", "a")
    assert again.run(READ) == rows.wanted()


def test_who_is_stopped_for_long_is_gone(servers: Servers, a: Client) -> None:
    rows = Rows()
    rows.insert(a, 5)
    servers.migrate("a", "b")
    rows.insert(a, 5)
    servers.stop("b")
    times = itertools.chain((1.0, LEASE, LEASE + 1, LEASE + 2), itertools.repeat(LEASE + 3))
    heirs = Heirs(servers["a"].separation.registry, lambda: next(times))
    (entry,) = servers["a"].view_moving.ownership.all()
    assert [heirs.entry(entry) for _ in range(3)] == [None] * 3
    after = heirs.entry(entry)
    assert after is not None
    assert (after.owner, after.giver, after.taken) == ("a", "b", False)
    servers["a"].view_moving._heirs = heirs
    wait_until(lambda: servers.owner("v") == "a", 20, "the take-over")
    assert a.run(READ) == rows.wanted()
    wait_until(lambda: not servers["b"].streams, 20, "the guest's end")


@pytest.mark.parametrize("name", ["t0.parquet", "manifest.json"])
def test_a_copy_that_is_not_what_was_written(name: str, servers: Servers, a: Client, tmp_path: Path) -> None:
    """It is not taken, nothing of it is computed, and the view goes on where it was when that is back."""
    rows = Rows()
    rows.insert(a, 5)
    servers.migrate("a", "b")
    rows.insert(a, 5)
    servers.copied("b", "v")
    servers.stop("b")
    (path,) = (tmp_path / "storage").glob(f"views/*/*/{name}")
    path.write_bytes(path.read_bytes().replace(b"count", b"cuont").replace(b"PAR1", b"PAR2"))
    lost(servers["a"], "b")
    ownership = servers["a"].view_moving.ownership

    def is_refused() -> bool:
        return any(entry.error is not None and entry.error[0] == "XX001" for entry in ownership.all())

    wait_until(is_refused, 20, "the refusal")
    rows.insert(a, 5)
    with pytest.raises(SqlError, match="08001"):
        a.run(READ)
    assert servers.client("b").run(READ) == rows.wanted()
    assert a.run(READ) == rows.wanted()


def test_an_error_that_rows_made(servers: Servers, a: Client) -> None:
    """It is the view's value wherever that is, and keeps no log."""
    a.run("CREATE VIEW w AS SELECT sum(1 / k) AS n FROM s")
    a.run("INSERT INTO s VALUES (1, 1, '')")
    servers.migrate("a", "b", "w")
    a.run("INSERT INTO s VALUES (0, 1, '')")
    with pytest.raises(SqlError, match="22012"):
        a.run("SELECT * FROM w")
    (before,) = servers["a"].view_moving.ownership.all()
    servers.copied("b", "w")
    (entry,) = servers["a"].view_moving.ownership.all()
    assert entry.failure is not None
    assert entry.failure[0] == "22012"
    assert entry.at > before.at
    servers.lose("b", "a")
    wait_until(lambda: servers.owner("w") == "a", 20, "the take-over")
    a.run("INSERT INTO s VALUES (1, 1, '')")
    for _ in range(2):
        with pytest.raises(SqlError, match="22012"):
            servers.client("a").run("SELECT * FROM w")
        servers.stop("a")


def test_a_server_that_comes_back_empty_counts_nothing_twice(servers: Servers, a: Client) -> None:
    """What it said of the stream before is not of its new replica, whose oid is the same."""
    servers.options |= {"log_segment_bytes": 1 << 16, "maintenance_rows": 1}
    rows = Rows()
    servers.migrate("a", "b")
    for _ in range(12):
        rows.insert(a, 1)
        assert servers.client("b").run(READ) == rows.wanted()
    oid = next(iter(servers["b"].streams))
    servers["b"].replicas.release(servers["b"].sequencer.visible)
    assert list(servers["b"].shared.folder.glob("followed/a.*.b.json"))
    servers.empty("b")
    lost(servers["a"], "b")
    wait_until(lambda: servers.owner("v") == "a", 20, "the take-over")
    servers.migrate("a", "b")
    assert list(servers["b"].streams) == [oid]
    for _ in range(3):
        rows.insert(a, 1)
        assert servers.client("b").run(READ) == rows.wanted()
    servers.stop("b")
    assert servers.client("b").run(READ) == rows.wanted()


@pytest.mark.parametrize("is_refused", [False, True])
def test_a_server_that_comes_back_empty_within_its_lease(
    is_refused: bool, servers: Servers, a: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The view is there again from its last copy; where that is not possible, at home."""
    rows = Rows()
    rows.insert(a, 5)
    servers.migrate("a", "b")
    rows.insert(a, 5)
    servers.copied("b", "v")
    rows.insert(a, 5)
    servers.empty("b")

    def refusing(*given: object) -> None:
        raise SqlError("42P07", "it exists")

    if is_refused:
        monkeypatch.setattr(entering, "enter", refusing)
        monkeypatch.setattr(views, "_AGAIN", 0.2)
    b = servers.client("b")
    wait_until(lambda: bool(servers["b"].runtimes()) or servers.owner("v") == "a", 20, "the view")
    assert servers.owner("v") == ("a" if is_refused else "b")
    rows.insert(a, 5)
    assert a.run(READ) == rows.wanted()
    if not is_refused:
        assert b.run(READ) == rows.wanted()


def test_an_error_that_rows_made_is_not_lost_with_a_folder(servers: Servers, a: Client) -> None:
    a.run("CREATE VIEW w AS SELECT sum(1 / k) AS n FROM s")
    servers.migrate("a", "b", "w")
    a.run("INSERT INTO s VALUES (0, 1, '')")
    with pytest.raises(SqlError, match="22012"):
        servers.client("b").run("SELECT * FROM w")
    servers.copied("b", "w")
    servers.empty("b")
    _ = servers["b"]
    wait_until(lambda: servers.owner("w") == "a", 20, "the view's coming home")
    with pytest.raises(SqlError, match="22012"):
        a.run("SELECT * FROM w")


def test_a_passing_error_of_the_storage_prevents_no_take_over(
    servers: Servers, a: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = Rows()
    rows.insert(a, 5)
    servers.migrate("a", "b")
    rows.insert(a, 5)
    errors = iter([SqlError("58030", "input/output error"), SqlError("53100", "no space left on device")])
    read = artifact.read

    def failing(storage: Path, owned: Owned) -> LeavingView:
        for error in errors:
            raise error
        return read(storage, owned)

    monkeypatch.setattr(artifact, "read", failing)
    monkeypatch.setattr(views, "_AGAIN", 0.2)
    servers.lose("b", "a")
    wait_until(lambda: servers.owner("v") == "a", 20, "the take-over")
    assert a.run(READ) == rows.wanted()


def test_what_prevents_a_view_prevents_no_other(servers: Servers, a: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    a.run("CREATE VIEW w AS SELECT count(*) FROM s")
    rows = Rows()
    rows.insert(a, 5)
    for name in ("v", "w"):
        servers.migrate("a", "b", name)
    first = servers["a"].view_moving.ownership.all()[0].view
    ownership, is_there = servers["a"].view_moving.ownership, threading.Event()
    change = ownership.change

    def failing(before: Owned | None, after: Owned) -> None:
        if after.view == first and not is_there.is_set():
            raise SqlError("55P03", "a lock is kept")
        change(before, after)

    monkeypatch.setattr(ownership, "change", failing)
    servers.lose("b", "a")
    wait_until(lambda: servers.owner("w" if first == "v" else "v") == "a", 20, "the other's take-over")
    is_there.set()
    wait_until(lambda: servers.owner(first) == "a", 20, "the take-over")
    assert a.run(READ) == rows.wanted()
    assert a.run("SELECT * FROM w") == [(5,)]


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

    def lose(self, chance: random.Random) -> None:
        """A server is gone for the others, which may have made copies of its views' states; it starts again."""
        lost = chance.choice("bc")
        if lost in self._servers.running:
            for number, owner in enumerate(self._owners):
                if owner == lost:
                    if chance.randrange(2):
                        self._servers.copied(lost, f"v{number}")
                    self._owners[number] = "a"
            self._servers.lose(lost, "a")
            for number, owner in enumerate(self._owners):
                if self._servers.knows(f"v{number}"):
                    wait_until(lambda v=f"v{number}", o=owner: self._servers.owner(v) == o, 20, "the take-over")
            self._servers.stop(lost)

    def read(self) -> None:
        """All views are what they should be."""
        for number, (shape, owner) in enumerate(zip(SHAPES, self._owners, strict=True)):
            wanted = self._servers.client("a").run(shape.format(order=" ORDER BY i", rows="judge"))
            _ = self._servers[owner]
            for reader in {owner, "a"}:
                found = self._servers.client(reader).run(f"SELECT * FROM v{number}")
                assert sorted(map(repr, found)) == sorted(map(repr, wanted)), (number, owner, reader)


@pytest.mark.parametrize("seed", range(6))
def test_the_law_over_migrations(seed: int, servers: Servers) -> None:
    """Random rows, batches, migrations, restarts and losses: each view is its query over what was acknowledged."""
    chance = random.Random(seed)
    servers.options |= {"maintenance_rows": chance.choice((1, 50, 100_000)), "log_segment_bytes": 1 << 16}
    scenario = Scenario(servers)
    for _ in range(24):
        match chance.randrange(7):
            case 0 | 1:
                scenario.insert(chance)
            case 2 | 3:
                scenario.migrate(chance)
            case 4:
                servers.stop(chance.choice(servers.running or ("a",)))
            case 5:
                scenario.lose(chance)
            case _:
                scenario.read()
    scenario.read()


def test_a_drained_server_has_no_views(servers: Servers, a: Client) -> None:
    a.run("CREATE TABLE d (x int); CREATE VIEW w AS SELECT g.k FROM (SELECT k FROM s GROUP BY k) g JOIN d ON k = x")
    rows = Rows()
    rows.insert(a, 5)
    b = servers.client("b")
    told: list[int] = []
    assert servers["b"].separation.moving.drain("a", lambda: False, told.append) == 1, "the other one cannot leave"
    assert told == [1]
    rows.insert(a, 5)
    assert b.run(READ) == rows.wanted()
    assert a.run("SELECT name, server, home FROM millstream.views ORDER BY name") == [("v", "b", "a"), ("w", "a", "a")]
    assert b.run("SELECT name, server, home FROM millstream.views") == [("v", "b", "a")]
