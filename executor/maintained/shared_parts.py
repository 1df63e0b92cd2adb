"""Parts of views whose rows are kept once for several views (iShare): which there are, and which one a view would read.

A part is kept as a view that has no name: its rows follow the changes of its tables by a dataflow of its own, with a
lock of its own, which is taken after those of the views. A view that reads a part has the part's rows and changes in
the place of joins of its own. It reads the part once the part's rows are there; until then it keeps its own.

Owns: the choice of a part for a view, and the part as a view. Knows nothing of which views read it (``sharing``), and
of what it saves (``planner.incremental.sharing.benefit``).
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from catalog.objects import ColumnDefinition, Table, View
from catalog.values.types import SqlType
from executor.core.core import Core
from executor.core.statistics import all_statistics_of
from executor.maintained.dataflow_choice import guarded_plan
from executor.maintained.decisions import FOLLOWED, Decision
from executor.maintained.expanded_views import Expanded
from executor.maintained.kept_rows import most_bytes
from executor.maintained.known_view import KnownView
from executor.views.runtime import ViewRuntime
from planner.incremental.cost.choice import Followed
from planner.incremental.cost.flow_sizes import FlowSizes
from planner.incremental.dataflow.rewrites.rewriting import GUARDED
from planner.incremental.programs.program import without_traces
from planner.incremental.sharing.benefit import Reader, Saving, rows_of_part, saved_by_sharing
from planner.incremental.sharing.join_parts import FIRST_PART, JoinPart, Place, common, parts_of, reading, source_of
from planner.statistics import Statistics, TableStatistics

#: The most parts that are compared for one view, and the most views for which one is estimated.
_COMPARED: Final = 6
#: By which a part that is not there is read where it is estimated.
_PROSPECTIVE: Final = FIRST_PART - 1


class SharedPart(Struct, frozen=True):
    """A part, as a view without a name, with the types that its columns had in their tables when it was made."""

    part: JoinPart
    runtime: ViewRuntime
    types: Mapping[Place, SqlType | None]

    @property
    def oid(self) -> int:
        """By which views read it."""
        return self.runtime.view.oid

    def is_current(self, core: Core) -> bool:
        """Whether its columns are still in the tables. No view stands in the way of dropping one that none reads."""
        return _types(core, self.types) == self.types


class Option(Struct, frozen=True):
    """A part that views might read. It is made for all ``members``, unless it is ``there``, or one is there that has
    the same rows and fewer columns: then its ``readers`` read this one from now on, as does the one new member."""

    part: JoinPart
    members: tuple[KnownView, ...]
    there: SharedPart | None = None

    @property
    def readers(self) -> tuple[int, ...]:
        """The views for which it is made, by oid."""
        return tuple(item.runtime.view.oid for item in self.members)


class Choice(Struct, frozen=True):
    """A part that views are to read from now on, and the one whose readers read it, too."""

    shared: SharedPart
    readers: tuple[int, ...]
    replaced: SharedPart | None
    saving: Saving

    def decision(self, view: int) -> Decision:
        """That a view shares the part."""
        saving = self.saving
        memory = f"{saving.memory_shared + saving.memory_part:,.0f} bytes instead of {saving.memory_alone:,.0f}"
        reason = f"{saving.readers} views keep {memory}" if saving.readers > 1 else "the part is there already"
        chosen = f"{FOLLOWED} over {self.shared.part.title}"
        return Decision(view, chosen, FOLLOWED, reason, saving.shared, saving.alone)


class SharedParts:
    """The parts of one database. Safe for many threads."""

    def __init__(self, core: Core) -> None:
        self._core = core
        self._lock = threading.Lock()
        self._parts: dict[int, SharedPart] = {}
        self._next = FIRST_PART

    def __contains__(self, oid: object) -> bool:
        return oid in self._parts

    @property
    def is_empty(self) -> bool:
        """Whether there are none."""
        return not self._parts

    def over(self, expanded: Expanded, oids: Iterable[int]) -> Expanded:
        """A view that reads some parts."""
        relation = expanded.relation
        for oid in oids:
            found = self._parts.get(oid)
            if found is not None:
                relation = reading(relation, found.part, oid)
        return expanded if relation is expanded.relation else replace(expanded, relation=relation)

    def chosen(
        self, view: KnownView, others: Sequence[KnownView], statistics: Callable[[Expanded], Statistics]
    ) -> Choice | None:
        """The part that a view is to share with ``others``, which keep rows without a part, or with the readers of one
        that is there. ``statistics`` knows the rows of what a view reads."""
        setting = self._core.options.view_sharing
        if setting == "off":
            return None
        found = ((option, self._saving(option, statistics)) for option in self._options(view, others))
        worth = [
            (item, saving) for item, saving in found if saving is not None and (setting == "on" or saving.is_worth)
        ]
        if not worth:
            return None
        option, saving = max(worth, key=lambda item: item[1].milliseconds)
        there = option.there
        if there is not None and there.part.key == option.part.key:
            return Choice(there, option.readers, None, saving)
        return Choice(self._made(option.part, view), option.readers, there, saving)

    def _made(self, part: JoinPart, view: KnownView) -> SharedPart:
        """A part that was not there."""
        relation = part.relation()
        with self._lock:
            oid, self._next = self._next, self._next + 1
            columns = tuple(
                ColumnDefinition(source_of(place), column.type)
                for place, column in zip(part.shown, relation.columns, strict=True)
            )
            settings = (("TimeZone", view.runtime.time_zone),)
            name = f"{part.title} ({oid - FIRST_PART})"
            named = View(oid, name, columns, "", True, 0, settings=settings, derived=True)
            runtime = ViewRuntime(named, without_traces(relation), self._core.engine, {}, {}, {}, lambda state: [])
            found = self._parts[oid] = SharedPart(part, runtime, _types(self._core, part.used))
            self._core.parts[oid] = runtime
        return found

    def without_use(self, used: Container[int]) -> list[SharedPart]:
        """The parts that are not ``used``, or have lost a column."""
        parts = tuple(self._parts.values())
        return [item for item in parts if item.oid not in used or not item.is_current(self._core)]

    def forget(self, part: SharedPart) -> None:
        """A part is not there any more; those that read it find that out."""
        with self._lock:
            self._parts.pop(part.oid, None)
            self._core.parts.pop(part.oid, None)
        part.runtime.close()

    def _options(self, view: KnownView, others: Sequence[KnownView]) -> Iterator[Option]:
        """The parts that a view has in common with others."""
        zone, relation = view.runtime.time_zone, view.plan.expanded.relation
        parts = tuple(self._parts.values())
        there = [item for item in parts if item.runtime.time_zone == zone and item.is_current(self._core)]
        alone = [item for item in others if item.runtime.time_zone == zone]
        for own in islice(parts_of(relation), _COMPARED):
            for shared in there:
                yield from (
                    Option(part, (view,), shared) for part in common(own, shared.part) if part.rows == shared.part.rows
                )
            groups: dict[object, tuple[JoinPart, list[KnownView]]] = {}
            for other in alone:
                theirs = (part for item in parts_of(other.plan.expanded.relation) for part in common(own, item))
                for part in theirs:
                    before, members = groups.setdefault(part.rows, (part, [view]))
                    are_others = other not in members
                    groups[part.rows] = before.with_columns(part), [*members, other] if are_others else members
            by_size = sorted(groups.values(), key=lambda item: len(item[1]), reverse=True)
            yield from (Option(part, tuple(members)) for part, members in by_size[:_COMPARED])

    def _saving(self, option: Option, statistics: Callable[[Expanded], Statistics]) -> Saving | None:
        """What a part saves; None where it cannot be maintained, or does not fit into memory."""
        oid = _PROSPECTIVE if option.there is None else option.there.oid
        members = option.members[:_COMPARED]
        known: dict[int | str, TableStatistics] = {}
        for expanded in (item.plan.expanded for item in members):
            known |= {**all_statistics_of(expanded.relation, self._core.catalog, self._core.tables, {})}
            known |= statistics(expanded)
        flow = Followed(option.part.relation(), f"v{oid}").planned(known, GUARDED).dataflow
        if flow is None:
            return None
        known[oid] = rows_of_part(option.part, FlowSizes(flow, known, {}))
        readers = [found for item in members if (found := _reader(item, option.part, oid, known)) is not None]
        if len(readers) < len(members):
            return None
        saving = saved_by_sharing(flow, oid, readers, known, is_there=option.there is not None)
        return saving if saving.memory_part <= most_bytes(self._core) else None


def _types(core: Core, places: Iterable[Place]) -> dict[Place, SqlType | None]:
    """The types of some columns of tables; None for one that is not there."""
    found: dict[Place, SqlType | None] = {}
    for oid, source in places:
        table = core.catalog.objects.get(oid)
        columns = table.stored if isinstance(table, Table) else ()
        found[oid, source] = next((column.type for column in columns if column.name == source), None)
    return found


def _reader(view: KnownView, part: JoinPart, oid: int, statistics: Statistics) -> Reader | None:
    """A view without a part and over it; None where it is not maintained one way or the other."""
    expanded, alone = view.plan.expanded, view.plan.planned.dataflow
    relation = reading(expanded.relation, part, oid)
    if alone is None or relation is expanded.relation:
        return None
    sharing = guarded_plan(replace(expanded, relation=relation), statistics).planned.dataflow
    return None if sharing is None else Reader(alone, sharing, view.usual)
