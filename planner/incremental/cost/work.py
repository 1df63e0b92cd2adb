"""What changes have taken at a part of a view, a state or a node of its dataflow, or are expected to take: EXPLAIN and
``millstream.paths`` show it."""

from __future__ import annotations

from typing import Final

from msgspec import Struct


class Step(Struct, frozen=True):
    """One change, or several together: the rows that the part has read of the changes of its inputs, the rows that it
    has inserted and deleted itself, and the milliseconds of processor time. Of what is measured, rows are whole."""

    read: float = 0
    inserted: float = 0
    deleted: float = 0
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
        read = f"{in_words(self.read)} row{'s' * (self.read != 1)} read, " if self.read else ""
        changed = f"{in_words(self.inserted)} inserted, {in_words(self.deleted)} deleted"
        return f"{read}{changed}, {self.milliseconds:.3f} ms"


def in_words(rows: float) -> str:
    """A number of rows, of few with two decimals where they are estimated."""
    return f"{rows:,.0f}" if rows >= 10 or rows == int(rows) else f"{rows:.2f}".rstrip("0").rstrip(".")


class Work(Struct, frozen=True):
    """The changes that have reached a part since they are counted: how many, the last one, and all together."""

    changes: int = 0
    last: Step = Step()
    total: Step = Step()

    def after(self, step: Step) -> Work:
        """With one more."""
        return Work(self.changes + 1, step, self.total.plus(step))


NONE: Final = Work()
