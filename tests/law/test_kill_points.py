"""kill -9 where a change, a state or a program is half-way to the disk: no change is lost or doubled.

A client changes tables and streams until the server ends at a named point (``executor.failpoints``), with or without an
answer to its last transaction. After a restart all rows of that transaction are there or none, and each view equals its
query over tables to which every transaction has written the streams' rows, too. Then the same goes on without a kill.
"""

from __future__ import annotations

import itertools
from typing import Any, Final

import psycopg
import pytest

from executor.failpoints import VARIABLE
from tests.rig.sampling import sample
from tests.rig.server import Millstream

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

#: By point, how many times the server gets there before it ends.
POINTS: Final = {
    "record-written": (7, 40),
    "record-synced": (8, 41),
    "tables-kept": (9, 42),
    "run-stored": (1, 6, 30),
    "run-committed": (1, 7, 31),
    "merge-stored": (1, 3),
    "merge-committed": (1, 4),
    "view-prepared": (1, 3),
    "view-logged": (1, 3),
    "program-prepared": (1, 2),
    "program-logged": (1, 2),
}
CASES: Final = [(name, times) for name, all_times in POINTS.items() for times in all_times]
SAMPLE: Final = (
    ("record-synced", 41),
    ("merge-committed", 1),
    ("program-logged", 1),
)
SETTINGS: Final = {
    "maintenance_rows": 20,
    "maintenance_idle": 0.05,
    "log_segment_bytes": "1MB",
    "spark_enabled": False,
    "maintenance_engine": "embedded",
}
TABLES: Final = """
CREATE TABLE ledger (n integer PRIMARY KEY);
CREATE TABLE accounts (id integer PRIMARY KEY, town integer, total integer);
CREATE TABLE towns (id integer PRIMARY KEY, name text);
INSERT INTO towns SELECT n, 'town ' || n % 3 FROM generate_series(0, 6) AS g (n);
CREATE FOREIGN TABLE ordered (n integer, account integer, at timestamp) SERVER stream
    OPTIONS (history 'all', watermark 'at');
CREATE FOREIGN TABLE paid (n integer, amount integer, at timestamp) SERVER stream
    OPTIONS (history 'all', watermark 'at - interval ''10 seconds''');
CREATE TABLE all_ordered (n integer, account integer, at timestamp);
CREATE TABLE all_paid (n integer, amount integer, at timestamp);
"""
#: Each view's query; over streams, whose rows are in tables with ``all_`` before their names, too.
VIEWS: Final = {
    "by_town": "SELECT name, count(*) AS accounts, sum(total) AS total, max(total) AS most FROM accounts "
    "JOIN towns ON town = towns.id GROUP BY name",
    "grouped": "SELECT account, count(*) AS orders, sum(n) AS sum FROM ordered GROUP BY account",
    "met": "SELECT account, count(*) AS times, sum(amount) AS amount FROM ordered JOIN paid ON ordered.n = paid.n "
    "GROUP BY account",
    "paired": "SELECT account, count(*) AS pairs, sum(amount) AS amount FROM ordered JOIN paid "
    "ON ordered.n % 3 = paid.n % 3 AND paid.at BETWEEN ordered.at - interval '3 seconds' "
    "AND ordered.at + interval '5 seconds' GROUP BY account",
    "named": "SELECT name, count(*) AS orders, sum(n) AS sum FROM ordered JOIN towns ON account = id GROUP BY name",
    "changed": "SELECT amount, count(*) AS times, sum(100 / (n + 1)) AS parts FROM paid GROUP BY amount",
    "bounded": "SELECT date_trunc('minute', at) AS minute, count(*) AS n FROM paid GROUP BY date_trunc('minute', at)",
}
OPTIONS: Final = {"by_town": "WITH (method = 'incremental')", "bounded": "WITH (retention = '1000 days')"}
#: The definitions that the view ``replaced`` has by turns.
REPLACED: Final = (
    "SELECT 0 AS version, amount AS key, count(*) AS value FROM paid GROUP BY amount",
    "SELECT 1 AS version, n % 5 AS key, count(*) AS value FROM paid GROUP BY n % 5",
)
Connection = psycopg.Connection[Any]
#: Transactions within which the point must have come.
MOST: Final = 400


@pytest.mark.parametrize(("point", "times"), sample(CASES, SAMPLE))
def test_no_change_is_lost_or_doubled(point: str, times: int) -> None:
    with Millstream(settings=SETTINGS) as server:
        with server.connect() as client:
            _create(client)
            for number in range(1, 4):
                _change(client, number)
        server.environment = {VARIABLE: f"{point}:{times}"}
        server.restart()
        answered = _changed_until_the_end(server, 4)
        server.environment = {}
        server.restart()
        with server.connect() as client:
            last = _last(client)
            assert last in (answered, answered + 1)
            _check(client)
            for number in range(last + 1, last + 8):
                _change(client, number)
                _define(client, number)
            _check(client)
        server.kill9()
        server.restart()
        with server.connect() as client:
            assert _last(client) == last + 7
            _check(client)


def _create(client: Connection) -> None:
    client.execute(TABLES.encode())
    for name, query in VIEWS.items():
        kind = "MATERIALIZED VIEW" if name == "by_town" else "VIEW"
        client.execute(f"CREATE {kind} {name} {OPTIONS.get(name, '')} AS {query}".encode())
    client.execute(f"CREATE VIEW replaced AS {REPLACED[0]}".encode())


def _change(client: Connection, number: int) -> None:
    """A transaction that changes all tables and streams."""
    account, amount = number % 7, number % 11
    with client.transaction():
        for before in ("", "all_"):
            at = f"timestamp '2026-01-01' + {number} * interval '1 second'"
            rows = f"({number}, {account}, {at}), ({-number}, 3, {at})"
            client.execute(f"INSERT INTO {before}ordered VALUES {rows}".encode())
            client.execute(f"INSERT INTO {before}paid VALUES ({number}, {amount}, {at})".encode())
        client.execute(
            f"INSERT INTO accounts VALUES ({account}, {number % 5}, {number}) "
            "ON CONFLICT (id) DO UPDATE SET town = excluded.town, total = accounts.total + excluded.total".encode()
        )
        client.execute(f"INSERT INTO ledger VALUES ({number})".encode())
        if number % 6 == 0:
            client.execute(f"DELETE FROM accounts WHERE id = {(account + 1) % 7}".encode())


def _define(client: Connection, number: int) -> None:
    """Now and then a read, or other programs."""
    if number % 3 == 0:
        client.execute(f"SELECT * FROM {list(VIEWS)[number % len(VIEWS)]}".encode())
    if number % 4 == 0:
        client.execute(f"ALTER VIEW changed SET (on_error = '{('null', 'fail', 'skip')[number // 4 % 3]}')".encode())
        client.execute(f"ALTER VIEW bounded SET (retention = '{1000 - number} days')".encode())
    if number % 5 == 0:
        client.execute(f"CREATE OR REPLACE VIEW replaced WITH (restart = true) AS {REPLACED[number // 5 % 2]}".encode())


def _changed_until_the_end(server: Millstream, first: int) -> int:
    """The last transaction that was answered before the server ended."""
    answered = first - 1
    try:
        with server.connect() as client:
            for number in itertools.count(first):
                assert number < MOST, "the server has not got to the point"
                _change(client, number)
                answered = number
                _define(client, number)
    except psycopg.OperationalError:
        server.wait(60)
    return answered


def _last(client: Connection) -> int:
    """The last transaction of which there is something; all before it are there."""
    ((count, last),) = client.execute("SELECT count(*), max(n) FROM ledger").fetchall()
    assert count == last
    return int(last)


def _check(client: Connection) -> None:
    """Each view equals its query, and each stream's history what tables have of it."""
    version = client.execute("SELECT max(version) FROM replaced").fetchone()
    assert version is not None
    for name, query in {**VIEWS, "replaced": REPLACED[version[0]]}.items():
        wanted = query.replace("ordered", "all_ordered").replace("paid", "all_paid")
        _assert_same(client, f"SELECT * FROM {name}", wanted)
    for stream in ("ordered", "paid"):
        _assert_same(client, f"SELECT * FROM millstream.history('{stream}')", f"SELECT * FROM all_{stream}")


def _assert_same(client: Connection, one: str, other: str) -> None:
    for left, right in ((one, other), (other, one)):
        assert client.execute(f"({left}) EXCEPT ALL ({right})".encode()).fetchall() == [], (left, right)
