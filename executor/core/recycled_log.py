"""What the log has recycled, and which files had it by then: noted before a segment is recycled.

A file restored from an older copy lacks what the log no longer has. Only these notes show that at a start: a position
below the log's begin is right where nothing came since.

    servers/<id>/forgotten    streams: by stream, an LSN: at least of the last of its rows in recycled segments, and at
                              most that from which on its views needed them
                              tables: the same of tables, which their file has
                              log: the LSN of the last commit in recycled segments
                              names: by stream, how long its file of names was and its checksum
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from msgspec import Struct, field

from catalog.values.errors import SqlError
from executor.commit.checked_lines import End
from executor.commit.files import disk_error, replace_file
from executor.traces.checked import as_written, pack, unpack

_NAME: Final = "forgotten"
_LOGGER = logging.getLogger(__name__)


class Forgotten(Struct, frozen=True):
    """What is noted. ``log`` is None where an earlier version has noted it, which did not know."""

    streams: Mapping[int, int] = field(default_factory=dict[int, int])
    tables: int = 0
    log: int | None = None
    names: Mapping[int, End] = field(default_factory=dict[int, End])


def read(folder: Path) -> Forgotten:
    """What is noted in a server's folder; nothing where that is damaged, since then no more than that is."""
    path = folder / _NAME
    try:
        with as_written(_NAME):
            _, found = unpack(path.read_bytes(), _NAME)
            if "streams" not in found:
                return Forgotten({int(oid): int(lsn) for oid, lsn in found.items()})
            streams = {int(oid): int(lsn) for oid, lsn in found["streams"].items()}
            names = {int(oid): End(*each) for oid, each in found["names"].items()}
            return Forgotten(streams, found["tables"], found["log"], names)
    except SqlError as error:
        if path.exists():
            _LOGGER.warning("%s: it confirms nothing about the recycled part of the log", error.message)
        return Forgotten()


def write(folder: Path, known: Forgotten) -> None:
    """Before the log forgets. Raises 53100, 58030."""
    path = folder / _NAME
    names = {oid: (end.length, end.check) for oid, end in known.names.items()}
    document = {"streams": known.streams, "tables": known.tables, "log": known.log, "names": names}
    try:
        replace_file(path, pack(document))
    except OSError as error:
        raise disk_error(error, f'write "{path.name}"') from error
