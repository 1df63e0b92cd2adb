"""Rules keep a plan's rows: random plans, through each rule and through all."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from catalog.values.types import BOOL, INT8
from planner.algebra.nodes import (
    AggregateCall,
    ColumnRef,
    Literal,
    Relation,
    Scalar,
    Sort,
    SortKey,
    WindowCall,
)
from planner.algebra.validate import validate
from planner.algebra.walk import walk
from planner.rules import RULES, optimise, rewrite
from planner.rules.filters.push_down_filters import push_down_filters
from planner.rules.row_order.order_lists import order_lists
from planner.rules.subqueries.join_existing import join_existing
from tests.planner.builders import (
    agg,
    both,
    call,
    cross,
    either,
    eq,
    exists,
    group,
    in_list,
    join,
    limit,
    lit,
    negate,
    numbered,
    order,
    project,
    ref,
    rel,
    table,
    union,
    where,
)
from tests.planner.evaluate import bag, evaluate
from tests.rig.sampling import examples

_value = st.one_of(st.none(), st.integers(0, 2))
_rows = st.lists(st.fixed_dictionaries({"a": _value, "b": _value}), max_size=4)


@st.composite
def relations(draw: Any, depth: int = 3) -> Relation:
    """A random plan over fresh scans of r and s."""
    shapes = ["scan"] if depth == 0 else ["filter", "project", "join", "join", "aggregate", "set", "limit", "keep"]
    shape = draw(st.sampled_from(shapes))
    if shape == "scan":
        return rel(table(draw(st.sampled_from("rs")), "a b"))
    below = draw(relations(depth - 1))
    if shape == "filter":
        return where(below, draw(predicates(below)))
    if shape == "project":
        return project(below, a=draw(numbers(below)), b=draw(numbers(below)))
    if shape == "keep":
        return project(below, b=ref(below, below.columns[-1].name))
    if shape == "aggregate":
        key = {"k": draw(numbers(below))} if draw(st.booleans()) else {}
        return group(below, key, n=agg("max", draw(numbers(below))), m=agg("min", draw(numbers(below))))
    if shape == "limit":
        return limit(order(below, *(ref_at(below, place) for place in range(len(below.columns)))), 2)
    other = draw(relations(depth - 1))
    if shape == "set":
        kind = draw(st.sampled_from(("union", "intersect", "except")))
        left, right = (project(side, x=draw(numbers(side)), y=draw(numbers(side))) for side in (below, other))
        return union(kind, draw(st.booleans()), left, right)
    kind = draw(st.sampled_from(("inner", "left", "right", "full", "semi", "anti")))
    pair = cross(below, other)
    predicate = draw(st.one_of(st.none(), predicates(pair)))
    return join(kind, below, other, predicate)


def ref_at(relation: Relation, place: int) -> Scalar:
    column = relation.columns[place]
    return ColumnRef(column)


@st.composite
def numbers(draw: Any, relation: Relation) -> Scalar:
    place = draw(st.integers(0, len(relation.columns) - 1))
    column = ref_at(relation, place)
    return draw(
        st.sampled_from((column, call("add", column, 1), lit(draw(st.integers(0, 2))), call("coalesce", column, 0)))
    )


@st.composite
def predicates(draw: Any, relation: Relation) -> Scalar:
    def comparison() -> Scalar:
        function = draw(st.sampled_from(("eq", "lt", "is_null", "is_distinct", "constant")))
        if function == "constant":
            return draw(st.sampled_from((lit(True), lit(False), Literal(None, BOOL))))
        first = draw(numbers(relation))
        if function == "is_null":
            return call("is_null", first)
        return call(function, first, draw(numbers(relation)), type_=BOOL)

    parts = [comparison() for _ in range(draw(st.integers(1, 3)))]
    shape = draw(st.sampled_from(("and", "or", "not", "factor")))
    if shape == "not":
        return negate(parts[0])
    if shape == "factor":
        return either(*(both(parts[0], part) for part in (*parts[1:], comparison())), parts[0])
    return both(*parts) if shape == "and" else either(*parts)


@pytest.mark.slow
@settings(max_examples=examples(60))
@given(relation=relations(), r=_rows, s=_rows)
def test_random_plans_keep_their_rows(relation: Relation, r: Any, s: Any) -> None:
    data = {"r": r, "s": s}
    expected = bag(evaluate(relation, data))
    for rule in RULES:
        after = rule(relation)
        validate(after)
        assert bag(evaluate(after, data)) == expected, rule.__name__
        assert rule(after) == after, f"{rule.__name__} twice"
        without = rewrite(relation, tuple(other for other in RULES if other is not rule))
        assert bag(evaluate(without, data)) == expected, f"without {rule.__name__}"
    after = optimise(relation)
    assert after.columns == relation.columns
    assert optimise(after) == after
    assert bag(evaluate(after, data)) == expected


@st.composite
def subqueries(draw: Any) -> Relation:
    """A random plan's rows for which others exist, or do not exist, in WHERE or ON."""
    below, other = draw(relations(2)), draw(relations(1))
    pair = cross(below, other)
    parts = [draw(predicates(below))]
    for _ in range(draw(st.integers(1, 2))):
        inner = draw(relations(1))
        asked = where(inner, draw(predicates(cross(draw(st.sampled_from((below, pair))), inner))))
        equal = eq(ref_at(inner, 0), ref_at(below, draw(st.integers(0, len(below.columns) - 1))))
        found = exists(where(asked, equal) if draw(st.booleans()) else asked)
        parts.append(negate(found) if draw(st.booleans()) else found)
    if draw(st.booleans()):
        return where(pair, both(*parts))
    return join(draw(st.sampled_from(("inner", "left"))), below, other, both(*parts))


@pytest.mark.slow
@settings(max_examples=examples(60))
@given(relation=subqueries(), r=_rows, s=_rows)
def test_random_subqueries_keep_their_rows(relation: Relation, r: Any, s: Any) -> None:
    data = {"r": r, "s": s}
    expected = bag(evaluate(relation, data))
    for rule in (push_down_filters, join_existing):
        after = rule(relation)
        validate(after)
        assert bag(evaluate(after, data)) == expected, rule.__name__
        assert rule(after) == after, f"{rule.__name__} twice"
    assert bag(evaluate(optimise(relation), data)) == expected


@st.composite
def lists(draw: Any) -> Relation:
    """Lists of a random plan's rows, sorted by all their columns, so that rows that tie are equal."""
    below = draw(relations(2))
    found: Relation = Sort(below, tuple(SortKey(ColumnRef(column), draw(st.booleans())) for column in below.columns))
    for shape in draw(st.lists(st.sampled_from(("filter", "project", "limit", "number")), max_size=3)):
        if shape == "filter":
            found = where(found, draw(predicates(found)))
        elif shape == "project":
            found = project(found, a=draw(numbers(found)), b=draw(numbers(found)))
        elif shape == "limit":
            found = limit(found, 3)
        else:
            found = numbered(found, n=WindowCall("row_number", (), INT8))
    key = {"k": draw(numbers(found))} if draw(st.booleans()) else {}
    return group(found, key, x=in_list(draw(numbers(found))))


@pytest.mark.slow
@settings(max_examples=examples(60))
@given(relation=lists(), r=_rows, s=_rows)
def test_random_lists_keep_their_order(relation: Relation, r: Any, s: Any) -> None:
    data = {"r": r, "s": s}
    expected = bag(evaluate(relation, data))
    for after in (order_lists(relation), optimise(relation)):
        validate(after)
        assert bag(evaluate(after, data)) == expected
    assert not any(isinstance(node, AggregateCall) and _is_unordered_list(node) for node in walk(optimise(relation)))


def _is_unordered_list(call: AggregateCall) -> bool:
    return call.function == "array_agg" and not call.order_by
