"""Points at which a test can kill or stop a process, to prove that others can continue from what it left.

Owns: their meaning. One place can be armed, by an environment variable that only tests set: ``claimed`` kills the
process there as ``kill -9`` does, ``claimed:stop`` stops it until it gets SIGCONT.
"""

from __future__ import annotations

import os
import signal
import threading
from typing import Final

VARIABLE: Final = "MILLSTREAM_FAILPOINT"


def failpoint(name: str) -> None:
    """Kills or stops the process if this point is armed, and does nothing otherwise."""
    armed, _, action = os.environ.get(VARIABLE, "").partition(":")
    if name == armed:
        # To this thread, so that it stops here: a signal to the process may be taken by any of its threads.
        signal.pthread_kill(threading.get_ident(), signal.SIGSTOP if action == "stop" else signal.SIGKILL)
