"""Where a right side uses columns of L (LATERAL) and has no rows but its own; a join's predicate stands above.

    L inner join Unnest(one row, a)   =  Unnest(L, a)
    L inner join Project(one row, f)  =  Project(L, L's columns and f)

An engine then repeats or completes each row as it reads it, and has no correlation to resolve. An outer join with
Unnest stays, since it keeps the rows whose arrays are empty.
"""

from __future__ import annotations

from typing import Any

from planner.algebra.construction import conjuncts, filtered
from planner.algebra.nodes import ColumnRef, Join, Project, Unnest, Values
from planner.algebra.walk import is_dependent, kinds_of
from planner.rules.node_rule import node_rule

_ONE_ROW = Values((), ((),))


@node_rule(kinds_of(Join), Join)
def unnest_in_place(node: Any) -> Any:
    """The relation with joins of rows and their own arrays as repeated rows."""
    match node:
        case Join(kind="inner", left=left, right=Unnest(input=below) as unnest) if below == _ONE_ROW and is_dependent(
            unnest, left
        ):
            return filtered(Unnest(left, unnest.items, unnest.ordinality), conjuncts(node.predicate))
        case Join(kind="inner", left=left, right=Project(input=below) as project) if below == _ONE_ROW and is_dependent(
            project, left
        ):
            own = tuple((column, ColumnRef(column)) for column in left.columns)
            return filtered(Project(left, own + project.outputs), conjuncts(node.predicate))
        case _:
            return node
