"""Continuous views that read tables at each read, between servers: the tables stay at home."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from catalog.objects import View
from catalog.values.errors import SqlError
from executor.moving.answers import answer
from executor.queries.moments import Moments
from executor.remote_reads import home_tables as borrowing
from executor.remote_reads.messages import decode_answer, decode_question, encode_answer, encode_question
from executor.replicas.replica import replica_of
from executor.subscriptions.feed import FeedReader
from executor.subscriptions.view_feed import ViewFeed
from tests.executor.client import Client
from tests.executor.forging import Given
from tests.executor.moving import Servers, lost
from tests.rig.beside import Repeating
from tests.rig.process import wait_until

pytestmark = [pytest.mark.slow, pytest.mark.sample(9)]

SETUP = """
    CREATE FOREIGN TABLE posts (uid int, n int) SERVER stream;
    CREATE TABLE users (id int PRIMARY KEY, name text, note text);
    INSERT INTO users VALUES (1, 'Ada', 'x'), (2, 'Bob', 'x');
    CREATE VIEW w AS SELECT u.name, g.c FROM users u
        JOIN (SELECT uid, count(*) AS c FROM posts GROUP BY uid) g ON g.uid = u.id;
"""
READ = "SELECT * FROM w ORDER BY name"


@pytest.fixture
def home(servers: Servers) -> Client:
    client = servers.client("a")
    client.run(SETUP)
    client.run("INSERT INTO posts VALUES (1, 1), (2, 1), (2, 1), (3, 1)")
    return client


def test_it_rests_at_home(servers: Servers, home: Client) -> None:
    for end in ("", "restart"):
        view = servers["a"].core.catalog.require("public", "w")
        assert isinstance(view, View)
        servers["a"].view_migration.suspend(view)
        if end:
            servers.stop("a")
        home = servers.client("a")
        with pytest.raises(SqlError, match='55000: view "w" is suspended'):
            home.run(READ)
        with pytest.raises(SqlError, match='55000: relation "users" is in use by a suspended view'):
            home.run("ALTER TABLE users ADD COLUMN more int")
        home.run("UPDATE users SET name = name || '!' WHERE id = 1; INSERT INTO posts VALUES (1, 1)")
        (owned,) = servers["a"].view_migration.suspended()
        servers["a"].view_migration.resume(owned, lambda: False)
    assert home.run(READ) == [("Ada!!", 3), ("Bob", 2)]
    home.run("ALTER TABLE users RENAME name TO called")
    assert home.run(READ) == [("Ada!!", 3), ("Bob", 2)]


def test_there_and_back(servers: Servers, home: Client) -> None:
    for source, target, n in (("a", "b", 1), ("b", "c", 3), ("c", "a", 5)):
        servers.migrate(source, target, "w")
        for reader in {"a", target}:
            assert servers.client(reader).run(READ) == [("Ada", n), ("Bob", 2)]
        changes: dict[str, list[tuple[object, ...]]] = {
            "INSERT INTO posts VALUES (1, 1)": [("Ada", n + 1), ("Bob", 2)],
            "INSERT INTO users VALUES (3, 'Cleo', '')": [("Ada", n + 1), ("Bob", 2), ("Cleo", 1)],
            "UPDATE users SET name = lower(name) WHERE id < 3": [("Cleo", 1), ("ada", n + 1), ("bob", 2)],
            "DELETE FROM users WHERE id = 2": [("Cleo", 1), ("ada", n + 1)],
            "BEGIN; UPDATE users SET name = 'Eve' WHERE id = 1; INSERT INTO posts VALUES (1, 1); COMMIT": [
                ("Cleo", 1),
                ("Eve", n + 2),
            ],
            "TRUNCATE users": [],
            "INSERT INTO users VALUES (1, 'Ada', 'x'), (2, 'Bob', 'x')": [("Ada", n + 2), ("Bob", 2)],
        }
        for statement, wanted in changes.items():
            home.run(statement)
            for reader in ("a", target, target, "a"):
                assert servers.client(reader).run(READ) == wanted, (statement, reader)


def test_a_table_is_asked_for_once_for_each_change(servers: Servers, home: Client) -> None:
    servers.migrate("a", "b", "w")
    asked = servers.questions("b")
    b = servers.client("b")
    assert b.run(READ) == [("Ada", 1), ("Bob", 2)]
    home.run("CREATE TABLE other (x int); INSERT INTO other VALUES (1)")
    for n in (2, 3):
        home.run("INSERT INTO posts VALUES (1, 1)")
        assert b.run(READ) == [("Ada", n), ("Bob", 2)]
    assert len(asked) == 1
    home.run("UPDATE users SET name = 'Eve' WHERE id = 1")
    for _ in range(2):
        assert b.run(READ) == [("Bob", 2), ("Eve", 3)]
    assert len(asked) == 2
    assert b"note" not in b"".join(asked), "nothing reads that column"


def test_a_home_that_is_down(servers: Servers, home: Client) -> None:
    """The lent rows are still everything that the home has acknowledged."""
    servers.migrate("a", "b", "w")
    home.run("INSERT INTO posts VALUES (1, 1)")
    b = servers.client("b")
    assert b.run(READ) == [("Ada", 2), ("Bob", 2)]
    servers.stop("a")
    assert b.run(READ) == [("Ada", 2), ("Bob", 2)]
    servers.stop("b")
    b = servers.client("b")
    with pytest.raises(SqlError, match='08001: view "w" reads table "users" of server "a", which cannot be reached'):
        b.run(READ)
    home = servers.client("a")
    assert b.run(READ) == [("Ada", 2), ("Bob", 2)]
    home.run("DELETE FROM users WHERE id = 2")
    servers.stop("a")
    with pytest.raises(SqlError, match="08001"):
        b.run(READ)
    home = servers.client("a")
    for client in (b, home):
        assert client.run(READ) == [("Ada", 2)]


def test_it_rests_and_goes_on_elsewhere(servers: Servers, home: Client) -> None:
    view = servers["a"].core.catalog.require("public", "w")
    assert isinstance(view, View)
    servers["a"].view_migration.suspend(view)
    home.run("UPDATE users SET name = name || '!'; INSERT INTO posts VALUES (1, 1)")
    (owned,) = servers["b"].view_migration.suspended()
    servers["b"].view_migration.resume(owned, lambda: False)
    for name in ("b", "a"):
        assert servers.client(name).run(READ) == [("Ada!", 2), ("Bob!", 2)]


def test_a_transaction_sees_its_own_changes_or_fails(servers: Servers, home: Client) -> None:
    servers.migrate("a", "b", "w")
    home.run("CREATE TABLE other (x int)")
    for change in ("UPDATE users SET name = 'Eve' WHERE id = 1", "TRUNCATE users", "DELETE FROM users"):
        home.run(f"BEGIN; INSERT INTO other VALUES (1); {change}")
        with pytest.raises(SqlError, match='0A000: reading view "w" of another server after changes of table "users"'):
            home.run(READ)
        home.run("ROLLBACK")
    home.run("BEGIN; INSERT INTO other VALUES (1)")
    assert home.run(READ) == [("Ada", 1), ("Bob", 2)]
    home.run("COMMIT")
    b = servers.client("b")
    b.run("CREATE TABLE own (x int); BEGIN; INSERT INTO own VALUES (1)")
    home.run("UPDATE users SET name = 'Eve' WHERE id = 1")
    assert b.run(READ) == [("Bob", 2), ("Eve", 1)]
    b.run("COMMIT")


def test_snapshots(servers: Servers, home: Client) -> None:
    """Of REPEATABLE READ transactions: a later change of the table is not seen."""
    servers.migrate("a", "b", "w")
    b = servers.client("b")
    before = [("Ada", 1), ("Bob", 2)]
    for client in (home, b):
        client.run("BEGIN ISOLATION LEVEL REPEATABLE READ")
        assert client.run(READ) == before
    home.run("COMMIT")
    home.run("BEGIN ISOLATION LEVEL REPEATABLE READ")
    assert home.run("SELECT count(*) FROM users") == [(2,)]
    servers.client("a").run("INSERT INTO users VALUES (3, 'Cleo', '')")
    for client in (home, b):
        try:
            assert client.run(READ) == before
        except SqlError as error:
            assert error.sqlstate == "40001"
        client.run("ROLLBACK")
        assert client.run(READ) == [*before, ("Cleo", 1)]


def test_rows_and_tables_are_of_one_moment(servers: Servers, home: Client) -> None:
    """A transaction writes to both; no reader on either server sees only one of them, or less than was acknowledged."""
    home.run("CREATE TABLE counts (k int, n int); INSERT INTO counts VALUES (1, 0); CREATE TABLE d (y int)")
    home.run("INSERT INTO d VALUES (1)")
    home.run(
        "CREATE VIEW x AS SELECT g.c, t.n FROM (SELECT n, count(*) AS c FROM posts WHERE n = 7 GROUP BY n) g, counts t"
    )
    home.run("INSERT INTO posts VALUES (7, 7); UPDATE counts SET n = 1")
    servers.migrate("a", "b", "x")
    done = 1

    def read(client: Client, query: str, is_any: bool) -> None:
        while True:
            least = done
            try:
                found = client.run(query)
            except SqlError as error:
                assert error.sqlstate == "40001", error
                assert not is_any, "whatever comes, it may be of any moment"
                continue
            assert isinstance(found, list)
            ((rows, counted),) = found
            assert rows == counted >= least, query
            return

    queries = ("SELECT c, n FROM x", "SELECT x.c, counts.n FROM x, counts", "SELECT c, n FROM x, d")
    readers = [("b", queries[0], False), *(("a", query, query == queries[0]) for query in queries)]
    with ExitStack() as beside:
        reading = [
            beside.enter_context(Repeating(read, servers.client(name), query, is_any))
            for name, query, is_any in readers
        ]
        while done < 150 or not all(each.has_done(3) for each in reading):
            home.run("BEGIN; INSERT INTO posts VALUES (7, 7); UPDATE counts SET n = n + 1; COMMIT")
            done += 1


def test_another_reader_goes_further(servers: Servers, home: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    """The view advances between a read's LSN and its computation: the read must not show later rows with earlier
    tables."""
    servers.migrate("a", "b", "w")
    b = servers.client("b")
    assert b.run(READ) == [("Ada", 1), ("Bob", 2)]
    take, passed = Moments.take, list[int]()

    def passing(moments: Moments, *given: Any) -> Any:
        found = take(moments, *given)
        if moments is b.session.reader.moments and not passed:
            passed.append(found[0].lsn)
            home.run("BEGIN; INSERT INTO posts VALUES (1, 1); UPDATE users SET name = 'Eve' WHERE id = 1; COMMIT")
            assert servers.client("b").run(READ) == [("Bob", 2), ("Eve", 2)]
        return found

    monkeypatch.setattr(Moments, "take", passing)
    assert b.run(READ) == [("Bob", 2), ("Eve", 2)]
    assert passed


def test_a_table_changes_while_its_view_is_asked_for(servers: Servers, home: Client) -> None:
    """A statement at home that reads both sees one LSN."""
    servers.migrate("a", "b", "w")
    ask, changes = servers["a"].elsewhere.ask, list[str]()

    def changing(address: str, question: bytes, is_over: Callable[[], bool]) -> bytes:
        found = ask(address, question, is_over)
        if len(changes) < 3:
            changes.append(f"UPDATE users SET name = 'Eve{len(changes)}' WHERE id = 1")
            servers.client("a").run(changes[-1])
        return found

    servers["a"].elsewhere.ask = changing
    assert home.run("SELECT w.name, u.name FROM w JOIN users u ON u.id = w.c ORDER BY 1") == [
        ("Bob", "Bob"),
        ("Eve2", "Eve2"),
    ]
    assert len(changes) == 3


def test_what_is_lent_is_of_an_lsn(servers: Servers, home: Client) -> None:
    """Lent rows are used neither before their LSN nor after the next change."""
    servers.migrate("a", "b", "w")
    b = servers["b"]
    assert servers.client("b").run(READ) == [("Ada", 1), ("Bob", 2)]
    runtime = b.core.view(b.core.catalog.require("public", "w").oid)
    views, replica = (runtime.view.oid,), replica_of(b.replicas, runtime)
    assert replica is not None
    with b.core.sequencer.lock:
        assert set(b.borrowing.at(views)) == set(views)
        runtime.loans.take({name: replace(lent, at=replica.position + 1) for name, lent in runtime.loans.lent.items()})
        assert not b.borrowing.at(views)
        runtime.loans.take({name: replace(lent, at=replica.position) for name, lent in runtime.loans.lent.items()})
        assert b.borrowing.at(views)
        replica.changed |= {item.table: replica.position + 1 for item in runtime.program.borrowed}
        assert not b.borrowing.at(views)


def test_a_home_that_shows_less_than_its_log_has(
    servers: Servers, home: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows after such an answer may have been read already, and would be missed."""
    monkeypatch.setattr(borrowing, "_PATIENCE", 60.0)
    servers.migrate("a", "b", "w")
    ask, answers = servers["b"].elsewhere.ask, list[int]()

    def late(address: str, question: bytes, is_over: Callable[[], bool]) -> bytes:
        found = decode_answer(ask(address, question, is_over))
        answers.append(found.at)
        return encode_answer(replace(found, at=found.at - (5 if len(answers) < 3 else 0)))

    servers["b"].elsewhere.ask = late
    assert servers.client("b").run(READ) == [("Ada", 1), ("Bob", 2)]
    assert len(answers) == 3


def test_what_is_not_lent(servers: Servers, home: Client) -> None:
    """Other columns and other tables are never sent."""
    servers.migrate("a", "b", "w")
    home.run("CREATE TABLE secrets (id int, name text); INSERT INTO secrets VALUES (1, 'x')")
    asked = servers.questions("b")
    servers.client("b").run(READ)
    (question,) = map(decode_question, asked)
    reader = servers["a"].own_reader()
    assert decode_answer(answer(reader, encode_question(question))).rows.num_rows == 2
    secrets, scan = servers["a"].core.catalog.require("public", "secrets").oid, question.scan
    for other in (
        replace(scan, sources=("id", "note")),
        replace(scan, oid=secrets),
        replace(scan, columns=tuple(reversed(scan.columns))),
        replace(scan, oid=servers["a"].core.catalog.require("public", "posts").oid),
    ):
        with pytest.raises(SqlError, match='42P01: table "users" is not lent by server "a"'):
            decode_answer(answer(reader, encode_question(replace(question, relation=other))))
    for kind in ("view", "stream", "system"):
        with pytest.raises(SqlError, match="08P01"):
            decode_answer(answer(reader, encode_question(replace(question, relation=replace(scan, kind=kind)))))


@pytest.mark.parametrize(
    "query",
    [
        "SELECT g.uid, g.c FROM (SELECT uid, count(*) AS c FROM posts GROUP BY uid) g, users",  # not a user's column
        "SELECT g.uid, (SELECT count(*) FROM users) AS n FROM (SELECT uid FROM posts GROUP BY uid) g",
        "SELECT uid, count(*) FROM posts GROUP BY uid HAVING uid NOT IN (SELECT id FROM users WHERE name > 'Az')",
        "SELECT g.uid, u.name, v.note FROM (SELECT DISTINCT uid FROM posts) g JOIN users u ON id = uid "
        "LEFT JOIN users v ON v.id = u.id + 1",
        "SELECT g.uid, t.* FROM (SELECT DISTINCT uid FROM posts) g LEFT JOIN kinds t ON t.i = uid",
        "SELECT g.uid, t.m::text, count(*) OVER (PARTITION BY m) FROM (SELECT DISTINCT uid FROM posts) g, kinds t",
        "SELECT g.uid, a.x, b.x AS y FROM (SELECT DISTINCT uid FROM posts) g JOIN twice a ON a.x = uid, twice b",
    ],
)
def test_what_is_read_of_tables(query: str, servers: Servers, home: Client) -> None:
    home.run(
        """CREATE TYPE mood AS ENUM ('sad', 'ok'); CREATE DOMAIN few AS int CHECK (value < 50);
        CREATE TABLE kinds (i few, m mood, a int[], j jsonb, n numeric(20,4), f float8, ts timestamptz, b bytea, d date,
            u uuid, iv interval, t varchar(5), bo boolean, nn numeric, dd double precision GENERATED ALWAYS AS (f * 2)
            STORED, ms mood[]);
        INSERT INTO kinds VALUES (1, 'ok', '{1,2}', '{"a": [1]}', 1.5, '-0', '2024-01-01 00:00+02', '\\x00ff', 
            '2024-02-29', 'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11', '1 mon 2 days', 'x', true, 1.10, DEFAULT, '{ok,sad}');
        INSERT INTO kinds VALUES (2);
        CREATE TABLE twice (x int); INSERT INTO twice VALUES (1), (1), (2)"""
    )
    home.run(f"CREATE VIEW q AS {query}; INSERT INTO posts VALUES (1, 1), (2, 2), (3, 3)")
    wanted = sorted(map(repr, home.run("SELECT * FROM q")))
    assert wanted
    servers.migrate("a", "b", "q")
    for name in ("b", "a"):
        assert sorted(map(repr, servers.client(name).run("SELECT * FROM q"))) == wanted
    servers.migrate("b", "a", "q")
    home.run("ALTER TABLE users RENAME name TO called; ALTER TABLE users RENAME id TO number")
    assert sorted(map(repr, home.run("SELECT * FROM q"))) == wanted
    servers.migrate("a", "b", "q")
    home.run("INSERT INTO twice VALUES (1); DELETE FROM kinds; DELETE FROM users WHERE number = 1")
    assert sorted(map(repr, servers.client("b").run("SELECT * FROM q"))) == sorted(
        map(repr, home.run("SELECT * FROM q"))
    )


def test_tables_of_a_view_that_is_away_stay_as_they_are(servers: Servers, home: Client) -> None:
    servers.migrate("a", "b", "w")
    for statement in (
        "ALTER TABLE users ADD COLUMN x int",
        "ALTER TABLE users RENAME TO people",
        "ALTER TABLE users ALTER note TYPE varchar(9)",
        "ALTER TABLE users DROP COLUMN note",
    ):
        with pytest.raises(SqlError, match=r'55000: relation ".*" is in use by server "b"'):
            home.run(statement)
    with pytest.raises(SqlError, match="2BP01"):
        home.run("DROP TABLE users")
    assert servers.client("b").run(READ) == [("Ada", 1), ("Bob", 2)]
    assert "server a is asked" in str(servers.client("b").run("EXPLAIN SELECT * FROM w"))
    assert "server a is asked" in str(servers.client("b").run("EXPLAIN (FORMAT json) SELECT * FROM w"))
    home.run("DROP TABLE users CASCADE")
    wait_until(lambda: servers["b"].core.catalog.at("public", "w") is None, what="its end there")


def _has_changed(feed: ViewFeed, reader: FeedReader, after: int) -> bool:
    return bool(feed.delta(after, feed.advance(reader)))


def test_changes_of_tables_are_changes_of_the_view(servers: Servers, home: Client) -> None:
    servers.migrate("a", "b", "w")
    for name in ("b", "a"):
        database = servers[name]
        oid, reader = database.core.catalog.require("public", "w").oid, database.own_reader().present
        feed = database.changes.feed(oid)
        after = feed.start(reader, None)
        home.run("UPDATE users SET name = name || '!' WHERE id = 1")
        wait_until(partial(_has_changed, feed, reader, after), what="the change")
        (found,) = feed.delta(after, feed.advance(reader))
        assert [row[-1] for row in zip(*found.rows.to_pydict().values(), strict=True)] == [-1, 1]


def test_the_guest_is_lost(servers: Servers, home: Client) -> None:
    servers.migrate("a", "b", "w")
    home.run("INSERT INTO posts VALUES (1, 1); UPDATE users SET name = 'Eve' WHERE id = 1")
    servers.lose("b", "a")
    wait_until(lambda: servers.owner("w") == "a", what="the take-over")
    assert home.run(READ) == [("Bob", 2), ("Eve", 2)]


def test_the_home_is_gone_for_good(servers: Servers, home: Client) -> None:
    """The stream continues on another server, where the view is dropped, as no server has its table."""
    home.run("CREATE VIEW alone AS SELECT uid, count(*) AS c FROM posts GROUP BY uid")
    home.run("INSERT INTO posts VALUES (1, 1), (2, 1)")
    for name in ("w", "alone"):
        servers.migrate("a", "b", name)
    servers["b"].view_migration.checkpoints.close()
    servers.stop("a")
    lost(servers["b"], "a")
    with pytest.raises(SqlError, match="08001"):
        servers.client("b").run(READ)
    assert servers["b"].view_migration.adopt("a") == 1
    b = servers.client("b")
    with pytest.raises(SqlError, match="42P01"):
        b.run(READ)
    b.run("INSERT INTO posts VALUES (1, 1)")
    assert b.run("SELECT * FROM alone ORDER BY uid") == [(1, 2), (2, 1)]
    assert [entry.view for entry in servers["b"].view_migration.ownership.all()] == ["alone"]


def test_nobody_copies_it_unasked(servers: Servers, home: Client) -> None:
    runtime = servers["a"].core.view(servers["a"].core.catalog.require("public", "w").oid)
    with pytest.raises(SqlError, match='0A000: copying view "w" unasked'):
        servers["a"].view_migration.start_automatic_copies(runtime)
    servers["a"].view_migration.checkpoint(runtime.view)
    home.run("UPDATE users SET name = 'Eve' WHERE id = 1")
    with pytest.raises(SqlError, match=r"55000: relation .* is in use by a copy on the storage"):
        home.run("ALTER TABLE users ADD COLUMN x int")
    assert home.run(READ) == [("Bob", 2), ("Eve", 1)]


def test_two_views_of_one_table(servers: Servers, home: Client) -> None:
    home.run("CREATE VIEW x AS SELECT g.uid, u.note FROM (SELECT DISTINCT uid FROM posts) g JOIN users u ON id = uid")
    home.run("INSERT INTO posts VALUES (1, 1), (2, 1)")
    b = servers.client("b")
    for name in ("w", "x"):
        servers.migrate("a", "b", name)
        home.run("UPDATE users SET note = 'y' || note, name = 'z' || name WHERE id = 1")
    assert b.run("SELECT name, note, c FROM w JOIN x ON (name = 'Bob') = (uid = 2) ORDER BY 1") == [
        ("Bob", "x", 3),
        ("zzAda", "yyx", 2),
    ]


def _nodes(view: Any, wanted: Callable[[Any], bool]) -> list[Any]:
    found = [node for node in view["program"]["nodes"] if wanted(node)]
    assert found
    return found


def _of_table(node: Any) -> bool:
    return node[0] == "Snapshot" and "_table_" in node[1]


def _scanned(view: Any) -> None:
    """The program reads a table of the receiving server."""
    for node in _nodes(view, _of_table):
        node[:] = ["Scan", 16384, "users", "table", node[2], ["id", "name"], None]


def _unnamed(view: Any) -> None:
    """The program does not say whose rows they are."""
    assert view["program"]["program"]["p"][-1]
    view["program"]["program"]["p"][-1] = []


def _in_a_state(view: Any) -> None:
    """The program stores a table's rows."""
    (table,) = _nodes(view, _of_table)
    (delta,) = _nodes(view, lambda node: node[0] == "Delta")
    named = [view["program"]["columns"][item["c"]][1] for item in table[2]]
    delta[:] = ["Snapshot", table[1], delta[3], [table[3][named.index("id")]]]


def test_a_program_that_reads_tables_otherwise(servers: Servers, home: Client, tmp_path: Path) -> None:
    given = Given(servers, tmp_path)
    servers.client("b").run("CREATE TABLE users (id int, name text)")
    assert given.outcome(given.view) == ""
    for change in (_scanned, _unnamed, _in_a_state):
        view = json.loads(json.dumps(given.view))
        change(view)
        assert given.outcome(view) == "XX001", change
    assert given.outcome(given.view) == ""
