"""Files that feed a stream: which files of a growing folder have arrived, and whether they are unchanged since.

A file has arrived when it is whole: its size and mtime were equal at two looks, or its mtime is over a second old.
Names that begin with ``_`` or ``.`` are other programs' work in progress. An arrived file must stay as it is. This
module knows nothing of what is in files (``reader``).
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Final, Literal

from msgspec import Struct, field

from catalog.objects import ColumnDefinition, FileTable, Stream
from catalog.os_errors import state_of
from catalog.values.errors import SqlError

#: Path, size in bytes, mtime in nanoseconds.
SourceFile = tuple[str, int, int]
Format = Literal["parquet", "csv", "json"]
#: What files belong to.
Owner = Stream | FileTable


class OwnFiles(Struct, frozen=True):
    """Files as they are, and whose. ``partitions``: columns that are in no file, with their value for each file as the
    column's type writes it.
    """

    owner: Owner
    files: tuple[SourceFile, ...]
    partitions: Mapping[str, tuple[str | None, ...]] = field(default_factory=dict)


#: Bits of __ordinal that number the rows of one file.
ROW_BITS: Final = 40
#: A file that has not changed for so long is whole, in nanoseconds.
SETTLED: Final = 1_000_000_000
_SUFFIXES: Final[Mapping[str, tuple[str, ...]]] = {
    "parquet": (".parquet", ".pq"),
    "csv": (".csv", ".tsv", ".txt"),
    "json": (".json", ".jsonl", ".ndjson"),
}
FORMATS: Final = tuple(_SUFFIXES)
_AS_IT_WAS: Final = "Restore the file."


class FileSource:
    """Follows one folder (not those below it). Holds only what the last look saw of files that were not known."""

    def __init__(self, path: Path, format: str, stream: str, now: Callable[[], int] = time.time_ns) -> None:
        """``format`` decides which suffixes count, ``stream`` is for errors; ``now`` is the clock of mtimes."""
        self._path = path
        self._stream = stream
        self._suffixes = _SUFFIXES[format]
        self._now = now
        self._seen: dict[str, tuple[int, int]] = {}

    def poll(self, known: Mapping[str, tuple[int, int]]) -> list[SourceFile]:
        """Files that have arrived and are not among ``known`` (size and mtime by path), oldest first.

        Raises 58P01 when the folder or a known file is gone, or a known file is no longer what arrived.
        """
        found = self._look()
        for path, recorded in known.items():
            if path not in found:
                raise _vanished(path, self._stream)
            if found[path] != recorded:
                raise _changed(path, self._stream)
        fresh = {path: stat for path, stat in found.items() if path not in known}
        arrived = [(path, *stat) for path, stat in fresh.items() if self._is_whole(path, stat)]
        self._seen = fresh  # also those that have arrived: one that the stream refuses is not known at the next look
        return sorted(arrived, key=lambda item: (item[2], item[0]))

    def require(self) -> None:
        """Raises 58P01 where the folder does not exist, 58030 where it cannot be read."""
        self._look()

    def _look(self) -> dict[str, tuple[int, int]]:
        """Size and mtime of every file that counts."""
        try:
            with os.scandir(self._path) as entries:
                return dict(self._entries(entries))
        except FileNotFoundError:
            raise SqlError("58P01", f'folder "{self._path}" of stream "{self._stream}" does not exist') from None
        except OSError as error:
            message = f'could not read folder "{self._path}" of stream "{self._stream}": {error.strerror}'
            raise SqlError(state_of(error), message) from None

    def _entries(self, entries: Iterator[os.DirEntry[str]]) -> Iterator[tuple[str, tuple[int, int]]]:
        for entry in entries:
            if entry.name.startswith(("_", ".")) or not entry.name.lower().endswith(self._suffixes):
                continue
            try:
                stat = entry.stat()
            except FileNotFoundError:  # gone since it was listed
                continue
            if entry.is_file():
                yield os.path.abspath(entry.path), (stat.st_size, stat.st_mtime_ns)

    def _is_whole(self, path: str, stat: tuple[int, int]) -> bool:
        return self._seen.get(path) == stat or self._now() - stat[1] > SETTLED


def stored_columns(owner: Owner) -> tuple[ColumnDefinition, ...]:
    """The columns that the files themselves have."""
    if isinstance(owner, Stream) or not owner.partition:
        return owner.columns
    return tuple(column for column in owner.columns if column.name not in owner.partition)


def verify(file: SourceFile, stream: str) -> None:
    """Raises 58P01 when a file is not what arrived in a stream."""
    path, size, mtime = file
    try:
        stat = os.stat(path)
    except FileNotFoundError:
        raise _vanished(path, stream) from None
    if (stat.st_size, stat.st_mtime_ns) != (size, mtime):
        raise _changed(path, stream)


def _vanished(path: str, stream: str) -> SqlError:
    return SqlError("58P01", f'file "{path}" of stream "{stream}" no longer exists', hint=_AS_IT_WAS)


def _changed(path: str, stream: str) -> SqlError:
    return SqlError("58P01", f'file "{path}" of stream "{stream}" was changed after it arrived', hint=_AS_IT_WAS)


def names_of_format(format: str) -> tuple[str, ...]:
    """How the names of files in a format end."""
    return _SUFFIXES[format]
