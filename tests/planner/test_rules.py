"""Rules keep a plan's rows: golden plans for the effects of each rule, and for plans that it does not change."""

from __future__ import annotations

import datetime as dt
import operator
from collections.abc import Callable
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from catalog.values.types import BOOL, DATE, FLOAT8, INT2, INT4, INT8, INTERVAL, TEXT, TIMESTAMP, array, numeric
from planner.algebra.nodes import (
    Call,
    Case,
    Cast,
    Column,
    ColumnRef,
    Exists,
    Filter,
    Limit,
    Literal,
    Parameter,
    Project,
    Relation,
    Scalar,
    Snapshot,
    SortKey,
    Unnest,
    Values,
    WindowCall,
    With,
)
from planner.algebra.validate import validate
from planner.rules import RULES, Rule, optimise
from planner.rules.errors.guard_arguments import guard_arguments
from planner.rules.errors.guard_subqueries import guard_subqueries
from planner.rules.filters.compare_dates import compare_dates
from planner.rules.filters.factor_disjunctions import factor_disjunctions
from planner.rules.filters.fold_constants import fold_constants
from planner.rules.filters.look_up_arrays import look_up_arrays
from planner.rules.filters.match_rows import match_rows
from planner.rules.filters.merge_filters import merge_filters
from planner.rules.filters.push_down_filters import push_down_filters
from planner.rules.joins.strengthen_joins import strengthen_joins
from planner.rules.joins.unnest_in_place import unnest_in_place
from planner.rules.projections.merge_projects import merge_projects
from planner.rules.projections.prune_columns import prune_columns
from planner.rules.row_order.compute_ntile import compute_ntile
from planner.rules.row_order.compute_window_keys import compute_window_keys
from planner.rules.row_order.number_by_rows import number_by_rows
from planner.rules.row_order.order_lists import order_lists
from planner.rules.subqueries.join_existing import join_existing
from tests.planner import golden
from tests.planner.builders import (
    agg,
    both,
    call,
    cross,
    either,
    eq,
    exists,
    fresh,
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
    scalar,
    stream,
    table,
    union,
    values,
    where,
)
from tests.planner.evaluate import evaluate

R, S, T = (table(name, "a b c") for name in "rst")
E = stream("e", "a b")
DATES = table("dates", {"d": DATE})
RANDOM = Call("random", (), FLOAT8)


def _grouped() -> Relation:
    return group(R, {"a": R.a}, n=agg("count"))


def _pushed_over(relation: Relation, *parts: Callable[[Relation], Scalar]) -> Relation:
    return where(relation, both(*(part(relation) for part in parts)))


def _over_union() -> Relation:
    both_tables = union("union", True, project(R, x=R.a), project(S, x=S.b))
    return where(both_tables, call("gt", ref(both_tables, "x"), 1))


def _any(function: str, value: Scalar) -> Scalar:
    return Call("any", (lit(function, TEXT), value, Parameter(0, array(INT4))), BOOL)


def _items(value: Scalar) -> tuple[tuple[Column, Scalar], ...]:
    return ((fresh("item"), Call("array", (value,), array(INT4))),)


def _unnested(value: Scalar) -> Relation:
    return Unnest(Values((), ((),)), _items(value))


def _quotient(*parts: Scalar) -> Scalar:
    """A correlated subquery that may fail."""
    return scalar(project(where(S, both(eq(S.a, R.a), *parts)), x=call("div", S.b, R.b)))


def _filtered(value: Scalar) -> Relation:
    return group(R, x=agg("max", value, filter=call("gt", R.b, 0)))


def _picked(value: Scalar) -> Relation:
    return project(R, x=Case(((call("gt", R.b, 0), value),), lit(0), INT4))


def _of_both() -> Scalar:
    """A subquery about rows of r and s."""
    return call("lt", R.c, scalar(group(where(T, eq(T.a, S.a)), x=agg("max", T.b))))


def _in_rows() -> Scalar:
    equal = both(eq(R.a, S.a), eq(R.b, S.b))
    branches = ((Exists(where(S, equal)), lit(True)), (Exists(where(S, call("is_null", equal))), Literal(None, BOOL)))
    return Case(branches, lit(False), BOOL)


def _listed(relation: Relation) -> Relation:
    """The first column of all rows, as one list."""
    return group(relation, x=in_list(ColumnRef(relation.columns[0])), n=agg("count"))


def _ntile(buckets: Scalar) -> Relation:
    return numbered(rel(R), bucket=WindowCall("ntile", (buckets,), INT4, (), (SortKey(R.c),)))


def _limited_by_a_row() -> Relation:
    """For each row of r, its first rows of s, as many as the row of r says."""
    rows = Limit(order(where(S, eq(S.a, R.a)), S.c), R.b, None)
    return project(R, x=scalar(group(rows, x=agg("max", S.c))))


def _shared_list() -> Relation:
    definition = project(order(R, R.b), a=R.a)
    first, second = (Snapshot("q", (fresh("a"),), (f"c{definition.columns[0].id}",)) for _ in "12")
    return With((("q", definition),), cross(_listed(first), second))


CASES: dict[str, tuple[Rule, Callable[[], Relation]]] = {
    "merge_filters": (
        merge_filters,
        lambda: where(where(where(R, eq(R.a, 1)), lit(True)), both(eq(R.b, 2), eq(R.c, 3))),
    ),
    "merge_filters_that_are_equal": (
        merge_filters,
        lambda: where(where(R, both(eq(R.a, 1), eq(R.b, 2))), both(eq(R.b, 2), eq(R.c, 3))),
    ),
    "merge_filters_not_volatile": (
        merge_filters,
        lambda: where(where(R, call("lt", RANDOM, lit(0.5, FLOAT8))), call("lt", RANDOM, lit(0.5, FLOAT8))),
    ),
    "merge_projects": (
        merge_projects,
        lambda: project(inner := project(R, x=call("add", R.a, 1), y=R.b), z=call("mul", ref(inner, "x"), 2)),
    ),
    "merge_projects_not_twice": (
        merge_projects,
        lambda: project(inner := project(R, x=call("add", R.a, 1)), y=ref(inner, "x"), z=ref(inner, "x")),
    ),
    "merge_projects_not_volatile": (
        merge_projects,
        lambda: project(inner := project(R, x=RANDOM), y=ref(inner, "x")),
    ),
    "push_to_join_inputs": (
        push_down_filters,
        lambda: where(cross(cross(R, S), T), both(eq(R.a, S.a), eq(S.b, T.b), eq(R.c, 1), call("gt", T.c, 2))),
    ),
    "push_not_into_padding": (
        push_down_filters,
        lambda: where(
            join("left", R, S, both(eq(R.a, S.a), eq(R.b, 1), eq(S.b, 2))), both(eq(R.c, 3), call("is_null", S.c))
        ),
    ),
    "push_below_semi_join": (
        push_down_filters,
        lambda: where(join("semi", R, S, both(eq(R.a, S.a), eq(S.b, 2))), eq(R.b, 1)),
    ),
    "push_below_anti_join": (
        push_down_filters,
        lambda: where(join("anti", R, S, both(eq(R.a, S.a), eq(S.b, 2), eq(R.c, 4))), eq(R.b, 1)),
    ),
    "push_below_group_keys": (
        push_down_filters,
        lambda: _pushed_over(_grouped(), lambda g: eq(ref(g, "a"), 1), lambda g: call("gt", ref(g, "n"), lit(2, INT8))),
    ),
    "push_not_below_group_correlated": (
        push_down_filters,
        lambda: where(
            S, Exists(_pushed_over(_grouped(), lambda g: eq(ref(g, "a"), S.a), lambda g: eq(ref(g, "a"), 1)))
        ),
    ),
    "push_not_below_one_group": (
        push_down_filters,
        lambda: where(g := group(R, n=agg("count")), call("gt", ref(g, "n"), lit(2, INT8))),
    ),
    "push_into_union": (push_down_filters, _over_union),
    "push_not_below_limit": (push_down_filters, lambda: where(limit(order(R, R.a), 3), eq(R.a, 1))),
    "push_not_below_volatile": (
        push_down_filters,
        lambda: where(
            p := project(R, x=RANDOM, y=R.a), both(eq(ref(p, "y"), 1), call("gt", ref(p, "x"), lit(0.5, FLOAT8)))
        ),
    ),
    "push_not_subquery_into_join": (
        push_down_filters,
        lambda: where(cross(R, S), both(eq(R.a, S.a), _of_both(), exists(where(T, eq(T.b, S.b))))),
    ),
    "push_subquery_out_of_join": (push_down_filters, lambda: join("inner", R, S, both(eq(R.a, S.a), _of_both()))),
    "push_subquery_not_out_of_outer_join": (
        push_down_filters,
        lambda: join("left", R, S, both(eq(R.a, S.a), _of_both())),
    ),
    "strengthen_left": (strengthen_joins, lambda: where(join("left", R, S, eq(R.a, S.a)), call("gt", S.b, 1))),
    "strengthen_not_left": (
        strengthen_joins,
        lambda: where(join("left", R, S, eq(R.a, S.a)), either(call("gt", S.b, 1), call("is_null", S.b))),
    ),
    "strengthen_full": (strengthen_joins, lambda: where(join("full", R, S, eq(R.a, S.a)), call("gt", R.b, S.c))),
    "strengthen_full_to_left": (strengthen_joins, lambda: where(join("full", R, S, eq(R.a, S.a)), eq(R.b, 1))),
    "factor_disjunctions": (
        factor_disjunctions,
        lambda: where(cross(R, S), either(both(eq(R.a, S.a), eq(R.b, 1)), both(eq(R.b, 2), eq(R.a, S.a)))),
    ),
    "factor_disjunctions_whole": (
        factor_disjunctions,
        lambda: where(cross(R, S), either(eq(R.a, S.a), both(eq(R.b, 2), eq(R.a, S.a)))),
    ),
    "look_up_arrays": (
        look_up_arrays,
        lambda: where(join("inner", R, S, _any("eq", S.a)), both(eq(R.b, 1), _any("eq", R.a), _any("gt", R.b))),
    ),
    "look_up_arrays_not_negated": (look_up_arrays, lambda: where(R, negate(_any("eq", R.a)))),
    "match_rows": (match_rows, lambda: where(R, both(_in_rows(), negate(_in_rows()), either(_in_rows(), eq(R.a, 1))))),
    "join_existing": (
        join_existing,
        lambda: where(
            R,
            both(
                eq(R.b, 1),
                exists(project(where(S, both(eq(S.a, R.a), call("ne", S.b, R.b), eq(S.c, 2))), x=call("div", 1, S.b))),
                negate(exists(group(where(T, eq(T.a, R.a)), {"b": T.b}, n=agg("count")))),
            ),
        ),
    ),
    "join_existing_not_in_or": (join_existing, lambda: where(R, either(eq(R.b, 1), exists(where(S, eq(S.a, R.a)))))),
    "join_existing_not_unequal": (join_existing, lambda: where(R, exists(where(S, call("gt", S.a, R.a))))),
    "join_existing_not_uncorrelated": (join_existing, lambda: where(R, exists(where(S, eq(S.a, 1))))),
    "join_existing_not_raising": (
        join_existing,
        lambda: where(R, exists(where(S, both(eq(S.a, R.a), eq(call("div", 1, S.b), 1))))),
    ),
    "join_existing_not_from_further_out": (
        join_existing,
        lambda: where(R, exists(where(S, both(eq(S.a, R.a), exists(where(T, both(eq(T.a, S.a), eq(T.b, R.b)))))))),
    ),
    "join_existing_not_of_limit": (join_existing, lambda: where(R, exists(limit(where(S, eq(S.a, R.a)), 0)))),
    "join_existing_not_of_one_group": (
        join_existing,
        lambda: where(R, exists(group(where(S, eq(S.a, R.a)), n=agg("count")))),
    ),
    "join_existing_not_of_stream": (join_existing, lambda: where(E, exists(where(S, eq(S.a, E.a))))),
    "unnest_in_place": (
        unnest_in_place,
        lambda: where(join("inner", R, _unnested(R.a), call("gt", R.b, 1)), eq(R.c, 1)),
    ),
    "unnest_in_place_of_one_row": (
        unnest_in_place,
        lambda: join("inner", R, Project(Values((), ((),)), ((fresh("f"), call("add", R.a, 1)),)), eq(R.c, 1)),
    ),
    "unnest_in_place_not_outer": (unnest_in_place, lambda: join("left", R, _unnested(R.a), None)),
    "push_below_unnest": (
        push_down_filters,
        lambda: where(u := Unnest(rel(R), _items(R.a)), both(eq(R.b, 1), call("gt", ref(u, "item"), 2))),
    ),
    "guard_subqueries": (guard_subqueries, lambda: _picked(_quotient(call("gt", call("div", S.c, R.c), 1)))),
    "guard_subqueries_in_coalesce": (
        guard_subqueries,
        lambda: project(R, x=call("coalesce", R.b, _quotient(), _quotient())),
    ),
    "guard_subqueries_not_safe": (
        guard_subqueries,
        lambda: _picked(scalar(group(where(S, eq(S.a, R.a)), x=agg("max", S.b)))),
    ),
    "guard_subqueries_not_alone": (guard_subqueries, lambda: _picked(scalar(project(S, x=call("div", S.b, S.c))))),
    "guard_arguments": (guard_arguments, lambda: _filtered(call("div", R.a, R.b))),
    "guard_arguments_not_safe": (guard_arguments, lambda: _filtered(R.a)),
    "order_lists": (
        order_lists,
        lambda: group(
            where(p := project(order(R, call("mul", R.b, -1), R.c), a=R.a, c=R.c), call("gt", ref(p, "c"), 1)),
            {"c": ref(p, "c")},
            x=in_list(ref(p, "a")),
            sorted=in_list(ref(p, "a"), order_by=(SortKey(ref(p, "c")),)),
            distinct=in_list(ref(p, "a"), distinct=True),
            n=agg("count"),
        ),
    ),
    "order_lists_of_limit": (order_lists, lambda: _listed(limit(order(R, R.b), 3))),
    "order_lists_of_unnested": (order_lists, lambda: _listed(Unnest(order(R, R.b), _items(R.a)))),
    "order_lists_of_window": (
        order_lists,
        lambda: _listed(numbered(order(R, R.b), n=WindowCall("row_number", (), INT8))),
    ),
    "order_lists_of_volatile": (order_lists, lambda: _listed(project(order(R, R.b), x=RANDOM))),
    "order_lists_of_copies": (order_lists, lambda: _listed(cross(order(R, R.b), values("n", (1,), (2,))))),
    "order_lists_of_definition": (order_lists, _shared_list),
    "order_lists_not_of_join": (order_lists, lambda: _listed(cross(order(R, R.b), S))),
    "order_lists_not_of_other_window": (
        order_lists,
        lambda: _listed(numbered(order(R, R.b), n=WindowCall("row_number", (), INT8, (R.c,)))),
    ),
    "order_lists_not_of_numbers": (order_lists, lambda: group(order(R, R.b), x=agg("max", R.a))),
    "compute_window_keys": (
        compute_window_keys,
        lambda: numbered(
            rel(R), n=WindowCall("row_number", (), INT8, (R.a,), (SortKey(call("div", R.b, R.c)), SortKey(R.c)))
        ),
    ),
    "compute_ntile": (compute_ntile, lambda: _ntile(R.b)),
    "compute_ntile_not_constant": (compute_ntile, lambda: _ntile(lit(3))),
    "number_by_rows": (number_by_rows, _limited_by_a_row),
    "number_by_rows_not_constant": (number_by_rows, lambda: limit(order(R, R.a), 3)),
    "fold_constants": (
        fold_constants,
        lambda: where(join("inner", R, S, call("lt", 1, 2)), both(eq(R.a, call("add", 1, 2)), lit(True))),
    ),
    "compare_dates": (
        compare_dates,
        lambda: where(DATES, call("lt", Cast(DATES.d, TIMESTAMP), _at(2024, 1, 1, 1))),
    ),
    "compare_dates_not_within_a_day": (
        compare_dates,
        lambda: where(DATES, eq(Cast(DATES.d, TIMESTAMP), _at(2024, 1, 1, 1))),
    ),
    "prune_columns": (
        prune_columns,
        lambda: project(
            g := group(join("inner", R, S, eq(R.a, S.a)), {"k": S.b}, n=agg("count"), m=agg("sum", R.c)), x=ref(g, "n")
        ),
    ),
    "prune_keeps_one_column": (prune_columns, lambda: group(R, n=agg("count"))),
}


@pytest.mark.parametrize("name", CASES)
def test_golden_plan(name: str, rewrite: bool) -> None:
    rule, make = CASES[name]
    before = make()
    validate(before)
    after = rule(before)
    validate(after)
    assert after.columns == before.columns
    golden.check(f"rules/{name}", golden.before_after(before, after), rewrite)


def _at(year: int, month: int, day: int, micros: int = 0) -> Literal:
    return Literal(dt.datetime(year, month, day) + dt.timedelta(microseconds=micros), TIMESTAMP)


def _shift(function: str, moment: Literal, interval: tuple[int, int, int]) -> Scalar:
    return Call(function, (moment, Literal(interval, INTERVAL)), TIMESTAMP)


CONSTANTS: dict[str, tuple[Scalar, Scalar]] = {
    "sum": (call("add", 1, 2), lit(3)),
    "nested": (call("mul", call("sub", 5, 2), 4), lit(12)),
    "numeric": (
        Call("sub", (lit(Decimal("0.06")), lit(Decimal("0.01"))), numeric(4, 2)),
        lit(Decimal("0.05"), numeric(4, 2)),
    ),
    "comparison": (call("lt", 1, 2), lit(True)),
    "and": (both(eq(R.a, 1), lit(True)), eq(R.a, 1)),
    "and_false": (both(eq(R.a, 1), lit(False)), lit(False)),
    "or": (either(eq(R.a, 1), lit(False)), eq(R.a, 1)),
    "not": (negate(lit(True)), lit(False)),
    "null": (call("add", R.a, Literal(None, INT4)), Literal(None, INT4)),
    "null_test": (call("is_null", Literal(None, INT4)), lit(True)),
    "date as timestamp": (Cast(lit(dt.date(1998, 12, 1), DATE), TIMESTAMP), _at(1998, 12, 1)),
    "timestamp less interval": (_shift("sub", _at(1998, 12, 1), (0, 90, 0)), _at(1998, 9, 2)),
    "last day of a month": (_shift("add", _at(2023, 12, 31), (2, 0, 0)), _at(2024, 2, 29)),
    "months before days": (_shift("add", _at(2024, 1, 31), (1, 1, 3_600_000_000)), _at(2024, 3, 1, 3_600_000_000)),
    "months back": (_shift("sub", _at(2024, 3, 31), (13, 0, 1)), _at(2023, 2, 28, -1)),
    "case": (Case(((lit(False), R.a), (lit(True), R.b)), R.c, INT4), R.b),
}
KEPT: dict[str, Scalar] = {
    "overflow": Call("add", (lit(32767, INT2), lit(1, INT2)), INT2),
    "division": call("div", 6, 2),
    "float": Call("add", (lit(0.1, FLOAT8), lit(0.2, FLOAT8)), FLOAT8),
    "lost digits": Call("mul", (lit(Decimal("0.01")), lit(Decimal("0.01"))), numeric(4, 2)),
    "after the last year": _shift("add", _at(9999, 12, 1), (1, 0, 0)),
    "null and": both(Literal(None, BOOL), eq(R.a, 1)),
    "not a number": Call("eq", (Literal(Decimal("NaN"), numeric(4, 2)), lit(1)), BOOL),
}


@pytest.mark.parametrize("name", CONSTANTS)
def test_folds(name: str) -> None:
    before, after = CONSTANTS[name]
    folded = fold_constants(project(R, x=before))
    assert isinstance(folded, Project)
    assert [value for _, value in folded.outputs] == [after]


@pytest.mark.parametrize("name", KEPT)
def test_keeps_what_is_not_exact(name: str) -> None:
    relation = project(R, x=KEPT[name])
    assert fold_constants(relation) is relation


_days = st.dates(dt.date(2024, 2, 27), dt.date(2024, 3, 2))
_moments = st.one_of(
    st.datetimes(dt.datetime(2024, 2, 27), dt.datetime(2024, 3, 2)),
    _days.map(lambda day: dt.datetime(day.year, day.month, day.day)),
)


@given(
    function=st.sampled_from(("lt", "le", "gt", "ge", "eq", "ne")), day=_days, moment=_moments, mirrored=st.booleans()
)
def test_dates_compare_as_their_timestamps_do(function: str, day: dt.date, moment: dt.datetime, mirrored: bool) -> None:
    dates = table("d", {"d": DATE})
    pair = (Cast(dates.d, TIMESTAMP), Literal(moment, TIMESTAMP))
    compared = compare_dates(project(dates, x=Call(function, pair[::-1] if mirrored else pair, BOOL)))
    assert isinstance(compared, Project)
    value = compared.outputs[0][1]
    first, second = dt.datetime(day.year, day.month, day.day), moment
    if mirrored:
        first, second = second, first
    expected = getattr(operator, function)(first, second)
    within = moment.time() != dt.time() and function in ("eq", "ne")
    assert isinstance(value, Call)
    assert any(isinstance(item, Cast) for item in value.arguments) == within
    if not within:
        rows = evaluate(project(dates, x=value), {"d": [{"d": day}]})
        assert rows == [(expected,)]


@pytest.mark.parametrize("rule", RULES)
def test_leaves_alone_what_needs_nothing(rule: Rule) -> None:
    relation = where(join("left", R, S, eq(R.a, S.a)), call("is_null", S.b))
    assert rule(relation) is relation


def test_deep_plans_do_not_overflow_the_stack() -> None:
    relation: Relation = rel(R)
    for value in range(400):
        relation = Filter(relation, call("ne", R.a, value))
    assert isinstance(optimise(relation), Filter)
    assert optimise(relation).columns == relation.columns
