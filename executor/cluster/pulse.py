"""Tells whether a shared folder answers: calls on a network file system can block for as long as it is unreachable, and
cannot be interrupted.

Owns: the thread that probes the folder, so that other threads need not block to find out.
"""

from __future__ import annotations

import os
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import Final

#: Seconds between two probes, and after which a probe without an answer counts as silence.
_PAUSE: Final = 0.5
_PATIENCE: Final = 5.0


class Pulse:
    """The pulse of one folder. ``is_silent`` may be read by any thread and never blocks."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._asked: float | None = None
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._ask, name="pulse", daemon=True)

    def start(self) -> None:
        """Probes from now on; until then the folder is never silent."""
        self._thread.start()

    def close(self) -> None:
        """Ends the probes. One without an answer may still be blocked."""
        self._ended.set()

    @property
    def is_silent(self) -> bool:
        """Whether the last probe has waited for its answer for too long."""
        asked = self._asked
        return asked is not None and time.monotonic() - asked > _PATIENCE

    def _ask(self) -> None:
        while not self._ended.wait(_PAUSE):
            self._asked = time.monotonic()
            with suppress(OSError):  # an error is an answer
                # NFS asks its server when a folder is opened, whatever it has cached.
                os.close(os.open(self._folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC))
            self._asked = None
