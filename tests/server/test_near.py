"""Reads of small views on the loop's own thread: for whom they are, and that nobody sees a difference."""

from __future__ import annotations

import asyncio
import math
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, cast

import pytest

from executor import views
from executor.views import ViewRuntime
from server import connection
from server.config import Address, Config
from server.session import Session
from tests.server.test_express import Peer, end, request, start
from tests.server.wire import SYNC, Message, bind, execute, parse

READ = "SELECT * FROM by_key"
COPY = request(("Q", b"COPY feed FROM STDIN (FORMAT csv)\0"))


class Client(Peer):
    """A client, with what threads have done for it."""

    works = 0

    @property
    def session(self) -> Session:
        """Its session."""
        return cast(Session, self.connection.handler)

    @property
    def view(self) -> ViewRuntime:
        """The view of the tests."""
        return next(each for each in self.session.database.runtimes() if each.view.name == "by_key")

    def copy(self, *rows: str) -> None:
        """COPY of some rows, by a Query."""
        data: tuple[Message, ...] = (("d", "".join(f"{row}\n" for row in rows).encode()), ("c", b""))
        self.feed(COPY, request(*data))

    def counted(self, data: bytes) -> tuple[bytes, int]:
        """A request's answer, and how often a thread was asked."""
        before = self.works
        return self.feed(data), self.works - before


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    folder = tmp_path_factory.mktemp("data")
    config = replace(Config(), data=folder, listen=Address("127.0.0.1", 0), spark_enabled=False)
    with asyncio.Runner() as loop:
        stop, running = loop.run(start(config))
        made = Client(loop, running[0])
        made.query("CREATE FOREIGN TABLE feed (k integer, n integer) SERVER stream")
        made.query("CREATE TABLE names (k integer)")
        made.query("CREATE VIEW by_key AS SELECT k, count(*) AS c, sum(n) AS s FROM feed GROUP BY k")
        made.query("CREATE VIEW named AS SELECT count(*) AS c, (SELECT count(*) FROM names) AS n FROM feed")
        yield made
        loop.run(end(stop, running[1]))


@pytest.fixture
def client(served: Client, monkeypatch: pytest.MonkeyPatch) -> Client:
    """The only one, however slow the machine is, who has read the view before."""
    work = Session.work

    async def counted(session: Session, *arguments: Any) -> Any:
        served.works += 1
        return await work(session, *arguments)

    monkeypatch.setattr(Session, "work", counted)
    monkeypatch.setattr(connection, "ALONE", -1.0)
    monkeypatch.setattr(views, "NEAR_SECONDS", math.inf)
    served.copy("1,1")
    served.query(READ)
    served.session._followed = None
    return served


QUERY = request(("Q", READ.encode() + b"\0"))


def simple(text: str) -> bytes:
    """A text as a Query."""
    return request(("Q", text.encode() + b"\0"))


def extended(text: str) -> bytes:
    """A text as messages of the extended protocol."""
    return request(parse(text), bind(), execute(), SYNC)


@pytest.mark.parametrize("form", [simple, extended])
def test_new_rows_are_read_without_a_thread(
    client: Client, monkeypatch: pytest.MonkeyPatch, form: Callable[[str], bytes]
) -> None:
    client.feed(form(READ))
    for number in range(3):
        client.copy("1,2", f"{number},5")
        near, asked = client.counted(form(READ))
        assert asked == 0
        with monkeypatch.context() as patch:
            patch.setattr(connection, "ALONE", math.inf)
            ordinary, asked = client.counted(form(f"{READ} -- {number}"))
            assert ordinary == near
            assert asked > 0


def test_who_is_not_alone_has_a_thread(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "ALONE", math.inf)
    client.copy("1,2")
    assert client.counted(QUERY)[1] == 1


def test_a_view_that_somebody_works_on_is_not_waited_for(client: Client) -> None:
    client.copy("1,2")
    held, go = threading.Event(), threading.Event()

    def hold() -> None:
        with client.view.lock:
            held.set()
            go.wait(60)

    holder = threading.Thread(target=hold)
    holder.start()
    held.wait(60)
    client.session.server.loop.call_later(0.01, go.set)
    assert client.counted(QUERY)[1] == 1
    holder.join()


def test_many_rows_and_slow_views_have_a_thread(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(views, "NEAR_ROWS", 2)
    client.copy("1,2", "2,2", "3,3")
    assert client.counted(QUERY)[1] == 1
    monkeypatch.setattr(views, "NEAR_SECONDS", -1.0)
    client.copy("1,2")
    assert client.counted(QUERY)[1] == 1


@pytest.mark.parametrize("read", ["SELECT * FROM named", "SELECT sum(s) FROM by_key"])
def test_what_an_engine_must_be_asked_for_has_a_thread(client: Client, read: str) -> None:
    data = request(("Q", read.encode() + b"\0"))
    client.feed(data)
    client.copy("1,2")
    assert client.counted(data)[1] == 1


def test_a_transaction_has_a_thread(client: Client) -> None:
    client.query("BEGIN")
    assert client.counted(QUERY)[1] == 1
    client.query("COMMIT")


def test_the_view_is_brought_up_to_date_behind_the_answer(client: Client) -> None:
    client.copy("1,2")
    client.feed(QUERY)
    client.copy("1,3")
    client.query("SELECT 1")
    (progress,) = client.view.paths
    assert progress.reached == client.session.database.sequencer.visible
    client.copy("1,4")  # nobody has read since
    client.query("SELECT 1")
    assert progress.reached < client.session.database.sequencer.visible


def test_a_view_that_fails_says_so(client: Client) -> None:
    client.query("CREATE VIEW quotient AS SELECT sum(10 / n) AS q FROM feed")
    data = request(("Q", b"SELECT * FROM quotient\0"))
    for _ in range(2):
        client.copy("1,5")
        client.feed(data)
    client.copy("1,0")
    for _ in range(2):
        assert b"22012" in client.feed(data)
    client.query("DROP VIEW quotient")
