"""Portals of the extended protocol: prepared statements with values, about to run or under way.

Owns: ``Portal``, and which of them there are. Knows nothing of what answers the messages about them
(``server.messages.extended``).
"""

from __future__ import annotations

from msgspec import Struct

from catalog.values.errors import SqlError
from executor.tables.savepoints import Savepoints
from planner.algebra.nodes import Value
from planner.statements.statement import Output
from protocol.messages import Bind
from server.plans.planning import Plan
from server.session.result_rows import Cursor


class Portal(Struct, eq=False):
    """A statement with its parameters' values, and the rest of its rows once it runs. ``plan`` None: empty."""

    bind: Bind
    plan: Plan | None
    values: tuple[Value, ...]
    outputs: tuple[Output, ...] | None
    cursor: Cursor | None = None

    @property
    def name(self) -> str:
        """What messages call it."""
        return self.bind.portal

    @property
    def formats(self) -> tuple[int, ...]:
        """Those of its columns, as Bind gave them."""
        return self.bind.result_formats


class Portals(dict[str, Portal]):
    """The portals of one session by name; a member of its transactions: those made after a savepoint go with a return
    to it (AtSubCleanup_Portals).
    """

    def __init__(self) -> None:
        super().__init__()
        self._savepoints: Savepoints[tuple[Portal, ...]] = Savepoints()

    def find(self, name: str) -> Portal:
        """A portal. Raises 34000."""
        portal = self.get(name)
        if portal is None:
            raise SqlError("34000", f'portal "{name}" does not exist')
        return portal

    # -- as a member -------------------------------------------------------------------------------------------

    def begin(self) -> None:
        """There is no savepoint yet."""

    def commit(self) -> None:
        """The session forgets its portals by itself."""
        self._savepoints.clear()

    def rollback(self) -> None:
        """The session forgets its portals by itself."""
        self._savepoints.clear()

    def savepoint(self, name: str) -> None:
        """What there is survives a return to it."""
        self._savepoints.add(name, tuple(self.values()))

    def release(self, name: str) -> None:
        """Forgets a savepoint and those after it."""
        self._savepoints.release(name)

    def rollback_to(self, name: str) -> None:
        """What was made after it is gone; what was closed stays closed."""
        before = self._savepoints.return_to(name)
        for key in [key for key, portal in self.items() if portal not in before]:
            del self[key]
