"""ALTER TABLE with crashes and restarts, concurrent transactions, and continuous views over the table."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest

from catalog.objects import Table
from catalog.values.errors import SqlError
from executor.database.database import Database
from executor.sql.replanning import Planned
from tests.executor.client import Client, open_database
from tests.rig.beside import Beside
from tests.rig.crash import copy_crashed
from tests.rig.process import wait_until

START = """
CREATE TABLE t (a int PRIMARY KEY, b text, c int DEFAULT 3);
INSERT INTO t VALUES (1, 'one', 1), (2, 'two', NULL);
"""
STEPS = """
ALTER TABLE t ADD COLUMN d numeric(8,2) DEFAULT 1.5, ADD COLUMN e interval DEFAULT '1 day', ADD COLUMN g timestamptz;
ALTER TABLE t DROP COLUMN c;
INSERT INTO t (a, d) VALUES (3, 2);
ALTER TABLE t RENAME COLUMN b TO bb;
ALTER TABLE t ADD COLUMN n bigserial UNIQUE;
BEGIN; UPDATE t SET bb = 'x' WHERE a = 1; ALTER TABLE t ADD f int DEFAULT 7; UPDATE t SET f = a WHERE a = 2; COMMIT;
BEGIN; ALTER TABLE t ADD COLUMN h int; UPDATE t SET h = a; DELETE FROM t WHERE a = 3; COMMIT;
ALTER TABLE t ALTER COLUMN a TYPE bigint USING a * 10;
BEGIN; SAVEPOINT s; ALTER TABLE t DROP COLUMN f; ROLLBACK TO s; ALTER TABLE t RENAME TO u; COMMIT;
BEGIN; CREATE TABLE made (x int); INSERT INTO made VALUES (1); ALTER TABLE made ADD COLUMN y int DEFAULT 2; COMMIT;
BEGIN; CREATE TABLE gone (x int); ALTER TABLE gone ADD y int; DROP TABLE gone; COMMIT;
ALTER TABLE made ADD CONSTRAINT up FOREIGN KEY (x) REFERENCES u (n);
ALTER TABLE u ADD CHECK (h > 0);
CREATE UNIQUE INDEX u_f ON u (f); CREATE INDEX ON u (bb);
COMMENT ON TABLE u IS 'it''s'; COMMENT ON COLUMN u.f IS 'f'; COMMENT ON SEQUENCE t_n_seq IS 'numbers';
DROP INDEX u_f;
TRUNCATE made, u RESTART IDENTITY;
"""
SHOWN = "SELECT a, bb, d, e = '1 day'::interval, n, f, h FROM u ORDER BY a"


def at_every_step(folder: Path, check: Callable[[Database, Database], None]) -> None:
    """Runs the steps; after each, opens the state that a crash would leave and compares it."""
    with closing(open_database(folder / "live")) as database:
        client = Client(database)
        client.run(START)
        for number, step in enumerate(filter(None, STEPS.split(";\n"))):
            client.run(step)
            copy = folder / f"crash{number}"
            copy_crashed(folder / "live", copy)
            with closing(open_database(copy)) as again:
                check(database, again)


@pytest.mark.slow
def test_every_step_survives_a_crash(tmp_path: Path) -> None:
    def check(database: Database, again: Database) -> None:
        names = [item.name for item in database.core.catalog.objects.values() if hasattr(item, "keys")]
        assert {k: v for k, v in again.core.catalog.objects.items() if k > 16000} == {
            k: v for k, v in database.core.catalog.objects.items() if k > 16000
        }
        for name in names:
            text = f"SELECT * FROM {name}"
            assert sorted(map(repr, Client(again).run(text))) == sorted(map(repr, Client(database).run(text)))

    at_every_step(tmp_path, check)


@pytest.mark.slow
def test_the_steps_give_what_they_say(tmp_path: Path) -> None:
    with closing(open_database(tmp_path)) as database:
        client = Client(database)
        client.run(START + STEPS.partition("CREATE UNIQUE INDEX")[0])
        assert client.run(SHOWN) == [
            (10, "x", Decimal("1.50"), True, 1, 7, 1),
            (20, "two", Decimal("1.50"), True, 2, 2, 2),
        ]
        assert client.run("SELECT * FROM made") == [(1, 2)]
        with pytest.raises(SqlError, match="violates check constraint"):
            client.run("UPDATE u SET h = 0")
    with closing(open_database(tmp_path)) as database:
        assert len(Client(database).run(SHOWN)) == 2


def test_a_statement_planned_before_an_alteration_is_not_run_after_it(tmp_path: Path) -> None:
    with closing(open_database(tmp_path)) as database:
        client, other = Client(database), Client(database)
        client.run(START)
        late = [
            client.bind(text) for text in ("INSERT INTO t VALUES (7)", "ALTER TABLE t ADD y int", "UPDATE t SET c = 1")
        ]
        other.run("ALTER TABLE t ADD COLUMN z int NOT NULL DEFAULT 4")
        for statement in late:
            with pytest.raises(SqlError) as caught:
                client.session.execute(statement)
            assert caught.value.sqlstate == "40001"
        client.run("INSERT INTO t VALUES (7)")
        assert client.run("SELECT z FROM t") == [(4,), (4,), (4,)]


@pytest.mark.parametrize("change", ["ALTER TABLE t DROP COLUMN c", "DROP TABLE t"])
def test_a_query_planned_before_its_columns_went_says_so(tmp_path: Path, change: str) -> None:
    with closing(open_database(tmp_path)) as database:
        client, other = Client(database), Client(database)
        client.run(START)
        late = client.bind("SELECT c FROM t")
        other.run(change)
        with pytest.raises(SqlError) as caught:
            client.session.execute(late)
        assert caught.value.sqlstate == "40001"


@pytest.mark.slow
def test_statements_are_planned_again_where_their_table_changed_meanwhile(tmp_path: Path) -> None:
    with closing(open_database(tmp_path)) as database:
        client, other = Client(database), Client(database)
        client.run(START)
        texts = (
            *("INSERT INTO t VALUES (7)", "UPDATE t SET c = 1 RETURNING *", "ALTER TABLE t ADD y int"),
            "CREATE TABLE e AS SELECT * FROM t",
        )
        late = [client.planned(text) for text in texts]
        other.run("ALTER TABLE t ADD COLUMN z int NOT NULL DEFAULT 4")
        tags = [client.session.execute_planned(planned).tag for planned in late]
        assert tags == ["INSERT 0 1", "UPDATE 3", "ALTER TABLE", "SELECT 3"]
        assert client.run("SELECT * FROM e ORDER BY a") == client.run("SELECT * FROM t ORDER BY a")
        client.run("BEGIN; SELECT 1")
        reading, writing = client.planned("SELECT z FROM t"), client.planned("DELETE FROM t WHERE z = 4")
        other.run("ALTER TABLE t DROP COLUMN z; ALTER TABLE t ADD COLUMN z text DEFAULT '4'")
        result = client.session.execute_planned(reading)
        assert [batch.column(0).to_pylist() for batch in result.batches or ()] == [["4", "4", "4"]]
        with pytest.raises(SqlError, match="operator does not exist"):
            client.session.execute_planned(writing)
        client.run("ROLLBACK")
        gone = client.planned("SELECT * FROM t")
        other.run("DROP TABLE t")
        with pytest.raises(SqlError, match="does not exist") as caught:
            client.session.execute_planned(gone)
        assert caught.value.sqlstate == "42P01"


def test_a_query_begins_again_where_its_table_changes_before_its_moment(tmp_path: Path) -> None:
    with closing(open_database(tmp_path)) as database:
        client, other = Client(database), Client(database)
        client.run(START)
        early = client.planned("SELECT b FROM t ORDER BY a")
        late = Planned(early.statement, early.catalog, lambda: plans.pop())
        other.run("ALTER TABLE t DROP COLUMN b; ALTER TABLE t ADD COLUMN b int DEFAULT 5")
        plans = [client.planned("SELECT b FROM t ORDER BY a"), late]
        result = client.session.execute_planned(late)
        assert [batch.column(0).to_pylist() for batch in result.batches or ()] == [[5, 5]]
        plans = [late] * 100
        with pytest.raises(SqlError) as caught:
            client.session.execute_planned(late)
        assert caught.value.sqlstate == "40001"


def test_a_copy_out_is_planned_again_where_its_table_changed_meanwhile(tmp_path: Path) -> None:
    with closing(open_database(tmp_path)) as database:
        client, other = Client(database), Client(database)
        client.run(START)
        late = client.planned("COPY t (b, c) TO STDOUT (FORMAT csv, FORCE_QUOTE (c))")
        other.run("ALTER TABLE t DROP COLUMN c; ALTER TABLE t ADD COLUMN c text DEFAULT 'new'")
        result = client.session.execute_planned(late)
        assert [(item.name, item.type.name) for item in result.outputs] == [("b", "text"), ("c", "text")]
        assert [batch.column(1).to_pylist() for batch in result.batches or ()] == [["new", "new"]]
        late = client.planned("COPY t TO STDOUT")
        other.run("DROP TABLE t")
        with pytest.raises(SqlError) as caught:
            client.session.execute_planned(late)
        assert caught.value.sqlstate == "42P01"


@pytest.mark.slow
def test_a_change_waits_for_an_alteration_and_is_planned_for_its_outcome(tmp_path: Path) -> None:
    with closing(open_database(tmp_path)) as database:
        client, other = Client(database), Client(database)
        client.run(START)
        late = client.planned("INSERT INTO t VALUES (7)")
        other.run("BEGIN; ALTER TABLE t ADD COLUMN z int NOT NULL DEFAULT 4")
        inserting = Beside(client.session.execute_planned, late)
        other.run("COMMIT")
        inserting.result()
        assert client.run("SELECT z FROM t") == [(4,), (4,), (4,)]


def test_a_reader_sees_the_table_as_it_was(tmp_path: Path) -> None:
    with closing(open_database(tmp_path)) as database:
        client, other = Client(database), Client(database)
        client.run(START)
        late = client.bind("SELECT * FROM t ORDER BY a")
        client.run("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM t")
        altering = Beside(other.run, "ALTER TABLE t DROP COLUMN b")
        wait_until(lambda: other.session.owner.awaited is not None, 60, "the wait for the reader")
        result = client.session.execute(late)
        assert sum(batch.num_rows for batch in result.batches or ()) == 2
        client.run("COMMIT")
        altering.result()
        assert client.run("SELECT * FROM t ORDER BY a") == [(1, 1), (2, None)]


@pytest.mark.parametrize(
    "change",
    [
        "INSERT INTO t VALUES (2, '{{1,2}}', 'x')",  # widens t.l
        "ALTER TABLE t ALTER l TYPE text USING 'x'",
        "ALTER TABLE t DROP COLUMN l; ALTER TABLE t ADD COLUMN l int",
    ],
)
def test_a_snapshot_has_no_values_of_a_later_type(tmp_path: Path, change: str) -> None:
    with closing(open_database(tmp_path)) as database:
        client, other = Client(database), Client(database)
        client.run("CREATE TABLE t (a int PRIMARY KEY, l int[], b text)")
        client.run("INSERT INTO t VALUES (1, '{1}', 'one')")
        client.run("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT 1")
        for text in change.split("; "):
            other.session.execute_planned(other.planned(text))
        assert client.run("SELECT a, b FROM t") == [(1, "one")], "columns that are as they were"
        with pytest.raises(SqlError) as caught:
            client.run("SELECT l FROM t")
        assert caught.value.sqlstate == "40001"
        client.run("ROLLBACK; BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT l FROM t")


def test_a_copy_that_waited_for_a_definition_goes_on_with_the_new_one(tmp_path: Path) -> None:
    with closing(open_database(tmp_path)) as database:
        client, other = Client(database), Client(database)
        client.run("CREATE TABLE t (a int, b text)")
        late = {text: client.planned(f"COPY {text} FROM STDIN") for text in ("t (a, b)", "t", "t (b)")}
        other.run("ALTER TABLE t ADD COLUMN z int DEFAULT 7; ALTER TABLE t ALTER a SET DEFAULT 3")
        rows = pa.RecordBatch.from_pydict({"a": pa.array([1, 2], pa.int32()), "b": ["x", "y"]})
        assert client.copy_planned(late["t (a, b)"], [rows]) == 2
        assert client.copy_planned(late["t (b)"], [rows.select(["b"])]) == 2
        found = client.run("SELECT * FROM t ORDER BY a, b")
        assert found == [(1, "x", 7), (2, "y", 7), (3, "x", 7), (3, "y", 7)]
        assert len(client.session.copy_in(late["t"]).statement.columns) == 3
        client.session.close()
        other.run("ALTER TABLE t DROP COLUMN b")
        with pytest.raises(SqlError) as caught:
            client.copy_planned(late["t (b)"], [rows.select(["b"])])
        assert caught.value.sqlstate == "42703"
        other.run("DROP TABLE t")
        with pytest.raises(SqlError) as caught:
            client.copy_planned(late["t"], [rows])
        assert caught.value.sqlstate == "42P01"


CONTINUOUS = """
CREATE TABLE side (k int PRIMARY KEY, w text NOT NULL, other int);
INSERT INTO side VALUES (1, 'one', 0), (2, 'two', 0);
CREATE FOREIGN TABLE clicks (k int, n int) SERVER stream;
CREATE VIEW low AS SELECT w, sum(n) AS n FROM clicks JOIN side USING (k) GROUP BY w;
CREATE VIEW high AS SELECT t.k, t.n, side.w FROM (SELECT k, sum(n) AS n FROM clicks GROUP BY k) t JOIN side USING (k);
INSERT INTO clicks VALUES (1, 10), (2, 20), (1, 5);
"""


@pytest.fixture(scope="module")
def standing(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    """A session in a database with continuous views, which its tests do not change."""
    with closing(open_database(tmp_path_factory.mktemp("standing"))) as database:
        client = Client(database)
        client.run(CONTINUOUS)
        yield client


@pytest.mark.parametrize(
    "text",
    [
        "ALTER TABLE side DROP COLUMN w",
        "ALTER TABLE side ALTER k TYPE bigint",
        "ALTER TABLE side ALTER w DROP NOT NULL",
        "ALTER TABLE side DROP CONSTRAINT side_pkey",
        "ALTER TABLE clicks DROP COLUMN k",
    ],
)
def test_what_a_continuous_view_stands_on_stays(standing: Client, text: str) -> None:
    with pytest.raises(SqlError) as caught:
        standing.run(text)
    assert caught.value.sqlstate in ("0A000", "2BP01")


@pytest.mark.slow
def test_continuous_views_stay_right_beside_what_does_not_concern_them(tmp_path: Path) -> None:
    with closing(open_database(tmp_path)) as database:
        client = Client(database)
        client.run(CONTINUOUS)
        client.run("ALTER TABLE side ADD COLUMN fresh int DEFAULT 3, ALTER other SET NOT NULL, ADD CHECK (k < 10)")
        client.run("ALTER TABLE side DROP COLUMN other")
        client.run("ALTER VIEW high RENAME TO higher; INSERT INTO clicks VALUES (2, 1)")
        client.run("UPDATE side SET w = 'ONE' WHERE k = 1")
        assert client.run("SELECT * FROM low ORDER BY w") == [("ONE", 15), ("two", 21)]
        assert client.run("SELECT * FROM higher ORDER BY k") == [(1, 15, "ONE"), (2, 21, "two")]
    with closing(open_database(tmp_path)) as database:
        client = Client(database)
        client.run("INSERT INTO clicks VALUES (1, 1)")
        assert client.run("SELECT * FROM higher ORDER BY k") == [(1, 16, "ONE"), (2, 21, "two")]


@pytest.mark.slow
def test_a_stream_under_another_name_feeds_its_views(tmp_path: Path) -> None:
    with closing(open_database(tmp_path)) as database:
        client = Client(database)
        client.run(CONTINUOUS)
        client.run("ALTER FOREIGN TABLE clicks RENAME TO taps; INSERT INTO taps VALUES (2, 2)")
        assert client.run("SELECT * FROM low ORDER BY w") == [("one", 15), ("two", 22)]
        client.run("CREATE FOREIGN TABLE clicks (k int, n int) SERVER stream; INSERT INTO clicks VALUES (1, 99)")
    with closing(open_database(tmp_path)) as database:
        client = Client(database)
        client.run("INSERT INTO taps VALUES (1, 1)")
        assert client.run("SELECT * FROM high ORDER BY k") == [(1, 16, "one"), (2, 22, "two")]


@pytest.mark.slow
def test_a_unique_index_and_comments_last(tmp_path: Path) -> None:
    with closing(open_database(tmp_path)) as database:
        client = Client(database)
        client.run(START + "CREATE UNIQUE INDEX i ON t (b); COMMENT ON TABLE t IS 'x'; COMMENT ON COLUMN t.b IS 'y'")
        client.run("ALTER TABLE t RENAME b TO bb")
    with closing(open_database(tmp_path)) as database:
        client = Client(database)
        with pytest.raises(SqlError, match='unique constraint "i"'):
            client.run("INSERT INTO t VALUES (3, 'one')")
        table = database.core.catalog.at("public", "t")
        assert isinstance(table, Table)
        assert (table.comment, [column.comment for column in table.columns]) == ("x", [None, "y", None])
        client.run("DROP INDEX i; INSERT INTO t VALUES (3, 'one')")


def test_a_view_that_takes_all_columns_keeps_those_of_its_creation(tmp_path: Path) -> None:
    with closing(open_database(tmp_path)) as database:
        client = Client(database)
        client.run(START + "CREATE VIEW v AS SELECT * FROM t; CREATE VIEW w AS SELECT a FROM t")
        client.run("ALTER TABLE t ADD COLUMN z int")
        assert client.run("SELECT * FROM v ORDER BY a LIMIT 1") == client.run(
            "SELECT a, b, c FROM t ORDER BY a LIMIT 1"
        )
        with pytest.raises(SqlError) as caught:
            client.run("ALTER TABLE t DROP COLUMN c")
        assert caught.value.sqlstate == "2BP01"
        client.run("ALTER TABLE t DROP COLUMN c CASCADE")
        assert client.notices == ["drop cascades to view v"]
        assert client.run("SELECT * FROM w ORDER BY a") == [(1,), (2,)]


@pytest.mark.parametrize(
    "index",
    [
        "CREATE INDEX ON t ((a + 1))",
        "CREATE UNIQUE INDEX ON t ((a + 1))",
        "CREATE INDEX ON t (b) WHERE a > 0",
        "CREATE UNIQUE INDEX ON t (b) WHERE a > 0",
    ],
)
def test_an_index_must_mean_something_over_a_column_of_another_type(index: str, tmp_path: Path) -> None:
    with closing(open_database(tmp_path)) as database:
        client = Client(database)
        client.run(f"CREATE TABLE t (a int, b text); {index}")
        with pytest.raises(SqlError) as caught:
            client.run("ALTER TABLE t ALTER COLUMN a TYPE text")
        assert caught.value.sqlstate == "42883"
        client.run("ALTER TABLE t ALTER COLUMN a TYPE bigint")
        client.run("INSERT INTO t VALUES (1, 'x')")


def test_explain_of_views_after_a_column_is_renamed(tmp_path: Path) -> None:
    with closing(open_database(tmp_path)) as database:
        client = Client(database)
        client.run(
            "CREATE TABLE t (a int, b int); CREATE TABLE u (a int); CREATE FOREIGN TABLE s (k int) SERVER stream"
        )
        joined = "SELECT t.b, count(*) FROM {} JOIN t ON t.a = {} GROUP BY t.b"
        client.run(f"CREATE MATERIALIZED VIEW rows AS {joined.format('u', 'u.a')}")
        client.run(f"CREATE VIEW live AS {joined.format('s', 's.k')}")
        client.run(f"CREATE VIEW frozen WITH (tables = 'frozen') AS {joined.format('s', 's.k')}")
        client.run("ALTER TABLE t RENAME COLUMN b TO c")
        for view in ("rows", "live", "frozen"):
            told = "\n".join(str(row[0]) for row in client.run(f"EXPLAIN SELECT * FROM {view}"))
            assert f"Continuous View {view}" in told
