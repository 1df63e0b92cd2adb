"""Statements that compute for long without checking for a cancel: each ends soon after it is cancelled, times out or is
terminated, or the server ends, and another session is served meanwhile.

The limit tests liveness; the actual times are printed.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import time
from collections.abc import Callable, Iterator
from itertools import product
from typing import Any, Final

import psycopg
import pytest

from tests.rig.beside import Beside
from tests.rig.process import wait_until
from tests.rig.sampling import sample
from tests.rig.server import Millstream
from tests.server.wire import Wire

Client = psycopg.Connection[Any]
Run = Callable[[Client], object]

SETTINGS = {"maintenance_engine": "embedded", "spark_enabled": False, "max_connections": 40}
#: Seconds in which a statement ends on a busy machine.
LIVES: Final = 30
#: Errors with which a statement may end: cancelled, terminated, or over a limit.
ENDS: Final = ("57014", "57P01", "54000", "54001", "53200")

SETUP = """
CREATE TABLE numbers (a integer, b integer);
CREATE TABLE texts (t text);
CREATE SEQUENCE counter;
INSERT INTO numbers SELECT n, n % 10 FROM generate_series(1, 3000) n;
CREATE FOREIGN TABLE arrivals (a integer, b integer) SERVER stream;
CREATE VIEW totals AS SELECT b, sum(a) AS total FROM arrivals GROUP BY b;
INSERT INTO texts SELECT regexp_replace(repeat('a', 10), 'a', 'b', 'g') RETURNING 1;
"""


def statement(text: str) -> Run:
    return lambda client: client.execute(text.encode()).fetchall()


def copied(options: str, data: bytes) -> Run:
    def run(client: Client) -> None:
        with client.cursor().copy(f"COPY texts FROM STDIN {options}".encode()) as copy:
            for start in range(0, len(data), 1 << 16):
                copy.write(data[start : start + (1 << 16)])
            client.execute("SELECT pg_sleep(100)") if not data else None

    return run


JOINS = "SELECT count(*) FROM numbers t0" + "".join(f" JOIN numbers t{n} ON t{n}.a = t{n - 1}.b" for n in range(1, 400))
CTES = "WITH c0 AS (SELECT a FROM numbers)" + "".join(
    f", c{n} AS (SELECT a + 1 AS a FROM c{n - 1} GROUP BY a)" for n in range(1, 500)
)
DEEP = '{"a":' * 500 + "1" + "}" * 500

STATEMENTS: Final[dict[str, Run]] = {
    # planning
    "unions": statement("SELECT 1" + " UNION ALL SELECT 1" * 20_000),
    "unions of tables": statement("SELECT a FROM numbers" + " UNION ALL SELECT b FROM numbers" * 1500),
    "joins": statement(JOINS),
    "ctes": statement(f"{CTES} SELECT * FROM c499"),
    "conditions": statement(
        "SELECT * FROM numbers WHERE " + " OR ".join(f"a = {n} AND b < {n}" for n in range(20_000))
    ),
    "operators": statement("SELECT " + "+".join(["1"] * 100_000)),
    "list": statement("SELECT * FROM numbers WHERE a IN (" + ", ".join(map(str, range(100_000))) + ")"),
    "values": statement("SELECT count(*) FROM (VALUES " + ", ".join(f"({n}, 'a{n}')" for n in range(50_000)) + ") v"),
    "lateral": statement(
        "SELECT * FROM numbers x"
        + "".join(f", LATERAL (SELECT x.a + {n} FROM numbers y WHERE y.a = x.a) l{n}" for n in range(60))
    ),
    "plus signs": statement("SELECT " + "+" * 900_000 + "1"),
    "comments": statement("SELECT " + "/*" * 200_000 + "*/" * 200_000 + "1"),
    # one value
    "matches": statement("SELECT count(*) FROM regexp_matches(repeat('a', 1000000), 'a', 'g')"),
    "matches of a column": statement("SELECT count(*) FROM numbers, regexp_matches(repeat('a', a * 1000), 'a', 'g')"),
    "replaced": statement("SELECT length(regexp_replace(repeat('a', 10000000), 'a', 'bb', 'g'))"),
    "concatenated": statement("SELECT length(repeat('x', 1000000000) || repeat('y', 1000000000))"),
    "grown": statement("SELECT length(replace(repeat('a', 1000000), 'a', repeat('b', 10000)))"),
    "path": statement(f"SELECT jsonb_path_query_array('{DEEP}', '$.**.**.**')"),
    "pattern": statement("SELECT length(to_char(now(), repeat('YYYY', 100000)))"),
    "pattern of a number": statement("SELECT length(to_char(1.5, repeat('9', 1000000)))"),
    "document": statement("SELECT jsonb_array_length(('[' || repeat('1,', 10000000) || '1]')::jsonb)"),
    "array": statement("SELECT cardinality(('{' || repeat('1,', 2000000) || '1}')::int[])"),
    "pieces": statement("SELECT cardinality(string_to_array(repeat('a,', 50000000), ','))"),
    "digits": statement("SELECT 2::numeric ^ 100000000"),
    "hash": statement("SELECT count(md5(repeat('x', 100000000) || a)) FROM numbers"),
    # many rows
    "moments": statement("SELECT count(*) FROM generate_series(timestamp '2000-01-01', '2030-01-01', '1 us')"),
    "instants": statement("SELECT count(*) FROM generate_series(timestamptz '2000-01-01', '2000-01-02', '1 ms')"),
    "numbers": statement("SELECT count(*) FROM generate_series(1, 1000000000000)"),
    "recursion": statement("WITH RECURSIVE r AS (SELECT 1 AS n UNION ALL SELECT n FROM r) SELECT count(*) FROM r"),
    "distinct recursion": statement(
        "WITH RECURSIVE r AS (SELECT 1 n UNION SELECT n + 1 FROM r) SELECT count(*) FROM r"
    ),
    "sort": statement("SELECT n FROM generate_series(1, 300000000) n ORDER BY md5(n::text) LIMIT 1"),
    "product": statement("SELECT count(*) FROM numbers a, numbers b, numbers c WHERE a.a + b.a = c.a * 2 + c.b"),
    "aggregate": statement("SELECT length(string_agg(repeat('x', 1000), ',')) FROM generate_series(1, 10000000)"),
    "calls": statement("SELECT count(setval('counter', n)) FROM generate_series(1, 2000000) n"),
    "sleep": statement("SELECT pg_sleep(1000)"),
    "sleep of rows": statement("SELECT pg_sleep(10) FROM numbers"),
    "insert": statement("INSERT INTO numbers SELECT a.a, b.a FROM numbers a, numbers b, numbers c RETURNING 1"),
    "insert of a value": statement(
        "INSERT INTO texts SELECT regexp_replace(repeat('a', 10000000), 'a', 'b', 'g') RETURNING 1"
    ),
    "update": statement("UPDATE numbers SET a = (SELECT count(*) FROM numbers x, numbers y, numbers z) RETURNING 1"),
    "view": statement("SELECT t.total, count(*) FROM totals t, numbers a, numbers b, numbers c, numbers d GROUP BY 1"),
    "block": statement(
        "DO $$ BEGIN PERFORM pg_sleep(99); EXCEPTION WHEN others THEN NULL; END $$; SELECT pg_sleep(99)"
    ),
    # COPY
    "zeros": statement("COPY texts FROM '/dev/zero'; SELECT 1"),
    "copied line": copied("", b"x" * (32 << 20)),
    "copied newlines": copied("(FORMAT csv)", b'"' + b"\n" * (8 << 20) + b'"\n'),
    "copied quotes": copied("(FORMAT csv)", b'"\n"' * (4 << 20) + b"\n"),
    "copied escapes": copied("(FORMAT csv, ESCAPE '\\')", b'"\n"' * (4 << 20) + b"\n"),
    "copied backslashes": copied("", b"\\\n" * (4 << 20) + b"\n"),
    "copied markers": copied("(FORMAT csv)", b'"' + b"\n\\.\n" * (2 << 20) + b'"\n'),
}


def cancel(server: Millstream, client: Client) -> None:
    client.cancel_safe()


def cancel_backend(server: Millstream, client: Client) -> None:
    with server.connect() as other:
        other.execute(f"SELECT pg_cancel_backend({client.info.backend_pid})".encode())


def terminate(server: Millstream, client: Client) -> None:
    with server.connect() as other:
        other.execute(f"SELECT pg_terminate_backend({client.info.backend_pid})".encode())


def time_out(server: Millstream, client: Client) -> None:
    """statement_timeout was set before."""


WAYS: Final = {function.__name__: function for function in (cancel, cancel_backend, terminate, time_out)}
CHOSEN: Final = [
    ("cancel", "unions"),
    ("cancel_backend", "joins"),
    ("time_out", "matches"),
    ("time_out", "concatenated"),
    ("cancel", "path"),
    ("time_out", "zeros"),
    ("terminate", "copied newlines"),
    ("terminate", "pattern"),
    ("cancel", "insert of a value"),
]


@pytest.fixture(scope="module")
def server() -> Iterator[Millstream]:
    with Millstream(settings=SETTINGS) as running:
        with running.connect() as client:
            client.execute(SETUP.encode())
        yield running


def is_active(server: Millstream, pid: int) -> bool:
    with server.connect() as other:
        found = other.execute("SELECT state FROM pg_stat_activity WHERE pid = %s", (pid,)).fetchone()
    return found is not None and found[0] == "active"


def ended(working: Beside[Any]) -> str:
    """How a statement ended: its SQLSTATE, or success."""
    try:
        working.result(LIVES)
    except psycopg.Error as error:
        return error.sqlstate or "57P01"  # the connection is gone
    return "00000"


@pytest.mark.parametrize(("way", "name"), sample(product(WAYS, STATEMENTS), CHOSEN))
def test_a_statement_ends_soon_and_others_are_served(server: Millstream, way: str, name: str) -> None:
    with contextlib.closing(server.connect()) as client, server.connect() as other:
        if way == "time_out":
            client.execute("SET statement_timeout = '300ms'")
        working = Beside(STATEMENTS[name], client)
        wait_until(lambda: working.is_over or is_active(server, client.info.backend_pid), LIVES, "statement")
        began, served = time.monotonic(), 0
        WAYS[way](server, client)
        while not working.is_over:
            other.execute("SELECT 1")
            served += 1
            assert time.monotonic() - began < LIVES, f"{name} goes on"
        state = ended(working)
        print(f"{name}, {way}: {state} after {time.monotonic() - began:.2f} s, others served {served} times")
        assert state in ENDS or not served
        other.execute("INSERT INTO numbers VALUES (0, 0)")  # no lock is left
        if way != "terminate" and state != "57P01":
            assert client.execute("SELECT 1").fetchone() == (1,)


@pytest.mark.parametrize("name", sample(STATEMENTS, ["unions", "concatenated"]))
def test_the_server_ends_while_a_statement_runs(name: str) -> None:
    with Millstream(settings=SETTINGS) as server:
        with server.connect() as client:
            client.execute(SETUP.encode())
        with contextlib.closing(server.connect()) as client:
            working = Beside(STATEMENTS[name], client)
            wait_until(lambda: working.is_over or is_active(server, client.info.backend_pid), LIVES, "statement")
            began = time.monotonic()
            os.kill(server.pid, signal.SIGINT)
            state = ended(working)
            print(f"{name}: {state} after {time.monotonic() - began:.2f} s")
            server.wait(LIVES)
            print(f"{name}: the server ended after {time.monotonic() - began:.2f} s")


@pytest.mark.parametrize("way", ["cancel", "terminate"])
def test_a_client_that_does_not_read_is_not_waited_for(server: Millstream, way: str) -> None:
    """Its statement ends, and releases its locks."""
    with Wire(server.port) as wire, server.connect() as other:
        wire.start()
        process, _ = wire.backend
        wire.send(("Q", b"SELECT repeat('x', 10000) FROM numbers\0"))

        def is_waiting() -> bool:  # for the client, which has not read the sent rows
            readable, _, _ = select.select([wire.socket], [], [], 0)
            return bool(readable) and is_active(server, process)

        wait_until(is_waiting, LIVES, "result")
        other.execute(f"SELECT pg_{way}_backend({process})".encode())
        if way == "cancel":
            state = wire.until("E")[-1]
            assert b"57014" in state[1]
        else:
            there = "SELECT count(*) FROM pg_stat_activity WHERE pid = %s"
            wait_until(lambda: other.execute(there, (process,)).fetchone() == (0,), LIVES, "end")
