"""Project(Project(R, f), g)  =  Project(R, g o f);  op(keep(R))  =  keep'(op(R))  for a keep that only drops columns.

Side conditions: an expression of f that is more than a reference or a literal must not be needed twice (the work would
double with each level), and a volatile one must keep being evaluated once per row:

    SELECT x, x FROM (SELECT random() AS x FROM t) q      -- both columns are equal

Projections that only drop columns (each output keeps its identity) rise above operators that go by identity until a
projection or an aggregate swallows them, or a place that goes by position (root, subquery, set operation) needs them.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

from msgspec.structs import replace

from planner.algebra.construction import keep_columns, keeps_columns, substitute, substitution, volatility
from planner.algebra.nodes import Aggregate, ColumnRef, Filter, Join, Limit, Literal, Project, Relation, Sort
from planner.algebra.walk import kinds_of, walk
from planner.rules.node_rule import node_rule


@node_rule(kinds_of(Project), Project, Aggregate, Filter, Sort, Limit, Join)
def merge_projects(node: Any) -> Any:
    """One projection for a stack of them, and as few as possible between other operators."""
    match node:
        case Project(input=Project() as below) if _mergeable(node, below):
            mapping = substitution(below)
            outputs = tuple((column, substitute(value, mapping)) for column, value in node.outputs)
            return merge_projects.change(Project(below.input, outputs))
        case Project() if keeps_columns(node) and node.columns == node.input.columns:
            return node.input
        case Aggregate(input=Project() as below) if keeps_columns(below):
            return replace(node, input=below.input)
        case Filter(input=Project() as below) | Sort(input=Project() as below) | Limit(input=Project() as below) if (
            keeps_columns(below)
        ):
            return keep_columns(replace(node, input=below.input), node.columns)
        case Join():
            left, right = _without_dropping(node.left), _without_dropping(node.right)
            if (left is node.left and right is node.right) or set(left.columns) & set(right.columns):
                return node
            return keep_columns(replace(node, left=left, right=right), node.columns)
        case _:
            return node


def _without_dropping(node: Relation) -> Relation:
    return node.input if isinstance(node, Project) and keeps_columns(node) else node


def _mergeable(node: Project, below: Project) -> bool:
    uses = Counter(item.column for _, value in node.outputs for item in walk(value) if isinstance(item, ColumnRef))
    return all(
        isinstance(value, ColumnRef | Literal) or (uses[column] <= 1 and volatility(value) != "volatile")
        for column, value in below.outputs
    )
