"""The folder that several servers share, and the lock under which they change what they agree on.

Owns: that a small JSON document is read whole or not at all, and that a comparison and the write that follows it are
atomic or change nothing: files that are written or deleted under the lock are renamed by way of its term (``lock``).
Nothing that takes long is done under the lock.
"""

from __future__ import annotations

import errno
import json
import os
import secrets
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cached_property
from pathlib import Path
from typing import Any, Final

from catalog.values.errors import SqlError
from executor.cluster.lock import PATIENCE, Lock, delete
from executor.cluster.pulse import Pulse
from executor.commit.files import disk_error, load_secret, read_document, replace_file, sync_folder

_LOCK: Final = "lock"
_KEY: Final = "key"
_FORMAT: Final = 1


class Storage:
    """A shared folder. Safe for many threads, and for many processes."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._lock = Lock(folder / _LOCK)
        self._thread = threading.Lock()
        self.pulse = Pulse(folder)
        #: The folder for changes, while this process has the lock.
        self._term: Path | None = None

    @contextmanager
    def exclusive(self) -> Iterator[None]:
        """A context in which no other server changes the shared state. Raises 55P03 if the lock cannot be obtained, or
        was taken from this process because it did not respond, and 58030."""
        self.require_answer()
        if not self._thread.acquire(timeout=PATIENCE):
            raise SqlError(
                "55P03",
                "another thread of this server holds the lock of the storage",
                hint="Check that the storage can be read and written.",
            )
        try:
            with self._lock.held() as self._term:
                yield
        except OSError as error:
            # Of os.path, since what has gone away with the storage raises of a Path.
            if self._term is not None and os.path.exists(self._lock.folder) and not os.path.exists(self._term):
                message = "another server took the lock of the storage, since this server did not respond"
                raise SqlError("55P03", message) from error
            raise disk_error(error, "change the storage that servers share") from error
        finally:
            self._term = None
            self._thread.release()

    @cached_property
    def key(self) -> bytes:
        """A secret of the servers of this storage, made by the first of them. Raises 55P03, 58030, XX001."""
        with self.exclusive():
            found = load_secret(self.folder / _KEY, self._held)
        if not found:
            raise SqlError("XX001", f'"{_KEY}" is damaged', hint="Delete the file, and restart all servers.")
        return found

    def require(self) -> None:
        """Raises 58030 where the folder is not there now (its file system is gone, or it is an empty mount point): a
        file that is not found in it may exist all the same."""
        self.require_answer()
        try:
            (self.folder / _LOCK).stat()
        except OSError as error:
            raise disk_error(error, "use the storage that servers share") from error

    def require_answer(self) -> None:
        """Raises 58030 if calls on the folder would block now. Does not block itself."""
        if self.pulse.is_silent:
            raise disk_error(OSError(errno.ETIMEDOUT, ""), "use the storage that servers share")

    def read(self, path: Path) -> dict[str, Any] | None:
        """A document; None where there is none. Raises XX001, 0A000 for a format of a later version, 58030."""
        self.require_answer()
        try:
            document = json.loads(read_document(path))
            if document["format"] != _FORMAT:
                raise SqlError("0A000", f'format {document["format"]} of "{path.name}" is not supported')
        except FileNotFoundError:
            self.require()
            return None
        except OSError as error:
            raise disk_error(error, f'read "{path.name}"') from error
        except (KeyError, RecursionError, TypeError, ValueError) as error:
            raise SqlError("XX001", f'"{path.name}" is damaged: {error}') from error
        return {name: value for name, value in document.items() if name != "format"}

    @property
    def _held(self) -> Path:
        assert self._term is not None, "the caller has the lock"
        return self._term

    def write(self, path: Path, document: dict[str, Any], lasting: bool = True) -> None:
        """Replaces a document; the caller has the lock. One that matters only while this machine runs need not be
        ``lasting``."""
        path.parent.mkdir(exist_ok=True)
        self.replace(path, encoded(document), lasting)

    def replace(self, path: Path, content: bytes, lasting: bool = True) -> None:
        """Replaces a file; the caller has the lock."""
        replace_file(path, content, self._held, lasting)

    def delete(self, path: Path, lasting: bool = True) -> None:
        """Deletes a file or folder, if it is there; the caller has the lock."""
        if path.exists():
            gone = self._held / f"{path.name}.{secrets.token_hex(4)}"
            path.rename(gone)
            if lasting:
                sync_folder(path.parent)
            with suppress(OSError):  # it is swept, then
                delete(gone)

    def sweep(self) -> None:
        """Deletes what dead holders of the lock have left; the caller has the lock."""
        for path in self._held.iterdir():
            delete(path)


def encoded(document: dict[str, Any]) -> bytes:
    """The bytes of a document on the storage."""
    return json.dumps({"format": _FORMAT, **document}).encode()
