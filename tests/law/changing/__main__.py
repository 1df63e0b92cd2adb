"""Runs cases for as long as asked: ``make test-law ARGS="SECONDS=600 SEED=1"``.

Prints the cases per minute, the constructs that were reached and what was refused, with counts. At a difference it
prints the seed and a small script that shows it, and exits with status 1. SIGINT and SIGTERM end it before its time.
``JOBS`` processes run cases beside each other; without it as many as there are processors. ``SPARK=1`` runs the cases
with streams on a server whose views Spark maintains, in one process.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from collections import Counter
from typing import Final

from tests.law.changing.workers import Outcome, Task, run

_USAGE: Final = "usage: python -m tests.law.changing [SECONDS=60] [SEED=1] [CASES=0] [FAILURES=1] [JOBS=0] [SPARK=0]"


def main(arguments: list[str]) -> int:
    """Runs cases from a seed on, until the time or the number of cases is over."""
    options = {"SECONDS": 60, "SEED": 1, "CASES": 0, "FAILURES": 1, "JOBS": 0, "SPARK": 0}
    for argument in arguments:
        name, _, value = argument.partition("=")
        if name not in options or not value.isdecimal():
            print(_USAGE, file=sys.stderr)
            return 2
        options[name] = int(value)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    start = time.monotonic()
    asked = (options[name] for name in ("SECONDS", "SEED", "CASES", "FAILURES"))
    task = Task(*asked, with_spark=options["SPARK"] > 0)
    outcome = run(task, options["JOBS"] or (1 if task.with_spark else os.cpu_count() or 1))
    _summarise(outcome, time.monotonic() - start)
    return 1 if outcome.failed else 0


def _summarise(outcome: Outcome, seconds: float) -> None:
    counts = outcome.counts
    rate, busy = (counts.cases / spent * 60 for spent in (seconds, outcome.processor))
    print(
        f"{counts.cases} cases up to seed {outcome.next_seed - 1}, {counts.reads} reads compared, in {seconds:.0f} s:"
    )
    print(f"{rate:.0f} cases per minute, {busy:.0f} per minute of the processor time of Millstream's processes")
    for title, found in (
        ("constructs reached", counts.constructs),
        ("refused", counts.refused),
        ("passed over", counts.passed_over),
    ):
        _list(title, found)


def _list(title: str, found: Counter[str]) -> None:
    print(f"\n{title}:")
    for name, count in sorted(found.items(), key=lambda item: (-item[1], item[0])):
        print(f"{count:8,}  {name}")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
