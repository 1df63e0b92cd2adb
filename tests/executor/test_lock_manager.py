"""The lock manager: PostgreSQL's modes, its order of waiting, and circles of waits."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable

import pytest

from catalog.values.errors import SqlError
from executor.locks.held import TransactionLocks
from executor.locks.manager import Locks, Owner, Request
from executor.locks.modes import CONFLICTS, Mode
from executor.locks.targets import Keys, Relation, Row, Rows, Target, advisory
from tests.rig.beside import Beside
from tests.rig.process import wait_until

TABLE = Relation(1)
#: https://www.postgresql.org/docs/15/explicit-locking.html#TABLE-LOCK-COMPATIBILITY, one row for each held mode.
MANUAL = """
.......X
......XX
....XXXX
...XXXXX
..XX.XXX
..XXXXXX
.XXXXXXX
XXXXXXXX
"""


def test_modes_exclude_each_other_as_the_manual_says() -> None:
    for (row, held), (column, wanted) in itertools.product(enumerate(Mode), repeat=2):
        excluded = MANUAL.split()[row][column] == "X"
        assert (wanted in CONFLICTS[held]) == excluded
        locks, first, second = Locks(), Owner(), Owner()
        assert locks.take(first, TABLE, held)
        assert locks.take(second, TABLE, wanted, waits=False) != excluded
        alone = Locks()
        assert all(alone.take(first, TABLE, mode, waits=False) for mode in (held, wanted))  # own locks exclude nothing
    assert [mode.shown for mode in (Mode.ACCESS_SHARE, Mode.SHARE_UPDATE_EXCLUSIVE)] == [
        "AccessShareLock",
        "ShareUpdateExclusiveLock",
    ]


def test_targets_of_different_kinds_are_different() -> None:
    targets: tuple[Target, ...] = (
        Relation(1),
        Rows(1),
        Keys(1),
        advisory(1),
        Row(1, ("a",), (1,)),
        Row(1, ("b",), (1,)),
    )
    locks = Locks()
    assert all(locks.take(Owner(), target, Mode.ACCESS_EXCLUSIVE, waits=False) for target in targets)
    assert not locks.take(Owner(), Row(1, ("a",), (1,)), Mode.ACCESS_EXCLUSIVE, waits=False)


def ask(locks: Locks, owner: Owner, mode: Mode, log: list[str], name: str) -> Request | None:
    return locks.ask(owner, TABLE, mode, lambda: log.append(name))


def test_requests_are_granted_in_their_order() -> None:
    locks, log = Locks(), list[str]()
    reader, writer, late, other = (Owner(pid) for pid in range(1, 5))
    assert ask(locks, reader, Mode.ACCESS_SHARE, log, "reader") is None
    assert ask(locks, writer, Mode.ACCESS_EXCLUSIVE, log, "writer") is not None
    assert ask(locks, late, Mode.ACCESS_SHARE, log, "late") is not None  # after those that asked before
    assert ask(locks, other, Mode.ACCESS_SHARE, log, "other") is not None
    assert locks.blockers(late) == [writer] and locks.blockers(writer) == [reader]
    # the reader's next request does not wait for owners that wait for the reader
    assert ask(locks, reader, Mode.ROW_EXCLUSIVE, log, "again") is None
    assert locks.barriers == {1: 1}
    locks.release(reader, [(TABLE, Mode.ACCESS_SHARE), (TABLE, Mode.ROW_EXCLUSIVE)])
    assert log == ["writer"]
    locks.release(writer, [(TABLE, Mode.ACCESS_EXCLUSIVE)])
    assert log == ["writer", "late", "other"]
    assert not locks.barriers
    locks.release(late, [(TABLE, Mode.ACCESS_SHARE)])
    locks.release(other, [(TABLE, Mode.ACCESS_SHARE)])
    assert locks.shown() == [] and not any(owner.held for owner in (reader, writer, late, other))


def test_a_wait_that_ends_lets_those_behind_it_go_on() -> None:
    locks, log = Locks(), list[str]()
    reader, writer, late = Owner(1), Owner(2), Owner(3)
    ask(locks, reader, Mode.ACCESS_SHARE, log, "reader")
    waiting = ask(locks, writer, Mode.ACCESS_EXCLUSIVE, log, "writer")
    ask(locks, late, Mode.ACCESS_SHARE, log, "late")
    assert waiting is not None and not locks.withdraw(waiting)
    assert log == ["late"] and not locks.barriers


def test_the_request_that_closes_a_circle_gets_the_error() -> None:
    locks, owners = Locks(), [Owner(pid) for pid in (11, 12, 13)]
    for number, owner in enumerate(owners):
        assert locks.take(owner, Relation(number), Mode.EXCLUSIVE)
    for number, owner in enumerate(owners[:-1]):
        assert locks.ask(owner, Relation(number + 1), Mode.ROW_SHARE, lambda: None) is not None
    with pytest.raises(SqlError) as caught:
        locks.take(owners[-1], Relation(0), Mode.ROW_EXCLUSIVE)
    assert caught.value.sqlstate == "40P01"
    assert (caught.value.detail or "").splitlines()[0].startswith("Process 13 waits for RowExclusiveLock on ")
    assert [line.split()[-1] for line in (caught.value.detail or "").splitlines()] == ["11.", "12.", "13."]
    assert owners[-1].awaited is None


@pytest.mark.parametrize(
    ("timeout", "is_cancelled", "state"), [(0.01, lambda: False, "55P03"), (0.0, lambda: True, "57014")]
)
def test_a_wait_ends_by_timeout_and_by_cancel(timeout: float, is_cancelled: Callable[[], bool], state: str) -> None:
    locks, first, second = Locks(), Owner(), Owner()
    locks.take(first, TABLE, Mode.EXCLUSIVE)
    with pytest.raises(SqlError) as caught:
        locks.take(second, TABLE, Mode.EXCLUSIVE, True, timeout, is_cancelled)
    assert caught.value.sqlstate == state
    waiting = Beside(lambda: locks.take(second, TABLE, Mode.EXCLUSIVE))
    wait_until(lambda: second.awaited is not None, 20, "the wait")
    locks.release(first, [(TABLE, Mode.EXCLUSIVE)])
    assert waiting.result()


def test_a_transaction_gives_back_what_it_took_since_a_savepoint() -> None:
    locks, other = Locks(), Owner()
    own = TransactionLocks(locks, Owner())
    assert own.take(TABLE, Mode.ROW_EXCLUSIVE) and not own.take(TABLE, Mode.ROW_EXCLUSIVE)
    mark = own.mark()
    own.take(Rows(1), Mode.EXCLUSIVE)
    own.take(TABLE, Mode.EXCLUSIVE)
    assert not locks.take(other, TABLE, Mode.ROW_EXCLUSIVE, waits=False)
    own.release_after(mark)
    assert locks.take(other, TABLE, Mode.ROW_EXCLUSIVE, waits=False)
    with pytest.raises(SqlError, match="no such luck") as caught:
        own.take(TABLE, Mode.SHARE, "no such luck")
    assert caught.value.sqlstate == "55P03"
    own.take(Rows(1), Mode.EXCLUSIVE)
    own.release_rows()
    assert locks.take(other, Rows(1), Mode.EXCLUSIVE, waits=False)
    own.release_all()
    assert {lock.owner for lock in locks.shown()} == {other}


def test_locks_that_are_tried_together_are_taken_up_to_the_first_that_is_not_free() -> None:
    locks, other = Locks(), Owner()
    mine = TransactionLocks(locks, Owner())
    every = [(TABLE, Mode.ROW_EXCLUSIVE), (Rows(1), Mode.ROW_EXCLUSIVE), (Row(1, ("id",), (1,)), Mode.EXCLUSIVE)]
    assert locks.take(other, Rows(1), Mode.SHARE)
    assert not mine.try_all(every)
    assert mine.refused == every[1]
    assert [mine.has(*each) for each in every] == [True, False, False]
    assert locks.give_back(other, Rows(1), Mode.SHARE)
    assert mine.try_all(every)
    assert mine.try_all(every)  # each lock is held once
    assert mine.mark() == 3
    mine.release_rows()
    assert [mine.has(*each) for each in every] == [True, False, False]
    assert locks.take(other, TABLE, Mode.ACCESS_SHARE, waits=False)
    assert not locks.take(other, TABLE, Mode.SHARE, waits=False)
    mine.release_all()
    assert locks.take(other, TABLE, Mode.SHARE, waits=False)
    assert [(each.owner, each.mode) for each in locks.shown()] == [(other, Mode.ACCESS_SHARE), (other, Mode.SHARE)]


@pytest.mark.parametrize("seed", range(4))
def test_whatever_is_asked_no_two_hold_what_excludes_each_other_and_none_waits_for_ever(seed: int) -> None:
    """Random requests and releases of several owners over a few targets; the rules are checked after each."""
    source, locks = random.Random(seed), Locks()
    owners = [Owner(pid) for pid in range(1, 7)]
    for _ in range(3000):
        owner = source.choice(owners)
        if owner.awaited is not None:
            if source.random() < 0.1:
                locks.withdraw(owner.awaited)
        elif owner.held and source.random() < 0.4:
            locks.release(
                owner,
                [(target, mode) for target, modes in owner.held.items() for mode in modes for _ in range(modes[mode])],
            )
        else:
            try:
                locks.ask(owner, Relation(source.randrange(4)), source.choice(list(Mode)), lambda: None)
            except SqlError as error:
                assert error.sqlstate == "40P01"
        shown = locks.shown()
        for one, two in itertools.combinations([lock for lock in shown if lock.granted], 2):
            assert one.target != two.target or one.owner is two.owner or two.mode not in CONFLICTS[one.mode]
        for lock in shown:
            assert lock.granted or locks.blockers(lock.owner)
    while held := [owner for owner in owners if owner.held and owner.awaited is None]:
        for owner in held:
            locks.release(
                owner,
                [(target, mode) for target, modes in owner.held.items() for mode in modes for _ in range(modes[mode])],
            )
    assert locks.shown() == [] and not locks.barriers
