"""Continuous views between servers as processes: under COPY, and with kill -9 at every step of a migration."""

from __future__ import annotations

import contextlib
import math
import signal
import threading
from pathlib import Path

import psycopg
import pytest

from executor.cluster.failpoints import VARIABLE
from tests.rig.beside import Beside
from tests.rig.process import wait_until
from tests.server.test_cluster import server

pytestmark = pytest.mark.slow

SETUP = """
    CREATE FOREIGN TABLE s (k int, n bigint) SERVER stream;
    CREATE VIEW v AS SELECT k, count(*) AS c, sum(n) AS n, array_agg(n) AS a FROM s GROUP BY k
"""


class Writer:
    """A client that COPYs running numbers into the stream, and knows what was acknowledged."""

    def __init__(self, client: psycopg.Connection, first: int = 0) -> None:
        self._client = client
        self._stop = threading.Event()
        self.done = first

    def __enter__(self) -> Writer:
        self._work = Beside(self._run)
        return self

    def __exit__(self, *error: object) -> None:
        self._stop.set()
        self._work.result()

    def _run(self) -> None:
        with contextlib.suppress(psycopg.OperationalError):
            while not self._stop.is_set():
                self.copy(500)

    def copy(self, rows: int) -> None:
        """One COPY."""
        with self._client.cursor().copy("COPY s FROM STDIN") as copy:
            copy.write("".join(f"{n % 2}\t{n}\n" for n in range(self.done, self.done + rows)))
        self.done += rows


def require(client: psycopg.Connection, least: int, most: float | None = None) -> None:
    """The view has all rows up to a number, in order and each once; at least so many, and no more than others."""
    found = client.execute("SELECT k, c, n, a FROM v ORDER BY k").fetchall()
    numbers = sorted(number for _, _, _, own in found for number in own)
    assert numbers == list(range(len(numbers)))
    assert least <= len(numbers) <= (least if most is None else most)
    for key, count, total, own in found:
        assert (count, total) == (len(own), sum(own))
        assert own == sorted(own)
        assert all(number % 2 == key for number in own)


def migrate(client: psycopg.Connection, target: str) -> None:
    assert client.execute("SELECT millstream.migrate('v', %s)", (target,)).fetchone() == ("v",)


def test_views_migrate_under_copy(tmp_path: Path) -> None:
    with (
        server(tmp_path, "a") as a,
        server(tmp_path, "b") as b,
        a.connect() as writing,
        a.connect() as at_a,
        b.connect() as at_b,
    ):
        at_a.execute(SETUP)
        with Writer(writing) as writer:
            for _ in range(4):
                migrate(at_a, "b")
                for _ in range(5):
                    least = writer.done
                    require(at_b, least, math.inf)
                with pytest.raises(psycopg.errors.ObjectNotInPrerequisiteState) as raised:
                    at_a.execute("SELECT * FROM v")
                assert raised.value.diag.message_hint == f"Connect to 127.0.0.1:{b.port}, or let it migrate back."
                migrate(at_b, "a")
                require(at_a, writer.done, math.inf)
        require(at_a, writer.done)


def placed(client: psycopg.Connection) -> tuple[str, ...] | None:
    return client.execute("SELECT server FROM millstream.views WHERE name = 'v'").fetchone()


@pytest.mark.parametrize(
    ("failpoint", "is_home"),
    [
        ("view-files", True),
        ("view-written", True),
        ("view-given", True),
        ("view-written", False),
        ("view-given", False),
    ],
)
def test_the_giver_dies(failpoint: str, is_home: bool, tmp_path: Path) -> None:
    with server(tmp_path, "a") as a, server(tmp_path, "b") as b:
        giver, taker = (a, b) if is_home else (b, a)
        with a.connect() as client:
            client.execute(SETUP)
            writer = Writer(client)
            writer.copy(1000)
            if not is_home:
                migrate(client, "b")
        giver.environment = {VARIABLE: failpoint}
        giver.restart()
        with giver.connect() as client, contextlib.suppress(psycopg.OperationalError):
            migrate(client, "b" if is_home else "a")
        assert giver.wait(60) == -signal.SIGKILL
        giver.environment = {}
        giver.restart()
        owner = taker if failpoint == "view-given" else giver
        with a.connect() as at_a, owner.connect() as reading:
            wait_until(lambda: placed(reading) == ("a" if owner is a else "b",), 60, "the view at its owner")
            writer = Writer(at_a, writer.done)
            writer.copy(1000)
            require(reading, writer.done)
            migrate(reading, "b" if owner is a else "a")
            writer.copy(1000)
            with (b if owner is a else a).connect() as other:
                require(other, writer.done)


@pytest.mark.parametrize(
    ("failpoint", "is_home"),
    [("view-seen", True), ("view-back", True), ("view-begun", True), ("view-seen", False), ("view-begun", False)],
)
def test_the_taker_dies(failpoint: str, is_home: bool, tmp_path: Path) -> None:
    with server(tmp_path, "a") as a, server(tmp_path, "b") as b:
        giver, taker = (b, a) if is_home else (a, b)
        with a.connect() as client:
            client.execute(SETUP)
            writer = Writer(client)
            writer.copy(1000)
            if is_home:
                migrate(client, "b")
        taker.environment = {VARIABLE: failpoint}
        taker.restart()
        with giver.connect() as client:
            asking = Beside(migrate, client, "a" if is_home else "b")
            assert taker.wait(60) == -signal.SIGKILL
            with giver.connect() as reading:
                require(reading, writer.done)  # who gives it goes on until it is taken
            taker.environment = {}
            taker.restart()
            asking.result()
        with a.connect() as at_a, taker.connect() as reading:
            writer = Writer(at_a, writer.done)
            writer.copy(1000)
            require(reading, writer.done)


def test_kills_under_copy(tmp_path: Path) -> None:
    """Whoever is killed while rows come: what was acknowledged is in the view, once."""
    with server(tmp_path, "a") as a, server(tmp_path, "b") as b:
        with a.connect() as client:
            client.execute(SETUP)
            migrate(client, "b")
        done = 0
        for doomed in (b, a, b, a):
            with a.connect() as client, Writer(client, done) as writer:
                wait_until(lambda writer=writer, done=done: writer.done >= done + 5000, 60, "rows")
                doomed.kill9()
            doomed.restart()
            with b.connect() as reading:
                found = reading.execute("SELECT sum(c) FROM v").fetchone()
                assert found is not None
                # of a COPY that nobody was told of there may be all or nothing
                require(reading, writer.done, writer.done + 500)
                done = int(found[0])
