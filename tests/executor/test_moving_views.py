"""Continuous views that move between servers: whichever server maintains them, they equal their query over the
acknowledged rows."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
from msgspec.structs import replace

from catalog.values.errors import SqlError
from executor.commit.records import Followed
from executor.key_access.point_sources import ViewSource
from executor.moving import answers, view_export
from executor.moving.answers import answer
from executor.remote_reads.messages import Question, decode_answer, encode_question
from executor.replicas import replica as replica_module
from executor.replicas.replica import Replica, Replicas, replica_of
from executor.views.runtime import ViewRuntime
from planner.statements.statement import Query
from tests.executor.client import Client
from tests.executor.moving import READ, VIEW, Rows, Servers
from tests.executor.separating import outcome
from tests.rig.beside import Beside
from tests.rig.process import wait_until
from tests.rig.sampling import sample

pytestmark = [pytest.mark.slow, pytest.mark.sample(9)]


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
        wait_until(lambda: not servers["b"].core.streams, what="the replica's end")


def test_a_server_that_has_begun_without_an_entry_may_be_asked_to_give(servers: Servers, a: Client) -> None:
    rows = Rows()
    rows.insert(a, 5)
    servers.migrate("a", "b")
    moving = servers["b"].view_migration
    moving.checkpoints.close()  # a copy would be another entry
    (taken,) = moving.ownership.all()
    moving.ownership.change(taken, replace(taken, taken=False))  # as a server finds it that died then
    servers.migrate("b", "a")
    rows.insert(a, 3)
    assert a.run(READ) == rows.wanted()


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


def test_a_view_leaves_while_its_home_asks_for_it(servers: Servers, a: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    """The server that has it then is asked."""
    rows = Rows()
    rows.insert(a, 5)
    servers.migrate("a", "b")
    left = threading.Event()

    def leaving(replicas: Replicas, runtime: ViewRuntime) -> Replica | None:
        found = replica_of(replicas, runtime)
        if not left.is_set():
            left.set()
            servers.migrate("b", "c")
            wait_until(lambda: servers["b"].core.catalog.at("public", "v") is None, what="its end there")
        return found

    monkeypatch.setattr(answers, "replica_of", leaving)
    assert a.run(READ) == rows.wanted()
    assert left.is_set()


def test_a_view_leaves_while_a_row_is_looked_up(servers: Servers, a: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    """The row is then asked for as in any other query."""
    a.run("CREATE VIEW w AS SELECT k, count(*) AS c FROM s GROUP BY k")
    Rows().insert(a, 5)
    indexes = servers["a"].indexes
    read = indexes.read

    def leaving(oid: int, key: tuple[object, ...]) -> object:
        servers.migrate("a", "b", "w")
        return read(oid, key)

    source = ViewSource(servers["a"].core, indexes, servers["a"].core.catalog.require("public", "w").oid)
    assert source.read((1,)) is not None
    monkeypatch.setattr(indexes, "read", leaving)
    assert source.read((1,)) is None
    assert source.peek((1,)) is None


def test_a_snapshot_that_is_older_than_the_last_copy(servers: Servers, a: Client) -> None:
    """The rows between the two are no longer available."""
    a.run("CREATE TABLE d (x int)")
    servers.migrate("a", "b")
    servers["b"].view_migration.checkpoints.close()
    rows = Rows()
    rows.insert(a, 5)
    reading = servers.client("a")
    reading.run("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT * FROM d")
    rows.insert(a, 5)
    servers.copied("b", "v")
    (runtime,) = servers["a"].core.runtimes()
    (entry,) = servers["a"].view_migration.ownership.all()
    wait_until(lambda: runtime.held == entry.at, what="the home's knowing of the copy")
    (stream,) = servers["a"].core.streams.values()
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
        decode_answer(answer(a.session.reader, data))
    with pytest.raises(SqlError, match="08P01"):
        decode_answer(data)


def test_a_question_that_reads_more_than_the_view(servers: Servers, a: Client) -> None:
    """An answer consists of filters over the view, whatever the question contains."""
    a.run("CREATE TABLE secret (x int)")
    servers.migrate("a", "b")
    (runtime,) = servers["b"].core.runtimes()
    for text in ("SELECT x FROM secret", "SELECT k FROM v JOIN secret ON x = k", "SELECT DISTINCT k FROM v"):
        query = a.bind(text)
        assert isinstance(query, Query)
        data = encode_question(Question(runtime.shared, servers["a"].core.plans.get(query.relation).relation, "UTC"))
        with pytest.raises(SqlError, match="08P01"):
            decode_answer(answer(servers["b"].own_reader(), data))


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
    assert len(servers["b"].core.streams) == 1
    servers.migrate("b", "a")
    rows.insert(a, 5)
    assert b.run("SELECT * FROM w") == [(20, 19)]
    assert a.run(READ) == rows.wanted()
    servers.migrate("b", "a", "w")
    assert a.run("SELECT * FROM w") == [(20, 19)]
    wait_until(lambda: not servers["b"].core.streams, what="the replica's end")


def test_a_replica_is_seen_before_its_position_is_known(
    servers: Servers, a: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The replica's rows are not applied from the log's beginning."""
    monkeypatch.setattr(replica_module, "_MOMENT", 60.0)
    rows = Rows()
    rows.insert(a, 5)
    replicas = servers["b"].replicas
    recorded = replicas.recorded
    looking: list[Beside[None]] = []

    def late(lsn: int, part: Followed) -> None:
        replica = replicas.get(part.stream)
        assert replica is not None
        if not looking:
            looking.append(Beside(replica.catch_up))
            time.sleep(0.2)  # for this time it may act wrongly
        recorded(lsn, part)

    monkeypatch.setattr(replicas, "recorded", late)
    servers.migrate("a", "b")
    looking[0].result()
    assert servers.client("b").run(READ) == rows.wanted()
    rows.insert(a, 5)
    assert servers.client("b").run(READ) == rows.wanted()


def test_a_view_that_is_dropped_at_home_is_nowhere(servers: Servers, a: Client) -> None:
    servers.migrate("a", "b")
    a.run("DROP VIEW v")
    wait_until(lambda: not servers["b"].core.streams, what="the guest's end")
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
        "CREATE OR REPLACE VIEW v WITH (restart = true) AS "
        "SELECT k, count(*) AS c, min(n) AS n, array_agg(t) AS t FROM s GROUP BY k",
        "ALTER FOREIGN TABLE s RENAME TO t",
    ):
        with pytest.raises(SqlError, match=r'55000: relation ".*" is in use by server "b"'):
            a.run(statement)
    for statement in (
        "DROP VIEW v",
        "DROP FOREIGN TABLE s CASCADE",
        "ALTER VIEW v RENAME TO w",
        "ALTER FOREIGN TABLE s ADD COLUMN x int",
    ):
        with pytest.raises(SqlError, match=r'55000: relation ".*" belongs to server "a"'):
            b.run(statement)
    assert b.run("SELECT ftoptions FROM pg_foreign_table") == [(None,)], "a dump's CREATE FOREIGN TABLE takes it"
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


def test_domains_and_functions_go_along(servers: Servers, a: Client) -> None:
    """Domains and functions are replaced by their definitions; at home they exist."""
    a.run(
        "CREATE DOMAIN plain AS int; CREATE DOMAIN few AS int CHECK (value < 50 AND value > 0);"
        "CREATE FUNCTION twice(x int) RETURNS int LANGUAGE sql IMMUTABLE AS 'SELECT x * 2';"
        "CREATE FOREIGN TABLE z (x plain, y int) SERVER stream;"
        "CREATE VIEW w AS SELECT x, sum(twice(y)) AS y, max(y::few) AS m FROM z GROUP BY x"
    )
    a.run("INSERT INTO z VALUES (1, 2), (2, 3)")
    wanted = a.run("SELECT x, y, m FROM w ORDER BY x")
    for target in "bc":
        servers.migrate("a", target, "w")
        a.run("INSERT INTO z VALUES (1, 5)")
        wanted = a.run("SELECT x, y, m FROM w ORDER BY x")
        there = servers.client(target)
        assert there.run("SELECT x, y, m FROM w ORDER BY x") == wanted
        for client in (there, a):  # if they do not exist, the text is as written
            assert "sum(twice(" in str(client.run("SELECT pg_get_viewdef('w'::regclass)"))
        assert there.run("SELECT x FROM w WHERE x = 2") == [(2,)]
        servers.stop(target)
        assert servers.client(target).run("SELECT x, y, m FROM w ORDER BY x") == wanted
        servers.migrate(target, "a", "w")
        assert a.run("SELECT x, y, m FROM w ORDER BY x") == wanted
    assert wanted == [(1, 24, 5), (2, 6, 3)]
    servers.migrate("a", "b", "w")
    a.run("INSERT INTO z VALUES (3, 0)")
    for name in "ab":
        with pytest.raises(SqlError, match="23514"):
            servers.client(name).run("SELECT * FROM w")


def test_a_name_that_is_taken(servers: Servers, a: Client) -> None:
    rows = Rows()
    rows.insert(a, 5)
    servers.client("b").run("CREATE TABLE v (k int)")
    with pytest.raises(SqlError, match='42P07: server "b" cannot take over view "v": relation "v" already exists'):
        servers.migrate("a", "b")
    rows.insert(a, 5)
    assert a.run(READ) == rows.wanted()
    servers.migrate("a", "c")
    with pytest.raises(SqlError, match="42P07"):
        servers.migrate("c", "b")
    rows.insert(a, 5)
    assert servers.client("c").run(READ) == rows.wanted()


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

    monkeypatch.setattr(view_export, "failpoint", forging)
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
            path.mkdir()  # reading it raises a system error

    monkeypatch.setattr(view_export, "failpoint", breaking)
    with pytest.raises(SqlError, match="58030"):
        servers.migrate("a", "b")
    rows.insert(a, 5)
    assert a.run(READ) == rows.wanted()


#: What a view shows of its streams; for results in order of arrival, a table needs an explicit order.
SHAPES = (
    "SELECT k, count(*) AS c, sum(n) AS n, avg(d) AS d, min(t) AS a, array_agg(t{order}) AS b FROM {s} GROUP BY k",
    "SELECT count(*) AS c, count(DISTINCT t) AS d, string_agg(t, ','{order}) AS t, max(i) AS i FROM {s}",
    "SELECT t, k, sum(d) FILTER (WHERE n > 3) AS d, bool_or(n > 5) AS b FROM {s} WHERE k < 4 GROUP BY ROLLUP (t, k)",
    "SELECT m, count(*) AS c, max(m) AS a, array_agg(m{order}) AS b, min(m::text) AS t FROM {r} GROUP BY m",
    "SELECT k, c, d, b FROM (SELECT k, count(*) AS c, array_agg(t{order}) AS b FROM {s} GROUP BY k) x"
    " FULL JOIN (SELECT k, sum(n) AS d FROM {r} GROUP BY k) y USING (k)",
    "SELECT k, count(*) AS c, sum(n) AS n FROM (SELECT k, n FROM {s} UNION ALL SELECT k, n FROM {r}) x GROUP BY k",
)
COLUMNS = "(i bigint, k int, n numeric(12,2), d double precision, t text, m mood)"


class Scenario:
    """Views of the server ``a``, wherever they are, and tables with all rows of their streams."""

    def __init__(self, servers: Servers) -> None:
        self._servers = servers
        client = servers.client("a")
        client.run("CREATE TYPE mood AS ENUM ('sad', 'ok', 'happy')")
        for name in "sr":
            client.run(f"CREATE FOREIGN TABLE {name} {COLUMNS} SERVER stream; CREATE TABLE judge_{name} {COLUMNS}")
        for number, shape in enumerate(SHAPES):
            client.run(f"CREATE VIEW v{number} AS {shape.format(order='', s='s', r='r')}")
        self._owners = ["a"] * len(SHAPES)
        self._rows = 0

    def insert(self, chance: random.Random) -> None:
        """Inserts few or many rows into one stream, or into both in one transaction."""
        statements = ["BEGIN"]
        for name in chance.choice(("s", "r", "sr", "rs")):
            rows = []
            for _ in range(chance.choice((1, 7, 400))):
                self._rows += 1
                numbers = (self._rows, chance.randrange(6), chance.randrange(9), chance.randrange(8) / 8)
                rows.append((*numbers, chance.choice("abc"), chance.choice(("sad", "ok", "happy"))))
            values = ", ".join(map(repr, rows))
            statements += (f"INSERT INTO {to} VALUES {values}" for to in (name, f"judge_{name}"))
        self._servers.client("a").run("; ".join((*statements, "COMMIT")))

    def migrate(self, chance: random.Random) -> None:
        """A view migrates to any other server."""
        number = chance.randrange(len(SHAPES))
        target = chance.choice([name for name in "abc" if name != self._owners[number]])
        self._servers.migrate(self._owners[number], target, f"v{number}")
        self._owners[number] = target

    def lose(self, chance: random.Random) -> None:
        """A server is lost for the others, which may have copied its views' states; it starts again."""
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
                    wait_until(lambda v=f"v{number}", o=owner: self._servers.owner(v) == o, what="the take-over")
            self._servers.stop(lost)

    def read(self) -> None:
        """Checks that all views show the right rows."""
        for number, (shape, owner) in enumerate(zip(SHAPES, self._owners, strict=True)):
            query = shape.format(order=" ORDER BY i", s="judge_s", r="judge_r")
            wanted = self._servers.client("a").run(query)
            _ = self._servers[owner]
            for reader in {owner, "a"}:
                found = self._servers.client(reader).run(f"SELECT * FROM v{number}")
                assert sorted(map(repr, found)) == sorted(map(repr, wanted)), (number, owner, reader)


@pytest.mark.parametrize("seed", sample(range(6), range(3)))
def test_the_law_over_migrations(seed: int, servers: Servers) -> None:
    """Random rows, batches, migrations, restarts and losses: each view equals its query over the acknowledged rows."""
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
    a.run("CREATE VIEW w AS SELECT g.k FROM (SELECT k FROM s GROUP BY k) g JOIN v ON v.k = g.k")
    rows = Rows()
    rows.insert(a, 5)
    b = servers.client("b")
    told: list[int] = []
    assert servers["b"].separation.moving.drain("a", lambda: False, told.append) == 2
    assert told[-1] == 2
    rows.insert(a, 5)
    for client in (a, b):
        assert client.run(READ) == rows.wanted()
        assert client.run("SELECT k FROM w ORDER BY k") == [(row[0],) for row in rows.wanted()]
        views = client.run("SELECT name, server, home FROM millstream.views ORDER BY name")
        assert views == [("v", "b", "a"), ("w", "b", "a")]
