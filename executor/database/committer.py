"""Commits transactions, and makes them visible.

Owns: the order of a commit. The log record is the commit point: what could fail is tried before it (space, static runs,
names of files), and tables, catalog, streams and views follow it on publication, in the order of the LSNs.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from msgspec.structs import replace

from catalog.objects import Stream
from catalog.values.errors import SqlError
from executor.commit.checked_lines import End
from executor.commit.records import (
    FilesArrived,
    Followed,
    RowValues,
    Spooled,
    StreamRows,
    TableChange,
    TableValues,
    TransactionRecord,
)
from executor.core.core import Core
from executor.core.recycled_log import Forgotten
from executor.database.runtimes import Runtimes
from executor.definitions import stored_catalog
from executor.failpoints import failpoint
from executor.key_access.table_keys import TableKeys
from executor.replicas.replica import Replicas
from executor.streams.runtime import Arrival, is_followed
from executor.tables.temporary import Temporary
from executor.tables.transaction import WriteTransaction
from executor.transactions.transaction import Transaction
from planner.cancellation import to_the_end


class Committer:
    """Commits the transactions of one database. Methods may be called from any thread."""

    def __init__(self, core: Core, replicas: Replicas, table_keys: TableKeys, runtimes: Runtimes) -> None:
        self._core, self._replicas = core, replicas
        self._table_keys, self._runtimes = table_keys, runtimes
        #: Transactions whose records are not published yet, by LSN.
        self._committing: dict[int, Transaction] = {}
        core.sequencer.on_publish(self._publish)

    def commit(self, transaction: Transaction, sync: bool = True) -> None:
        """Commits: returns when the record is durable (or, without ``sync``, visible). Raises what prevented it."""
        if transaction.write is None:
            transaction.close()
        if transaction.is_empty:
            return
        try:
            if transaction.write is not None:
                transaction.write.settle(everything=True)
                if transaction.write.is_open:
                    self._core.tables.backlog.apply()  # so that little is left for the publication
            record = transaction.record()
            if not record:
                self._commit_unlogged(transaction)
                return
            if transaction.write is not None:
                self._require_space(record)
            if transaction.catalog is not None:
                transaction.result(self._core.catalog)  # raises here what must not fail behind the record
            self._prepare(transaction)
        except BaseException:
            transaction.rollback()
            raise

        def register(lsn: int) -> None:
            self._committing[lsn] = transaction
            if transaction.write is not None and transaction.catalog is None:
                transaction.write.let_go(lsn)

        try:
            chain = None if transaction.write is None else transaction.write.chain
            is_synced = sync or self._is_stored_at_once(transaction)
            to_the_end(self._core.sequencer.commit, record, is_synced, register, chain)
        except BaseException as error:
            # harmless where the tables' part is committed already
            transaction.rollback(error if isinstance(error, SqlError) else None)
            raise
        transaction.close()

    @staticmethod
    def _is_stored_at_once(transaction: Transaction) -> bool:
        """Whether files get its changes when it is published. They must not have what the log may lose."""
        is_open = transaction.write is not None and transaction.write.is_open
        return is_open or transaction.catalog is not None

    def commit_rows(
        self,
        write: WriteTransaction,
        sync: bool,
        done: Callable[[Exception | None], None],
        later: Callable[[Callable[[], None]], object],
    ) -> None:
        """Commits changes of rows by key without waiting: ``later`` carries the call of ``done``. Raises what prevented
        it at once; then the caller undoes it."""
        transaction = Transaction(False, lambda: write, Temporary(), write.locks, write=write)
        record = transaction.record()
        self._require_space(record)

        def register(lsn: int) -> None:
            self._committing[lsn] = transaction
            write.let_go(lsn)

        def ended(error: Exception | None) -> None:
            if error is not None:
                transaction.rollback(error if isinstance(error, SqlError) else None)
            done(error)

        ticket = self._core.sequencer.submit(record, sync, register, write.chain)

        def call(error: Exception | None) -> None:
            later(partial(ended, error))

        ticket.on_done(call)

    def _commit_unlogged(self, transaction: Transaction) -> None:
        """What is temporary needs no record: the tables contain it at the LSN that they are at. What found nothing to
        change has seen that."""
        if transaction.write is not None:
            transaction.write.await_others()
        if transaction.write is not None and transaction.write.has_temporary:
            transaction.write.commit(None)
            transaction.write = None
        transaction.rollback()

    def _require_space(self, record: TransactionRecord) -> None:
        """Tables and definitions follow the log's record and must not fail behind it. Raises 53100."""
        size = 0
        for part in record:
            if isinstance(part, TableValues):
                size += len(part.inserted) + len(part.deleted)
            elif isinstance(part, TableChange):
                size += sum(table.nbytes for table in (part.inserted, part.deleted) if table is not None)
        self._core.tables.require_space(size)

    def _prepare(self, transaction: Transaction) -> None:
        """Static pipelines' results go to storage before the record that makes the view exist, and so do other programs
        of views, and the names of files with which a stream begins."""
        for new in transaction.views:
            self._core.storage.prepare(new.view.oid, new.program, new.statics, new.handover)
        for changed in transaction.programs:
            self._core.storage.prepare_program(changed.view.oid, changed.view.program, changed.program)
        known = self._core.catalog.objects
        for oid, item in () if transaction.catalog is None else transaction.catalog.objects.items():
            if oid not in known and isinstance(item, Stream) and is_followed(item):
                end = self._core.storage.prepare_stream(oid, transaction.arrived.get(oid))
                if end is not None:
                    self._core.note_forgotten(partial(_with_names, oid, end))

    def _publish(self, lsn: int, record: TransactionRecord) -> None:
        """Makes a durable record visible; called in LSN order, under the sequencer's lock."""
        transaction = self._committing.pop(lsn, None)  # what is left here by a failed commit is never published
        if transaction is not None and transaction.catalog is not None:
            # Before rows come that are of the new columns.
            self._runtimes.alter_streams(transaction.result(self._core.catalog))
        late: list[Arrival] = []  # rows of streams that the transaction makes
        for part in record:
            if isinstance(part, StreamRows | RowValues | Spooled | FilesArrived):
                if not self._runtimes.arrive(lsn, part):
                    late.append(part)
            elif isinstance(part, TableChange | TableValues):
                self._core.change_table(lsn, part)
        if transaction is not None and transaction.write is not None:
            self._publish_tables(lsn, transaction)
        for part in late:
            self._runtimes.arrive(lsn, part)
        for part in record:  # last, since it may be of a stream that the transaction makes
            if isinstance(part, Followed):
                self._replicas.recorded(lsn, part)

    def _publish_tables(self, lsn: int, transaction: Transaction) -> None:
        write, catalog = transaction.write, None
        assert write is not None
        for oid in write.rebuilt:
            self._core.rebuild_table(oid)
        if transaction.catalog is not None and transaction.catalog_changes:
            catalog = transaction.result(self._core.catalog)
            for item in catalog.objects.values():
                if (found := stored_catalog.numbered(item, lsn)) is not item:
                    catalog = replace(catalog.change(found), version=catalog.version)
            write.save_catalog(lsn, transaction.catalog_changes)
        self._table_keys.publish(lsn, write.journal)
        failpoint("tables-kept")
        # the next writer finds the catalog
        write.commit(lsn, None if catalog is None else partial(self._runtimes.install, catalog, lsn, transaction.views))
        transaction.write = None
        if catalog is not None:
            self._core.tables.compact(lsn, partial(stored_catalog.dump_catalog, catalog))


def _with_names(stream: int, end: End, known: Forgotten) -> Forgotten:
    """A stream begins with names of files that the log does not have."""
    return replace(known, names={**known.names, stream: end})
