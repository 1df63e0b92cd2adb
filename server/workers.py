"""The threads in which sessions do what may wait."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import ParamSpec, TypeVar

_Arguments = ParamSpec("_Arguments")
_Result = TypeVar("_Result")


class Workers(ThreadPoolExecutor):
    """Threads whose calls always end for who awaits them: asyncio's futures do not take StopIteration, and whoever
    awaits a call that raises it would wait for ever."""

    def submit(
        self, fn: Callable[_Arguments, _Result], /, *args: _Arguments.args, **kwargs: _Arguments.kwargs
    ) -> Future[_Result]:
        """Calls in a thread; RuntimeError in place of StopIteration."""

        def ended() -> _Result:
            try:
                return fn(*args, **kwargs)
            except StopIteration as error:
                raise RuntimeError("StopIteration") from error

        return super().submit(ended)
