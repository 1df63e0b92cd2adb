"""ErrorResponses and NoticeResponses to one client: what they say and which of them the client wants.

Owns: whether a notice is one or a warning, what client_min_messages keeps back, and where in the client's own text an
error is: a text in which '...' has backslash escapes is read as another one.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from catalog.values.errors import SqlError
from planner.parse.string_escapes import Conforming, conforming
from protocol import encoder
from protocol import messages as m

if TYPE_CHECKING:
    from server.net.connection import Connection
    from server.services import Services
    from server.session.activity import Activity
    from server.settings.settings import Settings

#: States of notices; others are warnings.
_NOTICES: Final = ("00000", "42P06", "42P07")
_LEVELS: Final = {"debug": 0, "log": 1, "info": 2, "notice": 2, "warning": 3, "error": 4}


class Reports:
    """The errors and notices of one session. On the event loop's thread, but for ``report``."""

    def __init__(self, connection: Connection, server: Services, settings: Settings, activity: Activity) -> None:
        self._connection = connection
        self._server = server
        self._settings = settings
        self._activity = activity
        #: The text of the message that is worked on, where it is read as another one than the client's.
        self.conforming: Conforming | None = None

    def read(self, message: m.FrontendMessage) -> m.FrontendMessage:
        """A message as it is to be read: '...' in SQL text has no escapes. Raises 0A000."""
        self.conforming = None
        if not self._settings.escapes or not isinstance(message, m.Query | m.Parse):
            return message
        self.conforming = found = conforming(message.text)
        if self._settings.is_on("escape_string_warning"):
            self.send_notices(found.warnings)
        return replace(message, text=found.text)

    def send_error(self, error: SqlError) -> None:
        """Queues the error of the message that is worked on."""
        if self.conforming is not None and error.position is not None:
            error.position = self.conforming.position(error.position)
        self._connection.send(encoder.error_response(self._shown(error)))

    def send_notices(self, notices: tuple[SqlError, ...]) -> None:
        """Queues those that the client wants."""
        least = _LEVELS.get(self._settings.value("client_min_messages"), 0)
        for notice in notices:
            severity = notice.severity or ("NOTICE" if notice.sqlstate in _NOTICES else "WARNING")
            if severity == "INFO" or _LEVELS[severity.lower()] >= least:
                self._connection.send(encoder.notice_response(self._shown(notice), severity))

    def _shown(self, error: SqlError) -> SqlError:
        return self._server.own_paths.hidden(error, self._activity.query)

    def report(self, notice: SqlError) -> None:
        """A notice of what still runs. In its worker thread."""
        self._server.completions.add(partial(self._send_report, notice))

    def _send_report(self, notice: SqlError) -> None:
        if not self._connection.is_lost:
            self.send_notices((notice,))
            self._connection.flush()
