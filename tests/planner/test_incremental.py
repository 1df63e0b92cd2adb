"""The law: a program over random batches gives what the view's query gives over all rows (reference evaluator)."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from functools import cache
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from catalog.values.types import BOOL, FLOAT4, FLOAT8, INT2, INT4, INT8, NUMERIC, TEXT, SqlType, array, numeric
from planner.algebra.nodes import AggregateCall, Delta, Literal, Relation, Scan, Snapshot, SortKey
from planner.algebra.partial_aggregates import Child, Split, split
from planner.algebra.signature import signature
from planner.algebra.walk import inputs, walk
from planner.incremental.names import Names, stored_name
from planner.incremental.plan import plan
from planner.incremental.programs.program import Program
from planner.statistics import ColumnStatistics, Statistics, TableStatistics
from tests.planner.builders import (
    Leaf,
    agg,
    both,
    call,
    cross,
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
    query,
    ref,
    scalar,
    stream,
    table,
    union,
    values,
    where,
)
from tests.planner.evaluate import bag, evaluate
from tests.planner.programs import run
from tests.rig.sampling import examples

_TYPES = {"k": INT4, "v": INT4, "w": TEXT}


class Inputs:
    """Streams s and z with (k, v, w), tables t and u with (k, x)."""

    def __init__(self) -> None:
        self.s, self.z = stream("s", _TYPES), stream("z", _TYPES)
        self.t, self.u = table("t", "k x"), table("u", "k x")

    def grouped(self, leaf: Leaf, **more: AggregateCall) -> Relation:
        return group(leaf, {"k": leaf.k}, **(more or {"n": agg("count"), "m": agg("sum", leaf.v)}))


Make = Callable[[Inputs], Relation]
SEPARATOR = Literal(",", TEXT)


def _order_of(leaf: Leaf) -> tuple[SortKey, ...]:
    """A total order, so that the order of arrival does not matter."""
    return SortKey(leaf.v, True, True), SortKey(leaf.w)


def _all_aggregates(i: Inputs) -> dict[str, AggregateCall]:
    s = i.s
    positive = call("gt", s.v, 0)
    return {
        "n": agg("count"),
        "c": agg("count", s.v),
        "sum": agg("sum", s.v),
        "avg": agg("avg", s.v),
        "min": agg("min", s.w, distinct=True),
        "max": agg("max", s.v),
        "all": agg("bool_and", positive),
        "any": agg("bool_or", positive, filter=call("is_not_null", s.w)),
        "var": agg("var_samp", s.v),
        "dev": agg("stddev_pop", s.v, type_=FLOAT8),
        "positive": agg("sum", s.v, filter=positive),
        "different": agg("count", s.v, distinct=True),
        "some": agg("count", s.w, distinct=True, filter=positive),
        "once": agg("sum", s.v, distinct=True),
        "names": agg("string_agg", s.w, SEPARATOR, type_=TEXT, order_by=_order_of(s)),
        "list": agg("array_agg", s.v, type_=SqlType("array", element=INT4), order_by=_order_of(s)),
        "set": agg("array_agg", s.v, distinct=True, type_=SqlType("array", element=INT4)),
    }


def _twice(i: Inputs) -> Relation:
    """The form of query 15: a grouping compared with the maximum of its own values."""
    again = stream("s", _TYPES)
    left, right = i.grouped(i.s), i.grouped(again)
    return where(left, eq(ref(left, "m"), scalar(group(right, x=agg("max", ref(right, "m"))))))


def _twice_with_other_aggregates(i: Inputs) -> Relation:
    again = stream("s", _TYPES)
    left = i.grouped(i.s, n=agg("count"))
    right = i.grouped(again, h=agg("max", again.v), n=agg("count"))
    return project(
        join("inner", left, right, eq(ref(left, "k"), ref(right, "k"))),
        k=ref(left, "k"),
        n=ref(left, "n"),
        h=ref(right, "h"),
    )


def _through_union(i: Inputs) -> Relation:
    arms = union("union", True, project(i.s, k=i.s.k, v=i.s.v), project(where(i.z, eq(i.z.k, 1)), k=i.z.k, v=i.z.v))
    joined = join("inner", arms, i.t, eq(ref(arms, "k"), i.t.k))
    v = ref(arms, "v")
    return group(
        joined, {"x": i.t.x}, n=agg("count"), a=agg("avg", v), d=agg("count", v, distinct=True), low=agg("min", v)
    )


def _union_with_table(i: Inputs) -> Relation:
    arms = union("union", True, project(i.s, k=i.s.k, v=i.s.v), project(i.t, k=i.t.k, v=i.t.x))
    v = ref(arms, "v")
    return group(arms, n=agg("count"), m=agg("sum", v, distinct=True), p=agg("max", v))


def _three_tables(i: Inputs) -> Relation:
    other = table("t", "k x")
    pairs = both(eq(i.s.k, i.t.k), eq(i.t.x, i.u.k), eq(i.s.v, other.k), call("lt", other.x, i.u.x))
    return group(where(cross(cross(cross(i.t, i.u), i.s), other), pairs), {"x": i.u.x}, n=agg("count"))


SHAPES: dict[str, Make] = {
    "all aggregates": lambda i: group(i.s, {"k": i.s.k}, **_all_aggregates(i)),
    "all aggregates of one group": lambda i: group(i.s, {}, **_all_aggregates(i)),
    "only children of one group": lambda i: group(
        i.s, d=agg("count", i.s.v, distinct=True), o=agg("sum", i.s.v, distinct=True)
    ),
    "only children": lambda i: i.grouped(i.s, d=agg("count", i.s.v, distinct=True)),
    "distinct constant": lambda i: group(i.s, d=agg("count", lit(7), distinct=True)),
    "one count": lambda i: group(where(i.s, call("gt", i.s.v, 1)), n=agg("count")),
    "distinct rows": lambda i: group(i.s, {"k": i.s.k, "w": i.s.w}),
    "keys by expression": lambda i: group(i.s, {"a": call("add", i.s.k, i.s.v), "k": i.s.k}, n=agg("count")),
    "having": lambda i: where(g := i.grouped(i.s), call("gt", ref(g, "n"), lit(1, INT8))),
    "a table below": lambda i: group(
        where(cross(i.t, i.s), both(eq(i.s.k, i.t.k), call("gt", i.t.x, 0))), {"x": i.t.x}, n=agg("count")
    ),
    "tables below": _three_tables,
    "a subquery in FROM below": lambda i: group(
        join("inner", p := project(i.s, a=call("add", i.s.v, 1), k=i.s.k), i.t, eq(ref(p, "a"), i.t.k)),
        {"k": ref(p, "k")},
        n=agg("count"),
        l=agg("string_agg", lit("x", TEXT), SEPARATOR, type_=TEXT),
    ),
    "a left join below": lambda i: group(
        join("right", i.t, i.s, eq(i.s.k, i.t.k)), {"x": i.t.x}, n=agg("count"), m=agg("count", i.t.k)
    ),
    "a semi join below": lambda i: group(
        where(i.s, member(i.s.k, project(i.t, k=i.t.k))), {"k": i.s.k}, n=agg("count")
    ),
    "not in below": lambda i: group(
        where(i.s, negate(member(i.s.k, project(i.t, k=i.t.x)))), {"k": i.s.k}, n=agg("count")
    ),
    "not exists below": lambda i: group(
        where(i.s, negate(exists(where(i.t, both(eq(i.t.k, i.s.k), call("lt", i.t.x, i.s.v)))))),
        {"k": i.s.k},
        n=agg("count"),
    ),
    "a scalar below": lambda i: group(
        where(i.s, call("gt", i.s.v, scalar(group(i.t, m=agg("min", i.t.x))))), {"k": i.s.k}, n=agg("count")
    ),
    "a correlated scalar below": lambda i: group(
        where(i.s, call("gt", i.s.v, scalar(group(where(i.t, eq(i.t.k, i.s.k)), m=agg("max", i.t.x))))),
        {"k": i.s.k},
        n=agg("count"),
    ),
    "a static limit below": lambda i: group(
        where(i.s, eq(i.s.v, scalar(project(limit(order(i.t, i.t.x, i.t.k), 1), x=i.t.x)))),
        {"k": i.s.k},
        n=agg("count"),
    ),
    "a table above": lambda i: join("right", g := i.grouped(i.s), i.t, eq(ref(g, "k"), i.t.k)),
    "streams joined above": lambda i: join(
        "full", g := i.grouped(i.s), h := i.grouped(i.z), eq(ref(g, "k"), ref(h, "k"))
    ),
    "a correlated stream above": lambda i: where(
        i.t, call("lt", i.t.x, scalar(group(where(i.s, eq(i.s.k, i.t.k)), m=agg("sum", i.s.v))))
    ),
    "in a stream": lambda i: where(i.t, member(i.t.k, project(i.s, k=i.s.k))),
    "not in a stream": lambda i: where(i.t, negate(member(i.t.k, project(i.s, k=i.s.k)))),
    "exists in a stream": lambda i: where(i.t, exists(where(i.s, eq(i.s.v, 2)))),
    "in a stream or else": lambda i: where(i.t, either(member(i.t.k, project(i.s, k=i.s.k)), eq(i.t.x, 1))),
    "a grouping of a grouping": lambda i: group(
        g := i.grouped(i.s), {"n": ref(g, "n")}, a=agg("avg", ref(g, "m")), c=agg("count")
    ),
    "order and limit on top": lambda i: limit(order(g := i.grouped(i.s), ref(g, "n"), ref(g, "k")), 2),
    "union above": lambda i: union(
        "union", True, i.grouped(i.s), project(i.t, k=i.t.k, n=lit(1, INT8), m=lit(2, INT8))
    ),
    "union below": _through_union,
    "union with a table below": _union_with_table,
    "union of streams": lambda i: union("union", False, project(i.s, k=i.s.k), project(i.z, k=i.z.v)),
    "the same grouping twice": _twice,
    "the same grouping twice, other aggregates": _twice_with_other_aggregates,
    "literal rows below": lambda i: group(
        join("inner", i.s, v := values("a", (1,), (2,)), eq(i.s.k, ref(v, "a"))), {"k": i.s.k}, n=agg("count")
    ),
    "a constant beside one group": lambda i: project(group(i.s, n=agg("count")), one=lit(1)),
}

_number = st.one_of(st.none(), st.integers(0, 3))
_events = st.fixed_dictionaries({"k": _number, "v": _number, "w": st.sampled_from((None, "a", "b"))})
_batches = st.lists(st.tuples(st.sampled_from("sz"), st.lists(_events, max_size=5)), max_size=4)
_table = st.lists(st.fixed_dictionaries({"k": _number, "x": _number}), max_size=4)


@cache
def _planned(name: str) -> tuple[Relation, Program]:
    relation = SHAPES[name](Inputs())
    return relation, plan(query(relation)).program


@pytest.mark.parametrize("name", SHAPES)
@settings(max_examples=examples(20))
@given(batches=_batches, t=_table, u=_table)
def test_continuous_equals_from_scratch(name: str, batches: Any, t: Any, u: Any) -> None:
    relation, program = _planned(name)
    assert program.columns == program.final.columns == relation.columns
    streams = {name: [row for stream_, rows in batches for row in rows if stream_ == name] for name in "sz"}
    expected = evaluate(relation, {"t": t, "u": u, **streams})
    assert bag(run(program, {"t": t, "u": u}, batches)) == bag(expected)


@pytest.mark.parametrize("name", SHAPES)
def test_programs_are_well_formed(name: str) -> None:
    _, program = _planned(name)
    stored = {item.name: set(map(stored_name, item.columns)) for item in (*program.states, *program.statics)}
    assert len(stored) == len(program.states) + len(program.statics)
    leaves = [node for path in program.paths for item in path.statements for node in walk(item.relation)]
    assert not any(isinstance(node, Scan) for node in leaves)
    assert not any(isinstance(node, Delta) for node in walk(program.final))
    for node in (*leaves, *walk(program.final)):
        if isinstance(node, Snapshot):
            assert set(node.sources) <= stored[node.trace]
    for state in program.states:
        assert len({column.name for column in state.columns}) == len(state.columns) > 0
        assert (
            set(state.key) | {column for column, _ in state.merge} == set(state.columns) or state.kind == "concatenate"
        )
    assert [path.id for path in program.paths] == list(range(len(program.paths)))
    assert len({path.inputs for path in program.paths}) == len(program.paths)


def _program(relation: Relation) -> Program:
    return plan(query(relation)).program


def test_equal_columns_of_several_aggregates_are_kept_once() -> None:
    i = Inputs()
    program = _program(group(i.s, {"k": i.s.k}, a=agg("avg", i.s.v), s=agg("sum", i.s.v), c=agg("count", i.s.v)))
    (state,) = program.states
    assert [column.name for column in state.columns] == ["k", "sum_v", "count_v"]


def test_counts_of_columns_without_null_are_counts_of_rows() -> None:
    s = stream("s", "k v", not_null="v")
    (state,) = _program(group(s, {"k": s.k}, a=agg("avg", s.v), n=agg("count"))).states
    assert [column.name for column in state.columns] == ["k", "sum_v", "count"]


@pytest.mark.parametrize("make", [_twice, _twice_with_other_aggregates])
def test_the_same_grouping_twice_has_one_state(make: Make) -> None:
    program = _program(make(Inputs()))
    assert len(program.states) == 1
    assert len(program.paths[0].statements) == 1


def test_frozen_tables_joined_below_are_evaluated_once_and_announced() -> None:
    i = Inputs()
    other = table("other", "k x")
    pairs = both(eq(i.s.k, i.t.k), eq(i.t.x, i.u.k), eq(i.s.v, other.k))
    below = where(cross(cross(cross(i.t, i.u), i.s), other), pairs)
    planned = plan(query(group(below, n=agg("count"))), tables="frozen")
    scans = [{node.name for node in walk(item.relation) if isinstance(node, Scan)} for item in planned.program.statics]
    assert scans == [{"t", "u"}, {"other"}]
    assert len(planned.notices) == 3
    assert all("as of the view's creation" in text for text in planned.notices)


def test_a_table_above_stays_current() -> None:
    i = Inputs()
    planned = plan(query(SHAPES["a table above"](i)))
    assert planned.program.statics == ()
    assert planned.notices == ()
    assert any(isinstance(node, Scan) and node.name == "t" for node in walk(planned.program.final))


def test_a_table_that_is_read_below_is_of_the_same_moment_above() -> None:
    """For each row of t, the number of lesser rows of s: the groups are made for the rows of t at that time."""
    i = Inputs()
    below = where(i.s, call("lt", i.s.v, i.t.x))
    counted = project(i.t, k=i.t.k, n=scalar(group(below, n=agg("count"))))
    planned = plan(query(join("inner", counted, i.u, eq(ref(counted, "k"), i.u.k))), tables="frozen")
    assert {node.name for node in walk(planned.program.final) if isinstance(node, Scan)} == {"u"}
    assert [text.partition(" is joined")[0] for text in planned.notices] == ['table "t"']


def test_a_table_that_hangs_on_two_stays_apart() -> None:
    """TPC-H query 5: customer is joined with orders and (by nation) with supplier; a join with the latter is huge."""
    line = stream("line", "o s v")
    orders, customer = table("orders", "o c"), table("customer", "c n")
    supplier, nation = table("supplier", "s n"), table("nation", "n name")
    pairs = both(
        eq(customer.c, orders.c),
        eq(line.o, orders.o),
        eq(line.s, supplier.s),
        eq(customer.n, supplier.n),
        eq(supplier.n, nation.n),
    )
    below = where(cross(cross(cross(cross(customer, orders), line), supplier), nation), pairs)
    program = plan(query(group(below, {"name": nation.name}, v=agg("sum", line.v))), tables="frozen").program
    scans = [{node.name for node in walk(item.relation) if isinstance(node, Scan)} for item in program.statics]
    assert sorted(map(sorted, scans)) == [["customer"], ["nation", "supplier"], ["orders"]]


def test_a_stream_meets_first_what_leaves_the_fewest_rows() -> None:
    line = stream("line", "a b v")
    part, shop = table("part", "k v"), table("shop", "k v")
    below = where(cross(cross(line, part), shop), both(eq(line.a, part.k), eq(line.b, shop.k), eq(shop.v, 1)))
    grouped = group(below, {"v": part.v}, n=agg("count"))
    known = TableStatistics(1000, {"v": ColumnStatistics(100)}, (frozenset("k"),))
    statistics: Statistics = {item.scan.oid: known for item in (part, shop)}
    for given_statistics, first in ((None, "part"), ({}, "part"), (statistics, "shop")):
        program = plan(query(grouped), statistics=given_statistics, tables="frozen").program
        (read,) = [node for node in walk(program.statics[0].relation) if isinstance(node, Scan)]
        assert read.name == first


def test_the_delta_is_the_probe_side_of_every_join() -> None:
    for make in (_three_tables, SHAPES["a left join below"], SHAPES["not exists below"]):
        (path,) = _program(make(Inputs())).paths
        node = path.statements[0].relation
        while inputs(node):
            node = inputs(node)[0]
        assert isinstance(node, Delta)


def test_statements_read_only_the_columns_that_they_use() -> None:
    i = Inputs()
    (path,) = _program(SHAPES["a table below"](i)).paths
    (delta,) = (node for node in walk(path.statements[0].relation) if isinstance(node, Delta))
    assert delta.sources == ("k",)


def _point_names(relation: Relation) -> list[str]:
    return [column.name for column in _program(relation).point_key]


def test_point_keys() -> None:
    i = Inputs()
    keyed = group(i.s, {"k": i.s.k, "w": i.s.w}, n=agg("count"))
    assert _point_names(keyed) == ["k", "w"]
    renamed = project(keyed, n=ref(keyed, "n"), b=ref(keyed, "w"), a=ref(keyed, "k"))
    assert _point_names(renamed) == ["a", "b"]
    assert _point_names(where(renamed, call("gt", ref(renamed, "n"), lit(1, INT8)))) == ["a", "b"]


@pytest.mark.parametrize(
    "name",
    ["one count", "only children", "a table above", "the same grouping twice", "order and limit on top", "union below"],
)
def test_no_point_key(name: str) -> None:
    assert _point_names(SHAPES[name](Inputs())) == []


def test_no_point_key_where_a_key_is_not_given_out() -> None:
    i = Inputs()
    keyed = group(i.s, {"k": i.s.k, "w": i.s.w}, n=agg("count"))
    assert _point_names(project(keyed, k=ref(keyed, "k"), n=ref(keyed, "n"))) == []
    assert _point_names(project(keyed, k=call("add", ref(keyed, "k"), 1), w=ref(keyed, "w"))) == []


def test_rows_that_no_grouping_takes_in_are_collected_with_the_columns_that_are_used() -> None:
    i = Inputs()
    counted = group(join("inner", where(i.s, eq(i.s.v, 1)), i.z, eq(i.s.k, i.z.k)), {"w": i.z.w}, n=agg("count"))
    planned = plan(query(counted))
    assert [item.reason for item in planned.collected] == ["streams are joined before they are grouped"] * 2
    assert [[column.name for column in state.columns] for state in planned.program.states] == [["k"], ["k", "w"]]
    assert {statement.method for path in planned.program.paths for statement in path.statements} == {"collect"}


def test_a_stream_that_is_read_in_several_ways_is_collected_once() -> None:
    i, again = Inputs(), stream("s", _TYPES)
    pairs = join("inner", where(i.s, eq(i.s.v, 1)), again, eq(i.s.k, again.k))
    (state,) = plan(query(project(pairs, w=again.w))).program.states
    assert [column.name for column in state.columns] == ["k", "v", "w"]


def test_groupings_stay_beside_rows_that_are_collected() -> None:
    i = Inputs()
    grouped = i.grouped(i.s, n=agg("count"))
    planned = plan(query(join("inner", grouped, i.z, eq(ref(grouped, "k"), i.z.k))))
    assert [item.stream for item in planned.collected] == ["z"]
    assert sorted(state.kind for state in planned.program.states) == ["aggregate", "concatenate"]


# -- aggregates --------------------------------------------------------------------------------------------------------


def _fill_types(function: str, argument: SqlType, result: SqlType) -> list[SqlType]:
    kind = FLOAT8 if result == FLOAT4 and function != "sum" else result
    part = split(agg(function, type(Inputs().s.k)(fresh("x", argument)), type_=kind), frozenset())
    assert isinstance(part, Split)
    return [item.fill.type for item in part.columns]


@pytest.mark.parametrize(
    ("function", "argument", "expected"),
    [
        ("sum", INT4, [INT8]),
        ("sum", INT8, [numeric(38, 0)]),
        ("sum", numeric(12, 2), [numeric(38, 2)]),
        ("sum", FLOAT4, [FLOAT8]),
        ("avg", INT2, [INT8, INT8]),
        ("avg", numeric(12, 2), [numeric(38, 2), INT8]),
        ("var_pop", INT4, [INT8, INT8, numeric(38, 0)]),
        ("var_pop", INT8, [INT8, numeric(38, 0), numeric(38, 0)]),
        ("stddev_samp", numeric(12, 2), [INT8, numeric(38, 2), numeric(38, 4)]),
        ("stddev_samp", FLOAT8, [array(FLOAT8)]),
        ("var_pop", FLOAT4, [array(FLOAT8)]),
        ("var_samp", NUMERIC, [INT8, numeric(38, 18), numeric(38, 18)]),
    ],
)
def test_state_columns_are_exact(function: str, argument: SqlType, expected: list[SqlType]) -> None:
    assert _fill_types(function, argument, argument) == expected


def test_values_that_count_once_need_no_child() -> None:
    i = Inputs()
    assert isinstance(split(agg("max", i.s.v, distinct=True), frozenset()), Split)
    assert isinstance(split(agg("sum", i.s.v, distinct=True), frozenset()), Child)


def test_delimiters_may_be_computed() -> None:
    s = stream("s", _TYPES)
    assert isinstance(split(agg("string_agg", s.w, s.w, type_=TEXT), frozenset()), Child)


def test_names_are_unique() -> None:
    names = Names()
    assert [names.unique(item) for item in ("a", "a", "a_2", "a", "b")] == ["a", "a_2", "a_2_2", "a_3", "b"]


# -- equal subtrees ----------------------------------------------------------------------------------------------------


def test_signatures_ignore_identities_and_nothing_else() -> None:
    one, two = (where(i.s, eq(i.s.k, 1)) for i in (Inputs(), Inputs()))
    assert signature(one)[0] == signature(two)[0]
    i = Inputs()
    others: list[Relation] = [
        where(i.s, eq(i.s.v, 1)),
        where(i.s, eq(i.s.k, 2)),
        where(i.s, call("ne", i.s.k, 1)),
        where(i.z, eq(i.z.k, 1)),
        where(i.s, eq(i.s.k, Literal(True, BOOL))),
        where(i.s, eq(i.s.k, Literal(Decimal(1), numeric(1, 0)))),
        replace(where(i.s, eq(i.s.k, 1)), input=where(i.s, eq(i.s.k, 1))),
    ]
    assert all(signature(item)[0] != signature(one)[0] for item in others)


def test_columns_correspond_by_place() -> None:
    one, two = (group(i.s, {"k": i.s.k}, n=agg("count")) for i in (Inputs(), Inputs()))
    pairs = dict(zip(signature(one)[1], signature(two)[1], strict=True))
    assert pairs[one.columns[0]] == two.columns[0]
    assert all(first.name == second.name for first, second in pairs.items())
