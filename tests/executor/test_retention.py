"""Retention: groups that a view's watermark has passed are not shown, and leave the states in memory and on storage."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from catalog.values.errors import SqlError
from executor.database.database import Database
from executor.options import Options
from executor.spark.printing.statements import reason
from executor.upkeep.paths import PathTask, Sources
from executor.views.runtime import ViewRuntime
from executor.views.storage import RUNS
from tests.executor.client import Client

STREAM = (
    "CREATE FOREIGN TABLE s (ts timestamp, k int, t text) SERVER stream OPTIONS (watermark 'ts - interval ''1 min''')"
)
VIEW = """
    CREATE VIEW v WITH (retention = '2 minutes') AS
    SELECT tumble(ts, '1 minute') AS w, k, count(*) AS n, count(DISTINCT t) AS d, string_agg(t, '') AS a
    FROM s GROUP BY 1, 2
"""


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    """A database whose background work the test runs."""
    opened = Database(Options(tmp_path, spark_enabled=False))
    yield opened
    opened.close()


def opened_again(database: Database, folder: Path) -> Database:
    """The database after a crash: rows that were not committed come from the log."""
    database.close()
    return Database(Options(folder, spark_enabled=False))


def settle(database: Database) -> ViewRuntime:
    """Maintains the one view's one path."""
    (runtime,), sources = database.core.runtimes(), Sources(tuple(database.core.streams.values()))
    database.maintenance.embedded.run(sources, PathTask(runtime, runtime.paths[0]))
    return runtime


def rows(database: Database, view: str = "v") -> list[tuple[object, ...]]:
    found = Client(database).run(f"SELECT * FROM {view} ORDER BY 1, 2")
    assert isinstance(found, list)
    return found


def minute(number: int, second: int = 0) -> str:
    return f"timestamp '2024-01-01 00:00:00' + interval '{number} minutes {second} seconds'"


def insert(database: Database, number: int, text: str = "x", second: int = 0) -> None:
    Client(database).run(f"INSERT INTO s SELECT {minute(number, second)}, 1, '{text}'")


def stored_rows(runtime: ViewRuntime, database: Database) -> list[int]:
    """The rows of each state on storage."""
    return [
        sum(table.num_rows for table in database.core.storage.read(runtime.view.oid, state))
        for state in runtime.program.states
    ]


@pytest.mark.slow
def test_states_shrink_on_storage_and_in_memory(database: Database) -> None:
    client = Client(database)
    client.run(STREAM)
    client.run(VIEW)
    for number in range(3 * RUNS):
        insert(database, number, "ab"[number % 2])
        runtime = settle(database)
    assert max(stored_rows(runtime, database)) <= 2 * RUNS
    # The watermark is 22; windows that end at 20 or before have left.
    assert [(row[2], row[3], row[4]) for row in rows(database)] == [(1, 1, "ab"[n % 2]) for n in range(20, 24)]
    contents = [sum(table.num_rows for table in runtime.states[state.name].tables) for state in runtime.program.states]
    assert contents == [4, 4, 4, 1]
    shown = client.run("SELECT kind, rows FROM millstream.states ORDER BY kind, rows")
    assert shown == [("aggregate", 1), ("aggregate", 4), ("concatenate", 4), ("distinct", 4)]


@pytest.mark.slow
def test_late_rows_count_until_their_group_is_gone(database: Database, tmp_path: Path) -> None:
    client = Client(database)
    client.run(STREAM)
    client.run(VIEW)
    insert(database, 0)
    insert(database, 3, second=59)  # the watermark is 02:59: the first window ended 1:59 before
    insert(database, 0, "late")
    assert [row[4] for row in rows(database)] == ["xlate", "x"]
    insert(database, 4)
    assert [row[4] for row in rows(database)] == ["x", "x"]
    insert(database, 0, "too late")
    Client(database).run("INSERT INTO s VALUES (NULL, 1, 'timeless')")
    assert [row[4] for row in rows(database)] == ["x", "x"]
    again = opened_again(database, tmp_path)
    assert [row[4] for row in rows(again)] == ["x", "x"]
    settle(again)
    insert(again, 1, "y")
    assert [row[4] for row in rows(again)] == ["y", "x", "x"]
    again.close()


@pytest.mark.slow
def test_what_readers_saw_does_not_expire_what_is_durable(database: Database, tmp_path: Path) -> None:
    """The durable watermark decides on storage: a state there never lacks rows that the log may still change."""
    client = Client(database)
    client.run(STREAM)
    client.run(VIEW)
    for number in range(RUNS):
        insert(database, 0, str(number % 10))
        runtime = settle(database)
    insert(database, 0, "last")
    upto = database.core.sequencer.visible
    insert(database, 50)
    assert len(rows(database)) == 1
    progress = runtime.paths[0]
    run = runtime.run_path(progress.path, progress.durable, upto)
    assert database.core.storage.commit(runtime.view.oid, progress.path.id, progress.durable, upto, run) is not None
    database.core.storage.compact(runtime.view.oid, runtime.program.states, database.core.engine)
    assert stored_rows(runtime, database)[0] == 1
    again = opened_again(database, tmp_path)
    assert [row[0].minute for row in rows(again)] == [50]  # type: ignore[attr-defined]
    again.close()


@pytest.mark.slow
def test_final_groups_are_shown_when_their_window_is_closed(database: Database) -> None:
    client = Client(database)
    client.run(STREAM)
    client.run("CREATE VIEW v WITH (emit = final) AS SELECT hop(ts, '1 min', '2 min') AS w, count(*) FROM s GROUP BY 1")
    insert(database, 0)
    insert(database, 2)
    assert [row[1] for row in rows(database)] == [1]  # from 23:59 to 00:01
    insert(database, 3)
    assert [row[1] for row in rows(database)] == [1, 1]
    (runtime,) = database.core.runtimes()
    assert runtime.program.expiries == ()


SESSIONS = """
    CREATE VIEW v WITH (retention = '2 minutes') AS
    SELECT session(ts, '1 minute') AS w, k, count(*) AS n, string_agg(t, '') AS a FROM s GROUP BY 1, 2
"""


@pytest.mark.slow
def test_a_session_goes_with_its_last_row(database: Database, tmp_path: Path) -> None:
    client = Client(database)
    client.run(STREAM)
    client.run(SESSIONS)
    for number in range(8):
        insert(database, 0, str(number), second=50 * number)
    assert [row[3] for row in rows(database)] == ["01234567"]  # though its first row is beyond the retention
    insert(database, 2, "late", second=55)  # the watermark is 04:50
    assert [row[3] for row in rows(database)] == ["0123late4567"]
    insert(database, 2, "too late", second=49)
    insert(database, 2, "of another", second=51)
    assert [row[3] for row in rows(database)] == ["0123of anotherlate4567"]
    again = opened_again(database, tmp_path)
    runtime = settle(again)
    insert(again, 8, "next", second=50)  # the first ends at 06:50
    assert [row[2] for row in rows(again)] == [10, 1]
    insert(again, 9, "b", second=50)
    insert(again, 10, "c")
    assert [row[3] for row in rows(again)] == ["nextbc"]
    assert {state.tables[0].num_rows for state in runtime.states.values()} == {1, 3}
    (path,) = runtime.program.paths
    assert reason(path.statements, runtime.program.states) == "a statement that reads a state is not supported on Spark"
    lines = [row[0].strip() for row in Client(again).run("EXPLAIN SELECT * FROM v") if isinstance(row, tuple)]
    assert sum("after the last key of its session" in line for line in lines) == 2
    assert sum(line.endswith("without rows that come too late, partial aggregation") for line in lines) == 1
    again.close()


@pytest.mark.slow
def test_a_grouping_above_reads_only_groups_that_are_kept(database: Database) -> None:
    client = Client(database)
    client.run(STREAM)
    client.run(
        "CREATE VIEW v WITH (retention = '0') AS WITH g AS (SELECT date_trunc('minute', ts) AS w, k, count(*) AS n "
        "FROM (SELECT * FROM s WHERE k = 1) AS q GROUP BY 1, 2) "
        "SELECT sum(a.n) AS all, count(*) AS groups FROM g AS a JOIN g AS b USING (w, k)"
    )
    for number in (0, 0, 1, 1, 1):
        insert(database, number)
    assert rows(database) == [(5, 2)]
    Client(database).run(f"INSERT INTO s SELECT {minute(2)}, 2, ''")  # not of the groups, but of the stream
    assert rows(database) == [(3, 1)]


def test_explain_shows_what_is_kept(database: Database) -> None:
    client = Client(database)
    client.run(STREAM)
    client.run(VIEW)
    lines = [row[0].strip() for row in client.run("EXPLAIN SELECT * FROM v") if isinstance(row, tuple)]
    assert "Retention: 2 minutes" in lines
    assert "Watermark: latest ts - interval '1 min'" in lines
    assert sum(line.startswith("Kept: until max_ts of") for line in lines) == 3
    ((document,),) = client.run("EXPLAIN (FORMAT JSON) SELECT * FROM v")
    assert '"Retention": "2 minutes"' in document
    assert '"Watermark": "latest ts' in document


REFUSED = [
    ("0A000", "CREATE VIEW v WITH (retention = '1 day') AS SELECT k, count(*) FROM s GROUP BY k"),
    ("0A000", "CREATE VIEW v WITH (retention = '1 day') AS SELECT date_trunc('month', ts), count(*) FROM s GROUP BY 1"),
    ("0A000", "CREATE VIEW v WITH (emit = final) AS SELECT tumble(ts + interval '1 s', '1 s') FROM s GROUP BY 1"),
    ("0A000", "CREATE VIEW v WITH (retention = '1 mon') AS SELECT tumble(ts, '1 s') FROM s GROUP BY 1"),
    ("0A000", "CREATE VIEW v WITH (retention = '1 day') AS SELECT 1"),
    ("0A000", "CREATE VIEW v WITH (emit = final) AS SELECT session(ts + interval '1 s', '1 s') FROM s GROUP BY 1"),
    (
        "0A000",
        "CREATE VIEW v WITH (retention = '1 day') AS SELECT tumble(ts, '1 s') FROM (SELECT * FROM s UNION ALL "
        "SELECT * FROM s) AS q GROUP BY 1",
    ),
    ("0A000", "ALTER VIEW kept SET (retention = '2 days')"),
    ("0A000", "ALTER VIEW kept RESET (retention)"),
    ("0A000", "CREATE FOREIGN TABLE o (ts timestamp) SERVER stream OPTIONS (retention '1 day')"),
    ("22023", "CREATE VIEW v WITH (retention = '-1 s') AS SELECT tumble(ts, '1 s') FROM s GROUP BY 1"),
    ("22023", "CREATE VIEW v WITH (emit = 'often') AS SELECT tumble(ts, '1 s') FROM s GROUP BY 1"),
    ("22007", "CREATE VIEW v WITH (retention = 'long') AS SELECT tumble(ts, '1 s') FROM s GROUP BY 1"),
    ("55000", "CREATE VIEW v WITH (retention = '1 s') AS SELECT tumble(ts, '1 s') FROM plain GROUP BY 1"),
    ("22023", "CREATE FOREIGN TABLE o (ts timestamp) SERVER stream OPTIONS (watermark 'ts + interval ''1 s''')"),
    ("22023", "CREATE FOREIGN TABLE o (ts timestamp) SERVER stream OPTIONS (watermark 'ts - interval ''1 mon''')"),
    *(
        ("22023", f"CREATE FOREIGN TABLE o (ts timestamp, x int) SERVER stream OPTIONS (watermark 'ts{more}')")
        for more in ("; DROP TABLE x", ", x", " FROM o", " AS x", " UNION SELECT x", " ORDER BY 1")
    ),
    ("22023", "CREATE FOREIGN TABLE o (ts int) SERVER stream OPTIONS (watermark 'ts')"),
    ("42703", "CREATE FOREIGN TABLE o (ts timestamp) SERVER stream OPTIONS (watermark 'at')"),
    ("42601", "CREATE FOREIGN TABLE o (ts timestamp) SERVER stream OPTIONS (watermark 'ts -')"),
]


def test_what_is_refused(database: Database) -> None:
    client = Client(database)
    client.run(STREAM)
    client.run("CREATE FOREIGN TABLE plain (ts timestamp) SERVER stream")
    client.run("CREATE VIEW kept WITH (retention = '1 day') AS SELECT tumble(ts, '1 s') FROM s GROUP BY 1")
    for state, text in REFUSED:
        with pytest.raises(SqlError) as caught:
            client.run(text)
        assert caught.value.sqlstate == state, text
