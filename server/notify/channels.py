"""LISTEN, NOTIFY and UNLISTEN: channels, and what their transactions have to say.

Owns: which session listens to what, and the order: notifications are those of committed transactions, in the order of
their commits, each once for a transaction (async.c). A session is told between its transactions: at once when it rests,
else before its next ReadyForQuery. Knows nothing of messages.
https://www.postgresql.org/docs/15/sql-notify.html
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import partial
from itertools import islice
from typing import Final, Protocol, TypeVar

from msgspec import Struct

from catalog.values.errors import SqlError
from executor.tables.savepoints import Savepoints

#: Bytes that may wait for one session before it is ended: its client does not read, or its transaction never ends.
WAITING: Final = 64 << 20
_Result = TypeVar("_Result")
#: Told of a channel, and whether it is listened to now.
Watch = Callable[[str, bool], None]
_PAYLOAD: Final = 8000
_NAME: Final = 64


class Notification(Struct, frozen=True):
    """What a listening session is told; ``process`` is 0 where no session said it."""

    channel: str
    payload: str
    process: int = 0

    @property
    def size(self) -> int:
        """About how many bytes it takes."""
        return 64 + len(self.channel) + len(self.payload)


class Listener(Protocol):
    """A listening session."""

    @property
    def told_bytes(self) -> int:
        """Bytes of notifications that wait for it."""
        ...

    def notified(self, notifications: tuple[Notification, ...]) -> None:
        """Takes notifications of its channels."""
        ...

    def send(self) -> bool:
        """Passes on what waits for the session; whether there was anything."""
        ...


class Channels:
    """The channels of a whole server and their listeners. On the event loop's thread, but for ``order`` and
    ``call``."""

    def __init__(self, call: Callable[[Callable[[], None]], None]) -> None:
        """``call`` has a function called on the loop's thread soon, from any thread, in order."""
        #: Held while a transaction that notifies commits: so commits and notifications come in one order.
        self.order = threading.Lock()
        self.call = call
        self._listeners: dict[str, dict[Listener, None]] = {}

    def change(self, listener: Listener, before: frozenset[str], after: frozenset[str]) -> None:
        """A session listens to other channels than before."""
        for channel in before - after:
            self._listeners[channel].pop(listener)
            if not self._listeners[channel]:
                del self._listeners[channel]
        for channel in after - before:
            self._listeners.setdefault(channel, {})[listener] = None

    def deliver(self, notifications: tuple[Notification, ...]) -> None:
        """Hands the notifications of one transaction to their listeners."""
        found: dict[Listener, list[Notification]] = {}
        for item in notifications:
            for listener in self._listeners.get(item.channel, ()):
                found.setdefault(listener, []).append(item)
        for listener, own in found.items():
            listener.notified(tuple(own))

    def usage(self) -> float:
        """How full the fullest session's queue is: pg_notification_queue_usage()."""
        listeners = [listener for group in tuple(self._listeners.values()) for listener in tuple(group)]
        return min(1.0, max((listener.told_bytes for listener in listeners), default=0) / WAITING)


class Listening:
    """What one session listens to, and what its transaction will say and listen to; a member of its transactions.
    In a worker thread of its session, or on the loop's thread while none works for it."""

    def __init__(self, channels: Channels, listener: Listener, process: int, watch: Watch) -> None:
        """``watch`` is told of each channel that is listened to from now on (True), or no longer."""
        self._registry = channels
        self._watch = watch
        self.listener = listener
        self._process = process
        #: What is listened to, but for what the open transaction changes of it.
        self.channels: frozenset[str] = frozenset()
        self._actions: list[tuple[str | None, bool]] = []  # channel (None: all), whether to listen
        self._said: dict[tuple[str, str], None] = {}
        self._savepoints: Savepoints[tuple[int, int]] = Savepoints()  # how many actions and words there were

    def listen(self, channel: str) -> None:
        """LISTEN, from the transaction's end on."""
        self._actions.append((channel, True))

    def unlisten(self, channel: str | None) -> None:
        """UNLISTEN, from the transaction's end on; None is all."""
        self._actions.append((channel, False))

    def notify(self, channel: str, payload: str) -> None:
        """NOTIFY, at the transaction's end. Raises 22023."""
        if not channel:
            raise SqlError("22023", "channel name cannot be empty")
        if len(channel.encode()) >= _NAME:
            raise SqlError("22023", "channel name too long")
        if len(payload.encode()) >= _PAYLOAD:
            raise SqlError("22023", "payload string too long")
        self._said[channel, payload] = None

    @property
    def is_silent(self) -> bool:
        """Whether the transaction has nothing to say."""
        return not self._said

    def committing(self, commit: Callable[[], _Result]) -> _Result:
        """Calls what commits, in turn where the transaction has something to say."""
        if self.is_silent:
            return commit()
        with self._registry.order:
            return commit()

    def close(self) -> None:
        """The session has ended."""
        before, self.channels = self.channels, frozenset()
        self._changed(before)

    # -- as a member -------------------------------------------------------------------------------------------

    def begin(self) -> None:
        """Nothing is said yet."""

    def commit(self) -> None:
        """Listens, and says what there is to say."""
        if self._actions:
            self._listen()
        if self._said:
            said = tuple(Notification(*item, self._process) for item in self._said)
            self._registry.call(partial(self._registry.deliver, said))
        self._forget()

    def _listen(self) -> None:
        before, after = self.channels, set(self.channels)
        for channel, listens in self._actions:
            if channel is None:
                after.clear()
            elif listens:
                after.add(channel)
            else:
                after.discard(channel)
        self.channels = frozenset(after)
        self._changed(before)

    def _changed(self, before: frozenset[str]) -> None:
        if self.channels == before:
            return
        for channel in before - self.channels:
            self._watch(channel, False)
        for channel in self.channels - before:
            self._watch(channel, True)
        self._registry.call(partial(self._registry.change, self.listener, before, self.channels))

    def rollback(self) -> None:
        """Nothing was said."""
        self._forget()

    def _forget(self) -> None:
        if self._actions or self._said or self._savepoints:
            self._actions, self._said = [], {}
            self._savepoints.clear()

    def savepoint(self, name: str) -> None:
        """Up to here it counts, whatever becomes of the rest."""
        self._savepoints.add(name, (len(self._actions), len(self._said)))

    def release(self, name: str) -> None:
        """Forgets a savepoint and those after it."""
        self._savepoints.release(name)

    def rollback_to(self, name: str) -> None:
        """What came after it was not said."""
        actions, said = self._savepoints.return_to(name)
        del self._actions[actions:]
        self._said = dict.fromkeys(islice(self._said, said))
