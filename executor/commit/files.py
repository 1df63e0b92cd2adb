"""The few file operations that a full or failing disk makes fail, in one object, so that tests can make them fail.

Also the two habits that make a file durable: replace it whole, and fsync its folder.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import os
import secrets
import stat
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import BinaryIO, Final

from catalog.os_errors import reason, state_of
from catalog.values.errors import SqlError

_MOST_VECTORS: Final = 512
#: Bytes that no document has which servers read of each other.
_DOCUMENT: Final = 64 << 20
#: How often a file may be replaced while it is opened.
_REPLACEMENTS: Final = 100

#: sync_file_range(2): begin to write the range back, and wait for nothing.
_WRITE: Final = 2


class Files:
    """The operating system's own. Errors are OSError, for the caller to translate with ``disk_error``."""

    def allocate(self, descriptor: int, size: int) -> None:
        """Reserves the disk space of a new file."""
        os.posix_fallocate(descriptor, 0, size)

    def write(self, descriptor: int, pieces: Sequence[bytes | memoryview], offset: int) -> None:
        """Writes all bytes of all pieces at an offset."""
        if len(pieces) == 1:
            written = os.pwrite(descriptor, pieces[0], offset)
            if written == len(pieces[0]):
                return
            pieces, offset = (memoryview(pieces[0])[written:],), offset + written
        waiting = [memoryview(piece) for piece in pieces if len(piece)]
        first = 0
        while first < len(waiting):
            group = waiting[first : first + _MOST_VECTORS]
            written = os.pwritev(descriptor, group, offset)
            offset += written
            while first < len(waiting) and written >= len(waiting[first]):
                written -= len(waiting[first])
                first += 1
            if written:
                waiting[first] = waiting[first][written:]

    def sync(self, descriptor: int) -> None:
        """Returns when the file's data is on the disk."""
        os.fdatasync(descriptor)


def sync_folder(folder: Path) -> None:
    """Makes creations, renames and removals in a folder durable."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def sync_file(path: Path) -> None:
    """Makes the content of a written file durable."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def replace_file(path: Path, content: bytes, through: Path | None = None, lasting: bool = True) -> None:
    """Replaces a file atomically: after a crash it has the old or the new content, whole; but where that need not be
    ``lasting``, the old one maybe also later. ``through``: the folder in which the new one is made, another one of the
    same file system."""
    new = (through or path.parent) / (path.name + ".new")
    with open(new, "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    os.replace(new, path)
    if lasting:
        sync_folder(path.parent)


def open_plain(path: Path) -> BinaryIO:
    """A file that others may write as well, to be read: itself, and no link to another, or pipe for which one would
    wait. Raises OSError, and ValueError for these."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise ValueError(f'"{path.name}" is a link') from error
        raise
    mode = os.fstat(descriptor).st_mode
    if stat.S_ISREG(mode):
        return open(descriptor, "rb")
    os.close(descriptor)
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    raise ValueError(f'"{path.name}" is not a file')


def read_document(path: Path) -> bytes:
    """The content of such a file, which others may replace meanwhile. Raises ValueError also for one that is larger
    than any document."""
    with _open_replaced(path) as file:
        found = file.read(_DOCUMENT + 1)
    if len(found) > _DOCUMENT:
        raise ValueError(f'"{path.name}" is too large')
    return found


def _open_replaced(path: Path) -> BinaryIO:
    """A file that others replace meanwhile. Where a process serves the file system (FUSE), a file that is replaced
    between the look-up of its name and the opening cannot be opened, as if the name were missing. The look-up alone
    tells whether the name is there. Raises as ``open_plain``."""
    for _ in range(_REPLACEMENTS):
        with contextlib.suppress(FileNotFoundError):
            return open_plain(path)
        os.close(os.open(path, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC))
    return open_plain(path)


def load_secret(path: Path, through: Path | None = None) -> bytes:
    """A secret of 32 bytes that only the server's own system user can read; made where there is none, as
    ``replace_file`` does."""
    try:
        return path.read_bytes()
    except FileNotFoundError:
        secret = secrets.token_bytes(32)
        beside = (through or path.parent) / (path.name + ".new")
        beside.unlink(missing_ok=True)
        with os.fdopen(os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            file.write(secret)
            file.flush()
            os.fsync(file.fileno())
        beside.rename(path)
        return secret


def require_space(folder: Path, size: int, doing: str) -> None:
    """Raises 53100 where less than so many bytes are free: for what must not fail once it has begun."""
    found = os.statvfs(folder)
    if found.f_bavail * found.f_frsize < size:
        raise disk_error(OSError(errno.ENOSPC, ""), doing)


def _find_begin_writeback() -> Callable[[int, int, int], None]:
    call = getattr(ctypes.CDLL(None), "sync_file_range", None)
    if call is None:
        return lambda descriptor, offset, length: None
    call.argtypes = (ctypes.c_int, ctypes.c_int64, ctypes.c_int64, ctypes.c_uint)

    def begin(descriptor: int, offset: int, length: int) -> None:
        call(descriptor, offset, length, _WRITE)

    return begin


#: ``begin_writeback(descriptor, offset, length)``: large data should be on its way to the disk before the commit
#: waits for it. Only a hint: where the system lacks the call (it is Linux's own), nothing happens.
begin_writeback: Final[Callable[[int, int, int], None]] = _find_begin_writeback()


def disk_error(error: OSError, doing: str) -> SqlError:
    """53100 for a full disk or an exhausted quota, 53000 for too many open files, else 58030."""
    return SqlError(state_of(error), f"could not {doing}: {reason(error)}")
