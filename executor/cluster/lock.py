"""The lock for changes of the state that servers share; it can be taken from a process that does not respond.

Owns: the lock's **terms**. A term is a folder with a file that the holder has locked (flock), so that the lock ends
with its process, and with the files that are to be renamed to their places. A server that has waited too long for one
holder ends the term by renaming the folder to the next number. If the holder continues, it finds nothing to rename and
no place for what it deletes, so it can change nothing, whether it is dead or not (a fencing token as in Kleppmann's
"How to do distributed locking", checked by the file system's own rename). No number comes twice, since there is one
such folder, which only ever gets the next number.

    <folder>/<number>/                the term
    <folder>/<number>/<number>.lock   the file that is locked, touched when the lock is taken
    <folder>/<number>/<number>/       what is to be renamed; that of earlier terms is deleted before anything changes,
                                      since a client of NFS may know a folder by its handle after it was renamed
"""

from __future__ import annotations

import fcntl
import os
import secrets
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from catalog.values.errors import SqlError

#: Seconds after which the lock is taken from a holder, after which a waiting process gives up, and between two tries.
STANDSTILL: Final = 5.0
PATIENCE: Final = 15.0
_STEP: Final = 0.002
#: Seconds between two tries that count at most: after a longer pause the waiting process was stopped itself, perhaps
#: together with the holder.
_STOOD_STILL: Final = 0.5
_SUFFIX: Final = ".lock"


class Lock:
    """A lock between processes; for one thread of each process at a time. Errors of the file system are OSError."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        if folder.is_file():  # an earlier version's, which finds that out
            folder.unlink()
        if not folder.is_dir():
            self._begin()

    def _begin(self) -> None:
        new = self.folder.with_name(f"{self.folder.name}.{secrets.token_hex(4)}")
        (new / "1").mkdir(mode=0o700, parents=True)
        try:
            new.rename(self.folder)
        except OSError:
            shutil.rmtree(new)
            if not self.folder.is_dir():
                raise

    @contextmanager
    def held(self) -> Iterator[Path]:
        """A context in which no other process has the lock; the folder from which changes are renamed to their places.
        Raises 55P03, XX001."""
        file, term = self._taken()
        try:
            yield term / term.name
        finally:
            os.close(file)

    def _taken(self) -> tuple[int, Path]:
        tried, waited = time.monotonic(), 0.0
        seen, since = (Path(), 0), 0.0
        while True:
            term, file = self._opened()
            is_taken = False
            try:
                is_taken = _locked(file) and _is_at(_file(term), file) and _is_begun(term, file)
                if is_taken:
                    return file, term
                holding = term, os.fstat(file).st_mtime_ns
            finally:
                if not is_taken:
                    os.close(file)
            before, tried = tried, time.monotonic()
            waited += min(tried - before, _STOOD_STILL)
            if holding != seen:
                seen, since = holding, waited
            if waited - since > STANDSTILL:
                with suppress(FileNotFoundError):  # another process did
                    term.rename(self.folder / str(int(term.name) + 1))
            elif waited > PATIENCE:
                raise SqlError("55P03", "could not obtain the lock of the storage", hint="Try again later.")
            else:
                time.sleep(_STEP)

    def _opened(self) -> tuple[Path, int]:
        """The present term, and its file, opened."""
        while True:
            term = self._term()
            with suppress(FileNotFoundError):  # it has ended meanwhile
                return term, os.open(_file(term), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)

    def _term(self) -> Path:
        number = max((int(name) for name in os.listdir(self.folder) if name.isdecimal()), default=0)
        if not number:
            hint = "Delete the file, and restart all servers."
            raise SqlError("XX001", f'"{self.folder.name}" is damaged', hint=hint)
        return self.folder / str(number)


def _file(term: Path) -> Path:
    return term / f"{term.name}{_SUFFIX}"


def _is_begun(term: Path, file: int) -> bool:
    """Removes what earlier terms left, and shows others the holder; False if the term has ended meanwhile."""
    own = term / term.name
    try:
        os.utime(file)
        for path in term.iterdir():
            if path != _file(term) and not (path == own and own.is_dir()):
                delete(path)
        own.mkdir(mode=0o700, exist_ok=True)
    except FileNotFoundError:
        return False
    return True


def delete(path: Path) -> None:
    """Deletes a file, or a folder with its content."""
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def _locked(file: int) -> bool:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _is_at(path: Path, file: int) -> bool:
    """Whether an open file still has its name."""
    try:
        found = path.stat()
    except FileNotFoundError:
        return False
    own = os.fstat(file)
    return (found.st_dev, found.st_ino) == (own.st_dev, own.st_ino)
