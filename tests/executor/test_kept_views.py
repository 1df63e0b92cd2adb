"""Views with automatic copies: whichever server dies, and whatever happens to its folder, others continue the views
over every acknowledged row."""

from __future__ import annotations

import random
import shutil
import threading
from pathlib import Path
from typing import Any

import pytest

from catalog.values.errors import SqlError
from executor.cluster.storage import Storage
from executor.moving import automatic_copies, checkpoints, exported_states
from executor.moving import view_artifact as artifact
from tests.executor.client import Client
from tests.executor.moving import READ, STREAM, VIEW, Rows, Servers, lost
from tests.executor.test_suspended_views import checkpoint, copies
from tests.rig.process import wait_until

pytestmark = [pytest.mark.slow, pytest.mark.sample(9)]


@pytest.fixture(autouse=True)
def soon(servers: Servers, monkeypatch: pytest.MonkeyPatch) -> None:
    servers.options |= {"view_copy_interval": 0.05}
    monkeypatch.setattr(automatic_copies, "_LOOK", 0.02)
    monkeypatch.setattr(automatic_copies, "_AGAIN", 0.2)
    monkeypatch.setattr(checkpoints, "_LOOK", 0.02)
    monkeypatch.setattr(checkpoints, "_UNASKED_SHARE", 0)


def await_copy(servers: Servers, name: str = "a") -> None:
    """Waits until the views have copies with their current definitions."""
    wait_until(lambda: are_copied(servers, name), what="a copy")


def are_copied(servers: Servers, name: str) -> bool:
    ownership = servers[name].view_migration.ownership
    entries = [ownership.get(item.shared) if item.shared else None for item in servers[name].core.runtimes()]
    return all(owned is not None and owned.copied for owned in entries)


def await_taken(servers: Servers, name: str) -> None:
    """By its entry: that it is there may be as it was before."""
    ownership, taken = servers[name].view_migration.ownership, ("v", name, True)
    wait_until(lambda: taken in [(item.view, item.owner, item.taken) for item in ownership.all()], what="the take-over")


def test_a_server_whose_folder_is_gone(servers: Servers, a: Client, tmp_path: Path) -> None:
    """Rows acknowledged after the last copy are in the server's log, which is on the storage."""
    rows = Rows()
    rows.insert(a, 5)
    await_copy(servers)
    servers["a"].view_migration.checkpoints.close()
    rows.insert(a, 5)
    _ = servers["b"]
    servers.stop("a")
    shutil.rmtree(tmp_path / "a")
    lost(servers["b"], "a")
    await_taken(servers, "b")
    b = servers.client("b")
    assert b.run(READ) == rows.wanted()
    servers.stop("b")
    assert servers.client("b").run(READ) == rows.wanted()
    with pytest.raises(SqlError, match="55000: the data folder does not belong to server"):
        _ = servers["a"]
    assert servers.client("b").run(READ) == rows.wanted()


def test_a_view_goes_home_when_that_is_there_again(servers: Servers, a: Client) -> None:
    """The server that counted as lost accepts rows, but no definitions until it has joined again."""
    rows = Rows()
    rows.insert(a, 5)
    await_copy(servers)
    _ = servers["b"]
    servers.lose("a", "b")
    await_taken(servers, "b")
    rows.insert(a, 5)
    assert servers.client("b").run(READ) == rows.wanted()
    with pytest.raises(SqlError, match="55000"):
        a.run("ALTER VIEW v RENAME TO w")
    servers.stop("a")
    again = servers.client("a")
    rows.insert(again, 5)
    wait_until(lambda: servers["b"].core.catalog.at("public", "v") is None, what="that it has left")
    assert again.run(READ) == rows.wanted()
    await_copy(servers)
    rows.insert(again, 5)
    assert again.run(READ) == rows.wanted()
    assert again.run("SELECT server, home FROM millstream.views") == [("a", "a")]


def test_definitions_change(servers: Servers, a: Client) -> None:
    """Earlier rows are read with the current columns, and an earlier copy is not used."""
    servers.options |= {"maintenance_idle": 600.0}
    servers.stop("a")
    a = servers.client("a")
    rows = Rows()
    rows.insert(a, 5)
    await_copy(servers)
    a.run("ALTER FOREIGN TABLE s ADD COLUMN x int DEFAULT 7")
    a.run("ALTER VIEW v RENAME TO w; ALTER VIEW w RENAME TO v")
    a.run("CREATE VIEW other AS SELECT sum(x) AS x FROM s")
    a.run("INSERT INTO s VALUES (0, 5, '5', 1)")
    await_copy(servers)
    with pytest.raises(SqlError, match="42701"):
        a.run("ALTER FOREIGN TABLE s ADD COLUMN x int")
    _ = servers["b"]
    servers.stop("a")
    lost(servers["b"], "a")
    await_taken(servers, "b")
    b = servers.client("b")
    wait_until(lambda: servers["b"].core.catalog.at("public", "other") is not None, what="the other view")
    assert b.run("SELECT sum(c), sum(n) FROM v") == [(6, 15)]
    assert b.run("SELECT * FROM other") == [(1,)]


def test_asked_or_not(servers: Servers, a: Client, tmp_path: Path) -> None:
    await_copy(servers)
    assert len(copies(tmp_path)) == 1
    checkpoint(servers)
    with pytest.raises(SqlError, match="in use by a copy"):
        a.run("ALTER VIEW v RENAME TO x")
    servers["a"].view_migration.automatic_copies.close()
    a.run("SELECT 1")
    assert servers["a"].view_migration.forget(servers["a"].core.runtimes()[0].view)
    assert copies(tmp_path) == []


def test_a_copy_that_cannot_be_made_keeps_nothing(
    servers: Servers, a: Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A failing copy delays neither the log nor writers, and is tried again."""
    rows = Rows()
    await_copy(servers)

    def full(*given: object) -> str:
        raise SqlError("53100", "no space left on device")

    (runtime,) = servers["a"].core.runtimes()
    with monkeypatch.context() as patch:
        patch.setattr(artifact, "write", full)
        rows.insert(a, 5)
        wait_until(lambda: runtime.held is None and not are_copied(servers, "a"), what="the copy's end")
        assert copies(tmp_path) == []
    await_copy(servers)
    assert a.run(READ) == rows.wanted()


def test_what_cannot_leave_prevents_nothing(servers: Servers, a: Client) -> None:
    a.run("CREATE TABLE d (k int); CREATE VIEW w AS SELECT g.k FROM (SELECT k FROM s GROUP BY k) g JOIN d USING (k)")
    wait_until(lambda: bool(servers["a"].view_migration.ownership.all()), what="a copy")
    a.run("DROP VIEW w; DROP VIEW v; DROP FOREIGN TABLE s")
    wait_until(lambda: not servers["a"].view_migration.ownership.all(), what="the end of its entry")


def is_home(servers: Servers) -> bool:
    """Whether the view is, and its entry says so: it changes only then."""
    (runtime,) = servers["a"].core.runtimes()
    owned = servers["a"].view_migration.ownership.get(runtime.shared) if runtime.shared else None
    return owned is None or (owned.owner == "a" and owned.taken)


@pytest.mark.parametrize("seed", range(2))
def test_the_law(seed: int, servers: Servers) -> None:
    """Servers are lost, stopped or started, and the view is moved meanwhile."""
    choose = random.Random(seed)
    home = servers.client("a")
    home.run(STREAM)
    home.run(VIEW)
    rows, at = Rows(), "a"
    for _ in range(8):
        at = "a" if is_home(servers) else "b"
        rows.insert(servers.client("a"), choose.randrange(1, 6))
        step = choose.choice(["lose", "restart", "gone", "migrate", "rename", "nothing"])
        if choose.random() < 0.7 and at == "a":
            await_copy(servers)
        rows.insert(servers.client("a"), choose.randrange(1, 6))
        if step == "lose" and are_copied(servers, "a"):
            _ = servers["b"]
            servers.lose("a", "b")
            rows.insert(servers.client("a"), choose.randrange(1, 6))
            await_taken(servers, "b")
            assert servers.client("b").run(READ) == rows.wanted()
            servers.stop("a")
        elif step == "gone" and are_copied(servers, "a"):
            _ = servers["b"]
            servers.stop("a")
            lost(servers["b"], "a")
            await_taken(servers, "b")
            assert servers.client("b").run(READ) == rows.wanted()
        elif step == "restart":
            name = choose.choice("ab")
            servers.stop(name)
            _ = servers[name]  # it may have the view
        elif step == "rename" and at == "a":
            servers.client("a").run("ALTER VIEW v RENAME TO w; ALTER VIEW w RENAME TO v")
        rows.insert(servers.client("a"), choose.randrange(1, 6))
        assert servers.client("a").run(READ) == rows.wanted(), step


def test_labels_that_came_later(servers: Servers) -> None:
    """A copy's program has the later labels, like the view; its files are as of its creation."""
    a = servers.client("a")
    a.run("CREATE TYPE mood AS ENUM ('sad', 'happy'); CREATE FOREIGN TABLE s (m mood) SERVER stream")
    a.run("CREATE VIEW v AS SELECT m::text AS t, count(*) AS c FROM s GROUP BY 1")
    a.run("ALTER TYPE mood ADD VALUE 'ok'; INSERT INTO s VALUES ('ok')")
    await_copy(servers)
    a.run("INSERT INTO s VALUES ('ok')")
    _ = servers["b"]
    servers.stop("a")
    lost(servers["b"], "a")
    await_taken(servers, "b")
    assert servers.client("b").run("SELECT * FROM v") == [("ok", 2)]


def test_several_streams(servers: Servers, a: Client) -> None:
    """Rows arrive on both streams together, and on one only; maintenance commits one stream at a time."""
    a.run("CREATE FOREIGN TABLE r (k int) SERVER stream")
    a.run("CREATE VIEW w AS SELECT k, count(*) AS c FROM (SELECT k FROM s UNION ALL SELECT k FROM r) x GROUP BY k")
    for _ in range(5):
        a.run("BEGIN; INSERT INTO s VALUES (1, 1, ''); INSERT INTO r VALUES (1); COMMIT")
        await_copy(servers)
        a.run("INSERT INTO r VALUES (1)")
    _ = servers["b"]
    servers.stop("a")
    lost(servers["b"], "a")
    wait_until(lambda: servers["b"].core.catalog.at("public", "w") is not None, what="the take-over")
    assert servers.client("b").run("SELECT * FROM w") == [(1, 15)]
    servers.stop("b")
    assert servers.client("b").run("SELECT * FROM w") == [(1, 15)]


@pytest.mark.parametrize(
    ("frontiers", "last", "at"),
    [
        ((50,), (0,), 90),
        ((50,), (50,), 90),
        ((50,), (60,), 50),
        ((50, 70), (50, 0), 90),
        ((50, 70), (50, 80), 70),
        ((50, 70), (60, 0), None),
        ((50, 70), (80, 80), None),
        ((70, 70), (80, 80), 70),
    ],
)
def test_where_states_are(frontiers: tuple[int, ...], last: tuple[int, ...], at: int | None) -> None:
    """The log's end is 90, and the last rows of a stream may be forgotten where they are not behind its frontier."""
    assert exported_states._at(dict(enumerate(frontiers)), dict(enumerate(last)), 90) == at


def test_a_copy_does_not_go_back(servers: Servers, a: Client) -> None:
    """Without new rows the copy is current, and the log may be forgotten up to it; then rows arrive."""
    servers.options |= {"maintenance_idle": 600.0, "view_copy_interval": 600.0}
    servers.stop("a")
    a = servers.client("a")
    await_copy(servers)
    (runtime,) = servers["a"].core.runtimes()
    ownership, copy = servers["a"].view_migration.ownership, servers["a"].view_migration.checkpoints.make
    a.run("CREATE TABLE t (k int); INSERT INTO t VALUES (1)")
    found = []
    for _ in range(2):
        copy(runtime, None)
        owned = ownership.get(runtime.shared)
        assert owned is not None
        found.append(owned.at)
        a.run("INSERT INTO s VALUES (1, 1, '')")
    assert found == sorted(found)


def test_a_start_copies_them_one_after_the_other(
    servers: Servers, a: Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At start, automatic copies share a part of the time, whatever has arrived meanwhile."""
    a.run("CREATE VIEW w AS SELECT count(*) AS c FROM s")
    await_copy(servers)
    servers["a"].view_migration.checkpoints.close()
    a.run("INSERT INTO s VALUES (1, 1, '')")
    servers.stop("a")
    monkeypatch.setattr(checkpoints, "_UNASKED_SHARE", 1e9)
    servers.options |= {"view_copy_interval": 1e-9}
    before = set(copies(tmp_path))
    made = servers["a"].view_migration.checkpoints
    wait_until(lambda: made.is_resting, what="a copy")
    made.close()
    for _ in range(3):
        made._round()
    assert len(set(copies(tmp_path)) - before) == 1


def test_a_definition_that_waits_for_a_first_copy_that_fails(
    servers: Servers, a: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No copy exists then that could be in its way."""
    await_copy(servers)
    begun, go_on = threading.Event(), threading.Event()

    def full(*given: object) -> str:
        begun.set()
        assert go_on.wait(60)
        raise SqlError("53100", "no space left on device")

    monkeypatch.setattr(artifact, "write", full)
    a.run("CREATE FOREIGN TABLE r (k int) SERVER stream; CREATE VIEW w AS SELECT count(*) AS c FROM r")
    assert begun.wait(60)
    threading.Timer(0.2, go_on.set).start()
    a.run("ALTER FOREIGN TABLE r ADD COLUMN x int")


@pytest.mark.parametrize("is_first", [True, False])
def test_a_definition_waits_for_no_copy(
    is_first: bool, servers: Servers, a: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The copy being written is given up, and the next copy is of the new state; views are created and dropped."""
    await_copy(servers)
    write, begun, go_on = artifact.write, threading.Event(), threading.Event()

    def slow(storage: Storage, name: str, leaving: artifact.ExportedView) -> str:
        if leaving.view.name == "w":
            begun.set()
            assert go_on.wait(60)
        return write(storage, name, leaving)

    create = "CREATE FOREIGN TABLE r (k int) SERVER stream; CREATE VIEW w AS SELECT count(*) AS c FROM r"
    if not is_first:
        a.run(create)
        await_copy(servers)
    monkeypatch.setattr(artifact, "write", slow)
    a.run(create if is_first else "INSERT INTO r VALUES (1)")
    try:
        assert begun.wait(60)
        a.run("ALTER FOREIGN TABLE r ADD COLUMN x int")
        with servers["a"].view_migration._lock:
            pass
    finally:
        go_on.set()
    await_copy(servers)
    a.run("INSERT INTO r VALUES (2, 2)")
    _ = servers["b"]
    servers["a"].view_migration.checkpoints.close()
    servers.stop("a")
    lost(servers["b"], "a")
    wait_until(lambda: servers["b"].core.catalog.at("public", "w") is not None, what="the take-over")
    assert servers.client("b").run("SELECT c FROM w") == [(1 if is_first else 2,)]


def test_a_view_that_is_dropped_while_it_is_copied_is_no_error(
    servers: Servers, a: Client, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    await_copy(servers)
    export, begun, go_on, ended = exported_states._arrived, threading.Event(), threading.Event(), threading.Event()

    def held(*given: Any) -> Any:
        begun.set()
        assert go_on.wait(60)
        try:
            return export(*given)
        finally:
            ended.set()

    monkeypatch.setattr(exported_states, "_arrived", held)
    a.run("INSERT INTO s (k, n) VALUES (1, 1)")
    assert begun.wait(60)
    a.run("DROP FOREIGN TABLE s CASCADE")
    go_on.set()
    assert ended.wait(60)
    a.run("CREATE FOREIGN TABLE r (k int) SERVER stream; CREATE VIEW w AS SELECT count(*) AS c FROM r")
    await_copy(servers)
    assert not [item for item in caplog.records if item.levelname in ("WARNING", "ERROR")]


def test_copies_know_the_owner(servers: Servers, a: Client, tmp_path: Path) -> None:
    """Also if no rows have arrived since the owner changed."""
    await_copy(servers)
    a.run("CREATE ROLE other")
    a.run("ALTER VIEW v OWNER TO other")
    (runtime,) = servers["a"].core.runtimes()
    ownership = servers["a"].view_migration.ownership

    def owner() -> str:
        owned = ownership.get(runtime.shared)
        assert owned is not None
        try:
            return artifact.read_about(tmp_path / "storage", owned).role
        except SqlError:  # another copy has replaced it
            return ""

    wait_until(lambda: owner() == "other", what="a copy of the new owner's")


def test_the_last_copy_takes_its_folder_along(tmp_path: Path) -> None:
    """Also if another thread was still writing it when its view was forgotten."""
    views = tmp_path / "views"
    for handover in ("first", "second"):
        (views / "v" / handover).mkdir(parents=True)
    artifact.delete_one(tmp_path, "v", "first")
    assert artifact.handovers(tmp_path, "v") == {"second"}
    artifact.delete_one(tmp_path, "v", "second")
    assert list(views.iterdir()) == []
    (views / "v").mkdir()
    artifact.delete(tmp_path, "v")
    assert list(views.iterdir()) == []
