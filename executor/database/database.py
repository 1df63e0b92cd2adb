"""The database of one server: what exists (``executor/core/core``), and the services that work on it.

Owns: which services there are, what each is given, and the order in which they start and end. Knows nothing of clients;
sessions are in ``executor/sql/session``.
"""

from __future__ import annotations

import logging
import time
from functools import partial

from executor.core.core import Core
from executor.core.spark_queries import Analytics
from executor.database.committer import Committer
from executor.database.relation_recovery import recover_relations
from executor.database.runtimes import Runtimes
from executor.database.system_relations import Shown, rows_of_system, server_catalog
from executor.key_access.row_changes import RowChanges
from executor.key_access.table_keys import TableKeys
from executor.key_access.view_indexes import ViewIndexes
from executor.maintained.maintained_views import MaintainedViews
from executor.moving.services import MovingServices
from executor.moving.view_migration import ViewMigration
from executor.options import Options
from executor.queries.reader import OwnReader, Reader, ReadServices
from executor.remote_reads.home_tables import Borrowing
from executor.remote_reads.remote_views import Elsewhere
from executor.replicas.replica import Replicas
from executor.separation.service import Separation
from executor.streams.appender import Appender
from executor.subscriptions.change_watch import ChangeWatch
from executor.subscriptions.feeds import ChangeFeeds
from executor.tables.statements.effect_calls import drawings
from executor.upkeep.admission import Admission
from executor.upkeep.folder_watcher import SourceWatcher
from executor.upkeep.frontiers import Frontiers
from executor.upkeep.maintenance import Maintenance

_LOGGER = logging.getLogger(__name__)


class Database:
    """One open database: ``core`` and its services. Methods may be called from any thread."""

    def __init__(self, options: Options) -> None:
        """Opens and recovers all files. Raises what ``Core`` and its ``join`` raise."""
        started = time.monotonic()
        self.core = core = Core(options, server_catalog)
        self._is_closed = False
        self.drawings = drawings()
        self.replicas = Replicas(core)
        self.indexes = ViewIndexes(core, self.replicas)
        self.table_keys = TableKeys(core)
        self.frontiers = Frontiers(core, self.replicas)
        self.changes = ChangeFeeds(core, self.indexes)
        self._runtimes = Runtimes(core, self.replicas, self.indexes, self.changes)
        try:
            recover_relations(core, self._runtimes, self.frontiers, self.replicas)
        except BaseException:
            core.abandon()
            raise
        if core.log.last_lsn:
            _LOGGER.info("recovered to LSN %d in %.2f s", core.log.last_lsn, time.monotonic() - started)
        core.tables.register_keys(self.table_keys)
        self.committer = Committer(core, self.replicas, self.table_keys, self._runtimes)
        try:
            core.join()
        except BaseException:
            core.close()
            raise
        self.admission = Admission(options.backlog_bytes, self.frontiers.backlog)
        self.appender = Appender(core.sequencer)
        self.row_changes = RowChanges(core, self.committer.commit_rows)
        self.maintenance = Maintenance(core, self.frontiers, self.admission)
        self.analytics = Analytics(self.maintenance.spark, core.storage)
        self.watcher = SourceWatcher(core, self.frontiers, self.maintenance.retry)
        moving = MovingServices(core, self.replicas, self.indexes, self.committer.commit)
        self.view_migration = ViewMigration(moving, self.frontiers, self.admission, self.maintenance.retry)
        self.elsewhere = Elsewhere(core, self.view_migration.refresh_entry)
        self.borrowing = Borrowing(core, self.replicas, self.elsewhere)
        self.separation = Separation(core, self.analytics, self.own_reader, self.view_migration)
        self.maintained = MaintainedViews(core, self.analytics)
        self.shown = Shown(core, self.separation, self.maintenance, self.admission, self.maintained)
        self.read_services = ReadServices(
            core,
            self.replicas,
            self.borrowing,
            self.elsewhere,
            self.changes,
            self.maintained,
            self.analytics,
            self.separation,
            partial(rows_of_system, self.shown),
        )
        self.change_watch = ChangeWatch(core, self.changes, lambda over: Reader(self.read_services, over).present)
        self._runtimes.on_defined(self.change_watch.redefined)
        self._runtimes.on_defined(self.maintained.redefined)

    @classmethod
    def open(cls, options: Options) -> Database:
        """Opens, or creates, the database of a data directory, recovers what the log holds, and starts the work in the
        background."""
        database = cls(options)
        database.maintenance.start()
        database.watcher.start()
        database.separation.moving.start()
        database.view_migration.start()
        return database

    def close(self) -> None:
        """Ends background work and closes all files, once: they may be another server's then. What was acknowledged is
        durable."""
        if self._is_closed:
            return
        self._is_closed = True
        self.view_migration.close()
        self.separation.moving.close()
        self.admission.close()
        self.change_watch.close()
        self.maintained.close()
        self.watcher.close()
        self.maintenance.close()
        self.appender.close()
        self.row_changes.close()
        self.core.close()

    def own_reader(self) -> OwnReader:
        """A reader of the server's own."""
        return OwnReader(self.read_services)
