"""Damaged copies of guests' states: the view is rebuilt from others and the log, or waits."""

from __future__ import annotations

from collections.abc import Callable
from itertools import cycle, product
from pathlib import Path
from typing import Any

import pytest

from catalog.values.errors import SqlError
from executor.cluster.view_ownership import Owned
from executor.moving import view_artifact as artifact
from tests.executor.client import Client
from tests.executor.damaging import DAMAGES
from tests.executor.moving import READ, Rows, Servers, lost
from tests.rig.process import wait_until
from tests.rig.sampling import sample

pytestmark = [pytest.mark.slow, pytest.mark.sample(9)]


def damaged(*names: str) -> list[Any]:
    """Kinds of damage and the files for them: half of the files each."""
    return sample(product(names, DAMAGES), [*zip(cycle(names), DAMAGES, strict=False)])


@pytest.fixture(autouse=True)
def small(servers: Servers) -> None:
    """Settings with which the log forgets soon."""
    servers.options |= {"log_segment_bytes": 1 << 16, "maintenance_rows": 1}


def copy_of(servers: Servers, tmp_path: Path, name: str, which: str = "handover") -> Path:
    """A file of the last copy of a view's states, or of the copy before."""
    entry = entry_of(servers)
    return tmp_path / "storage" / "views" / entry.name / str(getattr(entry, which)) / name


def entry_of(servers: Servers) -> Owned:
    """The only one."""
    (entry,) = servers["a"].view_migration.ownership.all()
    return entry


def forget(servers: Servers, rows: Rows, a: Client) -> None:
    """Makes the home's log begin after the home's own state of the view, and after the copy before."""
    home = servers["a"]
    least = entry_of(servers).at
    servers["b"].view_migration.checkpoints.close()
    while home.core.log.first_lsn <= least:
        rows.insert(a, 3000)
        assert servers.client("b").run("SELECT sum(c) FROM v") == a.run("SELECT sum(c) FROM v")
        servers.copied("b", "v")
        wait_until(lambda: home.core.runtimes()[0].held == entry_of(servers).at, 60, "the home's knowing of the copy")
        home.frontiers.release()


@pytest.mark.parametrize(("name", "damage"), damaged("t0.parquet", "manifest.json"))
def test_a_view_is_rebuilt_at_home(
    name: str, damage: Callable[[Path], None], servers: Servers, a: Client, tmp_path: Path
) -> None:
    """The view is rebuilt from its state when it left, and the home's log."""
    rows = Rows()
    rows.insert(a, 5)
    servers.migrate("a", "b")
    rows.insert(a, 5)
    servers.copied("b", "v")
    servers.stop("b")
    damage(copy_of(servers, tmp_path, name))
    damage(copy_of(servers, tmp_path, name, "older"))
    lost(servers["a"], "b")
    wait_until(lambda: servers.owner("v") == "a", 60, "the take-over")
    rows.insert(a, 5)
    assert a.run(READ) == rows.wanted()
    servers.stop("a")
    assert servers.client("a").run(READ) == rows.wanted()


def copied_twice(servers: Servers, a: Client) -> Rows:
    """A guest with two copies on the storage and no further ones, and its rows."""
    rows = Rows()
    rows.insert(a, 5)
    servers.migrate("a", "b")
    servers["b"].view_migration.checkpoints.close()
    for _ in range(2):
        rows.insert(a, 5)
        servers.copied("b", "v")
    return rows


@pytest.mark.parametrize("by", ["a", "c"])
def test_the_copy_before_is_taken(by: str, servers: Servers, a: Client, tmp_path: Path) -> None:
    """Also by a server other than the view's home, if the home is lost as well."""
    rows = copied_twice(servers, a)
    copy_of(servers, tmp_path, "t0.parquet").write_bytes(b"")
    servers.stop("b")
    if by == "a":
        lost(servers["a"], "b")
    else:
        _ = servers["c"]
        servers.stop("a")
        lost(servers["c"], "a", "b")
    wait_until(
        lambda: bool(servers[by].core.runtimes()) and servers[by].core.runtimes()[0].away is None, 60, "the take-over"
    )
    assert servers.client(by).run(READ) == rows.wanted()
    rows.insert(servers.client("a"), 5)
    assert servers.client(by).run(READ) == rows.wanted()


def test_a_damaged_copy_gets_another_in_its_place(servers: Servers, a: Client, tmp_path: Path) -> None:
    """Also without new rows; the copy before it was intact."""
    rows = copied_twice(servers, a)
    before = entry_of(servers)
    copy_of(servers, tmp_path, "t0.parquet").write_bytes(b"")
    servers.empty("b")
    servers.client("b")
    wait_until(lambda: entry_of(servers).handover != before.handover, 60, "another copy")
    after = entry_of(servers)
    assert (after.owner, after.at, after.older) == ("b", before.at, before.older)
    folder = tmp_path / "storage/views" / after.name
    kept = {after.handover, after.older}
    wait_until(lambda: {path.name for path in folder.iterdir()} == kept, 60, "the damaged one's end")
    assert servers.client("b").run(READ) == rows.wanted()


def test_a_home_that_has_lost_its_own_state_begins_again(
    servers: Servers, a: Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The home's log has all rows since the view's creation, as long as no copy of the guest suffices without them."""

    def full(*left: object) -> str:
        raise SqlError("53100", "no space is left for a copy")

    rows = Rows()
    rows.insert(a, 5)
    servers.migrate("a", "b")
    monkeypatch.setattr(artifact, "write", full)
    rows.insert(a, 5)
    servers.stop("a")
    servers.stop("b")
    for pattern in ("a/**/state/v*/*.parquet", "a/**/state/v*/manifest.json", "storage/views/*/*/manifest.json"):
        for path in tmp_path.glob(pattern):
            path.write_bytes(b"")
    again = servers.client("a")
    rows.insert(again, 5)
    with pytest.raises(SqlError, match="08001"):
        again.run(READ)
    assert servers.client("b").run(READ) == rows.wanted(), "its guest is not lost with it"
    servers.stop("b")
    lost(servers["a"], "b")
    wait_until(lambda: servers.owner("v") == "a", 60, "the take-over")
    assert again.run(READ) == rows.wanted()


def test_no_server_has_the_state(servers: Servers, a: Client, tmp_path: Path) -> None:
    """Nothing is computed from it; reads report the reason, and the view continues once the state is back."""
    rows = Rows()
    rows.insert(a, 5)
    servers.migrate("a", "b")
    forget(servers, rows, a)
    servers.stop("b")
    for which in ("handover", "older"):
        copy_of(servers, tmp_path, "manifest.json", which).write_bytes(b"{}")
    lost(servers["a"], "b")
    wait_until(lambda: (entry_of(servers).error or [""])[0] == "XX001", 60, "the refusal")
    rows.insert(a, 5)
    for text in (READ, "SELECT count(*) FROM v"):
        with pytest.raises(SqlError, match='XX001: view "v" is on server "b", which does not answer') as raised:
            a.run(text)
        assert raised.value.hint is not None
    a.run("CREATE VIEW w AS SELECT count(*) FROM s")
    rows.insert(a, 5)
    assert a.run("SELECT * FROM w") == [(5,)]
    assert servers.client("b").run(READ) == rows.wanted()
    assert a.run(READ) == rows.wanted()


@pytest.mark.parametrize(("name", "damage"), damaged("v*/manifest.json", "v*/*.parquet"))
def test_a_guest_whose_files_are_damaged(
    name: str, damage: Callable[[Path], None], servers: Servers, a: Client, tmp_path: Path
) -> None:
    """The guest is restored from its copy."""
    rows = Rows()
    rows.insert(a, 5)
    servers.migrate("a", "b")
    rows.insert(a, 5)
    assert servers.client("b").run(READ) == rows.wanted()
    servers.copied("b", "v")
    servers.stop("b")
    for path in (tmp_path / "b").rglob(f"state/{name}"):
        damage(path)
    rows.insert(a, 5)
    _ = servers["b"]
    wait_until(lambda: [item.is_lost for item in servers["b"].core.runtimes()] == [False], 60, "the view")
    assert servers.client("b").run(READ) == rows.wanted()
    assert a.run(READ) == rows.wanted()


def test_a_guest_is_damaged_and_so_is_its_copy(servers: Servers, a: Client, tmp_path: Path) -> None:
    """The home rebuilds the view."""
    rows = Rows()
    rows.insert(a, 5)
    servers.migrate("a", "b")
    rows.insert(a, 5)
    servers.stop("b")
    for pattern in ("b/**/state/v*/manifest.json", "storage/views/*/*/manifest.json"):
        for path in tmp_path.glob(pattern):
            path.write_bytes(b"")
    _ = servers["b"]
    wait_until(lambda: servers.owner("v") == "a", 60, "the view's coming home")
    rows.insert(a, 5)
    assert a.run(READ) == rows.wanted()


def test_an_entry_that_is_not_what_was_written(servers: Servers, a: Client, tmp_path: Path) -> None:
    """The view's place is unknown; other views can move."""
    a.run("CREATE VIEW w AS SELECT count(*) FROM s")
    rows = Rows()
    rows.insert(a, 5)
    servers.migrate("a", "b")
    (path,) = (tmp_path / "storage" / "views").glob("*.json")
    kept = path.read_bytes()
    path.write_bytes(b"{")
    servers.stop("a")
    servers.stop("b")
    again = servers.client("a")
    rows.insert(again, 5)
    assert again.run("SELECT * FROM w") == [(10,)]
    with pytest.raises(SqlError, match="XX001"):
        again.run(READ)
    servers.migrate("a", "b", "w")
    assert servers.client("b").run("SELECT * FROM w") == [(10,)]
    servers.stop("a")
    servers.stop("b")
    path.write_bytes(kept)
    _ = servers["b"]
    rows.insert(servers.client("a"), 5)
    assert servers.client("a").run("SELECT * FROM w") == [(15,)]
    assert servers.client("b").run(READ) == rows.wanted()


def test_rows_that_came_while_it_left_count_once(servers: Servers, a: Client, tmp_path: Path) -> None:
    """The home maintained the view until it knew that another server had taken it, so its state is newer than the one
    that left."""
    rows = Rows()
    rows.insert(a, 5)
    servers["b"].view_migration.checkpoints.close()
    home = servers["a"]
    home.view_migration._thread.close()
    (runtime,) = home.core.runtimes()
    home.view_migration._export.hand_over(runtime, "b")
    rows.insert(a, 5)
    wait_until(lambda: servers.owner("v") == "b" and runtime.paths[0].durable > entry_of(servers).at, 60, "maintenance")
    servers.stop("b")
    copy_of(servers, tmp_path, "t0.parquet").write_bytes(b"")
    lost(home, "b")
    home.view_migration._apply_entries()
    assert servers.owner("v") == "a"
    assert a.run(READ) == rows.wanted()
