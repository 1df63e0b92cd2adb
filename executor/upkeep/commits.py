"""The commit of a path's runs, on storage and in memory.

Owns: ``commit``, and what a failed job means for the view. A commit moves the path's durable frontier by
compare-and-swap (``executor.views.storage``); a job that loses has only wasted work.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import pyarrow as pa

from catalog.objects import RowPolicy
from catalog.values.errors import SqlError
from executor.core.core import Core
from executor.upkeep.paths import PathTask
from executor.views.failure import ViewError, is_of_the_rows

#: Seconds until a view is tried again after a failure such as a missing file.
RETRY: Final = 5.0

Runs = Mapping[str, pa.Table] | Mapping[str, tuple[Path, ...]]


def commit(core: Core, task: PathTask, after: int, upto: int, runs: Runs) -> bool:
    """Moves a path's frontier from ``after`` to ``upto`` with its runs, by state name. False when the view was dropped
    or another job committed first."""
    runtime, progress = task.runtime, task.progress
    oid = runtime.view.oid
    with runtime.committing:  # paths of one view may share a state
        stored = core.storage.commit(oid, progress.path.id, after, upto, runs)
        if stored is None:
            return False
        runtime.absorb(progress, upto, stored)
    core.storage.compact(oid, runtime.program.states, core.engine)
    return True


class Retries:
    """When views are tried again after a failure that is not their rows' fault. Safe for many threads."""

    def __init__(self) -> None:
        self._not_before: dict[int, float] = {}

    def is_waiting(self, view: int) -> bool:
        """Whether a view, by oid, is not to be tried yet."""
        return time.monotonic() < self._not_before.get(view, 0.0)

    def forget(self, view: int) -> None:
        """The view may be tried at once."""
        self._not_before.pop(view, None)

    def failed(self, task: PathTask, error: SqlError, lsn: int, policy: RowPolicy) -> None:
        """An error of the rows up to an LSN, which were run under a policy, becomes the view's value; any other lets
        the view be tried again later."""
        if is_of_the_rows(error):
            task.runtime.fail(ViewError(error, lsn, policy))
        else:
            self.later(task)

    def later(self, task: PathTask) -> None:
        """The view is tried again after a while."""
        self._not_before[task.runtime.view.oid] = time.monotonic() + RETRY
