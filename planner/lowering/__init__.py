"""Rewrites relations for an engine that lacks some of the algebra's operators, in terms of simpler ones.

Owns: ``lowered``, for Spark. Each step replaces one kind of node with equal ones; no step knows the engine's dialect.
Other steps serve one purpose each: ``effects`` takes calls with an effect out of a relation, and ``parameter_lists``
and ``single_parameters`` give queries over system relations a form that DuckDB plans once.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Final

from planner.algebra.construction import Fresh
from planner.algebra.nodes import Relation
from planner.algebra.walk import transform
from planner.lowering.aggregates import simple_calls
from planner.lowering.frames import by_number, counted
from planner.lowering.intervals import by_length
from planner.lowering.joined_frames import joined_frames
from planner.lowering.nth_values import nth_values
from planner.lowering.orders import by_keys
from planner.lowering.subqueries import columns_of_subqueries, fields_of_subqueries, in_place

#: In this order, as later steps may rewrite the results of earlier ones.
_STEPS: Final[tuple[Callable[[Any, Fresh], Any], ...]] = (
    in_place,
    counted,
    fields_of_subqueries,
    columns_of_subqueries,
    nth_values,
    joined_frames,
    by_length,
    by_keys,
    by_number,
    simple_calls,
)


def lowered(relation: Relation) -> Relation:
    """An equal relation with only the operators that the engine has."""
    fresh = Fresh(relation)
    for step in _STEPS:
        relation = transform(relation, partial(_changed, step, fresh))
    return relation


def _changed(step: Callable[[Any, Fresh], Any], fresh: Fresh, node: Any) -> Any:
    return step(node, fresh)
