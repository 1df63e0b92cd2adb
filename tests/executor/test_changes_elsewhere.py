"""The changes of a continuous view, read and awaited at its home while the view is on another server, or suspended."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from catalog.objects import View
from catalog.values.errors import SqlError
from executor.database.database import Database
from executor.subscriptions import change_watch as watch
from executor.subscriptions.arrival_scan import Patience
from executor.subscriptions.change_watch import Name
from tests.executor.client import Client
from tests.executor.moving import READ, Rows, Servers
from tests.executor.test_changes import Subscriber
from tests.rig.process import wait_until

pytestmark = [pytest.mark.slow, pytest.mark.sample(9)]

NAME = Name("v", ("public",), "millstream")
SOON = Patience(0.3, 0.0)


def view_of(database: Database, name: str) -> View:
    found = database.core.catalog.require("public", name)
    assert isinstance(found, View)
    return found


@pytest.mark.parametrize("view", ["v", "w", "x"])
@pytest.mark.parametrize("seed", range(3))
def test_changes_add_up_to_the_view(view: str, seed: int, servers: Servers, a: Client) -> None:
    """The view moves between two reads; ``w`` reads it, and ``x`` has no groups to compare."""
    a.run("CREATE VIEW w AS SELECT g.k, v.n FROM (SELECT k FROM s GROUP BY k) g JOIN v ON v.k = g.k")
    a.run("CREATE VIEW x AS SELECT sum(c) AS c FROM (SELECT k % 2 AS k, count(*) AS c FROM s GROUP BY k) g")
    choose, rows, owner = random.Random(seed), Rows(), "a"
    reading = Subscriber(servers["a"], view)
    for _ in range(8):
        rows.insert(servers.client("a"), choose.randrange(1, 5))
        if choose.random() < 0.5:
            target = choose.choice([name for name in "abc" if name != owner])
            servers.migrate(owner, target, "x" if view == "x" else "v")
            owner = target
        if choose.random() < 0.7:
            reading.check()
    reading.check()


def test_changes_in_sql(servers: Servers, a: Client) -> None:
    a.session.await_rows(SOON, lambda notice: None)
    rows = Rows()
    rows.insert(a, 3)
    servers.migrate("a", "b")
    query = "SELECT diff, k, c FROM millstream.changes('v') ORDER BY k, diff"
    assert a.run(query) == [(1, 0, 1), (1, 1, 1), (1, 2, 1)]
    ((lsn,),) = a.run("SELECT max(lsn) FROM millstream.changes('v')")
    rows.insert(a, 1)
    since = f"SELECT diff, k, c FROM millstream.changes('v', {lsn}) ORDER BY k, diff"
    assert a.run(since) == [(-1, 0, 1), (1, 0, 2)]
    servers.migrate("b", "a")
    assert a.run(since) == [(-1, 0, 1), (1, 0, 2)]
    rows.insert(a, 1)
    assert a.run(since) == [(-1, 0, 1), (1, 0, 2), (-1, 1, 1), (1, 1, 2)]


def test_changes_where_a_view_has_come_again(servers: Servers, a: Client) -> None:
    """A server that had the view before does not know the changes since then, and reports that."""
    rows = Rows()
    rows.insert(a, 3)
    servers.migrate("a", "b")
    servers.client("b").run(READ)
    before = servers["b"].core.sequencer.visible
    servers.migrate("b", "a")
    rows.insert(a, 3)
    servers.migrate("a", "b")
    b = servers.client("b")
    b.session.await_rows(SOON, lambda notice: None)
    with pytest.raises(SqlError, match="72000"):
        b.run(f"SELECT * FROM millstream.changes('v', {before})")
    rows.insert(a, 3)
    with pytest.raises(SqlError, match="72000"):
        b.run(f"SELECT * FROM millstream.changes('v', {before})")
    whole = "SELECT k, c FROM millstream.changes('v') GROUP BY k, c HAVING sum(diff) > 0 ORDER BY k"
    assert b.run(whole) == [(0, 3), (1, 3), (2, 3)]


def test_changes_while_no_server_has_it(servers: Servers, a: Client) -> None:
    a.session.await_rows(SOON, lambda notice: None)
    rows = Rows()
    rows.insert(a, 3)
    reading = Subscriber(servers["a"], "v")
    moving = servers["a"].view_migration
    moving.suspend(view_of(servers["a"], "v"))
    rows.insert(a, 3)
    with pytest.raises(SqlError, match='55000: view "v" is suspended'):
        a.run("SELECT * FROM millstream.changes('v')")
    (owned,) = moving.suspended()
    moving.resume(owned, lambda: False)
    reading.check()
    servers.migrate("a", "b")
    servers.stop("b")
    assert len(a.run("SELECT * FROM millstream.changes('v')")) == 3, "nothing has changed"
    rows.insert(a, 3)
    with pytest.raises(SqlError, match="08001"):
        a.run("SELECT * FROM millstream.changes('v')")
    _ = servers["b"]
    reading.check()


def test_listeners_are_notified(servers: Servers, a: Client) -> None:
    """Listeners are notified also if the view was suspended or unreachable, once it continues."""
    database, told = servers["a"], Counter[str]()
    database.change_watch.tell = lambda name, lsn, rows: told.update({name.name: rows})
    rows = Rows()
    rows.insert(a, 3)
    servers.migrate("a", "b")

    def insert(count: int, changed: int) -> None:
        before = told["v"]
        rows.insert(a, count)
        wait_until(lambda: told["v"] == before + changed, 60, "what there is to be told")

    database.change_watch.watch(NAME)
    insert(1, 2)
    servers.migrate("b", "a")
    insert(1, 2)
    moving = database.view_migration
    moving.suspend(view_of(database, "v"))
    before = told["v"]
    rows.insert(a, 3)
    _ = servers["c"]
    (owned,) = moving.suspended()
    servers["c"].view_migration.resume(owned, lambda: False)
    wait_until(lambda: told["v"] == before + 6, 60, "what came while nobody had it")
    insert(2, 4)
    database.change_watch.unwatch(NAME)
    assert a.run(READ) == rows.wanted()


def test_an_unreachable_server_is_asked_again(servers: Servers, a: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    """A server that could not be asked is asked again, also while there are no further changes."""
    database, told = servers["a"], list[int]()
    database.change_watch.tell = lambda name, lsn, rows: told.append(rows)
    servers.migrate("a", "b")
    rows = Rows()
    rows.insert(a, 3)
    database.change_watch.watch(NAME)
    ask, refused = database.elsewhere.ask, list[bytes]()

    def refusing(address: str, question: bytes, is_over: Callable[[], bool]) -> bytes:
        if len(refused) < 2:
            refused.append(question)
            raise ConnectionRefusedError("nobody is there")
        return ask(address, question, is_over)

    monkeypatch.setattr(database.elsewhere, "ask", refusing)
    monkeypatch.setattr(watch, "AGAIN", 0.01)
    rows.insert(a, 1)
    wait_until(lambda: told == [2], what="what has changed")
    database.change_watch.unwatch(NAME)


def test_listening_begins_while_no_server_has_it(servers: Servers, a: Client) -> None:
    database, told = servers["a"], list[Any]()
    database.change_watch.tell = lambda name, lsn, rows: told.append(rows)
    moving = database.view_migration
    moving.suspend(view_of(database, "v"))
    database.change_watch.watch(NAME)
    rows = Rows()
    rows.insert(a, 3)
    (owned,) = moving.suspended()
    moving.resume(owned, lambda: False)
    wait_until(lambda: not database.core.versions.suspended, 60, "the view")
    while not told:  # what came before it was first seen is not told
        rows.insert(a, 1)
    database.change_watch.unwatch(NAME)
