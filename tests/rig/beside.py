"""Work in daemon threads beside a test's own thread: hanging work fails its test and does not delay a process's end."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from concurrent.futures import Future
from typing import Any, Generic, TypeVar

T = TypeVar("T")
#: Seconds after which unfinished work counts as hanging.
LONG = 60.0


class Beside(Generic[T]):
    """A call in its own thread, which begins at once."""

    def __init__(self, work: Callable[..., T], *arguments: Any) -> None:
        self._future: Future[T] = Future()
        threading.Thread(target=_run, args=(self._future, work, *arguments), daemon=True).start()

    @property
    def is_over(self) -> bool:
        """Whether it has returned or raised."""
        return self._future.done()

    def result(self, seconds: float = LONG) -> T:
        """The call's result, or its exception; TimeoutError if it does not end in time."""
        return self._future.result(seconds)

    def error(self, seconds: float = LONG) -> BaseException | None:
        """The call's exception, if any; TimeoutError if it does not end in time."""
        return self._future.exception(seconds)


class Repeating:
    """A call repeated in its own thread while a block runs; the end of the block raises its exception."""

    def __init__(self, work: Callable[..., object], *arguments: Any) -> None:
        self._work, self._arguments = work, arguments
        self._ended = threading.Event()
        self._done = 0

    def __enter__(self) -> Repeating:
        self._calls = Beside(self._run)
        return self

    def __exit__(self, *error: object) -> None:
        self._ended.set()
        self._calls.result()

    @property
    def has_failed(self) -> bool:
        """Whether a call has raised, after which there are no more calls."""
        return self._calls.is_over

    def has_done(self, times: int) -> bool:
        """Whether this many calls have returned, or one has raised."""
        return self._done >= times or self.has_failed

    def _run(self) -> None:
        while not self._ended.is_set():
            self._work(*self._arguments)
            self._done += 1


def at_once(calls: Iterable[Callable[[], T]]) -> list[T]:
    """The results of calls that run at the same time, each in its own thread."""
    begun = [Beside(call) for call in calls]
    return [call.result() for call in begun]


def _run(future: Future[T], work: Callable[..., T], *arguments: Any) -> None:
    try:
        future.set_result(work(*arguments))
    except BaseException as error:  # the caller of the result gets it
        future.set_exception(error)
        del future, work, arguments  # the error refers to this frame, which would keep all of them
