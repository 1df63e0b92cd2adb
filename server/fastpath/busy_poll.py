"""The floor: whether one client has had the event loop to itself lately, so that the loop may wait for it.

Pools keep unused connections open, so their number says nothing. A client counts if it sends bytes, which ends the
other's time at once, or if its statement runs, which is checked now and then.

The loop also listens to the client that has the floor: the loop's thread looks for its next bytes for a moment instead
of going to sleep, which with being woken, and with caches that others have used meanwhile, costs a fifth of a durable
INSERT and more than half of a read. A client that takes longer than that moment more often than now and then is not
listened to again for a while. Owns these judgements only.
"""

from __future__ import annotations

import os
from collections.abc import Collection
from time import perf_counter
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from server.net.connection import Connection

#: Statements in a row, after which other busy clients are looked for.
LOOK: Final = 32
#: Seconds for which one is listened to: a client on this machine has seen its answer and sent the next request by then.
_MOMENT: Final = 150e-6
#: How often one is listened to in vain: a failure costs as much as so many successes bring, which count up to a bound.
_FAILURE: Final = 4
_CREDIT: Final = 8
#: Bytes that are taken at once.
_MOST: Final = 1 << 16


class Floor:
    """The floor of one event loop; on its thread."""

    def __init__(self, connections: Collection[Connection]) -> None:
        self._connections = connections
        #: The client that sent bytes last.
        self.speaker: Connection | None = None
        self._statements = 0
        self._alone = False
        self._credit = _FAILURE
        #: Whether the speaker's next bytes are worth listening for.
        self.listens = False

    def give(self, connection: Connection) -> None:
        """Gives the floor to another client, which has sent bytes."""
        self.speaker, self._statements, self._alone, self.listens = connection, 0, False, False

    def take(self) -> bool:
        """At each statement of the speaker that goes by express: whether it has the floor, since no other client has
        sent anything since so many of them, and no other statement ran at the last check. The loop listens to it
        then."""
        self._statements += 1
        if self._statements % LOOK == 0:
            self._alone = not any(each.is_busy for each in self._connections if each is not self.speaker)
            self._credit = max(self._credit, _FAILURE)
        self.listens = self._alone and self._credit > 0
        return self._alone

    def listen(self, descriptor: int) -> bytes | None:
        """The bytes that come within a moment; None where none do, or the client is gone, which the loop will see."""
        self.listens = False
        until = perf_counter() + _MOMENT
        while True:
            try:
                data = os.read(descriptor, _MOST)
            except BlockingIOError:
                if perf_counter() < until:
                    continue
                self._credit -= _FAILURE
                return None
            except OSError:
                return None
            self._credit = min(self._credit + 1, _CREDIT)
            return data or None
