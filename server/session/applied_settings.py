"""The settings of a session as its other parts have them: the executor, the idle clock, the log, the client's encoding.

Owns: what each of them is told, and which values these were: a SET takes effect with the next statement.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from executor.subscriptions.arrival_scan import Patience
from protocol.values.transcoding import transcoder

if TYPE_CHECKING:
    from executor.sql.session import DatabaseSession
    from server.net.connection import Connection
    from server.session.idle_timeouts import IdleClock
    from server.session.reports import Reports
    from server.settings.settings import Settings


class AppliedSettings:
    """The settings of one session that others were told."""

    def __init__(
        self, settings: Settings, db: DatabaseSession, connection: Connection, idle: IdleClock, reports: Reports
    ) -> None:
        self._settings = settings
        self._db = db
        self._connection = connection
        self._idle = idle
        self._reports = reports
        #: The key of the settings that were applied last; the settings' own where nothing has changed since.
        self.key: tuple[str, ...] = ()
        #: Which statements are logged.
        self.logs = "none"

    def apply(self) -> None:
        """Passes on the settings that others must know, if any setting has changed."""
        settings, db = self._settings, self._db
        key = settings.key  # the same object as long as nothing changed
        if key is self.key:
            return
        self.key = key
        self._connection.transcoder = transcoder(settings.encoding)
        self.logs = settings.value("log_statement")
        db.user = settings.role
        db.synchronous_commit = settings.value("synchronous_commit") != "off"
        db.read_only = settings.read_only
        db.serializable = settings.value("transaction_isolation") == "serializable"
        db.search_path = settings.search_path()
        db.time_zone = settings.value("TimeZone")
        db.lock_timeout = settings.seconds("lock_timeout")
        db.maintenance_engine = settings.value("maintenance_engine")
        db.query_engine = settings.value("query_engine")
        db.reader.separable = settings.value("separable")
        db.reader.checkpoint_interval = settings.seconds("checkpoint_interval")
        patience = Patience(settings.seconds("stream_timeout"), settings.seconds("stream_progress"))
        db.await_rows(patience, self._reports.report)
        self._idle.limit(
            settings.seconds("idle_in_transaction_session_timeout"), settings.seconds("idle_session_timeout")
        )
