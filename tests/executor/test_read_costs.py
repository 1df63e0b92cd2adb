"""When keeping a view's rows pays: reads of simulated costs, without a clock."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from executor.maintained import read_costs
from executor.maintained.read_costs import ReadCosts


class Reads:
    """The reads of one view, as ``executor.maintained.maintained_views`` does them."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.seconds = 0.0
        self.costs = ReadCosts()
        self.is_kept = False
        monkeypatch.setattr(read_costs, "thread_seconds", lambda: self.seconds)

    def read(self, compute: float, fill: float, follow: float) -> bool:
        """A read where these are the seconds of each way; whether it followed a change."""
        if not self.is_kept and (self.costs.pause or not self.costs.is_worth):
            with self.costs.computing():
                self.seconds += compute
            return False
        if not self.is_kept:
            with self.costs.filling():
                self.seconds += fill
            self.is_kept = True
            return False
        self.costs.follow(follow)
        if self.costs.is_dear:
            self.is_kept = False
            self.costs.lose()
        return True


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> Reads:
    return Reads(monkeypatch)


@pytest.mark.parametrize(("fill", "follow"), [(1.0, 0.2), (10.0, 0.11), (0.5, 5.0), (30.0, 1.0)])
def test_trials_add_a_small_part_to_a_view_that_is_better_computed(reads: Reads, fill: float, follow: float) -> None:
    for _ in range(2000):
        reads.read(0.1, fill, follow)
    assert reads.seconds < 1.2 * 2000 * 0.1 + fill + 3 * follow


@pytest.mark.parametrize("evaluations", [10, 20, 40, 80, 160])
def test_a_view_over_a_few_rows_takes_little_more_than_its_evaluations(reads: Reads, evaluations: int) -> None:
    for _ in range(evaluations):
        reads.read(0.004, 0.04, 0.005)
    assert reads.seconds < 1.25 * evaluations * 0.004


def test_rows_are_kept_from_the_second_evaluation_on(reads: Reads) -> None:
    assert [reads.read(0.1, 1.0, 0.02) for _ in range(100)] == [False] * 3 + [True] * 97
    assert reads.costs.computed == pytest.approx(0.1)
    assert reads.costs.followed == pytest.approx(0.02)


def test_rows_are_kept_once_cheap_evaluations_have_taken_as_long_as_filling_may(reads: Reads) -> None:
    evaluations = round(read_costs.OUTLAY_SECONDS / 0.01)
    assert [reads.read(0.01, 0.1, 0.002) for _ in range(100)].index(True) == evaluations + 1


def test_rows_are_not_kept_where_an_evaluation_is_cheap(reads: Reads) -> None:
    assert not any(reads.read(read_costs.WORTH_SECONDS / 2, 0.1, 0.0001) for _ in range(100))


@pytest.mark.parametrize("slow", [lambda at: at == 50, lambda at: at % 5 == 0])
def test_a_read_that_takes_longer_than_the_others_changes_nothing(reads: Reads, slow: Callable[[int], bool]) -> None:
    followed = [reads.read(0.1, 1.0, 5.0 if slow(at) and at > 8 else 0.02) for at in range(100)]
    assert followed == [False] * 3 + [True] * 97


def test_changes_that_become_dear_are_noticed_within_a_few_reads(reads: Reads) -> None:
    for _ in range(20):
        reads.read(0.1, 1.0, 0.02)
    assert reads.is_kept
    assert [reads.read(0.1, 1.0, 0.5) for _ in range(6)].count(True) == 3


@pytest.mark.parametrize(("fill", "pause"), [(0.05, 2), (1.05, 10)])
def test_after_a_loss_evaluations_take_as_long_as_filling_the_rows_did(reads: Reads, fill: float, pause: int) -> None:
    for _ in range(4):
        reads.read(0.1, fill, 0.02)
    reads.is_kept = False
    reads.costs.lose()
    assert [reads.read(0.1, fill, 0.02) for _ in range(pause + 3)] == [False] * (pause + 1) + [True, True]
