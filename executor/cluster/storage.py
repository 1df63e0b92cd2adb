"""The folder that several servers share, and the lock under which they change what they agree on in it.

Owns: that a small JSON document is read whole or not at all, and that who compares and then writes is alone meanwhile.
The lock is the operating system's and falls with its process; nothing that takes long is done under it. Waiting for it
has an end, since a process that stands still keeps it.
"""

from __future__ import annotations

import fcntl
import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any, Final

from catalog.errors import SqlError
from executor.commit.files import disk_error, load_secret, replace_file, sync_folder

_LOCK: Final = "lock"
_KEY: Final = "key"
_FORMAT: Final = 1
#: Seconds for which the lock is waited for, and between two tries.
_PATIENCE: Final = 10.0
_STEP: Final = 0.002


class Storage:
    """A shared folder. Safe for many threads, and for many processes."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        (folder / _LOCK).touch(mode=0o600)
        self._lock = threading.Lock()

    @contextmanager
    def exclusive(self) -> Iterator[None]:
        """Nobody else changes what servers agree on meanwhile. Raises 55P03 where somebody keeps the lock, 58030."""
        deadline = time.monotonic() + _PATIENCE
        if not self._lock.acquire(timeout=_PATIENCE):
            raise _busy()
        try:
            with open(self.folder / _LOCK, "r+") as file:
                while not _locked(file.fileno()):
                    if time.monotonic() > deadline:
                        raise _busy()
                    time.sleep(_STEP)
                yield
        except OSError as error:
            raise disk_error(error, "change the storage that servers share") from error
        finally:
            self._lock.release()

    @cached_property
    def key(self) -> bytes:
        """What only servers of this storage know, made by the first of them. Raises 55P03, 58030, XX001."""
        with self.exclusive():
            found = load_secret(self.folder / _KEY)
        if not found:
            raise SqlError("XX001", f'"{_KEY}" is not what was written', hint="Delete it, and restart all servers.")
        return found

    def require(self) -> None:
        """Raises 58030 where the folder is not there now (its file system is gone, or it is an empty mount point): what
        is not found in it may exist all the same."""
        try:
            (self.folder / _LOCK).stat()
        except OSError as error:
            raise disk_error(error, "use the storage that servers share") from error

    def read(self, path: Path) -> dict[str, Any] | None:
        """A document; None where there is none. Raises XX001, 0A000 for a format of a later version, 58030."""
        try:
            document = json.loads(path.read_bytes())
            if document["format"] != _FORMAT:
                raise SqlError("0A000", f'format {document["format"]} of "{path.name}" is not supported')
        except FileNotFoundError:
            self.require()
            return None
        except OSError as error:
            raise disk_error(error, f'read "{path.name}"') from error
        except (KeyError, TypeError, ValueError) as error:
            raise SqlError("XX001", f'"{path.name}" is not what was written: {error}') from error
        return {name: value for name, value in document.items() if name != "format"}

    def write(self, path: Path, document: dict[str, Any]) -> None:
        """Replaces a document; the caller has the lock."""
        path.parent.mkdir(exist_ok=True)
        replace_file(path, json.dumps({"format": _FORMAT, **document}).encode())

    def delete(self, path: Path) -> None:
        """There is no such document any more; the caller has the lock."""
        if path.exists():
            path.unlink()
            sync_folder(path.parent)


def _locked(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _busy() -> SqlError:
    return SqlError("55P03", "another server keeps the lock of the storage", hint="Does one of them stand still?")
