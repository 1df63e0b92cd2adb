"""Sealed intervals of a stream: rows of (after, upto] as one Parquet file with ``__lsn`` and ``__ordinal``.

Owns the files' names, which say the interval, and that a file is there whole or not at all. Does not know when to seal:
only what Spark or history will read is worth it (architecture section 5).
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pyarrow as pa

from executor.commit.files import sync_folder
from executor.trace.parquet import write_table

_NAME: Final = re.compile(r"([0-9a-f]{16})-([0-9a-f]{16})\.parquet")
_UNFINISHED: Final = ".new"


@dataclass(frozen=True, slots=True)
class Sealed:
    """A file with the stream's rows of (``after``, ``upto``]."""

    after: int
    upto: int
    path: Path


def seal(folder: Path, after: int, upto: int, delta: pa.Table) -> Path:
    """Writes the rows of an interval (which ``Ring.delta`` gave) and returns the file. Raises 53100, 58030.

    Sealing an interval again replaces its file.
    """
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{after:016x}-{upto:016x}.parquet"
    new = path.with_name(path.name + _UNFINISHED)
    write_table(new, delta)
    os.replace(new, path)
    sync_folder(folder)
    return path


def list_sealed(folder: Path) -> tuple[Sealed, ...]:
    """The sealed intervals of a stream's folder, oldest first."""
    if not folder.is_dir():
        return ()
    matches = ((_NAME.fullmatch(path.name), path) for path in folder.iterdir())
    found = [Sealed(int(match[1], 16), int(match[2], 16), path) for match, path in matches if match]
    return tuple(sorted(found, key=lambda each: (each.after, each.upto)))


def delete_sealed(folder: Path, upto: int) -> int:
    """Deletes the intervals that end at or below an LSN, and what a crash left unfinished; how many intervals."""
    for path in folder.glob(f"*{_UNFINISHED}"):
        path.unlink(missing_ok=True)
    gone = [each for each in list_sealed(folder) if each.upto <= upto]
    for each in gone:
        each.path.unlink(missing_ok=True)
    return len(gone)
