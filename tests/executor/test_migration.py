"""Queries that migrate between servers: their rows are the same, whichever server computes them or dies."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from catalog.values.errors import SqlError
from executor.database.database import Database
from executor.queries.client import Client as Asker
from executor.queries.reader import Reader
from executor.separation import service
from executor.separation.query_artifact import SeparatedQuery
from executor.separation.running_queries import RunningQuery
from executor.separation.service import Separation
from tests.executor.client import Client, open_database
from tests.executor.separating import TABLES, Asked, leave, outcome, separable, whole
from tests.executor.test_separation_artifact import QUERY
from tests.executor.test_separation_types import QUERIES as BY_TYPE
from tests.executor.test_separation_types import TABLE, THREE, TYPES, shown
from tests.rig.beside import Beside
from tests.rig.process import wait_until

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("everywhere", "patient"), pytest.mark.sample(9)]

#: Longer than any test takes.
LEASE = 600.0
Open = Callable[[str], Database]


@pytest.fixture
def join(tmp_path: Path) -> Iterator[Open]:
    """Starts servers of one storage."""
    opened: list[Database] = []

    def join(name: str) -> Database:
        options = {"storage": str(tmp_path / "storage"), "server_name": name, "server_lease": LEASE}
        opened.append(open_database(tmp_path / name, **options))
        return opened[-1]

    yield join
    for database in opened:
        database.close()


@pytest.fixture
def a(join: Open) -> Database:
    database = join("a")
    Client(database).run(TABLES)
    return database


@pytest.fixture
def b(join: Open) -> Database:
    return join("b")


class Leaving:
    """A server's queries, which were asked to migrate after a number of pipelines."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, source: Database, target: str, after: int = 1) -> None:
        self.ids: list[str] = []
        leaving = self

        class Query(RunningQuery):
            def advance(self, rows: int, size: int) -> None:
                super().advance(rows, size)
                here = any(self is query for query in source.separation.running.all())
                if here and self.finished == after and self.id not in leaving.ids:
                    leaving.ids.append(self.id)
                    self.ask("migrate", target)

        monkeypatch.setattr(service, "RunningQuery", Query)


def stored(database: Database) -> list[str]:
    return database.separation.stored.ids()


def settled(database: Database) -> None:
    """Waits until no query is claimed."""
    wait_until(lambda: not database.separation.claims.all(), what="end of all queries")


@pytest.mark.parametrize("after", [1, 2, 3])
def test_the_client_gets_its_rows(after: int, a: Database, b: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    client = separable(a)
    wanted = whole(client, QUERY)
    leaving = Leaving(monkeypatch, a, "b", after)
    assert client.run(QUERY) == wanted
    assert len(leaving.ids) == 1
    settled(a)
    assert (stored(a), stored(b)) == ([], [])


@pytest.mark.parametrize(
    "query", ["SELECT k, count(*) FROM (SELECT DISTINCT k, s, i, n, d FROM t) g GROUP BY k ORDER BY k"]
)
def test_of_tables_only_what_is_read(query: str, a: Database, b: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    client = separable(a)
    wanted = whole(client, query)
    Leaving(monkeypatch, a, "b")
    assert client.run(query) == wanted
    assert Client(b).run("SELECT count(*) FROM pg_tables WHERE schemaname = 'public'") == [(0,)]


@pytest.mark.parametrize("name", ["in an enum's order", "rows of a type", "arrays", "rows of a table"])
def test_values_of_users_types(name: str, a: Database, b: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    """The client gets values with its own server's types, whatever types of these names the other server has."""
    query, kinds, _ = BY_TYPE[name]
    Client(a).run(f"CREATE EXTENSION hstore; {TYPES}; {TABLE}")
    Client(b).run("CREATE TYPE mood AS ENUM ('happy', 'sad', 'ok'); CREATE TYPE spot AS (x int)")
    client = separable(a)
    wanted = shown(client, query)
    assert wanted[0] == kinds
    leaving = Leaving(monkeypatch, a, "b")
    assert shown(client, query) == wanted
    assert len(leaving.ids) == 1


def test_finished_rows_have_the_types_of_the_server_that_is_asked(
    a: Database, b: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    Client(a).run(f"CREATE EXTENSION hstore; {TYPES}; {TABLE}")
    client = separable(a)
    wanted = shown(client, THREE)
    with monkeypatch.context() as patch:
        Asked(patch, 1)
        query_id = leave(client, THREE)
    assert query_id is not None
    rest = f"SELECT * FROM millstream.resume('{query_id}')"
    with monkeypatch.context() as patch:
        Leaving(patch, a, "b")
        assert shown(client, rest) == wanted
    settled(a)
    assert a.separation.stored.get(query_id).state == "finished"
    assert shown(Client(a), rest) == wanted
    assert shown(Client(b), rest) == (("text", "bigint", "text"), wanted[1])


def test_a_query_that_went_on_migrates_again(a: Database, b: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    client = separable(a)
    wanted = whole(client, QUERY)
    Leaving(monkeypatch, a, "b")
    back = Separation.go_on

    def go_on(self: Separation, *arguments: Any, **more: Any) -> Any:
        if self is b.separation:
            Leaving(monkeypatch, b, "a")
        return back(self, *arguments, **more)

    monkeypatch.setattr(Separation, "go_on", go_on)
    assert client.run(QUERY) == wanted
    settled(a)
    assert stored(a) == []


def test_what_was_given_up_is_not_begun_again(a: Database, b: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    """The target's own thread has read the claim shortly before the query is given up."""
    client = separable(a)
    wanted = whole(client, QUERY)
    Leaving(monkeypatch, a, "b")
    tried, looked = list[str](), threading.Event()
    moving, go_on = b.separation.moving, Separation.go_on
    claims = moving._claims.all

    def failing(self: Separation, *arguments: Any, **more: Any) -> Any:
        if self is b.separation:
            tried.append("b")
            assert looked.wait(60)
            raise SqlError("53200", "out of memory")
        return go_on(self, *arguments, **more)

    def late() -> Any:
        found = claims()
        if moving._begun:
            looked.set()
            wait_until(lambda: not moving._begun, what="its end")
        return found

    monkeypatch.setattr(moving._claims, "all", late)
    monkeypatch.setattr(Separation, "go_on", failing)
    assert client.run(QUERY) == wanted
    settled(a)
    assert tried == ["b"]


def test_what_the_target_cannot_compute_is_computed_here(
    a: Database, b: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = separable(a)
    wanted = whole(client, QUERY)
    Leaving(monkeypatch, a, "b")
    tried: list[str] = []
    go_on = Separation.go_on

    def failing(self: Separation, *arguments: Any, **more: Any) -> Any:
        if self is b.separation:
            tried.append("b")
            raise SqlError("53200", "out of memory")
        return go_on(self, *arguments, **more)

    monkeypatch.setattr(Separation, "go_on", failing)
    assert client.run(QUERY) == wanted
    assert tried == ["b"]


def test_an_error_is_its_clients(a: Database, b: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    query = "SELECT n, sum(1 / (n - n)) FROM (SELECT k, count(*) AS n FROM t GROUP BY k) g GROUP BY n ORDER BY n"
    client = separable(a)
    assert whole(client, query) == "22012"
    Leaving(monkeypatch, a, "b")
    assert outcome(client, query) == "22012"


@pytest.mark.parametrize(("is_gone", "left"), [(False, 0), (True, 1)])
def test_a_cancelled_client(
    is_gone: bool, left: int, a: Database, b: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A cancelled query ends on every server; the rows of a disconnected client can be fetched."""
    client = separable(a)
    wanted = whole(client, QUERY)
    client.session.reader.client = lambda: Asker(7, "millstream", QUERY, is_gone)
    leaving = Leaving(monkeypatch, a, "b")
    go_on = Separation.go_on
    cancelled = threading.Event()

    def waiting(self: Separation, *arguments: Any, **more: Any) -> Any:
        client.session.cancel()
        assert cancelled.wait(60)
        return go_on(self, *arguments, **more)

    monkeypatch.setattr(Separation, "go_on", waiting)
    with pytest.raises(SqlError, match="canceling statement") as raised:
        client.run(QUERY)
    assert raised.value.sqlstate == "57014"
    cancelled.set()
    settled(b)
    assert len(stored(a)) == left
    if is_gone:
        monkeypatch.setattr(Separation, "go_on", go_on)
        about = "SELECT state, server FROM millstream.queries"
        assert Client(a).run(about) == [("finished", None)]
        for database in (a, b):
            again = Client(database)
            again.session.reader.client = client.session.reader.client
            assert again.run(f"SELECT * FROM millstream.resume('{leaving.ids[0]}')") == wanted


def test_no_two_servers_run_a_query(a: Database, b: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    client = separable(a)
    leaving = Leaving(monkeypatch, a, "b")
    go_on = Separation.go_on
    found: list[tuple[Any, ...]] = []

    def watched(self: Separation, *arguments: Any, **more: Any) -> Any:
        if self is b.separation:
            monkeypatch.setattr(Separation, "go_on", go_on)
            wait_until(lambda: not a.separation.running.all(), what="the source's end of it")
            with pytest.raises(SqlError, match='is running on server "b"') as raised:
                Client(a).run(f"SELECT * FROM millstream.resume('{leaving.ids[0]}')")
            found.append((raised.value.sqlstate, *Client(a).run("SELECT state, server FROM millstream.queries")))
        return go_on(self, *arguments, **more)

    monkeypatch.setattr(Separation, "go_on", watched)
    client.run(QUERY)
    assert found == [("55006", ("running", "b"))]


def test_a_dead_servers_query_is_taken_over(a: Database, b: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    """``a`` stands still for longer than its lease while it writes, and then finds that its query belongs to another
    server."""
    client = separable(a)
    wanted = whole(client, QUERY)
    request = []
    extractor = Separation._extractor

    def stopped(self: Separation, *arguments: Any) -> Any:
        extract = extractor(self, *arguments)

        def late(query: RunningQuery, *rest: Any) -> None:
            extract(query, *rest)  # a checkpoint, from which another server continues
            if self is a.separation:
                lose(a, b)
                settled(b)
                extract(query, *rest)

        return late

    class Query(RunningQuery):
        def advance(self, rows: int, size: int) -> None:
            super().advance(rows, size)
            if self.finished == 1 and not request:
                request.append(self.ask("checkpoint"))

    monkeypatch.setattr(Separation, "_extractor", stopped)
    monkeypatch.setattr(service, "RunningQuery", Query)
    assert client.run(QUERY) == wanted, "it has its snapshot and its client"
    with pytest.raises(SqlError, match="its lease was taken over") as raised:
        request[0].wait(lambda: False)
    assert raised.value.sqlstate == "55000"
    (query_id,) = stored(b)
    assert Client(b).run(f"SELECT * FROM millstream.resume('{query_id}')") == wanted
    about = "SELECT name, state, epoch, is_this FROM millstream.servers"
    assert Client(b).run(about) == [("a", "lost", 2, False), ("b", "up", 1, True)]


def lose(lost: Database, other: Database) -> None:
    """A server's lease has expired for another server, whose own thread looks as well; a heartbeat may come in
    between."""
    registry, name = other.core.registry, lost.core.options.server_name
    while registry.require(name).is_living:
        registry.silent()
        watched = registry._watched.get(name)
        if watched is not None:
            watched.silent, watched.beat = LEASE, registry._beat_of(name)
        other.separation.moving._take_over()


@pytest.mark.parametrize("failures", [0, 1])
def test_a_server_that_is_drained(failures: int, a: Database, b: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    """A query that its target gives up at first comes back and leaves again; it counts once, and the other query still
    runs then."""
    clients = {process: separable(a) for process in (7, 8)}
    wanted = whole(clients[7], QUERY)
    draining: list[Beside[int]] = []
    tried: list[str] = []
    go_on = Separation.go_on

    class Query(RunningQuery):
        def advance(self, rows: int, size: int) -> None:
            super().advance(rows, size)
            if not any(self is query for query in a.separation.running.all()):
                return
            if self.client.process == 7 and not draining:
                wait_until(lambda: len(a.separation.running.all()) == 2, what="the other query")
                draining.append(Beside(b.separation.moving.drain, "a", lambda: False, lambda moved: None))
            if self.client.process == 8:
                wait_until(lambda: len(tried) > failures, what="that the first one has left")
            wait_until(lambda: bool(self._requests), what="the wish to leave")

    def failing(self: Separation, reader: Any, query: Any, keep: bool = False) -> Any:
        if self is b.separation:
            tried.append(query.id)
            if len(tried) <= failures:
                raise SqlError("53200", "out of memory")
        return go_on(self, reader, query, keep)

    monkeypatch.setattr(Separation, "go_on", failing)
    monkeypatch.setattr(service, "RunningQuery", Query)
    for process, client in clients.items():
        client.session.reader.client = partial(Asker, process, "millstream", QUERY)
    answers = [Beside(client.run, QUERY) for client in clients.values()]
    assert [answer.result() for answer in answers] == [wanted, wanted]
    assert [drain.result() for drain in draining] == [2]
    assert (len(tried), len(set(tried))) == (2 + failures, 2)
    assert Client(b).run("SELECT name, state FROM millstream.servers") == [("a", "drained"), ("b", "up")]
    with pytest.raises(SqlError, match="takes no queries"):
        b.core.registry.require_target("a")
    with pytest.raises(SqlError, match="no server can take over"):
        b.separation.moving.drain("b", lambda: False, lambda moved: None)


def test_by_its_id_it_migrates_on(a: Database, b: Database, join: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    """The query runs for a session of another server, which waits for it throughout."""
    client, c = separable(a), join("c")
    wanted = whole(client, QUERY)
    role, moved, refused = Asker(1, "millstream", ""), list[Beside[str | None]](), list[str]()

    class Query(RunningQuery):
        def advance(self, rows: int, size: int) -> None:
            super().advance(rows, size)
            if self.client.process == 7 and not moved:
                self.ask("migrate", "b")
            elif b.separation.running.has(self.id) and not moved:
                for who, wish, server in (
                    (Asker(1, "x", ""), "migrate", b),
                    (role, "suspend", b),
                    (role, "migrate", a),
                ):
                    with pytest.raises(SqlError) as raised:
                        server.separation.ask_for(who, wish, self.id, lambda: False, "c")
                    refused.append(raised.value.sqlstate)
                moved.append(Beside(b.separation.ask_for, role, "migrate", self.id, lambda: False, "c"))
                wait_until(lambda: bool(self._requests), what="the wish to leave")

    begun, go_on = list[str](), c.separation.go_on

    def counted(reader: Reader, query: SeparatedQuery, keep: bool = False) -> Any:
        begun.append(query.id)
        return go_on(reader, query, keep)

    monkeypatch.setattr(c.separation, "go_on", counted)
    monkeypatch.setattr(service, "RunningQuery", Query)
    client.session.reader.client = lambda: Asker(7, "millstream", QUERY)
    assert client.run(QUERY) == wanted
    assert begun == [moved[0].result()], "it ended at the third server"
    assert refused == ["42501", "55000", "55000"]


@pytest.mark.parametrize(
    ("target", "sqlstate"), [("a", "55000"), ("nobody", "42704"), ("../a", "42704"), ("c", "55000")]
)
def test_where_no_query_can_go(target: str, sqlstate: str, a: Database, join: Open) -> None:
    join("c").core.registry.close()
    with pytest.raises(SqlError) as raised:
        a.separation.ask("migrate", 1, lambda: False, target)
    assert raised.value.sqlstate == sqlstate


def test_a_forged_order_is_not_carried_out(a: Database, b: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    """The manifest that the target finds is checked as usual; the source continues from nothing else."""
    client = separable(a)
    Leaving(monkeypatch, a, "b")
    give = a.separation.claims.give

    def forged(query_id: str, target: str) -> None:
        path = a.separation.stored._folder / query_id / "manifest.json"
        path.write_bytes(path.read_bytes().replace(b'"number":1', b'"number":2'))
        give(query_id, target)

    monkeypatch.setattr(a.separation.claims, "give", forged)
    with pytest.raises(SqlError, match="no valid manifest") as raised:
        client.run(QUERY)
    assert raised.value.sqlstate == "XX001"


def test_what_is_resumed_may_migrate_and_stays(a: Database, b: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    client = separable(a)
    wanted = whole(client, QUERY)
    with monkeypatch.context() as patch:
        Asked(patch, 1)
        query_id = leave(client, QUERY)
    assert query_id is not None
    rest = f"SELECT * FROM millstream.resume('{query_id}')"
    with monkeypatch.context() as patch:
        assert Leaving(patch, a, "b").ids == []
        assert client.run(rest) == wanted
    settled(a)
    assert client.run("SELECT query_id, state FROM millstream.queries") == [(query_id, "finished")]
    assert client.run(rest) == wanted


def test_a_claim_that_was_not_released(a: Database) -> None:
    claims = a.separation.claims
    claims.take("0123456789abcdef")
    claims._held.clear()
    settled(a)
    claims.take("0123456789abcdef")
    claims.drop_unheld("0123456789abcdef")
    assert claims.owner("0123456789abcdef") == "a"
