"""The lines of a followed folder's files that are no rows of the stream, as far as they are remembered.

Owns: the file ``rejected.json`` beside the names of the stream's files, with the last ``KEPT`` lines, which are written
before the log names their files. A file whose lines are there is passed over, so that one that is read again after a
crash does not count twice. A damaged or missing file is none: nothing depends on it.
"""

from __future__ import annotations

import datetime as dt
from collections import deque
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from catalog.values.errors import SqlError
from executor.commit.files import disk_error, replace_file
from executor.files.followed_folders import SourceFile
from executor.files.lenient_lines import RejectedLine
from executor.traces.checked import as_written, pack, unpack
from planner.incremental.programs.rejected import KEPT

#: The most characters of a line that are remembered.
_LONGEST: Final = 1000


class LastLines:
    """How many lines of a file are no rows, and the last of them."""

    def __init__(self) -> None:
        self.count = 0
        self.last: deque[RejectedLine] = deque(maxlen=KEPT)

    def add(self, line: RejectedLine) -> None:
        """One more."""
        self.count += 1
        self.last.append(line)


class RejectedLines:
    """Those of one stream."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._known = _read(path)

    def note(self, found: Mapping[SourceFile, LastLines]) -> None:
        """Remembers the lines of files that are about to arrive. Raises 53100, 58030."""
        known = self._known
        noted = {tuple(each["file"]) for each in known}
        for file, lines in found.items():
            if lines.count and file not in noted:
                known = [*known, *_documents(file, lines, known[-1]["number"] if known else 0)]
        if known is self._known:
            return
        known = known[-KEPT:]
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            replace_file(self._path, pack({"lines": known}))
        except OSError as error:
            raise disk_error(error, f'write "{self._path.name}"') from error
        self._known = known

    @property
    def rows(self) -> list[tuple[Any, ...]]:
        """Number, time, SQLSTATE, message, text, file and line of each."""
        return [
            (
                *(each["number"], dt.datetime.fromisoformat(each["at"]), each["sqlstate"], each["message"]),
                *(each["text"], each["file"][0], each["line"]),
            )
            for each in self._known
        ]


def _documents(file: SourceFile, lines: LastLines, before: int) -> list[dict[str, Any]]:
    now = dt.datetime.now(dt.UTC).isoformat()
    first = before + lines.count - len(lines.last) + 1
    return [
        {
            "file": list(file),
            "line": line.number,
            "number": number,
            "at": now,
            "sqlstate": line.error.sqlstate,
            "message": line.error.message,
            "text": line.text[:_LONGEST],
        }
        for number, line in enumerate(lines.last, first)
    ]


def _read(path: Path) -> list[dict[str, Any]]:
    try:
        with as_written(path.name):
            found: list[dict[str, Any]] = unpack(path.read_bytes(), path.name)[1]["lines"]
            return found
    except SqlError:
        return []
