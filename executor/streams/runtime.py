"""A stream while its server runs: its rows by LSN interval, and when the last ones came.

Owns: what the two kinds of feed behind a stream have in common. Rows that clients send lie in a ring
(executor/traces/ring); a stream that follows a folder has only the names of the files that arrived
(executor/files/arrived_files).
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
from msgspec import Struct

from catalog.objects import Stream
from catalog.values.errors import SqlError
from executor.commit.records import FilesArrived, RowValues, Spooled, StreamRows
from executor.files.arrived_files import ROW_BYTES, FileFeed
from executor.traces.history import BEGINNING, History
from executor.traces.layout import Layout, home_of
from executor.traces.ring import Ring
from executor.traces.trace import InputTrace

_LOGGER = logging.getLogger(__name__)

#: What brings a stream rows.
Arrival = StreamRows | RowValues | Spooled | FilesArrived


class StreamRuntime(Struct):
    """One stream. ``last_arrival`` is by the monotonic clock."""

    stream: Stream
    schema: pa.Schema
    feed: InputTrace
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
        if isinstance(self.feed, FileFeed):
            self.feed.alter(stream)
        self.stream = stream

    @property
    def history(self) -> History | None:
        """The rows that are kept on storage; None for a stream that keeps none."""
        return self.feed.history if isinstance(self.feed, Ring) else None

    def kept(self, upto: int, names: Sequence[str]) -> pa.Table:
        """Some columns of the rows that are kept up to an LSN. Raises XX001."""
        assert isinstance(self.feed, Ring)
        return self.feed.delta(BEGINNING, upto, False, names).select(names)

    def keep(self, history: History | None) -> None:
        """Rows are kept there from now on, and no longer where they were kept."""
        assert isinstance(self.feed, Ring)
        before, self.feed.history = self.feed.history, history
        if before is not None:
            before.drop()

    def arrived(self, lsn: int, now: float) -> None:
        """Rows were published."""
        self.last_lsn, self.last_arrival = lsn, now
        for event in self.waiting:
            event.set()

    def stands(self, why: str | None) -> bool:
        """Notes ``why`` no rows come, or views cannot read those that have; None where nothing is in the way. Logs it
        the first time. Whether it was so and is over, so that what failed by it is worth another try."""
        before, self.error = self.error, why
        if why is not None and before is None:
            _LOGGER.warning('stream "%s" is stopped: %s', self.stream.name, why)
        return why is None and before is not None

    def dropped(self) -> None:
        """The stream is no more."""
        self.is_dropped = True
        if isinstance(self.feed, Ring):
            self.feed.close()
            self.keep(None)
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

    def backlog(self, after: int) -> int:
        """About how many bytes the rows above an LSN take in memory; those of a followed folder take none."""
        if not isinstance(self.feed, Ring):
            return 0
        rows = self.feed.rows_after(after)
        if rows:
            self._row_bytes = self.feed.row_bytes or self._row_bytes
        return rows * self._row_bytes


def rows_between(feed: InputTrace, after: int, upto: int) -> int:
    """How many rows an interval holds; none if ``after`` was passed by and its rows released since it was read, or is
    that of a view created since ``upto`` was."""
    try:
        return feed.rows(after, max(after, upto))
    except SqlError:
        return 0


def is_followed(stream: Stream) -> bool:
    """Whether a folder feeds the stream, at the server whose own it is."""
    return stream.option("source") == "files"


def fed_otherwise(stream: Stream, what: str) -> SqlError:
    """42809 for rows of clients to a stream that gets them from elsewhere."""
    home = home_of(stream)
    if home:
        return SqlError("42809", f'stream "{stream.name}" is filled on server "{home}" and accepts no {what} here')
    return SqlError("42809", f'stream "{stream.name}" is filled from files and accepts no {what}')


def folder_of(stream: Stream) -> Path:
    """The folder that a file-fed stream follows."""
    return Path(stream.option("path"))


def file_format(stream: Stream) -> str:
    """parquet, csv or json."""
    return stream.option("format", "parquet")
