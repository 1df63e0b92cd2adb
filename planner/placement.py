"""Where statements run: what is known of it from the program alone, in words for EXPLAIN.

Which engine can compute a statement exactly is for the engines to say (``executor.engine.supports``), and which one
runs is the scheduler's choice by the rows that wait (architecture, section 3). What the program tells is how a state is
spread: one group is merged in one place (planning.md section 5, Local), a keyed state can be split by its key (Dist).
"""

from __future__ import annotations

from planner.algebra import Join, Snapshot
from planner.program import State, Statement
from planner.walk import walk


def spread(state: State) -> str:
    """How a state can be spread over machines."""
    if not state.key:
        return "local: one group" if state.kind == "aggregate" else "local"
    return f"distributed by {', '.join(column.name for column in state.key)}"


def builds(statement: Statement) -> tuple[str, ...]:
    """The static results that a statement's joins build their hash tables from, wherever it runs."""
    joins = (node for node in walk(statement.relation) if isinstance(node, Join))
    return tuple(dict.fromkeys(node.right.trace for node in joins if isinstance(node.right, Snapshot)))
