"""Which views read which parts: when a view begins to share one, and when a part goes.

Owns: the parts of a database, which of its views read them, and the locks that the readers of these views need. Knows
nothing of how a part is chosen (``shared_parts``), and of how rows of parts, and of views over them, are made and
brought forward (``maintained_views``).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, MutableMapping

from catalog.objects import qualified
from executor.core.core import Core
from executor.maintained.decisions import Decisions
from executor.maintained.expanded_views import Expanded
from executor.maintained.known_view import KnownView
from executor.maintained.shared_parts import SharedParts
from planner.statistics import Statistics


class Sharing:
    """The views of a database that share. Used with the lock of the view that is asked about held."""

    def __init__(self, core: Core, known: MutableMapping[int, KnownView], decisions: Decisions) -> None:
        """``known``: the views whose rows may be kept, and the parts, by oid."""
        self._core, self._known, self._decisions = core, known, decisions
        #: The parts whose rows are kept once for several views.
        self.parts = SharedParts(core)

    def is_part(self, known: KnownView) -> bool:
        """Whether what is known is a part of views."""
        return known.runtime.view.oid in self.parts

    def reads_parts(self, known: KnownView) -> bool:
        """Whether a view's rows are kept over a part."""
        return any(oid in self.parts for oid in known.expanded.sources)

    def begins(self, known: KnownView, statistics: Callable[[Expanded], Statistics]) -> bool:
        """Whether a view is to share a part with others, now that its rows are to be kept or many more changes came."""
        if self._is_sharing(known) or self.is_part(known) or known.method == "recompute":
            return False
        others = [item for item in self._all() if item is not known]
        choice = self.parts.chosen(known, [item for item in others if self._keeps_alone(item)], statistics)
        if choice is None:
            return False
        readers = {oid: self._known.get(oid) for oid in choice.readers}
        if choice.replaced is not None:
            oid = choice.replaced.oid
            readers |= {item.runtime.view.oid: item for item in others if oid in (*item.reads, *item.shares)}
        self._begin(choice.shared.oid, readers)
        self.release()
        self._decisions.note(choice.decision(known.runtime.view.oid))
        return True

    def _begin(self, part: int, readers: Mapping[int, KnownView | None]) -> None:
        """Views are to read a part from now on: their next readers take its lock, too."""
        for oid, reader in readers.items():
            if reader is not None:
                reader.shares = (part,)
                self._core.parts_read[oid] = tuple({*self._core.parts_read.get(oid, ()), part})

    def has_locks(self, known: KnownView) -> bool:
        """Whether this thread has the locks of the parts that a view reads."""
        if self.parts.is_empty:
            return True
        runtimes = (self._core.find_view(oid) for oid in known.reads if oid in self.parts)
        return all(runtime is not None and runtime.lock.is_held for runtime in runtimes)

    def others(self, known: KnownView) -> tuple[str, ...]:
        """The other views that read a part which a view reads."""
        parts = {oid for oid in known.reads if oid in self.parts}
        found = (item for item in self._all() if item is not known and parts.intersection(item.reads))
        return tuple(sorted(qualified(item.runtime.view) for item in found))

    def release(self) -> None:
        """Keeps no rows of parts that no view reads any more, unless another thread is at work with them."""
        used = {oid for known in self._all() for oid in (*known.reads, *known.shares)}
        for part in self.parts.without_use(used):
            with part.runtime.lock.if_free() as is_free:
                if not is_free and not part.runtime.lock.is_held:
                    continue
                self.parts.forget(part)
                known = self._known.pop(part.oid, None)
                if known is not None:
                    known.drop()
                self._decisions.forget(part.oid)

    def _all(self) -> tuple[KnownView, ...]:
        return tuple(self._known.values())

    def _is_sharing(self, known: KnownView) -> bool:
        """Whether a view reads a part, or is to read one."""
        return bool(known.shares) or self.reads_parts(known)

    def _keeps_alone(self, known: KnownView) -> bool:
        """Whether the rows of a view are kept, or being made, without a part."""
        is_kept = known.kept is not None or known.fill is not None
        return is_kept and not self._is_sharing(known) and not self.is_part(known)
