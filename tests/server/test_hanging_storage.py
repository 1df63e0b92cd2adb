"""A storage that does not answer, like a network storage whose server is down: each call waits as long as that lasts.
Servers continue all work without the storage; other work fails, or can be cancelled. Once the storage is back,
everything works again, except for a server that counted as lost meanwhile."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psycopg
import pytest

from executor.commit.files import read_document, replace_file
from tests.rig.beside import Beside, Repeating
from tests.rig.process import end, spawn, wait_until
from tests.rig.server import Millstream, together
from tests.server.cluster import expire, server
from tests.server.test_cluster_views import Writer, await_no_views, migrate, placed, state_of
from tests.server.test_separation import begun
from tests.server.test_unreachable_log import SETUP, can_be_read, require
from tests.server.test_unreachable_storage import Client, Servers, fails, states

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        os.geteuid() != 0 or not Path("/dev/fuse").exists() or shutil.which("bindfs") is None,
        reason="a file system that can stand still needs root, /dev/fuse and bindfs",
    ),
]

#: Seconds: a busy server must not count as lost, and the storage hangs for longer.
LEASE = 15
#: Seconds until a server knows that its storage does not answer.
SILENCE = 5
#: Nothing of the mounted folder is cached, as with NFS and actimeo=0; locks are those of the folder below.
OPTIONS = ("-f", "--multithreaded", "--enable-lock-forwarding", "-o", "attr_timeout=0,entry_timeout=0")


class Disk:
    """A folder, the same folder mounted a second time, and the process that serves it."""

    def __init__(self, folder: Path, *options: str) -> None:
        self.below, self.folder = folder / "below", folder / "mounted"
        self.below.mkdir()
        self.folder.mkdir()
        command = ["bindfs", *(options or OPTIONS), str(self.below), str(self.folder)]
        self._process = spawn(command, folder / "bindfs.log")
        wait_until(lambda: self.folder.is_mount() or self._process.poll() is not None, 60, "the mount")
        if self._process.poll() is not None:
            pytest.skip(f"nothing can be mounted here: {(folder / 'bindfs.log').read_text().strip()}")

    @contextlib.contextmanager
    def hanging(self) -> Iterator[None]:
        """The storage does not answer within the block."""
        self._process.send_signal(signal.SIGSTOP)
        try:
            yield
        finally:
            self._process.send_signal(signal.SIGCONT)

    def close(self) -> None:
        subprocess.run(["umount", "--lazy", str(self.folder)], check=True)
        end(self._process)


@pytest.fixture(scope="module")
def disk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Disk]:
    disk = Disk(tmp_path_factory.mktemp("disk"))
    try:
        yield disk
    finally:
        disk.close()


def test_a_document_is_there_while_it_is_replaced(disk: Disk) -> None:
    path, is_over = disk.folder / "document.json", threading.Event()
    replace_file(path, b"a document")

    def replace() -> None:
        for number in range(300):
            replace_file(path, b"document %d" % number)
        is_over.set()

    with ThreadPoolExecutor(1) as thread:
        replacing = thread.submit(replace)
        while not is_over.is_set() and not replacing.done():
            assert b"document" in read_document(path)
        replacing.result()


@pytest.fixture(scope="module")
def servers(disk: Disk) -> Iterator[Servers]:
    """A stream's home, and the server of one of its two views; both have their logs on the storage."""
    one, two = (server(disk.folder / "storage", name, LEASE) for name in ("one", "two"))
    two.settings["shutdown_timeout"] = 2
    with together(one, two), one.connect() as client:
        client.execute(SETUP)
        client.execute("CREATE TABLE few (k int PRIMARY KEY, n int); INSERT INTO few VALUES (1, 0)")
        client.execute("INSERT INTO t SELECT generate_series(1, 350)")
        migrate(client, "two")
        yield one, two


def begin(running: Millstream, statement: str, *values: int) -> tuple[Client, Beside[str]]:
    """Starts a client's statement; gives the SQLSTATE with which it ends."""
    client = running.connect()

    def run() -> str:
        try:
            client.execute(statement.encode(), values or None)
        except psycopg.Error as error:
            return str(error.sqlstate)
        return ""

    return client, Beside(run)


def are_states(client: Client, wanted: Sequence[object]) -> bool:
    """Whether a server has its storage back, with the same content as before."""
    try:
        return states(client) == wanted
    except psycopg.Error:
        return False


def are_active(client: Client, waiting: Sequence[tuple[Client, Beside[str]]]) -> bool:
    """Whether all statements have begun, and the unfinished ones wait."""
    pids = [waits.info.backend_pid for waits, work in waiting if not work.is_over]
    query = "SELECT count(*) FROM pg_stat_activity WHERE state = 'active' AND pid = ANY(%s)"
    return client.execute(query, (pids,)).fetchone() == (len(pids),)


def test_servers_wait_for_their_storage(servers: Servers, disk: Disk) -> None:
    one, two = servers
    with one.connect() as client, one.connect() as writing, one.connect() as other, two.connect() as there:
        writer = Writer(writing)
        writer.copy(1000)
        for _ in range(5):  # files that a server has seen before it answers in another way
            require(there, "v", writer.done)
            writing.execute("INSERT INTO s VALUES (%s, %s)", (writer.done % 2, writer.done))
            writer.done += 1
            writing.execute("UPDATE few SET n = n + 1 WHERE k = %s", (1,))
        require(there, "v", writer.done)
        before, answers = states(client), list[object]()
        leaving = begun(one, client)

        def answer() -> None:
            """Queries without the storage."""
            answers.append(other.execute("SELECT count(*) FROM w").fetchone())

        def go_on() -> None:
            """Checks that other queries are answered while some wait."""
            known = len(answers)
            wait_until(lambda: len(answers) > known + 2, what="answers that need no storage")

        since = time.monotonic()
        with disk.hanging(), Repeating(answer):
            at_one = [  # the first while that query runs
                begin(one, f"SELECT millstream.checkpoint({leaving.pid})"),
                begin(one, "INSERT INTO s VALUES (%s, %s)", writer.done % 2, writer.done),
                begin(one, "UPDATE few SET n = n + 1 WHERE k = %s", 1),
                begin(one, "CREATE TABLE u (k int)"),
            ]
            at_two = [begin(two, "SELECT sum(c) FROM v"), begin(two, "SELECT count(*) FROM millstream.servers")]
            for session, its in ((client, at_one), (there, at_two)):
                wait_until(lambda session=session, its=its: are_active(session, its), 60, "their begin")
            waiting = at_one + at_two
            go_on()
            for waits, _ in waiting:
                waits.cancel()
            is_early = time.monotonic() < since + SILENCE - 1
            ends = {work.result() for _, work in waiting}
            # Then a server knows, and new statements do not wait.
            assert ends == {"57014"} or (not is_early and ends <= {"57014", "58030"})
            time.sleep(max(0.0, since + SILENCE + 1 - time.monotonic()))  # earlier statements wait for the storage
            for statement in ("migrate('v', 'two')", "suspend('w')", "drain('two')", "checkpoint('w')"):
                assert fails(client, f"SELECT millstream.{statement}") == "58030", statement
            assert fails(there, "SELECT sum(c) FROM v") == "58030"
            assert client.execute("SELECT n FROM few").fetchone() == (5,)
            go_on()
            time.sleep(max(0.0, since + LEASE + 1 - time.monotonic()))
        leaving.wait()
        assert leaving.rows is not None
        for waits, _ in waiting:
            waits.close()
        wait_until(lambda: can_be_read(there), 60, "the storage")
        wait_until(lambda: are_states(client, before), 60, "state in which nobody has counted another's silence")
        writing.execute("UPDATE few SET n = 7 WHERE k = 1")
        ((rows,),) = there.execute("SELECT sum(c)::int FROM v").fetchall()
        assert rows in (writer.done, writer.done + 1), "what was cancelled may have happened"
        writer.done = rows
        writer.copy(1000)
        for session, view in ((client, "w"), (there, "v"), (client, "v")):
            require(session, view, writer.done)


def test_a_server_that_was_away_for_too_long_is_fenced(servers: Servers, disk: Disk) -> None:
    """The other servers reach the same storage through another mount, which answers: they take over, and the server
    finds that out."""
    one, two = servers
    three = server(disk.below / "storage", "three")
    with three, three.connect() as watching, one.connect() as client, two.connect() as there:
        ((done,),) = client.execute("SELECT coalesce(sum(c), 0)::int FROM w").fetchall()
        writer = Writer(client, done)
        writer.copy(1000)
        with disk.hanging():
            for name in ("one", "two"):
                expire(disk.below / "storage", name)
                wait_until(lambda name=name: state_of(watching, name) == ("lost",), 60, "the end of a lease")
            wait_until(lambda: placed(watching) == ("three",), 60, "the take-over")
            require(watching, "v", writer.done)
        await_no_views(there)
        wait_until(lambda: "the lease was taken over" in one.log(), 60, "its word")
        assert fails(client, "SELECT millstream.suspend('w')") == "55000"
        writer.copy(1000)  # to its own log, as before
        require(client, "w", writer.done)
        require(watching, "v", writer.done)


def test_a_server_ends_without_its_storage(tmp_path: Path) -> None:
    disk = Disk(tmp_path, "-f")  # the kernel ends no process that must still release locks
    alone = server(disk.folder / "storage", "alone")
    alone.settings["shutdown_timeout"] = 1
    with contextlib.closing(disk), alone, alone.connect() as client, disk.hanging():
        waiting = begin(alone, "CREATE TABLE u (k int)")
        wait_until(lambda: are_active(client, [waiting]), 60, "its begin")
        os.kill(alone.pid, signal.SIGINT)
        assert alone.wait(60) == 1
