"""A stream while its server runs: its rows by LSN interval, and when the last ones came.

Owns: the two kinds of feed behind a stream. Rows that clients send lie in a ring (executor/trace/ring); a stream that
Spark feeds from a folder has only the names of the files that arrived, each with its record's LSN (its rows never pass
through the server unless the embedded engine alone must read them).
"""

from __future__ import annotations

import json
import os
import threading
from bisect import bisect_right
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final, Protocol

import pyarrow as pa
from msgspec import Struct

from catalog.errors import SqlError
from catalog.objects import Stream
from executor.commit.records import FilesArrived, RowValues, Spooled, StreamRows
from executor.files.following import SourceFile, count_rows, read_files
from executor.trace.layout import Layout, home_of
from executor.trace.ring import Ring

#: A usual row's size, until more is known.
ROW_BYTES: Final = 100

#: What brings a stream rows.
Arrival = StreamRows | RowValues | Spooled | FilesArrived


class Feed(Protocol):
    """A stream's rows by LSN interval (after exclusive, upto inclusive)."""

    @property
    def total_rows(self) -> int:
        """Rows so far."""
        ...

    def rows(self, after: int, upto: int) -> int:
        """How many rows the interval holds; for files at least 1 when it holds any."""
        ...

    def delta(self, after: int, upto: int, places: bool = True) -> pa.Table:
        """The rows, with ``__lsn`` and ``__ordinal``, which may be null where the caller does not want ``places``."""
        ...

    def publish(self, lsn: int, part: Any) -> int:
        """Adds a part of a record, in LSN order; how many rows it has, as far as known."""
        ...

    def release(self, upto: int) -> None:
        """Nobody will ask for rows up to this LSN any more."""
        ...


class ArrivedFiles(Struct, frozen=True):
    """Files of one log record: (path, size in bytes, mtime in ns) each."""

    lsn: int
    files: tuple[tuple[str, int, int], ...]


class FileFeed:
    """The files that arrived in a folder, in LSN order, kept in a file of their own beyond the log's life."""

    def __init__(self, stream: Stream, store: Path) -> None:
        """``store`` is where the names outlive the log: JSON lines of [lsn, files, rows of each]."""
        self._stream = stream
        self._store = store
        self._lock = threading.Lock()
        self._arrived, self._counts = _read_store(store)
        self._stored = len(self._arrived)

    def publish(self, lsn: int, part: FilesArrived) -> int:
        """Adds a record's files; a record that is known already is passed over."""
        with self._lock:
            if not self._arrived or lsn > self._arrived[-1].lsn:
                self._arrived.append(ArrivedFiles(lsn, part.files))
        return 0

    @property
    def total_rows(self) -> int:
        """Rows of all files that arrived, as far as they could be counted."""
        with self._lock:
            names = [path for item in self._arrived for path, _, _ in item.files]
            return sum(self._counts.get(path, 0) for path in names)

    @property
    def last_lsn(self) -> int:
        """The LSN of the last arrival; 0 before the first."""
        with self._lock:
            return self._arrived[-1].lsn if self._arrived else 0

    def count(self, arriving: Sequence[SourceFile]) -> None:
        """Counts the rows of files that are about to arrive, and of those that a crash left uncounted."""
        with self._lock:
            names = {path for item in self._arrived[self._stored :] for path, _, _ in item.files}
            missing = (names | {path for path, _, _ in arriving}) - self._counts.keys()
        counts = {path: count_rows(path, self._stream) for path in missing}
        with self._lock:
            self._counts |= {path: rows for path, rows in counts.items() if rows is not None}

    def known(self, durable: int) -> dict[str, tuple[int, int]]:
        """Size and mtime of every file that ever arrived, by path.

        A file whose rows every view has durably, up to LSN ``durable``, may have been cleared away since.
        """
        with self._lock:
            return {
                path: (size, mtime)
                for item in self._arrived
                for path, size, mtime in item.files
                if item.lsn > durable or os.path.exists(path)
            }

    def files(self, after: int, upto: int) -> tuple[ArrivedFiles, ...]:
        """The records of an interval."""
        with self._lock:
            lsns = [item.lsn for item in self._arrived]
            return tuple(self._arrived[bisect_right(lsns, after) : bisect_right(lsns, upto)])

    def rows(self, after: int, upto: int) -> int:
        """Counted when the file arrived; by its size where it could not be."""
        files = [file for item in self.files(after, upto) for file in item.files]
        with self._lock:
            return sum(max(1, self._counts.get(path, size // ROW_BYTES)) for path, size, _ in files)

    def delta(self, after: int, upto: int, places: bool = True) -> pa.Table:
        """The rows, read by this process; their places come with them."""
        parts = [read_files(item.files, self._stream, item.lsn) for item in self.files(after, upto)]
        return pa.concat_tables(parts)

    def release(self, upto: int) -> None:
        """The log may forget records up to this LSN, so their names go to the store."""
        with self._lock:
            fresh = [item for item in self._arrived[self._stored :] if item.lsn <= upto]
            if not fresh:
                return
            self._store.parent.mkdir(parents=True, exist_ok=True)
            with open(self._store, "ab") as file:
                size = file.tell()
                try:
                    file.write("".join(self._line(item) for item in fresh).encode())
                    file.flush()
                    os.fsync(file.fileno())
                except OSError:
                    os.truncate(self._store, size)  # what is written next must not follow half a line
                    raise
            self._stored += len(fresh)

    def _line(self, item: ArrivedFiles) -> str:
        counts = [self._counts.get(path) for path, _, _ in item.files]
        return json.dumps([item.lsn, item.files, counts]) + "\n"


def _read_store(path: Path) -> tuple[list[ArrivedFiles], dict[str, int]]:
    """The stored records and files' rows; a line that a crash cut short is still in the log."""
    found: list[ArrivedFiles] = []
    counts: dict[str, int] = {}
    if not path.exists():
        return found, counts
    for line in path.read_text(encoding="utf-8").splitlines(keepends=True):
        if not line.endswith("\n"):
            path.write_text("".join(path.read_text(encoding="utf-8").splitlines(keepends=True)[:-1]), encoding="utf-8")
            break
        lsn, files, rows = json.loads(line)
        counts |= {file[0]: number for file, number in zip(files, rows, strict=True) if number is not None}
        found.append(ArrivedFiles(lsn, tuple((name, size, mtime) for name, size, mtime in files)))
    return found, counts


class StreamRuntime(Struct):
    """One stream. ``last_arrival`` is by the monotonic clock."""

    stream: Stream
    schema: pa.Schema
    feed: Feed
    last_lsn: int = 0
    last_arrival: float = 0.0
    error: str | None = None
    is_dropped: bool = False
    #: Set when rows arrive: of the queries that read the stream itself.
    waiting: tuple[threading.Event, ...] = ()
    #: Bytes of a row in memory, as last seen; a usual row's before that.
    _row_bytes: int = ROW_BYTES

    def alter(self, stream: Stream) -> None:
        """The stream is defined otherwise."""
        if stream.layout != self.stream.layout or stream.columns != self.stream.columns:
            layout = Layout.of(stream)
            self.schema = layout.shown
            if isinstance(self.feed, Ring):
                self.feed.lay_out(layout)
        self.stream = stream

    def arrived(self, lsn: int, now: float) -> None:
        """Rows were published."""
        self.last_lsn, self.last_arrival = lsn, now
        for event in self.waiting:
            event.set()

    def dropped(self) -> None:
        """The stream is no more."""
        self.is_dropped = True
        for event in self.waiting:
            event.set()

    @property
    def total_rows(self) -> int:
        """Rows since the server started; of a followed folder, of all files that ever arrived."""
        return self.feed.total_rows

    @property
    def buffered_rows(self) -> int:
        """Rows in memory."""
        return self.feed.buffered_rows if isinstance(self.feed, Ring) else 0

    @property
    def buffered_bytes(self) -> int:
        """Bytes in memory."""
        return self.feed.bytes if isinstance(self.feed, Ring) else 0

    def backlog(self, after: int, upto: int) -> int:
        """Bytes that the rows of an interval take in memory, about; a followed folder's take none."""
        rows = rows_between(self.feed, after, upto) if isinstance(self.feed, Ring) else 0
        if rows and self.buffered_rows:
            self._row_bytes = max(1, self.buffered_bytes // self.buffered_rows)
        return rows * self._row_bytes


def rows_between(feed: Feed, after: int, upto: int) -> int:
    """How many rows an interval holds; none if ``after`` was passed by and its rows released since it was read, or is
    that of a view created since ``upto`` was."""
    try:
        return feed.rows(after, max(after, upto))
    except SqlError:
        return 0


def is_followed(stream: Stream) -> bool:
    """Whether a folder feeds the stream."""
    return stream.option("source") == "files"


def fed_otherwise(stream: Stream, what: str) -> SqlError:
    """42809 for rows of clients to a stream that gets them from elsewhere."""
    home = home_of(stream)
    if home:
        return SqlError("42809", f'stream "{stream.name}" is filled on server "{home}" and takes no {what} here')
    return SqlError("42809", f'stream "{stream.name}" is fed from files and takes no {what}')


def folder_of(stream: Stream) -> Path:
    """The folder that a file-fed stream follows."""
    return Path(stream.option("path"))


def file_format(stream: Stream) -> str:
    """parquet, csv or json."""
    return stream.option("format", "parquet")
