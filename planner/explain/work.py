"""What changes have taken at a node of a dataflow, as EXPLAIN and ``millstream.paths`` show it."""

from __future__ import annotations

from msgspec import Struct


class Step(Struct, frozen=True):
    """One change, or several together: the rows that the node has read of the changes of its inputs, the rows that it
    has inserted and deleted itself, and the milliseconds of processor time."""

    read: int = 0
    inserted: int = 0
    deleted: int = 0
    milliseconds: float = 0.0

    def plus(self, other: Step) -> Step:
        """Both together."""
        return Step(
            self.read + other.read,
            self.inserted + other.inserted,
            self.deleted + other.deleted,
            self.milliseconds + other.milliseconds,
        )

    def __str__(self) -> str:
        read = f"{self.read:,} row{'s' * (self.read != 1)} read, " if self.read else ""
        return f"{read}{self.inserted:,} inserted, {self.deleted:,} deleted, {self.milliseconds:.3f} ms"


class NodeWork(Struct, frozen=True):
    """The changes that have reached a node since its rows are kept: how many, the last one, and all together."""

    changes: int
    last: Step
    total: Step
