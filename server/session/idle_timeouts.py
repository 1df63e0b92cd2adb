"""How long a client may leave its session idle: idle_in_transaction_session_timeout and idle_session_timeout.

Owns: the clock that runs from ReadyForQuery to the client's next message. Knows nothing of what an end means.
https://www.postgresql.org/docs/15/runtime-config-client.html
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

from catalog.values.errors import SqlError

_IN_TRANSACTION: Final = ("25P03", "terminating connection due to idle-in-transaction timeout")
_OUTSIDE: Final = ("57P05", "terminating connection due to idle-session timeout")


class IdleClock:
    """One session's clock. ``expire`` ends the session. On the event loop's thread."""

    def __init__(self, loop: asyncio.AbstractEventLoop, expire: Callable[[SqlError], None]) -> None:
        self._loop = loop
        self._expire = expire
        self._timer: asyncio.TimerHandle | None = None
        #: Seconds in a transaction and outside of one.
        self.limits = (0.0, 0.0)

    @property
    def is_running(self) -> bool:
        """Whether the next message must stop it."""
        return self._timer is not None

    def limit(self, in_transaction: float, outside: float) -> None:
        """So many seconds from the next start on; 0 is without limit."""
        self.limits = (in_transaction, outside)

    def start(self, in_transaction: bool) -> None:
        """The session waits for its client."""
        self.stop()
        seconds = self.limits[0 if in_transaction else 1]
        if seconds:
            state, message = _IN_TRANSACTION if in_transaction else _OUTSIDE
            self._timer = self._loop.call_later(seconds, self._end, SqlError(state, message))

    def stop(self) -> None:
        """The client has said something, or is gone."""
        timer, self._timer = self._timer, None
        if timer is not None:
            timer.cancel()

    def _end(self, error: SqlError) -> None:
        self._timer = None
        self._expire(error)
