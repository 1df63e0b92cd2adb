"""The sequencer: the only place that hands out LSNs, and the order in which transactions become visible.

Owns the LSN counter, the queue, the writer thread with group commit, and ``visible`` and ``durable``. Does not know
what publishing means: consumers (rings, the table database) register ``on_publish(lsn, record)``.

A transaction's life: ``submit`` encodes it on the caller's thread, takes its LSN and queues it under ``lock``; the
writer thread drains the queue, appends all records, syncs once if one of them asks for it, publishes them in LSN order
under ``lock``, and resolves their tickets. Under ``lock``, ``visible`` agrees with all publishers.

``commit``, for a thread that waits for its transaction anyway, does all of that on the caller's thread when the writer
thread has nothing to do, which saves two switches of threads. One thread commits at a time (``_turn``), and a caller
only when no LSN before its own is under way, so that the log and the publishers see LSNs in order either way.

An LSN whose record could not be written stays unused, and ``visible`` never rests on it: after a restart another
transaction would get it. For the same reason nothing may record an LSN above ``durable`` on storage; ``floor``
takes the highest LSN that the tables recorded, and ``raise_start`` that of the manifests.
"""

from __future__ import annotations

import logging
import queue
import threading
import time
from collections.abc import Callable, Sequence
from typing import Final

import pyarrow as pa
from msgspec.structs import replace

from catalog.values.errors import SqlError
from executor.commit.chain import Chain
from executor.commit.encoding.payloads import Encoded, encode_data, encode_record
from executor.commit.log import Log
from executor.commit.records import Part, SpoolReference, TransactionRecord
from executor.commit.ticket import Ticket
from executor.commit.writer_queue import Call, Draft, Entry, Flush, Item, Stop, take
from executor.failpoints import failpoint

Publisher = Callable[[int, TransactionRecord], None]
#: Told a transaction's LSN.
OnLsn = Callable[[int], None]

#: Seconds after which a transaction that did not wait for the disk is on it.
SYNC_WITHIN: Final = 0.2
#: Memory for batches that were written ahead and whose transaction is still open.
SPOOL_MEMORY: Final = 1024 * 1024 * 1024

_LOGGER: Final = logging.getLogger(__name__)


class Sequencer:
    """Hands out LSNs and commits. Safe for many threads; ``close`` joins the writer thread."""

    def __init__(
        self,
        log: Log,
        floor: int = 0,
        clock: Callable[[], float] = time.monotonic,
        sync_within: float = SYNC_WITHIN,
        spool_memory: int = SPOOL_MEMORY,
    ) -> None:
        """Starts behind the log's last commit. What the log holds is replayed by the caller before the first submit."""
        self.lock = threading.RLock()
        self.log = log
        self.visible = self.durable = max(log.last_lsn, floor)
        self._next = self.visible + 1
        self._clock = clock
        self._sync_within = sync_within
        self._spool_memory = spool_memory
        #: Bytes of the batches in memory that were written ahead, by segment and offset.
        self._spooled: dict[tuple[int, int], int] = {}
        self._spooled_bytes = 0
        self._publishers: list[Publisher] = []
        self._queue: queue.SimpleQueue[Item] = queue.SimpleQueue()
        self._closed: SqlError | None = None
        #: When the oldest commit that did not wait for the disk must be on it.
        self._deadline: float | None = None
        self._last_written = self.visible
        #: Held while a thread commits. Taken before ``lock``.
        self._turn = threading.Lock()
        #: What was queued and has not been carried out. Changed under ``lock``.
        self._outstanding = 0
        # A daemon, so that a process that dies of an error elsewhere ends; ``close`` waits for it.
        self._writer = threading.Thread(target=self._run, name="sequencer", daemon=True)
        self._writer.start()

    def on_publish(self, publisher: Publisher) -> None:
        """Registers a consumer. The thread that commits calls it, under ``lock``, in LSN order; it must not fail."""
        with self.lock:
            self._publishers.append(publisher)

    def submit(
        self,
        parts: Sequence[Part],
        sync: bool = True,
        on_lsn: OnLsn | None = None,
        chain: Chain | None = None,
    ) -> Ticket:
        """Commits a transaction; returns at once. With ``sync`` the ticket is done when the disk has the record.

        ``on_lsn`` is told the LSN under ``lock``, before any publisher can see it; so the caller need not hold the
        lock, and the rows are encoded and compressed outside of it. Where one of ``chain`` was refused, this is, too.
        Raises 57P01 after ``close`` and 58030 after a failure of the log that only a restart mends. 53100 for a full
        disk comes by the ticket.
        """
        record = tuple(parts)
        return self._submit(Draft(encode_record(record), record, sync, chain), on_lsn)

    def _submit(self, draft: Draft, on_lsn: OnLsn | None) -> Ticket:
        with self.lock:
            if self._closed is not None:
                raise self._closed
            ticket = self._number(on_lsn)
            self._put(draft.entry(ticket))
        return ticket

    def commit(
        self,
        parts: Sequence[Part],
        sync: bool = True,
        on_lsn: OnLsn | None = None,
        chain: Chain | None = None,
    ) -> None:
        """Commits a transaction and waits for it; all else, and what is raised, as for ``submit`` and its ticket."""
        record = tuple(parts)
        draft = Draft(encode_record(record), record, sync, chain)
        ticket = self._commit_here(draft, on_lsn)
        if ticket is None:
            ticket = self._submit(draft, on_lsn)
        ticket.wait()

    def _commit_here(self, draft: Draft, on_lsn: OnLsn | None) -> Ticket | None:
        """Commits on the caller's thread; the ticket is done. None where another thread commits: one sync then serves
        all waiting threads."""
        if not self._turn.acquire(blocking=False):
            return None
        try:
            with self.lock:
                if self._outstanding or self._closed is not None:
                    return None
                ticket = self._number(on_lsn)
            entries = (draft.entry(ticket),)
            error = self._complete_here(entries, self._write(entries))
        finally:
            self._turn.release()
        ticket.resolve(error)
        return ticket

    def _complete_here(self, entries: Sequence[Entry], refused: Sequence[SqlError | None]) -> Exception | None:
        """Completes one entry on the caller's thread."""
        if any(error is None for error in refused) and not self._is_due(entries):
            self._put_off_here()
        errors, _ = self._complete(entries, refused, forced=False)
        return errors[0]

    def _number(self, on_lsn: OnLsn | None = None) -> Ticket:
        """The next LSN; under ``lock``."""
        ticket = Ticket(self._next)
        self._next += 1
        if on_lsn is not None:
            on_lsn(ticket.lsn)
        return ticket

    def spool(self, stream: int, batch: pa.RecordBatch, encoded: Encoded | None = None) -> SpoolReference:
        """Writes a stream's batch ahead of its transaction's commit, on the caller's thread. Raises 53100, 58030.

        ``encoded`` is what ``encode_data`` made of the batch, on any thread.

        The reference is given to a ``Spooled`` part of one ``submit``, or to ``discard``.
        """
        assert stream > 0
        with self.lock:
            if self._closed is not None:
                raise self._closed
        reference = self.log.append_data(encoded or encode_data(batch), batch.num_rows)
        with self.lock:
            if self._spooled_bytes + batch.nbytes > self._spool_memory:
                return reference
            self._spooled[reference.segment, reference.offset] = batch.nbytes
            self._spooled_bytes += batch.nbytes
        return replace(reference, batch=batch)

    def discard(self, references: Sequence[SpoolReference]) -> None:
        """The transaction that wrote these batches ahead was rolled back. Harmless when it is over already."""
        self.log.unpin(references)
        with self.lock:
            for each in references:
                self._spooled_bytes -= self._spooled.pop((each.segment, each.offset), 0)

    def raise_start(self, lsn: int) -> None:
        """Before the first commit: storage contains transactions up to this LSN, also where the log has lost its end.
        The next commit is above it."""
        with self.lock:
            if lsn > self.visible:
                self.visible = self.durable = self._last_written = lsn
                self._next = lsn + 1

    def require_durable(self, lsn: int) -> None:
        """Returns when the disk has the log up to an LSN. Raises 53100, 58030."""
        if lsn > self.durable:
            self.log.sync()

    def skip(self, lsn: int) -> None:
        """LSNs from now on are above this one."""
        with self.lock:
            self._next = max(self._next, lsn + 1)

    def flush(self) -> Ticket:
        """A ticket that is done when everything submitted before is durable and visible."""
        with self.lock:
            if self._closed is not None:
                raise self._closed
            ticket = Ticket(self._next - 1)
            self._put(Flush(ticket))
        return ticket

    def call(self, callback: Callable[[], None]) -> None:
        """Has the writer thread call back before its next write: for a caller that gathers rows while the disk is busy
        and then submits them. The callback must not fail."""
        with self.lock:
            self._put(Call(callback))

    def close(self) -> None:
        """Writes, publishes and syncs what was submitted, and ends. The log stays open: it is the caller's."""
        with self.lock:
            if self._closed is None:
                self._closed = SqlError("57P01", "the server is shutting down")
            self._put(Stop())
        self._writer.join()

    def _put(self, item: Item) -> None:
        self._outstanding += 1
        self._queue.put(item)

    def _run(self) -> None:
        running = True
        while running:
            deadline = self._deadline
            group = take(self._queue, None if deadline is None else max(deadline - self._clock(), 0.0))
            entries = [item for item in group if isinstance(item, Entry)]
            flushes = [item for item in group if isinstance(item, Flush)]
            running = not any(isinstance(item, Stop) for item in group)
            with self._turn:
                refused = self._write(entries)
                errors, failure = self._complete(entries, refused, bool(flushes) or not running)
                with self.lock:
                    self._outstanding -= len(group)
            for entry, error in zip(entries, errors, strict=True):
                entry.ticket.resolve(error)
            for flush in flushes:
                flush.ticket.resolve(failure)

    def _write(self, entries: Sequence[Entry]) -> list[SqlError | None]:
        """Group commit: one write for all. Why each was refused, if it was."""
        refused = {entry.ticket.lsn: entry.refused for entry in entries}
        going = [entry for entry in entries if refused[entry.ticket.lsn] is None]
        chains = [entry.chain for entry in going]
        outcomes = self.log.append([(entry.encoded, entry.ticket.lsn) for entry in going], chains)
        for entry, outcome in zip(going, outcomes, strict=True):
            if isinstance(outcome, SqlError):
                entry.refuse(outcome)
                refused[entry.ticket.lsn] = outcome
        return [refused[entry.ticket.lsn] for entry in entries]

    def _complete(
        self, entries: Sequence[Entry], refused: Sequence[SqlError | None], forced: bool
    ) -> tuple[Sequence[Exception | None], Exception | None]:
        """At most one sync for what was written, then ``_settle``."""
        written = [entry for entry, error in zip(entries, refused, strict=True) if error is None]
        if written:
            self._last_written = written[-1].ticket.lsn
        failure = None
        failpoint("record-written")
        if self._is_due(written) or (forced and self._last_written > self.durable):
            try:
                self.log.sync()
                self._note_synced()
            except SqlError as error:
                failure = error
        elif written:
            self._put_off()
        return self._settle(entries, refused, failure)

    def _is_due(self, written: Sequence[Entry]) -> bool:
        """Whether something that was written waits for the disk, or has waited long enough."""
        if any(entry.sync for entry in written):
            return True
        return self._deadline is not None and self._clock() >= self._deadline

    def _put_off(self) -> None:
        if self._deadline is None:
            self._deadline = self._clock() + self._sync_within

    def _put_off_here(self) -> None:
        """On the caller's thread: the writer thread learns how long it may sleep."""
        if self._deadline is None:
            self._put_off()
            self.call(_nothing)

    def _note_synced(self) -> None:
        self._deadline = None
        self.durable = max(self.durable, self._last_written)

    def _settle(
        self, entries: Sequence[Entry], refused: Sequence[SqlError | None], failure: Exception | None
    ) -> tuple[Sequence[Exception | None], Exception | None]:
        """Publication in LSN order, unless the sync failed: each one's error, and that of all."""
        errors: Sequence[Exception | None] = refused
        if failure is not None:
            self._give_up(failure)
        else:
            failpoint("record-synced")
            going = [entry for entry, error in zip(entries, refused, strict=True) if error is None]
            failure = self._publish([(entry.ticket.lsn, entry.record) for entry in going])
        if failure is not None:
            errors = [error or failure for error in refused]
        self._release_spool(entries)
        return errors, failure

    def _publish(self, written: Sequence[tuple[int, TransactionRecord]]) -> Exception | None:
        """Calls the publishers with LSNs and records. One that fails leaves memory behind the log: nothing may follow
        until a restart."""
        if not written:
            return None
        with self.lock:
            if self._closed is not None and self._closed.sqlstate != "57P01":
                return self._closed
            for lsn, record in written:
                try:
                    for publisher in self._publishers:
                        publisher(lsn, record)
                except Exception as error:
                    _LOGGER.exception("publishing LSN %d failed", lsn)
                    state = error.sqlstate if isinstance(error, SqlError) else "XX000"
                    failure = SqlError(state, f"publishing a transaction failed: {error}", hint="Restart the server.")
                    self._give_up(failure)
                    return failure
                self.visible = lsn
        return None

    def _give_up(self, failure: Exception) -> None:
        assert isinstance(failure, SqlError)
        with self.lock:
            self._deadline = None
            self._closed = failure

    def _release_spool(self, entries: Sequence[Entry]) -> None:
        references = [each for entry in entries for each in entry.encoded.references]
        if references:
            self.discard(references)


def _nothing() -> None:
    """A call for its own sake."""
