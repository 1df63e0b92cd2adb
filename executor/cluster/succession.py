"""The server that continues a view whose server is lost.

Owns: when a server counts as gone, and which server is next. A server is gone when its lease has run out, or when it
was stopped and has not come back for the length of its lease. Next is, for a view that the server had, the view's home,
and if the home is gone as well any server; for a view that the server was to take, the server that gave it, or none
where the view was suspended. A view at its home waits for the home, unless a copy of it is on the storage: then
any server continues it, or the heir if the home was adopted. Of several servers the first to change the entry continues
the view (``view_ownership``). A lost server that only stood still is refused by its epoch (``registry``).
"""

from __future__ import annotations

import time
from collections.abc import Callable

from msgspec.structs import replace

from catalog.values.errors import SqlError
from executor.cluster.registry import Registry
from executor.cluster.view_ownership import NOBODY, Owned


class Heirs:
    """Tells which views a server inherits. For one thread at a time."""

    def __init__(self, registry: Registry, clock: Callable[[], float] = time.monotonic) -> None:
        self._registry = registry
        self._clock = clock
        #: Stopped servers: the epoch of the stop, and the time at which this server noticed it.
        self._stopped: dict[str, tuple[int, float]] = {}

    def entry(self, owned: Owned) -> Owned | None:
        """The entry with which this server continues a view; None where it is not the next server."""
        own = self._registry.name
        if owned.is_at_home or owned.owner == own or not self._is_gone(owned.owner):
            return None
        if self._registry.heir(owned.home) not in ("", own):
            return None
        lost = ("55000", f'server "{owned.owner}" is lost')
        if not owned.taken and owned.giver == NOBODY:
            return replace(owned, owner=NOBODY, taken=True, error=lost)
        if not owned.taken and not self._is_gone(owned.giver):
            return replace(owned, owner=own, taken=True, error=lost) if owned.giver == own else None
        if owned.home != own and (owned.failure is not None or not self._is_gone(owned.home) or not self._takes()):
            return None
        return replace(owned, owner=own, giver=owned.owner, taken=False, error=None)

    def _takes(self) -> bool:
        own = self._registry.get(self._registry.name)
        return own is not None and own.state == "up"

    def _is_gone(self, name: str) -> bool:
        try:
            member = self._registry.get(name)
        except SqlError as error:
            if error.sqlstate != "XX001":
                raise
            member = None  # unknown: the server writes its entry anew when it finds that out
        if member is None or member.state != "stopped":
            self._stopped.pop(name, None)
            return member is not None and not member.is_living
        now = self._clock()
        epoch, since = self._stopped.get(name, (-1, now))
        if epoch != member.epoch:
            self._stopped[name] = member.epoch, now
            return False
        return now - since > member.lease
