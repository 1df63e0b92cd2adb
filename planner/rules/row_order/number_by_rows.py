"""LIMIT and OFFSET that columns of enclosing queries give: by the rows' numbers, which every engine has.

(SELECT x FROM s ORDER BY x LIMIT r.n)  =  the rows of s of which row_number() OVER (ORDER BY x) is at most r.n
"""

from __future__ import annotations

from functools import partial
from typing import Any

from planner.algebra.construction import Fresh, keep_columns
from planner.algebra.nodes import Limit, Relation
from planner.algebra.walk import free_columns, kinds_of, transform_relations
from planner.rules.row_order.number_rows import number_rows


def number_by_rows(relation: Relation) -> Relation:
    """The relation without such limits."""
    return transform_relations(relation, partial(_change, Fresh(relation)), kinds_of(Limit))


def _change(fresh: Fresh, node: Any) -> Any:
    if not isinstance(node, Limit) or not any(free_columns(item) for item in (node.count, node.offset) if item):
        return node
    return keep_columns(number_rows(node, (), fresh), node.columns)
