"""Permissions of the data folder: for its owner, and for a group that may only read it, as in PostgreSQL.

Owns: the permissions of that folder, and through the process's umask those of everything that the server and its child
processes make. A folder without a server's data in it is made private; one with data that others can enter is refused,
since they may have read it, and may have it open.

https://www.postgresql.org/docs/15/creating-cluster.html
"""

from __future__ import annotations

import os
import shlex
import stat
from contextlib import suppress
from pathlib import Path
from typing import Final

#: What the owner alone may do: everything.
PRIVATE: Final = 0o700
#: Bits that neither 0700 nor 0750 has.
_TOO_OPEN: Final = 0o027


class OpenFolder(Exception):
    """A data folder that this server must not use; the message says what to do."""


def claim(data: Path, storage: Path | None = None) -> None:
    """Makes the data folder, or takes the one that is there, and sets the umask to what its mode allows. A ``storage``
    that servers share is taken where it is there. Raises OpenFolder, OSError."""
    os.umask(0o077)
    data.mkdir(mode=PRIVATE, parents=True, exist_ok=True)
    if data.stat().st_uid != os.geteuid():
        hint = "the server must be started by the user that owns the data directory"
        raise OpenFolder(f'data directory "{data}" has wrong ownership: {hint}')
    if _require_private(data, "data directory") & 0o050:
        os.umask(0o027)
    if storage is not None and storage.is_dir():
        _require_private(storage, "storage directory")


def _require_private(folder: Path, what: str) -> int:
    """The folder's mode, which allows only its owner and readers of its group. Raises OpenFolder."""
    if _mode(folder) & _TOO_OPEN and _is_unused(folder):
        with suppress(PermissionError):  # of a storage that another user owns
            folder.chmod(PRIVATE)
    mode = _mode(folder)
    if mode & _TOO_OPEN:
        raise OpenFolder(
            f'{what} "{folder}" has invalid permissions ({mode:04o}): they should be 0700, or 0750 where a group may'
            f" read; run: chmod -R go-rwx {shlex.quote(str(folder.resolve()))}"
        )
    return mode


def _mode(folder: Path) -> int:
    return stat.S_IMODE(folder.stat().st_mode)


def _is_unused(folder: Path) -> bool:
    """Whether a folder has no more than files that an operator puts there before the first start, such as hba.conf."""
    return all(entry.is_file() for entry in os.scandir(folder))
