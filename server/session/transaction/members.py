"""What belongs to a session's transaction besides data: its settings, cursors and notifications.

Owns: what each of them is told when a transaction or a savepoint begins and ends.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol


class Member(Protocol):
    """Follows a session's transaction. A single statement outside of any is only told its end."""

    def begin(self) -> None:
        """A transaction begins, or has begun."""
        ...

    def commit(self) -> None:
        """It has been committed."""
        ...

    def rollback(self) -> None:
        """It has been rolled back, or the statement that was all of it has failed."""
        ...

    def savepoint(self, name: str) -> None:
        """SAVEPOINT."""
        ...

    def release(self, name: str) -> None:
        """RELEASE SAVEPOINT, of one that exists."""
        ...

    def rollback_to(self, name: str) -> None:
        """ROLLBACK TO SAVEPOINT, of one that exists."""
        ...


class Members:
    """All of a session."""

    def __init__(self, members: Iterable[Member]) -> None:
        self._members = tuple(members)

    def begin(self) -> None:
        """A transaction begins, or has begun."""
        for member in self._members:
            member.begin()

    def commit(self) -> None:
        """It has been committed."""
        for member in self._members:
            member.commit()

    def rollback(self) -> None:
        """It has been rolled back."""
        for member in self._members:
            member.rollback()

    def at_savepoint(self, action: str, name: str) -> None:
        """What savepoint, release or rollback_to has done."""
        for member in self._members:
            getattr(member, action)(name)
