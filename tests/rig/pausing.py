"""Pauses at random lines of tests and of code that threads of several servers share: code that is right only without
delays fails within minutes, instead of once in many runs.

    make test ARGS="-p tests.rig.pausing tests/executor/test_moving*.py"

A test that waits for nothing and then asserts what a thread does meanwhile fails so; one that acts while a query runs
has to do that in time.
"""

from __future__ import annotations

import random
import sys
import threading
import time
from collections import Counter
from collections.abc import Generator
from functools import cache
from pathlib import Path
from types import FrameType
from typing import Any, Final

import pytest

_ROOT: Final = Path(__file__).parents[2]
#: How often a line pauses, and the longest pause in seconds (few are that long), by the line's module.
_PAUSES: Final = {
    "tests/": (0.08, 0.35),
    "executor/moving/": (0.01, 0.15),
    "executor/cluster/": (0.01, 0.15),
    "executor/separation/": (0.01, 0.15),
    "executor/views/": (0.01, 0.15),
    "executor/commit/": (0.01, 0.15),
    "executor/core/periodic.py": (0.01, 0.15),
}
#: The most pauses of one line in a test, which may reach it a thousand times.
_MOST: Final = 6

_paused: Counter[tuple[str, int]] = Counter()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call() -> Generator[None]:
    """Pauses in all threads of a test, except those started before it."""
    _paused.clear()
    sys.settrace(_traced)
    threading.settrace(_traced)
    try:
        return (yield)
    finally:
        sys.settrace(None)
        threading.settrace(None)  # type: ignore[arg-type]


@cache
def _pause(path: str) -> tuple[float, float] | None:
    return next((pause for part, pause in _PAUSES.items() if path.startswith(f"{_ROOT}/{part}")), None)


def _traced(frame: FrameType, event: str, given: Any) -> Any:
    return _at_line if not frame.f_code.co_name.startswith("<") and _pause(frame.f_code.co_filename) else None


def _at_line(frame: FrameType, event: str, given: Any) -> Any:
    share, longest = _pause(frame.f_code.co_filename) or (0.0, 0.0)
    line = (frame.f_code.co_filename, frame.f_lineno)
    if event == "line" and random.random() < share and _paused[line] < _MOST:
        _paused[line] += 1
        time.sleep(random.random() ** 2 * longest)
    return _at_line
