"""The server that continues a view whose server is lost.

Owns: when a server counts as gone (its lease ran out; or it was stopped, and is not back for as long as its lease is),
and who is next: of a view that it had, the view's home, and where that is gone as well, any server; of one that it was
to take, the server that gave it, or none where that was suspended. A view that is at its home waits for it, unless the
home has kept a copy on the storage: then any server; of a home that was adopted it is the heir's matter. That one of
several is first decides the entry (``ownership``), and that the server that is gone does nothing more, its epoch
(``registry``): it is refused, should it only have stood still.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from msgspec.structs import replace

from catalog.values.errors import SqlError
from executor.cluster.registry import Registry
from executor.cluster.view_ownership import NOBODY, Owned


class Heirs:
    """What a server inherits. For one thread at a time."""

    def __init__(self, registry: Registry, clock: Callable[[], float] = time.monotonic) -> None:
        self._registry = registry
        self._clock = clock
        #: Servers that were stopped, with the epoch in which, and since when that is known here.
        self._stopped: dict[str, tuple[int, float]] = {}

    def entry(self, owned: Owned) -> Owned | None:
        """An entry as this server makes it, which is to go on with the view; None where it is not."""
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
