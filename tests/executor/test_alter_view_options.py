"""ALTER VIEW ... SET and RESET of a view's options, and CREATE OR REPLACE VIEW with an equal definition: what a view
shows afterwards is its query with the new options, or the change is refused and nothing changes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from catalog.values.errors import SqlError
from executor.database.database import Database
from executor.options import Options
from executor.upkeep.paths import PathTask, Sources
from tests.executor.client import Client, open_database
from tests.executor.moving import Servers

STREAM = (
    "CREATE FOREIGN TABLE s (ts timestamp, k int, t text) SERVER stream OPTIONS (watermark 'ts - interval ''1 min''')"
)
GROUPS = (
    "SELECT tumble(ts, '1 minute') AS w, k, count(*) AS n, count(DISTINCT t) AS d, string_agg(t, '') AS a"
    " FROM s GROUP BY 1, 2"
)
ROWS = "SELECT a.ts, b.t FROM s a JOIN s b ON b.k = a.k AND b.ts = a.ts"
JOINED = "SELECT name, count(*) AS c FROM s JOIN t ON k = id GROUP BY name"
RESTART = "restart = true"


RELATIONS = f"{STREAM}; CREATE TABLE t (id int, name text); INSERT INTO t VALUES (1, 'a')"


@pytest.fixture(scope="module")
def opened(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Database]:
    """A database for all tests, since opening one takes longer than most of them."""
    database = open_database(tmp_path_factory.mktemp("data"))
    yield database
    database.close()


@pytest.fixture
def database(opened: Database) -> Iterator[Database]:
    """The database with a stream and a table."""
    Client(opened).run(RELATIONS)
    yield opened
    Client(opened).run("DROP FOREIGN TABLE s CASCADE; DROP TABLE t CASCADE")


def fill(database: Database, *minutes: int) -> None:
    values = ", ".join(f"(timestamp '2024-01-01' + interval '{minute} minutes', 1, 'x')" for minute in minutes)
    Client(database).run(f"INSERT INTO s VALUES {values}")


def shown(database: Database, view: str = "v") -> list[int]:
    """The minutes of the rows that a view shows."""
    column = "w" if view == "v" else "ts"
    found = Client(database).run(f"SELECT extract(minute FROM {column})::int AS m FROM {view} ORDER BY 1")
    assert isinstance(found, list)
    return [row[0] for row in found]


def refused(database: Database, text: str) -> SqlError:
    with pytest.raises(SqlError) as raised:
        Client(database).run(text)
    return raised.value


def settle(database: Database) -> None:
    """Stores what the views have so far."""
    sources = Sources(tuple(database.core.streams.values()))
    for runtime in database.core.runtimes():
        database.maintenance.embedded.run(sources, PathTask(runtime, runtime.paths[0]))


def require_alike(database: Database, minutes: list[int]) -> None:
    """The altered view shows these minutes, and just what a view shows that has had its options from the start."""
    assert shown(database) == minutes
    client = Client(database)
    assert client.run("SELECT * FROM v ORDER BY w") == client.run("SELECT * FROM w ORDER BY w")


@pytest.mark.parametrize("by", ["ALTER VIEW v SET ({})", f"CREATE OR REPLACE VIEW v WITH ({{}}) AS {GROUPS}"])
def test_a_shorter_retention_keeps_the_rows_that_it_shows(tmp_path: Path, by: str) -> None:
    database = open_database(tmp_path)
    client = Client(database)
    client.run(RELATIONS)
    client.run(f"CREATE VIEW v WITH (retention = '20 minutes') AS {GROUPS}")
    client.run(f"CREATE VIEW w WITH (retention = '5 minutes') AS {GROUPS}")
    fill(database, *range(20))
    settle(database)
    fill(database, *range(20, 30))
    assert shown(database) == list(range(8, 30))
    client.run(by.format("retention = '5 minutes'"))
    require_alike(database, list(range(23, 30)))
    fill(database, 31, 28, 20)
    require_alike(database, [25, 26, 27, 28, 29, 31])
    database.close()
    database = open_database(tmp_path)
    require_alike(database, [25, 26, 27, 28, 29, 31])
    settle(database)
    fill(database, 25, 40)
    require_alike(database, [40])
    assert Client(database).run("SELECT reloptions FROM pg_class WHERE relname = 'v'") == [(["retention=5 minutes"],)]
    database.close()


def test_a_damaged_view_is_rebuilt_as_it_was_altered(tmp_path: Path) -> None:
    database = open_database(tmp_path)
    client = Client(database)
    client.run(f"{RELATIONS}; CREATE VIEW v WITH (retention = '20 minutes') AS {GROUPS}")
    fill(database, *range(30))
    client.run("ALTER VIEW v SET (retention = '5 minutes')")
    settle(database)
    database.close()
    (manifest,) = tmp_path.rglob("manifest.json")
    manifest.write_bytes(b"{}")
    database = open_database(tmp_path)
    assert shown(database) == list(range(23, 30))
    database.close()


def test_an_altered_view_goes_to_another_server_and_back(servers: Servers) -> None:
    client = servers.client("a")
    client.run(RELATIONS)
    client.run(f"CREATE VIEW v WITH (retention = '20 minutes') AS {GROUPS}")
    fill(servers["a"], *range(30))
    client.run("ALTER VIEW v SET (retention = '5 minutes')")
    servers.migrate("a", "b")
    fill(servers["a"], 31)
    assert shown(servers["b"]) == shown(servers["a"]) == [25, 26, 27, 28, 29, 31]
    assert refused(servers["a"], "ALTER VIEW v SET (retention = '1 minute')").sqlstate == "55000"
    servers.migrate("b", "a")
    fill(servers["a"], 33)
    assert shown(servers["a"]) == [27, 28, 29, 31, 33]
    client.run("ALTER VIEW v SET (retention = '1 minute')")
    assert shown(servers["a"]) == [31, 33]
    fill(servers["a"], 34)
    assert shown(servers["a"]) == [33, 34]


@pytest.mark.parametrize(
    "statement",
    [
        "ALTER VIEW v SET (retention = '21 minutes')",
        "ALTER VIEW v RESET (retention)",
        f"CREATE OR REPLACE VIEW v AS {GROUPS}",
        f"CREATE OR REPLACE VIEW v WITH (retention = '1 day') AS {GROUPS}",
    ],
)
def test_a_longer_retention_is_refused(database: Database, statement: str) -> None:
    client = Client(database)
    client.run(f"CREATE VIEW v WITH (retention = '20 minutes') AS {GROUPS}")
    fill(database, *range(30))
    error = refused(database, statement)
    assert (error.sqlstate, error.message) == (
        "0A000",
        'cannot change the option retention of view "v": older rows have left its states',
    )
    assert error.hint is not None and RESTART in error.hint
    assert shown(database) == list(range(8, 30))


def test_what_restart_does_not_save_begins_again(database: Database) -> None:
    client = Client(database)
    client.run(f"CREATE VIEW v WITH (retention = '20 minutes') AS {GROUPS}")
    fill(database, 1)
    client.run(f"CREATE OR REPLACE VIEW v WITH (retention = '1 day', {RESTART}) AS {GROUPS}")
    assert shown(database) == []
    assert any("starts again" in notice for notice in client.notices)


def test_groups_are_emitted_when_they_are_final_or_at_once(database: Database) -> None:
    client = Client(database)
    client.run(f"CREATE VIEW v WITH (retention = '20 minutes') AS {GROUPS}")
    fill(database, 1, 2, 3)
    client.run("ALTER VIEW v SET (emit = 'final')")
    assert shown(database) == [1]
    fill(database, 4)
    assert shown(database) == [1, 2]
    client.run("ALTER VIEW v RESET (emit)")
    assert shown(database) == [1, 2, 3, 4]
    client.run("ALTER VIEW v SET (emit = 'final', retention = '1 minute')")
    fill(database, 5)
    assert shown(database) == [3]


def test_the_watermark_must_be_known(database: Database) -> None:
    client = Client(database)
    client.run(f"CREATE VIEW v AS {GROUPS}; CREATE VIEW f WITH (emit = 'final') AS {GROUPS}")
    for statement in ("ALTER VIEW v SET (retention = '1 day')", "ALTER VIEW v SET (emit = 'final')"):
        error = refused(database, statement)
        assert error.sqlstate == "0A000" and "its states do not hold what" in error.message
    client.run("ALTER VIEW f SET (emit = 'changes')")  # its states hold more than that
    fill(database, 1, 2, 3)
    assert Client(database).run("SELECT count(*) FROM f") == [(3,)]
    client.run("ALTER VIEW f SET (retention = '0 s')")
    assert Client(database).run("SELECT count(*) FROM f") == [(2,)]


def test_a_state_that_is_not_read_any_more_is_in_nobodys_way(database: Database) -> None:
    client = Client(database)
    query = "SELECT tumble(ts, '1 minute') AS w, count(*) AS n FROM s GROUP BY 1"
    client.run(f"CREATE VIEW v WITH (emit = 'final') AS {query}; CREATE VIEW plain AS {query}")
    fill(database, 1, 2, 3)
    client.run("ALTER VIEW v RESET (emit)")
    assert client.run("SELECT n FROM v WHERE w = '2024-01-01 00:03'") == [(1,)]
    keys = {runtime.view.name: database.indexes.key_of(runtime.view.oid) for runtime in database.core.runtimes()}
    assert keys == {"v": (), "plain": ("w",)}, "a row by key comes from the only state"
    fill(database, 3, 4)
    settle(database)
    assert client.run("SELECT * FROM v ORDER BY w") == client.run("SELECT * FROM plain ORDER BY w")


def test_rows_of_streams_are_kept_for_less(database: Database) -> None:
    client = Client(database)
    client.run(f"CREATE VIEW joined WITH (retention = '20 minutes') AS {ROWS}")
    fill(database, *range(30))
    assert shown(database, "joined") == list(range(9, 30))
    client.run("ALTER VIEW joined SET (retention = '5 minutes')")
    assert shown(database, "joined") == list(range(24, 30))
    error = refused(database, "ALTER VIEW joined SET (retention = '20 minutes')")
    assert "older rows have left its states" in error.message


def test_sessions_have_dropped_late_rows(database: Database) -> None:
    query = "SELECT session(ts, '2 minutes') AS w, count(*) AS n FROM s GROUP BY 1"
    Client(database).run(f"CREATE VIEW v WITH (retention = '20 minutes') AS {query}")
    assert "its states do not hold" in refused(database, "ALTER VIEW v SET (retention = '5 minutes')").message
    Client(database).run(f"CREATE OR REPLACE VIEW v WITH (retention = '20 minutes') AS {query}")  # is the same


def test_a_view_above_sees_it(database: Database) -> None:
    client = Client(database)
    client.run(
        f"CREATE VIEW v WITH (retention = '20 minutes') AS {GROUPS}; CREATE VIEW above AS SELECT count(*) FROM v"
    )
    fill(database, *range(30))
    client.run("SELECT * FROM above; SELECT * FROM above; SELECT * FROM above")
    client.run("ALTER VIEW v SET (retention = '5 minutes')")
    assert client.run("SELECT * FROM above") == [(7,)]


def test_a_transaction_block_is_refused(database: Database) -> None:
    client = Client(database)
    client.run(f"CREATE VIEW v WITH (retention = '20 minutes') AS {GROUPS}; BEGIN")
    with pytest.raises(SqlError) as raised:
        client.run("ALTER VIEW v SET (retention = '1 minute')")
    assert raised.value.sqlstate == "25001"
    client.run("ROLLBACK; BEGIN; ALTER VIEW v SET (method = 'recompute', retention = '20 minutes'); COMMIT")
    assert client.run("SELECT reloptions FROM pg_class WHERE relname = 'v'") == [
        (["retention=20 minutes", "method=recompute"],)
    ]


def test_rows_under_a_policy_to_come_are_refused(database: Database) -> None:
    """A row that fails must not fail the view for the transaction that makes it leave such rows out."""
    client = Client(database)
    client.run("CREATE FOREIGN TABLE r (k int, v int) SERVER stream")
    client.run("CREATE VIEW tens AS SELECT k, sum(10 / v) AS tenths FROM r GROUP BY k; INSERT INTO r VALUES (1, 0)")
    client.run("BEGIN; ALTER VIEW tens SET (on_error = 'skip')")
    with pytest.raises(SqlError, match="in the transaction that changes its options") as raised:
        client.run("SELECT * FROM tens")
    assert raised.value.sqlstate == "0A000"
    client.run("ROLLBACK; ALTER VIEW tens SET (on_error = 'skip')")
    assert client.run("SELECT * FROM tens") == []
    client.run("DROP FOREIGN TABLE r CASCADE")


def test_a_job_that_fails_under_the_policy_of_before_is_not_the_views_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with closing(Database(Options(tmp_path, spark_enabled=False))) as database:
        client = Client(database)
        client.run("CREATE FOREIGN TABLE r (k int, v int) SERVER stream")
        client.run("CREATE VIEW tens AS SELECT k, sum(10 / v) AS tenths FROM r GROUP BY k")
        client.run("INSERT INTO r VALUES (1, 0), (2, 5)")
        (runtime,) = database.core.runtimes()
        run = runtime.runner.run

        def altered(*arguments: Any) -> Any:
            client.run("ALTER VIEW tens SET (on_error = 'skip')")
            return run(*arguments)

        with monkeypatch.context() as patched:
            patched.setattr(runtime.runner, "run", altered)
            sources = Sources((next(iter(database.core.streams.values())),))
            database.maintenance.embedded.run(sources, PathTask(runtime, runtime.paths[0]))
        assert runtime.error is not None
        assert client.run("SELECT * FROM tens") == [(2, 2)]


def test_the_refresh_policy_is_checked(database: Database) -> None:
    client = Client(database)
    client.run(
        "CREATE MATERIALIZED VIEW ordered AS SELECT id, ntile(3) OVER (ORDER BY id) FROM t;"
        "CREATE MATERIALIZED VIEW summed AS SELECT name, count(*) FROM t GROUP BY name;"
        "CREATE VIEW plain AS SELECT id, random() FROM t"
    )
    error = refused(database, "ALTER MATERIALIZED VIEW ordered SET (refresh_policy = 'incremental')")
    assert error.sqlstate == "0A000" and "all rows in one partition" in error.message
    assert refused(database, "ALTER VIEW plain SET (refresh_policy = 'incremental')").sqlstate == "0A000"
    tag = client.run("ALTER MATERIALIZED VIEW summed SET (refresh_policy = 'incremental', method = 'incremental')")
    assert tag == "ALTER MATERIALIZED VIEW"
    client.run("SELECT * FROM summed")
    kept = "SELECT count(*) FROM millstream.paths WHERE view = 'summed' AND rows > 0"
    assert client.run(kept) != [(0,)]
    error = refused(database, "ALTER MATERIALIZED VIEW summed SET (method = 'recompute')")
    assert "(the view has method = 'recompute')" in error.message
    client.run("ALTER MATERIALIZED VIEW summed RESET (refresh_policy)")
    client.run("ALTER MATERIALIZED VIEW summed SET (method = 'recompute')")
    client.run("INSERT INTO t VALUES (2, 'b'); SELECT * FROM summed")
    assert client.run(kept) == [(0,)]


def test_the_refresh_policy_is_checked_with_the_columns_of_now(database: Database) -> None:
    client = Client(database)
    client.run("CREATE TABLE a (k int, v int); CREATE TABLE b (k int, w int)")
    query = "SELECT a.k, w FROM a LEFT JOIN b ON a.k = b.k AND a.v = b.w"  # planned by statistics of both
    client.run(f"CREATE MATERIALIZED VIEW v WITH (method = 'incremental') AS {query}; INSERT INTO a VALUES (1, 2)")
    client.run("ALTER TABLE a RENAME v TO other; ALTER TABLE b RENAME COLUMN w TO another")
    client.run("ALTER VIEW v SET (refresh_policy = 'incremental')")
    assert client.run("SELECT * FROM v") == [(1, None)]


def test_tables_change_where_the_states_are_the_same(database: Database) -> None:
    client = Client(database)
    above = "SELECT name, n FROM (SELECT k, count(*) AS n FROM s GROUP BY k) g JOIN t ON k = id"
    client.run(f"CREATE VIEW above WITH (tables = 'frozen') AS {above}; CREATE VIEW below AS {JOINED}")
    client.run("ALTER VIEW above SET (tables = 'live')")
    client.run("ALTER VIEW below SET (tables = 'live')")  # is what it has been
    error = refused(database, "ALTER VIEW below SET (tables = 'frozen')")
    assert error.sqlstate == "0A000" and error.hint is not None and RESTART in error.hint
    fill(database, 1)
    client.run("UPDATE t SET name = 'b'")
    assert client.run("SELECT * FROM above") == client.run("SELECT * FROM below") == [("b", 1)]


@pytest.mark.parametrize(
    ("sqlstate", "statement"),
    [
        ("0A000", "ALTER VIEW plain SET (maintained)"),
        ("0A000", "ALTER VIEW plain SET (retention = '1 day')"),
        ("0A000", "ALTER VIEW plain SET (emit = 'final')"),
        ("0A000", "ALTER VIEW plain SET (trigger = 'on read')"),
        ("0A000", "ALTER VIEW plain SET (latency_goal = '1 s')"),
        ("22023", "ALTER VIEW plain SET (trigger = 1)"),
        ("22023", "ALTER VIEW plain SET (method = 'best')"),
        ("22023", "ALTER VIEW plain SET (nonsense = 1)"),
        ("42809", "ALTER VIEW t SET (method = 'auto')"),
    ],
)
def test_what_is_refused(database: Database, sqlstate: str, statement: str) -> None:
    Client(database).run("CREATE VIEW plain AS SELECT id FROM t")
    error = refused(database, statement)
    assert error.sqlstate == sqlstate
    assert sqlstate != "0A000" or error.hint
