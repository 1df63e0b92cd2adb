"""Rows of tables by key: rows found without an engine equal those of the engine, whatever sessions do in between."""

from __future__ import annotations

import math
import random
from contextlib import closing
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from catalog.values.errors import SqlError
from executor.database.database import Database
from executor.key_access.point_sources import point_reader
from executor.rows import table_rows
from executor.traces import index, keyed_rows
from executor.upkeep import frontiers
from planner.statements.statement import Query
from tests.executor.client import Client, key_services, open_database
from tests.rig.crash import copy_crashed

Rows = list[tuple[Any, ...]]

_KEY = st.integers(0, 7)
_NAME = st.sampled_from(["'a'", "'b'", "'c'", "NULL"])
_CHANGES = st.one_of(
    st.builds("INSERT INTO {{t}} VALUES ({}, {}, {}) ON CONFLICT DO NOTHING".format, _KEY, _NAME, _KEY),
    st.builds("INSERT INTO {{t}} VALUES ({}, {}, {})".format, _KEY, _NAME, _KEY),
    st.builds("UPDATE {{t}} SET n = n + 1 WHERE k = {}".format, _KEY),
    st.builds("UPDATE {{t}} SET n = n + {} WHERE k > {}".format, _KEY, _KEY),
    st.builds("UPDATE {{t}} SET k = {} WHERE k = {}".format, _KEY, _KEY),
    st.builds("UPDATE {{t}} SET name = {} WHERE k = {}".format, _NAME, _KEY),
    st.builds("UPDATE {{t}} SET k = k + 1 WHERE k >= {}".format, _KEY),
    st.builds("DELETE FROM {{t}} WHERE k = {}".format, _KEY),
    st.builds("DELETE FROM {{t}} WHERE k < {}".format, st.integers(0, 3)),
    st.builds(
        "MERGE INTO {{t}} USING (VALUES ({}, {})) AS s (k, n) ON t.k = s.k WHEN MATCHED THEN UPDATE SET n = s.n"
        " WHEN NOT MATCHED THEN INSERT VALUES (s.k, NULL, s.n)".replace("{{t}}", "{{t}} AS t").format,
        _KEY,
        _KEY,
    ),
    st.sampled_from(["TRUNCATE {t}", "ALTER TABLE {t} ALTER n SET DEFAULT 3"]),
)
_CONTROL = st.sampled_from(
    [
        "BEGIN",
        "COMMIT",
        "ROLLBACK",
        "SAVEPOINT s",
        "ROLLBACK TO s",
        "RELEASE s",
        "BEGIN ISOLATION LEVEL REPEATABLE READ",
    ]
)
_STEPS = st.lists(st.tuples(st.integers(0, 1), _CHANGES | _CONTROL), min_size=4, max_size=16)


def _by_key(database: Database, client: Client, text: str, *parameters: Any) -> Rows | None:
    """The row found by key; None if an engine must be asked."""
    query = client.bind(text)
    assert isinstance(query, Query)
    reader = point_reader(*key_services(database), query, database.core.catalog)
    assert reader is not None, text
    peeked, found = reader.peek(parameters), reader.read(parameters)
    if found is None:
        assert peeked is None
        return None
    rows = [
        _row(row.table, row.place, reader.picked.columns)
        for row in (found, peeked or found, reader.peek(parameters) or found)
    ]
    assert rows[0] == rows[1] == rows[2]
    return rows[0]


def _row(table: pa.Table, place: int | None, columns: tuple[str, ...]) -> Rows:
    return [] if place is None else [tuple(table.column(name)[place].as_py() for name in columns)]


def _check(database: Database, table: str) -> int:
    """Compares every key; returns how many were found without an engine."""
    client, answered = Client(database), 0
    asked = client.run(f"SELECT k, name, n FROM {table}")
    assert isinstance(asked, list)
    for column, values in (("k", range(10)), ("name", "abc")):
        for value in values:
            kind = "int" if column == "k" else "text"
            found = _by_key(database, client, f"SELECT k, name, n FROM {table} WHERE {column} = $1::{kind}", value)
            if found is not None:
                answered += 1
                assert found == [row for row in asked if row[column == "name"] == value], (column, value)
    return answered


class _Sessions:
    """Two sessions; one gives up instead of waiting for the other."""

    def __init__(self, database: Database, table: str) -> None:
        self.table = table
        self.clients = [Client(database), Client(database)]

    def run(self, who: int, text: str) -> None:
        session = self.clients[who].session
        session.lock_timeout = 0.001
        try:
            self.clients[who].run(text.format(t=self.table))
        except SqlError as error:
            assert error.sqlstate[:2] in ("23", "25", "40", "55", "21", "3B"), error

    def close(self) -> None:
        for client in self.clients:
            client.session.close()


@pytest.fixture(autouse=True)
def _few_make_a_difference(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(table_rows, "WORN_ROWS", 12)
    monkeypatch.setattr(keyed_rows, "_GATHERED", 3)


@pytest.fixture
def rows_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    """However long a test takes, only reads apply waiting rows to the engine's file."""
    monkeypatch.setattr(frontiers, "_LATE", math.inf)


@pytest.mark.slow
@settings(max_examples=8, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps=_STEPS)
def test_reads_by_key_are_the_engines(database: Database, steps: list[tuple[int, str]]) -> None:
    client = Client(database)
    client.run("DROP TABLE IF EXISTS kt; CREATE TABLE kt (k int PRIMARY KEY, name text UNIQUE, n int)")
    client.run("INSERT INTO kt VALUES (1, 'a', 10), (2, NULL, 20), (3, NULL, 30)")
    assert _check(database, "kt") == 13
    sessions = _Sessions(database, "kt")
    for who, text in steps:
        sessions.run(who, text)
        if not database.core.tables.locks.barriers:  # else readers wait
            _check(database, "kt")
    sessions.close()
    assert _check(database, "kt") > 0


@pytest.mark.slow
@pytest.mark.usefixtures("rows_wait")
def test_what_is_acknowledged_survives_a_crash(tmp_path: Path) -> None:
    """The tables' file lacks the waiting rows; the log has them."""
    chance, rows = random.Random(3), dict[int, int]()
    for number in range(3):
        before, after = tmp_path / str(number), tmp_path / str(number + 1)
        with closing(open_database(before)) as database:
            client = Client(database)
            if not number:
                client.run("CREATE TABLE kt (k int PRIMARY KEY, name text UNIQUE, n int); CREATE TABLE h (n int)")
            assert client.run("SELECT k, n FROM kt ORDER BY k") == sorted(rows.items())
            for _ in range(20):
                key, value = chance.randrange(8), chance.randrange(1 << 30)
                if rows.pop(key, None) is not None:
                    client.run(f"DELETE FROM kt WHERE k = {key}")
                client.run(f"BEGIN; INSERT INTO kt VALUES ({key}, NULL, {value}); INSERT INTO h VALUES ({key}); COMMIT")
                other = chance.choice(list(rows) or [key])
                client.run(f"UPDATE kt SET n = n + 1 WHERE k = {other}")
                rows = {**rows, key: value}
                rows[other] += 1
            assert database.core.tables.backlog.first_lsn is not None
            copy_crashed(before, after)  # as a process leaves it that dies
            _check(database, "kt")
    with closing(open_database(tmp_path / "3")) as database:
        assert Client(database).run("SELECT k, n FROM kt ORDER BY k") == sorted(rows.items())
        assert Client(database).run("SELECT count(*) FROM h") == [(60,)]


@pytest.mark.usefixtures("rows_wait")
def test_rows_wait_until_an_engine_reads_them(database: Database, client: Client) -> None:
    client.run("CREATE TABLE waiting (k int PRIMARY KEY, n int); INSERT INTO waiting VALUES (1, 1), (2, 2)")
    assert client.run("SELECT count(*) FROM waiting") == [(2,)]
    for _ in range(5):
        client.run("UPDATE waiting SET n = n + 1 WHERE k = 1")
    client.run("BEGIN; UPDATE waiting SET n = n + 1 WHERE k = 1")
    assert client.run("SELECT n FROM waiting WHERE k = 1") == [(7,)]
    assert client.session.transaction is not None and client.session.transaction.write is not None
    assert not client.session.transaction.write.is_open
    assert database.core.tables.backlog.first_lsn is not None
    other = Client(database, "own")
    assert _by_key(database, other, "SELECT n FROM waiting WHERE k = 1") == [(6,)]
    assert other.run("SELECT sum(n) FROM waiting") == [(8,)]
    assert database.core.tables.backlog.first_lsn is None
    client.run("UPDATE waiting SET n = n + 1 WHERE n > 0")
    assert client.session.transaction.write.is_open
    client.run("COMMIT")
    assert client.run("SELECT n FROM waiting ORDER BY n") == [(3,), (8,)]


def test_many_rows_and_keys_of_several_columns(
    database: Database, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(index, "MANY", 100)
    client.run("CREATE TABLE many (a bigint, b text, c uuid UNIQUE, d numeric(10, 2), UNIQUE (b, a), UNIQUE (d))")
    client.run(
        "INSERT INTO many SELECT i * 1000000007::bigint, CASE WHEN i % 9 > 0 THEN 'x' || i % 50 END,"
        " md5(i::text)::uuid, i FROM generate_series(1, 500) AS g (i)"
    )
    for i in (1, 9, 77, 500, 501):
        text = f"SELECT a, b, c::text FROM many WHERE a + 0 = {i * 1000000007}"
        asked = client.run(text)
        key = (i * 1000000007, f"x{i % 50}")
        found = _by_key(database, client, "SELECT a, b, c FROM many WHERE a = $1::bigint AND $2::text = b", *key)
        assert found == (asked if i % 9 else [])
        for row in asked:
            assert _by_key(database, client, "SELECT a, b, c FROM many WHERE c = $1::uuid", row[2]) == asked
    assert _by_key(database, client, "SELECT a FROM many WHERE d = 3::numeric(10, 2)") is None  # an object per row


def test_what_is_no_read_by_key(database: Database, client: Client) -> None:
    client.run("CREATE TABLE no (k int PRIMARY KEY, f float8 UNIQUE, c char(3) UNIQUE, n int)")
    client.run("CREATE TEMPORARY TABLE own_one (k int PRIMARY KEY)")
    for condition in ("n = 1", "f = 1", "c = 'a'", "k = 1 AND n = 2", "k > 1", "k = 1.5", "k = 1 OR k = 2", "k = n"):
        query = client.bind(f"SELECT n FROM no WHERE {condition}")
        assert isinstance(query, Query)
        assert point_reader(*key_services(database), query, client.session.catalog) is None, condition
    query = client.bind("SELECT k FROM own_one WHERE k = 1")
    assert isinstance(query, Query)
    assert point_reader(*key_services(database), query, client.session.catalog) is None
    client.session.discard_temporary()


@pytest.mark.slow
def test_reads_pay_for_the_rows_and_memory_is_bounded(tmp_path: Path) -> None:
    with closing(open_database(tmp_path, trace_memory=300_000)) as database:
        client = Client(database)
        for name, rows in (("large", 20_000), ("one", 3_000), ("two", 3_000)):
            client.run(f"CREATE TABLE {name} (k int PRIMARY KEY, n int)")
            client.run(f"INSERT INTO {name} SELECT i, -i FROM generate_series(1, {rows}) AS g (i)")

        def read(name: str) -> Rows | None:
            return _by_key(database, client, f"SELECT n FROM {name} WHERE k = $1::int", 7)

        assert [read("large") for _ in range(8)] == [None] * 8  # too large
        assert read("one") == read("two") == [(-7,)]
        client.run("DELETE FROM large WHERE k > 1000")
        assert [read("large") for _ in range(8)][-1] == [(-7,)]  # as many as the deleted rows are
    with closing(open_database(tmp_path, trace_memory=0)) as database:
        client = Client(database)
        assert _by_key(database, client, "SELECT n FROM one WHERE k = $1::int", 7) is None


def test_a_change_by_an_engine_pays_as_many_reads(database: Database, client: Client) -> None:
    for name in ("read", "changed"):
        client.run(f"CREATE TABLE {name} (k int PRIMARY KEY, n int)")
        client.run(f"INSERT INTO {name} SELECT i, 0 FROM generate_series(1, 20000) AS g (i)")
    assert _by_key(database, client, "SELECT n FROM read WHERE k = $1::int", 7) is None
    client.run("UPDATE changed SET n = n + 1 WHERE k = 7")
    assert _by_key(database, client, "SELECT n FROM read WHERE k = $1::int", 7) is None
    assert _by_key(database, client, "SELECT n FROM changed WHERE k = $1::int", 7) == [(1,)]
