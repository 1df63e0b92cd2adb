"""How far each stream's rows are safe without the log and the ring, and what is freed below that.

Owns: the durable frontiers of streams over all of their views, the backlog that admission asks for, and the release of
memory and log that no view needs any more. The frontiers themselves are the views' (``executor.views.runtime``).
"""

from __future__ import annotations

import contextlib
import threading
from functools import partial
from typing import Final

from catalog.values.errors import SqlError
from executor.commit.checked_lines import End
from executor.core.core import Core
from executor.core.recycled_log import Forgotten
from executor.files.arrived_files import FileFeed
from executor.replicas.replica import Replicas
from executor.streams.runtime import StreamRuntime
from executor.views.runtime import ViewRuntime

#: Seconds that committed rows may wait for the tables' file, if nothing asks for them.
_LATE: Final = 1.0


class Frontiers:
    """The frontiers of a database's streams."""

    def __init__(self, core: Core, replicas: Replicas) -> None:
        self._core, self._replicas = core, replicas
        self._releasing = threading.Lock()

    def durable_lsn(self, stream: int, otherwise: int) -> int:
        """The LSN up to which no view needs a stream's rows any more, and its history has them; ``otherwise`` where no
        view reads it and no history keeps it.

        What a view has of the time before its creation, of files or a history, holds up nobody else."""
        core = self._core
        kept = [runtime for runtime in core.runtimes() if runtime.error is None]
        paths = [(runtime, progress) for runtime in kept if runtime.away is None for progress in runtime.paths]
        frontiers = [
            max(progress.durable, runtime.view.created_lsn)
            for runtime, progress in paths
            if stream in progress.path.inputs
        ]
        held = (
            (runtime, runtime.held) for runtime in kept
        )  # a view that continues elsewhere also reads what the views below it read
        frontiers += (lsn for item, lsn in held if lsn is not None and stream in core.reads_of(item.view.oid))
        runtime = core.streams.get(stream)
        if runtime is not None and runtime.history is not None and runtime.history.damage is None:
            frontiers.append(runtime.history.frontier)
        return min(frontiers, default=otherwise)

    def read_lsn(self, stream: StreamRuntime) -> int:
        """The LSN up to which every view of a stream has its rows, also those of before the view's creation."""
        oid, upto = stream.stream.oid, self._core.sequencer.visible
        views = (view for view in self._core.views_on(oid) if view.error is None and view.away is None)
        paths = (item for view in views for item in view.paths if oid in item.path.inputs)
        return min((item.durable for item in paths if stream.feed.rows(item.durable, upto)), default=upto)

    def held_lsn(self, stream: int, otherwise: int) -> int:
        """The LSN up to which a stream's rows may go: no further than a view has them that has failed on one, as long
        as the rows behind are fewer than writers may be ahead of views, so that another policy lets it go on."""
        core, durable = self._core, self.durable_lsn(stream, otherwise)
        runtime = core.streams.get(stream)
        failed = [
            max(progress.durable, item.view.created_lsn)
            for item in core.runtimes()
            if item.error is not None and item.error.policy is not None and item.away is None
            for progress in item.paths
            if stream in progress.path.inputs
        ]
        if runtime is None or self.is_log_long:
            return durable
        return min([durable, *(lsn for lsn in failed if runtime.backlog(lsn) <= core.options.backlog_bytes)])

    def _tables_lsn(self, otherwise: int) -> int:
        """The LSN from which on views need what the log has of tables: rows that they lack meet tables as of the rows'
        own LSNs."""
        core = self._core
        views = (item for item in core.runtimes() if item.program.arrival_statics)
        needed = (
            max(progress.durable, runtime.view.created_lsn)
            for runtime in views
            if runtime.error is None or (runtime.error.policy is not None and not self.is_log_long)
            for progress in runtime.paths
            for stream in map(core.streams.get, progress.path.inputs)
            if stream is not None and stream.last_lsn > progress.durable
        )
        return min(needed, default=otherwise)

    def backlog(self, stream: int) -> int:
        """Bytes (as in memory) of a stream's rows that some view still needs."""
        core = self._core
        runtime = core.streams.get(stream)
        if runtime is None:
            return 0
        return runtime.backlog(self.durable_lsn(stream, core.sequencer.visible))

    def gathered(self, runtime: ViewRuntime) -> int:
        """Bytes (as in memory) of the rows that have come behind a view's last copy."""
        core, after = self._core, runtime.held
        streams = (core.streams.get(oid) for oid in core.reads_of(runtime.view.oid))
        return 0 if after is None else sum(item.backlog(after) for item in streams if item is not None)

    @property
    def is_log_long(self) -> bool:
        """Whether the log has grown beyond the budget: a view that gets a few rows now and then may hold it."""
        options = self._core.options
        return self._core.log.size > max(options.backlog_bytes, 4 * options.log_segment_bytes)

    def release(self) -> None:
        """Frees memory and log below what anybody needs."""
        with self._releasing:  # else a thread notes less than another one has let the log forget meanwhile
            self._release()

    def _release(self) -> None:
        core = self._core
        if core.tables.backlog.age > _LATE:
            with contextlib.suppress(SqlError):  # a full disk is reported to the next writer
                core.tables.backlog.apply()
        with core.sequencer.lock:
            visible = core.sequencer.visible
            frontiers = {oid: self.held_lsn(oid, visible) for oid in core.streams}
            waiting = core.tables.backlog.first_lsn
        lowest = held = min(core.sequencer.durable, visible)
        if waiting is not None:
            held = min(held, waiting - 1)
        for oid, upto in frontiers.items():
            stream = core.streams.get(oid)
            if stream is not None and isinstance(stream.feed, FileFeed):
                # Kept beside the log are the files' names, so the log need not wait for the files' rows.
                stream.feed.release(lowest)
            elif stream is not None:
                stream.feed.release(upto)
                held = min(held, upto) if stream.last_lsn > upto else held
        held = min(held, self._tables_lsn(held))
        # A follower of the log reads all of it.
        held = min([held, *(item.held for item in core.runtimes() if item.held is not None)])
        held = min(held, self._replicas.release(lowest))
        core.log.recycle(held + 1, partial(self._note, frontiers))

    def _note(self, frontiers: dict[int, int], upto: int) -> bool:
        """Rows up to an LSN are about to be forgotten, so that no view may begin below them; False where that could not
        be noted."""
        core = self._core
        names = dict[int, End]()
        for oid, runtime in core.streams.items():
            if isinstance(runtime.feed, FileFeed):
                if runtime.feed.damage is not None:
                    return False  # the log has what the file may lack
                names[oid] = runtime.feed.stored_end(upto)
        stored = min(core.tables.stored_lsn, upto)

        def change(known: Forgotten) -> Forgotten:
            gone = {oid: max(known.streams.get(oid, 0), min(frontier, upto)) for oid, frontier in frontiers.items()}
            return Forgotten(gone, max(known.tables, stored), max(known.log or 0, upto), {**known.names, **names})

        try:
            core.note_forgotten(change)
            core.control.sync()
        except (OSError, SqlError):  # the next time, then
            return False
        return True
