"""Waiting for the disk on the event loop's thread: while it is quick, and else as seldom as costs nothing."""

from __future__ import annotations

import random

from executor.commit.patience import QUICK, Patience


def commits(patience: Patience, now: float, seconds: list[float]) -> int:
    """How many of these commits, one right behind the other, the loop's thread would wait for."""
    waited = 0
    for each in seconds:
        now += each
        if patience.allows(now):
            patience.took(each, now)
            waited += 1
    return waited


def test_quick_disk_is_waited_for() -> None:
    assert commits(Patience(), 100.0, [0.0001] * 1000) == 1000


def test_hiccups_are_forgiven() -> None:
    source = random.Random(1)
    times = [0.004 if source.random() < 0.1 else 0.0001 for _ in range(5000)]
    assert commits(Patience(), 100.0, times) == 5000


def test_slow_disk_is_left_to_the_writer_but_for_a_try_now_and_then() -> None:
    patience = Patience()
    assert commits(patience, 100.0, [0.005] * 1000) < 40
    assert commits(patience, 200.0, [0.005] * 10_000) <= 101


def test_disk_that_is_quick_again_is_found_out_at_once() -> None:
    patience = Patience()
    commits(patience, 100.0, [0.005] * 1000)
    assert commits(patience, 200.0, [QUICK / 2] * 100) == 100
