"""Filters by very many conditions, for an engine that compares each with all others.

    Filter(R, p1 AND ... AND pn)
        =  Filter(R, CASE WHEN p1 AND ... AND pm THEN true ELSE false END AND CASE ... END)
    Filter(R, p1 OR ... OR pn)
        =  Filter(R, CASE WHEN p1 OR ... OR pm THEN true WHEN ... THEN true ELSE false END)

DuckDB splits conjunctions to combine their parts, and searches all arms of a disjunction for common parts: a thousand
conditions take seconds, two thousand take minutes, and 50,000 have ended the process. It does not look into a CASE. A
chain of conditions takes time quadratic in its length, so each CASE has a part of it. Conditions with subqueries stay
as they are, since they become joins.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

from catalog.values.types import BOOL
from planner.algebra.construction import FALSE, TRUE, conjuncts, filtered
from planner.algebra.nodes import Call, Case, Filter, Relation, Scalar
from planner.algebra.walk import RELATION_KINDS, contains, kinds_of, transform_relations

_MOST: Final = 200
#: Conditions in one chain; fewer if they are conjunctions themselves.
_TOGETHER: Final = 1000
_CONJUNCTIONS: Final = 32


def close_conditions(relation: Relation) -> Relation:
    """An equal relation whose filters have few conditions side by side."""
    return transform_relations(relation, _closed, kinds_of(Filter))


def _closed(node: Any) -> Any:
    if not isinstance(node, Filter):
        return node
    parts = list(conjuncts(node.predicate))
    changed = [_in_groups(part) for part in parts]
    if len(parts) > _MOST:
        plain = [part for part in changed if not contains(part, RELATION_KINDS)]
        rest = [part for part in changed if contains(part, RELATION_KINDS)]
        changed = [*(Case(((_chain("and", some), TRUE),), FALSE, BOOL) for some in _batched(plain, _TOGETHER)), *rest]
    return node if changed == parts else filtered(node.input, changed)


def _in_groups(part: Scalar) -> Scalar:
    """A long disjunction as a CASE with a part of the conditions in each branch."""
    if (
        not isinstance(part, Call)
        or part.function != "or"
        or len(part.arguments) <= _MOST
        or contains(part, RELATION_KINDS)
    ):
        return part
    together = _CONJUNCTIONS if any(map(_is_conjunction, part.arguments)) else _TOGETHER
    whens = (_chain("or", some) for some in _batched(part.arguments, together))
    return Case(tuple((when, TRUE) for when in whens), FALSE, BOOL)


def _is_conjunction(part: Scalar) -> bool:
    return isinstance(part, Call) and part.function == "and"


def _batched(parts: Sequence[Scalar], count: int) -> Iterator[tuple[Scalar, ...]]:
    return (tuple(parts[start : start + count]) for start in range(0, len(parts), count))


def _chain(function: str, parts: tuple[Scalar, ...]) -> Scalar:
    return parts[0] if len(parts) == 1 else Call(function, parts, BOOL)
