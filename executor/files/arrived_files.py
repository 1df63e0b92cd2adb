"""The files that have arrived in a stream's folder: their names by LSN. Their rows are read on demand.

Owns: the names, in memory and in a file that outlives the log's records of them. Rows never pass through the server
unless the embedded engine alone must read them. At a server that has another one's stream (executor/moving) these are
the names that the other one has found, in the same folder, and rows have their places there.

    files.jsonl    a record a line (executor/commit/checked_lines), in LSN order: [lsn, [[path, size, mtime], ...],
                   [rows, ...]], and behind these the place of the rows, where it is another LSN

Lines of records that the log has forgotten are nowhere else. How many these are is noted before it forgets them
(executor/core/recycled_log); where one of them is missing, no file can be told from those that have arrived, and
the stream stands still with an error.
"""

from __future__ import annotations

import os
import threading
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
from msgspec import Struct

from catalog.objects import Stream
from catalog.os_errors import state_of
from catalog.values.errors import SqlError
from executor.commit.checked_lines import End, add_lines, read_lines
from executor.commit.files import replace_file
from executor.commit.records import FilesArrived
from executor.files.converted_files import ConvertedFiles, are_exact
from executor.files.followed_folders import SourceFile, verify
from executor.files.reader import numbered, read_file
from executor.files.rejected_lines import LastLines, RejectedLines

#: A usual row's size, until more is known.
ROW_BYTES: Final = 100


class ArrivedFiles(Struct, frozen=True):
    """Files of one log record, and how many rows each has (None: not known). ``place`` is the LSN that the rows have:
    the record's, or that of another server's record."""

    lsn: int
    files: tuple[SourceFile, ...] = ()
    rows: tuple[int | None, ...] = ()
    place: int = 0

    def and_then(self, parts: Iterable[FilesArrived]) -> ArrivedFiles:
        """These, and those of records behind it, as if they had come at once."""
        files, rows = list(self.files), list(self.rows)
        for part in parts:
            files += part.files
            rows += _counts(part)
        return ArrivedFiles(self.lsn, tuple(files), tuple(rows), self.place)


class RefusedFile(Struct, frozen=True):
    """A file that does not fit its stream, and why."""

    file: SourceFile
    error: SqlError

    def raised(self) -> SqlError:
        """What a read raises: each its own, since an error that is raised again and again keeps the frames of all."""
        error = self.error
        hint = "The stream continues once the file is replaced or removed."
        return SqlError(error.sqlstate, error.message, error.detail, hint, where=error.where)


class FileFeed:
    """The files that arrived in a folder, in LSN order."""

    def __init__(self, stream: Stream, store: Path, converted: Path | None = None, noted: End | None = None) -> None:
        """``store`` is where the names outlive the log, and ``noted`` how much of that the log has forgotten;
        ``converted`` is a folder for what both engines read."""
        self._stream = stream
        self._store = store
        self._converted = ConvertedFiles(store.parent / "converted" if converted is None else converted)
        #: Files that do not fit the stream, and why: they have not arrived.
        self.refused: tuple[RefusedFile, ...] = ()
        #: The number of rows of each file that fits the stream and that the log does not name yet.
        self._fitting: dict[SourceFile, int] = {}
        #: The lines of such files that are no rows, and those of files that have arrived.
        self._rejected: dict[SourceFile, LastLines] = {}
        self.rejected = RejectedLines(store.with_name("rejected.json"))
        #: The stream as it was when these files were read.
        self._read_as = stream
        #: Why the last look at the folder found less than all rows.
        self.trouble: str | None = None
        self._lock = threading.Lock()
        #: Why it is not known which files have arrived; XX001.
        self.damage: SqlError | None = None
        found = _read_store(store, noted)
        if found is None:
            self.damage, found = _damaged(stream, store), ([], [])
        #: What has arrived; of the first of these, which are stored, where each one's line ends.
        self._arrived, self._ends = found

    def alter(self, stream: Stream) -> None:
        """The stream is defined otherwise."""
        self._stream = stream

    def require_names(self) -> None:
        """Raises XX001 where it is not known which files have arrived."""
        if self.damage is not None:
            raise replace(self.damage)

    def publish(self, lsn: int, part: FilesArrived) -> int:
        """Adds a part of a record; one that is known already is passed over."""
        item = ArrivedFiles(lsn, part.files, _counts(part), part.place or lsn)
        with self._lock:
            if not self._arrived or (lsn, item.place) > (self._arrived[-1].lsn, self._arrived[-1].place):
                self._arrived.append(item)
        return 0

    @property
    def total_rows(self) -> int:
        """Rows of all files that arrived, as far as they could be counted."""
        with self._lock:
            return sum(rows or 0 for item in self._arrived for rows in item.rows)

    @property
    def last_lsn(self) -> int:
        """The LSN of the last arrival; 0 before the first."""
        with self._lock:
            return self._arrived[-1].lsn if self._arrived else 0

    def known(self, durable: int) -> dict[str, tuple[int, int]]:
        """Size and mtime of every file that ever arrived, by path. Raises XX001.

        A file whose rows every view has durably, up to LSN ``durable``, may have been cleared away since.
        """
        self.require_names()
        with self._lock:
            return {
                path: (size, mtime)
                for item in self._arrived
                for path, size, mtime in item.files
                if item.lsn > durable or os.path.exists(path)
            }

    def files(self, after: int, upto: int) -> tuple[ArrivedFiles, ...]:
        """The records of an interval. Raises XX001."""
        self.require_names()
        with self._lock:
            lsns = [item.lsn for item in self._arrived]
            return tuple(self._arrived[bisect_right(lsns, after) : bisect_right(lsns, upto)])

    def intact_since(self) -> int:
        """The LSN of the last record with a file that is gone or changed; where all files are as they arrived, an LSN
        below all records (what a stream begins with has LSN 0)."""
        self.require_names()
        with self._lock:
            arrived = tuple(self._arrived)
        for item in reversed(arrived):
            if not all(map(_is_intact, item.files)):
                return item.lsn
        return -1 if arrived and arrived[0].lsn == 0 else 0

    def before(self, place: int) -> ArrivedFiles:
        """All files whose rows have places up to an LSN, as what a stream begins with that goes on elsewhere."""
        with self._lock:
            found = [item for item in self._arrived if item.place <= place]
        files = tuple(file for item in found for file in item.files)
        return ArrivedFiles(0, files, tuple(rows for item in found for rows in item.rows))

    def rows(self, after: int, upto: int) -> int:
        """Counted when the file arrived; by its size where it could not be."""
        counted = (pair for item in self.files(after, upto) for pair in zip(item.files, item.rows, strict=True))
        return sum(max(1, size // ROW_BYTES if rows is None else rows) for (_, size, _), rows in counted)

    def cut(self, after: int, upto: int) -> int:
        """A job takes all files that are there."""
        return upto

    def delta(self, after: int, upto: int, places: bool = True) -> pa.Table:
        """The rows, read by this process; their places come with them."""
        return pa.concat_tables(self.tables(after, upto))

    def tables(self, after: int, upto: int) -> Iterator[pa.Table]:
        """The same, a file at a time."""
        for item in self.files(after, upto):
            for place, file in enumerate(item.files):
                verify(file, self._stream.name)
                table = self._converted.read(file, self._stream)
                if table is None:
                    table = read_file(file[0], self._stream, self._stream.columns)
                yield numbered(table, item.place, place)

    def are_exact(self, after: int, upto: int) -> bool:
        """Whether Spark may read the files of an interval as they are."""
        return are_exact((file for item in self.files(after, upto) for file in item.files), self._stream)

    def check(self) -> None:
        """Raises why a file in the folder is none of the stream's: without its rows nothing is up to date."""
        for item in self.refused:
            raise item.raised()

    def take(self, found: Sequence[SourceFile]) -> FilesArrived | None:
        """``review``, and the files that fit as a record's part."""
        self.review(found)
        if not self._fitting:
            return None
        files, counts = tuple(self._fitting), tuple(self._fitting.values())
        self.rejected.note({file: self._rejected.pop(file) for file in files if file in self._rejected})
        return FilesArrived(self._stream.oid, files, self._stream.option("format", "parquet"), counts)

    def review(self, found: Sequence[SourceFile]) -> None:
        """Reads through the files among these that are new, or were read for another definition of the stream.

        ``refused`` has those that do not fit the stream from now on, and no file any more that has been mended or is
        gone. Raises 53000, 58030.
        """
        stream = self._stream
        is_same = self._read_as is stream
        refused = {item.file: item for item in self.refused if is_same and item.file in found}
        fitting: dict[SourceFile, int] = {}
        for file in found:
            if file in refused:
                continue
            try:
                known = self._fitting.get(file) if is_same else None
                fitting[file] = self._rows_of(file, stream) if known is None else known
            except FileNotFoundError:
                continue
            except OSError as error:
                message = f'could not read file "{file[0]}" of stream "{stream.name}": {error.strerror or error}'
                raise SqlError(state_of(error), message) from None
            except SqlError as error:
                if error.sqlstate != "58P01":  # else it changes while it is read: the next look finds it again
                    refused[file] = RefusedFile(file, error)
        self.refused, self._fitting, self._read_as = tuple(refused.values()), fitting, stream
        self._rejected = {file: lines for file, lines in self._rejected.items() if file in fitting}

    def _rows_of(self, file: SourceFile, stream: Stream) -> int:
        rejected = LastLines()
        rows = self._converted.convert(file, stream, rejected.add)
        verify(file, stream.name)
        self._rejected[file] = rejected
        return rows

    def clear(self, durable: int) -> None:
        """The views have all rows up to an LSN, so that only the files of later ones are kept converted, and those
        that the log does not name yet."""
        with self._lock:
            needed = [file for item in self._arrived if item.lsn > durable for file in item.files]
        self._converted.keep((*needed, *self._fitting), self._stream)

    @property
    def stored_lsn(self) -> int:
        """Above which LSN the log may have names that the store has not."""
        with self._lock:  # a crash may have cut short the names of one record
            return max(0, self._arrived[len(self._ends) - 1].lsn - 1) if self._ends else 0

    def stored_end(self, upto: int) -> End:
        """Where the store's names of records up to an LSN end."""
        with self._lock:
            stored = bisect_right(self._arrived, upto, hi=len(self._ends), key=lambda item: item.lsn)
            return self._ends[stored - 1] if stored else End()

    def release(self, upto: int) -> None:
        """The log may forget records up to this LSN, so their names go to the store."""
        with self._lock:
            fresh = [item for item in self._arrived[len(self._ends) :] if item.lsn <= upto]
            if not fresh or self.damage is not None:
                return
            before = self._ends[-1] if self._ends else End()
            data, ends = add_lines(before, map(_document, fresh))
            self._store.parent.mkdir(parents=True, exist_ok=True)
            with open(self._store, "ab") as file:
                try:
                    file.write(data)
                    file.flush()
                    os.fsync(file.fileno())
                except OSError:
                    os.truncate(self._store, before.length)  # what is written next must not follow half a line
                    raise
            self._ends += ends


def _is_intact(file: SourceFile) -> bool:
    try:
        verify(file, "")
    except SqlError:
        return False
    return True


def begin_store(path: Path, arrived: ArrivedFiles) -> End:
    """Writes what a stream begins with; how long that is. Raises OSError."""
    path.parent.mkdir(parents=True, exist_ok=True)
    data, (end,) = add_lines(End(), (_document(arrived),))
    replace_file(path, data)
    return end


def _counts(part: FilesArrived) -> tuple[int | None, ...]:
    return part.rows or (None,) * len(part.files)  # earlier versions have not logged them


def _document(item: ArrivedFiles) -> list[object]:
    places = () if item.place == item.lsn else (item.place,)
    return [item.lsn, item.files, item.rows, *places]


def _read_store(path: Path, noted: End | None) -> tuple[list[ArrivedFiles], list[End]] | None:
    """The stored records, and where each one's line ends; None where some of those that are ``noted`` are missing.
    Those behind are still in the log, so a line that is none ends the file. One of an earlier version is written
    anew."""
    found = read_lines(path.read_bytes() if path.exists() else b"")
    if noted not in (None, End()) and (found.is_plain or noted not in found.ends):
        return None
    arrived, ends = [_arrived(*document) for document in found.documents], list(found.ends)
    if found.is_plain:
        data, ends = add_lines(End(), map(_document, arrived))
        replace_file(path, data)
    elif path.exists():
        os.truncate(path, found.end.length)
    return arrived, ends


def _arrived(lsn: int, files: list[list[Any]], rows: list[int | None], *place: int) -> ArrivedFiles:
    named = tuple((name, size, mtime) for name, size, mtime in files)
    return ArrivedFiles(lsn, named, tuple(rows), place[0] if place else lsn)


def _damaged(stream: Stream, store: Path) -> SqlError:
    what = "is damaged" if store.exists() else "is missing"
    path = "/".join(store.parts[-3:])
    message = f'which files have arrived in stream "{stream.name}" is not known: "{path}" {what}'
    return SqlError("XX001", message, hint="Restore the file, or drop the stream and create it again.")
