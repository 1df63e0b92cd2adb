"""What changes have taken at a part of a view, a state or a node of its dataflow: EXPLAIN and ``millstream.paths`` show
it."""

from __future__ import annotations

from typing import Final

from msgspec import Struct


class Step(Struct, frozen=True):
    """One change, or several together: the rows that the part has read of the changes of its inputs, the rows that it
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


class Work(Struct, frozen=True):
    """The changes that have reached a part since they are counted: how many, the last one, and all together."""

    changes: int = 0
    last: Step = Step()
    total: Step = Step()

    def after(self, step: Step) -> Work:
        """With one more."""
        return Work(self.changes + 1, step, self.total.plus(step))


NONE: Final = Work()
