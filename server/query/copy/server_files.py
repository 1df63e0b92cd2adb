"""Files of the server that COPY reads and writes: also pipes and devices, which may let a statement wait for ever.

Owns: opening, reading and writing them so that a cancelled statement goes on with 57014, and what goes wrong there.
"""

from __future__ import annotations

import errno
import os
import select
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

from catalog.os_errors import reason, state_of_file
from catalog.values.errors import SqlError
from executor.commit.files import disk_error
from planner.cancellation import cancelled

#: Bytes that are read at once.
PORTION: Final = 1 << 20
#: Seconds between looks whether the statement was cancelled.
_LOOK: Final = 0.05


class ServerFile:
    """A file that is open, to read or to write."""

    def __init__(self, path: str, descriptor: int, is_cancelled: Callable[[], bool]) -> None:
        self._path = path
        self._descriptor = descriptor
        self._is_cancelled = is_cancelled

    def portions(self) -> Iterator[bytes]:
        """Its bytes. Raises 42809, 57014, 58030."""
        while True:
            self._wait(select.POLLIN)
            try:
                portion = os.read(self._descriptor, PORTION)
            except BlockingIOError:
                continue
            except OSError as error:
                raise _reading_error(self._path, error) from None
            if not portion:
                return
            yield portion

    def write(self, data: bytes) -> None:
        """Writes all of it. Raises 53100, 57014, 58030."""
        left = memoryview(data)
        while left:
            self._wait(select.POLLOUT)
            try:
                left = left[os.write(self._descriptor, left[:PORTION]) :]
            except BlockingIOError:
                continue
            except OSError as error:
                raise disk_error(error, "write to COPY file") from None

    def _wait(self, event: int) -> None:
        """Returns when there is something to read, or room to write."""
        poll = select.poll()
        poll.register(self._descriptor, event)
        while True:
            if self._is_cancelled():
                raise cancelled()
            if poll.poll(_LOOK * 1000):
                return


@contextmanager
def open_to_read(path: str, is_cancelled: Callable[[], bool]) -> Iterator[ServerFile]:
    """Raises 42501, 58P01 and the like."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        raise _opening_error(path, error, "COPY FROM", "read") from None
    try:
        yield ServerFile(path, descriptor, is_cancelled)
    finally:
        os.close(descriptor)


@contextmanager
def open_to_write(path: str, is_cancelled: Callable[[], bool]) -> Iterator[ServerFile]:
    """A new file, or an old one without its bytes; a pipe once somebody reads it. Raises 42602, 42501 and the like."""
    if not os.path.isabs(path):
        raise SqlError("42602", "relative path not allowed for COPY to file")
    descriptor = _opened_to_write(path, is_cancelled)
    try:
        yield ServerFile(path, descriptor, is_cancelled)
    finally:
        os.close(descriptor)


def _opened_to_write(path: str, is_cancelled: Callable[[], bool]) -> int:
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NONBLOCK | os.O_CLOEXEC
    while True:
        try:
            return os.open(path, flags, 0o666)
        except OSError as error:
            if error.errno != errno.ENXIO:  # a pipe that nobody reads
                raise _opening_error(path, error, "COPY TO", "write") from None
        if is_cancelled():
            raise cancelled()
        time.sleep(_LOOK)


def _reading_error(path: str, error: OSError) -> SqlError:
    if isinstance(error, IsADirectoryError):
        return SqlError("42809", f'"{path}" is a directory')
    return _opening_error(path, error, "COPY FROM", "read")


def _opening_error(path: str, error: OSError, statement: str, action: str) -> SqlError:
    hint = (
        f"{statement} instructs the PostgreSQL server process to {action} a file. "
        "You may want a client-side facility such as psql's \\copy."
    )
    state = state_of_file(error)
    doing = "reading" if action == "read" else "writing"
    message = f'could not open file "{path}" for {doing}: {reason(error)}'
    return SqlError(state, message, hint=hint if state in ("58P01", "42501") else None)
