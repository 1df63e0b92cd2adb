"""The threads in which sessions do what may wait."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import ParamSpec, TypeVar

_Arguments = ParamSpec("_Arguments")
_Result = TypeVar("_Result")


class _Refusal(threading.local):
    """Why the thread that submits a call could not get one more worker."""

    error: RuntimeError | None = None


class Workers(ThreadPoolExecutor):
    """Threads whose calls always end for their callers: asyncio's futures do not take StopIteration, and a coroutine
    that awaits a call which raises it would wait for ever. A call for which the system has no thread is not carried
    out later, when its caller has gone on."""

    def __init__(self, max_workers: int, thread_name_prefix: str) -> None:
        super().__init__(max_workers, thread_name_prefix)
        self._refusal = _Refusal()

    def submit(
        self, fn: Callable[_Arguments, _Result], /, *args: _Arguments.args, **kwargs: _Arguments.kwargs
    ) -> Future[_Result]:
        """Calls in a thread; RuntimeError in place of StopIteration. Raises RuntimeError where no thread is there."""

        def ended() -> _Result:
            try:
                return fn(*args, **kwargs)
            except StopIteration as error:
                raise RuntimeError("StopIteration") from error

        self._refusal.error = None
        submitted = super().submit(ended)
        error = self._refusal.error
        if error is not None and submitted.cancel():  # else another thread was free and has begun it
            raise error
        return submitted

    def _adjust_thread_count(self) -> None:
        """``submit`` queues the call before this, so an error here would leave it in the queue."""
        try:
            super()._adjust_thread_count()
        except RuntimeError as error:
            self._refusal.error = error
