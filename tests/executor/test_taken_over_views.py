"""Continuous views whose servers are lost: others continue them from their copies, or from other states, and lose
nothing."""

from __future__ import annotations

import glob
import itertools
import threading
from pathlib import Path

import pytest

from catalog.values.errors import SqlError
from executor.cluster.succession import Heirs
from executor.cluster.view_ownership import Owned
from executor.moving import checkpoints, guests, view_import
from executor.moving import view_artifact as artifact
from executor.moving.view_artifact import ExportedView
from tests.executor.client import Client
from tests.executor.moving import READ, Rows, Servers, lost
from tests.executor.test_migration import LEASE
from tests.rig.process import wait_until

pytestmark = [pytest.mark.slow, pytest.mark.sample(9)]


def test_a_view_of_a_lost_server_goes_on_at_its_home(servers: Servers, a: Client) -> None:
    """The view continues from its last copy and the home's log; the lost server notices this, though it runs."""
    rows = Rows()
    rows.insert(a, 5)
    servers.migrate("a", "b")
    for is_copied in (True, False):
        rows.insert(a, 7)
        if is_copied:
            servers.copied("b", "v")
        rows.insert(a, 3)
        b = servers.client("b")
        assert b.run(READ) == rows.wanted()
        servers.lose("b", "a")
        wait_until(lambda: servers.owner("v") == "a", what="the take-over")
        assert a.run(READ) == rows.wanted()
        assert a.run("SELECT server, home FROM millstream.views") == [("a", "a")]
        wait_until(lambda: not servers["b"].core.streams, what="the guest's end")
        with pytest.raises(SqlError, match=r"55000: server .* must not write to the storage"):
            servers["b"].view_migration.ownership.delete("0")
        servers.stop("b")
        rows.insert(a, 4)
        servers.migrate("a", "b")
        rows.insert(a, 4)
        assert servers.client("b").run(READ) == rows.wanted()


def test_a_lost_server_changes_nothing(servers: Servers, a: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    """The lost server stands still while it writes a copy; its view continues elsewhere, with newer rows."""
    rows = Rows()
    rows.insert(a, 5)
    servers.migrate("a", "b")
    servers["b"].view_migration.checkpoints.close()  # no other copy comes in between
    rows.insert(a, 5)

    def standing_still(step: str) -> None:
        if step == "view-copied":
            monkeypatch.undo()
            servers.lose("b", "a")
            wait_until(lambda: servers.owner("v") == "a", what="the take-over")
            rows.insert(a, 5)

    monkeypatch.setattr(checkpoints, "failpoint", standing_still)
    with pytest.raises(SqlError, match="its lease was taken over"):
        servers.copied("b", "v")
    assert a.run(READ) == rows.wanted()
    wait_until(lambda: not servers["b"].core.streams, what="the guest's end")


def test_a_lost_server_deletes_no_copy_of_others(servers: Servers, a: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    """The lost server stands still when its copy is named; the view moves home and on to a third server, which is lost
    as well."""
    rows = Rows()
    servers.migrate("a", "b")
    _ = servers["c"]
    for name in ("b", "c"):
        servers[name].view_migration.checkpoints.close()
    rows.insert(a, 5)

    def standing_still(step: str) -> None:
        if step == "view-kept":
            monkeypatch.undo()
            servers.lose("b", "a")
            wait_until(lambda: servers.owner("v") == "a", what="the take-over")
            servers.migrate("a", "c")

    monkeypatch.setattr(checkpoints, "failpoint", standing_still)
    servers.copied("b", "v")
    rows.insert(a, 5)
    servers.lose("c", "a")
    wait_until(lambda: servers.owner("v") == "a", what="the take-over")
    assert a.run(READ) == rows.wanted()


def test_no_copy_stays_that_is_not_needed(servers: Servers, a: Client, tmp_path: Path) -> None:
    rows = Rows()
    rows.insert(a, 5)
    for source, target in ("ab", "bc", "cb"):
        _ = servers[target]
        servers[target].view_migration.checkpoints.close()
        servers.migrate(source, target)
        rows.insert(a, 5)
        for _ in range(3):
            (entry,) = servers["a"].view_migration.ownership.all()
            kept = {path.name for path in (tmp_path / "storage").glob("views/*/*")}
            assert kept == {entry.handover, entry.older} - {""}, "the last, and the one before"
            rows.insert(a, 5)
            servers.copied(target, "v")
    servers.migrate("b", "a")
    wait_until(lambda: not glob.glob("views/*/*", root_dir=tmp_path / "storage"), what="the last copy's end")


def test_the_receiver_of_a_view_is_lost(servers: Servers, a: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = Rows()
    rows.insert(a, 5)
    _ = servers["b"]
    monkeypatch.setattr(servers["b"].view_migration._import, "_continue_view", lambda *given: None)
    asked: list[SqlError] = []

    def migrate() -> None:
        try:
            servers.migrate("a", "b")
        except SqlError as error:
            asked.append(error)

    asking = threading.Thread(target=migrate)
    asking.start()
    wait_until(lambda: servers.knows("v"), what="the entry")
    servers.lose("b", "a")
    asking.join()
    assert str(asked[0]) == '55000: server "b" cannot take over view "v": server "b" is lost'
    rows.insert(a, 5)
    assert a.run(READ) == rows.wanted()


def test_home_and_owner_are_lost(servers: Servers, a: Client) -> None:
    """Any server continues, with the home's log; a view that returns to its home is complete."""
    rows = Rows()
    rows.insert(a, 5)
    servers.migrate("a", "b")
    rows.insert(a, 5)
    c = servers.client("c")
    servers.stop("b")
    servers.stop("a")
    lost(servers["c"], "a", "b")
    wait_until(lambda: servers["c"].core.catalog.at("public", "v") is not None, what="the take-over")
    assert c.run(READ) == rows.wanted()
    again = servers.client("a")
    rows.insert(again, 5)
    assert again.run(READ) == rows.wanted()
    assert c.run(READ) == rows.wanted()
    servers.migrate("c", "a")
    assert again.run(READ) == rows.wanted()


def test_a_server_that_is_stopped_for_long_is_lost(servers: Servers, a: Client) -> None:
    rows = Rows()
    rows.insert(a, 5)
    servers.migrate("a", "b")
    rows.insert(a, 5)
    servers.stop("b")
    times = itertools.chain((1.0, LEASE, LEASE + 1, LEASE + 2), itertools.repeat(LEASE + 3))
    heirs = Heirs(servers["a"].core.registry, lambda: next(times))
    (entry,) = servers["a"].view_migration.ownership.all()
    assert [heirs.entry(entry) for _ in range(3)] == [None] * 3
    after = heirs.entry(entry)
    assert after is not None
    assert (after.owner, after.giver, after.taken) == ("a", "b", False)
    servers["a"].view_migration._import._heirs = heirs
    wait_until(lambda: servers.owner("v") == "a", what="the take-over")
    assert a.run(READ) == rows.wanted()
    wait_until(lambda: not servers["b"].core.streams, what="the guest's end")


def test_an_error_that_rows_made(servers: Servers, a: Client) -> None:
    """The error is the view's value wherever the view is, and does not keep the log."""
    a.run("CREATE VIEW w AS SELECT sum(1 / k) AS n FROM s")
    a.run("INSERT INTO s VALUES (1, 1, '')")
    servers.migrate("a", "b", "w")
    servers["b"].view_migration.checkpoints.close()  # no other copy comes in between
    a.run("INSERT INTO s VALUES (0, 1, '')")
    with pytest.raises(SqlError, match="22012"):
        a.run("SELECT * FROM w")
    (before,) = servers["a"].view_migration.ownership.all()
    servers.copied("b", "w")
    (entry,) = servers["a"].view_migration.ownership.all()
    assert entry.failure is not None
    assert entry.failure[0] == "22012"
    assert entry.at > before.at
    servers.lose("b", "a")
    wait_until(lambda: servers.owner("w") == "a", what="the take-over")
    a.run("INSERT INTO s VALUES (1, 1, '')")
    for _ in range(2):
        with pytest.raises(SqlError, match="22012"):
            servers.client("a").run("SELECT * FROM w")
        servers.stop("a")


def test_a_server_that_comes_back_empty_counts_nothing_twice(servers: Servers, a: Client) -> None:
    """Its earlier reports about the stream do not apply to its new replica, which has the same oid."""
    servers.options |= {"log_segment_bytes": 1 << 16, "maintenance_rows": 1}
    rows = Rows()
    servers.migrate("a", "b")
    for _ in range(12):
        rows.insert(a, 1)
        assert servers.client("b").run(READ) == rows.wanted()
    oid = next(iter(servers["b"].core.streams))
    servers["b"].replicas.release(servers["b"].core.sequencer.visible)
    assert list(servers["b"].core.shared.folder.glob("followed/a.*.b.json"))
    servers.empty("b")
    lost(servers["a"], "b")
    wait_until(lambda: servers.owner("v") == "a", what="the take-over")
    servers.migrate("a", "b")
    assert list(servers["b"].core.streams) == [oid]
    for _ in range(3):
        rows.insert(a, 1)
        assert servers.client("b").run(READ) == rows.wanted()
    servers.stop("b")
    assert servers.client("b").run(READ) == rows.wanted()


@pytest.mark.parametrize("is_refused", [False, True])
def test_a_server_that_comes_back_empty_within_its_lease(
    is_refused: bool, servers: Servers, a: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The view is restored from its last copy or, if that is not possible, at home."""
    rows = Rows()
    rows.insert(a, 5)
    servers.migrate("a", "b")
    rows.insert(a, 5)
    servers.copied("b", "v")
    rows.insert(a, 5)
    servers.empty("b")

    def refusing(*given: object) -> None:
        raise SqlError("42P07", "it exists")

    if is_refused:
        monkeypatch.setattr(guests, "create_guest", refusing)
        monkeypatch.setattr(view_import, "_AGAIN", 0.2)
    b = servers.client("b")
    wait_until(
        lambda: servers["b"].core.catalog.at("public", "v") is not None or servers.owner("v") == "a", what="the view"
    )
    assert servers.owner("v") == ("a" if is_refused else "b")
    rows.insert(a, 5)
    assert a.run(READ) == rows.wanted()
    if not is_refused:
        assert b.run(READ) == rows.wanted()


def test_an_error_that_rows_made_is_not_lost_with_a_folder(servers: Servers, a: Client) -> None:
    a.run("CREATE VIEW w AS SELECT sum(1 / k) AS n FROM s")
    servers.migrate("a", "b", "w")
    a.run("INSERT INTO s VALUES (0, 1, '')")
    with pytest.raises(SqlError, match="22012"):
        servers.client("b").run("SELECT * FROM w")
    servers.copied("b", "w")
    servers.empty("b")
    _ = servers["b"]
    wait_until(lambda: servers.owner("w") == "a", what="the view's coming home")
    with pytest.raises(SqlError, match="22012"):
        a.run("SELECT * FROM w")


def test_a_passing_error_of_the_storage_prevents_no_take_over(
    servers: Servers, a: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = Rows()
    rows.insert(a, 5)
    servers.migrate("a", "b")
    rows.insert(a, 5)
    errors = iter([SqlError("58030", "input/output error"), SqlError("53100", "no space left on device")])
    read = artifact.read

    def failing(storage: Path, owned: Owned) -> ExportedView:
        for error in errors:
            raise error
        return read(storage, owned)

    monkeypatch.setattr(artifact, "read", failing)
    monkeypatch.setattr(view_import, "_AGAIN", 0.2)
    servers.lose("b", "a")
    wait_until(lambda: servers.owner("v") == "a", what="the take-over")
    assert a.run(READ) == rows.wanted()


def test_what_prevents_a_view_prevents_no_other(servers: Servers, a: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    a.run("CREATE VIEW w AS SELECT count(*) FROM s")
    rows = Rows()
    rows.insert(a, 5)
    for name in ("v", "w"):
        servers.migrate("a", "b", name)
    first = servers["a"].view_migration.ownership.all()[0].view
    ownership, is_there = servers["a"].view_migration.ownership, threading.Event()
    change = ownership.change

    def failing(before: Owned | None, after: Owned) -> None:
        if after.view == first and not is_there.is_set():
            raise SqlError("55P03", "a lock is kept")
        change(before, after)

    monkeypatch.setattr(ownership, "change", failing)
    servers.lose("b", "a")
    wait_until(lambda: servers.owner("w" if first == "v" else "v") == "a", what="the other's take-over")
    is_there.set()
    wait_until(lambda: servers.owner(first) == "a", what="the take-over")
    assert a.run(READ) == rows.wanted()
    assert a.run("SELECT * FROM w") == [(5,)]
