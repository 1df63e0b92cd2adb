"""Notifications on their way to one client: sent between its transactions, and bounded while it does not read.

Owns: what waits, and when it goes. Where it comes from is known to ``notifying`` and ``change_channels``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from catalog.values.errors import SqlError
from executor.subscriptions.change_watch import Name
from protocol import encoder
from server.notify.channels import WAITING, Notification

if TYPE_CHECKING:
    from server.net.connection import Connection
    from server.notify.change_channels import ChangeChannels
    from server.settings.settings import Settings


class Notified(Protocol):
    """The part of a session that its mailbox needs."""

    connection: Connection
    settings: Settings

    @property
    def is_under_way(self) -> bool:
        """Whether a transaction or a COPY is begun."""
        ...


class Mailbox:
    """A session's. On the event loop's thread, but for ``follow``."""

    def __init__(self, session: Notified, views: ChangeChannels) -> None:
        self._session = session
        self._channels = views
        self._waiting: list[bytes] = []
        self._views: dict[str, Name] = {}  # by channel
        self.told_bytes = 0

    def notified(self, notifications: tuple[Notification, ...]) -> None:
        """Passes notifications on, at once where the session rests and its client reads."""
        session, connection = self._session, self._session.connection
        if connection.is_lost:
            return
        for item in notifications:
            self._waiting.append(encoder.notification_response(item.process, item.channel, item.payload))
            self.told_bytes += item.size
        if self.told_bytes > WAITING:
            self._waiting.clear()
            connection.end(SqlError("53400", "too many notifications are waiting for this session"))
        elif not connection.is_busy and not connection.is_slow and not session.is_under_way:
            self.send()
            connection.flush()

    def send(self) -> bool:
        """Queues what waits; whether there was anything."""
        if not self._waiting:
            return False
        self._session.connection.send(b"".join(self._waiting))
        self._waiting.clear()
        self.told_bytes = 0
        return True

    def follow(self, channel: str, listens: bool) -> None:
        """A channel that may be a view's name is listened to from now on, or no longer; in a worker thread."""
        views = self._channels
        if listens:
            settings = self._session.settings
            self._views[channel] = Name(channel, settings.search_path(), settings.role)
            views.watch(self, self._views[channel])
        else:
            views.unwatch(self, self._views.pop(channel))
