"""Automatic copies of views: any server of the storage can continue a view whose home has failed.

Owns: which views of this server are copied so, when that begins, and when it ends: with a change of what the view is,
or its stream, of which others would have to know. It begins again with what they are then. A view that this server went
on with goes back when its home is there again. The copies are ``checkpoints``'.
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

#: Seconds between two looks, and until what did not succeed is tried again: to copy a view, and to give it back.
_LOOK: Final = 0.5
_AGAIN: Final = 10.0

_LOGGER = logging.getLogger(__name__)


class CopiedViews(Protocol):
    """The views of a server, as far as they are copied and given back."""

    checkpoints: Checkpoints
    ownership: Ownership

    def copy_unasked(self, runtime: ViewRuntime) -> None:
        """Makes the first copy of a view that is at its home and has none."""
        ...

    def forget_unasked(self, runtime: ViewRuntime) -> bool:
        """Ends copies that nobody has asked for; False where there are others."""
        ...

    def give_back(self, runtime: ViewRuntime, owned: Owned) -> None:
        """Gives a view to its home."""
        ...


class Keeping:
    """Those of a server's views. Its thread does nothing where no storage is shared."""

    def __init__(self, core: Core, replicas: Replicas, moving: CopiedViews) -> None:
        self._core, self._replicas = core, replicas
        self._moving = moving
        self._registry = core.registry
        #: Views that cannot be copied, with the catalog's version in which they could not.
        self._staying: dict[int, int] = {}
        #: When it was tried last to copy views, and to give them back.
        self._tried: dict[int, float] = {}
        self._told = ""
        self._thread = Periodic("view-keeping", _LOOK, self._round)

    def start(self) -> None:
        """Keeps copies from now on."""
        options = self._core.options
        if options.storage and options.view_copy_interval > 0:
            self._thread.start()

    def close(self) -> None:
        """Ends the thread."""
        self._thread.close()

    def end(self, runtime: ViewRuntime) -> bool:
        """Ends the copies of a view at its home, before it or its stream changes; False where a copy was requested. The
        caller has the locks of its definition. Raises 55000 for a zombie, 55P03, 58030."""
        return runtime.away is None and self._moving.forget_unasked(runtime)

    def unmade(self, runtime: ViewRuntime) -> None:
        """Handles a failed automatic copy. The log is not kept for it meanwhile, since writers must not wait for it."""
        self._tried[runtime.view.oid] = time.monotonic()
        with contextlib.suppress(SqlError):
            self._moving.forget_unasked(runtime)

    def _round(self) -> None:
        for runtime in self._core.runtimes():
            if self._moving.checkpoints.is_resting:
                break
            if self._is_unkept(runtime):
                self._begin(runtime)
        try:
            self._give_back()
        except (OSError, SqlError) as error:
            self._tell("views cannot migrate back", error)

    def _tell(self, what: str, error: Exception) -> None:
        if str(error) != self._told:
            _LOGGER.warning("%s: %s", what, error)
        self._told = str(error)

    def _is_unkept(self, runtime: ViewRuntime) -> bool:
        if runtime.away is not None or runtime.held is not None or runtime.error is not None:
            return False
        stream = self._core.streams.get(runtime.program.inputs[0])
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
            self._moving.copy_unasked(runtime)
        except (OSError, SqlError) as error:
            if isinstance(error, SqlError) and error.sqlstate == "0A000":
                self._staying[runtime.view.oid] = version
            elif not isinstance(error, SqlError) or error.sqlstate != "55P03":  # a definition is in progress
                self._tell(f"view {runtime.view.name} is not copied", error)
                self._tried[runtime.view.oid] = time.monotonic()
        else:
            self._moving.checkpoints.spent(runtime, time.monotonic() - started)

    def _give_back(self) -> None:
        """Gives back the views that this server continued because their home was lost."""
        for runtime in self._core.runtimes():
            if runtime.shared and replica_of(self._replicas, runtime) is not None:
                owned = self._moving.ownership.get(runtime.shared)
                if owned is not None and self._is_wanted(owned) and not self._is_early(runtime):
                    self._tried[runtime.view.oid] = time.monotonic()
                    self._moving.give_back(runtime, owned)

    def _is_wanted(self, owned: Owned) -> bool:
        """Whether a view's home is there again, which did not give it away."""
        if not (owned.unasked and owned.taken and owned.owner == self._registry.name):
            return False
        home = self._registry.get(owned.home)
        return home is not None and home.state == "up"
