"""LIMIT, with an order or of any rows: a few more rows than are shown are kept in order, so that a change needs no
other rows.

With F the rows that are kept, the first ones of R in the order, which come before the others or tie with them::

    F' = (F - gone) + the rows that came before the last one of F - gone        the first ones of R' again
    Q  = the rows of F' at the places that LIMIT and OFFSET name

Where F' has fewer rows than these places, F' is made anew of R', which takes a read of all rows for at least as many
deletions as F had rows to spare.

The least and the greatest value of all rows are the first one of their distinct values.

Guard: LIMIT and OFFSET are constants, and name at most ``MOST`` places.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from catalog.values.types import BOOL, INT8
from planner.algebra.construction import has_subquery
from planner.algebra.nodes import Limit, Literal, Relation, Scalar, Snapshot, Sort
from planner.incremental.dataflow.building import Building, NotMaintained
from planner.incremental.dataflow.graph import FirstRows, candidates_trace, leaf

#: The most rows up to the last one that is shown.
MOST: Final = 1000
#: The least number of rows that are kept.
_LEAST: Final = 64

#: Makes a node of a region.
Closed = Callable[[Relation], Snapshot]


def first_rows(building: Building, node: Limit, closed: Closed) -> Snapshot:
    """The leaf that stands for the rows of ORDER BY with LIMIT. Raises NotMaintained."""
    below, keys = (node.input.input, node.input.keys) if isinstance(node.input, Sort) else (node.input, ())
    count, offset = _number(node.count), 0 if node.offset is None else _number(node.offset)
    if any(has_subquery(key.expression) for key in keys):
        raise NotMaintained("an order is computed by a subquery")
    if count is None or offset is None or not 0 < count + offset <= MOST:
        raise NotMaintained(f"LIMIT and OFFSET do not name a number of rows up to {MOST:,}")
    below = closed(below)
    spare = max(_LEAST, 2 * (count + offset))
    weight, is_kept = building.fresh.column("weight", INT8, False), building.fresh.column("kept", BOOL, False)
    rows = leaf(candidates_trace(building.scope, building.next_id()), (*below.columns, weight, is_kept))
    ordered = Sort(rows, keys) if keys else rows
    return building.add(
        FirstRows(
            building.next_id(),
            node.columns,
            building.expanded(Limit(Sort(below, keys) if keys else below, node.count, node.offset)),
            building.node(below),
            offset,
            offset + count,
            spare,
            weight,
            is_kept,
            ordered,
            Limit(ordered, Literal(spare, INT8), None),
        )
    )


def _number(value: Scalar | None) -> int | None:
    return value.value if isinstance(value, Literal) and type(value.value) is int and value.value >= 0 else None
