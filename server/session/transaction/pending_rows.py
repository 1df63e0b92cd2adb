"""Rows that a batch of the extended protocol inserts into streams, until its Sync appends them.

Owns: the rows, by statement and in order. What becomes of them is ``server.fastpath.row_inserts``'s.
"""

from __future__ import annotations

from planner.algebra.nodes import Value
from planner.statements.statement import Insert

#: A statement, and the parameters of each of its executions.
Executions = tuple[Insert, list[tuple[Value, ...]]]


class PendingRows:
    """The rows of one session's batch."""

    __slots__ = ("inserts",)

    def __init__(self) -> None:
        self.inserts: list[Executions] = []

    def add(self, insert: Insert, values: tuple[Value, ...]) -> None:
        """A statement was executed with these parameters."""
        if self.inserts and self.inserts[-1][0] is insert:
            self.inserts[-1][1].append(values)
        else:
            self.inserts.append((insert, [values]))

    def take(self) -> list[Executions]:
        """All of them, which no longer wait."""
        taken, self.inserts = self.inserts, []
        return taken

    def clear(self) -> None:
        """They are appended, or dropped."""
        self.inserts.clear()
