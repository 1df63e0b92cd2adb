"""The whole executor in one process: streams, views, tables, transactions, restarts."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import closing
from decimal import Decimal
from hashlib import md5
from pathlib import Path

import pyarrow as pa
import pytest

from catalog.values.errors import SqlError
from executor.database.database import Database
from executor.embedded import instance
from tests.executor.client import Client, open_database


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    opened = open_database(tmp_path)
    yield opened
    opened.close()


@pytest.fixture
def client(database: Database) -> Client:
    return Client(database)


CLICKS = "CREATE FOREIGN TABLE clicks (page text, n int, price numeric(10,2)) SERVER stream"


def test_a_view_sees_rows_that_come_after_its_creation(client: Client) -> None:
    client.run(CLICKS)
    client.run("INSERT INTO clicks VALUES ('early', 1, 1)")
    client.run("CREATE VIEW totals AS SELECT page, sum(n) AS n, sum(price) AS price FROM clicks GROUP BY page")
    assert client.run("SELECT * FROM totals") == []
    assert client.run("INSERT INTO clicks VALUES ('a', 1, 1.5), ('b', 2, 2), ('a', 3, NULL)") == "INSERT 0 3"
    assert client.run("SELECT * FROM totals ORDER BY page") == [("a", 4, Decimal("1.50")), ("b", 2, Decimal("2.00"))]
    client.run("INSERT INTO clicks VALUES ('b', 5, 0.01)")
    assert client.run("SELECT n, price FROM totals WHERE page = 'b'") == [(7, Decimal("2.01"))]


def test_a_view_without_groups_has_one_row(client: Client) -> None:
    client.run(CLICKS)
    client.run("CREATE VIEW one AS SELECT count(*) AS c, sum(n) AS s, avg(n) AS a FROM clicks")
    assert client.run("SELECT * FROM one") == [(0, None, None)]
    client.run("INSERT INTO clicks VALUES ('a', 1, 1), ('b', 2, 2)")
    assert client.run("SELECT * FROM one") == [(2, 3, "1.5000000000000000")]


@pytest.mark.parametrize("shown", ["'named'::regclass::text", "to_jsonb('named'::regclass)"])
def test_a_view_shows_the_catalog_as_it_is(client: Client, shown: str) -> None:
    client.run(f"CREATE TABLE named (a integer); {CLICKS}")
    client.run(f"CREATE VIEW below AS SELECT {shown} AS name, count(*) FROM clicks GROUP BY 1")
    client.run(f"CREATE VIEW above AS SELECT page, {shown} AS name FROM clicks GROUP BY page")
    client.run("INSERT INTO clicks VALUES ('a', 1, 1)")
    for name in ("named", "other"):
        text = name if "json" not in shown else f'"{name}"'
        assert client.run("SELECT * FROM below") == [(text, 1)]
        assert client.run("SELECT * FROM above") == [("a", text)]
        client.run("ALTER TABLE named RENAME TO other") if name == "named" else None


def test_one_expression_is_two_keys(client: Client) -> None:
    client.run(CLICKS)
    client.run("CREATE VIEW twice AS SELECT page AS a, page AS b, sum(n) FROM clicks GROUP BY a, ROLLUP (b)")
    client.run("INSERT INTO clicks VALUES ('x', 1, 1), ('x', 2, 2), ('y', 4, 2)")
    found = client.run("SELECT * FROM twice ORDER BY a, b NULLS LAST")
    assert found == [("x", "x", 3), ("x", None, 3), ("y", "y", 4), ("y", None, 4)]


def test_a_view_is_read_from_its_commit_on(client: Client) -> None:
    client.run(
        "BEGIN; CREATE FOREIGN TABLE feed (a integer) SERVER stream; CREATE VIEW sums AS SELECT sum(a) FROM feed"
    )
    with pytest.raises(SqlError, match='reading continuous view "sums" in the transaction that creates it') as caught:
        client.run("SELECT * FROM sums")
    assert caught.value.sqlstate == "0A000"
    client.run("ROLLBACK")


@pytest.mark.parametrize("change", ["CREATE VIEW v AS SELECT count(*) FROM clicks", "DROP VIEW v"])
def test_a_view_is_read_while_it_comes_or_goes(
    change: str, database: Database, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A reader that finds the view's name while its commit is being published can read it, or gets an error that it
    does not exist."""
    client.run(CLICKS)
    if change.startswith("DROP"):
        client.run("CREATE VIEW v AS SELECT count(*) FROM clicks")
    readers: list[Future[object]] = []

    def slowly(name: str, pool: ThreadPoolExecutor) -> None:
        plain = getattr(database.core.storage, name)

        def called(oid: int) -> object:
            readers.append(pool.submit(Client(database).run, "SELECT * FROM v"))
            wait([readers[-1]], timeout=0.2)  # it waits for what this thread publishes, or has ended
            return plain(oid)

        monkeypatch.setattr(database.core.storage, name, called)

    with ThreadPoolExecutor() as pool:
        slowly("load", pool)
        slowly("drop", pool)
        client.run(change)
        (found,) = (reader.exception() or reader.result() for reader in readers)
    assert found == [(0,)] or (isinstance(found, SqlError) and found.sqlstate == "42P01")


def test_rows_of_a_transaction_are_published_at_commit(database: Database, client: Client) -> None:
    client.run(CLICKS)
    client.run("CREATE VIEW c AS SELECT count(*) AS c FROM clicks")
    other = Client(database)
    client.run("BEGIN; INSERT INTO clicks VALUES ('a', 1, 1)")
    assert other.run("SELECT * FROM c") == [(0,)]
    client.run("SAVEPOINT s; INSERT INTO clicks VALUES ('b', 1, 1); ROLLBACK TO s; COMMIT")
    assert other.run("SELECT * FROM c") == [(1,)]
    client.run("BEGIN; INSERT INTO clicks VALUES ('a', 1, 1); ROLLBACK")
    assert other.run("SELECT * FROM c") == [(1,)]


@pytest.mark.slow
def test_everything_acknowledged_is_there_after_a_restart(tmp_path: Path) -> None:
    database = open_database(tmp_path, maintenance_rows=3, maintenance_idle=0.01)
    client = Client(database)
    client.run(CLICKS)
    client.run("CREATE TABLE names (page text PRIMARY KEY, title text)")
    client.run("INSERT INTO names VALUES ('a', 'Alpha')")
    client.run(
        "CREATE VIEW v AS WITH t AS (SELECT page, count(*) AS c FROM clicks GROUP BY page) "
        "SELECT title, c FROM t JOIN names ON names.page = t.page"
    )
    for count in range(1, 8):
        client.run("INSERT INTO clicks VALUES ('a', 1, 1)")
        if count % 3 == 0:
            database.close()
            database = open_database(tmp_path)
            client = Client(database)
        assert client.run("SELECT * FROM v") == [("Alpha", count)]
    client.run("UPDATE names SET title = 'Omega'")
    assert client.run("SELECT * FROM v") == [("Omega", 7)]
    database.close()


def test_a_frozen_table_joined_below_the_grouping_is_read_once(client: Client) -> None:
    client.run(CLICKS)
    client.run("CREATE TABLE factor (page text, f int); INSERT INTO factor VALUES ('a', 10)")
    client.run(
        "CREATE VIEW v WITH (tables = 'frozen') AS SELECT c.page, sum(c.n * f.f) AS s FROM clicks c "
        "JOIN factor f ON c.page = f.page GROUP BY c.page"
    )
    assert any("factor" in notice for notice in client.notices)
    client.run("INSERT INTO clicks VALUES ('a', 2, 0), ('z', 5, 0)")
    client.run("UPDATE factor SET f = 100")
    client.run("INSERT INTO clicks VALUES ('a', 3, 0)")
    assert client.run("SELECT * FROM v") == [("a", 50)]


def test_a_view_begins_with_its_transaction_s_commit_and_a_notice_says_so(client: Client) -> None:
    client.run(CLICKS)
    client.run("CREATE VIEW before AS SELECT count(*) AS c FROM clicks")
    assert client.notices == []
    client.run("BEGIN")
    client.run("CREATE VIEW v AS SELECT count(*) AS c FROM clicks")
    assert any(notice.startswith('continuous view "v" begins with the COMMIT') for notice in client.notices)
    client.run("INSERT INTO clicks VALUES ('a', 2, 0)")
    client.run("COMMIT")
    client.run("INSERT INTO clicks VALUES ('a', 3, 0)")
    assert client.run("SELECT before.c, v.c FROM before, v") == [(2, 1)]


@pytest.mark.slow
def test_a_large_copy_is_one_commit(database: Database, client: Client) -> None:
    client.run(CLICKS)
    client.run("CREATE VIEW v AS SELECT page, count(*) AS c FROM clicks GROUP BY page")
    pages = pa.array([f"p{number % 7}" for number in range(15_000)])
    numbers = pa.array(range(15_000), pa.int32())
    batch = pa.RecordBatch.from_arrays(
        [pages, numbers, pa.nulls(15_000, pa.decimal128(10, 2))], names=["page", "n", "price"]
    )
    assert client.copy("COPY clicks FROM STDIN", [batch] * 4) == 60_000
    assert sum(row[1] for row in client.run("SELECT * FROM v")) == 60_000
    (raw,) = ["COPY clicks (n) FROM STDIN"]
    client.copy(raw, [pa.RecordBatch.from_arrays([pa.array([1], pa.int32())], names=["n"])])
    assert client.run("SELECT c FROM v WHERE page IS NULL") == [(1,)]


@pytest.mark.slow
def test_views_with_and_without_arrival_order_read_the_same_large_rows(tmp_path: Path) -> None:
    numbers = [pa.array(range(start, start + 15_000), pa.int32()) for start in range(0, 60_000, 15_000)]
    batches = [pa.RecordBatch.from_arrays([column], names=["n"]) for column in numbers]
    for again in (False, True):
        with closing(open_database(tmp_path)) as opened:
            client = Client(opened)
            if not again:
                client.run("CREATE FOREIGN TABLE s (n int) SERVER stream")
                client.run("CREATE VIEW counted AS SELECT n % 2 AS odd, count(*) AS c, sum(n) AS s FROM s GROUP BY 1")
                client.run("CREATE VIEW listed AS SELECT n % 20000 AS k, array_agg(n) AS a FROM s GROUP BY 1")
                assert client.copy("COPY s FROM STDIN", batches) == 60_000
            assert client.run("SELECT c, s FROM counted ORDER BY odd") == [(30_000, 899_970_000), (30_000, 900_000_000)]
            assert client.run("SELECT a FROM listed WHERE k = 7") == [([7, 20_007, 40_007],)]


@pytest.mark.slow
def test_an_expression_that_fails_is_the_views_error_only(client: Client) -> None:
    client.run(CLICKS)
    client.run("CREATE VIEW bad AS SELECT sum(10 / n) AS s FROM clicks")
    client.run("CREATE VIEW good AS SELECT count(*) AS c FROM clicks")
    client.run("INSERT INTO clicks VALUES ('a', 0, 0)")
    with pytest.raises(SqlError, match="22012"):
        client.run("SELECT * FROM bad")
    client.run("INSERT INTO clicks VALUES ('a', 1, 0)")
    with pytest.raises(SqlError, match="22012"):
        client.run("SELECT * FROM bad")
    assert client.run("SELECT * FROM good") == [(2,)]
    assert client.run("SELECT error_sqlstate FROM millstream.views WHERE name = 'bad'") == [("22012",)]


@pytest.mark.slow
def test_the_error_of_a_view_outlives_a_restart(tmp_path: Path) -> None:
    database = open_database(tmp_path)
    client = Client(database)
    client.run(CLICKS)
    client.run("CREATE VIEW bad AS SELECT sum(10 / n) AS s FROM clicks; INSERT INTO clicks VALUES ('a', 0, 0)")
    with pytest.raises(SqlError, match="22012"):
        client.run("SELECT * FROM bad")
    database.frontiers.release()
    database.close()
    database = open_database(tmp_path)
    with pytest.raises(SqlError, match="22012"):
        Client(database).run("SELECT * FROM bad")
    database.close()


def test_dropping_a_view_frees_its_state(database: Database, client: Client, tmp_path: Path) -> None:
    client.run(CLICKS)
    client.run("CREATE VIEW v AS SELECT page, count(*) AS c FROM clicks GROUP BY page")
    states = database.core.options.shared_directory / "state"
    assert list(states.iterdir())
    with pytest.raises(SqlError, match="2BP01"):
        client.run("DROP FOREIGN TABLE clicks")
    client.run("DROP VIEW v")
    assert not list(states.iterdir())
    with pytest.raises(SqlError, match="42P01"):
        client.run("SELECT * FROM v")
    client.run("DROP FOREIGN TABLE clicks")
    assert client.run("SELECT * FROM millstream.streams") == []


def test_a_failed_transaction_refuses_until_it_ends(client: Client) -> None:
    client.run("CREATE TABLE t (a int)")
    client.run("BEGIN; INSERT INTO t VALUES (1)")
    with pytest.raises(SqlError, match="22012"):
        client.run("SELECT 1 / (a - a) FROM t")
    assert client.session.status == "E"
    with pytest.raises(SqlError, match="25P02"):
        client.run("SELECT 1")
    assert client.run("COMMIT") == "ROLLBACK"
    assert client.run("SELECT count(*) FROM t") == [(0,)]


@pytest.mark.slow
def test_a_point_read_follows_the_rows(database: Database, client: Client) -> None:
    client.run("CREATE FOREIGN TABLE s (k int, v int) SERVER stream")
    client.run("CREATE VIEW sums AS SELECT k, sum(v) AS total FROM s GROUP BY k HAVING sum(v) > 0")
    client.copy(
        "COPY s FROM STDIN",
        [pa.RecordBatch.from_arrays([pa.array(range(1000), pa.int32())] * 2, names=["k", "v"])],
    )
    oid = next(runtime.view.oid for runtime in database.core.runtimes())
    assert database.indexes.key_of(oid) == ("k",)

    def read(key: int) -> tuple[object, ...] | None:
        row = database.indexes.read(oid, (key,))
        assert row is not None
        return None if row.place is None else tuple(column[row.place].as_py() for column in row.table.columns)

    assert read(7) == (7, 7)
    assert read(0) is None
    client.run("INSERT INTO s VALUES (0, 5), (7, 1), (9, -9), (5000, 2)")
    assert [read(key) for key in (0, 7, 8, 9, 5000)] == [(0, 5), (7, 8), (8, 8), None, (5000, 2)]
    assert database.indexes.peek(oid, (0,)) is not None


def test_checks_hold_for_copy_too(client: Client) -> None:
    client.run("CREATE TABLE t (a int CHECK (a > 0))")
    batch = pa.RecordBatch.from_arrays([pa.array([1, -1], pa.int32())], names=["a"])
    with pytest.raises(SqlError, match="23514"):
        client.copy("COPY t FROM STDIN", [batch])
    assert client.run("SELECT * FROM t") == []


def test_a_repeatable_snapshot_cannot_write_over_what_came_later(database: Database, client: Client) -> None:
    client.run("CREATE TABLE t (a int); INSERT INTO t VALUES (1)")
    client.run("BEGIN ISOLATION LEVEL REPEATABLE READ")
    assert client.run("SELECT * FROM t") == [(1,)]
    Client(database).run("UPDATE t SET a = 2")
    assert client.run("SELECT * FROM t") == [(1,)]
    with pytest.raises(SqlError, match="40001"):
        client.run("UPDATE t SET a = 3")
    assert client.run("ROLLBACK") == "ROLLBACK"
    assert client.run("SELECT * FROM t") == [(2,)]


@pytest.mark.slow
def test_views_can_be_dropped_while_they_are_maintained(tmp_path: Path) -> None:
    database = open_database(tmp_path, maintenance_rows=1, maintenance_idle=0.0)
    client = Client(database)
    client.run(CLICKS)
    for number in range(40):
        client.run(f"CREATE VIEW v{number} AS SELECT page, count(*) AS c FROM clicks GROUP BY page")
        client.run("INSERT INTO clicks VALUES ('a', 1, 1)")
        client.run(f"DROP VIEW v{number}")
    assert client.run("SELECT count(*) FROM millstream.views") == [(0,)]
    database.close()


@pytest.mark.slow
def test_what_exceeds_the_engines_memory_goes_to_its_own_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    working = tmp_path / "working"
    working.mkdir()
    monkeypatch.chdir(working)
    monkeypatch.setitem(instance._SETTINGS, "memory_limit", "100MB")
    with closing(open_database(tmp_path / "data", embedded_threads=1)) as database:
        client = Client(database)
        client.run("CREATE TABLE wide AS SELECT n, md5(n::text) AS a FROM generate_series(1, 1000000) AS g (n)")
        text = "SELECT count(*), min(a) FROM (SELECT a, row_number() OVER (ORDER BY a DESC, n) AS r FROM wide) x"
        least = min(md5(b"%d" % n).hexdigest() for n in range(1, 1_000_001))
        assert client.run(text + " WHERE r > 0") == [(1_000_000, least)]
        spilled = database.core.options.spill_directory
        assert spilled.exists()
    assert list(working.iterdir()) == []
    spilled.mkdir(exist_ok=True)
    left = spilled / "duckdb_temp_storage_DEFAULT-0.tmp"
    left.write_bytes(b"left by a process that died")
    with closing(open_database(tmp_path / "data", embedded_threads=1)) as database:
        assert not left.exists()
        assert Client(database).run(text + " WHERE r > 0") == [(1_000_000, least)]
