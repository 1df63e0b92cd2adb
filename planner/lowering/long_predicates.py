"""Filters by very many conditions, for an engine that compares each with all others.

    Filter(R, p1 AND ... AND pn)              =  Filter(R, CASE WHEN p1 AND ... AND pn THEN true ELSE false END)
    Filter(R, (p1 AND q1) OR ... OR (pn AND qn))
        =  Filter(R, CASE WHEN (p1 AND q1) OR ... OR (pm AND qm) THEN true WHEN ... THEN true ELSE false END)

DuckDB takes conjunctions apart to combine their parts, and looks in all arms of a disjunction for what they share: a
thousand of them take it seconds, two thousand minutes, and 50,000 have ended the process. Into a CASE it does not look.
Conditions with subqueries stay as they are, since they become joins.
"""

from __future__ import annotations

from typing import Any, Final

from catalog.types import BOOL
from planner.algebra import Filter, Relation
from planner.expression import Call, Case, Scalar
from planner.rules.support import FALSE, TRUE, conjunction, conjuncts, filtered
from planner.walk import is_plain, transform_relations

_MOST: Final = 200
_TOGETHER: Final = 32


def close_conditions(relation: Relation) -> Relation:
    """An equal relation, whose filters have few conditions beside each other."""
    return transform_relations(relation, _closed)


def _closed(node: Any) -> Any:
    if not isinstance(node, Filter):
        return node
    parts = list(conjuncts(node.predicate))
    changed = [_in_groups(part) for part in parts]
    if len(parts) > _MOST:
        plain = conjunction(part for part in changed if is_plain(part))
        rest = [part for part in changed if not is_plain(part)]
        changed = rest if plain is None else [Case(((plain, TRUE),), FALSE, BOOL), *rest]
    return node if changed == parts else filtered(node.input, changed)


def _in_groups(part: Scalar) -> Scalar:
    """The disjunction of very many conjunctions with a few arms in each branch of a CASE."""
    if not isinstance(part, Call) or part.function != "or" or len(part.arguments) <= _MOST or not is_plain(part):
        return part
    if not any(isinstance(arm, Call) and arm.function == "and" for arm in part.arguments):
        return part
    starts = range(0, len(part.arguments), _TOGETHER)
    groups = [part.arguments[start : start + _TOGETHER] for start in starts]
    whens = (group[0] if len(group) == 1 else Call("or", group, BOOL) for group in groups)
    return Case(tuple((when, TRUE) for when in whens), FALSE, BOOL)
