"""A grouping below the operators of its pipeline: the shared core of ``live_tables`` and of the higher-order views of
maintained dataflows (``planner.incremental.dataflow.rewrites.higher_order``).

    Aggregate(P(S, T), k, a)  =  Project(Aggregate(P'(Aggregate(S, e, s), T), k', m), f)

The pipeline P has filters, projections, unnests, and joins with relations T that have their rows whatever the row of S
is. Which part of a plan S is, and whether the equation pays, is for those that use this module to say.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from catalog.values.types import INT8, array
from planner.algebra.construction import Fresh
from planner.algebra.nodes import (
    Aggregate,
    Call,
    Column,
    ColumnRef,
    Filter,
    Join,
    Literal,
    Project,
    Relation,
    Scalar,
    Unnest,
)
from planner.algebra.walk import replace_columns
from planner.incremental.rewrites.inner_groupings import InnerGrouping
from planner.incremental.rewrites.pushed_calls import PushedCalls

#: An operator of the pipeline over what is below it, which passes these columns on.
_Build = Callable[[Relation, tuple[Column, ...]], Relation]


class PushedGrouping:
    """One grouping below the operators of its pipeline."""

    def __init__(
        self,
        source: Relation,
        known: frozenset[Column],
        fresh: Fresh,
        streamward: Callable[[Join], Relation],
        is_keyed: bool,
        has_sums_alone: bool = False,
    ) -> None:
        """``streamward`` says which input of a join has the rows of ``source``; ``known`` are columns that are never
        NULL. With ``has_sums_alone`` the inner grouping's state columns are counts and sums (``pushed_sums``)."""
        self._inner = InnerGrouping(source, fresh)
        self._calls = PushedCalls(self._inner, known, fresh, is_keyed, self._inner if has_sums_alone else None)
        self._fresh = fresh
        self._streamward = streamward
        #: What the pipeline's projections compute of the source's row alone.
        self._own: dict[Column, Scalar] = {}

    @property
    def inner(self) -> Aggregate:
        """The grouping below the pipeline, once its rows have been used."""
        return self._inner.grouping

    def relation(self, node: Aggregate, pipeline: Sequence[Relation]) -> Project:
        """The grouping's rows; the pipeline's operators from the top down. Raises TablesStayFrozen."""
        builds = [self._step(item) for item in reversed(pipeline)]
        keys = tuple((self._fresh.copy(column), self._raised(value)) for column, value in node.keys)
        results = [(column, self._calls.result(self._inlined(call))) for column, call in node.aggregates]
        if self._calls.copy is not None:
            places = Call("series", (Literal(1, INT8), self._inner.rows, Literal(1, INT8)), array(INT8))
            copy = ((self._calls.copy, places),)
            builds.append(lambda below, _: Unnest(below, copy))
        found = self._inner.relation()
        for build in builds:
            found = build(found, self._inner.columns)
        outer = Aggregate(found, keys, self._calls.all())
        named = [(column, ColumnRef(key)) for (column, _), (key, _) in zip(node.keys, keys, strict=True)]
        return Project(outer, (*named, *results))

    def _step(self, node: Relation) -> _Build:
        """What an operator becomes."""
        match node:
            case Filter():
                predicate = self._raised(node.predicate)
                return lambda below, _: Filter(below, predicate)
            case Unnest():
                items = tuple((column, self._raised(value)) for column, value in node.items)
                return lambda below, _: Unnest(below, items, node.ordinality)
            case Project():
                return self._projection(node)
            case Join():
                other = node.right if self._streamward(node) is node.left else node.left
                asked = None if node.predicate is None else self._raised(node.predicate)
                return lambda below, _: Join(node.kind, below, other, asked)
            case _:
                raise AssertionError(f"{type(node).__name__} in a pipeline below a grouping")

    def _projection(self, node: Project) -> _Build:
        """What is computed of the source's row alone goes into the expressions that use it."""
        inlined = [(column, self._inlined(value)) for column, value in node.outputs]
        self._own |= {column: value for column, value in inlined if self._inner.is_own(value)}
        others = tuple((column, self._inner.raised(value)) for column, value in inlined if column not in self._own)
        if not others:
            return lambda below, _: below
        return lambda below, passed: Project(below, (*others, *((column, ColumnRef(column)) for column in passed)))

    def _inlined(self, node: Any) -> Any:
        return replace_columns(node, self._own)

    def _raised(self, scalar: Scalar) -> Scalar:
        found: Scalar = self._inner.raised(self._inlined(scalar))
        return found
