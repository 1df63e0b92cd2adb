"""``millstream.paths``: how each part of a continuous view is maintained, and what is computed at each read, with why.

A part is a state, which statements fill as rows arrive or in the background; a node of the dataflow above the states,
whose rows are in memory once they are kept; or the final relation, where it is computed at each read.

Owns the rows. ``planner.explain.dataflows`` has the words of nodes and reasons; ``system_relations`` has the columns.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from catalog.objects import qualified
from executor.core.core import Core
from executor.queries.maintained_views import MaintainedViews
from executor.views.runtime import ViewRuntime
from planner.algebra.nodes import Delta
from planner.algebra.walk import walk
from planner.explain.dataflows import dataflow_json

_Row = tuple[Any, ...]


def path_rows(core: Core, maintained: MaintainedViews) -> list[_Row]:
    """Rows of view, part, method, what it reads, how many rows are kept, and the reason for a recomputation."""
    found: list[_Row] = []
    for runtime in core.runtimes():
        name = qualified(runtime.view)
        found += [(name, *row) for row in (*_states(runtime), *_above(runtime, maintained))]
    return found


def _states(runtime: ViewRuntime) -> Iterator[_Row]:
    for path in runtime.program.paths:
        for statement in path.statements:
            names = {node.name for node in walk(statement.relation) if isinstance(node, Delta)}
            rows = sum(table.num_rows for table in runtime.states[statement.target].tables)
            yield statement.target, statement.method, ", ".join(sorted(names)), rows, None


def _above(runtime: ViewRuntime, maintained: MaintainedViews) -> Iterator[_Row]:
    """What stands above the states."""
    with runtime.lock:
        planned, kept = maintained.facts(runtime)
    told = dataflow_json(planned, kept)
    for node in told.get("Nodes", ()):
        yield f"node {node['Node']}", node["How"], node.get("Reads"), node.get("Rows Kept"), None
    reasons = told.get("Computed at Each Read", ())
    for reason in reasons:
        yield "final relation", "recomputation", None, None, reason
    if not reasons and "Nodes" not in told:
        yield "final relation", "recomputation", None, None, "it reads what it shows, so that keeping it costs as much"
