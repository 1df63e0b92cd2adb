"""The lock under which servers change what they agree on, which can be taken from a process that stands still.

Owns: the lock's **terms**. A term is a folder with a file that whoever has the lock has locked (flock), so that it
falls with its process; and with the files that are to be renamed to their places. Who has waited for too long for one
and the same holder ends the term: its folder is no more, so that the holder, should it go on, has nothing to rename and
nowhere to put away what it deletes. What it has not changed by then it never changes. So nobody needs to know whether
it is dead (a fencing token as in Kleppmann's "How to do distributed locking", checked by the file system's own rename).

    <folder>/<number>/          the term; one at a time
    <folder>/<number>/<number>  the file that is locked, touched by who gets the lock
    <folder>/<number>.next      a term that is to begin
    <folder>/<number>.broken    one that was ended: deleted before the next one begins, since a client of NFS may know a
                                folder by its handle for a while after it was renamed
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

from catalog.errors import SqlError

#: Seconds for which one may have the lock before it is taken away, for which it is waited for, and between two tries.
STANDSTILL: Final = 5.0
PATIENCE: Final = 15.0
_STEP: Final = 0.002
_NEXT: Final = ".next"
_BROKEN: Final = ".broken"


class Lock:
    """One of many processes' locks; for one thread of each at a time. Errors of the file system are OSError."""

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
        """Alone, in a term, of which this is the folder. Raises 55P03."""
        file, term = self._taken()
        try:
            yield term
        finally:
            os.close(file)

    def sweep(self, term: Path) -> None:
        """Deletes what those have left in a term who had the lock before and died; the caller has it."""
        for path in term.iterdir():
            if path.name != term.name:
                _delete(path)
        for path in self.folder.glob(f"*{_NEXT}"):
            if int(path.stem) <= int(term.name):
                _delete(path)

    def _taken(self) -> tuple[int, Path]:
        deadline = time.monotonic() + PATIENCE
        seen, since = (Path(), 0), 0.0
        while True:
            term, file = self._opened()
            try:
                if _locked(file) and _is_at(term / term.name, file):
                    os.utime(file)
                    kept, file = file, -1
                    return kept, term
                holding = term, os.fstat(file).st_mtime_ns
            finally:
                if file >= 0:
                    os.close(file)
            now = time.monotonic()
            if holding != seen:
                seen, since = holding, now
            if now - since > STANDSTILL:
                self._break(term)
            elif now > deadline:
                raise SqlError("55P03", "the lock of the storage is not to be had", hint="Try again later.")
            else:
                time.sleep(_STEP)

    def _opened(self) -> tuple[Path, int]:
        """The term that is now, and its file."""
        while True:
            term = self._term()
            with suppress(FileNotFoundError):  # it was ended meanwhile
                return term, os.open(term / term.name, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)

    def _term(self) -> Path:
        while not (number := self._number()):
            self._follow()
        return self.folder / str(number)

    def _number(self) -> int:
        """Of the term that is now; 0 where there is none."""
        return max((int(name) for name in os.listdir(self.folder) if name.isdecimal()), default=0)

    def _break(self, term: Path) -> None:
        """Ends a term, whose holder stands still."""
        number = int(term.name)
        (self.folder / f"{number + 1}{_NEXT}").mkdir(mode=0o700, exist_ok=True)
        with suppress(FileNotFoundError):  # somebody else does
            term.rename(self.folder / f"{number}{_BROKEN}")
        self._follow()

    def _follow(self) -> None:
        """The next term begins, if there is none, when nothing is left of the one before."""
        for path in self.folder.glob(f"*{_BROKEN}"):
            shutil.rmtree(path, ignore_errors=True)
            if path.exists():
                raise OSError(f"{path} cannot be deleted")
        now = self._number()
        following = max((int(path.stem) for path in self.folder.glob(f"*{_NEXT}")), default=0)
        if following > now:
            with suppress(OSError):  # somebody else was first
                (self.folder / f"{following}{_NEXT}").rename(self.folder / str(following))
        elif not now:  # somebody has deleted all
            (self.folder / "1").mkdir(mode=0o700, exist_ok=True)


def _delete(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)


def _locked(file: int) -> bool:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _is_at(path: Path, file: int) -> bool:
    """Whether a file is still there under its name."""
    try:
        found = path.stat()
    except FileNotFoundError:
        return False
    own = os.fstat(file)
    return (found.st_dev, found.st_ino) == (own.st_dev, own.st_ino)
