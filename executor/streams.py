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
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import pyarrow as pa

from catalog.objects import Stream
from executor.commit.records import FilesArrived, Spooled, StreamRows
from executor.sources import read_files
from executor.trace.ring import Ring

#: What brings a stream rows.
Arrival = StreamRows | Spooled | FilesArrived


class Feed(Protocol):
    """A stream's rows by LSN interval (after exclusive, upto inclusive)."""

    def rows(self, after: int, upto: int) -> int:
        """How many rows the interval holds; for files at least 1 when it holds any."""
        ...

    def delta(self, after: int, upto: int) -> pa.Table:
        """The rows, with ``__lsn`` and ``__ordinal``."""
        ...

    def publish(self, lsn: int, part: Any) -> int:
        """Adds a part of a record, in LSN order; how many rows it has, as far as known."""
        ...

    def release(self, upto: int) -> None:
        """Nobody will ask for rows up to this LSN any more."""
        ...


@dataclass(frozen=True, slots=True)
class ArrivedFiles:
    """Files of one log record: (path, size in bytes, mtime in ns) each."""

    lsn: int
    files: tuple[tuple[str, int, int], ...]


class FileFeed:
    """The files that arrived in a folder, in LSN order, kept in a file of their own beyond the log's life."""

    def __init__(self, stream: Stream, store: Path) -> None:
        """``store`` is where the names outlive the log: JSON lines of [lsn, files]."""
        self._stream = stream
        self._store = store
        self._lock = threading.Lock()
        self._arrived = _read_store(store)
        self._stored = len(self._arrived)

    def publish(self, lsn: int, part: FilesArrived) -> int:
        """Adds a record's files; a record that is known already is passed over."""
        with self._lock:
            if not self._arrived or lsn > self._arrived[-1].lsn:
                self._arrived.append(ArrivedFiles(lsn, part.files))
        return 0

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
        """Bytes over 100, a row's usual size: files are not opened to count them."""
        return sum(max(1, size // 100) for item in self.files(after, upto) for _, size, _ in item.files)

    def delta(self, after: int, upto: int) -> pa.Table:
        """The rows, read by this process."""
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
                    file.write("".join(json.dumps([item.lsn, item.files]) + "\n" for item in fresh).encode())
                    file.flush()
                    os.fsync(file.fileno())
                except OSError:
                    os.truncate(self._store, size)  # what is written next must not follow half a line
                    raise
            self._stored += len(fresh)


def _read_store(path: Path) -> list[ArrivedFiles]:
    """The stored records; a line that a crash cut short is still in the log."""
    if not path.exists():
        return []
    found = []
    for line in path.read_text(encoding="utf-8").splitlines(keepends=True):
        if not line.endswith("\n"):
            path.write_text("".join(path.read_text(encoding="utf-8").splitlines(keepends=True)[:-1]), encoding="utf-8")
            break
        lsn, files = json.loads(line)
        found.append(ArrivedFiles(lsn, tuple((name, size, mtime) for name, size, mtime in files)))
    return found


@dataclass(slots=True)
class StreamRuntime:
    """One stream. ``last_arrival`` is by the monotonic clock."""

    stream: Stream
    schema: pa.Schema
    feed: Feed
    last_lsn: int = 0
    last_arrival: float = 0.0
    error: str | None = None

    @property
    def total_rows(self) -> int:
        """Rows since the server started; files' rows are not counted."""
        return self.feed.total_rows if isinstance(self.feed, Ring) else 0

    @property
    def buffered_rows(self) -> int:
        """Rows in memory."""
        return self.feed.buffered_rows if isinstance(self.feed, Ring) else 0

    @property
    def buffered_bytes(self) -> int:
        """Bytes in memory."""
        return self.feed.bytes if isinstance(self.feed, Ring) else 0


def is_followed(stream: Stream) -> bool:
    """Whether a folder feeds the stream."""
    return stream.option("source") == "files"


def folder_of(stream: Stream) -> Path:
    """The folder that a file-fed stream follows."""
    return Path(stream.option("path"))


def file_format(stream: Stream) -> str:
    """parquet, csv or json."""
    return stream.option("format", "parquet")
