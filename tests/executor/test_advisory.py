"""Advisory locks by themselves: what one look at them costs, and what it finds."""

from __future__ import annotations

import pytest

from executor.advisory import EXCLUSIVE, SHARED, Holder, Key, Lock, Locks


def holder(locks: Locks) -> Holder:
    return Holder(locks, lambda: False, lambda: False, lambda: False)


def test_a_lock_is_compared_with_those_of_its_key_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    locks = Locks()
    one, other = holder(locks), holder(locks)
    for number in range(1000):
        assert locks.take(Lock(one, Key.of(number), EXCLUSIVE), False)
    compared: list[Lock] = []
    excludes = Lock.excludes
    monkeypatch.setattr(Lock, "excludes", lambda self, wanted: compared.append(self) or excludes(self, wanted))
    assert locks.take(Lock(other, Key.of(5000), EXCLUSIVE), False)
    assert not locks.take(Lock(other, Key.of(7), SHARED), False)
    assert compared == [Lock(one, Key.of(7), EXCLUSIVE)]


def test_what_a_session_has_is_what_it_took_and_has_not_given_back() -> None:
    locks = Locks()
    one, other = holder(locks), holder(locks)
    first, second = Lock(one, Key.of(1), SHARED), Lock(one, Key.of(1, 2), EXCLUSIVE)
    for lock in (first, second, first, Lock(other, Key.of(1), SHARED)):
        assert locks.take(lock, False)
    assert locks.of(one) == ([first, second], [])
    assert locks.give_back(first)
    assert locks.of(one) == ([first, second], [])
    assert locks.give_back(first)
    assert not locks.give_back(first)
    assert locks.give_back(second)
    assert locks.of(one) == ([], [])
    assert locks.blockers(one) == []
