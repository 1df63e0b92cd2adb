"""Continuous views that read others at each read, between servers: they take the others' states along."""

from __future__ import annotations

from typing import Any

import pytest

from catalog.objects import View
from catalog.values.errors import SqlError
from executor.moving import checkpoints, state_recovery
from executor.moving.view_artifact import ExportedView
from executor.remote_reads.messages import decode_question
from tests.executor.client import Client
from tests.executor.moving import Servers, lost
from tests.rig.beside import Repeating
from tests.rig.process import wait_until
from tests.rig.sampling import sample

pytestmark = [pytest.mark.slow, pytest.mark.sample(9)]

SETUP = """
    CREATE FOREIGN TABLE s (k int, n numeric(12,2), t text) SERVER stream;
    CREATE FOREIGN TABLE r (k int, m int) SERVER stream;
    CREATE VIEW v AS SELECT k, count(*) AS c, sum(n) AS n, array_agg(t) AS t FROM s GROUP BY k;
    CREATE VIEW w AS SELECT g.k, g.m, v.c, v.t FROM (SELECT k, max(m) AS m FROM r GROUP BY k) g JOIN v ON v.k = g.k;
"""
READ = "SELECT k, m, c, t FROM w ORDER BY k"


@pytest.fixture
def home(servers: Servers) -> Client:
    client = servers.client("a")
    client.run(SETUP)
    client.run("INSERT INTO s VALUES (1, 1, 'a'), (1, 2, 'b'), (2, 3, 'c'); INSERT INTO r VALUES (1, 5), (3, 6)")
    return client


def view_of(servers: Servers, name: str, server: str = "a") -> View:
    found = servers[server].core.catalog.require("public", name)
    assert isinstance(found, View)
    return found


def test_there_and_back(servers: Servers, home: Client) -> None:
    wanted = [(1, 5, 2, ["a", "b"])]
    for source, target in (("a", "b"), ("b", "c"), ("c", "a"), ("a", "c")):
        servers.migrate(source, target, "w")
        for restarted in ("", target, "a"):
            if restarted:
                servers.stop(restarted)
            home = servers.client("a")
            for statement in ("INSERT INTO s VALUES (1, 1, 'x')", "INSERT INTO r VALUES (1, 7)"):
                home.run(statement)
                ((k, m, c, t),) = wanted
                wanted = [(k, m, c + 1, [*t, "x"])] if " s " in statement else [(k, 7, c, t)]
                for reader in (target, "a"):
                    assert servers.client(reader).run(READ) == wanted, (target, restarted, reader)
    home.run("INSERT INTO s VALUES (3, 1, 'y')")
    for reader in ("c", "a"):
        assert servers.client(reader).run(READ) == [*wanted, (3, 6, 1, ["y"])]
    assert home.run("SELECT k, c FROM v ORDER BY k") == [(1, 14), (2, 1), (3, 1)]


@pytest.mark.parametrize("order", [("v", "w"), ("w", "v")])
def test_the_other_leaves_as_well(order: tuple[str, str], servers: Servers, home: Client) -> None:
    """The other view moves to another server and is suspended there, before or after this one; both return in either
    order."""
    for name in order:
        servers.migrate("a", "b" if name == "w" else "c", name)
        home.run("INSERT INTO s VALUES (1, 1, 'x')")
    wanted = [(1, 5, 4, ["a", "b", "x", "x"])]
    for reader in ("b", "a"):
        assert servers.client(reader).run(READ) == wanted
    servers["c"].view_migration.suspend(view_of(servers, "v", "c"))
    home.run("INSERT INTO s VALUES (1, 1, 'y')")
    wanted = [(1, 5, 5, ["a", "b", "x", "x", "y"])]
    for reader in ("b", "a"):
        assert servers.client(reader).run(READ) == wanted
    with pytest.raises(SqlError, match='55000: view "v" is suspended'):
        home.run("SELECT * FROM v")
    for name in order:
        if name == "w":
            servers.migrate("b", "a", "w")
        else:
            (owned,) = servers["a"].view_migration.suspended()
            servers["a"].view_migration.resume(owned, lambda: False)
    assert home.run(READ) == wanted
    home.run("INSERT INTO s VALUES (2, 1, 'z'); INSERT INTO r VALUES (2, 1)")
    assert home.run(READ) == [*wanted, (2, 1, 2, ["c", "z"])]


def test_both_have_states_of_one_name(servers: Servers, home: Client) -> None:
    """One since its creation, the other with more rows."""
    grouped = "SELECT k, count(*) AS c, sum(n) AS n, array_agg(t) AS t FROM s GROUP BY k"
    columns = "g.k, g.n, g.t, g.c, v.c AS all_c, v.t AS all_t"
    home.run(f"CREATE VIEW x AS SELECT {columns} FROM ({grouped}) g JOIN v USING (k)")
    v, x = (servers["a"].core.view(view_of(servers, name).oid) for name in "vx")
    assert set(v.states) == set(x.states)
    home.run("INSERT INTO s VALUES (1, 7, 'x')")
    wanted = [(1, 7, ["x"], 1, 3, ["a", "b", "x"])]
    for source, target in (("a", "b"), ("b", "c"), ("c", "a")):
        servers.migrate(source, target, "x")
        for reader in (target, "a"):
            assert servers.client(reader).run("SELECT * FROM x") == wanted, (target, reader)


def test_it_leaves_while_the_other_is_suspended(servers: Servers, home: Client) -> None:
    """What the other had then, and the rows since, are its."""
    servers["a"].view_migration.suspend(view_of(servers, "v"))
    home.run("INSERT INTO s VALUES (1, 1, 'x')")
    with pytest.raises(SqlError, match='55000: view "v" is suspended'):
        home.run(READ)
    servers.migrate("a", "b", "w")
    home.run("INSERT INTO s VALUES (1, 1, 'y')")
    for reader in ("b", "a"):
        assert servers.client(reader).run(READ) == [(1, 5, 4, ["a", "b", "x", "y"])]


def test_which_server_is_asked(servers: Servers, home: Client) -> None:
    """Only the server that shows the view is asked; the place and the maintenance of the view below do not matter."""
    home.run("CREATE VIEW x AS SELECT g.h, w.c FROM (SELECT count(*) AS h FROM r) g, w; INSERT INTO r VALUES (1, 2)")
    servers.migrate("a", "b", "w")
    servers["a"].view_migration.suspend(view_of(servers, "v"))
    database, asked = servers["a"], servers.questions("a")
    feed, reader = database.changes.feed(view_of(servers, "x").oid), database.own_reader().present
    after = feed.start(reader, None)
    home.run("INSERT INTO s VALUES (1, 1, 'x')")
    for query, wanted in (("SELECT h, c FROM x", [(1, 3)]), ("SELECT c FROM w", [(3,)]), ("TABLE x", [(1, 3)])):
        assert home.run(query) == wanted
    wait_until(lambda: bool(feed.delta(after, feed.advance(reader))), what="the change")
    shared = database.core.view(view_of(servers, "w").oid).shared
    assert {decode_question(question).view for question in asked} == {shared}


#: Views over v, w, or others of these.
SHAPES = (
    "SELECT r.k, (SELECT count(*) FROM v) AS c FROM (SELECT DISTINCT k FROM r) r",
    "SELECT g.k, a.c, b.n FROM (SELECT k, min(n) FROM s GROUP BY k) g JOIN v a ON a.k = g.k "
    "LEFT JOIN v b ON b.k = a.k + 1",
    "SELECT k, count(*) FROM r GROUP BY k HAVING k IN (SELECT k FROM v WHERE c > 1)",
    "SELECT k, count(*) FROM r GROUP BY k HAVING NOT EXISTS (SELECT FROM w WHERE w.k = r.k)",
    "SELECT w.k, w.c, v.n, g.h, rank() OVER (ORDER BY w.c, w.k) FROM w JOIN v ON v.k = w.k, "
    "(SELECT count(*) AS h FROM s) g",
    "SELECT k, c FROM v UNION ALL SELECT k, c FROM w UNION ALL SELECT k, sum(m) FROM r GROUP BY k",
    "SELECT g.k, x.n FROM (SELECT k, max(m) AS m FROM r GROUP BY k) g, LATERAL (SELECT n FROM v WHERE v.c < g.m "
    "ORDER BY n DESC LIMIT 1) x",
    "SELECT g.m, p.name, v.n FROM (SELECT m FROM r GROUP BY m) g JOIN people p ON p.id < g.m JOIN q ON q.id = p.id "
    "JOIN v ON v.k = p.id",
    "SELECT g.k, g.c, e.mood::text AS t, e.mood FROM (SELECT k, count(*) AS c FROM r GROUP BY k) g, e",
    "SELECT f.k, f.n, g.m FROM f LEFT JOIN (SELECT DISTINCT ON (k) k, m FROM r ORDER BY k, m DESC) g ON g.k = f.k",
    "SELECT g.c, w.t[1] AS t FROM (SELECT count(*) AS c FROM r) g, w",
    "SELECT avg(v.n), max(c) FROM v, (SELECT count(*) AS h FROM r) g WHERE h > 0",
    "SELECT * FROM (WITH RECURSIVE x(k, n) AS (SELECT k, 1 FROM v UNION ALL SELECT k, n + 1 FROM x WHERE n < 3) "
    "SELECT k, n FROM x) y, (SELECT count(*) AS h FROM r) g",
    "SELECT a.w, a.n, b.h FROM windows a, (SELECT count(*) AS h FROM r) b",
)


@pytest.mark.parametrize("shape", sample(range(len(SHAPES)), range(1, len(SHAPES), 2)))
def test_what_is_read_of_others(shape: int, servers: Servers, home: Client) -> None:
    home.run(
        """CREATE TABLE people (id int, name text); INSERT INTO people VALUES (1, 'Ada'), (2, 'Bob');
        CREATE TYPE mood AS ENUM ('sad', 'ok');
        CREATE FOREIGN TABLE moods (mood mood, ts timestamp, n int) SERVER stream
            OPTIONS (watermark 'ts - interval ''1 minute''');
        CREATE VIEW e AS SELECT mood, count(*) AS c FROM moods GROUP BY mood;
        CREATE VIEW f AS SELECT k, n, t FROM s ORDER BY n DESC, k LIMIT 2;
        CREATE VIEW q AS SELECT p.id, p.name, g.c FROM people p, (SELECT count(*) AS c FROM s) g;
        CREATE VIEW windows WITH (retention = '10 minutes') AS
            SELECT tumble(ts, '1 minute') AS w, sum(n) AS n FROM moods GROUP BY 1"""
    )
    home.run(f"CREATE VIEW x AS {SHAPES[shape]}; CREATE VIEW twin AS {SHAPES[shape]}")

    def write(mood: str = "sad") -> None:
        home.run(
            f"""INSERT INTO s VALUES (1, 1.5, 'a'), (2, 2, NULL), (3, 7.25, 'b');
            INSERT INTO r VALUES (1, 2), (2, 3), (4, 9);
            INSERT INTO moods VALUES ('{mood}', '2024-01-01 10:00', 1), ('ok', '2024-01-01 10:02', 2);
            INSERT INTO people VALUES (1, 'Cleo'); DELETE FROM people WHERE id = 2"""
        )

    def check(*readers: str) -> None:
        wanted = sorted(map(repr, home.run("SELECT * FROM twin")))
        assert wanted
        for reader in readers:
            assert sorted(map(repr, servers.client(reader).run("SELECT * FROM x"))) == wanted, reader

    write()
    servers.migrate("a", "b", "x")
    check("b", "a")
    write()
    check("b", "a")
    servers.migrate("b", "c", "x")
    write()
    check("c", "a")
    servers.migrate("c", "a", "x")
    check("a")
    home.run(
        "ALTER VIEW v RENAME COLUMN c TO counted; ALTER VIEW w RENAME c TO d; ALTER TABLE people RENAME name TO called"
    )
    home.run("ALTER TYPE mood RENAME VALUE 'sad' TO 'down'")
    servers.migrate("a", "b", "x")
    write("down")
    check("b", "a")


def test_rows_of_all_streams_are_of_one_moment(servers: Servers, home: Client) -> None:
    """A transaction on the streams of both views is seen at once, and so are later rows, also at home."""
    home.run(
        "CREATE VIEW z AS SELECT count(*) AS c FROM s WHERE k = 77; "
        "CREATE VIEW x AS SELECT g.a, z.c AS b FROM (SELECT count(*) AS a FROM r WHERE m = 77) g, z"
    )
    servers.migrate("a", "b", "x")
    done = 0

    def read(client: Client) -> None:
        least = done
        ((first, second),) = client.run("SELECT a, b FROM x")
        assert first == second
        assert int(first) >= least

    with Repeating(read, servers.client("b")) as there, Repeating(read, servers.client("a")) as here:
        while done < 100 or not (there.has_done(3) and here.has_done(3)):
            home.run("BEGIN; INSERT INTO s VALUES (77, 1, ''); INSERT INTO r VALUES (1, 77); COMMIT")
            done += 1
            if done in {20, 60}:
                servers.migrate("a", "c", "z") if done == 20 else servers.migrate("c", "a", "z")


def test_what_it_reads_stays_as_it_is(servers: Servers, home: Client) -> None:
    servers.migrate("a", "b", "w")
    home.run("CREATE VIEW other AS SELECT k FROM s GROUP BY k")
    for statement in (
        "ALTER VIEW v RENAME COLUMN c TO d",
        "ALTER VIEW v RENAME TO u",
        "ALTER FOREIGN TABLE s ADD COLUMN x int",
    ):
        with pytest.raises(SqlError, match=r'55000: relation ".*" is in use by server "b"'):
            home.run(statement)
    with pytest.raises(SqlError, match="2BP01"):
        home.run("DROP VIEW v")
    home.run("DROP VIEW other")
    assert servers.client("b").run(READ) == [(1, 5, 2, ["a", "b"])]
    home.run("DROP VIEW v CASCADE")
    wait_until(lambda: servers["b"].core.catalog.at("public", "w") is None, what="its end there")
    wait_until(lambda: not servers["b"].core.streams, what="its stream's end there")


def test_copies_end_with_a_change_of_what_it_reads(servers: Servers, home: Client) -> None:
    """Those that nobody has asked for; they begin again."""
    servers["a"].view_migration.start_automatic_copies(servers["a"].core.view(view_of(servers, "w").oid))
    assert servers.knows("w")
    w = servers["a"].core.view(view_of(servers, "w").oid)
    with servers["a"].view_migration.checkpoints.writing(w, unasked=True):  # the next one, which finds none to follow
        home.run("ALTER VIEW v RENAME COLUMN c TO d")
    wait_until(lambda: w.held is None, what="that the log is kept for nobody")  # as who had looked before may think
    servers["a"].view_migration.checkpoint(view_of(servers, "w"))
    with pytest.raises(SqlError, match=r'55000: relation ".*" is in use by a copy on the storage'):
        home.run("ALTER VIEW v RENAME COLUMN d TO e")
    servers["a"].view_migration.forget(view_of(servers, "w"))
    home.run("ALTER VIEW v RENAME COLUMN d TO e")
    servers.migrate("a", "b", "w")
    assert servers.client("b").run(READ) == [(1, 5, 2, ["a", "b"])]


def test_the_log_is_kept_for_the_streams_of_others(servers: Servers, home: Client) -> None:
    """While it is suspended, also for a view that has the rows durably."""
    servers.stop("a")
    servers.options |= {"log_segment_bytes": 1 << 16, "maintenance_rows": 1}
    home = servers.client("a")
    servers["a"].view_migration.suspend(view_of(servers, "w"))
    v, text = servers["a"].core.view(view_of(servers, "v").oid), "x" * 1000
    for number in range(40):
        rows = ", ".join(f"({number % 3}, {row}, '{text}')" for row in range(10))
        home.run(f"INSERT INTO s VALUES {rows}")
    lsn = servers["a"].core.sequencer.visible
    wait_until(lambda: all(progress.durable >= lsn for progress in v.paths), what="its maintenance")
    servers["a"].frontiers.release()
    servers.stop("a")
    (owned,) = servers["b"].view_migration.suspended()
    servers["b"].view_migration.resume(owned, lambda: False)
    ((k, m, c, t),) = servers.client("b").run("SELECT k, m, c, array_length(t, 1) FROM w")
    assert (k, m, c, t) == (1, 5, 2 + 130, 2 + 130)


def test_the_home_is_lost(servers: Servers, home: Client) -> None:
    """Another server continues from a copy, and adopts all streams."""
    database = servers["a"]
    for name in ("v", "w"):
        database.view_migration.start_automatic_copies(database.core.view(view_of(servers, name).oid))
    home.run("INSERT INTO s VALUES (1, 3, 'x'), (3, 3, 'y'); INSERT INTO r VALUES (1, 8)")
    wanted = [(1, 8, 3, ["a", "b", "x"]), (3, 6, 1, ["y"])]
    servers.stop("a")
    _ = servers["b"]
    lost(servers["b"], "a")
    wait_until(lambda: servers["b"].core.catalog.at("public", "w") is not None, what="the take-over")
    assert servers.client("b").run(READ) == wanted
    wait_until(lambda: servers["b"].core.catalog.at("public", "v") is not None, what="the take-over")
    assert servers["b"].view_migration.adopt("a") == 2
    b = servers.client("b")
    b.run("INSERT INTO s VALUES (3, 3, 'z'); INSERT INTO r VALUES (3, 9)")
    wanted = [wanted[0], (3, 9, 2, ["y", "z"])]
    for _ in range(2):
        assert servers.client("b").run(READ) == wanted
        assert servers.client("b").run("SELECT k, c FROM v ORDER BY k") == [(1, 3), (2, 1), (3, 2)]
        servers.stop("b")
    servers.migrate("b", "c", "w")
    assert servers.client("c").run(READ) == wanted


def test_when_a_copy_is_due(servers: Servers, home: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows that are kept for another, suspended view are no reason to write this one repeatedly."""
    monkeypatch.setattr(checkpoints, "_PAUSE", 600.0)
    servers.stop("a")
    servers.options["backlog_bytes"] = 20_000
    home = servers.client("a")
    moving, runtime = servers["a"].view_migration, servers["a"].core.view(view_of(servers, "w").oid)
    moving.checkpoints.close()  # nobody makes it
    rows = "INSERT INTO s SELECT 1, 1, repeat('x', 1000) FROM generate_series(1, 10)"
    moving.suspend(view_of(servers, "v"))
    home.run(rows)
    moving.checkpoint(runtime.view)
    assert not moving.checkpoints._is_due(runtime, None)
    home.run(rows)
    assert moving.checkpoints._is_due(runtime, None)


def test_rows_that_come_while_a_copy_is_made(servers: Servers, home: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows for a view that is elsewhere are in the next copy, at the latest."""
    servers.migrate("a", "c", "v")
    database, runtime = servers["a"], servers["a"].core.view(view_of(servers, "w").oid)
    database.view_migration.checkpoint(runtime.view)
    database.view_migration.checkpoints.close()  # it would write rows as well
    read, rows = state_recovery.read_states, ["INSERT INTO s VALUES (1, 1, 'y')"]

    def reading(*arguments: Any) -> ExportedView:
        while rows:
            home.run(rows.pop())
        return read(*arguments)

    monkeypatch.setattr(state_recovery, "read_states", reading)
    home.run("INSERT INTO s VALUES (1, 1, 'x')")
    for _ in range(2):
        database.view_migration.checkpoints.make(runtime, None)
    servers.stop("c")
    servers.stop("a")
    lost(servers["b"], "a")
    wait_until(lambda: servers["b"].core.catalog.at("public", "w") is not None, what="the take-over")
    assert servers.client("b").run(READ) == [(1, 5, 4, ["a", "b", "x", "y"])]


def test_a_damaged_copy(servers: Servers, home: Client) -> None:
    """Its guest's server is lost, and the last copy is damaged: the home continues with its own state and the rows
    since."""
    servers.migrate("a", "b", "w")
    home.run("INSERT INTO s VALUES (1, 3, 'x'); INSERT INTO r VALUES (1, 8)")
    servers.copied("b", "w")
    for path in (servers["a"].core.shared.folder / "views").glob("*/*/t0.parquet"):
        path.write_bytes(b"x")
    servers.lose("b", "a")
    wait_until(lambda: servers.owner("w") == "a", what="the take-over")
    assert servers.client("a").run(READ) == [(1, 8, 3, ["a", "b", "x"])]


@pytest.mark.parametrize("place", ["a", "b"])
def test_an_error_of_the_other(place: str, servers: Servers, home: Client) -> None:
    """The other view's error is also an error of this view, wherever it is, and the log is not kept for either."""
    home.run("CREATE VIEW z AS SELECT k, max(1 / k) AS d FROM r GROUP BY k")
    home.run("CREATE VIEW x AS SELECT g.k, z.d FROM (SELECT k FROM s GROUP BY k) g, z")
    home.run("INSERT INTO s VALUES (1, 1, ''); INSERT INTO r VALUES (1, 1)")
    if place == "b":
        servers.migrate("a", "b", "x")
    else:
        servers["a"].view_migration.checkpoint(view_of(servers, "x"))
    assert servers.client(place).run("SELECT * FROM x") == [(1, 1)]
    home.run("INSERT INTO r VALUES (0, 1)")
    for _ in range(2):
        for reader in (place, "a"):
            with pytest.raises(SqlError, match="22012"):
                servers.client(reader).run("SELECT * FROM x")
        runtime = servers[place].core.view(view_of(servers, "x", place).oid)
        servers[place].view_migration.checkpoints.make(runtime, servers[place].replicas.get(runtime.program.inputs[0]))
        (entry,) = [item for item in servers["a"].view_migration.ownership.all() if item.view == "x"]
        assert entry.failure == ("22012", "division by zero")
        servers.stop("a")
        servers.stop("b")
    if place == "b":
        servers.lose("b", "a")
        wait_until(lambda: servers.owner("x") == "a", what="the take-over")
        with pytest.raises(SqlError, match="22012"):
            servers.client("a").run("SELECT * FROM x")


def test_an_error_of_the_other_elsewhere(servers: Servers, home: Client) -> None:
    """Its server reports it, and the log is not kept for copies that cannot be made any more."""
    home.run("CREATE VIEW z AS SELECT k, max(1 / k) AS d FROM r GROUP BY k")
    home.run("CREATE VIEW x AS SELECT g.k, z.d FROM (SELECT k FROM s GROUP BY k) g, z")
    servers.migrate("a", "b", "z")
    database, runtime = servers["a"], servers["a"].core.view(view_of(servers, "x").oid)
    database.view_migration.checkpoint(runtime.view)
    home.run("INSERT INTO r VALUES (0, 1)")
    with pytest.raises(SqlError, match="22012"):
        home.run("SELECT * FROM x")
    servers.copied("b", "z")
    home.run("INSERT INTO s VALUES (1, 1, '')")
    database.view_migration.checkpoints.make(runtime, None)
    entry = database.view_migration.ownership.get(runtime.shared)
    assert entry is not None
    assert (entry.failure, entry.at) == (("22012", "division by zero"), database.core.sequencer.visible)


def test_what_stays(servers: Servers, home: Client) -> None:
    home.run("CREATE VIEW y AS SELECT g.h, o.* FROM (SELECT count(*) AS h FROM r) g, pg_class o")
    with pytest.raises(SqlError, match='0A000: migrating view "y", which reads "pg_class" whenever it is read'):
        servers.migrate("a", "b", "y")


@pytest.mark.parametrize("policy", ["skip", "null"])
def test_views_of_several_policies_for_rows_that_fail_stay(servers: Servers, home: Client, policy: str) -> None:
    """In one program a row that one view skips would be skipped by the others, or make them fail."""
    home.run(f"CREATE VIEW z WITH (on_error = '{policy}') AS SELECT k, sum(1 / k) AS n FROM r GROUP BY k")
    home.run("CREATE VIEW y AS SELECT g.c, z.n FROM (SELECT count(*) AS c FROM s) g, z")
    with pytest.raises(SqlError, match=f'0A000: migrating view "y" .* view "z" has on_error = \'{policy}\''):
        servers.migrate("a", "b", "y")
    home.run("INSERT INTO r VALUES (0, 1)")
    assert home.run("SELECT * FROM y") == ([(0, None)] if policy == "null" else [])
    servers.migrate("a", "b", "z")


def test_several_time_zones(servers: Servers, home: Client) -> None:
    """Each view keeps its own zone, whatever the zones of views that read it or that it reads, and of the session."""
    home.run("CREATE FOREIGN TABLE u (ts timestamptz, k int) SERVER stream")
    rows = "FROM u GROUP BY k"
    for zone, definition in (
        ("Asia/Tokyo", f"days AS SELECT k, max(ts)::date AS day, min(ts::date) AS first, max(ts)::text AS ts {rows}"),
        (
            "America/New_York",
            f"x AS SELECT g.hour, d.* FROM days d JOIN (SELECT k, max(ts)::time AS hour {rows}) g USING (k)",
        ),
        (
            "Asia/Tokyo",
            f"z AS SELECT g.hour AS own, x.* FROM x JOIN (SELECT k, min(ts::time) AS hour {rows}) g USING (k)",
        ),
    ):
        home.session.time_zone = zone
        home.run(f"CREATE VIEW {definition}")
    home.session.time_zone = "Europe/Berlin"
    home.run("INSERT INTO u VALUES ('2024-05-01 22:30+00', 1), ('2024-05-02 03:15+00', 1)")
    wanted = "1|07:30:00|23:15:00|2024-05-02|2024-05-02|2024-05-02 12:15:00+09"
    for source, target in (("a", "b"), ("b", "c"), ("c", "a")):
        servers.migrate(source, target, "z")
        for restarted in ("", target):
            servers.stop(restarted)
            for reader in (target, "a"):
                ((k, own, hour, day, first, ts),) = servers.client(reader).run(
                    "SELECT k, own, hour, day, first, ts FROM z"
                )
                assert "|".join(map(str, (k, own, hour, day, first, ts))) == wanted
        plan = str(servers.client(target).run("EXPLAIN VERBOSE SELECT * FROM z"))
        assert ("Asia/Tokyo" in plan, "America/New_York" in plan) == (target != "a",) * 2
        servers.client("a").run("INSERT INTO u VALUES ('2024-05-01 22:30+00', 1)")


#: Views over o and o2, and over the stream below them, each in its own time zone.
ZONED = (
    "SELECT g.c, (SELECT array_agg(t) FROM o) AS t, (SELECT t FROM o2 LIMIT 1) AS f "
    "FROM (SELECT count(*) AS c FROM u) g",
    "SELECT g.k, x.* FROM (SELECT k, max(ts)::text AS m FROM u GROUP BY k) g, LATERAL (SELECT t, d FROM o WHERE "
    "o.t <> g.m ORDER BY t::timestamptz::time DESC, k LIMIT 1) x",
    "SELECT * FROM (WITH RECURSIVE x(t, n) AS (SELECT t, 1 FROM o UNION ALL SELECT (t::timestamptz + interval '1 day')"
    "::text, n + 1 FROM x WHERE n < 3) SELECT t, n FROM x) y, (SELECT max(ts)::text AS h FROM u) g",
    "SELECT q.*, g.c FROM (SELECT count(*) AS c FROM u) g, (SELECT d, t::timestamptz::time AS h, lag(t) OVER "
    "(ORDER BY t::timestamptz::time, k) AS l FROM o) q",
    "SELECT g.k, g.m, (SELECT max(t) FROM o WHERE o.k = g.k) AS t, g.m IN (SELECT d FROM o) AS i, g.m NOT IN (SELECT d "
    "FROM o2) AS j FROM (SELECT k, max(ts)::date AS m FROM u GROUP BY k) g",
    "SELECT g.k, g.m, a.t AS at, b.t AS bt FROM (SELECT k, max(ts)::text AS m FROM u GROUP BY k) g LEFT JOIN o a "
    "ON a.k = g.k AND a.d = g.m::timestamptz::date FULL JOIN o2 b ON b.k = g.k",
    "(SELECT t, d FROM o ORDER BY t::timestamptz::time, k LIMIT 2) UNION ALL SELECT t, d FROM o2 UNION ALL "
    "(SELECT max(ts)::text, max(ts)::date FROM u GROUP BY k ORDER BY max(ts)::time, k LIMIT 2)",
    "SELECT g.k, g.m, o.t FROM (SELECT k, max(ts) AS m FROM u GROUP BY k) g JOIN o ON o.k = g.k "
    "ORDER BY g.m::time, o.t::timestamptz::time DESC, g.k LIMIT 2",
)


def test_what_is_read_of_others_in_other_zones(servers: Servers, home: Client) -> None:
    """The views show the same results as their twins at home, which are not inlined."""
    home.run("CREATE FOREIGN TABLE u (ts timestamptz, k int) SERVER stream")
    for zone, name in (("Asia/Tokyo", "o"), ("XYZ+3:30", "o2")):
        home.session.time_zone = zone
        columns = "k, max(ts)::text AS t, max(ts)::date AS d"
        home.run(f"CREATE VIEW {name} AS SELECT {columns} FROM u GROUP BY k ORDER BY max(ts)::time, k")
    home.session.time_zone = "America/New_York"
    for number, shape in enumerate(ZONED):
        home.run(f"CREATE VIEW x{number} AS {shape}; CREATE VIEW twin{number} AS {shape}")
    home.session.time_zone = "Europe/Berlin"
    for step in range(2):
        home.run(
            "INSERT INTO u SELECT '2024-05-01 00:30+00'::timestamptz + "
            f"(k * 37 * {step + 11} % 2000) * interval '1 minute', k FROM generate_series(1, 6) k"
        )
        for number in range(len(ZONED)):
            if not step:
                servers.migrate("a", "b", f"x{number}")
            wanted = sorted(map(repr, home.run(f"SELECT * FROM twin{number}")))
            for reader in ("b", "a"):
                assert sorted(map(repr, servers.client(reader).run(f"SELECT * FROM x{number}"))) == wanted, number


def test_a_view_over_a_guest(servers: Servers, home: Client) -> None:
    """A view has another home than the guest that it reads."""
    servers.migrate("a", "b", "v")
    b = servers.client("b")
    b.run("CREATE FOREIGN TABLE u (k int) SERVER stream")
    b.run("CREATE VIEW x AS SELECT g.k, v.c FROM (SELECT k FROM u GROUP BY k) g JOIN v ON v.k = g.k")
    b.run("INSERT INTO u VALUES (1)")
    assert b.run("SELECT * FROM x") == [(1, 2)]
    with pytest.raises(SqlError, match='0A000: migrating view "x", which reads view "v" of another server'):
        servers.migrate("b", "c", "x")
