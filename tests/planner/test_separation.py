"""Plans cut into pipelines, their state and the plan that continues from it: the thesis' example (figures 6.2, 6.8 and
6.9), and any plan with any cut."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from catalog.values.types import BOOL, FLOAT8, INT4, INT8, TEXT
from planner.algebra.construction import keep_columns
from planner.algebra.nodes import (
    Aggregate,
    ColumnRef,
    Fixpoint,
    Limit,
    Literal,
    Relation,
    Scan,
    SetOperation,
    Snapshot,
    Sort,
    SortKey,
    With,
    Working,
)
from planner.algebra.validate import validate
from planner.algebra.walk import transform, walk
from planner.explain.plans import explain_relation
from planner.incremental.names import stored_name
from planner.rules import optimise
from planner.separation.cuts import Pipelined, Place, cut, is_bare, places, remaining, select_state
from planner.separation.inputs import inputs_apart
from planner.statements.statement import Query
from tests.planner import golden
from tests.planner.bound import bound, catalog_of
from tests.planner.builders import agg, call, eq, fresh, join, project, rel, table, where
from tests.planner.evaluate import bag, evaluate
from tests.rig.benchmarks import queries
from tests.rig.tpch import create

QUERIES = queries("tpch")


def everywhere(place: Place) -> bool:
    return True


def figure_6_2() -> Pipelined:
    """Customers whose revenue is at least the highest one's share, with their names.

    Pipelines of the thesis: 1 customers (build), 2 orders, grouped to id and sum(price), read twice, 3 the highest sum,
    4 what revenues are compared with (build), 5 the names (build), 6 the result. The rows of 3 are those of 4: what
    only carries them into a hash table is no pipeline here.
    """
    customer, orders = table("customer", "id", not_null="id"), table("orders", "customer_id price")
    names = table("customer", {"id": INT4, "name": TEXT}, not_null="id")
    joined = join("inner", orders, customer, eq(orders.customer_id, customer.id))
    own, total = fresh("id"), fresh("revenue")
    revenue = Aggregate(joined, ((own, customer.id),), ((total, agg("sum", orders.price)),))

    def read() -> Snapshot:
        return Snapshot("revenue", (fresh("id"), fresh("revenue")), (f"c{own.id}", f"c{total.id}"))

    once, again = read(), read()
    highest = fresh("max")
    most = Aggregate(once, (), ((highest, agg("max", ColumnRef(once.columns[1]))),))
    above = join("inner", again, most, call("le", ColumnRef(highest), ColumnRef(again.columns[1])))
    body = join("inner", above, names, eq(ColumnRef(again.columns[0]), names.id))
    return cut(With((("revenue", revenue),), keep_columns(body, (names.name.column, again.columns[1]))), everywhere)


def shown(plan: Pipelined) -> list[str]:
    lines = []
    for item in plan.pipelines:
        lines += [f"{item.name} ({item.breaker}) reads {', '.join(item.reads) or 'no other'}"]
        lines += [f"  {line}" for line in explain_relation(item.relation)]
    return lines


def test_the_pipelines_of_figure_6_2(rewrite: bool) -> None:
    golden.check("separation/figure_6_2", shown(figure_6_2()), rewrite)


def test_the_dependencies_of_figure_6_8() -> None:
    reads = {item.name: set(item.reads) for item in figure_6_2().pipelines}
    assert reads == {
        "p1": set(),
        "revenue": {"p1"},
        "p3": set(),
        "p4": {"revenue"},
        "result": {"revenue", "p3", "p4"},
    }


@pytest.mark.parametrize(
    ("finished", "state"),
    [
        ("", ""),
        ("p1", "p1"),
        ("p1 revenue", "revenue"),
        ("p1 revenue p4", "revenue p4"),
        ("p1 revenue p3 p4", "revenue p3 p4"),
        ("p1 revenue p3 p4 result", ""),
    ],
)
def test_state_selection(finished: str, state: str) -> None:
    assert set(select_state(figure_6_2().pipelines, finished.split())) == set(state.split())


@pytest.mark.parametrize("finished", ["p1", "p1 revenue p4", "p1 revenue p3 p4"])
def test_the_plan_of_figure_6_9(finished: str, rewrite: bool) -> None:
    """Of the joins, only the build side is replaced; the relations below a replaced one are neither in the plan nor
    kept."""
    plan = figure_6_2()
    left, state = remaining(plan, finished.split())
    validate(left)
    name = finished.replace(" ", "_")
    golden.check(f"separation/after_{name}", [f"reads {', '.join(state)}", *_explained(left)], rewrite)
    traces = {item.trace for item in walk(left) if isinstance(item, Snapshot)}
    assert set(state) <= traces


def _explained(relation: Relation) -> list[str]:
    if not isinstance(relation, With):
        return explain_relation(relation)
    definitions = [[f"WITH {name}", *explain_relation(below)] for name, below in relation.definitions]
    return [*(line for lines in definitions for line in lines), *explain_relation(relation.body)]


# -- any plan, any cut -------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def plans() -> list[Relation]:
    """TPC-H's queries, and plans with operators that they lack."""
    catalog = catalog_of(create(streams=()))
    found = []
    for path in QUERIES:
        statement = bound(path.read_text(), catalog)
        assert isinstance(statement, Query)
        found.append(optimise(statement.relation))
    return [*found, figure_6_2().whole]


@pytest.mark.slow
@given(st.data())
def test_pipelines_put_together_are_the_plan(plans: list[Relation], data: st.DataObject) -> None:
    plan = data.draw(st.sampled_from(plans))
    wanted = {id(place.relation) for place in places(plan) if data.draw(st.booleans())}
    found = cut(plan, lambda place: id(place.relation) in wanted)
    for item in found.pipelines:
        validate(item.relation)
        assert item.relation.columns == item.place.columns
    assert _together(found, found.pipelines[-1].relation) == (plan.body if isinstance(plan, With) else plan)
    finished = found.names[: data.draw(st.integers(0, len(found.pipelines) - 1))]
    left, state = remaining(found, finished)
    validate(left)
    assert set(state) == set(select_state(found.pipelines, finished))
    body = left.body if isinstance(left, With) else left
    assert _together(found, body) == (plan.body if isinstance(plan, With) else plan)


def _together(plan: Pipelined, relation: Relation) -> Relation:
    """A pipeline's relation, with the relations of others in place of what it reads from them."""
    made = {item.name: item for item in plan.pipelines if item.breaker != "shared"}

    def change(node: object) -> object:
        if isinstance(node, Snapshot) and node.trace in made:
            return made[node.trace].place
        return node

    result: Relation = transform(relation, change)
    return result


def test_inputs_apart(plans: list[Relation]) -> None:
    for plan in plans:
        apart, inputs = inputs_apart(plan)
        validate(apart)
        assert not any(isinstance(item, Scan) for item in walk(apart))
        assert apart.columns == plan.columns
        names = {item.trace for item in walk(apart) if isinstance(item, Snapshot)}
        assert {name for name, _ in inputs} <= names
        assert all(is_bare(rows) and rows.columns for _, rows in inputs)


ROWS = [{"a": a, "b": a % 3, "c": a % 2} for a in range(12)]


def self_join(left: str, right: str) -> Relation:
    """A join of two inputs over one table: their columns, and a filter on ``a`` after a slash."""
    sides = []
    for text in (left, right):
        names, _, limit = text.partition("/")
        leaf = table("t", " ".join(sorted({*names, "a"} if limit else names)))
        rows: Relation = where(leaf.scan, call("lt", leaf.a, int(limit), type_=BOOL)) if limit else leaf.scan
        sides.append(project(rows, **{name: getattr(leaf, name) for name in names}))
    return join("inner", sides[0], sides[1], eq(ColumnRef(sides[0].columns[-1]), ColumnRef(sides[1].columns[-1])))


@pytest.mark.parametrize(
    ("left", "right", "read"),
    [
        ("ab", "ab", ["t a b"]),
        ("b/5", "b/5", ["t a b"]),
        ("ab/5", "ab/7", ["t a b"]),
        ("ab/5", "b/7", ["t a b", "t b"]),
        ("abc", "b/5", ["t a b c"]),
        ("ab", "c", ["t a b c"]),
        ("a", "abc/5", ["t a", "t a b c"]),
        ("b/5", "c/7", ["t b", "t c"]),
    ],
)
def test_a_relation_is_read_once_where_that_is_less(left: str, right: str, read: list[str]) -> None:
    relation = self_join(left, right)
    apart, inputs = inputs_apart(relation)
    validate(apart)
    found = [" ".join(["t", *(column.name for column in rows.columns)]) for _, rows in inputs]
    assert sorted(found) == read
    runs = {
        name: [dict(zip(map(stored_name, rows.columns), row, strict=True)) for row in evaluate(rows, {"t": ROWS})]
        for name, rows in inputs
    }
    assert bag(evaluate(apart, runs)) == bag(evaluate(relation, {"t": ROWS}))


def test_of_tpch_what_is_read_twice_leaves_once(plans: list[Relation]) -> None:
    found = {}
    for path, plan in zip(QUERIES, plans[:-1], strict=True):
        read = Counter(node.name for node in walk(plan) if isinstance(node, Scan))
        left = Counter(node.name for _, rows in inputs_apart(plan)[1] for node in walk(rows) if isinstance(node, Scan))
        found |= {f"{path.stem} {name}": count for name, count in read.items() if count > 1}
        assert set(left.values()) <= {1}
    assert found == {
        **dict.fromkeys(("q2 supplier", "q2 partsupp", "q2 nation", "q2 region", "q7 nation", "q8 nation"), 2),
        **dict.fromkeys(("q11 partsupp", "q11 supplier", "q11 nation", "q17 lineitem", "q18 lineitem"), 2),
        "q21 lineitem": 3,
        "q22 customer": 2,
    }


# -- where not ---------------------------------------------------------------------------------------------------------


def breakers(relation: Relation) -> list[str]:
    return [place.breaker for place in places(relation)]


def _grouped(leaf: Any) -> Aggregate:
    return Aggregate(rel(leaf), ((fresh("k"), leaf.k),), ((fresh("n"), agg("count", type_=INT8)),))


def test_what_only_projections_separate_from_the_result_is_part_of_it() -> None:
    groups = _grouped(table("t", "k v"))
    assert breakers(groups) == []
    assert breakers(project(where(groups, eq(ColumnRef(groups.columns[0]), 1)), k=ColumnRef(groups.columns[0]))) == []
    assert breakers(Sort(groups, (SortKey(ColumnRef(groups.columns[0])),))) == ["group"]


def test_a_limit_keeps_its_order() -> None:
    leaf = table("t", "k v")
    first = Limit(Sort(leaf.scan, (SortKey(leaf.v),)), Literal(5, INT8), None)
    assert breakers(_grouped_rows(first, leaf.k)) == []


def _grouped_rows(below: Relation, key: ColumnRef) -> Relation:
    groups = Aggregate(below, ((fresh("k"), key),), ())
    return Sort(groups, (SortKey(ColumnRef(groups.columns[0])),)).input


def test_what_depends_on_an_outer_row_stays() -> None:
    t, u = table("t", "k v"), table("u", "k w")
    inner = Aggregate(where(u, eq(u.k, t.k)), ((fresh("k"), u.k),), ())
    assert breakers(Sort(join("inner", t, inner, None), (SortKey(t.k),))) == []


def test_what_differs_each_time_stays() -> None:
    t = table("t", "k v")
    groups = _grouped(t)
    noisy = project(groups, r=call("random", type_=FLOAT8))
    assert breakers(Sort(noisy, (SortKey(ColumnRef(noisy.columns[0])),))) == []


def test_the_rounds_of_a_recursion_stay_together() -> None:
    t, n = table("t", "k v"), fresh("n")
    working = Working("r", (fresh("n"),), (n,))
    step = Aggregate(working, ((fresh("m"), ColumnRef(working.columns[0])),), ())
    loop = Fixpoint("r", False, keep_columns(t.scan, (t.k.column,)), step, (n,))
    assert breakers(Sort(loop, (SortKey(ColumnRef(n)),))) == ["recursion"]


def test_the_smaller_side_of_an_inner_join_is_its_build_side() -> None:
    t, u = table("t", "k v"), table("u", "k w")
    joined = join("inner", t, u, eq(t.k, u.k))
    by_default, by_rows = places(joined), places(joined, lambda relation: 1.0 if relation is t.scan else 9.0)
    assert [(place.relation, place.probe) for place in by_default] == [(u.scan, t.scan)]
    assert [(place.relation, place.probe) for place in by_rows] == [(t.scan, u.scan)]
    left = join("left", t, u, eq(t.k, u.k))
    assert [place.relation for place in places(left, lambda relation: 1.0 if relation is t.scan else 9.0)] == [u.scan]


def test_union_all_passes_rows_on() -> None:
    t, u = table("t", "k"), table("u", "k")
    for every, found in ((True, []), (False, ["set operation"])):
        union = SetOperation("union", every, t.scan, u.scan, (fresh("k"),))
        assert breakers(Sort(union, (SortKey(ColumnRef(union.columns[0])),))) == found
