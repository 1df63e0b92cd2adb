"""Who has the floor: whether one client has had the event loop to itself lately, so that it may wait in its place.

A pool keeps connections open that nobody uses, so their number says nothing. Who counts is who sends bytes, which ends
the other's time at once, and whose statement runs, which is looked for now and then. Owns that judgement only.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from server.connection import Connection

#: Statements in a row, after which it is looked who else is busy.
LOOK: Final = 32


class Floor:
    """The floor of one event loop; on its thread."""

    def __init__(self, connections: Collection[Connection]) -> None:
        self._connections = connections
        #: Who sent bytes last.
        self.speaker: Connection | None = None
        self._statements = 0
        self._alone = False

    def give(self, connection: Connection) -> None:
        """Somebody else has sent bytes."""
        self.speaker, self._statements, self._alone = connection, 0, False

    def is_held(self) -> bool:
        """Asked at each statement of the speaker: whether nobody else has sent anything since so many of them, and
        nothing ran for anybody else at the last look."""
        self._statements += 1
        if self._statements % LOOK == 0:
            self._alone = not any(each.is_busy for each in self._connections if each is not self.speaker)
        return self._alone
