"""LISTEN with the name of a continuous view or a table: its sessions are told when the relation's rows change.

Owns: which session watches which relations, and the payload. A channel is watched as a relation under the search path
that its session had at LISTEN; whether there is such a relation now, the executor knows
(``executor.subscriptions.change_watch``).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from executor.subscriptions.change_watch import ChangeWatch, Name
from server.notify.channels import Listener, Notification


class ChangeChannels:
    """The watched relations of a whole server and their listeners. On the event loop's thread, but for ``watch`` and
    ``unwatch``."""

    def __init__(self, watch: ChangeWatch, call: Callable[[Callable[[], None]], None]) -> None:
        """``call`` has a function called on the loop's thread soon, from any thread, in order."""
        self._watch = watch
        self._call = call
        self._listeners: dict[Name, dict[Listener, None]] = {}
        watch.tell = self._tell

    def watch(self, listener: Listener, name: Name) -> None:
        """A session wants to be told; in a worker thread, for this may look at the relation."""
        self._watch.watch(name)
        self._call(partial(self._add, listener, name))

    def unwatch(self, listener: Listener, name: Name) -> None:
        """It does not any more; in a worker thread."""
        self._call(partial(self._remove, listener, name))
        self._watch.unwatch(name)

    def _add(self, listener: Listener, name: Name) -> None:
        self._listeners.setdefault(name, {})[listener] = None

    def _remove(self, listener: Listener, name: Name) -> None:
        self._listeners[name].pop(listener)
        if not self._listeners[name]:
            del self._listeners[name]

    def _tell(self, name: Name, lsn: int, rows: int) -> None:
        self._call(partial(self._deliver, name, f'{{"lsn": {lsn}, "rows": {rows}}}'))

    def _deliver(self, name: Name, payload: str) -> None:
        for listener in tuple(self._listeners.get(name, ())):
            listener.notified((Notification(name.name, payload),))
