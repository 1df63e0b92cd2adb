"""Up to where the log has forgotten streams' rows: noted before it forgets them.

A view's files that were put back from an older copy lack rows that nobody has any more. That is found at a start by
what lies here, and by nothing else: a frontier below the log's begin is right where a stream had no rows since.

    servers/<id>/forgotten    by stream, an LSN: at least of the last of its rows in recycled segments, and at most that
                              from which on its views needed them
"""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Final

from catalog.errors import SqlError
from executor.commit.files import disk_error, replace_file
from executor.trace.checked import pack, unpack

_NAME: Final = "forgotten"
_LOGGER = logging.getLogger(__name__)


def read(folder: Path) -> dict[int, int]:
    """Of streams of which the log has forgotten rows, the LSN of the last of these."""
    path = folder / _NAME
    try:
        _, found = unpack(path.read_bytes(), _NAME)
        return {int(oid): int(lsn) for oid, lsn in found.items()}
    except FileNotFoundError:
        return {}
    except SqlError as error:
        _LOGGER.warning("%s", error.message)
        return {}


def write(folder: Path, known: dict[int, int]) -> None:
    """Before the log forgets rows. Raises 53100, 58030."""
    path = folder / _NAME
    try:
        replace_file(path, pack(known))
    except OSError as error:
        raise disk_error(error, f'write "{path.name}"') from error
