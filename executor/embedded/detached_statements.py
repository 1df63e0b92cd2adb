"""Runs statements that DuckDB may not interrupt for long in threads of their own, which can be left behind.

Owns: ``Apart``, one such call, and the decision which texts need it. DuckDB notices no interrupt while it plans a
statement, or while one of its functions computes a vector. If such a statement is interrupted and does not end within
``HEARS`` seconds, its caller continues with 57014, so that locks and transactions end as after any error. The
connection is not used again, and is closed when the statement ends by itself. At most ``MOST`` statements are left
behind at a time; further callers wait for the end.
"""

from __future__ import annotations

import functools
import re
import threading
import time
from collections.abc import Callable
from typing import Any, Final, Generic, TypeVar

from planner.cancellation import cancelled, current

#: Seconds that the engine has to react to an interrupt.
HEARS: Final = 0.4
MOST: Final = 16
#: Characters of a text whose planning may take long.
_LONG: Final = 16 << 10
#: Functions that make large values from small ones, or take long for one value. The list of one struct, whose fields a
#: lambda names, is how quotients are printed; it is as quick as the functions that the lambda calls.
_LARGE: Final = re.compile(
    r"\b(ms_repeat|ms_lpad|ms_rpad|repeat|replace|translate|regexp_replace|string_split\w*|string_agg|array_to_string"
    r"|list_(?!extract\b|transform\(\[\{)\w+|list|levenshtein|ms_moments|ms_series|ms_zoned_moments|ms_numeric_series|ms_array_\w+|to_char\w*"
    r"|doc_\w+|re_\w+|late_\w+)\(",
    re.IGNORECASE,
)

#: The names before parentheses in a reversed text: so the search goes from one "(" to the next.
_CALLED: Final = re.compile(r"\((\w+)")
#: Calls of the function for which the arguments decide.
_TRANSFORM: Final = re.compile(r"\blist_transform\((?!\[\{)", re.IGNORECASE)

_Result = TypeVar("_Result")
_left = threading.Semaphore(MOST)


class _Elsewhere(threading.local):
    """The processor time that other threads have taken for this one."""

    seconds = 0.0


_elsewhere: Final = _Elsewhere()


def thread_seconds() -> float:
    """The processor time of this thread, and of those that have run its statements."""
    return time.thread_time() + _elsewhere.seconds


def is_long(sql: str) -> bool:
    """Whether a statement may not react to an interrupt for long."""
    if len(sql) > _LONG:
        return True
    kinds = set(map(_size_of, set(_CALLED.findall(sql[::-1]))))
    return True in kinds or (None in kinds and _TRANSFORM.search(sql) is not None)


@functools.lru_cache(1024)
def _size_of(backwards: str) -> bool | None:
    """Whether all calls of a function, whose name is reversed, are large; None if the arguments decide."""
    call = f"{backwards[::-1]}("
    return None if _TRANSFORM.fullmatch(call) else _LARGE.fullmatch(call) is not None


class Apart(Generic[_Result]):
    """A call in its own thread. If it is left behind, ``left`` is called in that thread at the end."""

    def __init__(self, function: Callable[..., _Result], arguments: tuple[Any, ...], left: Callable[[], None]) -> None:
        self._function = function
        self._arguments = arguments
        self._left = left
        self._calls = current()
        self._lock = threading.Lock()
        self._changed = threading.Event()
        self._result: list[_Result] = []
        self._error: BaseException | None = None
        self._is_over = self._is_left = False
        self._seconds = 0.0

    def run(self, may_be_left: bool) -> _Result:
        """The call's result. Raises 57014 if it was interrupted and does not end."""
        thread = threading.Thread(target=self._work, name="engine", daemon=True)
        thread.start()
        self._changed.wait()
        if not self._is_over and may_be_left:
            self._changed.clear()
            if not self._is_over:
                self._changed.wait(HEARS)
            self._leave(thread)
        while not self._is_over:
            self._changed.clear()
            if not self._is_over:
                self._changed.wait()
        _elsewhere.seconds += self._seconds
        if self._error is not None:
            raise self._error
        return self._result[0]

    def interrupt(self) -> None:
        """The statement is interrupted; for any thread."""
        if not self._is_over:
            self._changed.set()

    def _leave(self, thread: threading.Thread) -> None:
        if self._is_over or not _left.acquire(blocking=False):
            return
        with self._lock:
            self._is_left = not self._is_over
            if self._is_left and self._calls is not None and thread.ident is not None:
                self._calls.leave_behind(thread.ident)
        if self._is_left:
            raise cancelled()
        _left.release()

    @property
    def is_left(self) -> bool:
        """Whether its caller has continued without it."""
        return self._is_left

    def _work(self) -> None:
        calls = self._calls
        try:
            if calls is None:
                self._result.append(self._function(*self._arguments))
            else:
                self._result.append(calls.within(self._function, *self._arguments))
        except BaseException as error:  # re-raised to the caller
            self._error = error
        self._seconds = time.thread_time()
        with self._lock:
            self._is_over = True
        self._changed.set()
        if self._is_left:
            self._error = None
            self._result.clear()
            _left.release()
            self._left()
