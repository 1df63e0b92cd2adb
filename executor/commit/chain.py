"""Transactions that stand on each other before the disk has them.

Owns: that none of them is written where one before it was refused. What they have seen of each other is their owner's
matter.
"""

from __future__ import annotations

from catalog.values.errors import SqlError


class Chain:
    """Transactions each of which may have seen what those before it did. Changed only with the sequencer's turn."""

    __slots__ = ("error",)

    def __init__(self) -> None:
        #: Why one of them was refused, and with it all that come behind it.
        self.error: SqlError | None = None

    def fail(self, error: SqlError) -> None:
        """One of them was refused."""
        self.error = self.error or error
