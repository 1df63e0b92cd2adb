"""Streams that keep their rows: a view created at any time equals its query over all rows that are kept.

PostgreSQL is the judge of views that are created between batches of rows, over restarts and kills. The other tests look
at the seam between kept rows and those that come, at bounds, and at what becomes of the rows when the stream changes.
"""

from __future__ import annotations

import random
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pyarrow as pa
import pytest

from catalog.values.errors import SqlError
from executor.database.database import Database
from executor.traces import history
from executor.traces.history import History
from tests.executor.client import Client, in_own_schema, open_database
from tests.executor.moving import Servers, patient, servers
from tests.rig.compare import assert_same_rows
from tests.rig.mirror import Mirror, mirrored
from tests.rig.postgres import Postgres
from tests.rig.process import wait_until
from tests.rig.server import Millstream

__all__ = ["patient", "servers"]
QUERIES = (
    "SELECT k, count(*), sum(v), array_agg(n ORDER BY n) FROM s GROUP BY k",
    "SELECT k, array_agg(n) FROM s GROUP BY k",
    "SELECT DISTINCT ON (k) k, n, v FROM s ORDER BY k, n DESC",
    "SELECT a.n, b.v FROM s a JOIN s b ON b.n = a.n + 1 WHERE a.k = 1",
    "SELECT n, lag(v) OVER (PARTITION BY k ORDER BY n) FROM s",
    "SELECT t, avg(v), count(DISTINCT k) FROM s GROUP BY t",
)


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Database]:
    database = _open(tmp_path_factory.mktemp("shared"))
    yield database
    database.close()


@pytest.fixture
def own(shared: Database) -> Iterator[Client]:
    with in_own_schema(shared) as client:
        yield client


@pytest.fixture
def mirror(postgres: Postgres) -> Iterator[Mirror]:
    settings = {"maintenance_engine": "embedded", "spark_enabled": False, "maintenance_rows": 50}
    with Millstream(settings=settings) as server, mirrored(server, postgres) as pair:
        pair.stream("s", "n integer, k integer, v numeric, t text", "OPTIONS (history 'all')")
        yield pair


@pytest.mark.slow
@pytest.mark.postgres
def test_views_start_with_all_rows(mirror: Mirror) -> None:
    source = random.Random(5)
    for step, query in enumerate(QUERIES):
        for _ in range(source.randint(1, 4)):
            _insert(mirror, source)
        mirror.view(f"v{step}", query)
        if step in (2, 4):
            mirror.restart(crash=step == 2)
        mirror.check(*source.sample(sorted(mirror.views), min(3, len(mirror.views))))
    mirror.check()
    mirror.restart(crash=True)
    mirror.check()
    kept = mirror.client.execute("SELECT * FROM millstream.history('s')").fetchall()
    assert_same_rows(kept, mirror.judge.execute("SELECT * FROM s").fetchall(), "the history")


def _insert(mirror: Mirror, source: random.Random) -> None:
    first, count = mirror.acknowledged, source.choice((1, 3, 40, 200))
    rows = [(n, source.randint(1, 4), f"{n % 7}.{n % 3}0", source.choice("xyz")) for n in range(first, first + count)]
    if count < 100:
        mirror.insert("s", rows, one_statement=count == 3)
    else:
        mirror.copy("s", "".join(f"{n},{k},{v},{t}\n" for n, k, v, t in rows).encode())


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.whole  # it needs another JVM
def test_spark_fills_a_view_and_queries_the_rows(spark_server: Millstream) -> None:
    with spark_server.connect() as client:

        def value(query: str) -> object:
            row = client.execute(query.encode()).fetchone()
            assert row is not None
            return row[0]

        client.execute("CREATE FOREIGN TABLE h (n int, t text, gone int) SERVER stream OPTIONS (history 'all')")
        client.execute("INSERT INTO h SELECT n, 't' || n % 3, 0 FROM generate_series(1, 1000) n")
        wait_until(lambda: value("SELECT history_rows FROM millstream.streams WHERE name = 'h'") == 1000)
        client.execute("ALTER FOREIGN TABLE h ADD COLUMN m int DEFAULT 2, DROP COLUMN gone")
        query = "SELECT t, count(*), sum(n * m), array_agg(n) FROM {} GROUP BY t"
        client.execute(f"CREATE VIEW v WITH (maintenance_engine = 'spark') AS {query.format('h')}".encode())
        jobs = "SELECT count(*) FROM millstream.jobs WHERE views = 'v' AND engine = 'spark' AND status = 'done'"
        wait_until(lambda: value(jobs) == 1)
        found = client.execute("SELECT * FROM v").fetchall()
        client.execute("SET query_engine = spark")
        kept = query.format("millstream.history('h')")
        assert_same_rows(found, client.execute(kept.encode()).fetchall(), "on Spark")
        client.execute("RESET query_engine")
        assert_same_rows(found, client.execute(kept.encode()).fetchall(), "on the embedded engine")
        assert sum(row[1] for row in found) == 1000
        client.execute("DROP FOREIGN TABLE h CASCADE")


# --- the seam --------------------------------------------------------------------------------------------------------


def test_no_gap_and_no_double_beside_writers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(history, "SLICE_ROWS", 20)
    database = _open(tmp_path, maintenance_rows=30)
    client, ended = Client(database), threading.Event()
    client.run("CREATE FOREIGN TABLE s (n int, w int) SERVER stream OPTIONS (history 'all')")
    counts = [0, 0]

    def write(writer: int) -> None:
        own = Client(database)
        while not ended.is_set():
            own.run(f"INSERT INTO s VALUES ({counts[writer]}, {writer}), ({counts[writer] + 1}, {writer})")
            counts[writer] += 2

    failures: list[Exception] = []

    def look() -> None:
        """A round beside the scheduler's own."""
        try:
            while not ended.is_set():
                database.maintenance.round("embedded")
        except Exception as error:
            failures.append(error)

    threads = [*(threading.Thread(target=write, args=(writer,)) for writer in (0, 1)), threading.Thread(target=look)]
    for thread in threads:
        thread.start()
    try:
        for place in range(5):
            wait_until(lambda: sum(counts) > 60 * (place + 1))  # noqa: B023
            query = "SELECT w, count(*) AS rows, count(DISTINCT n) AS numbers, max(n) + 1 AS next FROM s GROUP BY w"
            client.run(f"CREATE VIEW v{place} AS {query}")
            if place % 2:
                ((rows, numbers),) = _rows(client, f"SELECT sum(rows)::int, sum(numbers)::int FROM v{place}")
                assert rows == numbers >= 60 * (place + 1)
    finally:
        ended.set()
        for thread in threads:
            thread.join()
    assert not failures
    expected = [(writer, count, count, count) for writer, count in enumerate(counts)]
    for _ in range(2):
        for place in range(5):
            assert _rows(client, f"SELECT * FROM v{place} ORDER BY w") == expected
        database.close()
        database = _open(tmp_path)
        client = Client(database)
    database.close()


def test_one_thread_at_a_time_writes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    begun, ended, calls = threading.Event(), threading.Event(), list[int]()
    append = History.append

    def slow(self: History, upto: int, records: pa.Table, at: int) -> None:
        calls.append(upto)
        begun.set()
        ended.wait(10)
        append(self, upto, records, at)

    monkeypatch.setattr(History, "append", slow)
    database = _open(tmp_path, maintenance_rows=1)
    client = Client(database)
    client.run("CREATE FOREIGN TABLE s (n int) SERVER stream OPTIONS (history 'all')")
    client.run("INSERT INTO s VALUES (1)")
    assert begun.wait(10), "the scheduler writes"
    database.maintenance.round("embedded")  # beside it
    assert len(calls) == 1
    ended.set()
    database.close()


def test_rows_of_the_transaction_that_creates_all(tmp_path: Path) -> None:
    database = _open(tmp_path)
    client = Client(database)
    client.run("""
        BEGIN;
        CREATE FOREIGN TABLE s (n int) SERVER stream OPTIONS (history 'all');
        INSERT INTO s VALUES (1);
        CREATE VIEW v AS SELECT count(*) FROM s;
        CREATE VIEW later WITH (start = 'now') AS SELECT count(*) FROM s;
        COMMIT;
        INSERT INTO s VALUES (2)
    """)
    for _ in range(2):
        assert _rows(client, "SELECT v.count, later.count FROM v, later") == [(2, 1)]
        assert _rows(client, "SELECT * FROM millstream.history('s') ORDER BY n") == [(1,), (2,)]
        database.close()
        database = _open(tmp_path)
        client = Client(database)
    database.close()


def test_a_snapshot_reads_what_was_kept_then(shared: Database, own: Client) -> None:
    reader = Client(shared, schema="own")
    own.run("CREATE FOREIGN TABLE s (n int) SERVER stream OPTIONS (history '1 kB'); INSERT INTO s VALUES (1), (2)")
    reader.run("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT 1")
    assert _rows(reader, "SELECT count(*) FROM millstream.history('s')") == [(2,)]
    for n in range(3, 6):
        own.run(f"INSERT INTO s VALUES ({n})")
        wait_until(lambda: _history(shared).total_rows == n)  # noqa: B023
    assert _rows(reader, "SELECT * FROM millstream.history('s') ORDER BY n") == [(1,), (2,)]
    assert _rows(own, "SELECT count(*) FROM millstream.history('s')") == [(5,)]
    reader.run("COMMIT")
    wait_until(lambda: _history(shared).total_rows < 4)
    assert _rows(reader, "SELECT max(n) - min(n) + 1 = count(*), max(n) FROM millstream.history('s')") == [(True, 5)]


#: Views whose rows depend on which rows came together, and in which order.
BY_ARRIVAL = {
    "sittings": ("retention = '20 minutes'", "session(at, '5 minutes') AS w, k, count(*), array_agg(n)", "1, 2"),
    "hours": ("retention = '1 hour'", "date_trunc('hour', at) AS w, string_agg(k::text, ',')", "1"),
}


def test_views_of_event_time_are_as_if_they_had_always_been_there(tmp_path: Path) -> None:
    database, drawn = _open(tmp_path, maintenance_rows=20), random.Random(2)
    client = Client(database)
    options = "OPTIONS (history 'all', watermark 'at - interval ''3 minutes''')"
    client.run(f"CREATE FOREIGN TABLE s (n int, k int, at timestamp) SERVER stream {options}")

    def create(suffix: str) -> None:
        for name, (option, columns, keys) in BY_ARRIVAL.items():
            client.run(f"CREATE VIEW {name}_{suffix} WITH ({option}) AS SELECT {columns} FROM s GROUP BY {keys}")

    create("early")
    for batch in range(20):
        times = [batch * 4 + drawn.randint(-25, 5) for _ in range(drawn.randint(1, 6))]
        rows = (f"({batch}, {drawn.randint(1, 3)}, timestamp '2026-01-01' + interval '{at} min')" for at in times)
        client.run(f"INSERT INTO s VALUES {', '.join(rows)}")
        if batch == 13:
            database.close()
            database = _open(tmp_path, maintenance_rows=20)
            client = Client(database)
            create("late")
    for name in BY_ARRIVAL:
        early, late = (_rows(client, f"SELECT * FROM {name}_{each}") for each in ("early", "late"))
        assert early
        assert sorted(map(str, late)) == sorted(map(str, early)), name
    database.close()


# --- bounds ----------------------------------------------------------------------------------------------------------


def test_old_rows_leave(shared: Database, own: Client) -> None:
    own.run("CREATE FOREIGN TABLE s (n int) SERVER stream OPTIONS (history '300 milliseconds')")
    own.run("CREATE VIEW v AS SELECT count(*) FROM s; INSERT INTO s VALUES (1), (2)")
    wait_until(lambda: _history(shared).total_rows == 2)
    wait_until(lambda: not _history(shared).runs)
    own.run("ALTER FOREIGN TABLE s OPTIONS (SET history '1 day'); INSERT INTO s VALUES (3)")
    own.run("CREATE VIEW later AS SELECT array_agg(n) FROM s")
    assert _rows(own, "SELECT count, array_agg FROM v, later") == [(3, [3])]


def test_a_size_keeps_the_newest_rows(shared: Database, own: Client) -> None:
    own.run("CREATE FOREIGN TABLE s (n int, t text) SERVER stream OPTIONS (history '5 kB')")
    for n in range(7):
        own.run(f"INSERT INTO s VALUES ({n}, '{random.Random(n).randbytes(100).hex()}')")
        wait_until(lambda: _is_written(shared))
    wait_until(lambda: _history(shared).bytes < 8 * 1024)
    assert _history(shared).bytes >= 5 * 1024
    rows = [n for (n,) in _rows(own, "SELECT n FROM millstream.history('s') ORDER BY n")]
    assert rows == list(range(rows[0], 7))
    assert 0 < rows[0] < 6


def test_many_runs_become_few(shared: Database, own: Client) -> None:
    own.run("CREATE FOREIGN TABLE s (n int) SERVER stream OPTIONS (history 'all')")
    for n in range(10):
        if n == 5:  # runs of before and of after this column are merged
            own.run("ALTER FOREIGN TABLE s ADD COLUMN t text DEFAULT 'x'")
        own.run(f"INSERT INTO s VALUES ({n})")
        wait_until(lambda: _is_written(shared))
    wait_until(lambda: len(_history(shared).runs) <= 3)
    assert len(list(_history(shared).folder.glob("*.parquet"))) <= 3
    assert _rows(own, "SELECT n, t FROM millstream.history('s') ORDER BY n") == [(n, "x") for n in range(10)]


# --- changes of the stream -------------------------------------------------------------------------------------------


def test_columns_and_names_change(tmp_path: Path) -> None:
    database = _open(tmp_path)
    client = Client(database)
    client.run("""
        CREATE FOREIGN TABLE s (n int, gone text, v numeric) SERVER stream OPTIONS (history 'all');
        INSERT INTO s VALUES (1, 'a', 1.50)
    """)
    wait_until(lambda: _history(database).total_rows == 1)
    client.run("""
        ALTER FOREIGN TABLE s ADD COLUMN d int NOT NULL DEFAULT 7, ADD COLUMN u text, DROP COLUMN gone;
        ALTER FOREIGN TABLE s RENAME TO r;
        INSERT INTO r VALUES (2, 2.5, 8, 'b')
    """)
    for _ in range(2):
        expected = [(1, "1.50", 7, None), (2, "2.5", 8, "b")]
        assert _rows(client, "SELECT n, v::text, d, u FROM millstream.history('r') ORDER BY n") == expected
        client.run("CREATE OR REPLACE VIEW v AS SELECT n, v::text, d, u FROM r")
        assert _rows(client, "SELECT * FROM v ORDER BY n") == expected
        database.close()
        database = _open(tmp_path)
        client = Client(database)
    client.run("DROP FOREIGN TABLE r CASCADE")
    assert not list(tmp_path.rglob("history"))
    database.close()


def test_a_view_gets_another_definition(shared: Database, own: Client) -> None:
    own.run("""
        CREATE FOREIGN TABLE s (n int) SERVER stream OPTIONS (history 'all');
        CREATE VIEW v AS SELECT count(*) AS c FROM s;
        INSERT INTO s VALUES (1), (2)
    """)
    wait_until(lambda: _is_written(shared))
    own.run("CREATE OR REPLACE VIEW v AS SELECT count(*) + sum(n) AS c FROM s")
    assert own.notices == ['view "v" starts again with the history of s']
    own.run("INSERT INTO s VALUES (3)")
    assert _rows(own, "SELECT c FROM v") == [(9,)]
    with pytest.raises(SqlError, match="its rows would be lost"):
        own.run("CREATE OR REPLACE VIEW v WITH (start = 'now') AS SELECT count(*) AS c FROM s WHERE n > 0")
    own.run("CREATE OR REPLACE VIEW v WITH (start = 'now') AS SELECT count(*) + sum(n) AS c FROM s")
    assert _rows(own, "SELECT c FROM v") == [(9,)]  # an equal definition goes on


def test_rows_are_no_longer_kept(tmp_path: Path) -> None:
    database = _open(tmp_path)
    client = Client(database)
    client.run("CREATE FOREIGN TABLE s (n int) SERVER stream; INSERT INTO s VALUES (0)")
    client.run("ALTER FOREIGN TABLE s OPTIONS (ADD history 'all')")
    client.run("CREATE VIEW early AS SELECT count(*) FROM s")
    client.run("ALTER FOREIGN TABLE s OPTIONS (DROP history)")  # of a view that has got no row
    client.run("INSERT INTO s VALUES (1); ALTER FOREIGN TABLE s OPTIONS (ADD history 'all'); INSERT INTO s VALUES (2)")
    client.run("CREATE VIEW late AS SELECT count(*) FROM s")
    assert _rows(client, "SELECT early.count, late.count FROM early, late") == [(2, 1)]
    late = next(item for item in database.core.runtimes() if item.view.name == "late")
    wait_until(lambda: late.paths[0].durable >= late.view.created_lsn)
    client.run("ALTER FOREIGN TABLE s OPTIONS (DROP history); INSERT INTO s VALUES (3)")
    assert not list(tmp_path.rglob("history"))
    for _ in range(2):
        assert _rows(client, "SELECT early.count, late.count FROM early, late") == [(3, 2)]
        database.close()
        database = _open(tmp_path)
        client = Client(database)
    database.close()


def test_a_view_that_is_being_filled_holds_the_history(tmp_path: Path) -> None:
    database = _open(tmp_path)
    client = Client(database)
    for name in ("s", "other"):
        client.run(f"CREATE FOREIGN TABLE {name} (n int) SERVER stream OPTIONS (history 'all')")
        for n in range(3):
            client.run(f"INSERT INTO {name} VALUES ({n})")
            wait_until(lambda: _is_written(database))
    database.close()
    database = _open(tmp_path, maintenance_idle=1e12)  # nothing is filled in the background
    client = Client(database)
    client.run("CREATE VIEW v AS SELECT count(*) FROM s")
    with pytest.raises(SqlError, match='view "v" is being filled from the history of stream "s"') as raised:
        client.run("ALTER FOREIGN TABLE s OPTIONS (DROP history)")
    assert raised.value.sqlstate == "55006"
    client.run("ALTER FOREIGN TABLE s OPTIONS (SET history '1 B')")
    client.run("ALTER FOREIGN TABLE other OPTIONS (SET history '1 B')")
    wait_until(lambda: _history(database).total_rows == 1)
    assert _rows(client, "SELECT count(*) FROM millstream.history('s')") == [(3,)]
    database.close()
    database = _open(tmp_path)
    client = Client(database)
    assert _rows(client, "SELECT * FROM v") == [(3,)]
    wait_until(lambda: _rows(client, "SELECT * FROM millstream.history('s')") == [(2,)])
    database.close()


def test_damaged_files(tmp_path: Path) -> None:
    database = _open(tmp_path)
    client = Client(database)
    client.run("CREATE FOREIGN TABLE s (n int) SERVER stream OPTIONS (history 'all')")
    client.run("CREATE VIEW v AS SELECT count(*) FROM s; INSERT INTO s VALUES (1)")
    wait_until(lambda: _history(database).total_rows == 1)
    (path,) = _history(database).folder.glob("*.parquet")
    database.close()
    path.write_bytes(path.read_bytes()[:-9] + b"something")
    database = _open(tmp_path)
    client = Client(database)
    with pytest.raises(SqlError, match="damaged"):
        client.run("SELECT * FROM millstream.history('s')")
    client.run("INSERT INTO s VALUES (2)")
    assert _rows(client, "SELECT * FROM v") == [(2,)]
    database.close()


def test_a_damaged_view_is_filled_again(tmp_path: Path) -> None:
    database = _open(tmp_path, log_segment_bytes=1 << 16, maintenance_rows=1)
    client, rows = Client(database), 0
    client.run("CREATE FOREIGN TABLE s (n int, t text) SERVER stream OPTIONS (history 'all')")
    client.run("CREATE VIEW v AS SELECT count(*), sum(n) FROM s")
    (view,) = database.core.runtimes()
    while database.core.log.first_lsn <= view.view.created_lsn:  # the log forgets its beginning
        client.run(f"INSERT INTO s SELECT n, md5(n::text) FROM generate_series({rows + 1}, {rows + 2000}) n")
        rows += 2000
        wait_until(lambda: _is_written(database) and database.frontiers.backlog(max(database.core.streams)) == 0)
        database.frontiers.release()
    database.close()
    (manifest,) = tmp_path.rglob(f"state/v{view.view.oid}/manifest.json")
    manifest.write_bytes(manifest.read_bytes()[:-9])
    database = _open(tmp_path)
    assert _rows(Client(database), "SELECT * FROM v") == [(rows, rows * (rows + 1) // 2)]
    database.close()


def test_a_view_moves_while_it_is_filled_and_its_stream_is_adopted(servers: Servers) -> None:
    a = servers.client("a")
    a.run("CREATE FOREIGN TABLE s (n int) SERVER stream OPTIONS (history 'all'); INSERT INTO s VALUES (1), (2)")
    wait_until(lambda: _is_written(servers["a"]))
    servers.stop("a")
    servers.options["maintenance_idle"] = 1e12  # nothing is filled in the background
    a = servers.client("a")
    a.run("CREATE VIEW v AS SELECT count(*) FROM s; INSERT INTO s VALUES (3)")
    servers.migrate("a", "b")
    a.run("INSERT INTO s VALUES (4)")
    assert _rows(servers.client("b"), "SELECT * FROM v") == _rows(a, "SELECT * FROM v") == [(4,)]
    servers.stop("a")
    servers.lose("a", "b")
    servers["b"].view_migration.adopt("a")
    b = servers.client("b")
    b.run("INSERT INTO s VALUES (5)")
    assert _rows(b, "SELECT * FROM v") == [(5,)]
    assert _rows(b, "SELECT * FROM millstream.history('s')") == [(5,)]


# --- what users see --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("statement", "sqlstate", "message"),
    [
        ("CREATE VIEW v WITH (start = 'history') AS SELECT count(*) FROM p", "55000", 'stream "p" has no history'),
        ("CREATE VIEW v WITH (start = 'history') AS SELECT 1 FROM p, s", "55000", 'stream "p" has no history'),
        ("CREATE VIEW v WITH (start = 'later') AS SELECT 1 FROM s", "22023", 'invalid value for option "start"'),
        ("CREATE VIEW v WITH (start = 'now') AS SELECT 1", "0A000", "the option start of a view that reads no stream"),
        ("ALTER VIEW w SET (start = 'now')", "0A000", "changing the view option start"),
        ("SELECT * FROM millstream.history('p')", "55000", 'stream "p" has no history'),
        ("SELECT * FROM millstream.history('t')", "42809", '"t" is not a stream'),
        ("SELECT * FROM millstream.history('x')", "42P01", 'relation "x" does not exist'),
        ("SELECT * FROM millstream.history(relation => 's')", "42883", "use millstream.history(stream)"),
        ("SELECT * FROM millstream.history()", "42883", "use millstream.history(stream)"),
        ("CREATE VIEW v AS SELECT * FROM millstream.history('s')", "0A000", "millstream.history() in the definition"),
        ("ALTER FOREIGN TABLE s OPTIONS (SET history 'much')", "22023", 'invalid value for option "history": "much"'),
        ("ALTER FOREIGN TABLE s OPTIONS (SET history '2 months')", "0A000", "history of months or years"),
        ("ALTER FOREIGN TABLE s OPTIONS (ADD history '1 MB')", "42710", 'option "history" provided more than once'),
        ("ALTER FOREIGN TABLE p OPTIONS (DROP history)", "42704", 'option "history" not found'),
        (
            "CREATE FOREIGN TABLE f (n int) SERVER stream OPTIONS (history 'all', source 'files', path '/tmp')",
            "0A000",
            "option history of a stream that follows a folder",
        ),
    ],
)
def test_errors(refused: Client, statement: str, sqlstate: str, message: str) -> None:
    with pytest.raises(SqlError) as raised:
        refused.run(statement)
    assert raised.value.sqlstate == sqlstate
    assert message in str(raised.value)


@pytest.fixture(scope="module")
def refused(shared: Database) -> Client:
    client = Client(shared)
    client.run("""
        CREATE FOREIGN TABLE s (n int) SERVER stream OPTIONS (history '7 days');
        CREATE FOREIGN TABLE p (n int) SERVER stream;
        CREATE TABLE t (n int);
        CREATE VIEW w AS SELECT count(*) FROM s
    """)
    return client


def test_the_catalog_shows_the_option_alone(refused: Client) -> None:
    options = "SELECT ftoptions::text FROM pg_foreign_table WHERE ftrelid = 's'::regclass"
    assert _rows(refused, options) == [('{"history=7 days"}',)]
    relations = "SELECT relname FROM pg_class WHERE oid >= 16384 ORDER BY 1"
    assert _rows(refused, relations) == [("p",), ("s",), ("t",), ("w",)]
    assert _rows(refused, "SELECT name FROM millstream.views") == [("w",)]


@pytest.mark.slow
def test_a_role_needs_the_privilege_to_read_the_stream() -> None:
    with Millstream(settings={"spark_enabled": False}) as server, server.connect() as owner:
        owner.execute("CREATE FOREIGN TABLE s (n int) SERVER stream OPTIONS (history 'all')")
        owner.execute("INSERT INTO s VALUES (1)")
        owner.execute("CREATE ROLE reader")
        query = "SELECT n FROM millstream.history('s') h WHERE n < %s"
        owner.execute("SET ROLE reader")
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            owner.execute(query, (2,))
        owner.execute("RESET ROLE")
        owner.execute("GRANT SELECT ON s TO reader")
        owner.execute("SET ROLE reader")
        for _ in range(7):  # also from a prepared statement
            assert owner.execute(query, (2,)).fetchall() == [(1,)]


# --- help ------------------------------------------------------------------------------------------------------------


def _open(folder: Path, **options: Any) -> Database:
    return open_database(folder, **{"maintenance_idle": 0.02, **options})


def _rows(client: Client, query: str) -> list[tuple[Any, ...]]:
    found = client.run(query)
    assert isinstance(found, list)
    return found


def _history(database: Database) -> History:
    """The history of the newest stream."""
    stream = database.core.streams[max(database.core.streams)]
    assert stream.history is not None
    return stream.history


def _is_written(database: Database) -> bool:
    """Whether all rows of the newest stream are in files."""
    return _history(database).frontier >= database.core.streams[max(database.core.streams)].last_lsn
