"""Streams of a server that is lost for good: another server adopts them, and each acknowledged row is there exactly
once."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from msgspec.structs import replace

from catalog.values.errors import SqlError
from executor.cluster import logs
from executor.core.core import Core
from executor.moving import adoption
from executor.moving.view_import import ViewImport
from tests.executor.client import Client
from tests.executor.moving import READ, Rows, Servers, lost
from tests.rig.process import wait_until

pytestmark = [pytest.mark.slow, pytest.mark.sample(9)]


@pytest.fixture
def rows(servers: Servers, a: Client) -> Rows:
    """The acknowledged rows of a stream whose view is at b and whose server is lost; its LSNs are above those of b."""
    rows = Rows()
    for _ in range(20):
        rows.insert(a, 1)
    servers.migrate("a", "b")
    servers["b"].view_migration.checkpoints.close()
    rows.insert(a, 5)
    gone(servers)
    return rows


def gone(servers: Servers) -> None:
    """Stops the renewal of a server's lease."""
    servers.stop("a")
    lost(servers["b"], "a")


def adopt(servers: Servers, by: str = "b") -> int:
    return servers[by].view_migration.adopt("a")


def require_written(servers: Servers, rows: Rows, by: str = "b") -> None:
    """Checks that the stream accepts writes again, and that its view has each row once and in order, also after a
    restart."""
    for _ in range(2):
        rows.insert(servers.client(by), 3)
        assert servers.client(by).run(READ) == rows.wanted()
        servers.stop(by)
        assert servers.client(by).run(READ) == rows.wanted()


def test_writers_go_on(servers: Servers, rows: Rows) -> None:
    b = servers.client("b")
    assert servers["a"].core.sequencer.visible > servers["b"].core.sequencer.visible
    gone(servers)
    with pytest.raises(SqlError, match="42809"):
        b.run("INSERT INTO s VALUES (1, 1, '')")
    assert adopt(servers) == 1
    require_written(servers, rows)
    assert servers.client("b").run("SELECT name, server, home FROM millstream.views") == [("v", "b", "b")]
    assert adopt(servers) == 0, "it is done"
    servers.client("b").run("ALTER FOREIGN TABLE s ADD COLUMN m int")
    servers.client("b").run("CREATE VIEW w AS SELECT count(*) AS c, count(m) AS m FROM s")
    servers.migrate("b", "c")
    servers.client("b").run("INSERT INTO s VALUES (0, 100, '100', 7)")
    assert servers.client("c").run("SELECT sum(c) FROM v") == [(29 + 3,)]
    assert servers.client("b").run("SELECT * FROM w") == [(1, 1)]
    servers.client("b").run("DROP FOREIGN TABLE s CASCADE")
    wait_until(lambda: not servers["c"].core.streams, 60, "the guest's end")


def test_an_adopted_server_cannot_start_again(servers: Servers, rows: Rows) -> None:
    """A lost server cannot start again, with its data folder and log or with another folder; a refused start leaves
    nothing behind."""
    adopt(servers)
    before = threading.active_count()
    with pytest.raises(SqlError, match='55000: the streams of server "a" belong to server "b" now'):
        _ = servers["a"]
    (servers._folder / "a").rename(servers._folder / "before")
    (servers._folder / "storage" / "servers" / "a" / "log").rename(servers._folder / "log")
    with pytest.raises(SqlError, match='55000: the streams of server "a" belong to server "b" now'):
        _ = servers["a"]
    assert threading.active_count() <= before
    assert servers.client("b").run("SELECT name, state FROM millstream.servers ORDER BY 1") == [
        ("a", "adopted"),
        ("b", "up"),
    ]


def test_views_come_from_everywhere(servers: Servers, a: Client) -> None:
    """Views come from a running server, from a lost one, and from copies of those that were at home."""
    a.run("CREATE VIEW w AS SELECT count(*), min(n) FROM s")
    a.run("CREATE VIEW x AS SELECT max(n) FROM s")
    a.run("CREATE VIEW y AS SELECT sum(n) FROM s")
    rows = Rows()
    rows.insert(a, 5)
    for view, target in (("v", "b"), ("w", "c"), ("x", "d")):
        servers.migrate("a", target, view)
    rows.insert(a, 5)
    servers["a"].view_migration.checkpoint(servers["a"].core.catalog.require("public", "y"))  # type: ignore[arg-type]
    rows.insert(a, 5)
    servers.stop("d")
    gone(servers)
    lost(servers["b"], "d")
    assert adopt(servers) == 4
    wait_until(lambda: not servers["c"].core.streams, 60, "the other guest's end")
    rows.insert(servers.client("b"), 5)
    b = servers.client("b")
    assert b.run(READ) == rows.wanted()
    assert b.run("SELECT * FROM w, x, y") == [(20, 0, 19, 190)]
    wait_until(lambda: not servers["d"].core.streams, 60, "the lost guest's end")
    assert {entry.home for entry in servers["b"].view_migration.ownership.all()} == {"b"}


def of_view(folder: Path) -> Path:
    """The manifest of b's only view."""
    (found,) = folder.glob("b/shared/state/v*/manifest.json")
    return found


def test_damaged_files_do_not_begin_anew(servers: Servers, rows: Rows, tmp_path: Path) -> None:
    """The adopter's log lacks the earlier rows: the view's state comes from the copy, or is not available."""
    servers.options |= {"view_copy_interval": 0.0}
    b = servers.client("b")
    adopt(servers)
    rows.insert(b, 3)
    servers["b"].view_migration.checkpoint(servers["b"].core.catalog.require("public", "v"))  # type: ignore[arg-type]
    rows.insert(b, 3)
    servers.stop("b")
    of_view(tmp_path).write_bytes(b"")
    assert servers.client("b").run(READ) == rows.wanted()
    servers["b"].view_migration.forget(servers["b"].core.catalog.require("public", "v"))  # type: ignore[arg-type]
    servers.stop("b")
    of_view(tmp_path).write_bytes(b"")
    with pytest.raises(SqlError, match='XX001: the state of view "v" is damaged'):
        servers.client("b").run(READ)


def test_damaged_copies_are_not_rebuilt_from_the_adoption(servers: Servers, rows: Rows, tmp_path: Path) -> None:
    adopt(servers)
    servers.migrate("b", "c")
    for name in "bc":
        servers.stop(name)
    of_view(tmp_path).write_bytes(b"")
    for path in tmp_path.glob("storage/views/*/*/manifest.json"):
        path.write_bytes(b"")
    _ = servers["b"]
    lost(servers["b"], "c")
    looked = servers["b"].view_migration._import._refused
    wait_until(lambda: bool(looked), 60, "a look at the copies")
    with pytest.raises(SqlError, match=r"XX001|08001"):
        servers.client("b").run(READ)


class DiedError(BaseException):
    """An error that ends the simulated process."""


@pytest.mark.parametrize("step", ["home-closed", "streams-adopted"])
def test_the_adopter_dies(step: str, servers: Servers, rows: Rows, monkeypatch: pytest.MonkeyPatch) -> None:
    """No other server may adopt a stream that may have rows at the adopter already; the adopter itself continues, from
    the stream's position."""

    def dying(name: str) -> None:
        if name == step:
            raise DiedError

    monkeypatch.setattr(adoption, "failpoint", dying)
    monkeypatch.setattr(ViewImport, "_finish_adoption", lambda *given: None)
    with pytest.raises(DiedError):
        adopt(servers)
    is_written = step == "streams-adopted"
    if is_written:
        rows.insert(servers.client("b"), 3)
    servers.stop("b")
    monkeypatch.undo()
    _ = servers["c"]
    lost(servers["c"], "b")
    (entry,) = servers["c"].view_migration.ownership.all()
    assert (entry.home, entry.owner) == ("a", "b")
    assert servers["c"].view_migration._import._heirs.entry(entry) is None
    with pytest.raises(SqlError, match='55000: the streams of server "a" belong to server "b" now'):
        adopt(servers, "c")
    _ = servers["b"]
    if not is_written:
        assert adopt(servers) == 1
    wait_until(lambda: servers["c"].view_migration.ownership.all()[0].home == "b", 60, "the entry")
    require_written(servers, rows)


def test_another_adopts_at_once(servers: Servers, rows: Rows, monkeypatch: pytest.MonkeyPatch) -> None:
    """The server that closes the log gets all views, including one that the other server has taken meanwhile and cannot
    keep."""
    _ = servers["b"], servers["c"]
    gone(servers)
    lost(servers["c"], "a")
    first, closed = servers["b"].view_migration, adoption.closed_log
    other = servers["c"].view_migration

    @contextmanager
    def claimed(core: Core, home: str) -> Iterator[None]:
        (entry,) = first.ownership.all()
        assert entry.owner == "b"
        with other._asked():  # as who is asked to adopt does, or its own round would take the view meanwhile
            other._adoption._claim(entry)
        assert other.ownership.get(entry.name) == replace(entry, owner="c", giver="b")
        with closed(core, home):
            yield

    monkeypatch.setattr(adoption, "closed_log", claimed)
    assert adopt(servers) == 1
    (entry,) = first.ownership.all()
    assert (entry.home, entry.owner) == ("b", "b")
    with pytest.raises(SqlError, match='55000: the streams of server "a" belong to server "b" now'):
        adopt(servers, "c")
    with pytest.raises(SqlError, match='55000: the streams of server "a" belong to server "b" now'):
        other.ownership.change(entry, replace(entry, home="a", owner="c"))
    require_written(servers, rows)
    wait_until(lambda: not servers["c"].core.streams, 60, "the other guest's end")


def test_a_server_that_may_not_adopt_closes_nothing(
    servers: Servers, rows: Rows, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is closed if the adopter's own lease, or that of a server that has started meanwhile, is not as
    expected."""
    gone(servers)

    def refused(name: str) -> None:
        raise SqlError("55000", f'server "{name}" runs')

    monkeypatch.setattr(servers["b"].core.registry, "adopt", refused)
    with pytest.raises(SqlError, match='55000: server "a" runs'):
        adopt(servers)
    rows.insert(servers.client("a"), 3)
    assert servers.client("b").run(READ) == rows.wanted()


def test_an_unreadable_entry(servers: Servers, a: Client, tmp_path: Path) -> None:
    """A view with an unreadable entry does not count as dropped."""
    a.run("CREATE VIEW w AS SELECT count(*) FROM s")
    for view in "vw":
        servers.migrate("a", "b", view)
    servers["b"].view_migration.checkpoints.close()  # which write the entry, too
    rows = Rows()
    rows.insert(a, 5)
    gone(servers)
    name = next(entry.name for entry in servers["b"].view_migration.ownership.all() if entry.view == "v")
    path = tmp_path / "storage" / "views" / f"{name}.json"
    written = path.read_bytes()
    path.write_bytes(b"")
    with pytest.raises(SqlError, match="XX001"):
        adopt(servers)
    path.write_bytes(written)
    assert adopt(servers) == 2
    require_written(servers, rows)


def test_what_is_not_adopted(servers: Servers, a: Client) -> None:
    _ = servers["b"]
    with pytest.raises(SqlError, match="42704"):
        servers["b"].view_migration.adopt("nobody")
    with pytest.raises(SqlError, match='55000: server "a" runs'):
        adopt(servers)
    gone(servers)
    with pytest.raises(SqlError, match='55000: no view of server "a" has left it'):
        adopt(servers)
    servers["a"].view_migration.suspend(servers["a"].core.catalog.require("public", "v"))  # type: ignore[arg-type]
    gone(servers)
    with pytest.raises(SqlError, match='55000: view "v" is suspended'):
        adopt(servers)
    (entry,) = servers["b"].view_migration.ownership.all()
    servers["b"].view_migration.resume(entry, lambda: False)
    log = servers._folder / "storage" / "servers" / "a" / "log"
    log.rename(log.with_name("away"))
    with pytest.raises(SqlError, match="58P01"):
        adopt(servers)
    log.with_name("away").rename(log)
    started = log / "started"
    word = started.read_text()
    started.unlink()
    with pytest.raises(SqlError, match='55000: the log of server "a" is not on the storage'):
        adopt(servers)
    started.write_text(word)
    assert servers["a"].core.catalog.at("public", "v") is not None, "nothing has happened yet"
    gone(servers)
    assert adopt(servers) == 1


def test_a_name_that_is_taken(servers: Servers, a: Client) -> None:
    """Nothing is adopted until all views can be."""
    a.run("CREATE VIEW w AS SELECT count(*) FROM s")
    a.run("INSERT INTO s VALUES (1, 1, '')")
    servers.migrate("a", "b")
    servers.migrate("a", "c", "w")
    servers.client("b").run("CREATE TABLE w (k int)")
    gone(servers)
    with pytest.raises(SqlError, match='42P07: view "w" cannot be taken'):
        adopt(servers)
    wait_until(lambda: servers.client("c").run("SELECT * FROM w") == [(1,)], 60, "the view where it was")
    servers.client("b").run("DROP TABLE w")
    assert adopt(servers) == 2
    servers.client("b").run("INSERT INTO s VALUES (1, 1, '')")
    assert servers.client("b").run("SELECT * FROM w") == [(2,)]


def test_a_view_that_rows_made_an_error(servers: Servers, a: Client) -> None:
    """The view is dropped, as it can never have a value again."""
    a.run("CREATE VIEW w AS SELECT sum(1 / k) AS n FROM s")
    for view in "vw":
        servers.migrate("a", "b", view)
    a.run("INSERT INTO s VALUES (0, 0, '0')")
    gone(servers)
    assert adopt(servers) == 1
    assert servers["b"].core.catalog.at("public", "w") is None
    assert [entry.view for entry in servers["b"].view_migration.ownership.all()] == ["v"]


def test_enums_and_rights(servers: Servers, a: Client) -> None:
    a.run("CREATE TYPE mood AS ENUM ('sad', 'glad')")
    a.run("CREATE FOREIGN TABLE e (m mood, n int) SERVER stream")
    a.run("CREATE VIEW w AS SELECT m, count(*) AS c FROM e GROUP BY m")
    a.run("INSERT INTO e VALUES ('glad', 1)")
    servers.migrate("a", "b", "w")
    b = servers.client("b")
    b.run("CREATE ROLE reader")
    b.run("GRANT SELECT ON w TO reader")
    gone(servers)
    assert adopt(servers) == 1
    b.run("ALTER TYPE mood ADD VALUE 'mad'")
    b.run("INSERT INTO e VALUES ('mad', 1), ('glad', 2)")
    assert b.run("SELECT m::text, c FROM w ORDER BY w.m") == [("glad", 2), ("mad", 1)]
    assert b.run("SELECT has_table_privilege('reader', 'w', 'select')") == [(True,)]


@pytest.mark.parametrize("there", [True, False])
def test_streams_keep_their_owner_by_name(there: bool, servers: Servers, a: Client) -> None:
    """The streams do not belong to the view's owner, who may lack the privilege to read or write them; without a role
    of the old name, they belong to the superuser."""
    roles = "CREATE ROLE writer; CREATE ROLE counter"
    for name in "abc" if there else "a":
        servers.client(name).run(roles)
    a.run("CREATE TYPE mood AS ENUM ('sad', 'glad'); CREATE FOREIGN TABLE e (m mood) SERVER stream")
    a.run("ALTER FOREIGN TABLE e OWNER TO writer; ALTER TYPE mood OWNER TO writer")
    a.run("CREATE VIEW w AS SELECT m, count(*) AS c FROM e GROUP BY m; ALTER VIEW w OWNER TO counter")
    owners = (
        "SELECT relname::text, pg_get_userbyid(relowner)::text FROM pg_class WHERE relname IN ('e', 'w') UNION ALL "
        "SELECT typname::text, pg_get_userbyid(typowner)::text FROM pg_type WHERE typname = 'mood' ORDER BY 1"
    )
    wanted = [("e", "writer"), ("mood", "writer"), ("w", "counter")]
    wanted = wanted if there else [(item, "millstream") for item, _ in wanted]
    servers.migrate("a", "c", "w")
    assert servers.client("c").run(owners) == wanted
    servers.migrate("c", "b", "w")
    b = servers.client("b")
    assert b.run(owners) == wanted, "as at home, wherever it comes from"
    gone(servers)
    assert adopt(servers) == 1
    assert b.run(owners) == wanted


def test_a_log_that_a_process_has(servers: Servers, rows: Rows, monkeypatch: pytest.MonkeyPatch) -> None:
    def held(own: object) -> int:
        raise SqlError("55006", "another process has the log open")

    monkeypatch.setattr(logs, "_hold", held)
    with pytest.raises(SqlError, match="55006"):
        adopt(servers)
    monkeypatch.undo()
    assert adopt(servers) == 1
    require_written(servers, rows)


@pytest.mark.parametrize("step", ["home-closed", "views-staged", "streams-adopted"])
def test_the_adopter_is_lost_for_good_too(
    step: str, servers: Servers, rows: Rows, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The next adopter continues what the lost one had begun, with the rows that arrived there meanwhile; so does a
    third."""
    with _dying(monkeypatch, step):
        with pytest.raises(DiedError):
            adopt(servers)
        if step == "streams-adopted":
            rows.insert(servers.client("b"), 3)
        servers.stop("b")
    lost(servers["c"], "b")
    with pytest.raises(SqlError, match='55000: the streams of server "a" belong to server "b" now') as told:
        adopt(servers, "c")
    assert "SELECT millstream.adopt('b')" in str(told.value.hint)
    last = "view-finished" if step != "home-closed" else "home-closed"
    with _dying(monkeypatch, last):
        with pytest.raises(DiedError):
            servers["c"].view_migration.adopt("b")
        servers.stop("c")
    assert adopt(servers, "c") == 1
    with pytest.raises(SqlError, match='55000: the streams of server "b" belong to server "c" now'):
        _ = servers["b"]
    require_written(servers, rows, "c")


def test_the_adopter_is_lost_before_it_copies(servers: Servers, rows: Rows) -> None:
    servers.options |= {"view_copy_interval": 600.0}
    servers.stop("b")
    assert adopt(servers) == 1
    rows.insert(servers.client("b"), 3)
    servers.stop("b")
    lost(servers["c"], "b")
    assert servers["c"].view_migration.adopt("b") == 1
    require_written(servers, rows, "c")


def test_an_adoption_that_fails_is_begun_anew(servers: Servers, rows: Rows, monkeypatch: pytest.MonkeyPatch) -> None:
    def failing(name: str) -> None:
        if name == "views-staged":
            raise SqlError("53100", "no space")

    with monkeypatch.context() as patch:
        patch.setattr(adoption, "failpoint", failing)
        with pytest.raises(SqlError, match="53100"):
            adopt(servers)
    wait_until(lambda: not servers["b"].core.registry.require("a").staged, 60, "the end of what was staged")
    assert adopt(servers) == 1
    require_written(servers, rows)


@contextmanager
def _dying(monkeypatch: pytest.MonkeyPatch, step: str) -> Iterator[None]:
    """The adopter dies at a step, and does nothing more, including its background work."""

    def die(name: str) -> None:
        if name == step:
            raise DiedError

    with monkeypatch.context() as patch:
        patch.setattr(adoption, "failpoint", die)
        patch.setattr(adoption.Adoption, "unstage", lambda self: None)
        patch.setattr(ViewImport, "_finish_adoption", lambda *given: None)
        yield
