"""What changes have taken at a part of a view, a state or a node of its dataflow, or are expected to take: EXPLAIN and
``millstream.paths`` show it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from msgspec import Struct


class Step(Struct, frozen=True):
    """One change, or several together: the rows that the part has read of the changes of its inputs, the rows that it
    has inserted and deleted itself, and the milliseconds of processor time. Of what is measured, rows are whole."""

    read: float = 0
    inserted: float = 0
    deleted: float = 0
    milliseconds: float = 0.0

    @property
    def rows(self) -> float:
        """Those that are read, inserted and deleted."""
        return self.read + self.inserted + self.deleted

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


class Alike(Struct, frozen=True):
    """Changes with about as many rows: how many, and what all of them have taken."""

    changes: int = 0
    rows: float = 0.0
    milliseconds: float = 0.0

    def after(self, step: Step) -> Alike:
        """With one more."""
        return Alike(self.changes + 1, self.rows + step.rows, self.milliseconds + step.milliseconds)

    @property
    def mean(self) -> tuple[float, float]:
        """The rows and milliseconds of one."""
        return self.rows / self.changes, self.milliseconds / self.changes


class Work(Struct, frozen=True):
    """The changes that have reached a part since they are counted: how many, the last one, and all together; and, but
    for the first one, which makes plans and indexes, those of one, two or three rows, four to seven, and so on."""

    changes: int = 0
    last: Step = Step()
    total: Step = Step()
    by_rows: Mapping[int, Alike] = {}

    def after(self, step: Step) -> Work:
        """With one more."""
        if not self.changes:
            return Work(1, step, step)
        size = int(step.rows).bit_length()
        alike = self.by_rows.get(size, Alike()).after(step)
        return Work(self.changes + 1, step, self.total.plus(step), {**self.by_rows, size: alike})

    def around(self, rows: float) -> tuple[tuple[float, float] | None, tuple[float, float] | None]:
        """The mean rows and milliseconds of the changes with the next fewer and the next more rows; None where there
        are none."""
        means = sorted(item.mean for item in self.by_rows.values())
        fewer = [mean for mean in means if mean[0] <= rows]
        more = [mean for mean in means if mean[0] > rows]
        return fewer[-1] if fewer else None, more[0] if more else None


NONE: Final = Work()
