"""What one transaction has done so far and would commit: table writes, stream rows, catalog changes.

Owns: the state of a transaction between BEGIN and COMMIT, and its savepoints. Nothing of it is visible to others before
``executor.database.committer`` commits it as one log record (architecture, section 4). Knows nothing of SQL text or
clients.
"""

from __future__ import annotations

import json
from collections.abc import Callable

import pyarrow as pa
from msgspec import Struct, field

from catalog.catalog import Catalog
from catalog.merge import merged
from catalog.objects import Table, View
from catalog.roles import BOOTSTRAP
from catalog.values.errors import SqlError
from executor.commit.records import CatalogChange, Followed, Part, Spooled, StreamRows, TransactionRecord
from executor.files.arrived_files import ArrivedFiles
from executor.locks.held import TransactionLocks
from executor.tables.constraints.deferral import Timing
from executor.tables.savepoints import Savepoints
from executor.tables.store import ReadSnapshot
from executor.tables.temporary import Temporary
from executor.tables.transaction import WriteTransaction
from executor.views.pins import PinnedLsns
from executor.views.storage import Handover
from planner.algebra.nodes import Relation, Scan
from planner.algebra.walk import walk
from planner.incremental.programs.program import Program


class OutdatedError(SqlError):
    """What a statement was planned for has changed."""

    def __init__(self) -> None:
        super().__init__("40001", "could not serialize access due to concurrent update")


class RepeatableSnapshot(Struct, frozen=True):
    """What all statements of a REPEATABLE READ transaction read: the tables at an LSN, as the catalog had them, and the
    views at the same LSN, which is pinned for it."""

    lsn: int
    tables: ReadSnapshot
    catalog: Catalog
    pinned: PinnedLsns

    def close(self) -> None:
        """Ends it."""
        self.tables.close()
        self.pinned.unpin(self.lsn)

    def require_columns(self, relation: Relation, catalog: Catalog) -> None:
        """Raises 40001 where columns that a relation reads have other types now: the snapshot has no such values."""
        for scan in walk(relation):
            if not isinstance(scan, Scan) or scan.kind != "table":
                continue
            before, now = (each.objects.get(scan.oid) for each in (self.catalog, catalog))
            if before is now or not isinstance(now, Table):
                continue
            known = {item.name: item.type for item in before.stored} if isinstance(before, Table) else {}
            if any(known.get(item.name) != item.type for item in now.stored if item.name in scan.sources):
                raise SqlError("40001", "could not serialize access due to concurrent update")


class NewView(Struct, frozen=True):
    """A continuous view that starts when its transaction commits, with its static pipelines' results, and where it
    comes from another server with its states."""

    view: View
    program: Program
    statics: dict[str, pa.Table]
    handover: Handover | None = None


class NewProgram(Struct, frozen=True):
    """Another program of a continuous view that exists, over the traces that it has."""

    view: View
    program: Program


class Saved(Struct, frozen=True):
    """What a savepoint returns to; the table writes keep a savepoint of the same name."""

    parts: int
    views: tuple[NewView, ...]
    catalog: Catalog | None
    catalog_changes: int
    timing: Timing
    base: Catalog | None
    locks: int


class Transaction(Struct):
    """One transaction. ``explicit`` after BEGIN; else it ends with the statement, query string or Sync."""

    explicit: bool
    begin_write: Callable[[], WriteTransaction]
    temporary: Temporary
    locks: TransactionLocks
    repeatable: bool = False
    read_only: bool = False
    failed: bool = False
    begun: bool = False  # a statement has seen the data
    running: bool = False  # one is at it
    write: WriteTransaction | None = None
    snapshot: RepeatableSnapshot | None = None
    parts: list[StreamRows | Spooled | Followed] = field(default_factory=list)
    catalog: Catalog | None = None
    base: Catalog | None = None  # what ``catalog`` was made of
    catalog_changes: list[str] = field(default_factory=list)
    views: list[NewView] = field(default_factory=list)
    programs: list[NewProgram] = field(default_factory=list)
    #: The files that had arrived elsewhere in streams that it creates, by their oids.
    arrived: dict[int, ArrivedFiles] = field(default_factory=dict)
    savepoints: Savepoints[Saved] = field(default_factory=lambda: Savepoints())
    timing: Timing = field(default_factory=Timing)
    role: int = BOOTSTRAP  # the owner of what its present statement creates

    def writer(self) -> WriteTransaction:
        """The table transaction, begun on first use."""
        if self.read_only:
            raise SqlError("25006", "cannot execute a writing statement in a read-only transaction")
        return self.write or self.write_with(self.begin_write())

    def write_with(self, write: WriteTransaction) -> WriteTransaction:
        """Its table transaction is one that has just begun."""
        self.write = write
        write.timing = self.timing
        for name in self.savepoints.names():
            write.savepoint(name)
        return write

    def set_constraints(self, named: tuple[tuple[int, str], ...] | None, deferred: bool) -> None:
        """SET CONSTRAINTS: what waited and waits no longer is checked now. Raises 23503."""
        self.timing = self.timing.set(named, deferred)
        if self.write is not None:
            self.write.timing = self.timing
            self.write.settle()

    def sees(self, committed: Catalog) -> Catalog:
        """What its next statement sees: the catalog as it changed it, or as committed, with the session's relations. A
        statement that runs sees one catalog to its end."""
        if self.catalog is not None:
            return self.catalog
        if self.base is None or not self.running:
            self.base = self.temporary.over(committed)
        return self.base

    def rebase(self, committed: Catalog) -> None:
        """A statement is about to begin: it sees what others have committed beside its own changes. Raises 40001."""
        shown = self.temporary.over(committed)
        if self.catalog is not None and self.base is not None:
            self.catalog = merged(self.base, self.catalog, shown)
        self.base = shown

    def result(self, committed: Catalog) -> Catalog:
        """The catalog once it is committed. Raises 40001."""
        assert self.catalog is not None
        found = self.catalog if self.base is None else merged(self.base, self.catalog, self.temporary.over(committed))
        return found.permanent()

    @property
    def is_empty(self) -> bool:
        """Whether a commit would change nothing."""
        return self.write is None and not self.parts and self.catalog is None

    @property
    def is_by_key(self) -> bool:
        """Whether a commit would write no more than rows by key."""
        return (
            self.write is not None
            and self.write.is_by_key
            and not self.failed
            and not self.parts
            and self.catalog is None
            and self.snapshot is None
        )

    def record(self) -> TransactionRecord:
        """What its commit logs."""
        parts: list[Part] = list(self.parts)
        if self.write is not None:
            parts += self.write.record()
            parts += [CatalogChange(json.dumps({"rebuild": oid})) for oid in sorted(self.write.rebuilt)]
        parts += [CatalogChange(document) for document in self.catalog_changes]
        return tuple(parts)

    def set_savepoint(self, name: str) -> None:
        """SAVEPOINT."""
        if self.write is not None:
            self.write.savepoint(name)
        begun = len(self.parts), tuple(self.views)  # DROP takes views out of them
        changes, locks = len(self.catalog_changes), self.locks.mark()
        saved = Saved(*begun, self.catalog, changes, self.timing, self.base, locks)
        self.savepoints.add(name, saved)

    def release(self, name: str) -> None:
        """RELEASE SAVEPOINT: forgets it and the later ones."""
        self.savepoints.release(name)
        if self.write is not None:
            self.write.release(name)

    def rollback_to(self, name: str) -> None:
        """ROLLBACK TO SAVEPOINT: undoes what came after; the savepoint stays."""
        saved = self.savepoints.return_to(name)
        self.timing = saved.timing
        if self.write is not None:
            self.write.rollback_to(name)
            self.write.timing = self.timing
        del self.parts[saved.parts :]
        self.views[:] = saved.views
        del self.catalog_changes[saved.catalog_changes :]
        self.catalog, self.base = saved.catalog, saved.base
        self.failed = False
        self.locks.release_after(saved.locks)

    def close(self) -> None:
        """Gives up the read snapshot; table writes must have been committed or rolled back."""
        if self.snapshot is not None:
            self.snapshot.close()
            self.snapshot = None

    def rollback(self, error: SqlError | None = None) -> None:
        """Undoes everything; ``error`` is why its commit failed."""
        if self.write is not None:
            self.write.rollback(error)
            self.write = None
        self.close()
