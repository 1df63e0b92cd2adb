"""Servers of one storage: which are alive, which owns a query, and that a server that has lost a query writes nothing
to it."""

from __future__ import annotations

import contextlib
import errno
import itertools
import json
import os
import random
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from types import SimpleNamespace

import pytest

from catalog.values.errors import SqlError
from executor.cluster import lock
from executor.cluster import storage as storage_module
from executor.cluster.claims import Claim, Claims
from executor.cluster.registry import Registry
from executor.cluster.storage import Storage
from tests.rig.beside import Beside
from tests.rig.process import wait_until

#: Makes a server join the storage under a name.
Join = Callable[[str], "Server"]
ID = "0123456789abcdef"


class Clock:
    """A clock that the test sets."""

    now = 100.0


class Server:
    """One server's view of a storage."""

    def __init__(self, folder: Path, name: str, clock: Clock) -> None:
        self.storage = Storage(folder)
        self.registry = Registry(self.storage, name, f"127.0.0.1:{name}", 4.0, lambda: clock.now)
        self.registry.join()
        self.claims = Claims(self.storage, self.registry)

    def states(self) -> dict[str, tuple[str, int]]:
        return {member.name: (member.state, member.epoch) for member in self.registry.all()}


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def join(tmp_path: Path, clock: Clock) -> Iterator[Join]:
    """Makes servers join."""
    made: list[Server] = []

    def join(name: str) -> Server:
        made.append(Server(tmp_path, name, clock))
        return made[-1]

    yield join
    for server in made:
        server.registry.close()


def sqlstate(call: object, *arguments: object) -> str:
    with pytest.raises(SqlError) as raised:
        call(*arguments)  # type: ignore[operator]
    return raised.value.sqlstate


def test_a_name_belongs_to_one_server(join: Join) -> None:
    one = join("a")
    assert sqlstate(join, "a") == "55006"
    one.registry.close()
    again, other = join("a"), join("b")
    assert other.states() == {"a": ("up", 2), "b": ("up", 1)}
    assert [member.name for member in again.registry.targets()] == ["b"]
    other.registry.close()
    assert again.states() == {"a": ("up", 2), "b": ("stopped", 1)}
    assert again.registry.targets() == []
    again.registry.close()


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'{"format": 1}', b'{"format": 1, "name": "b"}', b"\xff"])
def test_an_own_entry_that_is_damaged(content: bytes, tmp_path: Path, join: Join) -> None:
    """The entry is replaced, in an epoch that voids everything before."""
    one, other = join("a"), join("b")
    one.claims.take(ID)
    one.registry.close()
    path = tmp_path / "servers" / "a.json"
    path.write_bytes(content)
    assert other.states() == {"b": ("up", 1)}
    assert sqlstate(other.registry.get, "a") == "XX001"
    again = join("a")
    state, epoch = other.states()["a"]
    assert (state, epoch) == ("up", again.registry.epoch)
    assert epoch > 1_000_000
    assert other.claims.get(ID) is None
    assert again.registry.beat()
    again.registry.close()
    assert join("a").registry.epoch == epoch + 1


@pytest.mark.parametrize("heirs", [{"a": "a"}, {"a": "c", "c": "a"}, {"a": "c", "c": "d", "d": "c"}])
def test_heirs_that_lead_back_to_one_of_them(heirs: dict[str, str], tmp_path: Path, join: Join) -> None:
    """No server writes such entries; a reader of forged ones does not loop."""
    b = join("b")
    for name, heir in heirs.items():
        join(name).registry.close()
        forge(tmp_path, name, state="adopted", heir=heir)
    assert sqlstate(b.registry.last_heir, "a") == "XX001"
    assert sqlstate(b.registry.adopt, "a") == "XX001"
    assert b.registry.last_heir("b") == ""


@pytest.mark.parametrize(
    "field", [{"heir": 7}, {"state": None}, {"staged": "x"}, {"lease": "4"}, {"epoch": 1.5}, {"epoch": True}, {"x": 1}]
)
def test_an_entry_with_a_field_of_another_type(field: dict[str, object], tmp_path: Path, join: Join) -> None:
    b = join("b")
    join("a").registry.close()
    forge(tmp_path, "a", **field)
    assert sqlstate(b.registry.get, "a") == "XX001"
    assert b.registry.last_heir("a") == ""
    assert b.states() == {"b": ("up", 1)}


def forge(folder: Path, name: str, **fields: object) -> None:
    """Changes a server's entry by hand."""
    path = folder / "servers" / f"{name}.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | fields))


def test_a_lease_expires_by_the_watching_servers_clock(join: Join, clock: Clock) -> None:
    a, b = join("a"), join("b")
    for _ in range(9):
        assert b.registry.silent() == []
        assert a.registry.beat()
        clock.now += 1
    clock.now += 1000  # the watching server stood still, which says nothing about the other
    assert b.registry.silent() == []
    clock.now += 1
    assert b.registry.silent() == []
    for _ in range(4):
        clock.now += 1
        found = b.registry.silent()
    assert [member.name for member in found] == ["a"]
    assert b.registry.take_over(found[0])
    assert not b.registry.take_over(found[0]), "once"
    assert b.states()["a"] == ("lost", 2)
    assert not a.registry.beat(), "it learns that"
    a.registry.close()
    assert b.states()["a"] == ("lost", 2)
    b.registry.close()


def test_a_server_without_its_storage_takes_no_other_for_lost(tmp_path: Path, join: Join, clock: Clock) -> None:
    a, b = join("a"), join("b")
    away = tmp_path.with_name(f"{tmp_path.name}-away")
    for _ in range(4):
        assert b.registry.silent() == []
        clock.now += 1
    tmp_path.rename(away)
    for call in (a.registry.beat, b.registry.beat):
        with pytest.raises(FileNotFoundError):
            call()
    for call in (lambda: b.registry.get("a"), lambda: b.claims.get(ID), lambda: b.claims.take(ID)):
        assert sqlstate(call) == "58030", "not that there is none"
    assert not tmp_path.exists()
    away.rename(tmp_path)
    for _ in range(4):
        assert b.registry.silent() == []
        clock.now += 1
    assert a.registry.beat()
    assert b.registry.silent() == []
    assert b.states() == {"a": ("up", 1), "b": ("up", 1)}


def test_a_heartbeat_at_the_last_moment(join: Join, clock: Clock) -> None:
    a, b = join("a"), join("b")
    for _ in range(7):
        found = b.registry.silent()
        clock.now += 1
    assert a.registry.beat()
    assert [b.registry.take_over(member) for member in found] == [False]
    assert b.states()["a"] == ("up", 1)


def test_a_query_has_one_owner(join: Join) -> None:
    a, b, c = (join(name) for name in "abc")
    a.claims.take(ID)
    assert sqlstate(b.claims.take, ID) == "55006"
    assert (b.claims.owner(ID), b.claims.holds(ID), a.claims.holds(ID)) == ("a", False, True)
    a.claims.give(ID, "b")
    assert not a.claims.holds(ID)
    assert sqlstate(a.claims.give, ID, "c") == "55000"
    assert c.claims.get(ID) == Claim("b", 1, ordered=True)
    b.claims.take(ID)
    assert c.claims.get(ID) == Claim("b", 1)
    b.claims.release(ID)
    assert c.claims.get(ID) is None
    c.claims.take(ID)
    with c.claims.freed(ID):
        pass
    assert sqlstate(c.claims.owned(ID).__enter__) == "55000"


def test_only_running_servers_are_given_anything(join: Join) -> None:
    a, b = join("a"), join("b")
    a.claims.take(ID)
    assert sqlstate(a.claims.give, ID, "c") == "42704"
    assert sqlstate(a.registry.mark, "c", "draining") == "42704"
    a.registry.mark("b", "draining")
    assert sqlstate(a.claims.give, ID, "b") == "55000"
    b.registry.close()
    assert sqlstate(a.claims.give, ID, "b") == "55000"
    assert sqlstate(a.registry.mark, "b", "draining") == "55000"
    assert a.claims.holds(ID), "it has it still"


def test_a_zombie_writes_nothing(join: Join, clock: Clock) -> None:
    a, b = join("a"), join("b")
    a.claims.take(ID)
    void = b.claims.get(ID)
    assert void is not None
    for _ in range(7):
        found = b.registry.silent()
        clock.now += 1
    assert b.registry.take_over(found[0])
    assert b.claims.get(ID) is None, "all that it had claimed is void"
    assert b.claims.inherit(ID, void)
    assert not b.claims.inherit(ID, void), "once"
    for call in (a.claims.take, lambda query: a.claims.give(query, "b"), lambda q: a.claims.owned(q).__enter__()):
        assert sqlstate(call, ID) == "55000"
    assert sqlstate(a.claims.freed(ID).__enter__) == "55000"
    a.claims.release(ID)
    assert b.claims.get(ID) == Claim("b", 1, ordered=True)
    a.registry.close()
    again = join("a")
    again.claims.drop_void()
    assert sqlstate(again.claims.take, ID) == "55006"
    assert again.states()["a"] == ("up", 3)


def test_claims_of_an_earlier_life_are_void(join: Join) -> None:
    a = join("a")
    a.claims.take(ID)
    a.registry.close()
    b = join("b")
    assert b.claims.get(ID) is None, "it ended"
    again = join("a")
    assert again.claims.get(ID) is None
    again.claims.drop_void()
    assert again.claims.all() == {}


@pytest.mark.parametrize(
    "text",
    ["", "{", "[]", '{"format": 1}', '{"format": 1, "name": "b"}', '{"format": 1, "server": 1, "epoch": "x"}'],
)
def test_what_no_server_wrote(text: str, tmp_path: Path, join: Join) -> None:
    a = join("a")
    (tmp_path / "servers/b.json").write_text(text)
    assert sqlstate(a.registry.get, "b") == "XX001"
    assert [member.name for member in a.registry.all()] == ["a"], "the others are as they were"
    assert (a.registry.silent(), a.registry.targets()) == ([], [])
    a.claims.take(ID)
    (tmp_path / f"claims/{ID}.json").write_text(text)
    assert sqlstate(a.claims.get, ID) == "XX001"
    assert (a.claims.all(), a.claims.owner(ID)) == ({}, None)


def test_a_format_of_a_later_version(tmp_path: Path, join: Join) -> None:
    a = join("a")
    (tmp_path / "servers/b.json").write_text('{"format": 2}')
    assert sqlstate(a.registry.get, "b") == sqlstate(join, "b") == "0A000", "and is not replaced"


def test_a_server_that_stands_still_loses_the_lock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A server that stood still writes and deletes nothing afterwards, and the others need not know whether it is
    alive."""
    monkeypatch.setattr(lock, "STANDSTILL", 0.0)
    one, two = Storage(tmp_path), Storage(tmp_path)
    kept, other = tmp_path / "kept.json", tmp_path / "other.json"
    with two.exclusive():
        two.write(kept, {"by": "two"})
    for change in (
        lambda: one.write(kept, {"by": "one"}),
        lambda: one.write(other, {"by": "one"}),
        lambda: one.delete(kept),
        lambda: one.replace(kept, b""),
    ):
        with pytest.raises(SqlError, match="did not respond") as raised, one.exclusive():
            with two.exclusive():
                assert two.read(kept) == {"by": "two"}
            change()
        assert raised.value.sqlstate == "55P03"
        assert one.read(kept) == {"by": "two"}
        assert one.read(other) is None
    with one.exclusive():
        one.write(kept, {"by": "one"})
        one.sweep()
    assert two.read(kept) == {"by": "one"}
    (term,) = (tmp_path / "lock").iterdir()
    assert term.name == "5"
    assert sorted(path.name for path in term.rglob("*")) == ["5", "5.lock"]


def test_the_waiting_server_may_have_stood_still_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The waiting server stood still together with the lock's holder, as on a suspended machine: it must not take the
    lock."""
    tries, now = 0, 0.0

    def clock() -> float:
        nonlocal tries
        tries += 1
        return now

    def more_tries() -> None:
        before = tries
        wait_until(lambda: tries > before + 5, what="tries")

    monkeypatch.setattr(lock, "time", SimpleNamespace(monotonic=clock, sleep=time.sleep))
    one, two = Storage(tmp_path), Storage(tmp_path)
    with one.exclusive():
        waiting = Beside(two.exclusive().__enter__)
        more_tries()
        now = 100.0
        more_tries()
        one.write(tmp_path / "kept.json", {})
    waiting.result()


def test_a_lock_file_that_was_emptied(tmp_path: Path) -> None:
    storage = Storage(tmp_path)
    (tmp_path / "lock/1").rmdir()
    assert sqlstate(storage.exclusive().__enter__) == "XX001"
    (tmp_path / "lock").rmdir()
    assert sqlstate(storage.exclusive().__enter__) == "58030"
    with Storage(tmp_path).exclusive():
        pass


def test_a_storage_that_goes_away_under_the_lock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As with NFS and a lost server, where even looking for a file fails."""
    storage = Storage(tmp_path)

    def stale(*arguments: object, **more: object) -> None:
        raise OSError(errno.ESTALE, os.strerror(errno.ESTALE))

    with monkeypatch.context() as patch, pytest.raises(SqlError) as raised, storage.exclusive():
        patch.setattr(os, "stat", stale)
        storage.delete(tmp_path / "kept.json")
    assert raised.value.sqlstate == "58030"
    with storage.exclusive():
        storage.write(tmp_path / "kept.json", {})


def count(folder: Path, times: int, seed: int) -> int:
    """A process that increments a counter until it is done or has lost the lock, which may begin late; returns how
    often it was told that it succeeded."""
    lock.STANDSTILL = 0.002
    storage, path, chance, done, turns = Storage(folder), folder / "count", random.Random(seed), 0, itertools.count()
    while next(turns) < times or (folder / "lock/1").exists():
        with contextlib.suppress(SqlError), storage.exclusive():
            found = storage.read(path) or {"n": 0}
            if chance.random() < 0.3:
                time.sleep(chance.random() * 0.006)
            storage.write(path, {"n": found["n"] + 1})
            done += 1
    return done


@pytest.mark.slow
def test_no_number_is_counted_twice(tmp_path: Path) -> None:
    """Each number is counted once, however often the lock is taken from its holder."""
    with ProcessPoolExecutor(3, mp_context=get_context("spawn")) as processes:
        done = sum(processes.map(count, [tmp_path] * 3, [60] * 3, range(3)))
    assert Storage(tmp_path).read(tmp_path / "count") == {"n": done}
    (term,) = (tmp_path / "lock").iterdir()
    assert int(term.name) > 1, "it was taken away"


def test_a_lock_of_an_earlier_version(tmp_path: Path) -> None:
    (tmp_path / "lock").touch()
    storage = Storage(tmp_path)
    (tmp_path / "lock/1/1").touch()
    with storage.exclusive():
        assert (tmp_path / "lock/1/1").is_dir()
        assert (tmp_path / "lock/1/1.lock").is_file()


def test_the_lock_is_not_waited_for_for_ever(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (lock, storage_module):
        monkeypatch.setattr(module, "PATIENCE", 0.0)
    one, two = Storage(tmp_path), Storage(tmp_path)
    with one.exclusive():
        assert sqlstate(two.exclusive().__enter__) == "55P03"
        assert sqlstate(one.exclusive().__enter__) == "55P03"
    with two.exclusive():
        pass
