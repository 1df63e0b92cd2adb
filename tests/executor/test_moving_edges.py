"""Coinciding events of views between servers: rebuilt and suspended, copied and damaged, renamed."""

from __future__ import annotations

import shutil
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from catalog.values.errors import SqlError
from executor.cluster.view_ownership import Owned
from executor.core.periodic import Periodic
from executor.database.database import Database
from executor.moving import checkpoints, guests, view_export
from executor.moving import view_artifact as artifact
from server.session.functions import view_functions as named_views
from server.session.session import Session
from tests.executor.client import Client
from tests.executor.moving import READ, Rows, Servers, lost
from tests.executor.test_suspended_views import checkpoint, copies, resume, suspend, view_of
from tests.rig.process import wait_until

pytestmark = [pytest.mark.slow, pytest.mark.sample(9)]


@pytest.fixture(autouse=True)
def small(servers: Servers) -> None:
    """Settings with which the log forgets soon."""
    servers.options |= {"log_segment_bytes": 1 << 16}


def entry_of(database: Database) -> Owned:
    (entry,) = database.view_migration.ownership.all()
    return entry


def test_a_home_that_was_about_to_go_on(servers: Servers, a: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    """The home dies after it wrote the entry and before it continues; its own state is older than the rows that its log
    has kept."""
    servers.options |= {"maintenance_rows": 1 << 30, "maintenance_idle": 1000.0}
    servers.stop("a")
    a, rows = servers.client("a"), Rows()
    servers["a"].maintenance.close()
    for _ in range(3):
        rows.insert(a, 3000)
    suspend(servers, "a")
    servers["a"].frontiers.release()
    (runtime,) = servers["a"].core.runtimes()
    assert servers["a"].core.log.first_lsn > runtime.paths[0].durable + 1
    rows.insert(a, 5)
    moving = servers["a"].view_migration
    monkeypatch.setattr(moving._import, "_continue_view", lambda owned, runtime: None)
    (owned,) = moving.suspended()
    with pytest.raises(SqlError, match="57014"):
        moving.resume(owned, lambda: True)
    servers.stop("a")
    a = servers.client("a")
    wait_until(lambda: entry_of(servers["a"]).taken, what="the step")
    assert entry_of(servers["a"]).error is None
    assert a.run(READ) == rows.wanted()


def test_a_view_that_got_another_name(servers: Servers, a: Client, tmp_path: Path) -> None:
    """The view is renamed at home; then the home's manifest is damaged while the view is elsewhere."""
    rows = Rows()
    servers.migrate("a", "b")
    servers.migrate("b", "a")
    a.run("ALTER VIEW v RENAME TO x")
    rows.insert(a, 5)
    servers.migrate("a", "b", "x")
    assert entry_of(servers["a"]).view == "x"
    servers.stop("a")
    for path in (tmp_path / "a").rglob("state/v*/manifest.json"):
        path.write_bytes(b"")
    a = servers.client("a")
    rows.insert(a, 5)
    read = READ.replace("v", "x")
    assert servers.client("b").run(read) == rows.wanted()
    servers.migrate("b", "a", "x")
    assert a.run(read) == rows.wanted()


def test_a_home_without_a_program(servers: Servers, a: Client, tmp_path: Path) -> None:
    """The home reports the view's error, and continues other views."""
    a.run("CREATE VIEW w AS SELECT count(*) FROM s")
    rows = Rows()
    rows.insert(a, 5)
    servers.migrate("a", "b")
    for name in "ab":
        servers.stop(name)
    for pattern in ("a/**/v*-static/program.json", "storage/views/*/*/manifest.json"):
        for path in tmp_path.glob(pattern):
            path.write_bytes(b"")
    for path in (tmp_path / "a").rglob("state/v*/manifest.json"):
        path.write_bytes(b"")
    a = servers.client("a")
    lost(servers["a"], "b")
    wait_until(lambda: (entry_of(servers["a"]).error or [""])[0] == "XX001", what="the refusal")
    assert servers["a"].view_migration._thread._thread.is_alive()


def test_a_view_is_dropped_while_another_is_copied(servers: Servers, a: Client) -> None:
    """Copies of other views are still made."""
    a.run("CREATE FOREIGN TABLE s2 (k int) SERVER stream; CREATE VIEW w AS SELECT count(*) FROM s2")
    moving = servers["a"].view_migration
    moving.checkpoint(view_of(servers["a"], "w"))
    gone = servers["a"].core.view(view_of(servers["a"], "w").oid)
    moving._thread.close()
    a.run("DROP VIEW w; DROP FOREIGN TABLE s2")
    moving.checkpoints.make(gone, None)


def test_a_copied_view_without_rows_keeps_no_log(servers: Servers, a: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    """The log for other streams is not kept."""
    monkeypatch.setattr(checkpoints, "_SHARE", 0)  # the next copy comes soon, however long the last one took
    rows = Rows()
    rows.insert(a, 5)
    a.run("CREATE FOREIGN TABLE other (k int, t text) SERVER stream")
    checkpoint(servers)
    first = servers["a"].core.log.first_lsn

    def is_forgotten() -> bool:
        a.run("INSERT INTO other SELECT g, repeat('x', 30) FROM generate_series(1, 3000) g")
        servers["a"].frontiers.release()
        return servers["a"].core.log.first_lsn > first

    wait_until(is_forgotten, what="the log's end")
    assert a.run(READ) == rows.wanted()


def test_copies_end_before_it_is_said_that_there_are_some(
    servers: Servers, a: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The log is kept for none; and a view that was known to have none, a moment ago, keeps it for those of now."""
    moving, view = servers["a"].view_migration, view_of(servers["a"])
    runtime = servers["a"].core.view(view.oid)

    def end(place: str) -> None:
        if place == "view-copied":
            assert moving.forget_automatic(runtime)

    with monkeypatch.context() as patch:
        patch.setattr(view_export, "failpoint", end)
        with moving._lock:  # nobody looks
            moving.start_automatic_copies(runtime)
            assert runtime.held is None
    before = moving.ownership.get(runtime.shared)
    assert before is not None
    assert not before.copied
    with moving._lock:
        moving.start_automatic_copies(runtime)
        moving._import.apply_entry(before)
        assert runtime.held is not None


def test_no_entry_changes_while_copies_end(servers: Servers, a: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    """The thread that ends copies finds the entry unchanged, also if only the LSN of the states changes."""
    checkpoint(servers)
    a.run("CREATE FOREIGN TABLE other (k int) SERVER stream")
    moving, (runtime,) = servers["a"].view_migration, servers["a"].core.runtimes()
    change, alone = moving.ownership.change, list[bool]()

    def changed(before: Owned | None, after: Owned) -> None:
        alone.append(moving.checkpoints.naming.locked())
        change(before, after)

    monkeypatch.setattr(moving.ownership, "change", changed)
    for _ in range(2):
        a.run("INSERT INTO other VALUES (1)")
        moving.checkpoints.make(runtime, None)
    assert alone == [True, True]


def test_a_home_that_had_begun_against_the_entry(servers: Servers, a: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    """The home has the view already, and dies before it reports that; for others it has not begun."""
    rows = Rows()
    rows.insert(a, 5)
    suspend(servers, "a")
    _ = servers["b"]
    moving = servers["a"].view_migration
    change = moving.ownership.change

    def full(before: Owned | None, after: Owned) -> None:
        if after.taken:
            raise SqlError("57P03", "no")
        change(before, after)

    monkeypatch.setattr(moving.ownership, "change", full)
    (owned,) = moving.suspended()
    with pytest.raises(SqlError, match="57014"):
        moving.resume(owned, lambda: True)
    (runtime,) = servers["a"].core.runtimes()
    wait_until(lambda: runtime.handover == owned.handover, what="its coming back")
    assert runtime.held == owned.at, "its log is kept for who may go on instead"
    rows.insert(a, 5)
    assert a.run(READ) == rows.wanted()
    servers.stop("a")
    lost(servers["b"], "a")
    wait_until(lambda: bool(servers["b"].view_migration.suspended()), what="that nobody is to go on")
    a = servers.client("a")
    rows.insert(a, 5)
    resume(servers, "a")
    assert a.run(READ) == rows.wanted()
    assert servers["a"].core.runtimes()[0].held is None


def test_a_copy_that_another_server_takes_is_not_forgotten(
    servers: Servers, a: Client, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    checkpoint(servers)
    moving = servers["b"].view_migration
    monkeypatch.setattr(moving._import, "_continue_view", lambda owned, runtime: None)
    servers.stop("a")
    lost(servers["b"], "a")
    wait_until(lambda: entry_of(servers["b"]).owner == "b", what="the take-over")
    _ = servers["a"]
    with pytest.raises(SqlError, match="55000"):
        servers["a"].view_migration.forget(view_of(servers["a"]))
    assert copies(tmp_path)


@pytest.mark.parametrize("what", ["another", "the same"])
def test_a_suspended_view_is_named_whose_copy_is_damaged(
    what: str, servers: Servers, a: Client, tmp_path: Path
) -> None:
    """Other views can be renamed, and so can this one if there is an earlier copy."""
    a.run("CREATE VIEW w AS SELECT count(*) AS c FROM s")
    rows = Rows()
    rows.insert(a, 5)
    checkpoint(servers)
    rows.insert(a, 5)
    suspend(servers, "a")
    servers["a"].view_migration.suspend(view_of(servers["a"], "w"))
    entry = next(item for item in servers["a"].view_migration.suspended() if item.view == "v")
    (tmp_path / "storage" / "views" / entry.name / entry.handover / "manifest.json").write_bytes(b"{")
    found = named_views._left_by_others(_session(servers["b"]), None, "v" if what == "the same" else "w")
    assert found is not None
    servers["b"].view_migration.resume(found, lambda: False)
    if what == "the same":
        assert servers.client("b").run(READ) == rows.wanted()
    else:
        assert servers.client("b").run("SELECT c FROM w") == [(10,)]


def _session(database: Database) -> Session:
    db = SimpleNamespace(catalog=database.core.catalog, database=database)
    return cast(Session, SimpleNamespace(db=db, path=("public",), user="millstream"))


def test_a_copied_view_whose_home_is_damaged(servers: Servers, a: Client, tmp_path: Path) -> None:
    """The view continues from its copy."""
    rows = Rows()
    rows.insert(a, 5)
    checkpoint(servers)
    servers["a"].view_migration.checkpoints.close()
    while servers["a"].core.log.first_lsn <= servers["a"].core.runtimes()[0].view.created_lsn:
        rows.insert(a, 3000)
        a.run("SELECT count(*) FROM v")
        checkpoint(servers)
        wait_until(lambda: servers["a"].core.runtimes()[0].held == entry_of(servers["a"]).at, what="the copy")
        servers["a"].frontiers.release()
    rows.insert(a, 5)
    servers.stop("a")
    for path in (tmp_path / "a").rglob("state/v*/manifest.json"):
        path.write_bytes(b"")
    a = servers.client("a")
    assert a.run(READ) == rows.wanted()
    servers.stop("a")
    assert servers.client("a").run(READ) == rows.wanted()


def test_a_server_that_a_view_has_left_gives_nothing_away(
    servers: Servers, a: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A suspended guest that still exists for a moment."""
    rows = Rows()
    rows.insert(a, 5)
    _ = servers["c"]
    servers.migrate("a", "b")

    def busy(*_: object) -> None:
        raise SqlError("55P03", "a definition is in progress")

    with monkeypatch.context() as patched:
        patched.setattr(guests, "drop_guest", busy)
        suspend(servers, "b")
        with pytest.raises(SqlError, match="55000"):
            servers.migrate("b", "c")
        servers["b"].core.registry.mark("b", "draining")
        for _ in range(3):
            servers["b"].view_migration._apply_entries()
        assert entry_of(servers["a"]).is_suspended


def test_what_should_not_be_raised_ends_no_thread(caplog: pytest.LogCaptureFixture) -> None:
    """The error is reported once."""
    times: list[int] = []

    def work() -> None:
        times.append(1)
        raise KeyError("nothing")

    thread = Periodic("x", 0.001, work)
    thread.start()
    wait_until(lambda: len(times) > 3, what="other times")
    thread.close()
    assert [record.getMessage() for record in caplog.records] == ["x: this should not happen"]


@pytest.mark.parametrize("how", ["migrated", "suspended", "copied"])
def test_another_folder_is_no_home(how: str, servers: Servers, a: Client, tmp_path: Path) -> None:
    """A server with a new disk, or with its former folder, is not the one that the views left: it drops none of
    them."""
    rows = Rows()
    rows.insert(a, 5)
    _ = servers["b"]
    servers.stop("a")
    shutil.copytree(tmp_path / "a", tmp_path / "before")  # with its own log
    shutil.copytree(tmp_path / "a", tmp_path / "linked", symlinks=True)
    rows.insert(servers.client("a"), 5)
    if how == "migrated":
        servers.migrate("a", "b")
    elif how == "suspended":
        suspend(servers, "a")
    else:
        checkpoint(servers, "a")
    servers.stop("a")
    owner = entry_of(servers["b"]).owner
    (tmp_path / "a").rename(tmp_path / "after")
    for other in ("before", "linked", "none"):
        if other != "none":
            shutil.copytree(tmp_path / other, tmp_path / "a", symlinks=other == "linked")
        with pytest.raises(SqlError, match="does not belong to server") as raised:
            _ = servers["a"]
        assert raised.value.sqlstate == "55000"
        assert entry_of(servers["b"]).owner == owner
        shutil.rmtree(tmp_path / "a")
    (tmp_path / "after").rename(tmp_path / "a")
    again = servers.client("a")
    rows.insert(again, 5)
    if how == "suspended":
        resume(servers, "a")
    assert again.run(READ) == rows.wanted()


@pytest.mark.parametrize("end", ["given", "suspended", "copied", "home"])
def test_a_dead_server_leaves_no_states_behind(
    end: str, servers: Servers, a: Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server dies between the entry that names other states and the deletion of the former ones, or before an entry
    names new ones."""
    monkeypatch.setattr(checkpoints, "_LOOK", 600.0)  # copies of a guest would replace these
    rows = Rows()
    rows.insert(a, 5)
    home, owner = servers["a"], "b" if end == "given" else "a"
    if end == "given":
        servers.migrate("a", "b")
    elif end == "suspended":
        suspend(servers, "a")
    elif end == "copied":
        checkpoint(servers, "a")
    else:
        home.view_migration._export._write_states(home.core.runtimes()[0], None)
    servers.stop("a")
    servers.stop("b")
    (folder,) = (path for path in (tmp_path / "storage/views").iterdir() if path.is_dir())
    kept = {path.name for path in folder.iterdir()} if end != "home" else set()
    (folder / "left").mkdir()
    (folder / "left/t0.parquet").write_bytes(b"")
    for name in {owner, "a"}:
        _ = servers[name]
    found = artifact.handovers(tmp_path / "storage", folder.name)
    assert found == kept
    if end == "suspended":
        resume(servers, "a")
    if end == "given":
        assert servers.client("b").run(READ) == rows.wanted()
    rows.insert(servers.client("a"), 5)
    assert servers.client("a").run(READ) == rows.wanted()


def test_a_view_with_a_nan_comes_back(servers: Servers, a: Client) -> None:
    """A constant that does not equal itself: the states belong to the view's own query all the same."""
    a.run("CREATE FOREIGN TABLE floats (k int, x float8) SERVER stream")
    a.run("CREATE VIEW least AS SELECT k, min(coalesce(x, 'NaN'::float8)) AS least FROM floats GROUP BY k")
    a.run("INSERT INTO floats VALUES (1, 2), (2, NULL), (3, 0.5)")
    servers.migrate("a", "b", "least")
    a.run("INSERT INTO floats VALUES (2, 7)")
    servers.migrate("b", "a", "least")
    assert a.run("SELECT * FROM least WHERE least < 'NaN' ORDER BY k") == [(1, 2.0), (2, 7.0), (3, 0.5)]
