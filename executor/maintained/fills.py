"""Begins to keep the rows of views over much data, in the background.

To fill a dataflow takes several times what its view takes to compute. Meanwhile the view's lock is free: readers
compute the view's rows anew, and find the kept rows once they are there, as of the fill's LSN. Changes since then are
followed as any others.

Owns: the thread, in which one view is filled after the other, the moment that a fill reads, and how a fill is given up.
"""

from __future__ import annotations

import contextlib
import logging
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor, wait
from datetime import datetime
from typing import Final

import pyarrow as pa

from catalog.values.errors import SqlError
from executor.core.core import Core
from executor.core.spark_queries import Analytics
from executor.dataflow.maintained import TooLarge
from executor.embedded.connection import Bindings
from executor.embedded.detached_statements import thread_seconds
from executor.maintained.fill_queries import FillQueries
from executor.maintained.kept_rows import GIVEN_UP, Below, KeptRows, RowsPlan, Unknown
from executor.tables.store import ReadSnapshot
from executor.traces.budget import Held
from executor.views.view_lock import locked
from planner.algebra.nodes import Relation

_LOGGER: Final = logging.getLogger(__name__)
#: Seconds between two interrupts of a fill whose end is waited for.
_PATIENCE: Final = 0.02


class Fill:
    """One view's. The methods may be called from any thread."""

    def __init__(
        self,
        core: Core,
        analytics: Analytics,
        plan: RowsPlan,
        time: datetime,
        held: Held,
        below: Below,
        restored: Callable[[], KeptRows] | None = None,
    ) -> None:
        """``restored`` reads rows that a stop of the server has saved; without it the fill computes them."""
        self._core, self._analytics, self._plan, self._held = core, analytics, plan, held
        self._time, self._below, self._restored = time, below, restored
        self._lock = threading.Lock()
        self._is_wanted = True
        self._is_over = False
        self._is_too_large = False
        self._rows: KeptRows | None = None
        self._snapshot: ReadSnapshot | None = None
        #: The processor time of the fill, once it is over.
        self.seconds = 0.0
        #: How many queries each engine has computed.
        self.engines: Mapping[str, int] = {}

    @property
    def plan(self) -> RowsPlan:
        """How the rows will follow changes."""
        return self._plan

    @property
    def computes(self) -> bool:
        """Whether its rows are computed, not read as they were saved."""
        return self._restored is None

    @property
    def is_over(self) -> bool:
        """Whether it has ended, one way or the other."""
        return self._is_over

    @property
    def is_too_large(self) -> bool:
        """Whether it has failed since the rows take too much memory."""
        return self._is_too_large

    def take(self) -> KeptRows | None:
        """The rows, once it is over; None where it has failed. Asked once."""
        with self._lock:
            rows, self._rows = self._rows, None
            return rows

    def give_up(self) -> None:
        """The rows are not wanted any more."""
        with self._lock:
            self._is_wanted = False
            rows, self._rows = self._rows, None
            if self._snapshot is not None:
                self._snapshot.interrupt()
        if rows is not None:
            rows.close()

    def run(self) -> None:
        """Fills. What goes wrong is logged."""
        name, started = self._plan.expanded.views[0][0].view.name, thread_seconds()
        try:
            self._fill()
        except (*GIVEN_UP, SqlError) as error:
            self._is_too_large = isinstance(error, TooLarge)
            _LOGGER.debug("rows of view %s are not kept: %r", name, error)
        except Exception:
            _LOGGER.exception("rows of view %s are not kept", name)
        finally:
            if self._rows is None:
                self._held.close()
            self.seconds = thread_seconds() - started
            self._is_over = True

    def _fill(self) -> None:
        if self._restored is not None:
            self._give(self._restored())
            return
        found = self._begun()
        if found is None:
            return
        rows, snapshot = found
        view, time_zone = self._plan.expanded.views[0][0].view, self._plan.expanded.time_zone
        queries = FillQueries(self._core, self._analytics, snapshot, view, time_zone, lambda: not self._is_wanted)

        def whole(relation: Relation, bindings: Bindings) -> pa.Table:
            if not self._is_wanted:
                raise Unknown
            return queries.rows(relation, bindings)

        try:
            with queries:
                rows.fill(whole)
            rows.index()
        except BaseException:
            rows.close()
            raise
        finally:
            with self._lock:
                self._snapshot = None
            snapshot.close()
        self.engines = queries.engines
        self._give(rows)

    def _give(self, rows: KeptRows) -> None:
        with self._lock:
            if self._is_wanted:
                self._rows = rows
                return
        rows.close()

    def _begun(self) -> tuple[KeptRows, ReadSnapshot] | None:
        """What is to be filled, at a moment, and the tables at it; None where the view has gone on meanwhile."""
        core, expanded = self._core, self._plan.expanded
        own = expanded.views[0][0].view.oid
        core.tables.backlog.apply()
        with locked(runtime.lock for oid in core.views_locked((own,)) if (runtime := core.find_view(oid)) is not None):
            with core.sequencer.lock:
                if not self._is_wanted or not expanded.is_current(core):
                    return None
                lsn, snapshot = core.sequencer.visible, core.tables.snapshot()
            try:
                if not expanded.advance(lsn, with_own=True):
                    raise Unknown
                time, held, below = self._time, self._held, self._below
                rows = KeptRows(core, self._plan, lsn, time, held, below)
            except BaseException:
                snapshot.close()
                raise
            with self._lock:
                self._snapshot = snapshot
            return rows, snapshot


class Fills:
    """Those of a database, one at a time."""

    def __init__(self) -> None:
        self._thread = ThreadPoolExecutor(1, "fills")
        self._begun: dict[Future[None], Fill] = {}

    def begin(self, fill: Fill) -> None:
        """Runs a fill after those before it; none once the database is closed."""
        with contextlib.suppress(RuntimeError):
            future = self._thread.submit(fill.run)
            self._begun[future] = fill
            future.add_done_callback(self._begun.pop)

    def close(self) -> None:
        """Gives up the one that runs, waits for its end, and begins no other."""
        self._thread.shutdown(wait=False, cancel_futures=True)
        for future, fill in tuple(self._begun.items()):
            while not future.done():
                fill.give_up()  # an interrupt that comes between two queries is not heard
                wait((future,), _PATIENCE)
        self._thread.shutdown()
