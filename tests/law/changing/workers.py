"""Processes that run cases beside each other: each has both databases, and takes its seeds from one counter.

A process ends when another one has found as many failures as are asked for, when the time or the number of cases is
over, or when it is told to.
"""

from __future__ import annotations

import faulthandler
import gc
import multiprocessing
import signal
import time
from concurrent.futures import ProcessPoolExecutor
from typing import Any, Final

from msgspec import Struct

from tests.law.changing.laboratory import Laboratory, report
from tests.law.changing.running import Counts

#: Seconds after which a case counts as hanging.
_HANGS: Final = 600.0


class Task(Struct, frozen=True):
    """What is asked for; no ``cases``: as many as there is time for."""

    seconds: int
    seed: int
    cases: int
    failures: int
    with_spark: bool


class Outcome(Struct):
    """What processes have done; ``next_seed`` is the first one that was not taken."""

    counts: Counts
    processor: float
    failed: int = 0
    next_seed: int = 0


class Shared:
    """What all processes see."""

    def __init__(self, context: Any, seed: int) -> None:
        self.seed, self.failed, self.over = context.Value("q", seed), context.Value("q", 0), context.Event()

    def taken(self, task: Task) -> int | None:
        """The next seed; None if the work is over."""
        with self.seed.get_lock():
            seed = int(self.seed.value)
            has_enough = self.failed.value >= task.failures or (task.cases and seed - task.seed >= task.cases)
            if self.over.is_set() or has_enough:
                return None
            self.seed.value += 1
            return seed


def run(task: Task, processes: int) -> Outcome:
    """Runs cases in some processes, until the work is over or this process is interrupted."""
    context = multiprocessing.get_context("spawn")
    shared = Shared(context, task.seed)
    with ProcessPoolExecutor(processes, context, _begin, (shared,)) as pool:
        futures = [pool.submit(_work, task) for _ in range(processes)]
        try:
            outcomes = [future.result() for future in futures]
        except KeyboardInterrupt:
            shared.over.set()
            outcomes = [future.result() for future in futures]
        finally:
            shared.over.set()  # where a process has failed, the others end, too
    total = Outcome(Counts(), 0.0, int(shared.failed.value), int(shared.seed.value))
    for outcome in outcomes:
        total.counts.add(outcome.counts)
        total.processor += outcome.processor
    return total


_shared: Shared


def _begin(shared: Shared) -> None:
    """A process begins. It ends between two cases, not by a signal."""
    global _shared
    _shared = shared
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def _work(task: Task) -> Outcome:
    """Runs cases while there are some. The collector looks at what they make, as a server's does."""
    end = time.monotonic() + task.seconds
    with Laboratory(with_spark=task.with_spark) as laboratory:
        gc.freeze()
        used = time.process_time()
        while (task.cases or time.monotonic() < end) and (seed := _shared.taken(task)) is not None:
            faulthandler.dump_traceback_later(_HANGS, exit=True)
            try:
                found = laboratory.failure(seed)
            finally:
                faulthandler.cancel_dump_traceback_later()
            if found is not None:
                with _shared.failed.get_lock():
                    _shared.failed.value += 1
                print(report(laboratory, *found), flush=True)
        return Outcome(laboratory.counts, time.process_time() - used)
