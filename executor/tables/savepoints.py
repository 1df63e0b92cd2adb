"""The savepoints of a transaction, and what a rollback to each of them restores.

Owns: which savepoint a name means, and that a rollback keeps its savepoint and removes the later ones.
https://www.postgresql.org/docs/15/sql-savepoint.html
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Generic, TypeVar

from msgspec import Struct, field

from catalog.values.errors import SqlError

State = TypeVar("State")


class Savepoints(Struct, Generic[State]):
    """The savepoints in the order of their creation; a name means the latest one of that name."""

    _made: list[tuple[str, State]] = field(default_factory=list)

    def __bool__(self) -> bool:
        return bool(self._made)

    def names(self) -> Iterator[str]:
        """The names of all savepoints."""
        return (name for name, _ in self._made)

    def add(self, name: str, state: State) -> None:
        """SAVEPOINT; hides an earlier savepoint of the same name."""
        self._made.append((name, state))

    def release(self, name: str) -> None:
        """RELEASE SAVEPOINT: removes it and the later ones. Raises 3B001."""
        del self._made[self._place(name) :]

    def return_to(self, name: str) -> State:
        """ROLLBACK TO SAVEPOINT: what the savepoint restores. It stays; the later ones are removed. Raises 3B001."""
        place = self._place(name)
        del self._made[place + 1 :]
        return self._made[place][1]

    def clear(self) -> None:
        """Removes all savepoints at the transaction's end."""
        self._made.clear()

    def _place(self, name: str) -> int:
        for place in range(len(self._made) - 1, -1, -1):
            if self._made[place][0] == name:
                return place
        raise SqlError("3B001", f'savepoint "{name}" does not exist')
