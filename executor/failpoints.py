"""Points at which a test can kill or stop a process, to prove that others can continue from what it left.

Owns: their meaning. One place can be armed, by an environment variable that only tests set: ``claimed`` kills the
process there as ``kill -9`` does, ``claimed:5`` when it gets there for the fifth time, and ``claimed:stop`` stops it
until it gets SIGCONT.
"""

from __future__ import annotations

import functools
import itertools
import os
import signal
import threading
from typing import Final

VARIABLE: Final = "MILLSTREAM_FAILPOINT"
#: How many times the process gets to the place that is armed.
_times: Final = itertools.count(1)


def failpoint(name: str) -> None:
    """Kills or stops the process if this point is armed, and does nothing otherwise."""
    armed, action = _armed()
    if name == armed and next(_times) >= (int(action) if action.isdecimal() else 1):
        # To this thread, so that it stops here: a signal to the process may be taken by any of its threads.
        signal.pthread_kill(threading.get_ident(), signal.SIGSTOP if action == "stop" else signal.SIGKILL)


@functools.cache
def _armed() -> tuple[str, str]:
    """The place that is armed, and what is to happen there."""
    name, _, action = os.environ.get(VARIABLE, "").partition(":")
    return name, action
