"""The rows that views and tables have now, for feeds of changes (``executor.subscriptions``) and for other servers.

Owns: a moment for one view outside any transaction, with the locks that hold it still, and the two LSNs that a feed
needs beside the rows: that of the moment, and that of the last change of what the view is made of. What a view's rows
are at a moment is ``executor/queries/view_reader``'s.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Final, Protocol

import pyarrow as pa
from msgspec.structs import replace

from catalog.objects import Table
from catalog.values.errors import SqlError
from executor.core.core import Core
from executor.maintained.maintained_views import MaintainedViews
from executor.queries.client import Client
from executor.queries.moments import ATTEMPTS, Moment, Moments
from executor.queries.view_reader import ViewReader, of_types
from executor.remote_reads.home_tables import Borrowing
from executor.remote_reads.messages import Asking
from executor.remote_reads.remote_views import Elsewhere
from executor.replicas.replica import Replicas
from executor.tables.store import ReadSnapshot
from executor.views.runtime import ViewPassed
from executor.views.view_lock import locked

#: Bytes of a table that is read whole.
_ANY_SIZE: Final = 1 << 62


class PresentServices(Protocol):
    """What reading the present needs of the services of a database."""

    @property
    def replicas(self) -> Replicas:
        """The copies of streams of other servers."""
        ...

    @property
    def borrowing(self) -> Borrowing:
        """The tables of other servers."""
        ...

    @property
    def elsewhere(self) -> Elsewhere:
        """The views that other servers maintain."""
        ...

    @property
    def maintained(self) -> MaintainedViews:
        """The rows of views that are kept up to date."""
        ...


class SessionReader(Asking, Protocol):
    """What reading the present needs of a session's reader."""

    core: Core
    client: Callable[[], Client]
    moments: Moments
    views: ViewReader

    @property
    def services(self) -> PresentServices:
        """What else the reader reads from."""
        ...

    def interruptible(self, snapshot: ReadSnapshot | None) -> AbstractContextManager[None]:
        """Within, the session's cancel interrupts queries of a snapshot."""
        ...


class PresentRows:
    """The present rows, for the reader of one session."""

    def __init__(self, reader: SessionReader) -> None:
        self._reader = reader

    @property
    def owner(self) -> object:
        """On whose behalf the engine runs queries: the reader, whose cancel interrupts them."""
        return self._reader

    def of_view(self, oid: int) -> tuple[int, int, pa.Table]:
        """A continuous view's rows now: their LSN, that of the last change of what they are made of, and the rows."""
        for _ in range(ATTEMPTS):
            found = self._from_there(oid)
            if found is not None:
                return found
            with contextlib.suppress(ViewPassed):  # of a view of another server's that it reads
                return self._from_here(oid)
        raise SqlError("40001", "could not serialize access: a view moved on during the statement")

    def changes_of_view(self, oid: int, after: int) -> tuple[int, int, list[pa.Table]] | None:
        """How a continuous view's rows have changed since an LSN, if they are kept up to date: their LSN now, that of
        the last change of what they are made of, and the changes, with weights behind the view's columns."""
        reader, core = self._reader, self._reader.core
        maintained, runtime = reader.services.maintained, core.view(oid)
        if runtime.view.timed or not maintained.follows(runtime):
            return None
        reader.services.replicas.refresh((oid,))
        runtime.check_inputs()
        with locked(core.view(below).lock for below in core.views_locked((oid,))):
            with core.sequencer.lock:
                lsn, changed = core.sequencer.visible, core.version_of((oid,))
            found = runtime.some(lsn, True, lambda: maintained.changes(runtime, after, lsn, reader.client().time))
        if found is None:
            return None
        declared = [column.type.arrow for column in runtime.program.columns]
        kinds = {name: kind for rows in found[:1] for name, kind in zip(rows.column_names, declared, strict=False)}
        return lsn, changed, [of_types(rows, kinds) for rows in found]

    def of_table(self, table: Table) -> tuple[int, pa.Table]:
        """The LSN of now, and a table's committed rows at it, with all stored columns."""
        core = self._reader.core
        core.tables.backlog.apply()  # so that little is left while others wait for the lock
        with core.sequencer.lock:
            lsn, snapshot = core.sequencer.visible, core.tables.snapshot()
        with contextlib.closing(snapshot), self._reader.interruptible(snapshot):
            return lsn, snapshot.rows(table, _ANY_SIZE)

    def _from_there(self, oid: int) -> tuple[int, int, pa.Table] | None:
        """The rows of a view that another server maintains; None for a view that is here."""
        core = self._reader.core
        if core.view(oid).away is None:
            return None
        with core.sequencer.lock:
            lsn, changed = core.sequencer.visible, core.version_of((oid,))
        found = self._reader.services.elsewhere.whole((oid,), self._reader).get(oid)
        if found is None:
            return None
        with core.sequencer.lock:
            is_same = core.version_of((oid,)) == changed
        return (max(lsn, found.at), changed, found.rows) if is_same else (found.at, found.at, found.rows)

    def _from_here(self, oid: int) -> tuple[int, int, pa.Table]:
        """The rows of a view that is here. Raises ViewPassed."""
        reader, core, services = self._reader, self._reader.core, self._reader.services
        services.replicas.refresh((oid,))
        services.borrowing.fetch((oid,), reader)
        elsewhere = services.elsewhere.whole(core.views_read((oid,)), reader)
        with contextlib.ExitStack() as stack:
            with services.borrowing.steady((oid,), reader):
                below = core.views_below((oid,), elsewhere)
                stack.enter_context(locked(core.view(each).lock for each in core.views_locked((oid,), elsewhere)))
                for runtime in map(core.view, below):
                    if runtime.away is None:
                        runtime.check()
                core.tables.backlog.apply()
                with core.sequencer.lock:  # nothing else brings the views further while their locks are held
                    lsn, changed = core.sequencer.visible, core.version_of((oid,))
                    snapshot = core.tables.snapshot() if core.tables_of_view(oid) else None
                    lent = services.borrowing.at(below)
                    versions = reader.moments.versions(below, lent)
                    moment = Moment(lsn, snapshot, versions, True, reader, core.catalog, lent=lent)
                    moment = replace(moment, elsewhere=elsewhere) if elsewhere else moment
            if snapshot is not None:
                stack.enter_context(contextlib.closing(snapshot))
            with reader.interruptible(snapshot):
                table = reader.views.whole(oid, moment)
                declared = zip(table.column_names, core.view(oid).program.columns, strict=True)
                return lsn, changed, of_types(table, {name: column.type.arrow for name, column in declared})
