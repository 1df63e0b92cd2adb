"""A continuous view's program where its streams, or its traces, are called otherwise.

state(a) += grouping(delta(stream 5))     ->     state(a) += grouping(delta(stream 8))
state(a) += grouping(delta(stream 5))     ->     state(below_7_a) += grouping(delta(stream 5))
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, Final

from msgspec.structs import replace

from planner.algebra.nodes import Delta, Relation, Scan, Snapshot
from planner.algebra.walk import transform
from planner.incremental.programs.program import Borrowed, Path, Program, State, Static

#: How earlier versions began the names of a view's traces.
_OF_VIEW: Final = re.compile(r"^v\d+_", re.ASCII)
#: New names of traces, by those that they have.
Names = Mapping[str, str]


def traces_of(program: Program) -> tuple[State | Static | Borrowed, ...]:
    """All traces of a program."""
    return (*program.statics, *program.states, *program.borrowed)


def names_within(program: Program, scope: str) -> Names:
    """What its traces are called beside those of other programs: their names behind ``scope``."""
    return {item.name: f"{scope}_{item.name}" for item in traces_of(program)}


def names_of_view(program: Program, oid: int) -> Names:
    """What its traces are called in a program of a view with this oid: earlier versions began their names with it."""
    return {item.name: _OF_VIEW.sub(f"v{oid}_", item.name) for item in traces_of(program)}


def retargeted(program: Program, streams: Mapping[int, int]) -> Program:
    """The program over other streams, by oid. Its traces keep their names. Raises ValueError where it reads anything
    but them."""
    names = {item.name: item.name for item in traces_of(program)}

    def change(leaf: Scan | Delta | Snapshot) -> Any:
        if isinstance(leaf, Delta) and leaf.oid in streams:
            return replace(leaf, oid=streams[leaf.oid])
        if isinstance(leaf, Snapshot) and leaf.trace in names:
            return leaf
        raise ValueError("it reads what does not come with it")

    found = renamed(program, names, change)
    paths = (replace(path, inputs=tuple(streams[oid] for oid in path.inputs)) for path in found.paths)
    return replace(found, paths=tuple(paths))


def renamed(
    program: Program, names: Names, change: Callable[[Scan | Delta | Snapshot], Any] = lambda leaf: leaf
) -> Program:
    """The program whose traces have other names, and whose leaves are what ``change`` makes of them."""

    def leaf(node: Any) -> Any:
        if not isinstance(node, Scan | Delta | Snapshot):
            return node
        found = change(node)
        return replace(found, trace=names[found.trace]) if isinstance(found, Snapshot) else found

    def moved(path: Path) -> Path:
        statements = (
            replace(item, target=names[item.target], relation=transform(item.relation, leaf))
            for item in path.statements
        )
        return replace(path, statements=tuple(statements))

    return replace(
        program,
        statics=tuple(replace(item, name=names[item.name]) for item in program.statics),
        states=tuple(replace(item, name=names[item.name]) for item in program.states),
        paths=tuple(map(moved, program.paths)),
        final=transform(program.final, leaf),
        expiries=tuple(
            replace(
                item,
                state=names[item.state],
                watermark=names.get(item.watermark, ""),
                also=tuple(replace(mark, watermark=names[mark.watermark]) for mark in item.also),
            )
            for item in program.expiries
        ),
        borrowed=tuple(replace(item, name=names[item.name]) for item in program.borrowed),
    )


def relations_of(program: Program) -> tuple[Relation, ...]:
    """What a program computes, but for what it computed once."""
    return (*(item.relation for path in program.paths for item in path.statements), program.final)
