"""A stream while its server runs: its rows by LSN interval, and when the last ones came.

Owns: the two kinds of feed behind a stream. Rows that clients send lie in a ring (executor/trace/ring); a stream that
Spark feeds from a folder has only the names of the files that arrived, each with its record's LSN (its rows never pass
through the server unless the embedded engine alone must read them).
"""

from __future__ import annotations

import threading
from bisect import bisect_right
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import pyarrow as pa

from catalog.objects import Stream
from executor.commit.records import FilesArrived
from executor.sources import read_files
from executor.trace.ring import Ring


class Feed(Protocol):
    """A stream's rows by LSN interval (after exclusive, upto inclusive)."""

    def rows(self, after: int, upto: int) -> int:
        """How many rows the interval holds; for files at least 1 when it holds any."""
        ...

    def delta(self, after: int, upto: int) -> pa.Table:
        """The rows, with ``__lsn`` and ``__ordinal``."""
        ...

    def release(self, upto: int) -> None:
        """Nobody will ask for rows up to this LSN any more."""
        ...


@dataclass(frozen=True, slots=True)
class ArrivedFiles:
    """Files of one log record."""

    lsn: int
    files: tuple[tuple[str, int, int], ...]


class FileFeed:
    """The files that arrived in a folder, in LSN order."""

    def __init__(self, stream: Stream) -> None:
        self._stream = stream
        self._arrived: list[ArrivedFiles] = []
        self._lock = threading.Lock()

    def arrive(self, lsn: int, part: FilesArrived) -> None:
        """Adds a record's files."""
        with self._lock:
            self._arrived.append(ArrivedFiles(lsn, part.files))

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
        """The log keeps names that are needed; which files are known is asked of the log's owner."""


@dataclass(slots=True)
class StreamRuntime:
    """One stream. ``last_arrival`` is by the monotonic clock; ``total_rows`` counts since the server started."""

    stream: Stream
    schema: pa.Schema
    feed: Feed
    last_lsn: int = 0
    last_arrival: float = 0.0
    total_rows: int = 0
    error: str | None = None

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


