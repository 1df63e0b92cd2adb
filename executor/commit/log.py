"""The log: segment files of fixed size to which records are appended, and which are recycled (architecture section 4).

Owns the files, their order, recovery's scan and what may be recycled. Does not know transactions: LSNs come from the
sequencer. Safe for many threads; ``append`` and the roll to a new segment run under one lock, reads under none.

What makes recovery right after a crash at any moment:

- a segment is synced before its successor exists, and the successor's header says where it ends, so a segment that is
  shorter than that is corrupted (XX001) and not merely torn;
- how far the disk has the last segment, ``control`` says, so what is torn are only records that nobody was told of;
- LSNs of commits grow strictly, and headers are checked with the segment's number, so nothing stale is read;
- after a restart appending begins in a new segment: what lies behind a torn record is never read again.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from itertools import takewhile, zip_longest
from pathlib import Path
from typing import Final

import pyarrow as pa
from msgspec import Struct

from catalog.values.errors import SqlError
from executor.commit import segment as layout
from executor.commit.chain import Chain
from executor.commit.control import Control
from executor.commit.encoding.payloads import Encoded, Kind, decode_references
from executor.commit.files import Files, begin_writeback, disk_error, sync_folder
from executor.commit.records import SpoolReference
from executor.commit.segment import HEADER, RECORD, Segment, corrupted
from executor.commit.segment_pool import SegmentPool

SEGMENT_BYTES: Final = 64 * 1024 * 1024
#: Writes below this are joined, since gathering pieces costs more than copying them.
_JOIN_BELOW: Final = 256 * 1024


class Position(Struct, frozen=True):
    """Where a record lies."""

    segment: int
    offset: int


class _Outcome:
    """What becomes of the records of one ``append``, in their order."""

    def __init__(self, chains: Sequence[Chain | None]) -> None:
        self.found: list[Position | SqlError] = []
        self._chains = chains
        self._failed: dict[Chain, SqlError] = {}

    def add(self, outcomes: Sequence[Position | SqlError]) -> None:
        """The next ones."""
        for item in outcomes:
            chain = self._chains[len(self.found)] if self._chains else None
            if chain is not None and isinstance(item, SqlError):
                self._failed.setdefault(chain, item)
            self.found.append(item)

    def refusal(self, place: int) -> SqlError | None:
        """Why a record must not be written: one of its chain was not."""
        chain = self._chains[place] if self._failed else None
        return None if chain is None else self._failed.get(chain)


def _note_nothing(_: int) -> bool:
    return True


class Log:
    """An open log. One process at a time may have a folder open; who makes sure of that is the server."""

    def __init__(
        self,
        folder: Path,
        segment_bytes: int = SEGMENT_BYTES,
        pool: int = 4,
        files: Files | None = None,
        control: Control | None = None,
    ) -> None:
        """Opens or creates a log and scans what it holds. Raises XX001 when it is corrupted before its tail, or lacks
        what ``control`` says that the disk had."""
        self._folder = folder
        self._segment_bytes = segment_bytes
        self._files = files or Files()
        self._control = control
        self._lock = threading.Lock()
        #: Held while a file is synced or closed, so that neither happens during the other.
        self._sync_lock = threading.Lock()
        self._failed: SqlError | None = None
        #: The segment that takes appends; none before the first append, so that a full disk can still be opened.
        self._current: Segment | None = None
        folder.mkdir(parents=True, exist_ok=True)
        self._pool = SegmentPool(folder, segment_bytes, pool, self._files)
        self._segments: list[Segment] = []
        self._open_segments()

    @property
    def last_lsn(self) -> int:
        """The LSN of the last commit in the log, 0 when it never had one."""
        return self._segments[-1].last_lsn if self._segments else 0

    @property
    def first_lsn(self) -> int:
        """All commits with an LSN above this are still in the log."""
        with self._lock:
            return self._segments[0].base_lsn if self._segments else 0

    @property
    def size(self) -> int:
        """Bytes of the live segments (without the pool)."""
        with self._lock:
            return sum(each.end for each in self._segments)

    def append(
        self, entries: Sequence[tuple[Encoded, int]], chains: Sequence[Chain | None] = ()
    ) -> list[Position | SqlError]:
        """Writes records with their LSNs (0 for data); for each where it lies, or why it could not be written.

        Nothing is synced. A record that failed has left nothing behind that recovery would find. Where ``chains`` has
        the records' chains, none is written behind one of its own that failed.
        """
        with self._lock:
            outcome = _Outcome(chains)
            pending: list[tuple[Encoded, int]] = []
            taken = 0
            for place, (encoded, lsn) in enumerate(entries):
                needed = RECORD + encoded.length
                refused = outcome.refusal(place)
                if pending and (refused is not None or not self._fits(taken + needed)):
                    outcome.add(self._write(pending))
                    pending, taken = [], 0
                    refused = refused or outcome.refusal(place)
                if refused is None and not self._fits(taken + needed):
                    refused = self._make_room(needed)
                if refused is not None:
                    outcome.add((refused,))
                    continue
                pending.append((encoded, lsn))
                taken += needed
            outcome.add(self._write(pending))
            return outcome.found

    def append_data(self, encoded: Encoded, rows: int) -> SpoolReference:
        """Writes a batch ahead of its commit and pins it. Raises 53100, 58030."""
        (where,) = self.append(((encoded, 0),))
        if isinstance(where, SqlError):
            raise where
        with self._lock:
            target = self._find(where.segment)
            assert target is not None
        begin_writeback(target.descriptor, where.offset, RECORD + encoded.length)
        return SpoolReference(where.segment, where.offset, rows, encoded.length)

    def unpin(self, references: Sequence[SpoolReference]) -> None:
        """Batches written ahead belong to a commit now (which was appended already), or to nobody."""
        with self._lock:
            for reference in references:
                target = self._find(reference.segment)
                if target is not None:
                    target.pinned.discard(reference.offset)

    def sync(self) -> None:
        """Returns when everything appended before the call is durable.

        After a failure nobody knows what the disk has, so the log refuses to go on (58030 or 53100, until a restart).
        """
        with self._sync_lock:
            with self._lock:
                if self._failed is not None:
                    raise self._failed
                current = self._current
                end = current.end if current is not None else 0
            if current is None:
                return
            try:
                self._files.sync(current.descriptor)
            except OSError as error:
                self._failed = disk_error(error, "sync the log")
                raise self._failed from error
            self._confirm(current, end)

    def _confirm(self, target: Segment, end: int) -> None:
        """The disk has a segment up to there: what is lost of that later is damage."""
        if end > target.durable:
            target.durable = end
            if self._control is not None and target is self._current:
                self._control.log.put(target.number, end)

    def records(self, after: int, upto: int | None = None) -> Iterator[tuple[int, pa.Buffer]]:
        """LSN and payload of the commits in (after, upto] (all above ``after``). Raises 72000 if they were recycled."""
        with self._lock:
            if self._segments and after < self._segments[0].base_lsn:
                raise SqlError("72000", "the rows are no longer in the log")
            chosen = [(each, each.end) for each in self._segments if each.last_lsn > after]
            for each, _ in chosen:
                each.readers += 1
        try:
            for each, end in chosen:
                for found in each.records(each.start_for(after), end):
                    if upto is not None and found.lsn > upto:
                        return
                    if found.lsn > after:
                        yield found.lsn, pa.py_buffer(each.payload(found))
        finally:
            with self._lock:
                for each, _ in chosen:
                    each.readers -= 1

    def read_data(self, reference: SpoolReference) -> pa.Buffer:
        """The payload of a batch written ahead. Raises 72000 if it was recycled."""
        with self._lock:
            target = self._find(reference.segment)
            if target is None:
                raise SqlError("72000", "the rows are no longer in the log")
            target.readers += 1
        try:
            found = next(target.records(reference.offset, target.end))
            return pa.py_buffer(target.payload(found))
        finally:
            with self._lock:
                target.readers -= 1

    def recycle(self, below_lsn: int, note: Callable[[int], bool] = _note_nothing) -> int:
        """Frees the segments that hold only commits below an LSN and no data that a later one needs; how many.

        ``note`` gets the LSN of the last commit in these segments before any of them goes, and none goes where it
        returns False. Segments that become free meanwhile stay: nothing was noted of them.
        """
        with self._lock:
            chosen = [*takewhile(lambda each: self._is_free(each, below_lsn), self._segments[:-1])]
        if not chosen or not note(chosen[-1].last_lsn):
            return 0
        with self._sync_lock:
            freed: list[Segment] = []
            with self._lock:
                for each in chosen:
                    if each.readers or self._segments[:1] != [each]:  # a reader came, or another thread freed it
                        break
                    freed.append(self._segments.pop(0))
            for each in freed:
                self._pool.retire(each)
            if freed:
                sync_folder(self._folder)
            return len(freed)

    def close(self) -> None:
        """Closes the files, syncing nothing."""
        with self._sync_lock, self._lock:
            for each in self._segments:
                each.close()
            self._segments, self._current = [], None
            self._failed = SqlError("57P01", "the log is closed")

    def _open_segments(self) -> None:
        for path in sorted(self._folder.glob("*.log")):
            self._segments.append(layout.open_segment(path))
        for each, successor in zip_longest(self._segments, self._segments[1:]):
            self._scan(each, successor)
        self._require_end()
        if self._segments:  # a process that died may have left its last records to the operating system
            self._files.sync(self._segments[-1].descriptor)
        if self._segments and self._control is not None:
            self._control.log.put(self._segments[-1].number, self._segments[-1].end)

    def _require_end(self) -> None:
        """Raises XX001 where the log ends before the end that was confirmed."""
        mark = None if self._control is None else self._control.log.found
        if mark is None:
            return
        last = self._segments[-1] if self._segments else None
        if mark.file and (last is None or last.number < mark.file):
            raise _shorter(f"{layout.segment_name(mark.file)} is missing")
        held = self._find(mark.file)
        if held is not None and held.end < mark.end:
            raise _shorter(f"{held.path.name} had {mark.end} bytes, and the record at offset {held.end} is damaged")

    def _scan(self, scanned: Segment, successor: Segment | None) -> None:
        for found, payload in scanned.scan(None if successor is None else successor.predecessor_end):
            scanned.note(found.lsn, found.offset, found.end)
            if found.kind == Kind.COMMIT_OF_DATA:
                self._note_need(decode_references(pa.py_buffer(bytes(payload))), found.lsn)
        if successor is None:
            return
        if successor.number != scanned.number + 1:
            raise corrupted(f"no segment between {scanned.path.name} and {successor.path.name}")
        if (scanned.end, scanned.last_lsn) != (successor.predecessor_end, successor.base_lsn):
            raise corrupted(f"{scanned.path.name} ends at offset {scanned.end}, not {successor.predecessor_end}")

    def _fits(self, needed: int) -> bool:
        return self._current is not None and self._current.end + needed <= self._current.size

    def _make_room(self, needed: int) -> SqlError | None:
        """Goes on to a new segment; a record that is larger than a segment gets a file of its own size."""
        if self._failed is not None:
            return self._failed
        if self._current is not None:
            try:
                self._files.sync(self._current.descriptor)
            except OSError as error:
                self._failed = disk_error(error, "sync the log")
                return self._failed
        try:
            last = self._segments[-1] if self._segments else None
            self._current = self._pool.create(last, max(self._segment_bytes, HEADER + needed))
        except OSError as error:
            return disk_error(error, "write to the log")
        self._segments.append(self._current)
        if self._control is not None:
            self._control.log.put(self._current.number, HEADER)
        return None

    def _write(self, entries: Sequence[tuple[Encoded, int]]) -> list[Position | SqlError]:
        if not entries:
            return []
        if self._failed is not None:
            return [self._failed] * len(entries)
        target = self._current
        assert target is not None
        pieces: list[bytes | memoryview] = []
        for encoded, lsn in entries:
            pieces.append(layout.pack_record(target.number, lsn, encoded.kind, encoded.length, encoded.crc))
            pieces += encoded.pieces
        total = sum(RECORD + encoded.length for encoded, _ in entries)
        end = target.end + total
        if end > target.filled:
            fill = layout.fill(total, end, target.size)
            pieces.append(fill)
            target.filled = end + len(fill)
        try:
            self._files.write(target.descriptor, pieces if total > _JOIN_BELOW else (b"".join(pieces),), target.end)
        except OSError as error:
            self._erase(target)
            return [disk_error(error, "write to the log")] * len(entries)
        return [self._note(target, encoded, lsn) for encoded, lsn in entries]

    def _note(self, target: Segment, encoded: Encoded, lsn: int) -> Position:
        where = Position(target.number, target.end)
        target.note(lsn, where.offset, where.offset + RECORD + encoded.length)
        if encoded.kind is Kind.DATA:
            target.pinned.add(where.offset)
        elif encoded.references:
            self._note_need(encoded.references, lsn)
        return where

    def _erase(self, target: Segment) -> None:
        """Makes sure that recovery does not find a record whose writer was told that it failed."""
        try:
            self._files.write(target.descriptor, (bytes(min(RECORD, target.size - target.end)),), target.end)
        except OSError as error:
            self._failed = disk_error(error, "write to the log")

    def _note_need(self, references: Sequence[SpoolReference], lsn: int) -> None:
        for number in {reference.segment for reference in references}:
            holder = self._find(number)
            if holder is not None:
                holder.needed_by = max(holder.needed_by, lsn)

    def _find(self, number: int) -> Segment | None:
        at = number - self._segments[0].number if self._segments else -1
        return self._segments[at] if 0 <= at < len(self._segments) else None

    def _is_free(self, segment: Segment, below_lsn: int) -> bool:
        unused = max(segment.last_lsn, segment.needed_by) < below_lsn
        return unused and not segment.pinned and segment.readers == 0


def _shorter(what: str) -> SqlError:
    """XX001 for a log that ends before what was acknowledged."""
    error = corrupted(what)
    error.hint = f'{error.hint} To continue without the records after that, delete the file "control".'
    return error
