"""Kill -9 at random moments of a load by several clients: every acknowledged row is in every view exactly once."""

from __future__ import annotations

import os
import random
import signal
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from operator import gt

import psycopg
import pytest

from tests.rig.compare import assert_same_rows
from tests.rig.process import wait_until
from tests.rig.server import Millstream

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

VIEWS = {
    "by_client": "SELECT client, count(*), sum(number), count(DISTINCT number) AS different, max(number)"
    " FROM events GROUP BY client",
    "by_rest": "SELECT number % 97 AS rest, count(*), sum(number), sum(client) AS clients FROM events GROUP BY rest",
    "numbers": "SELECT client, number, count(*) AS times FROM events GROUP BY client, number",
}


class Client(threading.Thread):
    """Inserts the numbers 1, 2, ... in statements of random size until the server dies.

    ``acknowledged`` is the last number whose statement was answered; ``sent`` is the last number of the statement that
    was not answered: the server may have made that one durable as a whole, or not. With ``single``, it inserts single
    rows only, which the event loop's thread commits together with those of other clients where possible.
    """

    def __init__(self, server: Millstream, key: int, start: int, seed: str, single: bool = False) -> None:
        super().__init__(daemon=True)
        self.key, self.sent, self.acknowledged = key, start, start
        self._single = single
        self._server, self._source = server, random.Random(seed)

    def run(self) -> None:
        try:
            with self._server.connect() as connection:
                while True:
                    size = 1 if self._single else self._source.choice((1, 1, 5, 200, 3000))
                    numbers = range(self.sent + 1, self.sent + size + 1)
                    self.sent = numbers[-1]
                    ways = (self._insert, self._execute) if self._single else (self._insert, self._copy, self._transact)
                    self._source.choice(ways)(connection, numbers)
                    self.acknowledged = self.sent
        except psycopg.OperationalError:
            pass  # the kill

    def _insert(self, connection: psycopg.Connection[tuple[object, ...]], numbers: range) -> None:
        values = ",".join(f"({self.key},{number})" for number in numbers)
        connection.execute(f"INSERT INTO events VALUES {values}".encode())

    def _execute(self, connection: psycopg.Connection[tuple[object, ...]], numbers: range) -> None:
        for number in numbers:
            connection.execute("INSERT INTO events VALUES (%s, %s)", (self.key, number), prepare=True)

    def _copy(self, connection: psycopg.Connection[tuple[object, ...]], numbers: range) -> None:
        with connection.cursor() as cursor, cursor.copy("COPY events FROM STDIN (FORMAT csv)") as copy:
            copy.write("".join(f"{self.key},{number}\n" for number in numbers))

    def _transact(self, connection: psycopg.Connection[tuple[object, ...]], numbers: range) -> None:
        half = len(numbers) // 2
        with connection.transaction():
            for part in (numbers[:half], numbers[half:]):
                if part:
                    self._insert(connection, part)


def _durable(server: Millstream, clients: list[Client]) -> list[int]:
    """The last number of each client in the view; asserts that each statement is there as a whole or not at all."""
    with server.connect() as connection:
        counts: dict[int, int] = dict(connection.execute("SELECT client, count FROM by_client").fetchall())
    found = [counts.get(client.key, 0) for client in clients]
    for client, rows in zip(clients, found, strict=True):
        assert rows in (client.acknowledged, client.sent), f"{rows} of {client.acknowledged}..{client.sent}"
    return found


def _check(server: Millstream, last: list[int]) -> None:
    """Checks that every view has exactly the rows 1..last[i] of each client, none lost or repeated."""
    rows = [(key, number) for key, end in enumerate(last, start=1) for number in range(1, end + 1)]
    by_rest: dict[int, tuple[int, int, int]] = {}
    for key, number in rows:
        one, two, three = by_rest.get(number % 97, (0, 0, 0))
        by_rest[number % 97] = (one + 1, two + number, three + key)
    expected: dict[str, list[tuple[int, ...]]] = {
        "by_client": [(key, end, end * (end + 1) // 2, end, end) for key, end in enumerate(last, start=1) if end],
        "by_rest": [(rest, *sums) for rest, sums in by_rest.items()],
        "numbers": [(*row, 1) for row in rows],
    }
    with server.connect() as connection:
        for name, wanted in expected.items():
            assert_same_rows(connection.execute(f"SELECT * FROM {name}".encode()).fetchall(), wanted, name)


def _round(
    server: Millstream, start: list[int], seed: str, kill: Callable[[], None], single: bool = False
) -> list[int]:
    """One client for each start inserts, and has had an answer, until ``kill``; then the server is started again and
    checked."""
    clients = [Client(server, key, begin, f"{seed} {key}", single) for key, begin in enumerate(start, start=1)]
    for client in clients:
        client.start()
    wait_until(lambda: all(map(gt, (client.acknowledged for client in clients), start)), 60, "answers to all clients")
    kill()
    for client in clients:
        client.join()
    server.restart()
    last = _durable(server, clients)
    _check(server, last)
    return last


def _create(server: Millstream, engine: str) -> None:
    with server.connect() as connection:
        connection.execute("CREATE FOREIGN TABLE events (client integer, number integer) SERVER stream")
        for name, query in VIEWS.items():
            options = f"WITH (maintenance_engine = {engine})"
            connection.execute(f"CREATE VIEW {name} {options} AS {query}".encode())


@pytest.mark.parametrize("engine", ["embedded", pytest.param("auto", marks=(pytest.mark.spark, pytest.mark.whole))])
def test_server_killed_while_two_clients_load(engine: str, whole: bool) -> None:
    """Two rounds, in which Spark is still starting when its server dies; ``--whole`` runs more."""
    source = random.Random(engine)
    settings = {
        "maintenance_rows": 4000,
        "maintenance_idle": 0.2,
        "log_segment_bytes": "1MB",
        "spark_enabled": engine != "embedded",
    }
    with Millstream(settings=settings) as server:
        _create(server, engine)
        last = [0, 0]
        for number in range(6 if whole else 2):

            def kill() -> None:
                time.sleep(source.uniform(0.05, 2.5))  # the random moment itself, not a wait for a condition
                server.kill9()

            last = _round(server, last, f"{engine} {number}", kill)
        assert min(last) > 0


@pytest.mark.parametrize("clients", [1, 6])
def test_server_killed_while_single_rows_are_inserted(clients: int, whole: bool) -> None:
    """The rows of a single client are written while the loop waits; another client comes and goes meanwhile."""
    source = random.Random(f"single {clients}")
    settings = {"maintenance_rows": 500, "maintenance_idle": 0.2, "log_segment_bytes": "1MB", "spark_enabled": False}
    with Millstream(settings=settings) as server:
        _create(server, "embedded")
        last = [0] * clients
        for number in range(6 if whole else 2):

            def kill() -> None:
                end = time.monotonic() + source.uniform(0.05, 2.0)  # the random moment itself
                while clients == 1 and time.monotonic() < end:
                    with server.connect() as other:
                        other.execute("INSERT INTO events SELECT 0, 0 WHERE false")
                    time.sleep(0.1)
                time.sleep(max(0.0, end - time.monotonic()))
                server.kill9()

            last = _round(server, last, f"single {number}", kill, single=True)
        assert min(last) > 0


def test_transactions_over_streams_and_a_table_are_whole_though_the_recovery_is_killed_too(whole: bool) -> None:
    """A transaction's rows in two streams and a table are all there or not at all."""
    source = random.Random("whole")
    relations = ("events", "others", "ledger")
    settings = {"maintenance_rows": 20, "maintenance_idle": 0.1, "log_segment_bytes": "1MB", "spark_enabled": False}
    sent = acknowledged = last = 0
    with Millstream(settings=settings) as server:
        with server.connect() as client:
            client.execute("CREATE FOREIGN TABLE events (n integer) SERVER stream")
            client.execute("CREATE FOREIGN TABLE others (n integer) SERVER stream")
            client.execute("CREATE TABLE ledger (n integer PRIMARY KEY)")
            client.execute("CREATE VIEW of_events AS SELECT n, count(*) AS times FROM events GROUP BY n")
            client.execute("CREATE VIEW of_others AS SELECT n, count(*) AS times FROM others GROUP BY n")
            client.execute("CREATE VIEW of_ledger AS SELECT n, 1 AS times FROM ledger")

        def write() -> None:
            nonlocal sent, acknowledged
            with suppress(psycopg.OperationalError), server.connect() as connection:
                while True:
                    sent += 1
                    with connection.transaction():
                        for relation in source.sample(relations, 3):
                            connection.execute(f"INSERT INTO {relation} VALUES ({sent})".encode())
                    acknowledged = sent

        for _ in range(6 if whole else 2):
            writer = threading.Thread(target=write, daemon=True)
            writer.start()
            wait_until(lambda: acknowledged > last, 60, "a transaction")  # noqa: B023
            time.sleep(source.uniform(0.05, 1.5))  # the random moment itself
            server.kill9()
            writer.join()
            for _ in range(2):
                server.begin()
                time.sleep(source.uniform(0.2, 1.0))  # whether it has answered by then or not
                server.kill9()
            server.restart()
            with server.connect() as client:
                (last,) = client.execute("SELECT count(*) FROM ledger").fetchone() or (0,)
                assert last in (acknowledged, sent)
                for relation in relations:
                    rows = client.execute(f"SELECT * FROM of_{relation} ORDER BY n".encode()).fetchall()
                    assert rows == [(number, 1) for number in range(1, last + 1)], relation
            sent = acknowledged = last
        assert last > 0


@pytest.mark.spark
@pytest.mark.whole  # tests/spark/test_process kills a JVM in a job
def test_spark_killed_while_two_clients_load(whole: bool) -> None:
    """The server survives the death of its JVM: no client notices, the embedded engine catches up, and Spark comes
    back."""
    source = random.Random("jvm")
    with Millstream(settings={"maintenance_rows": 4000, "maintenance_idle": 0.2}) as server:
        _create(server, "auto")
        last = [0, 0]
        for number in range(2 if whole else 1):

            def kill() -> None:
                for _ in range(2):
                    time.sleep(source.uniform(1.0, 5.0))
                    for pid in server.processes()[1:]:
                        _kill(pid)
                server.kill9()

            last = _round(server, last, f"jvm {number}", kill)


@pytest.mark.spark
@pytest.mark.whole  # tests/spark/test_maintenance kills a server in a job
def test_server_killed_while_spark_maintains() -> None:
    source = random.Random("middle")
    with Millstream(settings={"maintenance_rows": 3000, "maintenance_idle": 0.2}) as server:
        _create(server, "spark")
        server.wait_for_spark()

        def kill() -> None:
            with server.connect() as connection:
                query = "SELECT count(*) > 0 FROM millstream.jobs WHERE engine = 'spark' AND status = 'running'"
                wait_until(lambda: connection.execute(query).fetchone() == (True,), 120, "job of Spark")
                time.sleep(source.uniform(0.0, 0.5))  # within the load
                server.kill9()

        assert min(_round(server, [0, 0], "middle", kill)) > 0


def _kill(pid: int) -> None:
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)
