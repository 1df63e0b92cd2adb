"""The changes of a table add up to the table, whatever transactions do to it, and are those of each transaction."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Final

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from catalog.objects import Table
from catalog.values.errors import SqlError
from executor.database.database import Database
from executor.subscriptions.change_watch import Name
from executor.tables import change_trace
from tests.executor.client import Client, open_database
from tests.executor.logs import LONG
from tests.executor.test_changes import Opened, Subscriber
from tests.rig.process import wait_until
from tests.rig.sampling import examples

KEYS: Final = st.integers(0, 9)
CHANGES: Final = st.one_of(
    st.builds(
        "INSERT INTO t VALUES ({0}, 'n{0}', {1}) ON CONFLICT (k) DO UPDATE SET v = t.v || 'x', n = {1}".format,
        KEYS,
        KEYS,
    ),
    st.builds(
        "INSERT INTO t SELECT g, 'g', {0} FROM generate_series({0}, {1}) g ON CONFLICT DO NOTHING".format, KEYS, KEYS
    ),
    st.builds("UPDATE t SET n = n + 1 WHERE k = {}".format, KEYS),
    st.builds("UPDATE t SET v = v, n = n WHERE k % 3 = {} % 3".format, KEYS),
    st.builds("UPDATE t SET k = k + 20 WHERE k = {}".format, KEYS),
    st.builds("DELETE FROM t WHERE k = {}".format, KEYS),
    st.builds("DELETE FROM parents WHERE k = {}".format, KEYS),
    st.builds("UPDATE parents SET k = k + 30 WHERE k = {}".format, KEYS),
    st.builds(
        "INSERT INTO parents VALUES ({0}) ON CONFLICT DO NOTHING;"
        " INSERT INTO bag VALUES ({0}, NULL), ({0}, 'b')".format,
        KEYS,
    ),
    st.builds("DELETE FROM bag WHERE p % 2 = {} % 2".format, KEYS),
    st.builds("UPDATE bag SET v = coalesce(v, '') || 'y' WHERE p = {}".format, KEYS),
    st.builds(
        "MERGE INTO t USING (VALUES ({0}, 'm'), ({1}, 'o')) s (k, v) ON t.k = s.k WHEN MATCHED AND t.n > 3 THEN DELETE"
        " WHEN MATCHED THEN UPDATE SET v = s.v WHEN NOT MATCHED THEN INSERT VALUES (s.k, s.v, 0)".format,
        KEYS,
        st.just(11),
    ),
    st.sampled_from(["TRUNCATE t", "TRUNCATE bag", "TRUNCATE parents CASCADE"]),
)
STEPS: Final = st.one_of(
    CHANGES,
    st.builds(
        lambda some, rest, end: ("block", some, rest, end),
        st.lists(CHANGES, max_size=3),
        st.lists(CHANGES, max_size=2),
        st.sampled_from(["COMMIT", "ROLLBACK"]),
    ),
    st.sampled_from(["restart", "index"]),
)
DEFINITIONS: Final = (
    "CREATE TABLE t (k int PRIMARY KEY, v text, n int); CREATE TABLE parents (k int PRIMARY KEY);"
    "CREATE TABLE bag (p int REFERENCES parents ON DELETE CASCADE ON UPDATE CASCADE, v text)"
)


@pytest.fixture(scope="module")
def opened(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Opened]:
    made = Opened(tmp_path_factory.mktemp("table_changes"))
    yield made
    made.database.close()


@pytest.mark.slow
@given(steps=st.lists(STEPS, max_size=12), budget=st.sampled_from([0, 200, 1 << 20]))
@settings(max_examples=examples(30), deadline=None, derandomize=True, suppress_health_check=[*HealthCheck])
def test_changes_add_up_to_the_table(opened: Opened, steps: list[object], budget: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(change_trace, "BUDGET", budget)
        play(opened, steps)


def play(opened: Opened, steps: list[object]) -> None:
    client = Client(opened.database)
    client.run(f"DROP TABLE IF EXISTS t, bag, parents; {DEFINITIONS}")
    readers = [Subscriber(opened.database, name) for name in ("t", "bag", "parents")]
    for step in steps:
        if step == "restart":
            opened.restart()
            client = Client(opened.database)
            for reader in readers:  # the log has all
                reader.connect(opened.database, reader.scan._mark.after)
        elif step == "index":
            client.run("CREATE INDEX ON t (n)")
        else:
            run(client, step)
        for reader in readers:
            reader.check()


def run(client: Client, step: object) -> None:
    """Runs a statement, or a block of them with a savepoint; what fails changes nothing."""
    statements = [step]
    if isinstance(step, tuple):
        _, some, rest, end = step
        statements = ["BEGIN", *some, "SAVEPOINT a", *rest, "ROLLBACK TO a", *some, end]
    try:
        for statement in statements:
            client.run(str(statement))
    except SqlError:
        if client.session.status != "I":
            client.run("ROLLBACK")


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    with closing(open_database(tmp_path)) as found:
        yield found


def test_each_transactions_changes_have_its_lsn(database: Database) -> None:
    client = Client(database)
    client.run("CREATE TABLE t (k int PRIMARY KEY, v text)")
    reader = Subscriber(database, "t")
    reader.take()
    begin = database.core.sequencer.visible
    client.run("INSERT INTO t VALUES (1, 'a'), (2, 'b')")
    client.run("UPDATE t SET v = 'c' WHERE k = 1")
    client.run("UPDATE t SET v = v")
    client.run("BEGIN; INSERT INTO t VALUES (3, 'd'); DELETE FROM t WHERE k IN (2, 3); COMMIT")
    interval = reader.scan.take(True)
    assert interval is not None
    assert interval.rows.select(["__at", "__diff", "0", "1"]).to_pylist() == [
        {"__at": begin + 1, "__diff": 1, "0": 1, "1": "a"},
        {"__at": begin + 1, "__diff": 1, "0": 2, "1": "b"},
        {"__at": begin + 2, "__diff": -1, "0": 1, "1": "a"},
        {"__at": begin + 2, "__diff": 1, "0": 1, "1": "c"},
        {"__at": begin + 4, "__diff": -1, "0": 2, "1": "b"},
    ]


def test_no_change_is_told_that_a_crash_may_undo(database: Database) -> None:
    client, sequencer = Client(database), database.core.sequencer
    client.run("CREATE TABLE t (k int PRIMARY KEY)")
    client.session.synchronous_commit = False
    client.run("INSERT INTO t VALUES (1)")
    reader = Subscriber(database, "t")
    assert sequencer.durable == sequencer.visible
    client.run("INSERT INTO t VALUES (2)")
    assert reader.take() == 2
    assert sequencer.durable >= reader.lsn == sequencer.visible


@pytest.mark.parametrize(
    "change",
    [
        "ALTER TABLE t ADD COLUMN w int DEFAULT 1",
        "ALTER TABLE t DROP COLUMN v",
        "ALTER TABLE t RENAME COLUMN v TO w",
        "ALTER TABLE t ALTER COLUMN k TYPE bigint",
        "ALTER TABLE t ALTER COLUMN v TYPE text USING v || '!'",
    ],
)
def test_other_columns_end_the_changes(tmp_path: Path, change: str) -> None:
    with closing(open_database(tmp_path)) as database:
        client = Client(database)
        client.run("CREATE TABLE t (k int PRIMARY KEY, v text); INSERT INTO t VALUES (1, 'a')")
        reader = Subscriber(database, "t")
        reader.check()
        before = database.core.sequencer.visible
        client.run(change)
        with pytest.raises(SqlError) as caught:
            reader.scan.check_source()
        assert caught.value.sqlstate == "72000"
        refuse(database, before)
        later = Subscriber(database, "t")
        client.run("INSERT INTO t VALUES (2)")
        later.check()
    with closing(open_database(tmp_path)) as database:
        refuse(database, before)
        later.connect(database, later.lsn)
        later.check()


def refuse(database: Database, since: int) -> None:
    """Changes since an LSN before the definition are refused."""
    reader = Subscriber(database, "t")
    with pytest.raises(SqlError) as caught:
        reader.connect(database, since)
    assert caught.value.sqlstate == "72000"
    assert caught.value.hint


def test_changes_behind_a_restart_go_on(tmp_path: Path) -> None:
    with closing(open_database(tmp_path)) as database:
        client = Client(database)
        client.run("CREATE TABLE t (k int PRIMARY KEY, v text); INSERT INTO t VALUES (1, 'a')")
        reader = Subscriber(database, "t")
        reader.check()
        client.run("UPDATE t SET v = 'b'")
        client.run("INSERT INTO t VALUES (2, 'c')")
    with closing(open_database(tmp_path)) as database:
        reader.connect(database, reader.lsn)
        reader.check()


@pytest.mark.parametrize(
    "change",
    [
        "GRANT SELECT (v) ON t TO PUBLIC",
        "COMMENT ON COLUMN t.v IS 'words'",
        "ALTER TABLE t ALTER COLUMN v SET DEFAULT 'd'",
        "ALTER TABLE t ALTER COLUMN k SET NOT NULL",
        "ALTER TABLE t ADD CHECK (k > 0)",
        "ALTER TYPE mood ADD VALUE 'sad'",
        "CREATE INDEX ON t (v)",
    ],
)
def test_what_leaves_rows_as_they_are_ends_no_changes(database: Database, change: str) -> None:
    client = Client(database)
    client.run("CREATE TYPE mood AS ENUM ('good'); CREATE TABLE t (k int PRIMARY KEY, v text, m mood)")
    client.run("INSERT INTO t VALUES (1, 'a', 'good')")
    reader = Subscriber(database, "t")
    reader.check()
    client.run(change)
    reader.scan.check_source()
    client.run("UPDATE t SET v = 'b'")
    reader.check()


@pytest.mark.parametrize("definition", ["CREATE TABLE n (k int)", "ALTER TABLE t DROP COLUMN k"])
def test_changes_of_what_a_transaction_defines_are_refused(database: Database, definition: str) -> None:
    client = Client(database)
    client.run("CREATE TABLE t (k int, v int)")
    client.run(f"BEGIN; {definition}")
    with pytest.raises(SqlError) as caught:
        client.run(f"SELECT * FROM millstream.changes('{definition.split()[2]}')")
    assert caught.value.sqlstate == "0A000"
    client.run("ROLLBACK")


def test_a_listener_goes_on_behind_changes_that_are_gone(database: Database) -> None:
    Client(database).run("CREATE TABLE t (k int)")
    (oid,) = (item.oid for item in database.core.catalog.objects.values() if item.name == "t")
    told: list[tuple[str, int, int]] = []
    watch = database.change_watch
    watch.tell = lambda name, lsn, rows: told.append((name.name, lsn, rows))
    feed = database.changes.feed(oid)
    assert watch._delta(Name("t", ("public",), "me"), feed, -1, 1) == ()
    assert told == [("t", 1, 0)]


def test_a_dropped_table_ends_its_readers(database: Database) -> None:
    client = Client(database)
    client.run("CREATE TABLE t (k int)")
    reader = Subscriber(database, "t")
    client.run("DROP TABLE t")
    with pytest.raises(SqlError) as caught:
        reader.scan.check_source()
    assert caught.value.sqlstate == "42P01"


def test_what_the_log_has_forgotten_is_refused(tmp_path: Path) -> None:
    with closing(open_database(tmp_path, log_segment_bytes=1 << 16)) as database:
        client = Client(database)
        client.run("CREATE TABLE t (k int PRIMARY KEY, v text)")
        for number in range(30):
            client.run(f"INSERT INTO t SELECT {number}, string_agg(md5(g::text), '') FROM generate_series(1, 500) g")
        wait_until(lambda: is_recycled(database), LONG, "the log to forget what the tables have")
        refuse(database, 2)


def is_recycled(database: Database) -> bool:
    """Whether the log has forgotten its first records."""
    database.core.tables.backlog.apply()
    database.frontiers.release()
    return database.core.log.first_lsn > 2


def test_a_log_that_lost_its_end_is_refused(tmp_path: Path) -> None:
    with closing(open_database(tmp_path)) as database:
        client = Client(database)
        client.run("CREATE TABLE t (k int PRIMARY KEY)")
        since = database.core.sequencer.visible
        client.run("INSERT INTO t VALUES (1)")
        client.run("INSERT INTO t SELECT g FROM generate_series(2, 10) g")
        database.core.tables.backlog.apply()
        folder, log = database.core.options.server_directory, database.core.options.log_directory
    (folder / "control").unlink()
    for path in log.glob("*.log"):
        path.unlink()
    for _ in range(2):
        with closing(open_database(tmp_path)) as database:
            assert Client(database).run("SELECT count(*) FROM t") == [(10,)]
            refuse(database, since)
            later = Subscriber(database, "t")
            Client(database).run("UPDATE t SET k = -k WHERE k = (SELECT max(k) FROM t); UPDATE t SET k = abs(k)")
            later.check()


def test_a_table_without_readers_keeps_nothing(database: Database) -> None:
    client = Client(database)
    client.run("CREATE TABLE t (k int PRIMARY KEY)")
    client.run("INSERT INTO t VALUES (1)")
    assert not database.core._table_changes
    table = database.core.catalog.at("public", "t")
    assert isinstance(table, Table)
    with database.core.sequencer.lock:
        trace = database.core.changes_of(table)
    client.run("INSERT INTO t VALUES (2)")
    found = trace.delta(0, database.core.sequencer.visible)
    assert found is not None
    assert found.num_rows == 2
    assert trace.delta(-1, 1) is None
    database.core.forget_changes(trace)
    assert not database.core._table_changes


@pytest.mark.parametrize(
    ("text", "state"),
    [
        ("SELECT * FROM millstream.changes('f')", "42809"),
        ("SELECT * FROM millstream.changes('p')", "0A000"),
        ("CREATE VIEW w AS SELECT * FROM millstream.changes('t')", "0A000"),
        ("SELECT * FROM millstream.changes('nowhere')", "42P01"),
    ],
)
def test_other_relations_are_refused(database: Database, text: str, state: str) -> None:
    client = Client(database)
    client.run("CREATE TABLE t (k int); CREATE TEMPORARY TABLE p (k int); CREATE VIEW f AS SELECT * FROM t")
    with pytest.raises(SqlError) as caught:
        client.run(text)
    assert caught.value.sqlstate == state
