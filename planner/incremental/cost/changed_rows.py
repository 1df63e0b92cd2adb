"""A change as counts: how many rows it inserts, updates and deletes (InQP, section 3.1.2, the vector C)."""

from __future__ import annotations

from typing import Final

from msgspec import Struct


class ChangedRows(Struct, frozen=True):
    """An update is a row that is deleted and one that is inserted in its place. Counts are means, so they have
    decimals."""

    inserted: float = 0.0
    updated: float = 0.0
    deleted: float = 0.0

    @property
    def rows(self) -> float:
        """Rows that come and rows that go."""
        return self.inserted + 2 * self.updated + self.deleted

    @property
    def touched(self) -> float:
        """Rows that are changed, of which an updated one counts once."""
        return self.inserted + self.updated + self.deleted

    def plus(self, other: ChangedRows) -> ChangedRows:
        """Both together."""
        return ChangedRows(self.inserted + other.inserted, self.updated + other.updated, self.deleted + other.deleted)

    def times(self, factor: float) -> ChangedRows:
        """So many times as many, of each kind."""
        return ChangedRows(self.inserted * factor, self.updated * factor, self.deleted * factor)

    def reversed(self) -> ChangedRows:
        """Rows that go for those that come, and the other way round."""
        return ChangedRows(self.deleted, self.updated, self.inserted)


NO_CHANGES: Final = ChangedRows()
