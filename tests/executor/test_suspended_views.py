"""Continuous views that no server maintains for a time, and copies of views at their home: whichever server continues
them, they equal their query over the acknowledged rows."""

from __future__ import annotations

import glob
import random
import threading
from pathlib import Path

import pyarrow as pa
import pytest

from catalog.objects import View
from catalog.values.errors import SqlError
from executor.database.database import Database
from executor.moving import checkpoints, state_recovery
from planner.incremental.programs.program import State
from tests.executor.client import Client
from tests.executor.moving import READ, STREAM, VIEW, Rows, Servers
from tests.rig.process import wait_until

pytestmark = [pytest.mark.slow, pytest.mark.sample(9)]


def view_of(database: Database, name: str = "v") -> View:
    found = database.core.catalog.require("public", name)
    assert isinstance(found, View)
    return found


def suspend(servers: Servers, name: str) -> None:
    assert servers[name].view_migration.suspend(view_of(servers[name])) == "v"


def resume(servers: Servers, name: str) -> None:
    moving = servers[name].view_migration
    (owned,) = moving.suspended()
    moving.resume(owned, lambda: False)


def copies(folder: Path) -> list[str]:
    # Path.glob raises if a folder is deleted meanwhile.
    found = glob.glob("views/*/*/manifest.json", root_dir=folder / "storage")
    return sorted(Path(path).parent.name for path in found)


def test_at_home(servers: Servers, a: Client, tmp_path: Path) -> None:
    rows = Rows()
    for _ in range(3):
        rows.insert(a, 5)
        suspend(servers, "a")
        rows.insert(a, 4)
        with pytest.raises(SqlError, match='55000: view "v" is suspended') as raised:
            a.run(READ)
        assert raised.value.hint == "SELECT millstream.resume('public.v') continues it."
        with pytest.raises(SqlError, match="is suspended"):
            suspend(servers, "a")
        assert a.run("SELECT server, home, rows_behind FROM millstream.views") == [(None, "a", None)]
        assert "suspended" in str(a.run("EXPLAIN SELECT * FROM v"))
        resume(servers, "a")
        assert a.run(READ) == rows.wanted()
        assert copies(tmp_path) == []
        rows.insert(a, 2)
        assert a.run(READ) == rows.wanted()


def test_what_reads_it_waits_for_nothing_else(servers: Servers, a: Client) -> None:
    a.run("CREATE VIEW other AS SELECT count(*) AS c FROM s; CREATE VIEW w AS SELECT sum(c) AS c FROM v")
    rows = Rows()
    rows.insert(a, 5)
    suspend(servers, "a")
    rows.insert(a, 5)
    assert a.run("SELECT * FROM other") == [(10,)]
    for query in ("SELECT * FROM w", "SELECT c FROM v WHERE k = 1", "SELECT * FROM v, other"):
        with pytest.raises(SqlError, match='view "v" is suspended'):
            a.run(query)
    resume(servers, "a")
    assert a.run("SELECT * FROM w") == [(10,)]


@pytest.mark.parametrize("owner", ["a", "b"])
@pytest.mark.parametrize("heir", ["a", "b", "c"])
def test_it_goes_on_anywhere(owner: str, heir: str, servers: Servers, a: Client) -> None:
    """On the server where it was suspended, it is a guest no longer."""
    rows = Rows()
    rows.insert(a, 5)
    if owner != "a":
        servers.migrate("a", owner)
    rows.insert(a, 5)
    suspend(servers, owner)
    rows.insert(a, 5)
    if owner != "a":
        wait_until(lambda: not servers[owner].core.streams, what="the replica's end")
        assert servers[owner].core.catalog.at("public", "v") is None
    with pytest.raises(SqlError, match="is suspended"):
        wait_until(lambda: bool(a.run(READ)) and False, what="the home's knowing of it")
    _ = servers[heir]
    resume(servers, heir)
    rows.insert(a, 5)
    assert servers.client(heir).run(READ) == rows.wanted()
    assert a.run(READ) == rows.wanted()
    assert servers.owner("v") == heir


def test_it_outlives_servers(servers: Servers, a: Client) -> None:
    rows = Rows()
    rows.insert(a, 5)
    suspend(servers, "a")
    again = a
    for _ in range(2):
        servers.stop("a")
        again = servers.client("a")
        with pytest.raises(SqlError, match="is suspended"):
            again.run(READ)
        rows.insert(again, 5)
    resume(servers, "a")
    assert again.run(READ) == rows.wanted()
    servers.stop("a")
    assert servers.client("a").run(READ) == rows.wanted()


def test_its_home_may_be_down_when_it_goes_on(servers: Servers, a: Client) -> None:
    rows = Rows()
    rows.insert(a, 5)
    suspend(servers, "a")
    rows.insert(a, 5)
    _ = servers["b"]
    servers.stop("a")
    resume(servers, "b")
    assert servers.client("b").run(READ) == rows.wanted()
    a = servers.client("a")
    rows.insert(a, 5)
    assert a.run(READ) == rows.wanted()


def test_the_server_that_was_to_continue_is_lost(servers: Servers, a: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    """The view is then suspended as before."""
    rows = Rows()
    rows.insert(a, 5)
    suspend(servers, "a")
    moving = servers["b"].view_migration
    monkeypatch.setattr(moving._import, "_continue_view", lambda owned, runtime: None)
    (owned,) = moving.suspended()
    with pytest.raises(SqlError, match="57014"):
        moving.resume(owned, lambda: True)
    assert moving.suspended() == []
    rows.insert(a, 5)
    with pytest.raises(SqlError, match="is suspended"):
        a.run(READ)
    servers.lose("b", "a")
    wait_until(lambda: bool(servers["a"].view_migration.suspended()), what="that nobody is to go on")
    resume(servers, "a")
    assert a.run(READ) == rows.wanted()


def test_a_state_that_is_not_what_was_written(servers: Servers, a: Client, tmp_path: Path) -> None:
    rows = Rows()
    rows.insert(a, 5)
    suspend(servers, "a")
    (path,) = tmp_path.glob("storage/views/*/*/t0.parquet")
    content = path.read_bytes()
    path.write_bytes(content[:-9] + b"wrong" + content[-4:])
    resume(servers, "a")  # with the rows that its home has
    rows.insert(a, 2)
    assert a.run(READ) == rows.wanted()


def test_what_a_home_has_is_of_one_commit(servers: Servers, a: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    """A job may end while another thread reads the state with which the view left."""
    database = servers["a"]
    database.maintenance.close()  # its background work is done here
    Rows().insert(a, 5)
    (runtime,) = database.core.runtimes()
    storage, read = database.core.storage, database.core.storage.read
    jobs: list[threading.Thread] = []

    def maintain() -> None:
        wait_until(lambda: database.maintenance.round("embedded"), what="a job")

    def reading(oid: int, state: State) -> list[pa.Table]:
        found = read(oid, state)
        if not jobs:
            jobs.append(threading.Thread(target=maintain))
            jobs[0].start()
            jobs[0].join(0.5)
        return found

    monkeypatch.setattr(storage, "read", reading)
    stored, states = state_recovery._left(database.core, runtime.view)
    jobs[0].join()
    found = {name: table.num_rows for name, table in states.items()}
    assert found == dict.fromkeys(found, 0)
    later, states = state_recovery._left(database.core, runtime.view)
    assert all(table.num_rows for table in states.values())
    assert min(later.frontiers.values()) > max(stored.frontiers.values())


def test_it_stays_as_it_is_and_can_be_dropped(servers: Servers, a: Client, tmp_path: Path) -> None:
    suspend(servers, "a")
    for statement in ("ALTER VIEW v RENAME TO x", "ALTER FOREIGN TABLE s ADD COLUMN x int"):
        with pytest.raises(SqlError, match="in use by a suspended view") as raised:
            a.run(statement)
        assert "millstream.resume()" in str(raised.value.hint)
    a.run("DROP VIEW v")
    wait_until(lambda: not servers.knows("v") and copies(tmp_path) == [], what="the end of its entry")
    a.run("ALTER FOREIGN TABLE s ADD COLUMN x int")


@pytest.mark.parametrize(
    ("definition", "what"),
    [
        ("CREATE VIEW x AS SELECT 1 / (k - 1) AS k, count(*) FROM s GROUP BY 1", "22012"),
        ("CREATE VIEW x AS SELECT g.k FROM (SELECT k FROM s GROUP BY k) g JOIN pg_class ON oid <> k", "0A000"),
    ],
)
def test_what_cannot_be_suspended(definition: str, what: str, servers: Servers, a: Client) -> None:
    a.run(definition)
    a.run("INSERT INTO s VALUES (1, 1, '1')")
    moving, view = servers["a"].view_migration, view_of(servers["a"], "x")
    if what == "22012":
        with pytest.raises(SqlError, match=what):
            a.run("SELECT * FROM x")
    for ask in (moving.suspend, moving.checkpoint):
        with pytest.raises(SqlError, match=what):
            ask(view)


# -- copies of views that are at their home ----------------------------------------------------------------------------


@pytest.fixture
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """The next copy comes soon, however long the last one took."""
    monkeypatch.setattr(checkpoints, "_SHARE", 0)


def checkpoint(servers: Servers, name: str = "a") -> None:
    assert servers[name].view_migration.checkpoint(view_of(servers[name])) == "v"


def test_a_lost_homes_view_goes_on_from_its_copy(servers: Servers, a: Client) -> None:
    rows = Rows()
    rows.insert(a, 5)
    _ = servers["b"]
    checkpoint(servers)
    assert a.run("SELECT server FROM millstream.views") == [("a",)]
    rows.insert(a, 5)
    servers.lose("a", "b")
    b = servers["b"]
    wait_until(lambda: b.core.catalog.at("public", "v") is not None, what="the take-over")
    servers.stop("a")
    assert servers.client("b").run(READ) == rows.wanted()
    a = servers.client("a")
    rows.insert(a, 5)
    assert a.run(READ) == rows.wanted()
    servers.migrate("b", "a")
    rows.insert(a, 5)
    assert a.run(READ) == rows.wanted()
    assert a.run("SELECT server FROM millstream.views") == [("a",)]


@pytest.mark.usefixtures("soon")
def test_copies_follow_and_end(servers: Servers, a: Client, tmp_path: Path) -> None:
    """The log is kept only after the last copy, also after a restart."""
    rows = Rows()
    checkpoint(servers)
    first = copies(tmp_path)
    rows.insert(a, 5)
    checkpoint(servers)
    second = copies(tmp_path)
    assert len(first) == 1
    assert set(second) - set(first)
    servers.stop("a")
    a = servers.client("a")
    (runtime,) = servers["a"].core.runtimes()
    (owned,) = servers["a"].view_migration.ownership.all()
    assert (runtime.held, owned.copied) == (owned.at, True)
    rows.insert(a, 5)
    wait_until(lambda: bool(set(copies(tmp_path)) - set(second)), what="a copy by itself")
    assert a.run(READ) == rows.wanted()
    with pytest.raises(SqlError, match="in use by a copy"):
        a.run("ALTER VIEW v RENAME TO x")
    assert servers["a"].view_migration.forget(view_of(servers["a"]))
    assert copies(tmp_path) == []
    assert runtime.held is None
    assert not servers["a"].view_migration.forget(view_of(servers["a"]))
    a.run("ALTER VIEW v RENAME TO x")


def test_a_copied_view_leaves_like_any_other(servers: Servers, a: Client, tmp_path: Path) -> None:
    rows = Rows()
    checkpoint(servers)
    rows.insert(a, 5)
    suspend(servers, "a")
    assert copies(tmp_path) != []
    resume(servers, "a")
    checkpoint(servers)
    rows.insert(a, 5)
    servers.migrate("a", "b")
    rows.insert(a, 5)
    checkpoint(servers, "b")
    assert copies(tmp_path) != []
    servers.migrate("b", "a")
    assert copies(tmp_path) == []
    assert a.run(READ) == rows.wanted()
    (runtime,) = servers["a"].core.runtimes()
    wait_until(lambda: runtime.held is None, what="that the log is kept for nobody")


@pytest.mark.usefixtures("soon")
def test_an_error_that_rows_made_is_copied(servers: Servers, a: Client) -> None:
    """The log need not be kept for such a view, and no server takes it over."""
    a.run("CREATE VIEW u AS SELECT 1 / (k - 7) AS k, count(*) FROM s GROUP BY 1")
    moving = servers["a"].view_migration
    moving.checkpoint(view_of(servers["a"], "u"))
    a.run("INSERT INTO s VALUES (7, 1, '')")
    runtime = servers["a"].core.view(view_of(servers["a"], "u").oid)

    def is_told() -> bool:
        (owned,) = moving.ownership.all()
        return owned.failure is not None and runtime.held == owned.at == servers["a"].core.sequencer.visible

    wait_until(is_told, what="the entry that says so")
    with pytest.raises(SqlError, match="22012"):
        moving.checkpoint(view_of(servers["a"], "u"))
    assert moving.forget(view_of(servers["a"], "u"))
    assert runtime.held is None


@pytest.mark.parametrize("seed", range(4))
def test_the_law(seed: int, servers: Servers) -> None:
    """Whatever is done with a view, it equals its query over the acknowledged rows."""
    choose = random.Random(seed)
    home = servers.client("a")
    home.run(STREAM)
    home.run(VIEW)
    rows, owner = Rows(), "a"
    for _ in range(14):
        rows.insert(servers.client("a"), choose.randrange(1, 6))
        step = choose.choice(["suspend", "checkpoint", "migrate", "restart", "nothing"])
        if step == "suspend":
            suspend(servers, owner)
            rows.insert(servers.client("a"), choose.randrange(1, 6))
            if choose.random() < 0.5:
                servers.stop(choose.choice("ab"))
            owner = choose.choice("ab")
            _ = servers["a"], servers["b"]
            resume(servers, owner)
        elif step == "checkpoint":
            checkpoint(servers, owner)
        elif step == "migrate":
            target = "b" if owner == "a" else "a"
            servers.migrate(owner, target)
            owner = target
        elif step == "restart":
            servers.stop(choose.choice("ab"))
        assert servers.client(owner).run(READ) == rows.wanted(), step
        assert servers.client("a").run(READ) == rows.wanted(), step
