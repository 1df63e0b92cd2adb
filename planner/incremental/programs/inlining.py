"""A continuous view's program with those of the continuous views that it reads whenever it is read.

So it needs none of them where it goes: their states are its own there, filled by its own paths. What stands above the
states is computed when the view is read (thesis 4.2.1), so that of one view may stand in that of another. Knows nothing
of servers or of rows.

final over scan(view 9)     ->     final over (final of view 9), and states(9), paths(9) beside its own
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from planner.algebra.construction import Fresh
from planner.algebra.nodes import ColumnRef, Project, Relation, Scan
from planner.algebra.walk import transform
from planner.incremental.programs.program import Path, Program, Statement, readers_first
from planner.incremental.programs.retargeting import Names, names_within, renamed
from planner.incremental.programs.zones import in_zone


class Below(Struct, frozen=True):
    """A view that another one reads: its program, by which names its columns are read, in order, and its TimeZone
    setting where there are several among them."""

    program: Program
    sources: tuple[str, ...]
    zone: str | None = None

    def placed(self, names: Names) -> Below:
        """With other names of traces, and what it computes in its own time zone."""
        program, zone = renamed(self.program, names), self.zone
        return replace(self, program=program if zone is None else in_zone(program, zone))


def names_below(program: Program, oid: int) -> Names:
    """What traces of a view below are called in the program of a view that reads it."""
    return names_within(program, f"below_{oid}")


def inlined(program: Program, below: Mapping[int, Below]) -> Program:
    """The program that reads none of the views ``below``, by oid; these are all that it reads, and they read."""
    if not below:
        return program
    views = {oid: view.placed(names_below(view.program, oid)) for oid, view in below.items()}
    programs = (program, *(view.program for view in views.values()))
    inliner = _Inliner(views, Fresh(*(item.final for item in programs)))
    return replace(
        program,
        statics=tuple(chain.from_iterable(item.statics for item in programs)),
        states=tuple(chain.from_iterable(item.states for item in programs)),
        paths=_paths(programs),
        final=inliner.of(program.final),
        point_key=(),
        expiries=tuple(chain.from_iterable(item.expiries for item in programs)),
    )


class _Inliner:
    """What scans of views stand for, each time with columns of its own."""

    def __init__(self, views: Mapping[int, Below], fresh: Fresh) -> None:
        self._views = views
        self._fresh = fresh

    def of(self, relation: Relation) -> Relation:
        """A relation without scans of views."""
        found: Relation = transform(relation, self._change)
        return found

    def _change(self, node: Any) -> Any:
        if not isinstance(node, Scan) or node.kind != "view":
            return node
        view = self._views[node.oid]
        rows, columns = self._fresh.rename(self.of(view.program.final))
        made = dict(zip(view.sources, view.program.final.columns, strict=True))
        values = (ColumnRef(columns[made[source]]) for source in node.sources)
        return Project(rows, tuple(zip(node.columns, values, strict=True)))


def _paths(programs: Sequence[Program]) -> tuple[Path, ...]:
    """The paths of several programs: those of the same inputs become one."""
    statements: dict[tuple[int, ...], list[Statement]] = {}
    for path in chain.from_iterable(item.paths for item in programs):
        statements.setdefault(path.inputs, []).extend(path.statements)
    return tuple(Path(place, inputs, readers_first(own)) for place, (inputs, own) in enumerate(statements.items()))
