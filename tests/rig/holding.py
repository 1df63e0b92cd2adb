"""Queries in forked test servers that wait at their first stop until they get a request.

So a test that asks a query to leave need not be quick, and the query need not take long. Servers that are started as
users do have no such queries: their tests must act while the query runs.
"""

from __future__ import annotations

import contextlib
from typing import Any, Final

from executor.separation import service
from executor.separation.running_queries import Request, RunningQuery
from tests.rig.process import wait_until

#: The end of the text of such a query, and the longest wait in seconds at its first stop.
HELD: Final = "-- held"
_LONGEST: Final = 5.0


class _Held(RunningQuery):
    def __init__(self, *arguments: Any, **more: Any) -> None:
        super().__init__(*arguments, **more)
        # A query that continues has its identifier already.
        self._is_held = self.client.text.endswith(HELD) and self.id not in arguments

    def asked(self) -> list[Request]:
        if self._is_held:
            self._is_held = False
            with contextlib.suppress(AssertionError):
                wait_until(lambda: bool(self._requests), _LONGEST)
        return super().asked()


def hold_queries() -> None:
    """Installs this in the process, and in those that it forks."""
    service.RunningQuery = _Held  # type: ignore[misc]
