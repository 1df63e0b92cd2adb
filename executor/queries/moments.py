"""The moments at which a session's statements read: an LSN, and the tables and views at it.

Owns: how a statement gets its LSN and its snapshot together, under the sequencer's lock (architecture, section 4), what
a transaction that reads one moment keeps, and when a statement needs no snapshot. Used by one thread at a time.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from typing import Final

import pyarrow as pa
from msgspec import Struct, field
from msgspec.structs import replace

from catalog.catalog import Catalog
from catalog.objects import View
from catalog.values.errors import unsupported
from executor.core.core import Core
from executor.core.plans import Plan
from executor.embedded.connection import Bindings
from executor.embedded.engine import EmbeddedEngine
from executor.remote_reads.home_tables import Borrowing, Lending
from executor.remote_reads.messages import Answer
from executor.tables.store import ReadSnapshot
from executor.tables.transaction import WriteTransaction
from executor.transactions.transaction import OutdatedError, RepeatableSnapshot, Transaction
from executor.views.runtime import ViewRuntime
from planner.algebra.nodes import Relation, Value

Parameters = tuple[Value, ...]
#: How often a statement is begun at a later moment where another one brought what it reads beyond its own.
ATTEMPTS: Final = 20
#: How often of these the reason may be rows that can be computed anew at the statement's own moment.
PATIENT: Final = 5


class Moment(Struct, frozen=True):
    """What a statement reads: an LSN and the tables at it. ``exact``: every view must be at this very LSN.

    ``versions`` tells, per continuous view, which content its final relation finds in tables and in other views.
    """

    lsn: int
    snapshot: ReadSnapshot | None
    versions: Mapping[int, int]
    exact: bool
    owner: object
    catalog: Catalog
    writer: WriteTransaction | None = None
    #: Views that other servers maintain, with the LSN that their rows are of.
    elsewhere: Mapping[int, Answer] = field(default_factory=dict)
    #: What guests read of the tables of their homes.
    lent: Mapping[int, Lending] = field(default_factory=dict)
    #: Whether there is no snapshot, since what is read is kept up to date.
    is_bare: bool = False
    #: Whether the transaction goes on with the snapshot, in which no statement may fail unnoticed.
    is_kept: bool = False
    #: Whether the statement is begun at a later moment where a view has passed this one.
    may_be_later: bool = False

    def query(
        self, engine: EmbeddedEngine, relation: Relation, bindings: Bindings, parameters: Parameters, time_zone: str
    ) -> pa.Table:
        """A relation's rows, as the transaction sees the tables."""
        if self.writer is not None:
            return self.writer.query(relation, bindings, parameters, time_zone)
        if self.snapshot is not None:
            return self.snapshot.query(relation, bindings, parameters, time_zone)
        return engine.query(relation, bindings, parameters, time_zone, self.owner)


class Moments:
    """Those of one session."""

    def __init__(self, core: Core, borrowing: Borrowing, follows: Callable[[ViewRuntime], bool], owner: object) -> None:
        """``follows``: whether a view's rows are kept up to date; ``owner``: of the engine's statements."""
        self._core = core
        self._borrowing = borrowing
        self._follows = follows
        self._owner = owner
        #: The catalog that the running statement was planned for, where it can be planned again.
        self._planned: Catalog | None = None

    @contextlib.contextmanager
    def planned_for(self, catalog: Catalog) -> Iterator[None]:
        """A context for a statement that was planned for a catalog: raises 40001 where what it reads has changed since
        then."""
        self._planned = catalog
        try:
            yield
        finally:
            self._planned = None

    def begin(self, transaction: Transaction) -> None:
        """A transaction that reads one moment begins to, and has the locks of its first statement."""
        core, unsettled = self._core, self._core.tables.unsettled
        unsettled.wait(unsettled.last, unsettled.chain)
        core.tables.backlog.apply()
        with core.sequencer.lock:
            catalog = transaction.sees(core.catalog)
            self._keep(transaction, core.sequencer.visible, core.tables.snapshot(), catalog)

    def take(
        self, plan: Plan, transaction: Transaction, elsewhere: Container[int], needs_tables: bool
    ) -> tuple[Moment, bool]:
        """(moment, whether the caller closes its snapshot); ``elsewhere`` are the views that others have answered.
        Unless it ``needs_tables``, a moment has none where the rows of all views are kept up to date."""
        views = self._core.views_below(plan.views, elsewhere)
        here = [oid for oid in views if oid not in elsewhere]
        reads_tables = bool(plan.tables) or self._reads_tables(plan.views, elsewhere)
        exact = reads_tables or len(views) > 1 or any(self._core.view(oid).program.borrowed for oid in here)
        is_bare = not needs_tables and reads_tables and self._is_kept(plan, transaction, elsewhere)
        reads_tables = reads_tables and not is_bare
        if transaction.write is not None and views:
            transaction.write.await_others()  # views and tables are at one position
        beside = {table for oid in here for table in self._core.tables_beside(oid)}
        if transaction.write is not None and transaction.snapshot is None:
            transaction.write.see({*plan.tables, *beside})
        if reads_tables and transaction.write is None and transaction.snapshot is None:
            self._core.tables.backlog.apply()  # so that little is left while others wait for the lock
        with self._core.sequencer.lock:
            catalog = transaction.sees(self._core.catalog)
            lsn, kept = self._core.sequencer.visible, transaction.snapshot
            if transaction.write is not None and kept is None:
                _require_committed((*plan.views, *views), catalog, self._core.catalog)
                own, lent = {oid: self._core.versions.private() for oid in views}, self._borrowing.at(views)
                return Moment(lsn, None, own, exact, self._owner, catalog, transaction.write, lent=lent), True
            if kept is not None:
                kept.require_columns(plan.relation, catalog)
                for oid in here:
                    view = catalog.objects.get(oid)
                    if isinstance(view, View):
                        kept.require_columns(self._core.view(oid).final(view), catalog)
                own, lent = (
                    {oid: self._core.versions.private() for oid in views},
                    self._borrowing.at(views, kept.lsn),
                )
                snapshot = None if transaction.write is not None else kept.tables
                return Moment(kept.lsn, snapshot, own, True, self._owner, catalog, transaction.write, lent=lent), False
            self._require_current(plan, catalog)
            keep = transaction.repeatable and transaction.explicit
            snapshot = self._core.tables.snapshot() if reads_tables or keep else None
            lent = self._borrowing.at(views)
            versions = self.versions(views, lent)
            if keep and snapshot is not None:
                self._keep(transaction, lsn, snapshot, catalog)
        found = Moment(lsn, snapshot, versions, exact or keep, self._owner, catalog, lent=lent, is_kept=keep)
        return replace(found, is_bare=is_bare and snapshot is None), not keep

    def _keep(self, transaction: Transaction, lsn: int, snapshot: ReadSnapshot, catalog: Catalog) -> None:
        """All statements of a transaction read this. The caller has the sequencer's lock."""
        self._core.pinned.pin(lsn)
        transaction.snapshot = RepeatableSnapshot(lsn, snapshot, catalog, self._core.pinned)

    def versions(self, views: Iterable[int], lent: Mapping[int, Lending]) -> dict[int, int]:
        """Which content views find beside their states. The caller has the sequencer's lock."""
        return {oid: self._version(oid, lent) for oid in views}

    def _version(self, oid: int, lent: Mapping[int, Lending]) -> int:
        return lent[oid].version if oid in lent else self._core.version_beside(oid)

    def _reads_tables(self, views: Iterable[int], elsewhere: Container[int]) -> bool:
        """Whether some views are computed from tables."""
        below = self._core.views_below(tuple(views), elsewhere)
        return any(oid not in elsewhere and self._core.tables_beside(oid) for oid in below)

    def _is_kept(self, plan: Plan, transaction: Transaction, elsewhere: Container[int]) -> bool:
        """Whether all that a plan reads of tables is rows of views that are kept up to date."""
        if plan.tables or transaction.write is not None or transaction.snapshot is not None:
            return False
        others = (oid for oid in plan.views if not self._follows(self._core.view(oid)))
        return not self._reads_tables(others, elsewhere)

    def _require_current(self, plan: Plan, catalog: Catalog) -> None:
        """Raises 40001 where another transaction has changed what the plan reads."""
        before = self._planned
        if before is None or before is catalog:
            return
        if any(before.objects.get(oid) is not catalog.objects.get(oid) for oid in (*plan.tables, *plan.views)):
            raise OutdatedError


def _maintained_by(view: View) -> tuple[str, str]:
    """What of a view's definition says which rows it has: its program, and what becomes of rows that fail."""
    return view.program, view.on_error


def _require_committed(views: Iterable[int], own: Catalog, committed: Catalog) -> None:
    """A continuous view begins, or has another program, with its transaction's commit. Raises 0A000 where that is still
    to come."""
    for oid in views:
        if oid not in committed.objects and (view := own.objects.get(oid)) is not None:
            what = f'reading continuous view "{view.name}" in the transaction that creates it'
            raise unsupported(what, "Commit first: the view has the rows from then on.")
        known, now = own.objects.get(oid), committed.objects.get(oid)
        if isinstance(known, View) and isinstance(now, View) and _maintained_by(known) != _maintained_by(now):
            what = f'reading continuous view "{known.name}" in the transaction that changes its options'
            raise unsupported(what, "Commit first.")
