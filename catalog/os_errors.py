"""Errors of the operating system, and exhausted resources, as PostgreSQL's errors.

Owns: the SQLSTATE of an error number (errcode_for_file_access of PostgreSQL), and which of Python's own errors mean
that a resource is exhausted. Knows nothing of what was being done.
"""

from __future__ import annotations

import errno
import os
from typing import Final

from catalog.values.errors import SqlError

#: Error numbers which say that the machine or the process has run out of a resource.
_EXHAUSTED: Final = {
    errno.EMFILE: "53000",
    errno.ENFILE: "53000",
    errno.EAGAIN: "53000",  # threads and processes
    errno.ENOSPC: "53100",
    errno.EDQUOT: "53100",
    errno.ENOMEM: "53200",
}
#: Error numbers that concern the file itself.
_OF_FILES: Final = {
    errno.EPERM: "42501",
    errno.EACCES: "42501",
    errno.EROFS: "42501",
    errno.ENOENT: "58P01",
    errno.EEXIST: "58P02",
    errno.ENOTDIR: "42809",
    errno.EISDIR: "42809",
    errno.ENOTEMPTY: "42809",
}
_IO_ERROR: Final = "58030"
#: The SQLSTATEs for a file of the server that cannot be read at present, whatever it contains.
UNREADABLE: Final = frozenset((_IO_ERROR, *_EXHAUSTED.values()))
_NO_THREAD: Final = "can't start new thread"


def state_of(error: OSError) -> str:
    """The SQLSTATE of an error in one of the server's own files: 53000, 53100 or 53200 for an exhausted resource, or
    58030."""
    return _EXHAUSTED.get(error.errno or 0, _IO_ERROR)


def state_of_file(error: OSError) -> str:
    """The SQLSTATE of an error in a file that a statement names."""
    return _OF_FILES.get(error.errno or 0) or state_of(error)


def reason(error: OSError) -> str:
    """The system's words for an error, without the file's name."""
    return os.strerror(error.errno or errno.EIO)


def exhausted(error: BaseException) -> SqlError | None:
    """The error for the client if ``error`` means that a resource is exhausted, else None."""
    if isinstance(error, MemoryError):  # also raised by pyarrow
        return SqlError("53200", "out of memory")
    if isinstance(error, RecursionError):
        return SqlError("54001", "stack depth limit exceeded")
    if isinstance(error, OSError) and error.errno in _EXHAUSTED:
        return SqlError(_EXHAUSTED[error.errno], reason(error))
    if isinstance(error, RuntimeError) and _NO_THREAD in str(error):
        return SqlError("53000", "cannot start a thread: the limit of threads is reached")
    return None
