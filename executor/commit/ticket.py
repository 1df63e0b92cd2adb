"""What a submitter gets: a promise that a transaction becomes durable and visible, or the reason why not.

Owns waiting and callbacks. Tickets are resolved by the sequencer's writer thread, in LSN order.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from typing import Final

#: Called once, on the writer thread (or at once on the caller's, when the ticket is done already).
Callback = Callable[[Exception | None], None]

#: One lock for all tickets: it is held for a few instructions, and making one for each ticket would cost more.
_LOCK: Final = threading.Lock()

_LOGGER: Final = logging.getLogger(__name__)


class Ticket:
    """A submitted transaction. ``error`` says, once it is done, why it did not happen."""

    __slots__ = ("_callbacks", "done", "error", "lsn")

    def __init__(self, lsn: int) -> None:
        self.lsn = lsn
        self.done = False
        self.error: Exception | None = None
        self._callbacks: list[Callback] = []

    def on_done(self, callback: Callback) -> None:
        """Calls back with the error or None. The callback must not block: everyone waits behind it."""
        with _LOCK:
            if not self.done:
                self._callbacks.append(callback)
                return
        callback(self.error)

    def wait(self, timeout: float | None = None) -> bool:
        """True when the transaction is done, False at the timeout (seconds). Raises the transaction's error."""
        if not self.done:
            happened = threading.Event()
            self.on_done(lambda error: happened.set())
            if not happened.wait(timeout):
                return False
        if self.error is not None:
            raise self.error
        return True

    def resolve(self, error: Exception | None) -> None:
        """For the sequencer: the transaction happened, or failed."""
        with _LOCK:
            self.error = error
            self.done = True
            callbacks, self._callbacks = self._callbacks, []
        for callback in callbacks:
            try:
                callback(error)
            except Exception:  # an error of its owner alone
                _LOGGER.exception("a callback of LSN %d failed", self.lsn)
