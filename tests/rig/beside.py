"""Work beside a test's own thread, in daemon threads: one that hangs fails its test and holds up no process's end."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from concurrent.futures import Future
from typing import Any, Generic, TypeVar

T = TypeVar("T")
#: Seconds after which work that has not ended hangs.
LONG = 60.0


class Beside(Generic[T]):
    """A call in a thread of its own, which begins at once."""

    def __init__(self, work: Callable[..., T], *arguments: Any) -> None:
        self._future: Future[T] = Future()
        threading.Thread(target=_run, args=(self._future, work, *arguments), daemon=True).start()

    @property
    def is_over(self) -> bool:
        """Whether it has returned or raised."""
        return self._future.done()

    def result(self, seconds: float = LONG) -> T:
        """What it returns, or raises; TimeoutError when it does not end in time."""
        return self._future.result(seconds)

    def error(self, seconds: float = LONG) -> BaseException | None:
        """What it raised, if anything; TimeoutError when it does not end in time."""
        return self._future.exception(seconds)


class Repeating:
    """A call that is made again and again in a thread of its own, while a block runs; this raises what it raised."""

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
        """Whether a call has raised, so that there are no more."""
        return self._calls.is_over

    def has_done(self, times: int) -> bool:
        """Whether so many calls have returned, or one has raised, so that there is nothing left to wait for."""
        return self._done >= times or self.has_failed

    def _run(self) -> None:
        while not self._ended.is_set():
            self._work(*self._arguments)
            self._done += 1


def at_once(calls: Iterable[Callable[[], T]]) -> list[T]:
    """What calls return that run at the same time, each in a thread of its own."""
    begun = [Beside(call) for call in calls]
    return [call.result() for call in begun]


def _run(future: Future[T], work: Callable[..., T], *arguments: Any) -> None:
    try:
        future.set_result(work(*arguments))
    except BaseException as error:  # the caller of the result gets it
        future.set_exception(error)
        del future, work, arguments  # the error knows this frame, and would keep them all
