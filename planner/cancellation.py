"""Python code that a cancelled statement leaves wherever it is: planning, values of functions, parsing of COPY.

Owns: ``leave``, which calls such code, and ``Calls``, the stretches of it that run for one client or for one instance
of an engine. An interrupted stretch has ``Left`` raised in its thread between two of its instructions
(https://docs.python.org/3.11/c-api/init.html#c.PyThreadState_SetAsyncExc), and ends with 57014. A stretch is therefore
pure: it takes no lock, changes nothing that others see but caches of whole values, and imports nothing. A call of C
code, a regular expression's match or an engine's statement, ends before its thread hears anything.

    Calls.within(f) ── a thread works for a client
        leave(g)    ── a stretch: opened, g(), closed. ``interrupt`` raises in open stretches only.
"""

from __future__ import annotations

import ctypes
import threading
import time
from collections.abc import Callable
from typing import Any, Final, TypeVar

from catalog.values.errors import SqlError

#: Seconds after which a stretch is interrupted again: what ran when it heard the last time may have kept it to itself.
_AGAIN: Final = 1.0

_Result = TypeVar("_Result")

_raise_in = ctypes.pythonapi.PyThreadState_SetAsyncExc  # with the interpreter's lock held
_raise_in.argtypes = (ctypes.c_ulong, ctypes.py_object)


class Left(BaseException):
    """Raised in a stretch that is interrupted; no error, so that nothing in it takes it for one of its own."""


class Stretch:
    """One call of code that may be left, in the thread that made this object."""

    __slots__ = ("_is_raising", "_told", "_was_told", "began", "is_open", "thread")

    def __init__(self, began: int = 0) -> None:
        self.thread = threading.get_ident()
        self.began = began
        self.is_open = False
        self._is_raising = self._was_told = False
        self._told = -_AGAIN

    def call(self, function: Callable[..., _Result], arguments: tuple[Any, ...]) -> _Result:
        """The function's result. Raises Left where it was interrupted; behind that, nothing is on its way any more."""
        try:
            self.is_open = True
            return function(*arguments)
        finally:
            self.is_open = False
            while True:
                try:
                    self._settle()
                    break
                except Left:  # it was on its way: the function has ended by itself
                    pass

    def _settle(self) -> None:
        """Has what was raised come, whatever the function did with it.

        It is not taken back: CPython 3.11 would go on looking for it at each step, for ever, of all threads.
        """
        while self._is_raising:
            time.sleep(0)
        if self._was_told:
            self._was_told = False
            _raise_in(self.thread, Left)
            while True:
                time.sleep(0)

    def interrupt(self) -> None:
        """Raises Left in the thread; by one thread at a time."""
        self._is_raising = True
        try:
            now = time.monotonic()
            if self.is_open and now - self._told >= _AGAIN:
                self._told, self._was_told = now, True
                _raise_in(self.thread, Left)
        finally:
            self._is_raising = False


#: The processor clocks of threads that were left behind and still work, with their times when they began.
LEFT_BEHIND: Final[dict[int, float]] = {}


class Calls:
    """The stretches that run for one client, in any threads."""

    __slots__ = ("_lock", "_stretches", "clocks", "is_interrupted")

    def __init__(self) -> None:
        #: The processor clocks of the threads that work for the client, with their times when they began.
        self.clocks: dict[int, float] = {}
        #: Whether what runs was interrupted.
        self.is_interrupted = False
        self._stretches: set[Stretch] = set()
        self._lock = threading.Lock()

    def within(self, function: Callable[..., _Result], *arguments: Any) -> _Result:
        """A call whose stretches are the client's."""
        before = getattr(_own, "calls", None)
        if before is self:
            return function(*arguments)
        if not self.clocks:
            self.is_interrupted = False
        clock = time.pthread_getcpuclockid(threading.get_ident())
        _own.calls, self.clocks[clock] = self, time.clock_gettime(clock)
        try:
            return function(*arguments)
        finally:
            _own.calls = before
            self.clocks.pop(clock, None)
            LEFT_BEHIND.pop(clock, None)

    def leave_behind(self, thread: int) -> None:
        """A thread, which has not ended, works for the client no more."""
        clock = time.pthread_getcpuclockid(thread)
        began = self.clocks.pop(clock, None)
        if began is not None:
            LEFT_BEHIND[clock] = began

    def leave(self, function: Callable[..., _Result], *arguments: Any) -> _Result:
        """The result of pure code. Raises 57014 where it was interrupted."""
        stretch = Stretch()
        self._stretches.add(stretch)
        try:
            return stretch.call(function, arguments)
        except Left:
            raise cancelled() from None
        finally:
            self._stretches.discard(stretch)

    def interrupt(self) -> None:
        """Any thread: what runs ends."""
        self.is_interrupted = True
        with self._lock:
            for stretch in tuple(self._stretches):
                stretch.interrupt()


_own = threading.local()


def current() -> Calls | None:
    """Those of the client that this thread works for."""
    calls: Calls | None = getattr(_own, "calls", None)
    return calls


def to_the_end(function: Callable[..., _Result], *arguments: Any) -> _Result:
    """The result of what a cancelled statement must not leave, such as a commit: nothing of it is the client's."""
    before = current()
    _own.calls = None
    try:
        return function(*arguments)
    finally:
        _own.calls = before


def leave(function: Callable[..., _Result], *arguments: Any) -> _Result:
    """The result of pure code that the statement of this thread's client leaves when it is cancelled. Raises 57014."""
    calls = current()
    return function(*arguments) if calls is None else calls.leave(function, *arguments)


def require_wanted() -> None:
    """Raises 57014 where what runs for this thread's client was interrupted: asked between the rounds of a loop that
    calls much and stays in no stretch for long."""
    calls = current()
    if calls is not None and calls.is_interrupted:
        raise cancelled()


def cancelled() -> SqlError:
    """The error of a cancelled statement."""
    return SqlError("57014", "canceling statement due to user request")
