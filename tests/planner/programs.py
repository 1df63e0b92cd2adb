"""Runs a program over the reference evaluator: statics once, then batches, then the final relation."""

from __future__ import annotations

from typing import Any

from planner.algebra.walk import walk
from planner.incremental.names import stored_name
from planner.incremental.programs.program import Program, State
from tests.planner.evaluate import evaluate, merge_state


def run(
    program: Program,
    tables: dict[str, list[dict[str, Any]]],
    batches: list[tuple[str, list[dict[str, Any]]]],
) -> list[tuple[Any, ...]]:
    """The view's rows after batches of (stream, rows), which are appended in order."""
    statics = {
        static.name: [
            {stored_name(column): value for column, value in zip(static.columns, row, strict=True)}
            for row in evaluate(static.relation, tables)
        ]
        for static in program.statics
    }
    runs: dict[str, list[dict[str, Any]]] = {state.name: [] for state in program.states}
    for lsn, (name, rows) in enumerate(batches, 1):
        delta = [row | {"__lsn": lsn, "__ordinal": ordinal} for ordinal, row in enumerate(rows)]
        for path in program.paths:
            for statement in path.statements:
                if name not in {getattr(node, "name", None) for node in walk(statement.relation)}:
                    continue
                state = next(state for state in program.states if state.name == statement.target)
                produced = evaluate(statement.relation, {**statics, name: delta})
                names = [stored_name(column) for column in state.columns]
                runs[state.name] += [dict(zip(names, row, strict=True)) for row in produced]
    snapshots = {state.name: _snapshot(state, runs[state.name]) for state in program.states}
    return evaluate(program.final, {**tables, **statics, **snapshots})


def _snapshot(state: State, rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    if state.kind == "concatenate":
        return rows
    merges = {stored_name(column): call.function for column, call in state.merge}
    return merge_state(rows, tuple(map(stored_name, state.key)), merges)
