"""Segment files: made with their space and their header on the disk, and kept for another life when they are free.

Owns the files' names and how many free ones are kept. Does not know what is in them nor when they are free: ``log``
does. ``create`` and ``retire`` may run at the same time, each by one thread.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from typing import Final

from executor.commit import segment as layout
from executor.commit.files import Files, sync_folder
from executor.commit.segment import Segment

_PREFIX: Final = "free-"


class SegmentPool:
    """The files of a log's folder."""

    def __init__(self, folder: Path, segment_bytes: int, limit: int, files: Files) -> None:
        """Finds the free ones; what a process that died was about to make is removed."""
        self._folder = folder
        self._segment_bytes = segment_bytes
        self._limit = limit
        self._files = files
        self._free = sorted(folder.glob(_PREFIX + "*"))
        for path in folder.glob("new-*"):
            path.unlink()

    def create(self, last: Segment | None, size: int) -> Segment:
        """The segment behind ``last``. Raises OSError, and nothing is left behind then."""
        number = last.number + 1 if last else 1
        last_lsn, end = (last.last_lsn, last.end) if last else (0, 0)
        path = self._folder / layout.segment_name(number)
        new = self._folder / f"new-{number:016x}"
        if size == self._segment_bytes and self._free:
            free = self._free.pop()
            try:
                os.rename(free, new)
            except OSError:
                self._free.append(free)
                raise
        descriptor = os.open(new, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            if os.fstat(descriptor).st_size != size:
                self._files.allocate(descriptor, size)
            self._files.write(descriptor, (layout.pack_header(number, last_lsn, end),), 0)
            self._files.sync(descriptor)
            os.rename(new, path)
            sync_folder(self._folder)
        except OSError:
            os.close(descriptor)
            with suppress(FileNotFoundError):
                new.unlink()
            raise
        return Segment(number, path, descriptor, size, last_lsn, last_lsn, end)

    def retire(self, segment: Segment) -> None:
        """Closes a segment that nobody needs; the folder is yet to be synced."""
        segment.close()
        if segment.size == self._segment_bytes and len(self._free) < self._limit:
            free = self._folder / f"{_PREFIX}{segment.number:016x}"
            os.rename(segment.path, free)
            self._free.append(free)
        else:
            segment.path.unlink()
