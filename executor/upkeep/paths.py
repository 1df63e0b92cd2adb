"""Which paths of continuous views are due, gathered by their inputs.

Owns: ``PathTask``, one path of one view; ``Sources``, the streams that paths have in common; and the rule by which a
path is due (rows or idle time, architecture section 1).
"""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable, Sequence

from msgspec import Struct

from catalog.objects import qualified
from executor.core.core import Core
from executor.streams.runtime import StreamRuntime, is_followed
from executor.views.progress import Progress
from executor.views.runtime import ViewRuntime
from planner.incremental.programs.program import Path, Program, State, Statement

#: Seconds for which readers that have processed a view's rows may be about to process the next ones.
READING = 0.25


class PathTask(Struct, frozen=True):
    """A path of a view, to be maintained."""

    runtime: ViewRuntime
    progress: Progress

    @property
    def states(self) -> tuple[State, ...]:
        """The states that the path's statements fill."""
        return filled(self.runtime.program, self.progress.path)

    @property
    def scoped(self) -> tuple[tuple[Statement, ...], tuple[State, ...]]:
        """The path's statements and their states for a job that has other views', too: two views may have traces of one
        name."""
        program = self.runtime.definition.scoped
        path = next(item for item in program.paths if item.id == self.progress.path.id)
        return path.statements, filled(program, path)

    @property
    def key(self) -> tuple[int, int]:
        """The view's oid and the path's id."""
        return self.runtime.view.oid, self.progress.path.id


def filled(program: Program, path: Path) -> tuple[State, ...]:
    """The states that a path's statements fill."""
    targets = {statement.target for statement in path.statements}
    return tuple(state for state in program.states if state.name in targets)


class Sources(Struct, frozen=True):
    """The streams that some paths read."""

    streams: tuple[StreamRuntime, ...]

    @property
    def name(self) -> str:
        """The streams' names, for lists of jobs."""
        return ", ".join(qualified(item.stream) for item in self.streams)

    @property
    def last_lsn(self) -> int:
        """The LSN of the last row; 0 where none has come."""
        return max(item.last_lsn for item in self.streams)

    @property
    def idle_seconds(self) -> float:
        """Seconds since a row came."""
        return time.monotonic() - max(item.last_arrival for item in self.streams)

    @property
    def are_followed(self) -> bool:
        """Whether all of them are fed from folders."""
        return all(is_followed(item.stream) for item in self.streams)

    def rows(self, after: int, upto: int) -> int:
        """How many rows an interval holds."""
        return sum(item.feed.rows(after, upto) for item in self.streams)

    def cut(self, after: int, upto: int) -> int:
        """Where a job over an interval had better end, so that memory holds its rows."""
        return min(item.feed.cut(after, upto) for item in self.streams)


def all_paths(core: Core) -> list[tuple[Sources, list[PathTask]]]:
    """The paths of all views that this server maintains, by what they read."""
    found: dict[tuple[int, ...], list[PathTask]] = {}
    for runtime in core.runtimes():
        if runtime.may_go_on:
            runtime.go_on()
        if _is_maintained(runtime):
            for progress in runtime.paths:
                found.setdefault(progress.path.inputs, []).append(PathTask(runtime, progress))
    gathered = ((_sources(core, oids), tasks) for oids, tasks in found.items())
    return [(sources, tasks) for sources, tasks in gathered if sources is not None]


class Standing(Struct, frozen=True):
    """How far some paths were when a queue looked at them. Rows that it is about to read may be gone once one of them
    has moved, or its view was dropped, has failed or has left."""

    tasks: Sequence[PathTask]
    frontiers: tuple[int, ...]

    @classmethod
    def of(cls, tasks: Sequence[PathTask]) -> Standing:
        """How far paths are now."""
        return cls(tasks, _frontiers(tasks))

    def is_still_so(self, core: Core) -> bool:
        """Whether they are there yet."""
        are_there = all(core.is_live(task.runtime) and _is_maintained(task.runtime) for task in self.tasks)
        return are_there and _frontiers(self.tasks) == self.frontiers


def _frontiers(tasks: Iterable[PathTask]) -> tuple[int, ...]:
    return tuple(task.progress.durable for task in tasks)


def _is_maintained(runtime: ViewRuntime) -> bool:
    return runtime.error is None and runtime.away is None


def _sources(core: Core, oids: Sequence[int]) -> Sources | None:
    """The streams with these oids; None where one was dropped meanwhile."""
    streams = tuple(core.streams[oid] for oid in oids if oid in core.streams)
    return Sources(streams) if len(streams) == len(oids) else None


def upper_lsn(core: Core) -> int:
    """The LSN up to which rows may be maintained: no manifest may name one that the disk does not have."""
    return min(core.sequencer.visible, core.sequencer.durable)


def is_due(core: Core, sources: Sources, task: PathTask, pressed: bool) -> bool:
    """Whether a path has enough rows, or any while none come or writers wait (``pressed``)."""
    return is_ready(core, sources, task.progress.durable, upper_lsn(core), pressed)


def is_ready(core: Core, sources: Sources, after: int, upto: int, pressed: bool) -> bool:
    """Whether an interval has enough rows, or any while none come or writers wait."""
    rows = sources.rows(after, upto) if after < upto else 0
    if rows == 0:
        return False
    return pressed or rows >= core.options.maintenance_rows or sources.idle_seconds >= core.options.maintenance_idle


def are_read(views: Iterable[ViewRuntime]) -> bool:
    """Whether readers bring some of these views up to date, one after the other."""
    since = time.monotonic() - READING
    return any(view.readers.is_busy or view.readers.last > since for view in views)


def adjacent(sources: Sources, tasks: Collection[PathTask]) -> list[list[PathTask]]:
    """The paths in groups between whose durable frontiers no row lies: one job over the same interval serves a
    group."""
    groups: list[list[PathTask]] = []
    for task in sorted(tasks, key=lambda item: item.progress.durable):
        last = groups[-1][-1].progress.durable if groups else -1
        if groups and (last == task.progress.durable or sources.rows(last, task.progress.durable) == 0):
            groups[-1].append(task)
        else:
            groups.append([task])
    return groups
