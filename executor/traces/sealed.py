"""Sealed intervals of a stream: rows of (after, upto] as one Parquet file with ``__lsn`` and ``__ordinal``.

Owns the files' names, which say the interval, and that a file is there whole or not at all. A file lives as long as the
job that reads it: only what Spark will read is worth sealing (architecture section 1).
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Final

import pyarrow as pa

from executor.commit.files import sync_folder
from executor.traces.parquet import write_batches

_UNFINISHED: Final = ".new"
_NAME: Final = re.compile(rf"[0-9a-f]{{16}}-[0-9a-f]{{16}}\.parquet({re.escape(_UNFINISHED)})?")


def seal(folder: Path, after: int, upto: int, schema: pa.Schema, delta: Iterable[pa.RecordBatch]) -> Path:
    """Writes the rows of an interval and returns the file. Raises 53100, 58030, and what computing the rows raises.

    Sealing an interval again replaces its file.
    """
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{after:016x}-{upto:016x}.parquet"
    new = path.with_name(path.name + _UNFINISHED)
    write_batches(new, schema, delta)
    os.replace(new, path)
    sync_folder(folder)
    return path


def delete_sealed(folder: Path) -> int:
    """Deletes the intervals that a crash left behind, finished or not: no job is running. How many there were."""
    gone = [path for path in folder.iterdir() if _NAME.fullmatch(path.name)] if folder.is_dir() else []
    for path in gone:
        path.unlink(missing_ok=True)
    return len(gone)
