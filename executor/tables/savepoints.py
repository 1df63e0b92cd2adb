"""The savepoints of a transaction: what a return to each of them restores.

Owns: which of them a name means, and that a return leaves the savepoint and ends those after it.
https://www.postgresql.org/docs/15/sql-savepoint.html
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Generic, TypeVar

from msgspec import Struct, field

from catalog.values.errors import SqlError

State = TypeVar("State")


class Savepoints(Struct, Generic[State]):
    """In the order in which they were made; a name means the latest of its name."""

    _made: list[tuple[str, State]] = field(default_factory=list)

    def __bool__(self) -> bool:
        return bool(self._made)

    def names(self) -> Iterator[str]:
        """Those of all."""
        return (name for name, _ in self._made)

    def add(self, name: str, state: State) -> None:
        """SAVEPOINT; one of the same name hides the earlier one."""
        self._made.append((name, state))

    def release(self, name: str) -> None:
        """RELEASE SAVEPOINT: forgets it and those after it. Raises 3B001."""
        del self._made[self._place(name) :]

    def return_to(self, name: str) -> State:
        """ROLLBACK TO SAVEPOINT: what there was at it, which stays; those after it are gone. Raises 3B001."""
        place = self._place(name)
        del self._made[place + 1 :]
        return self._made[place][1]

    def clear(self) -> None:
        """The transaction has ended."""
        self._made.clear()

    def _place(self, name: str) -> int:
        for place in range(len(self._made) - 1, -1, -1):
            if self._made[place][0] == name:
                return place
        raise SqlError("3B001", f'savepoint "{name}" does not exist')
