"""The Millstream that runs cases: a server in this process, and another one of its storage once a view goes there.

Both are reused by many cases, each in a schema of its own. With Spark, the home's views are maintained by it, and a
step of maintenance waits for it.
"""

from __future__ import annotations

import logging
import sys
import traceback
from functools import partial
from pathlib import Path
from random import Random
from typing import Any, Final

from catalog.objects import View
from catalog.values.errors import SqlError
from executor.database.database import Database
from executor.maintained import maintained_views
from executor.spark.engine import SparkEngine
from tests.executor.moving import Servers, wait_longer
from tests.executor.random_paces import go_on
from tests.law.changing.answers import Answer
from tests.law.changing.sessions import PATIENCE, SCHEMA, Session
from tests.law.changing.steps import SESSIONS
from tests.rig.process import wait_until

#: The home of all streams, and the other server.
HOME: Final = "a"
#: More than one thread of the engine, as users have it: some of its faults are races of its threads.
_SETTINGS: Final[dict[str, Any]] = {
    "maintenance_engine": "embedded", "maintenance_rows": 7, "maintenance_idle": 0.05, "lock_timeout": PATIENCE,
    "embedded_threads": 3, "view_sharing": "on",
}  # fmt: skip
_BEHIND: Final = "SELECT coalesce(max(rows_behind), 0) FROM millstream.views WHERE error IS NULL"
_JOBS: Final = "SELECT id FROM millstream.jobs WHERE engine = 'spark' AND status = 'done'"


class Complaints(logging.Handler):
    """What Millstream's threads log as errors."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self._texts: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        """Keeps a message, with the traceback if there is one."""
        trace = "".join(traceback.format_exception(*record.exc_info)) if record.exc_info else ""
        self._texts.append(f"{record.getMessage()}\n{trace}")

    def take(self) -> str:
        """What has been logged since the last call."""
        found, self._texts = self._texts, []
        return "\n".join(found)


class Ours:
    """The servers."""

    def __init__(self, folder: Path, spark: SparkEngine | None = None) -> None:
        self.complaints = Complaints()
        logging.getLogger("executor").addHandler(self.complaints)
        self._spark = spark
        self._patience = wait_longer()
        self._servers = Servers(folder)
        self._servers.options |= _SETTINGS | ({"maintenance_engine": "auto"} if spark is not None else {})
        #: The servers of views that have left their home.
        self._away: dict[str, str] = {}
        self._there: Session | None = None
        #: Whether the case has used the other server.
        self._was_there = False
        self._jobs: set[object] = set()
        self._open()

    @property
    def database(self) -> Database:
        """The home."""
        return self._servers[HOME]

    def _open(self) -> None:
        if self._spark is not None:
            self.database.maintenance.use(self._spark)
            self.database.analytics.spark = self._spark
            maintained_views.AT_ONCE = -1  # so that Spark makes the rows of views that ask for it
        self.sessions = [Session(self.database, SCHEMA) for _ in range(SESSIONS)]

    def begin(self) -> None:
        """An empty schema."""
        for session in self.sessions:
            if session.is_in_block:
                session.answer("ROLLBACK")
            session.cursors.close(None)
            session.notices.clear()
        for name in self._away:
            wait_until(partial(self._is_dropped, name), 60, f"end of view {name}")
        self._away.clear()
        _empty(self.sessions[0])
        if self._there is not None and self._was_there:
            _empty(self._there)
            self._was_there = False

    def _is_dropped(self, view: str) -> bool:
        """Drops a view; False while a job holds its lock."""
        return self.sessions[0].answer(f"DROP VIEW {view} CASCADE").state in ("", "42P01")

    def session(self, number: int, server: str) -> Session:
        """A session of the home, or the one of the other server."""
        if not server:
            return self.sessions[number]
        self._was_there = True
        if self._there is None:
            self._there = Session(self._servers[server], SCHEMA)
            self._there.answer(f"CREATE SCHEMA IF NOT EXISTS {SCHEMA}")
        return self._there

    def server_of(self, view: str) -> str:
        """The server that has a view: "" for its home."""
        return self._away.get(view, "")

    def migrate(self, view: str, server: str) -> Answer | None:
        """Lets a view go to a server; None if it is there."""
        if self.server_of(view) == server:
            return None
        _ = self.session(0, server or "b")
        source = self._servers[self.server_of(view) or HOME]
        known = source.core.catalog.find(view, (SCHEMA,))
        if not isinstance(known, View) or not known.continuous:
            return None
        try:
            source.view_migration.migrate(known, server or HOME, lambda: False)
        except SqlError as error:
            return Answer(error.sqlstate, message=error.message)
        except Exception:
            return Answer("XX000", message=traceback.format_exc())
        self._away.pop(view, None)
        if server:
            self._away[view] = server
        return Answer("")

    def restart(self, server: str = "") -> bool:
        """Ends a server and begins it again; False if there is none."""
        if server:
            if self._there is None:
                return False
            self._there.session.close()
            self._there = None
            self._servers.stop(server)
            _ = self.session(0, server)
            return True
        self._end()
        self._open()
        return True

    def maintain(self) -> int:
        """Lets the views of streams be maintained until nothing is due; errors are logged. The new jobs of Spark."""
        try:
            while self.database.maintenance.round("embedded"):
                pass
            if self._spark is not None:
                wait_until(lambda: self.sessions[0].run(_BEHIND) == [(0,)], 120, "maintenance that has caught up")
                known, found = len(self._jobs), self.sessions[0].run(_JOBS)
                self._jobs.update(found)
                return len(self._jobs) - known
        except Exception:
            self.complaints.handle(logging.LogRecord("", logging.ERROR, "", 0, "maintenance", None, sys.exc_info()))
        return 0

    def go_on(self, seed: str) -> int:
        """Brings some nodes of some views forward, where no session is at work with them; how many views have nodes
        that wait."""
        return go_on(self.database.maintained, Random(seed))

    def close(self) -> None:
        """Ends the servers."""
        if self._there is not None:
            self._there.session.close()
        self._end()
        self._servers.close()
        self._patience()
        logging.getLogger("executor").removeHandler(self.complaints)

    def _end(self) -> None:
        for session in self.sessions:
            session.session.close()
        if self._spark is not None:
            self.database.maintenance.use(None)  # the engine goes on
            self.database.analytics.spark = None
        self._servers.stop(HOME)


def _empty(session: Session) -> None:
    """An empty schema. What has come from another server leaves by itself once it is dropped there."""
    found = [Answer("55000")]

    def is_dropped() -> bool:
        session.answer("BEGIN")
        found[0] = session.answer(f"DROP SCHEMA IF EXISTS {SCHEMA} CASCADE")
        session.answer(f"CREATE SCHEMA {SCHEMA}")
        return session.answer("COMMIT").tag == "COMMIT"  # else it was rolled back

    wait_until(is_dropped, 60, f"guests that leave: {found[0]}")
