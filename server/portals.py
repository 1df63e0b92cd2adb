"""Portals of the extended protocol: prepared statements with values, about to run or under way.

Owns: ``Portal``. Knows nothing of what answers the messages about them (``server.extended``).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from catalog.errors import SqlError, unsupported
from planner.expression import Value
from planner.statements import Output
from protocol.messages import Bind
from server.cursors import SqlCursor
from server.execution import Cursor, run
from server.planning import Plan

if TYPE_CHECKING:
    from server.session import Session


class Portal(Struct):
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

    def stepping(self, session: Session) -> SqlCursor:
        """Its rows for FETCH and MOVE; it runs now if it has not. Raises 0A000 where it returns none."""
        if self.plan is None or self.outputs is None:
            raise unsupported("FETCH from a portal of a statement without rows", "Execute it.")
        if self.cursor is None:
            result = run(session, self.plan, self.values, described=True)
            self.cursor = Cursor(result, self.formats, session.settings.style, session.names)
        return self.cursor.stepping(self.name, self.plan.raw.text, session.transaction_time)


def find_portal(session: Session, name: str) -> Portal:
    """A portal. Raises 34000."""
    portal = session.portals.get(name)
    if portal is None:
        raise SqlError("34000", f'portal "{name}" does not exist')
    return portal
