"""Continuous views that read tables at each read, between servers as processes: a transaction on the stream and the
table is seen as a whole or not at all, on either server, whichever process is killed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import psycopg
import pytest

from tests.rig.beside import Repeating
from tests.rig.process import wait_until
from tests.rig.server import Millstream, together
from tests.server.cluster import server
from tests.server.test_cluster_views import placed

pytestmark = [pytest.mark.slow, pytest.mark.sample(3)]

SETUP = """
    CREATE FOREIGN TABLE s (k int, n bigint) SERVER stream;
    CREATE TABLE t (id int PRIMARY KEY, total bigint);
    INSERT INTO t VALUES (1, 0);
    CREATE VIEW v AS SELECT g.k, g.n, t.total FROM (SELECT k, count(*) AS n FROM s GROUP BY k) g JOIN t ON t.id = g.k
"""
READ = "SELECT n, total FROM v"


def write(client: psycopg.Connection) -> None:
    """Inserts one more row, and sets the table to the number of rows."""
    with client.transaction():
        client.execute("INSERT INTO s VALUES (1, 0)")
        client.execute("UPDATE t SET total = total + 1 WHERE id = 1")


@pytest.fixture
def pair(tmp_path: Path) -> Iterator[tuple[Millstream, Millstream]]:
    home = server(tmp_path, "a")
    home.settings |= {"max_connections": 12}
    with together(home, server(tmp_path, "b")) as (a, b):
        with a.connect() as client:
            client.execute(SETUP)
            write(client)
            client.execute("SELECT millstream.migrate('v', 'b')")
            assert placed(client) == ("b",)
        yield a, b


def test_both_servers_show_what_was_said(pair: tuple[Millstream, Millstream]) -> None:
    """Also if several sessions at home read at once, each of which asks the guest's server, which asks the home."""
    a, b = pair
    done = 1

    def read(client: psycopg.Connection) -> None:
        least = done
        ((rows, total),) = client.execute(READ).fetchall()
        assert rows == total >= least

    with ExitStack() as beside, a.connect() as client:
        clients = [beside.enter_context(running.connect()) for running in (a, a, a, a, b, b)]
        reading = [beside.enter_context(Repeating(read, client)) for client in clients]
        while not all(each.has_done(30) for each in reading):
            write(client)
            done += 1


def test_no_read_waits_for_a_session_that_writes(pair: tuple[Millstream, Millstream]) -> None:
    a, b = pair
    with a.connect() as writing, a.connect() as other, b.connect() as there:
        with writing.transaction():
            writing.execute("UPDATE t SET total = 7 WHERE id = 1")
            assert other.execute(READ).fetchone() == there.execute(READ).fetchone() == (1, 1)
        with (
            pytest.raises(psycopg.errors.FeatureNotSupported, match='after changes of table "t"'),
            writing.transaction(),
        ):
            writing.execute("UPDATE t SET total = 8 WHERE id = 1")
            writing.execute(READ)
        assert [each.execute(READ).fetchone() for each in (writing, other, there)] == [(1, 7)] * 3


def test_the_home_is_killed(pair: tuple[Millstream, Millstream]) -> None:
    a, b = pair
    with b.connect() as there, b.connect() as reading:
        for number in range(2, 5):
            with a.connect() as client:
                write(client)
                assert there.execute(READ).fetchone() == (number, number)
                assert there.execute(READ).fetchone() == (number, number), "which was kept"
                client.execute("UPDATE t SET total = 0 WHERE id = 1")
                a.kill9()
            for each in (there, reading):
                with pytest.raises(psycopg.OperationalError, match="cannot be reached") as raised:
                    each.execute(READ)
                assert raised.value.sqlstate == "08001"
            a.restart()
            assert there.execute(READ).fetchone() == (number, 0)
            with a.connect() as client:
                assert client.execute(READ).fetchone() == (number, 0)
                client.execute("UPDATE t SET total = %s WHERE id = 1", (number,))


def test_the_guest_is_killed(pair: tuple[Millstream, Millstream]) -> None:
    a, b = pair
    with a.connect() as client:
        write(client)
        b.kill9()
        with pytest.raises(psycopg.OperationalError, match="cannot be reached"):
            client.execute(READ)
        write(client)
        b.restart()
        wait_until(lambda: _reads(client, (3, 3)), 60, "the view")
        with b.connect() as there:
            assert there.execute(READ).fetchone() == (3, 3)
            there.execute("SELECT millstream.migrate('v', 'a')")
        write(client)
        assert client.execute(READ).fetchone() == (4, 4)


def _reads(client: psycopg.Connection, wanted: tuple[int, int]) -> bool:
    try:
        return client.execute(READ).fetchone() == wanted
    except psycopg.OperationalError:
        return False


def test_kept_answers_are_of_now(pair: tuple[Millstream, Millstream]) -> None:
    """Encoded answers, and prepared statements, of a session that repeats its queries."""
    a, b = pair
    with a.connect() as client, b.connect() as there:
        for number in range(2, 30):
            for statement in ("INSERT INTO s VALUES (1, 0)", f"UPDATE t SET total = {number} WHERE id = 1"):
                client.execute(statement.encode())
                for each in (there, client, there):
                    wanted = number, number - ("INSERT" in statement)
                    assert each.execute(READ, prepare=True).fetchone() == wanted
                    assert each.execute(READ, prepare=False).fetchone() == wanted
