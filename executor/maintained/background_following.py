"""When the rows of views that are read follow the changes of what they read: a moment after a commit, before the next
reader asks, so that reads find little to do.

Owns: which views these are, and their pace. A view is brought up to date once a change has stood for ``FIRST`` seconds,
and then after pauses that double until the view is read again: between two reads it takes a number of steps that grows
with the logarithm of the time, whatever the number of changes, and each step follows all changes of its pause at once.
So early work stays in proportion to the work that it spares readers (thrifty query execution, InQP section 2.3: a
higher pace lowers the final work and raises the total work). After ``STEPS`` of them, and at once where a view's
options say so, its nodes go on at paces of their own (``view_pace``), each when so many rows have changed. A trigger
that is timed has all of them go on.

One view is brought up to date at a time, for at most ``SHARE`` of the time. A view that another thread is at work with
is left to that thread, and a step that takes longer than ``LONGEST`` is ended: a recursion may have no end, and readers
wait for the step.
"""

from __future__ import annotations

import logging
import threading
from concurrent.futures import ThreadPoolExecutor, wait
from math import inf
from time import monotonic
from typing import Final, Protocol

from msgspec import Struct

from catalog.values.errors import SqlError
from executor.core.core import Core
from planner.cancellation import Calls

_LOGGER: Final = logging.getLogger(__name__)
#: Seconds from a change to the first step: what comes with it is followed together, and a statement of the same client
#: that comes next finds the processor free.
FIRST: Final = 0.005
#: Steps without a read, two seconds and more, after which the nodes of a view go on at paces of their own.
STEPS: Final = 8
#: How many times as long as its last step a view rests at least, unless it is read: of many changes, each step follows
#: enough at once.
REST: Final = 50
#: The same where nodes go on at paces of their own; and the seconds after which a view is looked at again though none
#: of its nodes is expected to go on: changes that are not read take memory.
PACED_REST: Final = 2
LOOKS: Final = 1.0
#: The part of the time that steps take at most.
SHARE: Final = 1 / 3
#: Seconds that one step may take, and from one interrupt to the next of a step that takes longer.
LONGEST: Final = 2.0
_PATIENCE: Final = 0.02


class Rhythm(Struct, frozen=True):
    """When a view follows changes before a read: soon after them while it is read, if it ``is_eager``; node by node, if
    it ``has_steps``; and all of them ``seconds`` from now, if there are any."""

    is_eager: bool
    has_steps: bool
    seconds: float | None = None


class Followed(Struct, frozen=True):
    """How many changed rows have been read for a view since its rows were made, and how many have to come until the
    next node goes on."""

    read: int = 0
    left: int = 0


class Following(Protocol):
    """The views whose rows are kept."""

    def rhythm(self, oid: int) -> Rhythm | None:
        """When a view follows changes; None where only reads do."""
        ...

    def follow(self, oid: int, is_whole: bool) -> Followed | None:
        """Brings a view's rows to the present, unless another thread is at work with them: all nodes, or those whose
        pace says so. None where there are no such rows."""
        ...


class _Paced(Struct):
    """One view: what it reads, how far it was brought, how often since it was read, and when it is looked at again:
    until then its changes wake nothing. None where it waits for a change. ``trigger``: when all nodes go on."""

    reads: tuple[int, ...]
    reached: int
    steps: int = 0
    due: float | None = None
    trigger: float = inf
    #: How many changed rows had been read when it was last looked at, and when that was.
    read: int = 0
    looked: float = -inf


class BackgroundFollowing:
    """The views of a database that follow changes in the background. Safe for many threads."""

    def __init__(self, core: Core, views: Following) -> None:
        self._core, self._views = core, views
        self._lock = threading.Lock()
        self._paced: dict[int, _Paced] = {}
        #: Set when something has changed that a view waits for.
        self._changed = threading.Event()
        self._ended = threading.Event()
        self._thread: threading.Thread | None = None
        self._steps = ThreadPoolExecutor(1, "following")

    def read(self, oid: int, lsn: int) -> None:
        """The rows of a view, which are kept and stand at an LSN, are read."""
        paced, reads = self._paced.get(oid), self._core.reads_of(oid)
        if paced is None or paced.reads != reads:
            self._leave(oid)
            rhythm = self._views.rhythm(oid)
            if rhythm is not None:
                self._begin(oid, _Paced(reads, lsn, trigger=_moment(rhythm)))
            return
        paced.reached = max(lsn, paced.reached)
        if paced.steps:
            paced.steps = 0
            self._await_change(oid, paced)

    def close(self) -> None:
        """Ends the thread."""
        self._ended.set()
        self._changed.set()
        with self._lock:
            thread = self._thread
        if thread is not None:
            thread.join()
        self._steps.shutdown()

    def _begin(self, oid: int, paced: _Paced) -> None:
        with self._lock:
            if self._ended.is_set() or oid in self._paced:
                return
            self._paced[oid] = paced
            self._wake_for(oid, paced)
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="pace of views", daemon=True)
                self._thread.start()

    def _await_change(self, oid: int, paced: _Paced) -> None:
        """The next change of what a view reads is followed at once."""
        with self._lock:
            if paced.due is not None and self._paced.get(oid) is paced:
                paced.due = None
                self._wake_for(oid, paced)

    def _wake_for(self, oid: int, paced: _Paced) -> None:
        with self._core.sequencer.lock:
            self._core.versions.wake(paced.reads, self._changed)
        if self._core.version_of((oid,)) > paced.reached:  # it came before there was anything to wake
            self._changed.set()

    def _rest(self, oid: int, paced: _Paced, seconds: float) -> None:
        """A view is not looked at for some seconds, unless it is read."""
        with self._lock:
            if paced.due is None and self._paced.get(oid) is paced:
                with self._core.sequencer.lock:
                    self._core.versions.leave(paced.reads, self._changed)
            paced.due = monotonic() + seconds

    def _leave(self, oid: int) -> None:
        """Follows a view no more, until it is read again."""
        with self._lock:
            paced = self._paced.pop(oid, None)
            if paced is not None and paced.due is None:
                with self._core.sequencer.lock:
                    self._core.versions.leave(paced.reads, self._changed)

    def _run(self) -> None:
        while not self._ended.is_set():
            self._changed.wait(self._patience())
            self._changed.clear()
            if self._ended.wait(FIRST):
                return
            started = monotonic()
            for oid, paced in tuple(self._paced.items()):
                if not self._ended.is_set():
                    self._look(oid, paced)
            self._ended.wait((monotonic() - started) * (1 / SHARE - 1))

    def _patience(self) -> float | None:
        """Seconds until a view has rested, or all of its nodes go on; None where nothing is known to come."""
        views = tuple(self._paced.values())
        due = [paced.due for paced in views if paced.due is not None]
        due += [paced.trigger for paced in views if paced.trigger < inf]
        return max(0.0, min(due) - monotonic()) if due else None

    def _look(self, oid: int, paced: _Paced) -> None:
        """Brings a view forward, if it is time and something has changed."""
        due, started = paced.due, monotonic()
        is_triggered = paced.trigger <= started
        if due is not None and started < due and not is_triggered:
            return
        newest = self._core.version_of((oid,))
        if newest <= paced.reached and not is_triggered:
            self._await_change(oid, paced)
            return
        rhythm = self._views.rhythm(oid)
        if rhythm is None:
            self._leave(oid)
            return
        is_eager = rhythm.is_eager and paced.steps < STEPS
        is_whole = is_eager or is_triggered
        followed = self._step(oid, is_whole) if is_whole or rhythm.has_steps else None
        if followed is None:
            self._leave(oid)
            return
        paced.reached, paced.trigger = newest, _moment(rhythm) if is_triggered else min(paced.trigger, _moment(rhythm))
        taken = monotonic() - started
        if is_eager:
            paced.steps += 1
            self._rest(oid, paced, max(FIRST * (1 << paced.steps), REST * taken))
        else:
            self._rest(oid, paced, max(FIRST, PACED_REST * taken, min(_until_due(paced, followed, started), LOOKS)))
        paced.read, paced.looked = followed.read, started

    def _step(self, oid: int, is_whole: bool) -> Followed | None:
        """Brings a view forward; None where its rows are not kept any more."""
        calls = Calls()
        step = self._steps.submit(calls.within, self._views.follow, oid, is_whole)
        wait((step,), LONGEST)
        while not step.done():
            calls.interrupt()
            self._core.engine.interrupt(calls)
            wait((step,), _PATIENCE)
        try:
            return step.result()
        except SqlError as error:  # the next reader gets it
            _LOGGER.debug("the view with OID %d follows no changes: %s", oid, error)
            return None
        except Exception:
            _LOGGER.exception("unexpected error while the view with OID %d followed changes", oid)
            return None


def _until_due(paced: _Paced, followed: Followed, now: float) -> float:
    """Seconds until the next node of a view goes on, if rows come as since it was last looked at."""
    come = followed.read - paced.read
    return followed.left * (now - paced.looked) / come if come > 0 and paced.looked > -inf else 0.0


def _moment(rhythm: Rhythm) -> float:
    """When all nodes of a view go on."""
    return inf if rhythm.seconds is None else monotonic() + rhythm.seconds
