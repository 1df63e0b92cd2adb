"""Queries of the servers that tests fork which wait, where they could leave, until somebody asks something of them.

So a test that asks a query to leave need not be quick, and the query need not take long. Servers that are started as
users do have no such queries: there the time has to do that the query takes.
"""

from __future__ import annotations

import contextlib
from typing import Any, Final

from executor.separation import service
from executor.separation.running_queries import Request, RunningQuery
from tests.rig.process import wait_until

#: What the text of such a query has at its end, and for how many seconds it waits at most, at its first stop.
HELD: Final = "-- held"
_LONGEST: Final = 5.0


class _Held(RunningQuery):
    def __init__(self, *arguments: Any, **more: Any) -> None:
        super().__init__(*arguments, **more)
        # One that goes on has its identifier already.
        self._is_held = self.client.text.endswith(HELD) and self.id not in arguments

    def asked(self) -> list[Request]:
        if self._is_held:
            self._is_held = False
            with contextlib.suppress(AssertionError):
                wait_until(lambda: bool(self._requests), _LONGEST)
        return super().asked()


def hold_queries() -> None:
    """From now on, in this process and those that it forks."""
    service.RunningQuery = _Held  # type: ignore[misc]
