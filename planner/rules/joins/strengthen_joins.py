"""Filter(L left join R, p)  =  Filter(L inner join R, p)  where p is not true when a column of R is NULL.

Likewise right; full becomes left or right. A join's own columns that a filter above tests for a value cannot come from
the padding:

    SELECT ... FROM a LEFT JOIN b ON a.k = b.k WHERE b.v > 1             -- inner
    SELECT ... FROM a LEFT JOIN b ON a.k = b.k WHERE coalesce(b.v, 2) > 1 -- stays: padding passes
"""

from __future__ import annotations

from typing import Any, Final

from msgspec.structs import replace

from planner.algebra.nodes import Filter, Join, JoinKind
from planner.algebra.nulls import rejects_null
from planner.algebra.walk import kinds_of
from planner.rules.node_rule import node_rule

#: The join that keeps unmatched rows of the left and right input.
_KINDS: Final[dict[tuple[bool, bool], JoinKind]] = {
    (True, True): "full",
    (True, False): "left",
    (False, True): "right",
    (False, False): "inner",
}


@node_rule(kinds_of(Join), Filter)
def strengthen_joins(node: Any) -> Any:
    """Outer joins made inner (or less outer) where a filter above drops the padded rows."""
    match node:
        case Filter(input=Join(kind="left" | "right" | "full") as join, predicate=predicate):
            rejected = rejects_null(predicate)
            keeps_left = join.kind in ("left", "full") and not rejected & set(join.right.columns)
            keeps_right = join.kind in ("right", "full") and not rejected & set(join.left.columns)
            kind = _KINDS[keeps_left, keeps_right]
            return node if kind == join.kind else Filter(replace(join, kind=kind), predicate)
        case _:
            return node
