"""NoticeResponses to one client: which it wants, and those of what still runs.

Owns: whether a notice is one or a warning, and what client_min_messages keeps back.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final, Protocol

from catalog.values.errors import SqlError
from protocol import encoder

if TYPE_CHECKING:
    from server.net.connection import Connection
    from server.services import Services
    from server.settings.settings import Settings

#: States of notices; others are warnings.
_NOTICES: Final = ("00000", "42P06", "42P07")
_LEVELS: Final = {"debug": 0, "log": 1, "info": 2, "notice": 2, "warning": 3, "error": 4}


class Noticed(Protocol):
    """The part of a session that notices need; ``query`` is its running statement."""

    connection: Connection
    settings: Settings
    query: str


class Notices:
    """A session's. On the event loop's thread, but for ``report``."""

    def __init__(self, session: Noticed, server: Services) -> None:
        self._session = session
        self._server = server

    def send(self, notices: tuple[SqlError, ...]) -> None:
        """Queues those that the client wants."""
        least = _LEVELS.get(self._session.settings.value("client_min_messages"), 0)
        for notice in notices:
            severity = notice.severity or ("NOTICE" if notice.sqlstate in _NOTICES else "WARNING")
            if severity == "INFO" or _LEVELS[severity.lower()] >= least:
                self._session.connection.send(encoder.notice_response(self._shown(notice), severity))

    def _shown(self, notice: SqlError) -> SqlError:
        return self._server.own_paths.hidden(notice, self._session.query)

    def report(self, notice: SqlError) -> None:
        """A notice of what still runs. In its worker thread."""
        self._server.completions.add(partial(self._send_report, notice))

    def _send_report(self, notice: SqlError) -> None:
        if not self._session.connection.is_lost:
            self.send((notice,))
            self._session.connection.flush()
