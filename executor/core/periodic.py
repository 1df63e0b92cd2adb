"""What a thread of the server's own does again and again, until the server ends."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable

_LOGGER = logging.getLogger(__name__)


class Periodic:
    """One such thread, which is there from ``start`` to ``close``."""

    def __init__(self, name: str, seconds: float, work: Callable[[], None]) -> None:
        """``work`` is done each so many seconds, counted from its last end. What it should not raise is told once,
        and ends nothing."""
        self._seconds = seconds
        self._work = work
        self._ended = threading.Event()
        self._told = ""
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    def start(self) -> None:
        """From now on."""
        self._thread.start()

    def close(self) -> None:
        """Returns when it has ended; it may never have begun."""
        self._ended.set()
        if self._thread.is_alive():
            self._thread.join()

    @property
    def is_ending(self) -> bool:
        """Whether this is its last time."""
        return self._ended.is_set()

    def _run(self) -> None:
        while not self._ended.wait(self._seconds):
            try:
                self._work()
            except Exception as error:
                if repr(error) != self._told:
                    _LOGGER.exception("unexpected error in %s", self._thread.name)
                self._told = repr(error)


class Pace:
    """What is to be done each so many seconds."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._done = -seconds

    def is_due(self) -> bool:
        """Whether it is to be done now; then it counts as done."""
        now = time.monotonic()
        if now - self._done < self._seconds:
            return False
        self._done = now
        return True
