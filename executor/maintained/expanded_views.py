"""A view's final relation with those of the views below in the places where it reads them.

So the rows of a view that reads views follow the changes of tables and states, whatever lies between, except for views
whose rows are kept: their rows and changes are read. Traces are called by their view, since views may have equal ones
that began at other moments.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import timedelta
from operator import is_
from typing import Any, Final, Protocol

import pyarrow as pa
from msgspec import Struct

from catalog.objects import Table, View
from executor.core.core import Core
from executor.core.statistics import all_statistics_of, statistics_of_scans
from executor.views.runtime import ViewRuntime
from planner.algebra.construction import Fresh
from planner.algebra.nodes import ColumnRef, Project, Relation, Scan, Snapshot
from planner.algebra.walk import descend, find, is_larger, kinds_of, transform
from planner.incremental.cost.choice import Followed, has_alternatives
from planner.incremental.dataflow.graph import Dataflow, Source
from planner.incremental.dataflow.planning import joined
from planner.incremental.dataflow.rewrites.by_facts import by_facts
from planner.incremental.dataflow.rewrites.expired_rows import without_expired
from planner.incremental.programs.program import Program
from planner.incremental.programs.renaming import with_current_names
from planner.statistics import Statistics, TableStatistics

_SCANS: Final = kinds_of(Scan)
_SNAPSHOTS: Final = kinds_of(Snapshot)
#: Nodes of a relation that is too large to be worth a dataflow.
_LARGE: Final = 3000
_OTHER: Final = "a relation is read that is neither a table nor a state"
#: Why a view is not maintained that could be over kept rows of more of the views that it reads.
TOO_LARGE: Final = "the views that it reads are too large together"


class Facts(Struct, frozen=True):
    """What a relation relies on: the constraints of ``tables``, which hold from an LSN on, and why it does not read
    others (``left_out``)."""

    tables: tuple[Table, ...] = ()
    since: int = 0
    left_out: tuple[str, ...] = ()

    def are_current(self, core: Core) -> bool:
        """Whether the tables have had these very constraints since then: one that was dropped and added again may not
        have held meanwhile."""
        return all(_has_constraints(core.catalog.objects.get(table.oid), table) for table in self.tables)


def _has_constraints(now: object, table: Table) -> bool:
    if now is table:
        return True
    if not isinstance(now, Table):
        return False
    pairs = ((now.keys, table.keys), (now.foreign_keys, table.foreign_keys))
    return all(len(new) == len(old) and all(map(is_, new, old)) for new, old in pairs)


NO_FACTS: Final = Facts()


class Expanded(Struct, frozen=True):
    """``relation`` over tables, over views whose rows are kept, and over ``traces``, by name: the view's runtime and
    the trace's own name. ``views``: of which it consists, each with its final relation. ``reason``: why it cannot be
    maintained, or empty."""

    relation: Relation
    views: tuple[tuple[ViewRuntime, Relation], ...]
    traces: Mapping[str, tuple[ViewRuntime, str]]
    constants: frozenset[str]
    time_zone: str
    reason: str = ""
    facts: Facts = NO_FACTS

    def is_current(self, core: Core) -> bool:
        """Whether the views are those that there are, with the definitions that they had, and the tables on whose
        constraints they rely, too."""
        are_live = all(core.is_live(runtime) and runtime.final(runtime.view) is final for runtime, final in self.views)
        return are_live and self.facts.are_current(core)

    def advance(self, lsn: int, with_own: bool = False) -> bool:
        """Brings the states of the views below to an LSN, and ``with_own`` the view's; False where one is beyond it, or
        elsewhere."""
        for runtime, _ in self.views if with_own else self.views[1:]:
            if runtime.away is not None or runtime.has_passed(lsn):
                return False
            runtime.advance(lsn)
        return True

    @property
    def is_too_large(self) -> bool:
        """Whether it could be maintained over kept rows of more of the views that it reads."""
        return self.reason == TOO_LARGE

    @property
    def sources(self) -> tuple[int, ...]:
        """The views that are read by their kept rows."""
        return tuple(sorted({node.oid for node in find(self.relation, _SCANS) if node.kind == "view"}))

    @property
    def expiry(self) -> timedelta | None:
        """After how long the first rows leave states by the clock, without a change that says so; None for never."""
        ages = [item.age for runtime, _ in self.views for item in runtime.program.expiries if item.by_clock]
        return timedelta(microseconds=min(ages)) if ages else None

    def size(self, core: Core) -> int:
        """About how many rows there are in the tables and states that are read."""
        scans = {node.oid for node in find(self.relation, _SCANS) if node.kind == "table"}
        read = {node.trace for node in find(self.relation, _SNAPSHOTS)}
        states = [runtime.states[name] for trace, (runtime, name) in self.traces.items() if trace in read]
        counts = core.tables.row_counts() if scans else {}
        rows: list[int] = [table.num_rows for state in states for table in state.tables]
        return sum(rows) + sum(counts.get(oid, 0) for oid in scans)

    @property
    def followed(self) -> Followed:
        """The relation as the planner follows it."""
        return _followed(self.views[0][0], self.relation, self.constants, self.facts)

    def statistics(self, core: Core, kept: Mapping[int, int]) -> Statistics:
        """What is known of the rows of tables, states, and views, of which so many rows are ``kept``; nothing where the
        relation has no alternatives."""
        found: dict[int | str, TableStatistics] = {**table_statistics(core, self.relation)}
        if has_alternatives(self.relation):
            read = {node.trace for node in find(self.relation, _SNAPSHOTS)}
            states = {trace: runtime.states[name] for trace, (runtime, name) in self.traces.items() if trace in read}
            found |= {
                trace: TableStatistics(float(sum(table.num_rows for table in state.tables)))
                for trace, state in states.items()
            }
            found |= {oid: TableStatistics(float(rows)) for oid, rows in kept.items()}
        return found

    def snapshots(self) -> dict[str, pa.Table]:
        """The rows of the traces, by the engine names of their leaves, without those that are done with."""
        found: dict[str, pa.Table] = {}
        for runtime, _ in self.views:
            own = {name: runtime.losses(name).left(state.snapshot()) for name, state in runtime.states.items()}
            named = {f"s_{name}": rows for name, rows in own.items()} | runtime.snapshots_of_statics()
            found |= {f"s_{scoped_trace(runtime, name.removeprefix('s_'))}": rows for name, rows in named.items()}
        return found


class Owner(Protocol):
    """A view with a program: one that runs, or one that CREATE VIEW would make."""

    @property
    def view(self) -> View:
        """The view as it is defined."""
        ...

    @property
    def program(self) -> Program:
        """Its program."""
        ...

    @property
    def time_zone(self) -> str:
        """The TimeZone setting of its creation."""
        ...

    def final(self, view: View) -> Relation:
        """The relation that makes its rows."""
        ...


class Prospect(Struct, frozen=True):
    """A view that CREATE VIEW would make, or that has another program or other options."""

    view: View
    program: Program

    @property
    def time_zone(self) -> str:
        """The TimeZone setting of its creation."""
        return self.view.time_zone

    def final(self, view: View) -> Relation:
        """The relation that makes its rows."""
        return with_current_names(self.program.final, view.moved)


class Expansion(Struct, frozen=True):
    """A view's final relation over tables and traces, and those of the views, by oid, of which it consists."""

    relation: Relation
    views: Mapping[int, tuple[Owner, Relation]]
    constants: frozenset[str]
    reason: str
    facts: Facts

    @property
    def followed(self) -> Followed:
        """The relation as the planner follows it."""
        owner, _ = next(iter(self.views.values()))
        return _followed(owner, self.relation, self.constants, self.facts)


def _followed(owner: Owner, relation: Relation, constants: frozenset[str], facts: Facts) -> Followed:
    return Followed(relation, f"v{owner.view.oid}", constants, facts.left_out)


def expanded_view(core: Core, runtime: ViewRuntime, kept: Collection[int] = ()) -> Expanded:
    """A view's final relation over tables and states, and over those of the views below whose rows are ``kept``."""
    found = expansion_of(core, runtime, kept)
    own = runtime.view.oid
    views = [(runtime if oid == own else core.view(oid), relation) for oid, (_, relation) in found.views.items()]
    traces = {scoped_trace(owner, name): (owner, name) for owner, _ in views for name in owner.states}
    zone = runtime.time_zone
    return Expanded(found.relation, tuple(views), traces, found.constants, zone, found.reason, found.facts)


def table_statistics(core: Core, relation: Relation) -> Statistics:
    """Of the tables that a relation reads; nothing where it has no alternatives."""
    return all_statistics_of(relation, core.catalog, core.tables, {}) if has_alternatives(relation) else {}


def expansion_of(core: Core, view: Owner, kept: Collection[int] = ()) -> Expansion:
    """A view's final relation over tables and traces, and over those of the views below whose rows are ``kept``."""
    views: dict[int, tuple[Owner, Relation]] = {}
    reason = ""

    def scoped(owner: Owner) -> Relation:
        nonlocal reason
        final = owner.final(owner.view)
        relation = without_expired(core.plans.get(final).relation, owner.program)
        views.setdefault(owner.view.oid, (owner, final))
        program = owner.program
        read = {node.trace for node in find(program.final, _SNAPSHOTS)}
        own = [item for item in program.expiries if item.state in read and not item.by_clock]
        if program.borrowed or owner.time_zone != view.time_zone or not all(item.is_by_times for item in own):
            reason = "rows of its states leave with their sessions, or are another server's, or mean another time zone"
        return _renamed(relation, owner)

    def change(node: Any) -> Any:
        nonlocal reason
        if not is_expanded(node):
            return node
        below = core.find_view(node.oid) if node.kind == "view" else None
        if below is None or reason:
            reason = reason or _OTHER
            return node
        found, _ = fresh.rename(scoped(below))
        places = {item.name: column for item, column in zip(below.view.stored, found.columns, strict=True)}
        return Project(
            found, tuple((c, ColumnRef(places[name])) for c, name in zip(node.columns, node.sources, strict=True))
        )

    def is_expanded(node: Any) -> bool:
        return isinstance(node, Scan) and node.kind != "table" and not (node.kind == "view" and node.oid in kept)

    relation = scoped(view)
    fresh = Fresh(relation)
    while not reason and any(map(is_expanded, find(relation, _SCANS))):
        relation = descend(relation, change, _SCANS)
        if is_larger(relation, _LARGE):
            reason = TOO_LARGE
    facts = NO_FACTS
    if not reason:
        relation, facts = _by_facts(core, joined(relation))
    constants = frozenset(
        scoped_trace(owner, item.name) for owner, _ in views.values() for item in owner.program.statics
    )
    return Expansion(relation, views, constants, reason, facts)


def _by_facts(core: Core, relation: Relation) -> tuple[Relation, Facts]:
    """The relation without what the constraints of tables make needless."""
    catalog, since = core.catalog, core.catalog_lsn
    read = (catalog.objects.get(oid) for oid in dict.fromkeys(scan.oid for scan in find(relation, _SCANS)))
    tables = {item.oid: item for item in read if isinstance(item, Table)}
    found = by_facts(relation, tables)
    if not found.left_out:
        return relation, NO_FACTS
    return found.relation, Facts(tuple(tables.values()), since, found.left_out)


def source_statistics(core: Core, flow: Dataflow, views: Mapping[int, int]) -> Statistics:
    """What is known of the rows whose changes a dataflow follows: of tables, of states, and of views, by how many rows
    are kept of each."""
    read = [node.definition for node in flow.nodes if isinstance(node, Source)]
    scans = [leaf for leaf in read if isinstance(leaf, Scan)]
    traces = {leaf.trace for leaf in read if isinstance(leaf, Snapshot)}
    found = {**statistics_of_scans(scans, core.catalog, core.tables, {})}
    found |= {scan.oid: TableStatistics(float(views[scan.oid])) for scan in scans if scan.oid in views}
    for runtime in core.runtimes() if traces else ():
        states = {scoped_trace(runtime, name): state for name, state in runtime.states.items()}
        rows = {trace: sum(table.num_rows for table in states[trace].tables) for trace in states.keys() & traces}
        found |= {trace: TableStatistics(float(number)) for trace, number in rows.items()}
    return found


def scoped_trace(owner: Owner, trace: str) -> str:
    """What a trace of a view is called in the dataflows that read it."""
    return f"v{owner.view.oid}_{trace}"


def _renamed(relation: Relation, owner: Owner) -> Relation:
    """The relation with the traces of a view called by it."""

    def change(node: Any) -> Any:
        if not isinstance(node, Snapshot):
            return node
        return Snapshot(scoped_trace(owner, node.trace), node.columns, node.sources)

    found: Relation = transform(relation, change, _SNAPSHOTS)
    return found
