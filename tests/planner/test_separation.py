"""Plans cut into pipelines, their state and what goes on from it: the thesis' example (figures 6.2, 6.8 and 6.9), and
any plan with any cut."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from catalog.types import FLOAT8, INT4, INT8, TEXT
from planner.algebra import (
    Aggregate,
    Fixpoint,
    Limit,
    Relation,
    Scan,
    SetOperation,
    Snapshot,
    Sort,
    SortKey,
    With,
    Working,
)
from planner.explain import explain_relation
from planner.expression import ColumnRef, Literal
from planner.rules import optimise
from planner.rules.support import keep_columns
from planner.separation import Pipelined, Place, cut, inputs_apart, is_bare, places, remaining, select_state
from planner.statements import Query
from planner.validate import validate
from planner.walk import transform, walk
from tests.planner import golden
from tests.planner.bound import bound, catalog_of
from tests.planner.builders import agg, call, eq, fresh, join, project, rel, table, where
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
    """Of the joins only the build side is replaced; what stood below a replaced one is neither there nor kept."""
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
    """TPC-H's queries, and what they lack."""
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
    """A pipeline's relation with those of others for what it reads of them."""
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
