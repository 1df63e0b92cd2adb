"""A filter has no use for the difference between false and NULL in (a, b) IN (SELECT x, y).

Filter(R, CASE WHEN EXISTS p THEN true WHEN EXISTS q THEN NULL ELSE false END)  =  Filter(R, EXISTS p)
Filter(R, NOT of that)                                                =  Filter(R, NOT EXISTS p AND NOT EXISTS q)
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from planner.algebra.construction import FALSE, TRUE, conjuncts, filtered
from planner.algebra.nodes import Call, Case, Exists, Filter, Literal, Scalar
from planner.algebra.walk import kinds_of
from planner.rules.node_rule import node_rule


@node_rule(kinds_of(Exists), Filter)
def match_rows(node: Any) -> Any:
    """The relation with filters by rows of a subquery as semi and anti joins may have them."""
    parts = list(conjuncts(node.predicate))
    changed = [item for part in parts for item in _matched(part)]
    return node if changed == parts else filtered(node.input, changed)


def _matched(part: Scalar) -> Iterator[Scalar]:
    match part:
        case Case(branches=((Exists() as found, yes), (Exists(), Literal(value=None))), otherwise=no) if (
            yes == TRUE and no == FALSE
        ):
            yield found
        case Call(function="not", arguments=(Case(branches=((Exists() as found, yes), (Exists() as other, unknown))),)):
            if isinstance(unknown, Literal) and unknown.value is None and yes == TRUE:
                yield Call("not", (found,), part.type)
                yield Call("not", (other,), part.type)
            else:
                yield part
        case _:
            yield part
