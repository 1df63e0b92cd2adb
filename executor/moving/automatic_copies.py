"""Automatic copies of views at their home, so that another server can continue a view whose home has failed.

Owns: which views are copied, when the copies begin, and when they end: with each change of the definition of the view
or its stream, of which other servers would have to know. They begin again with the new definition. A view that this
server has continued goes back when its home runs again. ``checkpoints`` makes the copies.
"""

from __future__ import annotations

import contextlib
import logging
import time
from math import inf
from typing import Final, Protocol

from catalog.values.errors import SqlError
from executor.cluster.view_ownership import Owned, Ownership
from executor.core.core import Core
from executor.core.periodic import Periodic
from executor.moving.checkpoints import Checkpoints
from executor.replicas.replica import Replicas, replica_of
from executor.traces.layout import home_of
from executor.views.runtime import ViewRuntime

#: Seconds between two rounds, and until a copy or a return that failed is tried again.
_LOOK: Final = 0.5
_AGAIN: Final = 10.0

_LOGGER = logging.getLogger(__name__)


class CopiedViews(Protocol):
    """What automatic copies need of the views' migration."""

    checkpoints: Checkpoints
    ownership: Ownership

    def start_automatic_copies(self, runtime: ViewRuntime) -> None:
        """Makes the first copy of a view that is at its home and has none."""
        ...

    def forget_automatic(self, runtime: ViewRuntime) -> bool:
        """Deletes automatic copies; False where a copy was requested, or the view is being moved."""
        ...

    def return_home(self, runtime: ViewRuntime, owned: Owned) -> None:
        """Gives a view back to its home."""
        ...


class AutomaticCopies:
    """The automatic copies of one server's views. The thread runs only where servers share a storage."""

    def __init__(self, core: Core, replicas: Replicas, moving: CopiedViews) -> None:
        self._core, self._replicas = core, replicas
        self._moving = moving
        self._registry = core.registry
        #: Views that cannot be copied, with the catalog's version in which they could not.
        self._staying: dict[int, int] = {}
        #: The time of the last attempt to copy a view, or to give it back.
        self._tried: dict[int, float] = {}
        self._told = ""
        self._thread = Periodic("view-keeping", _LOOK, self._round)

    def start(self) -> None:
        """Makes copies from now on."""
        options = self._core.options
        if options.storage and options.view_copy_interval > 0:
            self._thread.start()

    def close(self) -> None:
        """Ends the thread."""
        self._thread.close()

    def end(self, runtime: ViewRuntime) -> bool:
        """Ends the copies of a view at its home, before it or its stream changes; False where a copy was requested. The
        caller has the locks of its definition. Raises 55000 for a zombie, 55P03, 58030."""
        return runtime.away is None and self._moving.forget_automatic(runtime)

    def stop_copying(self, runtime: ViewRuntime) -> None:
        """Ends the automatic copies of a view whose last copy failed: the log must not keep records for it, since
        writers would wait."""
        self._tried[runtime.view.oid] = time.monotonic()
        with contextlib.suppress(SqlError):
            self._moving.forget_automatic(runtime)

    def _round(self) -> None:
        for runtime in self._core.runtimes():
            if self._moving.checkpoints.is_resting:
                break
            if self._lacks_copy(runtime):
                self._begin(runtime)
        try:
            self._return_views()
        except (OSError, SqlError) as error:
            self._tell("views cannot migrate back", error)

    def _tell(self, what: str, error: Exception) -> None:
        if str(error) != self._told:
            _LOGGER.warning("%s: %s", what, error)
        self._told = str(error)

    def _lacks_copy(self, runtime: ViewRuntime) -> bool:
        if runtime.away is not None or runtime.held is not None or runtime.error is not None:
            return False
        stream = next((self._core.streams.get(oid) for oid in runtime.program.inputs), None)
        is_staying = self._staying.get(runtime.view.oid) == self._core.catalog.version
        return stream is not None and not home_of(stream.stream) and not is_staying and not self._is_early(runtime)

    def _is_early(self, runtime: ViewRuntime) -> bool:
        return time.monotonic() - self._tried.get(runtime.view.oid, -inf) < _AGAIN

    def _begin(self, runtime: ViewRuntime) -> None:
        version, started = self._core.catalog.version, time.monotonic()
        try:
            if self._moving.checkpoints.error(runtime) is not None:  # of a view that it reads: no rows matter
                self._tried[runtime.view.oid] = started
                return
            self._moving.start_automatic_copies(runtime)
        except (OSError, SqlError) as error:
            if isinstance(error, SqlError) and error.sqlstate == "0A000":
                self._staying[runtime.view.oid] = version
            elif not isinstance(error, SqlError) or error.sqlstate != "55P03":  # a definition is in progress
                self._tell(f"view {runtime.view.name} is not copied", error)
                self._tried[runtime.view.oid] = time.monotonic()
        else:
            self._moving.checkpoints.note_duration(runtime, time.monotonic() - started)

    def _return_views(self) -> None:
        """Gives back the views that this server continued because their home was lost."""
        for runtime in self._core.runtimes():
            if runtime.shared and replica_of(self._replicas, runtime) is not None:
                owned = self._moving.ownership.get(runtime.shared)
                if owned is not None and self._is_home_back(owned) and not self._is_early(runtime):
                    self._tried[runtime.view.oid] = time.monotonic()
                    self._moving.return_home(runtime, owned)

    def _is_home_back(self, owned: Owned) -> bool:
        """Whether a view's home runs again, and the view was not given away by request."""
        if not (owned.unasked and owned.taken and owned.owner == self._registry.name):
            return False
        home = self._registry.get(owned.home)
        return home is not None and home.state == "up"
