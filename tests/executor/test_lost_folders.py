"""Continuous views over streams that follow a folder, whose home or guest is lost or damaged: each file counts once."""

from __future__ import annotations

from pathlib import Path

import pytest

from catalog.values.errors import SqlError
from executor.moving import adoption
from tests.executor.client import Client
from tests.executor.folders import Folder, only_csv
from tests.executor.folders import a as a
from tests.executor.folders import folder as folder
from tests.executor.moving import READ, VIEW, Servers, lost
from tests.rig.process import wait_until

pytestmark = [pytest.mark.slow, pytest.mark.sample(12)]


@only_csv
def test_it_is_copied_unasked_and_taken_over(servers: Servers, folder: Folder) -> None:
    """After its home is lost, another server continues with the files that arrived there, and gives the view back."""
    servers.options |= {"view_copy_interval": 0.05}
    a = servers.client("a")
    a.run(folder.stream)
    a.run(VIEW)
    folder.add(a, 5)
    wait_until(lambda: servers.knows("v"), what="a copy")
    folder.add(a, 5)
    _ = servers["c"]
    servers.stop("a")
    late = folder.put([(0, "1.00", "late")])
    wanted = folder.wanted()
    del folder.rows[-1]
    lost(servers["c"], "a")
    wait_until(lambda: bool(servers["c"].core.runtimes()), what="the take-over")
    assert servers.client("c").run(READ) == folder.wanted(), "nobody follows the folder now"
    a = servers.client("a")
    folder.rows.append((0, "1.00", "late"))
    folder.await_all(a)
    wait_until(lambda: servers.owner("v") == "a", what="the view's way home")
    assert a.run(READ) == wanted
    assert late.exists()


@only_csv
@pytest.mark.parametrize("which", ["handover", "older"])
@pytest.mark.parametrize("by", ["a", "c"])
def test_a_copy_is_damaged(which: str, by: str, servers: Servers, a: Client, folder: Folder, tmp_path: Path) -> None:
    """The view is rebuilt from the copy before, or at home from its own state and the files."""
    folder.add(a, 5)
    servers.migrate("a", "b")
    servers["b"].view_migration.checkpoints.close()
    for _ in range(2):
        folder.add(a, 2)
        servers.copied("b", "v")
    (entry,) = servers["a"].view_migration.ownership.all()
    for handover in {entry.handover, getattr(entry, which)}:
        name = "f0.parquet" if which == "handover" else "t0.parquet"
        (tmp_path / "storage/views" / entry.name / handover / name).write_bytes(b"")
    servers.stop("b")
    if by == "a":
        lost(servers["a"], "b")
        wait_until(lambda: servers.owner("v") == "a", what="the take-over")
        folder.add(a, 2)
    elif which == "handover":
        _ = servers["c"]
        servers.stop("a")
        lost(servers["c"], "a", "b")
        wait_until(lambda: bool(servers["c"].core.runtimes()), what="the take-over")
    else:
        return  # no way leads there without the home
    assert servers.client(by).run(READ) == folder.wanted()
    folder.add(servers.client("a"), 2)
    assert servers.client(by).run(READ) == folder.wanted()


@only_csv
def test_a_guest_is_damaged(servers: Servers, a: Client, folder: Folder, tmp_path: Path) -> None:
    """The guest is restored from its copy, and never starts again from the files that it knows."""
    folder.add(a, 5)
    servers.migrate("a", "b")
    for is_copied in (True, False):
        folder.add(a, 2)
        assert servers.client("b").run(READ) == folder.wanted()
        if is_copied:
            servers.copied("b", "v")
        servers.stop("b")
        for path in (tmp_path / "b").rglob("state/v*/manifest.json"):
            path.write_bytes(b"")
        folder.add(a, 2)
        _ = servers["b"]
        wait_until(lambda: [item.is_lost for item in servers["b"].core.runtimes()] == [False], what="the view")
        for name in "ba":
            assert servers.client(name).run(READ) == folder.wanted()
    servers.empty("b")
    folder.add(a, 2)
    _ = servers["b"]
    wait_until(lambda: bool(servers["b"].core.runtimes()), what="the view")
    for name in "ba":
        assert servers.client(name).run(READ) == folder.wanted()


def gone(servers: Servers, by: str, *names: str) -> None:
    for name in names:
        servers.stop(name)
    lost(servers[by], *names)


def go_on_without_home(servers: Servers, a: Client, folder: Folder) -> None:
    """The view is at ``b`` and its home lost, with files that neither copy nor guest has; ``c`` has nothing."""
    servers.migrate("a", "b")
    folder.add(a, 5)
    servers.copied("b", "v")
    folder.add(a, 5)
    _ = servers["c"]
    gone(servers, "b", "a")


@only_csv
def test_its_home_is_gone_for_good(servers: Servers, a: Client, folder: Folder) -> None:
    """Another server follows the folder from then on: each file counts exactly once, whichever server had found it."""
    for _ in range(3):
        folder.add(a, 5)
    go_on_without_home(servers, a, folder)
    folder.put([(1, "1.00", "nobody has found it yet")])
    assert servers["b"].view_migration.adopt("a") == 1
    for _ in range(3):
        b = servers.client("b")
        folder.await_all(b)
        assert b.run(READ) == folder.wanted()
        assert b.run("SELECT source FROM millstream.streams") == [("files",)]
        folder.add(b, 2)
        servers.stop("b")
    servers.migrate("b", "c")
    folder.add(servers.client("b"), 2)
    for name in "cb":
        assert servers.client(name).run(READ) == folder.wanted()
    gone(servers, "c", "b")
    assert servers["c"].view_migration.adopt("b") == 1
    for _ in range(2):
        folder.add(servers.client("c"), 2)
        assert servers.client("c").run(READ) == folder.wanted()
        servers.stop("c")


@only_csv
def test_a_new_view_of_an_adopted_stream_has_the_files_of_its_former_home(
    servers: Servers, a: Client, folder: Folder
) -> None:
    first = folder.add(a, 5)
    go_on_without_home(servers, a, folder)
    assert servers["b"].view_migration.adopt("a") == 1
    b, read = servers.client("b"), READ.replace("FROM v", "FROM w")
    folder.await_all(b)
    b.run(VIEW.replace("VIEW v", "VIEW w"))
    assert b.run(read) == folder.wanted()
    folder.add(b, 2)
    for _ in range(2):
        assert servers.client("b").run(read) == folder.wanted()
        servers.stop("b")
    first.unlink()
    b = servers.client("b")
    b.run(VIEW.replace("VIEW v", "VIEW x"))
    assert [notice for notice in b.notices if "3 files that arrived before are left out" in notice]


@only_csv
@pytest.mark.parametrize("step", ["home-closed", "views-staged", "streams-adopted"])
def test_the_adopter_of_the_folder_is_lost_for_good_as_well(
    step: str, servers: Servers, a: Client, folder: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The adopter is lost halfway, and a third server continues, which had nothing."""
    servers.options |= {"view_copy_interval": 600.0}
    folder.add(a, 5)
    go_on_without_home(servers, a, folder)

    def dying(reached: str) -> None:
        if reached == step:
            raise SqlError("57000", step)

    monkeypatch.setattr(adoption, "failpoint", dying)
    with pytest.raises(SqlError, match=step):
        servers["b"].view_migration.adopt("a")
    monkeypatch.undo()
    if step == "streams-adopted":
        folder.add(servers.client("b"), 2)
    gone(servers, "c", "b")
    folder.put([(1, "1.00", "nobody has found it yet")])
    assert servers["c"].view_migration.adopt("b") == 1
    c = servers.client("c")
    folder.await_all(c)
    for _ in range(2):
        assert c.run(READ) == folder.wanted()
        servers.stop("c")
        c = servers.client("c")
        folder.add(c, 2)
