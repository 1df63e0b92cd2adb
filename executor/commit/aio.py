"""Linux' native asynchronous input and output (AIO): operations on files that the kernel carries out by itself.

Owns the kernel's context and its two structures, ``struct iocb`` (what is to be done) and ``struct io_event`` (what
became of it), see io_submit(2). The C library has no functions for these calls, so they go by their numbers, which
differ by processor; elsewhere there are none. Knows nothing of what is written.
"""

from __future__ import annotations

import ctypes
import errno
import mmap
import os
import platform
import struct
import sys
import weakref
from collections.abc import Callable
from contextlib import suppress
from typing import Final

#: io_setup, io_destroy, io_getevents, io_submit.
_NUMBERS: Final = {"x86_64": (206, 207, 208, 209), "aarch64": (0, 1, 4, 2)}

_WRITE: Final = 1
_SYNC_DATA: Final = 3
_SIGNAL: Final = 1  # IOCB_FLAG_RESFD

#: data, key, rw_flags, opcode, priority, descriptor, memory, length, offset, reserved, flags, signalled descriptor
_OPERATION: Final = struct.Struct("<QIIHhIQQqQII")
#: data, address of the operation, result, second result
_EVENT: Final = struct.Struct("<QQqq")
_ADDRESS: Final = struct.Struct("<Q")

#: Told that an operation has ended: the bytes written, or an error's number below 0.
Ended = Callable[[int], None]


def is_possible() -> bool:
    """Whether this system has such calls."""
    return sys.platform == "linux" and sys.byteorder == "little" and platform.machine() in _NUMBERS


class Context:
    """A few operations at a time, for one thread. ``descriptor`` can be read when ``reap`` finds some that ended."""

    def __init__(self, most: int) -> None:
        """Raises OSError where the kernel has no more contexts."""
        setup, destroy, self._getevents, self._submit = _NUMBERS[platform.machine()]
        self._call = _system_call()
        self._most = most
        self._free = list(range(most))
        self._ended: list[Ended] = [_nobody] * most
        #: The kernel reads and writes here: operations, the pointers to each of them, and events.
        self._memory = memory = mmap.mmap(-1, mmap.PAGESIZE)
        self._address = address_of(memory)
        self._pointers = most * _OPERATION.size
        self._events = self._pointers + most * _ADDRESS.size
        for number in range(most):
            place = self._pointers + number * _ADDRESS.size
            _ADDRESS.pack_into(memory, place, self._address + number * _OPERATION.size)
        self._check(self._call(setup, most, self._address, 0, 0, 0))
        (self._context,) = _ADDRESS.unpack_from(memory)
        self.descriptor = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        weakref.finalize(self, _end, self._call, destroy, self._context, self.descriptor)

    def write(self, descriptor: int, address: int, length: int, offset: int, ended: Ended) -> None:
        """Begins to write memory, which stays as it is until then. Raises OSError."""
        self._begin(_WRITE, descriptor, address, length, offset, ended)

    def sync_data(self, descriptor: int, ended: Ended) -> None:
        """Begins fdatasync(2). Raises OSError."""
        self._begin(_SYNC_DATA, descriptor, 0, 0, 0, ended)

    def _begin(self, code: int, descriptor: int, address: int, length: int, offset: int, ended: Ended) -> None:
        if not self._free:
            raise OSError(errno.EAGAIN, "too many operations")
        number = self._free[-1]
        _OPERATION.pack_into(
            self._memory,
            number * _OPERATION.size,
            *(number, 0, 0, code, 0, descriptor, address, length, offset, 0, _SIGNAL, self.descriptor),
        )
        pointer = self._address + self._pointers + number * _ADDRESS.size
        self._check(self._call(self._submit, self._context, 1, pointer, 0, 0))
        self._free.pop()
        self._ended[number] = ended

    def reap(self) -> None:
        """Tells of the operations that have ended."""
        with suppress(BlockingIOError):  # the signal counts, but not exactly those that are found below
            os.eventfd_read(self.descriptor)
        call, events = self._call, self._address + self._events
        found = call(self._getevents, self._context, 0, self._most, events, 0)
        results = [_EVENT.unpack_from(self._memory, self._events + at * _EVENT.size) for at in range(found)]
        for number, _, result, _ in results:
            ended, self._ended[number] = self._ended[number], _nobody
            self._free.append(number)
            ended(result)

    def _check(self, result: int) -> None:
        if result < 0:
            number = ctypes.get_errno()
            raise OSError(number, os.strerror(number))


def address_of(memory: mmap.mmap) -> int:
    """Where anonymous memory lies. It can no longer be closed, and lives as long as its object."""
    return ctypes.addressof(ctypes.c_char.from_buffer(memory))


#: A system call by its number and arguments; of its error ctypes knows.
_Call = Callable[[int, int, int, int, int, int], int]


def _system_call() -> _Call:
    call = ctypes.CDLL(None, use_errno=True).syscall
    call.argtypes = (ctypes.c_long,) * 6
    call.restype = ctypes.c_long
    return call


def _end(call: _Call, destroy: int, context: int, descriptor: int) -> None:
    """Waits for what is under way."""
    call(destroy, context, 0, 0, 0, 0)
    os.close(descriptor)


def _nobody(result: int) -> None:
    """Is not told."""
