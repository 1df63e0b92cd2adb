"""Subqueries as joins keep their meaning: on random rows with many NULLs, with the reference evaluator."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from catalog.values.errors import SqlError
from catalog.values.types import BOOL, INT4, INT8
from planner.algebra.construction import has_subquery
from planner.algebra.nodes import Aggregate, Case, Filter, Join, Limit, Literal, Project, Relation, Scalar, Values
from planner.algebra.validate import validate
from planner.algebra.walk import is_dependent, walk
from planner.rules import decorrelate, optimise, unnest
from tests.planner import golden
from tests.planner.bound import catalog_of, query_of
from tests.planner.builders import (
    agg,
    both,
    call,
    either,
    eq,
    exists,
    fresh,
    group,
    join,
    limit,
    lit,
    member,
    negate,
    order,
    project,
    ref,
    rel,
    scalar,
    stream,
    table,
    union,
    values,
    where,
)
from tests.planner.evaluate import TooManyRows, bag, evaluate
from tests.rig.sampling import examples

_value = st.one_of(st.none(), st.integers(0, 3))
_rows = st.lists(st.fixed_dictionaries({"a": _value, "b": _value}), max_size=5)


class Tables:
    """The outer table r and the inner tables s and u, new each time."""

    def __init__(self) -> None:
        self.r, self.s, self.u = (table(name, "a b") for name in "rsu")
        self.same = eq(self.s.a, self.r.a)

    def column(self, relation: Any, value: Scalar) -> Relation:
        """SELECT value FROM relation."""
        return project(rel(relation), x=value)

    def one(self, relation: Any, function: str, *arguments: Any) -> Relation:
        """SELECT function(arguments) FROM relation."""
        return group(rel(relation), x=agg(function, *arguments))

    def correlated(self, *more: Scalar) -> Relation:
        """The rows of s with an equal a."""
        return where(self.s, both(self.same, *more) if more else self.same)


Shape = Callable[[Tables], Relation]


def _filter(predicate: Callable[[Tables], Scalar]) -> Shape:
    return lambda t: where(t.r, predicate(t))


def _select(value: Callable[[Tables], Scalar]) -> Shape:
    return lambda t: project(t.r, a=t.r.a, x=value(t))


def _nested(t: Tables) -> Scalar:
    """The form of query 20: IN over a filter with IN and with a correlated sum."""
    total = group(where(t.u, both(eq(t.u.a, t.s.a), call("gt", t.u.b, 0))), x=agg("sum", t.u.b))
    double = project(total, x=call("mul", ref(total, "x"), lit(2, INT8)))
    inside = member(t.s.b, t.column(t.u, t.u.a))
    return member(t.r.a, t.column(where(t.s, both(inside, call("lt", t.s.b, scalar(double)))), t.s.a))


def _having(t: Tables) -> Relation:
    counted = group(where(t.s, t.same), n=agg("count"), x=agg("sum", t.s.b))
    return project(where(counted, call("lt", ref(counted, "n"), lit(2, INT8))), x=ref(counted, "x"))


def _below(t: Tables) -> Relation:
    """The rows of s with a lesser a."""
    return where(t.s, call("lt", t.s.a, t.r.a))


def _between(t: Tables) -> Relation:
    """The rows of u between s and r."""
    return where(t.u, both(call("le", t.u.a, t.r.a), call("ge", t.u.b, t.s.b)))


def _across(t: Tables) -> Relation:
    """The rows of s between r and u."""
    return where(t.s, both(call("le", t.s.a, t.r.a), call("ge", t.s.b, t.u.b)))


def _either_of(t: Tables, kind: str, all_: bool) -> Relation:
    return union(kind, all_, t.column(_below(t), t.s.b), t.column(where(t.u, call("lt", t.u.a, t.r.b)), t.u.b))


def _padded(t: Tables, kind: Any) -> Relation:
    return join(kind, t.u, t.correlated(), eq(t.u.a, t.s.b))


SHAPES: dict[str, Shape] = {
    "exists": _filter(lambda t: exists(t.correlated())),
    "not_exists": _filter(lambda t: negate(exists(t.correlated()))),
    "exists_by_inequality": _filter(lambda t: exists(where(t.s, call("lt", t.s.a, t.r.a)))),
    "exists_with_limit": _filter(lambda t: exists(limit(order(t.correlated(), t.s.b), 1))),
    "exists_projected": _filter(lambda t: exists(project(t.correlated(), x=t.r.b))),
    "exists_uncorrelated": _filter(lambda t: exists(where(t.s, call("gt", t.s.a, 2)))),
    "exists_aggregate": _filter(lambda t: exists(t.one(t.correlated(), "sum", t.s.b))),
    "exists_having": _filter(lambda t: exists(_having(t))),
    "not_exists_having": _filter(lambda t: negate(exists(_having(t)))),
    "exists_grouped": _filter(lambda t: exists(group(t.correlated(), {"b": t.s.b}))),
    "exists_or": _filter(lambda t: either(exists(t.correlated()), eq(t.r.b, 1))),
    "exists_or_uncorrelated": _filter(lambda t: either(exists(t.s), eq(t.r.b, 1))),
    "in": _filter(lambda t: member(t.r.a, t.column(t.s, t.s.a))),
    "in_correlated": _filter(lambda t: member(t.r.b, t.column(t.correlated(), t.s.b))),
    "in_of_outer_value": _filter(lambda t: member(t.r.a, t.column(t.s, call("add", t.s.a, t.r.b)))),
    "in_aggregate": _filter(lambda t: member(t.r.b, t.one(t.correlated(), "count"))),
    "not_in": _filter(lambda t: negate(member(t.r.a, t.column(t.s, t.s.a)))),
    "not_in_correlated": _filter(lambda t: negate(member(t.r.b, t.column(t.correlated(), t.s.b)))),
    "not_in_of_outer_value": _filter(lambda t: negate(member(t.r.a, t.column(t.s, call("add", t.s.a, t.r.b))))),
    "not_in_aggregate": _filter(lambda t: negate(member(t.r.b, t.one(t.correlated(), "max", t.s.b)))),
    "not_in_union": _filter(
        lambda t: negate(member(t.r.a, union("union", True, t.column(t.s, t.s.a), t.column(t.u, t.u.b))))
    ),
    "in_or": _filter(lambda t: either(member(t.r.a, t.column(t.s, t.s.a)), eq(t.r.b, 1))),
    "in_value": _select(lambda t: member(t.r.a, t.column(t.s, t.s.b))),
    "not_in_value": _select(lambda t: negate(member(t.r.a, t.column(t.s, t.s.b)))),
    "in_value_correlated": _select(lambda t: member(t.r.b, t.column(t.correlated(), t.s.b))),
    "in_value_aggregate": _select(lambda t: member(t.r.b, t.one(t.correlated(), "count"))),
    "exists_value": _select(lambda t: exists(t.correlated())),
    "sum": _select(lambda t: scalar(t.one(t.correlated(), "sum", t.s.b))),
    "count": _select(lambda t: scalar(t.one(t.correlated(), "count"))),
    "count_compared": _filter(lambda t: call("le", scalar(t.one(t.correlated(), "count", t.s.b)), lit(0, INT8))),
    "sum_compared": _filter(lambda t: call("lt", t.r.b, scalar(t.one(t.correlated(), "sum", t.s.b)))),
    "count_by_expression": _select(lambda t: scalar(t.one(where(t.s, eq(call("add", t.s.a, 1), t.r.b)), "count"))),
    "two_equalities": _select(lambda t: scalar(t.one(t.correlated(eq(t.r.b, t.s.b)), "count"))),
    "outer_value_in_result": _select(
        lambda t: scalar(project(one := t.one(t.s, "count"), x=call("add", ref(one, "x"), t.r.a)))
    ),
    "having_in_scalar": _select(lambda t: scalar(_having(t))),
    "uncorrelated": _filter(lambda t: eq(t.r.a, scalar(t.one(t.s, "max", t.s.a)))),
    "uncorrelated_at_most_one": _select(lambda t: scalar(limit(t.column(order(t.s, t.s.a), t.s.a), 1))),
    "uncorrelated_values": _select(lambda t: scalar(values("x", (7,)))),
    "uncorrelated_twice": _filter(
        lambda t: (lambda q: both(call("ge", t.r.a, q), call("le", t.r.b, q)))(scalar(t.one(t.s, "max", t.s.a)))
    ),
    "any_number_of_rows": _select(lambda t: scalar(t.column(t.s, t.s.a))),
    "in_case": _select(
        lambda t: Case(((eq(t.r.a, 1), scalar(t.one(t.correlated(), "min", t.s.b))),), Literal(None, INT4), INT4)
    ),
    "through_a_join": _select(lambda t: scalar(t.one(join("inner", t.correlated(), t.u, eq(t.s.b, t.u.b)), "count"))),
    "through_a_join_predicate": _filter(
        lambda t: exists(join("inner", t.s, t.u, both(eq(t.s.b, t.u.b), eq(t.u.a, t.r.a))))
    ),
    "through_a_left_join": _select(
        lambda t: scalar(t.one(join("left", t.correlated(), t.u, eq(t.s.b, t.u.b)), "count", t.u.a))
    ),
    "nested": _filter(_nested),
    "in_a_key": lambda t: group(t.r, {"k": scalar(t.one(t.correlated(), "count"))}, n=agg("count")),
    "in_an_argument": lambda t: group(
        t.r, {"k": t.r.a}, n=agg("sum", scalar(t.one(t.correlated(), "sum", t.s.b)), type_=INT8)
    ),
    "in_an_inner_join": lambda t: join("inner", t.r, t.u, both(eq(t.r.a, t.u.a), exists(t.correlated()))),
    "in_an_outer_join": lambda t: join("left", t.r, t.u, both(eq(t.r.a, t.u.a), member(t.u.b, t.column(t.s, t.s.b)))),
    "several_rows": _select(lambda t: scalar(t.column(t.correlated(), t.s.b))),
    "by_inequality": _select(lambda t: scalar(t.one(_below(t), "count"))),
    "outer_value_in_an_aggregate": _select(lambda t: scalar(t.one(t.correlated(), "sum", call("mul", t.s.b, t.r.b)))),
    "outer_condition_alone": _select(lambda t: scalar(t.one(where(t.s, call("gt", t.r.b, 1)), "count"))),
    "first_rows": _filter(lambda t: member(t.r.b, limit(t.column(order(_below(t), t.s.a, t.s.b), t.s.b), 2))),
    "first_row": _select(lambda t: scalar(limit(t.column(order(_below(t), t.s.b), t.s.b), 1))),
    "not_in_by_inequality": _filter(lambda t: negate(member(t.r.b, t.column(_below(t), t.s.b)))),
    "in_value_by_inequality": _select(lambda t: member(t.r.b, t.column(_below(t), t.s.b))),
    "exists_value_by_inequality": _select(lambda t: exists(_below(t))),
    "having_by_inequality": _filter(
        lambda t: negate(exists(where(n := t.one(_below(t), "count"), eq(ref(n, "x"), lit(2, INT8)))))
    ),
    "exists_union": _filter(
        lambda t: exists(union("union", True, t.column(t.correlated(), t.s.b), t.column(t.u, t.u.b)))
    ),
    "count_union": _select(lambda t: scalar(t.one(_either_of(t, "union", False), "count"))),
    "count_except": _select(lambda t: scalar(t.one(_either_of(t, "except", True), "count"))),
    "count_intersect": _select(lambda t: scalar(t.one(_either_of(t, "intersect", False), "count"))),
    "grouped_below": _select(lambda t: scalar(t.one(group(_below(t), {"b": t.s.b}, n=agg("count")), "count"))),
    "count_below": _select(
        lambda t: scalar(group(n := t.one(_below(t), "count"), x=agg("sum", ref(n, "x"), type_=INT8)))
    ),
    "through_a_padded_side": _filter(lambda t: exists(where(_padded(t, "left"), call("is_null", t.s.a)))),
    "through_a_right_join": _select(lambda t: scalar(t.one(_padded(t, "right"), "count", t.u.a))),
    "through_a_full_join": _select(lambda t: scalar(t.one(_padded(t, "full"), "count"))),
    "through_a_join_of_two": _select(
        lambda t: scalar(t.one(join("inner", _below(t), where(t.u, call("lt", t.u.b, t.r.b)), None), "count"))
    ),
    "through_a_semi_join": _select(
        lambda t: scalar(t.one(where(t.s, exists(where(t.u, call("lt", t.u.a, call("add", t.s.a, t.r.a))))), "count"))
    ),
    "of_one_row": _select(lambda t: scalar(project(values("", ()), x=call("add", t.r.a, t.r.b)))),
    "of_rows": _select(lambda t: scalar(t.one(v := Values((fresh("v"),), ((t.r.a,), (t.r.b,))), "max", ref(v, "v")))),
    "two_levels_out": _filter(
        lambda t: exists(where(t.s, eq(scalar(t.one(where(t.u, eq(t.u.a, t.r.a)), "count")), lit(1, INT8))))
    ),
    "two_levels_out_by_inequality": _select(
        lambda t: scalar(t.one(where(t.s, call("lt", t.s.a, scalar(t.one(_between(t), "max", t.u.b)))), "count"))
    ),
    "two_levels_out_in": _select(
        lambda t: member(t.r.a, t.column(where(t.s, negate(member(t.s.b, t.column(_between(t), t.u.a)))), t.s.a))
    ),
    "two_levels_out_in_case": _select(
        lambda t: Case(((eq(t.r.a, 1), exists(where(t.s, exists(_between(t))))),), lit(False), BOOL)
    ),
    "in_a_condition_of_case": _select(
        lambda t: Case(((exists(_below(t)), scalar(t.one(t.correlated(), "min", t.s.b))),), t.r.b, INT4)
    ),
    "in_on_of_a_left_join": lambda t: join("left", t.r, t.u, exists(t.correlated())),
    "in_on_of_a_left_join_across": lambda t: join("left", t.r, t.u, exists(_across(t))),
    "in_on_of_a_right_join_across": lambda t: join("right", t.r, t.u, both(call("le", t.u.a, 2), exists(_across(t)))),
    "in_on_of_a_full_join": lambda t: join("full", t.r, t.u, both(eq(t.u.a, t.r.a), exists(t.correlated()))),
    "in_on_of_a_full_join_right": lambda t: join(
        "full", t.r, t.u, member(t.u.b, t.column(where(t.s, call("lt", t.s.a, t.u.a)), t.s.b))
    ),
    "lateral": lambda t: join("inner", t.r, t.column(_below(t), t.s.b), None),
    "lateral_left": lambda t: join("left", t.r, n := t.column(_below(t), t.s.b), eq(ref(n, "x"), t.r.b)),
    "in_an_order": lambda t: order(t.r, scalar(t.one(t.correlated(), "sum", t.s.b))),
}


def _outcome(relation: Relation, data: dict[str, Any]) -> Any:
    try:
        return bag(evaluate(relation, data))
    except TooManyRows:
        return "21000"


@cache
def _plans(name: str) -> tuple[Relation, ...]:
    """The plan as written, with joins, and optimised."""
    relation = SHAPES[name](Tables())
    joined = unnest(relation)
    assert joined.columns == relation.columns
    for item in (relation, joined):
        validate(item)
    return relation, joined, optimise(joined)


@pytest.mark.sample(3)
@pytest.mark.parametrize("name", SHAPES)
@settings(max_examples=examples(25))
@given(r=_rows, s=_rows, u=_rows)
def test_means_the_same(name: str, r: Any, s: Any, u: Any) -> None:
    data = {"r": r, "s": s, "u": u}
    expected, *outcomes = (_outcome(relation, data) for relation in _plans(name))
    assert all(outcome == expected for outcome in outcomes)


@pytest.mark.parametrize("name", [name for name in SHAPES if name != "any_number_of_rows"])
def test_no_subquery_stays(name: str) -> None:
    joined = unnest(SHAPES[name](Tables()))
    assert not has_subquery(joined)
    assert not any(is_dependent(node.right, node.left) for node in walk(joined) if isinstance(node, Join))


GENERAL = ("by_inequality", "first_row", "several_rows", "count_union", "through_a_full_join", "two_levels_out_in")


@pytest.mark.parametrize("name", [*("nested", "count_compared", "not_in", "in_value_correlated"), *GENERAL])
def test_plans(name: str, rewrite: bool) -> None:
    before = SHAPES[name](Tables())
    golden.check(f"decorrelate/{name}", golden.before_after(before, optimise(unnest(before))), rewrite)


def test_not_in_of_columns_without_null_is_a_plain_anti_join() -> None:
    r, s = table("r", "a", not_null="a"), table("s", "a", not_null="a")
    joined = decorrelate(where(r, negate(member(r.a, project(s, a=s.a)))))
    anti = next(node for node in walk(joined) if isinstance(node, Join))
    assert anti.kind == "anti"
    assert anti.predicate is not None
    assert getattr(anti.predicate, "function", None) == "eq"


REFUSED: dict[str, Shape] = {
    "both sides of a full join": lambda t: join(
        "full", t.r, t.u, exists(where(t.s, both(call("lt", t.s.a, t.r.a), call("lt", t.s.b, t.u.b))))
    ),
    "rows of a stream": lambda t: project(
        o := stream("o", "a b"), x=scalar(t.one(where(t.s, call("lt", t.s.a, o.a)), "count"))
    ),
    "rows of a limit": lambda t: (
        lambda few: project(few, x=scalar(t.one(where(t.s, call("lt", t.s.a, t.r.a)), "count")))
    )(limit(t.r, 2)),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refuses_what_it_cannot_do_exactly(name: str) -> None:
    with pytest.raises(SqlError, match="correlated subquery") as error:
        decorrelate(REFUSED[name](Tables()))
    assert error.value.sqlstate == "0A000"
    assert error.value.hint


def test_each_place_of_a_subquery_gets_columns_of_its_own() -> None:
    """A filter by a projection's subquery goes below it and leaves the subquery in two places, of which a projection
    between them hides the columns of one. Without it they would be the same columns twice."""
    t = Tables()
    pairs = join("left", t.r, t.u, eq(t.r.b, t.u.b))
    counted = project(pairs, a=t.u.a, n=scalar(t.one(t.s, "count")))
    pushed = optimise(where(counted, call("is_distinct", ref(counted, "n"), ref(counted, "a"))))
    numbers = [node.columns for node in walk(unnest(pushed)) if isinstance(node, Aggregate)]
    assert len(numbers) == 2
    assert numbers[0] != numbers[1]


@pytest.mark.parametrize(
    "inner",
    [
        "SELECT count(*) OVER (PARTITION BY (SELECT count(*) FROM s WHERE s.a = u.a)) FROM u",
        "SELECT row_number() OVER (ORDER BY (SELECT max(s.b) FROM s WHERE s.a = u.a), u.b) FROM u",
        "SELECT sum((SELECT max(s.b) FROM s WHERE s.a = u.a)) OVER (PARTITION BY u.b) FROM u",
        "SELECT unnest(ARRAY[(SELECT max(s.b) FROM s WHERE s.a = u.a), u.b]) FROM u",
    ],
)
def test_subqueries_within_subqueries_stay_over_their_own_rows(inner: str) -> None:
    """Of a window's calls and of arrays that are unnested: each is joined with the rows that it is about."""
    catalog = catalog_of(tuple(f"CREATE TABLE {name} (a int, b int)" for name in "rsu"))
    relation = query_of(f"SELECT r.a, (SELECT count(*) FROM ({inner}) q) FROM r", catalog).relation
    joined = decorrelate(relation)
    validate(joined)
    assert not has_subquery(joined)


def test_leaves_plans_without_subqueries_alone() -> None:
    t = Tables()
    relation = Limit(Project(Filter(rel(t.r), eq(t.r.a, 1)), ((fresh("x", BOOL), lit(True)),)), lit(1), None)
    assert decorrelate(relation) is relation
