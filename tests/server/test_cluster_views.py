"""Continuous views between servers as processes: under COPY, and with kill -9 at every step of a migration."""

from __future__ import annotations

import contextlib
import glob
import json
import math
import os
import shutil
import signal
import threading
from pathlib import Path

import psycopg
import pytest

from executor.failpoints import VARIABLE
from tests.rig.beside import Beside
from tests.rig.process import wait_until
from tests.rig.server import Millstream, together
from tests.server.cluster import expire, server, stands_still

pytestmark = [pytest.mark.slow, pytest.mark.sample(9)]

SETUP = """
    CREATE FOREIGN TABLE s (k int, n bigint) SERVER stream;
    CREATE VIEW v AS SELECT k, count(*) AS c, sum(n) AS n, array_agg(n) AS a FROM s GROUP BY k
"""


class Writer:
    """A client that COPYs consecutive numbers into the stream, and knows which were acknowledged."""

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
        """Runs one COPY."""
        with self._client.cursor().copy("COPY s FROM STDIN") as copy:
            copy.write("".join(f"{n % 2}\t{n}\n" for n in range(self.done, self.done + rows)))
        self.done += rows


def require(client: psycopg.Connection, least: int, most: float | None = None) -> None:
    """Checks that the view has all rows up to a number, in order and each once; at least the acknowledged ones, and no
    others."""
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
            for _ in range(2):
                migrate(at_a, "b")
                for _ in range(2):
                    least = writer.done
                    require(at_b, least, math.inf)
                least = writer.done
                found = at_a.execute("SELECT sum(c), sum(n) FROM v").fetchone()  # this asks the other server
                assert found is not None
                assert found[0] >= least
                assert found[1] == found[0] * (found[0] - 1) // 2
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
        ("view-entry", True),
        ("view-given", True),
        pytest.param("view-files", False, marks=pytest.mark.whole),
        pytest.param("view-written", False, marks=pytest.mark.whole),
        ("view-entry", False),
        ("view-given", False),
    ],
)
def test_the_giver_dies(failpoint: str, is_home: bool, tmp_path: Path) -> None:
    """A guest's server writes its view as the home does, so a sample of the steps suffices there."""
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
                require(reading, writer.done)  # the giving server keeps it until it is taken
            taker.environment = {}
            taker.restart()
            asking.result()
        with a.connect() as at_a, taker.connect() as reading:
            writer = Writer(at_a, writer.done)
            writer.copy(1000)
            require(reading, writer.done)


def test_kills_under_copy(tmp_path: Path) -> None:
    """Servers are killed while rows arrive: each acknowledged row is in the view, once."""
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
                # a COPY that was not acknowledged may be there as a whole, or not
                require(reading, writer.done, writer.done + 500)
                done = int(found[0])


def state_of(client: psycopg.Connection, name: str) -> tuple[str, ...] | None:
    return client.execute("SELECT state FROM millstream.servers WHERE name = %s", (name,)).fetchone()


def copies(storage: Path) -> set[str]:
    """The complete copies of guests' states."""
    found = glob.glob(f"{storage}/views/*/*/manifest.json")  # unlike Path's, it accepts folders that vanish meanwhile
    return {Path(name).parent.name for name in found}


def log_of(running: Millstream) -> int:
    """The bytes of a server's log files in use."""
    size = 0
    for path in running.data.glob("servers/*/log/*.log"):
        with contextlib.suppress(FileNotFoundError):  # the file was just released
            size += path.stat().st_size
    return size


def test_a_lost_owners_views_are_taken_over(tmp_path: Path) -> None:
    """Its home continues from the last copy and its own log, which grew meanwhile and then stops growing."""
    home = server(tmp_path, "a")
    home.settings |= {"log_segment_bytes": 1 << 16, "maintenance_rows": 1000}
    with together(home, server(tmp_path, "b")) as (a, b), a.connect() as client:
        client.execute(SETUP)
        writer = Writer(client)
        writer.copy(2000)
        migrate(client, "b")
        first = copies(tmp_path)
        writer.copy(2000)
        wait_until(lambda: copies(tmp_path) not in (first, set()), 60, "a copy of the guest's states")
        b.kill9()
        sizes = []
        for _ in range(8):
            writer.copy(40_000)
            sizes.append(log_of(a))
        assert placed(client) == ("b",)
        assert sizes[-1] >= sizes[0] + (4 << 16), "while nobody has the view, all is kept"
        expire(tmp_path, "b")
        wait_until(lambda: placed(client) == ("a",), 60, "the take-over")
        assert state_of(client, "b") == ("lost",)
        wait_until(lambda: log_of(a) < sizes[2], 60, "the end of what was kept")
        for _ in range(8):
            writer.copy(40_000)
            assert client.execute("SELECT sum(c) FROM v").fetchone() == (writer.done,)
        wait_until(lambda: log_of(a) < sizes[2], 60, "that it stays so")
        require(client, writer.done)


@pytest.mark.parametrize("failpoint", ["view-copied", "view-kept"])
def test_the_owner_dies_with_a_copy(failpoint: str, tmp_path: Path) -> None:
    servers = (server(tmp_path, "a"), server(tmp_path, "b", failpoint=failpoint))
    with together(*servers) as (a, b), a.connect() as client:
        client.execute(SETUP)
        writer = Writer(client)
        writer.copy(1000)
        migrate(client, "b")
        writer.copy(1000)
        assert b.wait(60) == -signal.SIGKILL
        expire(tmp_path, "b")
        wait_until(lambda: placed(client) == ("a",), 60, "the take-over")
        writer.copy(1000)
        require(client, writer.done)
        b.environment = {}
        b.restart()
        migrate(client, "b")
        require(client, writer.done)


@pytest.mark.parametrize("failpoint", ["view-inherited", "view-seen", "view-back", "view-begun"])
def test_the_server_that_takes_over_dies(failpoint: str, tmp_path: Path) -> None:
    with together(server(tmp_path, "a"), server(tmp_path, "b")) as (a, b):
        with a.connect() as client:
            client.execute(SETUP)
            writer = Writer(client)
            writer.copy(1000)
            migrate(client, "b")
            writer.copy(1000)
        a.environment = {VARIABLE: failpoint}
        a.restart()
        b.kill9()
        expire(tmp_path, "b")
        assert a.wait(60) == -signal.SIGKILL
        a.environment = {}
        a.restart()
        with a.connect() as client:
            wait_until(lambda: placed(client) == ("a",), 60, "the take-over")
            writer = Writer(client, writer.done)
            writer.copy(1000)
            require(client, writer.done)
            b.restart()
            migrate(client, "b")
            writer.copy(1000)
            require(client, writer.done)
            with b.connect() as there:
                require(there, writer.done)


def await_no_views(zombie: psycopg.Connection) -> None:
    """The zombie knows that its guest belongs to another server."""
    here = "SELECT count(*) FROM millstream.views"
    wait_until(lambda: zombie.execute(here).fetchone() == (0,), 60, "the zombie's guest")


def test_a_zombie_with_a_view(tmp_path: Path) -> None:
    """The server stands still between a copy and the entry, for longer than its lease: its copy does not count."""
    standing = server(tmp_path, "b", failpoint="view-copied:stop")
    with server(tmp_path, "a") as a, standing as b, a.connect() as client:
        client.execute(SETUP)
        writer = Writer(client)
        writer.copy(1000)
        migrate(client, "b")
        writer.copy(1000)
        wait_until(lambda: stands_still(b), 60, "the copy that does not count")
        assert len(copies(tmp_path)) > 1
        reading = Beside(require, client, writer.done)  # waits for the owner, and then for the next owner
        with a.connect() as other:
            state = "SELECT state FROM pg_stat_activity WHERE pid = %s"
            pid = (client.info.backend_pid,)
            wait_until(lambda: other.execute(state, pid).fetchone() == ("active",), 60, "question")
        expire(tmp_path, "b")
        reading.result()
        assert placed(client) == ("a",)
        writer.copy(1000)
        require(client, writer.done)
        os.kill(b.pid, signal.SIGCONT)
        with b.connect() as zombie:
            await_no_views(zombie)
            with pytest.raises(psycopg.errors.UndefinedTable):
                zombie.execute("SELECT * FROM v")
        wait_until(lambda: "its lease was taken over" in b.log(), 60, "word that it was refused")
        wait_until(lambda: copies(tmp_path) == set(), 60, "end of what it wrote")
        writer.copy(1000)
        require(client, writer.done)


def test_a_server_that_stands_still_keeps_no_lock(tmp_path: Path) -> None:
    """The server stands still between comparing and writing an entry, under the storage's lock: others continue, and it
    writes nothing."""
    standing = server(tmp_path, "b", failpoint="view-entry:stop")
    with server(tmp_path, "a") as a, standing as b, a.connect() as client:
        client.execute(SETUP)
        writer = Writer(client)
        writer.copy(1000)
        asking = Beside(migrate, client, "b")
        wait_until(lambda: stands_still(b), 60, "the failpoint")
        expire(tmp_path, "b")
        with pytest.raises(psycopg.errors.ObjectNotInPrerequisiteState, match='server "b" is gone'):
            asking.result()
        assert placed(client) == ("a",)
        writer.copy(1000)
        require(client, writer.done)
        os.kill(b.pid, signal.SIGCONT)
        wait_until(lambda: "another server took the lock of the storage" in b.log(), 60, "that it knows")
        with b.connect() as zombie:
            await_no_views(zombie)
        assert placed(client) == ("a",)
        b.environment = {}
        b.restart()
        migrate(client, "b")
        writer.copy(1000)
        require(client, writer.done)


def test_changes_are_told_at_home(tmp_path: Path) -> None:
    """Another server has the view; sessions at home listen to it, and read its changes."""
    with server(tmp_path, "a") as a, server(tmp_path, "b") as b, a.connect() as client, a.connect() as listener:
        client.execute(SETUP)
        writer = Writer(client)
        writer.copy(1000)
        migrate(client, "b")
        listener.execute("LISTEN v")
        writer.copy(1000)
        (first,) = listener.notifies(timeout=60, stop_after=1)
        assert (first.channel, json.loads(first.payload)["rows"]) == ("v", 4)
        listener.execute("SET stream_timeout = '100ms'")
        changes = "SELECT sum(diff * c)::bigint FROM millstream.changes('v')"
        assert listener.execute(changes.encode()).fetchone() == (writer.done,)
        b.kill9()
        writer.copy(1000)
        with pytest.raises(psycopg.OperationalError, match="cannot be reached"):
            listener.execute(changes.encode())
        b.restart()
        wait_until(lambda: can_be_read(client), 60, "the view")
        writer.copy(1000)
        (second,) = listener.notifies(timeout=60, stop_after=1)
        assert json.loads(second.payload)["lsn"] > json.loads(first.payload)["lsn"]
        assert listener.execute(changes.encode()).fetchone() == (writer.done,)


def can_be_read(client: psycopg.Connection) -> bool:
    try:
        return client.execute("SELECT count(*) FROM v").fetchone() == (2,)
    except psycopg.OperationalError:
        return False


def test_a_home_dies_with_its_disk(tmp_path: Path) -> None:
    """Under COPY. Another server continues with all acknowledged rows, also those after the last copy; a COPY that was
    not acknowledged is there as a whole, or not."""
    home = server(tmp_path, "a")
    home.settings |= {"view_copy_interval": 0.5, "log_segment_bytes": 1 << 18, "maintenance_rows": 1000}
    with together(home, server(tmp_path, "b")) as (a, b):
        with a.connect() as client:
            client.execute(SETUP)
            with Writer(client) as writer:
                wait_until(lambda: bool(copies(tmp_path)), 60, "a copy")
                first = copies(tmp_path)
                wait_until(lambda: copies(tmp_path) != first, 60, "another one")
                a.kill9()
        shutil.rmtree(a.data)
        expire(tmp_path, "a")
        with b.connect() as client:
            wait_until(lambda: placed(client) == ("b",), 60, "the take-over")
            require(client, writer.done, writer.done + 500)
