"""A continuous view's program where its stream and its traces are called otherwise.

state(v7_state_1) += grouping(delta(stream 5))     ->     state(v9_state_1) += grouping(delta(stream 8))
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec.structs import replace

from planner.algebra import Delta, Relation, Scan, Snapshot
from planner.program import Borrowed, Path, Program, State, Static
from planner.walk import transform


def retargeted(program: Program, streams: Mapping[int, int], scope: str) -> Program:
    """The program over other streams, by oid, whose traces' names begin with ``scope``. Raises ValueError where it
    reads anything but them."""
    traces: tuple[State | Static | Borrowed, ...] = (*program.statics, *program.states, *program.borrowed)
    names = {item.name: f"{scope}_{item.name.partition('_')[2]}" for item in traces}

    def change(node: Any) -> Any:
        match node:
            case Delta(oid=oid) if oid in streams:
                return replace(node, oid=streams[oid])
            case Snapshot(trace=trace) if trace in names:
                return replace(node, trace=names[trace])
            case Scan() | Delta() | Snapshot():
                raise ValueError("it reads what does not come with it")
            case _:
                return node

    def moved(path: Path) -> Path:
        statements = (
            replace(item, target=names[item.target], relation=transform(item.relation, change))
            for item in path.statements
        )
        return replace(path, stream=streams[path.stream], statements=tuple(statements))

    return replace(
        program,
        statics=tuple(replace(item, name=names[item.name]) for item in program.statics),
        states=tuple(replace(item, name=names[item.name]) for item in program.states),
        paths=tuple(map(moved, program.paths)),
        final=transform(program.final, change),
        expiries=tuple(
            replace(item, state=names[item.state], watermark=names[item.watermark]) for item in program.expiries
        ),
        borrowed=tuple(replace(item, name=names[item.name]) for item in program.borrowed),
    )


def relations_of(program: Program) -> tuple[Relation, ...]:
    """What a program computes, but for what it computed once."""
    return (*(item.relation for path in program.paths for item in path.statements), program.final)
