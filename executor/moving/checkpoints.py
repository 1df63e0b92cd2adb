"""Copies of views' states on the storage, from which another server continues when the owner is lost. Guests are copied
always, views at home if a copy was requested or ``automatic_copies`` has them copied.

Owns: when a copy is due, and the order in which it replaces the previous one: its files, the entry that names them, the
deletion of the previous files. The home's log keeps all records above the LSN of the entry's copy, so nothing is lost
between the two. A copy that no entry names does not count, so a server that is no longer the owner changes nothing.
"""

from __future__ import annotations

import contextlib
import logging
import math
import threading
import time
from collections.abc import Callable, Iterator
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from catalog.values.errors import SqlError
from executor.cluster.view_ownership import Owned, Ownership
from executor.core.core import Core
from executor.core.periodic import Periodic
from executor.failpoints import failpoint
from executor.moving import view_artifact as artifact
from executor.moving.exported_states import export_committed_states, export_states
from executor.moving.movability import views_below
from executor.replicas.replica import Replica, Replicas, replica_of
from executor.upkeep.frontiers import Frontiers
from executor.views.runtime import ViewRuntime

#: Seconds between two rounds, and at least between two copies of a view, also after a failed one. A copy may take one
#: part in so many of the time.
_LOOK: Final = 0.2
_PAUSE: Final = 2.0
_SHARE: Final = 10
#: All automatic copies together may take one part in so many of the time.
_UNASKED_SHARE: Final = 50
#: A copy is due at once when one part in so many of ``backlog_bytes`` has come since the last one.
_GATHERED: Final = 4

_LOGGER = logging.getLogger(__name__)


class _Last(Struct):
    """A view's last copy: the runtime and the version of the content that was copied, how many bytes of rows had come,
    when it ended and how many seconds it took, whether it was automatic, and when a copy failed last."""

    runtime: ViewRuntime
    version: object = None
    arrived: int = 0
    ended: float = 0.0
    seconds: float = 0.0
    unasked: bool = False
    failed: float = -math.inf


class _Writing(Struct):
    """States of a view that are being written; ``is_void``: no entry may name them."""

    view: int
    unasked: bool
    is_void: bool = False


class Checkpoints:
    """Copies this server's guests, and those of its own views that are copied. ``lock`` is held while states are
    written to the storage, ``naming`` while an entry is changed; ending copies waits for ``naming`` only."""

    def __init__(self, core: Core, ownership: Ownership, replicas: Replicas, frontiers: Frontiers) -> None:
        self._core, self._replicas, self._frontiers = core, replicas, frontiers
        self._ownership = ownership
        self.lock = threading.Lock()
        self.naming = threading.Lock()
        self._writing: _Writing | None = None
        #: Handovers that were found to be damaged: the next copy replaces them.
        self.damaged: set[str] = set()
        self._last: dict[int, _Last] = {}
        #: Until this time no automatic copy is made, except where rows have gathered.
        self._rests = 0.0
        self._failure_listeners: list[Callable[[ViewRuntime], None]] = []
        self._told = ""
        self._thread = Periodic("view-checkpoints", _LOOK, self._round)

    def on_failure(self, listener: Callable[[ViewRuntime], None]) -> None:
        """``listener`` is called with a view whose automatic copy failed."""
        self._failure_listeners.append(listener)

    def start(self) -> None:
        """Makes copies from now on."""
        self._thread.start()

    def close(self) -> None:
        """Ends the thread."""
        self._thread.close()

    def _round(self) -> None:
        copied = self._copied()
        self._last = {oid: last for oid, last in self._last.items() if oid in copied}
        for runtime, replica in sorted(copied.values(), key=lambda item: self._known(item[0]).ended):
            try:
                if self._is_due(runtime, replica):
                    self.make(runtime, replica, may_rest=True)
                    last = self._known(runtime)
                    if last.unasked:
                        self.note_duration(runtime, last.seconds)
                    self._told = ""
            except Exception as error:
                if self._is_dropped(runtime):  # perhaps with the streams that were just looked at
                    continue
                if not isinstance(error, OSError | SqlError):
                    raise
                if str(error) != self._told:
                    _LOGGER.warning("could not copy view %s: %s", runtime.view.name, error)
                self._told = str(error)
                self._known(runtime).failed = time.monotonic()
                if self._known(runtime).unasked:
                    for listener in self._failure_listeners:
                        listener(runtime)

    def _is_dropped(self, runtime: ViewRuntime) -> bool:
        with self._core.sequencer.lock:  # within which views and streams go together
            return not self._core.is_live(runtime)

    @property
    def is_resting(self) -> bool:
        """Whether automatic copies have used their share of the time."""
        return time.monotonic() < self._rests

    def note_duration(self, runtime: ViewRuntime, seconds: float) -> None:
        """Notes the duration of an automatic copy, which has just ended."""
        last = self._known(runtime)
        last.ended, last.seconds, last.unasked = time.monotonic(), seconds, True
        self._rests = max(self._rests, last.ended + _UNASKED_SHARE * seconds)

    def _copied(self) -> dict[int, tuple[ViewRuntime, Replica | None]]:
        found: dict[int, tuple[ViewRuntime, Replica | None]] = {}
        for runtime in self._core.runtimes():
            replica = replica_of(self._replicas, runtime)
            is_kept = runtime.held is not None and runtime.away is None
            if runtime.shared and not runtime.is_lost and (replica is not None or is_kept):
                found[runtime.view.oid] = (runtime, replica)
        return found

    def _is_due(self, runtime: ViewRuntime, replica: Replica | None) -> bool:
        last = self._known(runtime)
        if time.monotonic() - last.failed < _PAUSE:
            return False
        gathered = self._frontiers.gathered(runtime) if replica is None else replica.arrived - last.arrived
        if gathered > self._core.options.backlog_bytes // _GATHERED:
            return True
        passed = time.monotonic() - last.ended
        if last.unasked:
            return passed > self._core.options.view_copy_interval and not self.is_resting
        return passed > max(_PAUSE, _SHARE * last.seconds)

    def _known(self, runtime: ViewRuntime) -> _Last:
        last = self._last.get(runtime.view.oid)
        if last is None or last.runtime is not runtime:
            last = self._last[runtime.view.oid] = _Last(runtime)
        return last

    def make(self, runtime: ViewRuntime, replica: Replica | None, may_rest: bool = False) -> None:
        """Copies a view as it is now, if rows have come since the last copy. An automatic copy that ``may_rest``
        is left to a later round where it would take too much of the time. Raises 55000 for a zombie."""
        last, started = self._known(runtime), time.monotonic()
        with self.writing(runtime, unasked=True):
            if not self._core.is_live(runtime):  # it was dropped meanwhile
                return
            before = self._ownership.get(runtime.shared)
            if before is None or not before.taken or before.owner != self._core.options.server_name:
                return
            if replica is not None:
                last.arrived = replica.arrived
            elif not before.copied:
                return
            is_news, last.unasked = before.unasked and not last.unasked, before.unasked
            if is_news and may_rest and self.is_resting:  # as at a start
                return
            error = self.error(runtime)
            if error is not None:
                self._fail(error, replica, before)
            elif replica is None:
                # Also where nothing has come: the log keeps all that others write behind the copy.
                if self._core.sequencer.visible > before.at:
                    self._replace(runtime, before, last)
            elif replica.position != before.at or replica.is_behind() or before.handover in self.damaged:
                self._replace(runtime, before, last)
        last.ended = time.monotonic()
        last.seconds = last.ended - started

    @contextlib.contextmanager
    def writing(self, runtime: ViewRuntime, unasked: bool) -> Iterator[None]:
        """A context in which the states of one view are written, and of no other view. ``unasked`` states are given up
        when the view changes."""
        with self.lock:
            with self.naming:
                self._writing = _Writing(runtime.view.oid, unasked)
            try:
                yield
            finally:
                self._writing = None

    def is_writing(self, runtime: ViewRuntime) -> bool:
        """Whether a view's states are being written now. The caller has ``naming``."""
        return self._writing is not None and self._writing.view == runtime.view.oid

    def void_states(self, runtime: ViewRuntime) -> bool:
        """Voids the states of a view that are being written; False where a copy was requested. The caller has
        ``naming``."""
        if self._writing is not None and self.is_writing(runtime):
            self._writing.is_void = self._writing.unasked
            return self._writing.unasked
        return True

    def _replace(self, runtime: ViewRuntime, before: Owned, last: _Last) -> None:
        about = self._core, self._replicas, runtime
        leaving, version = (
            export_committed_states(*about, before.at) if before.unasked and before.copied else export_states(*about)
        )
        version = version, leaving.role, leaving.owners
        if version == last.version and before.handover:
            # No rows of the view's have come, and all are the same roles': the states are those of the last copy.
            self.change(before, replace(before, at=leaving.at))
            return
        storage = self._core.shared
        handover = artifact.write(storage, before.name, leaving)
        failpoint("view-copied")
        older, oldest = self.by_age(before)
        self.name_states(before, replace(before, handover=handover, at=leaving.at, older=older))
        failpoint("view-kept")
        last.version = version
        artifact.delete_one(storage.folder, before.name, oldest)  # the present owner has others

    def by_age(self, before: Owned) -> tuple[str, str]:
        """The handover of an entry that stays when a new one comes, and the handover that does not."""
        if before.handover in self.damaged:
            return before.older, before.handover
        return before.handover, before.older

    def name_states(self, before: Owned | None, after: Owned) -> None:
        """Writes an entry that names new states; where that fails the states are deleted. Raises what ``change``
        raises."""
        try:
            self.change(before, after)
        except BaseException:
            artifact.delete_one(self._core.shared.folder, after.name, after.handover)
            raise

    def change(self, before: Owned | None, after: Owned) -> None:
        """Changes the entry of a view whose states were written. Raises 55P03 where they were voided meanwhile, and
        what ``Ownership.change`` raises."""
        with self.naming:
            if self._writing is not None and self._writing.is_void:
                raise SqlError("55P03", f'the definition of view "{after.view}" changes')
            self._ownership.change(before, after)

    def error(self, runtime: ViewRuntime) -> SqlError | None:
        """The error that is a view's value, or the value of a view that it reads, on any server. Raises XX001."""
        for item in (runtime, *views_below(self._core, runtime)):
            if item.error is not None and not item.is_lost:
                return item.error.error
            owned = self._ownership.get(item.shared) if item.away is not None else None
            if owned is not None and owned.failure is not None:
                return SqlError(*owned.failure)
        return None

    def _fail(self, error: SqlError, replica: Replica | None, before: Owned) -> None:
        """Writes an error that is the view's value into its entry: no rows matter any more, and the home's log need not
        keep them."""
        at = self._core.sequencer.visible
        if replica is not None:
            with replica.lock:
                replica.note()
                at = replica.position
        self._core.sequencer.flush().wait()
        if before.at != at:
            failure = (error.sqlstate, error.message)
            self.change(before, replace(before, failure=failure, at=at))
