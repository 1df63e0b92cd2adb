"""Runs cases for as long as asked: ``make test-law ARGS="SECONDS=600 SEED=1"``.

Prints the cases per minute, the constructs that were reached and what was refused, with counts. At a difference it
prints the seed and a small script that shows it, and exits with status 1. SIGINT and SIGTERM end it before its time.
``SPARK=1`` runs the cases with streams on a server whose views Spark maintains.
"""

from __future__ import annotations

import contextlib
import faulthandler
import signal
import sys
import time
from collections import Counter
from typing import Final

from tests.law.changing.laboratory import Laboratory, report
from tests.law.changing.running import Counts

_USAGE: Final = "usage: python -m tests.law.changing [SECONDS=60] [SEED=1] [CASES=0] [FAILURES=1] [SPARK=0]"
#: Seconds after which a case counts as hanging.
_HANGS: Final = 600.0


def main(arguments: list[str]) -> int:
    """Runs cases from a seed on, until the time or the number of cases is over."""
    options = {"SECONDS": 60, "SEED": 1, "CASES": 0, "FAILURES": 1, "SPARK": 0}
    for argument in arguments:
        name, _, value = argument.partition("=")
        if name not in options or not value.isdecimal():
            print(_USAGE, file=sys.stderr)
            return 2
        options[name] = int(value)
    with Laboratory(with_spark=options.pop("SPARK") > 0) as laboratory:
        return _run(laboratory, **{name.lower(): value for name, value in options.items()})


def _run(laboratory: Laboratory, seconds: int, seed: int, cases: int, failures: int) -> int:
    start, used, failed = time.monotonic(), time.process_time(), 0
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    with contextlib.suppress(KeyboardInterrupt):
        while failed < failures and not (cases and laboratory.counts.cases >= cases):
            if not cases and time.monotonic() - start > seconds:
                break
            faulthandler.dump_traceback_later(_HANGS, exit=True)
            found = laboratory.failure(seed)
            if found is not None:
                failed += 1
                print(report(laboratory, *found), flush=True)
            seed += 1
    faulthandler.cancel_dump_traceback_later()
    _summarise(laboratory.counts, time.monotonic() - start, time.process_time() - used, seed)
    return 1 if failed else 0


def _summarise(counts: Counts, seconds: float, processor: float, seed: int) -> None:
    rate, busy = (counts.cases / spent * 60 for spent in (seconds, processor))
    print(f"{counts.cases} cases up to seed {seed - 1}, {counts.reads} reads compared, in {seconds:.0f} s:")
    print(f"{rate:.0f} cases per minute, {busy:.0f} per minute of this process's processor time")
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
