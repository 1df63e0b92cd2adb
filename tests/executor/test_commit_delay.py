"""How long a record waits for clients that come back as soon as they are answered."""

from __future__ import annotations

from executor.commit.delay import LONGEST, CommitDelay


class Clock:
    """Time that passes when it is told to."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def _learn(delay: CommitDelay, known: int) -> None:
    """All of so many statements come in time, record after record."""
    for _ in range(200):
        delay.expect(known)
        assert not delay.goes_on(known)


def test_lone_client_never_waits() -> None:
    delay = CommitDelay(Clock())
    for _ in range(100):
        delay.expect(1)
        assert not delay.goes_on(0)


def test_waits_for_all_who_came_back_in_time() -> None:
    delay = CommitDelay(Clock())
    _learn(delay, 8)
    delay.expect(8)
    assert all(delay.goes_on(here) for here in range(8))
    assert not delay.goes_on(8)


def test_wait_has_an_end() -> None:
    clock = Clock()
    delay = CommitDelay(clock)
    _learn(delay, 8)
    delay.expect(8)
    clock.now += LONGEST / 2
    assert delay.goes_on(7)
    clock.now += LONGEST
    assert not delay.goes_on(7)


def test_who_did_not_come_is_waited_for_only_now_and_then() -> None:
    clock = Clock()
    delay = CommitDelay(clock)
    _learn(delay, 8)
    waited = 0
    for _ in range(160):
        delay.expect(8)
        waited += delay.goes_on(7)
        clock.now += LONGEST * 2
        assert not delay.goes_on(7)
    assert 1 < waited <= 11
