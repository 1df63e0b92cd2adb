"""A home that is lost for good, between servers as processes: killed under COPY or while another adopts; a zombie."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import threading
from pathlib import Path

import psycopg
import pytest

from executor.failpoints import VARIABLE
from tests.rig.process import wait_until
from tests.rig.server import Millstream, together
from tests.server.cluster import expire, server, stands_still
from tests.server.test_cluster_views import SETUP, Writer, copies, migrate, placed, require, state_of

pytestmark = [pytest.mark.slow, pytest.mark.sample(3)]

ADOPT = "SELECT millstream.adopt('a')"


@pytest.mark.parametrize("failpoint", ["view-claimed", "home-closed", "streams-adopted"])
def test_the_stream_of_a_lost_disk_has_writers_again(failpoint: str, tmp_path: Path) -> None:
    """The home is killed under COPY, and the adopter at a step of the adoption: each acknowledged row is there once."""
    first = server(tmp_path, "a")
    first.settings |= {"view_copy_interval": 0.5}
    with together(first, server(tmp_path, "b", failpoint=failpoint)) as (a, b):
        with a.connect() as client:
            client.execute(SETUP)
            with Writer(client) as writer:
                wait_until(lambda: bool(copies(tmp_path)), 60, "a copy")
                done = writer.done
                wait_until(lambda: writer.done > done + 5000, 60, "rows behind it")
                a.kill9()
        shutil.rmtree(a.data)
        expire(tmp_path, "a")
        with contextlib.suppress(psycopg.Error), b.connect() as client:
            wait_until(lambda: state_of(client, "a") == ("lost",), 60, "the end of the lease")
            client.execute(ADOPT)
        assert b.wait(60) == -signal.SIGKILL
        b.environment = {}
        b.restart()
        with b.connect() as client:
            wait_until(lambda: placed(client) == ("b",), 60, "the view")
            assert client.execute(ADOPT).fetchone() in ((0,), (1,))
            found = client.execute("SELECT sum(c) FROM v").fetchone()
            assert found is not None
            require(client, writer.done, writer.done + 500)
            with Writer(client, int(found[0])) as again:
                wait_until(lambda: again.done > int(found[0]) + 5000, 60, "rows")
        b.kill9()
        b.restart()
        with b.connect() as client:
            require(client, again.done)


def test_a_zombie_is_not_adopted_and_an_adopted_server_does_not_start(tmp_path: Path) -> None:
    with together(server(tmp_path, "a"), server(tmp_path, "b")) as (a, b), a.connect() as client:
        client.execute(SETUP)
        writer = Writer(client)
        writer.copy(1000)
        migrate(client, "b")
        os.kill(a.pid, signal.SIGSTOP)
        expire(tmp_path, "a")
        with b.connect() as other:
            wait_until(lambda: state_of(other, "a") == ("lost",), 60, "the end of the lease")
            with pytest.raises(psycopg.errors.ObjectInUse, match="another process has the log"):
                other.execute(ADOPT)
            os.kill(a.pid, signal.SIGCONT)
            writer.copy(1000)  # to its own log, which still belongs to it
            require(other, writer.done)
            a.kill9()
            assert other.execute(ADOPT).fetchone() == (1,)
            with pytest.raises(AssertionError, match='the streams of server "a" belong to server "b" now'):
                a.start()
            Writer(other, writer.done).copy(1000)
            require(other, writer.done + 1000)


@pytest.mark.parametrize(
    "failpoint", [pytest.param("home-closed", marks=pytest.mark.whole), "views-staged:stop", "streams-adopted"]
)
def test_the_adopter_is_lost_for_good_too(failpoint: str, tmp_path: Path) -> None:
    """A third server continues what the lost adopter had begun, once its process has ended; it never starts again."""
    is_zombie = failpoint.endswith("stop")
    servers = (server(tmp_path, "a"), server(tmp_path, "b", failpoint=failpoint), server(tmp_path, "c"))
    with together(*servers) as (a, b, c):
        with a.connect() as client:
            client.execute(SETUP)
            writer = Writer(client)
            writer.copy(1000)
            migrate(client, "b")
            writer.copy(1000)
            a.kill9()
        expire(tmp_path, "a")
        with c.connect() as client:
            wait_until(lambda: state_of(client, "a") == ("lost",), 60, "the end of the lease")
            asked = threading.Thread(target=_ask, args=(b,))
            asked.start()
            wait_until(lambda: stands_still(b), 60, "the failpoint")
            expire(tmp_path, "b")
            wait_until(lambda: state_of(client, "b") == ("lost",), 60, "the end of the other lease")
            if is_zombie:
                with pytest.raises(psycopg.errors.ObjectInUse, match="another process has the log"):
                    client.execute("SELECT millstream.adopt('b')")
                b.kill9()
                c.environment = {VARIABLE: "view-finished"}  # and so does the server that continues
        if is_zombie:
            c.restart()
            _ask(c, "b")
            assert c.wait(60) == -signal.SIGKILL
            c.environment = {}
            c.restart()
        with c.connect() as client:
            asked.join()
            assert b.wait(60) == -signal.SIGKILL
            if not is_zombie:
                with pytest.raises(psycopg.Error, match='the streams of server "a" belong to server "b" now'):
                    client.execute(ADOPT)
            assert client.execute("SELECT millstream.adopt('b')").fetchone() == (1,)
            require(client, writer.done)
            Writer(client, writer.done).copy(1000)
            require(client, writer.done + 1000)
        b.environment = {}
        with pytest.raises(AssertionError, match='the streams of server "b" belong to server "c" now'):
            b.start()


def _ask(adopter: Millstream, lost: str = "a") -> None:
    """A request that gets no answer."""
    with contextlib.suppress(psycopg.Error), adopter.connect() as client:
        client.execute("SELECT millstream.adopt(%s)", (lost,))
