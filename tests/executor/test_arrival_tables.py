"""Views WITH (tables = 'arrival'): what they refuse, what holds the log for them, and what they evaluate again."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from catalog.values.errors import SqlError
from executor.database.database import Database
from executor.moving.movability import require_movable
from tests.executor.client import Client, open_database
from tests.rig.process import wait_until
from tests.rig.sampling import sample

RELATIONS = """
    CREATE TABLE t (id int, name text, rate int, pad text);
    INSERT INTO t VALUES (1, 'a', 1, ''), (2, 'b', 2, '');
    CREATE TABLE u (id int, w text);
    CREATE FOREIGN TABLE s (k int, v int, at timestamp) SERVER stream OPTIONS (watermark 'at');
    CREATE FOREIGN TABLE r (k int, v int) SERVER stream;
"""
JOINED = "SELECT k, v, name FROM s LEFT JOIN t ON k = id"
GROUPED = "SELECT name, sum(v * rate) AS total FROM s JOIN t ON k = id GROUP BY name"
ARRIVAL = "WITH (tables = 'arrival')"


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    database = open_database(tmp_path, maintenance_idle=1e6)
    Client(database).run(RELATIONS)
    yield database
    database.close()


@pytest.fixture
def client(database: Database) -> Client:
    return Client(database)


def test_rows_of_a_transaction_see_the_tables_as_it_leaves_them(client: Client) -> None:
    client.run(f"CREATE VIEW v {ARRIVAL} AS {JOINED}; CREATE VIEW g {ARRIVAL} AS {GROUPED}")
    client.run("BEGIN; INSERT INTO s VALUES (1, 10), (3, 30); UPDATE t SET name = 'A', rate = 5 WHERE id = 1")
    client.run("INSERT INTO t VALUES (3, 'c', 1); INSERT INTO s VALUES (1, 11); SAVEPOINT p; DELETE FROM t")
    client.run("ROLLBACK TO p; COMMIT; TRUNCATE t; INSERT INTO s VALUES (1, 12)")
    assert client.run("SELECT * FROM v ORDER BY v") == [(1, 10, "A"), (1, 11, "A"), (1, 12, None), (3, 30, "c")]
    assert client.run("SELECT * FROM g ORDER BY name") == [("A", 105), ("c", 30)]
    assert client.run("SELECT DISTINCT tables FROM millstream.views") == [("arrival",)]


def test_an_older_snapshot_sees_the_view_as_of_then(database: Database, client: Client) -> None:
    client.run(f"CREATE VIEW v {ARRIVAL} AS {JOINED}; INSERT INTO s VALUES (1, 1)")
    other = Client(database)
    other.run("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT 1 FROM t")
    client.run("UPDATE t SET name = 'A' WHERE id = 1; INSERT INTO s VALUES (1, 2)")
    assert client.run("SELECT * FROM v ORDER BY v") == [(1, 1, "a"), (1, 2, "A")]
    assert other.run("SELECT * FROM v") == [(1, 1, "a")]
    other.run("COMMIT")


def test_an_older_snapshot_sees_intervals_of_tables_that_change_behind_it(database: Database, client: Client) -> None:
    client.run("CREATE TABLE spans (k int PRIMARY KEY, span interval); CREATE FOREIGN TABLE came (k int) SERVER stream")
    client.run("INSERT INTO spans VALUES (1, '1 hour')")
    query = "SELECT came.k, span FROM came JOIN spans USING (k) WHERE span < '1 day'"
    client.run(f"CREATE VIEW spanned WITH (tables = 'arrival') AS {query}")
    client.run("INSERT INTO came VALUES (1)")
    older = Client(database)
    older.run("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM spans")
    client.run("INSERT INTO spans VALUES (2, '1 mon')")
    assert older.run("SELECT k FROM spanned") == [(1,)]


@pytest.mark.parametrize(
    ("query", "word"),
    [
        ("SELECT s.v, r.v AS w, name FROM s JOIN r ON s.k = r.k JOIN t ON s.k = id", 'table "t" in this query'),
        ("SELECT name, count(v) FROM s RIGHT JOIN t ON k = id GROUP BY name", "RIGHT or FULL JOIN"),
        ("SELECT name, count(v) FROM s FULL JOIN t ON k = id GROUP BY name", "RIGHT or FULL JOIN"),
        ("SELECT name, count(*) FROM (SELECT w AS name FROM u UNION ALL SELECT name FROM s JOIN t ON k = id) a"
         " GROUP BY name", "UNION ALL"),
        ("SELECT v, name FROM s RIGHT JOIN t ON k = id", 'table "t" in this query'),
        ("SELECT v, name FROM s JOIN t ON k = id UNION ALL SELECT id, w FROM u", 'table "u" in this query'),
        (f"SELECT g.*, t.id FROM ({GROUPED}) g JOIN t USING (name)", "both below a grouping and above it"),
        ("SELECT id, (SELECT count(*) FROM s WHERE v < rate) FROM t", "both below a grouping and above it"),
        ("SELECT v, name, c FROM s JOIN t ON k = id JOIN of_r ON of_r.k = id", 'view "of_r"'),
    ],
)  # fmt: skip
def test_refused_queries(client: Client, query: str, word: str) -> None:
    client.run("CREATE VIEW of_r AS SELECT k, count(*) AS c FROM r GROUP BY k")
    with pytest.raises(SqlError) as raised:
        client.run(f"CREATE VIEW v {ARRIVAL} AS {query}")
    assert raised.value.sqlstate == "0A000"
    assert word in raised.value.message
    assert raised.value.hint


@pytest.mark.parametrize(
    "query",
    [
        f"SELECT g.*, w FROM ({GROUPED}) g LEFT JOIN u ON w = name",
        "SELECT k, (SELECT max(rate) FROM t), EXISTS (SELECT FROM u WHERE u.id = k) FROM s",
        "SELECT k, lag(name) OVER (PARTITION BY k ORDER BY v) FROM s JOIN t ON k = id",
        "SELECT name, array_agg(v) FROM s JOIN t ON k = id GROUP BY name",
    ],
)
def test_queries_that_are_allowed(client: Client, query: str) -> None:
    client.run(f"CREATE VIEW v {ARRIVAL} AS {query}")
    assert client.run("SELECT tables FROM millstream.views") == [("arrival",)]


def test_notices(client: Client) -> None:
    def told(statement: str) -> list[tuple[str, str]]:
        notices = client.session.execute(client.bind(statement)).notices
        return [(item.sqlstate, item.message) for item in notices]

    text = 'each row of a stream is joined with table "t" as of the commit of the row: later changes of the table do'
    assert told(f"CREATE VIEW g {ARRIVAL} AS {GROUPED}") == [("00000", f"{text} not change what the view has of it")]
    ((_, said),) = told(f"CREATE VIEW a {ARRIVAL} AS SELECT k, count(*) FROM s GROUP BY k")
    assert said == "the option tables has no effect: no row of a stream meets a table as it comes"


def test_retention_and_final_groups(client: Client) -> None:
    windows = "SELECT date_bin('1 hour', at, '2000-01-01') AS h, name, count(*) FROM s JOIN t ON k = id GROUP BY 1, 2"
    client.run(f"CREATE VIEW f WITH (tables = 'arrival', emit = 'final') AS {windows}")
    rows = "SELECT at, name FROM s JOIN t ON k = id"
    client.run(f"CREATE VIEW r2 WITH (tables = 'arrival', retention = '1 hour') AS {rows}")
    client.run("INSERT INTO s VALUES (1, 1, '2026-01-01 10:10'); UPDATE t SET name = 'A' WHERE id = 1")
    client.run("INSERT INTO s VALUES (1, 1, '2026-01-01 10:20'), (2, 1, '2026-01-01 11:15')")
    assert client.run("SELECT name, count FROM f ORDER BY name") == [("A", 1), ("a", 1)]
    assert client.run("SELECT name FROM r2 ORDER BY name") == [("A",), ("b",)]


@pytest.mark.parametrize(
    ("statement", "word"),
    [
        ("ALTER TABLE t RENAME COLUMN name TO called", "reads as rows arrive"),
        ("ALTER TABLE t ALTER COLUMN pad TYPE integer USING 1", "reads as rows arrive"),
        ("ALTER TABLE t ADD COLUMN n serial", "reads as rows arrive"),
        ("BEGIN; UPDATE t SET rate = 7; ALTER TABLE t ADD COLUMN n int", "reads as rows arrive"),
        ("ALTER VIEW v SET (tables = 'live')", "cannot change the option tables"),
        ("ALTER VIEW v RESET (tables)", "cannot change the option tables"),
        ("ALTER VIEW live SET (tables = 'arrival')", "cannot change the option tables"),
        ("CREATE OR REPLACE VIEW live WITH (tables = 'arrival') AS " + JOINED, "cannot change the option tables"),
    ],
)
def test_refused_changes(client: Client, statement: str, word: str) -> None:
    client.run(f"CREATE VIEW v {ARRIVAL} AS {JOINED}; CREATE VIEW live AS {JOINED}")
    with pytest.raises(SqlError) as raised:
        client.run(statement)
    assert raised.value.sqlstate == "0A000"
    assert word in raised.value.message


def test_views_that_cannot_leave(database: Database, client: Client) -> None:
    client.run(f"CREATE VIEW v {ARRIVAL} AS {JOINED}; CREATE VIEW above AS SELECT name, k FROM v JOIN r USING (k)")
    for runtime in database.core.runtimes():
        with pytest.raises(SqlError, match="whose rows meet tables of this server as they come") as raised:
            require_movable(database.core, runtime)
        assert raised.value.sqlstate == "0A000"


def test_tables_that_are_altered_in_place(tmp_path: Path) -> None:
    for restarts in (False, True):
        folder = tmp_path / str(restarts)
        database = open_database(folder, maintenance_idle=1e6)
        client = Client(database)
        client.run(f"{RELATIONS}; CREATE VIEW v {ARRIVAL} AS SELECT v, rate FROM s JOIN t ON k = id")
        client.run("INSERT INTO s VALUES (1, 1)")
        client.run(
            "BEGIN; ALTER TABLE t ADD COLUMN n int DEFAULT 3; UPDATE t SET n = 4, rate = 10 WHERE id = 1; COMMIT"
        )
        client.run("INSERT INTO s VALUES (1, 2); ALTER TABLE t RENAME COLUMN pad TO filling")
        client.run("UPDATE t SET rate = 20 WHERE id = 1; INSERT INTO s VALUES (1, 3); ALTER TABLE t DROP COLUMN n")
        client.run(
            "UPDATE t SET rate = 30 WHERE id = 1; ALTER TABLE t ADD PRIMARY KEY (id); ALTER TABLE t RENAME TO tt"
        )
        client.run("UPDATE tt SET rate = 40 WHERE id = 1")
        if restarts:
            database.close()
            database = open_database(folder, maintenance_idle=1e6)
            client = Client(database)
        assert client.run("SELECT * FROM v ORDER BY v") == [(1, 1), (2, 10), (3, 20)]
        database.close()


def test_tables_are_read_again_only_where_used_columns_change(database: Database, client: Client) -> None:
    client.run(f"CREATE VIEW v {ARRIVAL} AS {JOINED}; INSERT INTO s VALUES (1, 1); SELECT * FROM v")
    (runtime,) = database.core.runtimes()
    (progress,) = runtime.paths
    (name,) = runtime.runner.past_statics(progress.path, progress.reached)

    def rows() -> object:
        client.run("SELECT * FROM v")
        return runtime.runner.past_statics(progress.path, progress.reached)[name]

    first = rows()
    client.run("INSERT INTO s VALUES (2, 2)")
    assert rows() is first
    client.run("UPDATE t SET rate = 9, pad = 'x'; INSERT INTO s VALUES (2, 3)")
    assert rows() is first
    client.run("UPDATE t SET name = 'B' WHERE id = 2; INSERT INTO s VALUES (2, 4)")
    assert rows() is not first
    assert client.run("SELECT * FROM v ORDER BY v") == [(1, 1, "a"), (2, 2, "b"), (2, 3, "b"), (2, 4, "B")]


def test_memory_is_given_back(tmp_path: Path) -> None:
    database = open_database(tmp_path, trace_memory=1, maintenance_idle=1e6)
    client = Client(database)
    client.run(f"{RELATIONS}; CREATE VIEW v {ARRIVAL} AS {JOINED}")
    for place in range(6):
        client.run(f"INSERT INTO s VALUES (1, {place}); UPDATE t SET name = '{place}' WHERE id = 1")
    names = ["a", *map(str, range(5))]
    assert client.run("SELECT name FROM v ORDER BY v") == [(name,) for name in names]
    database.close()


def test_columns_of_all_kinds_are_found_again(client: Client) -> None:
    """Rows that differ in the sign of a zero, in NULL, or in a list are different rows."""
    client.run("CREATE TABLE w (id int, f float8, n numeric); CREATE TABLE z (id int, l int[], i interval)")
    client.run("INSERT INTO w VALUES (1, '0.0', 1.50), (1, '-0.0', 1.50), (1, NULL, NULL), (1, '0.0', 1.50)")
    client.run("INSERT INTO z VALUES (1, '{1,2}', '1 mon'), (1, '{1,2}', '1 mon'), (1, NULL, NULL), (1, '{2}', '1 s')")
    client.run(f"CREATE VIEW v {ARRIVAL} AS SELECT v, f::text AS f, n FROM s JOIN w ON k = id")
    client.run(f"CREATE VIEW lists {ARRIVAL} AS SELECT v, l, i FROM s JOIN z ON k = id")
    client.run(f"CREATE VIEW c {ARRIVAL} AS SELECT v, n FROM s, (SELECT count(*) AS n FROM w) w")
    client.run("INSERT INTO s VALUES (1, 1); DELETE FROM w WHERE f IS NULL; INSERT INTO s VALUES (1, 2)")
    client.run("DELETE FROM w WHERE f::text = '-0'; INSERT INTO s VALUES (1, 3); TRUNCATE w")
    client.run("DELETE FROM z WHERE l = '{1,2}'; INSERT INTO s VALUES (1, 4); UPDATE z SET i = NULL")
    shown = "SELECT v, array_agg(l::text ORDER BY l), count(i) FROM lists WHERE v > 2 GROUP BY v ORDER BY v"
    assert client.run(shown) == [(3, ["{1,2}", "{1,2}", "{2}", None], 3), (4, ["{2}", None], 1)]
    found = client.run("SELECT v, array_agg(f ORDER BY f) FROM v GROUP BY v ORDER BY v")
    assert found == [(1, ["-0", "0", "0", None]), (2, ["-0", "0", "0"]), (3, ["0", "0"])]
    assert client.run("SELECT v, n FROM c ORDER BY v") == [(1, 4), (2, 3), (3, 2), (4, 0)]


def test_an_expression_of_the_table_that_fails_fails_the_view(client: Client) -> None:
    query = "SELECT v, x FROM s JOIN (SELECT id, 10 / rate AS x FROM t) t ON k = id"
    client.run(f"CREATE VIEW v WITH (tables = 'arrival', on_error = 'skip') AS {query}")
    client.run("INSERT INTO s VALUES (1, 1); UPDATE t SET rate = 0 WHERE id = 2; INSERT INTO s VALUES (1, 2)")
    with pytest.raises(SqlError, match="division by zero"):
        client.run("SELECT * FROM v")


@pytest.mark.slow
@pytest.mark.parametrize("kind", sample(["plain", "history", "files"], ("files",)))
def test_the_log_is_held_for_the_tables_of_rows_that_a_view_lacks(tmp_path: Path, kind: str) -> None:
    folder = tmp_path / "incoming"
    folder.mkdir()
    settings = {"log_segment_bytes": 1 << 16, "source_poll": 0.02, "maintenance_idle": 1e6}
    database = open_database(tmp_path / "data", **settings)
    client = Client(database)
    options = {
        "plain": "",
        "history": "OPTIONS (history 'all')",
        "files": f"OPTIONS (source 'files', path '{folder}', format 'csv')",
    }
    client.run("CREATE TABLE t (id int, name text); CREATE TABLE pads (pad text); INSERT INTO t VALUES (1, 'a')")
    client.run(f"CREATE FOREIGN TABLE h (k int, v int) SERVER stream {options[kind]}")

    def arrive(value: int) -> None:
        if kind != "files":
            client.run(f"INSERT INTO h VALUES (1, {value})")
            return
        (folder / f"_{value}").write_text(f"1,{value}\n")
        (folder / f"_{value}").rename(folder / f"{value}.csv")
        wait_until(lambda: client.run(f"SELECT count(*) FROM millstream.streams WHERE rows = {value + 1}") == [(1,)])

    def fill() -> None:
        for place in range(40):
            client.run(f"INSERT INTO pads VALUES (repeat('{place} ', 1000)); TRUNCATE pads")
        database.core.tables.backlog.apply()
        database.frontiers.release()

    arrive(0)
    client.run(f"CREATE VIEW v {ARRIVAL} AS SELECT v, name FROM h LEFT JOIN t ON k = id")
    wanted = [(0, "a")] if kind != "plain" else []
    for value in range(1, 4):
        arrive(value)
        wanted.append((value, "a" * value))
        fill()
        client.run("UPDATE t SET name = name || 'a'")
        fill()
    (runtime,) = database.core.runtimes()
    assert database.core.log.first_lsn <= runtime.view.created_lsn
    database.close()
    database = open_database(tmp_path / "data", **settings)
    client = Client(database)
    database.frontiers.release()
    assert client.run("SELECT * FROM v ORDER BY v") == wanted
    database.close()
    database = open_database(tmp_path / "data", **{**settings, "maintenance_idle": 0.01})
    client = Client(database)
    wait_until(lambda: client.run("SELECT rows_behind FROM millstream.views") == [(0,)])
    fill()
    wait_until(lambda: database.core.log.first_lsn > 0)
    client.run("UPDATE t SET name = 'z'")
    assert client.run("SELECT * FROM v ORDER BY v") == wanted
    database.close()
