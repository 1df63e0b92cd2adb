"""Whether a shared folder answers at all: calls on a network file system can block for as long as it is unreachable,
and cannot be interrupted.

Owns: the thread that probes the folder, so that other threads need not block to find out.
"""

from __future__ import annotations

import os
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import Final

#: Seconds between two questions, and after which one without an answer says that there are none.
_PAUSE: Final = 0.5
_PATIENCE: Final = 5.0


class Pulse:
    """That of one folder. ``is_silent`` may be asked by any thread, and waits for nothing."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._asked: float | None = None
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._ask, name="pulse", daemon=True)

    def start(self) -> None:
        """Asks from now on; until then it is never silent."""
        self._thread.start()

    def close(self) -> None:
        """Asks no more. A question without an answer may still be there."""
        self._ended.set()

    @property
    def is_silent(self) -> bool:
        """Whether the last question has waited for too long."""
        asked = self._asked
        return asked is not None and time.monotonic() - asked > _PATIENCE

    def _ask(self) -> None:
        while not self._ended.wait(_PAUSE):
            self._asked = time.monotonic()
            with suppress(OSError):  # that is an answer
                # Of a folder that is opened NFS asks its server, whatever it remembers.
                os.close(os.open(self._folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC))
            self._asked = None
