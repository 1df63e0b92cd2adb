"""The plans that a continuous view may have (thesis 4.2.2 and 4.2.3), and the result of ``prepare``."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from catalog.values.types import TIMESTAMPTZ
from planner.algebra.nodes import Aggregate, Call, Join, Limit, Relation, Sort
from planner.algebra.validate import validate
from planner.algebra.walk import walk
from planner.incremental.plan import normalise, plan
from planner.incremental.properties import Kinds, is_grouping
from planner.incremental.rewrites.prepare import prepare
from tests.planner.builders import (
    Leaf,
    agg,
    both,
    call,
    cross,
    eq,
    exists,
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
    rel,
    scalar,
    stream,
    table,
    union,
    where,
)


class Inputs:
    """Two streams s and z, two tables t and u."""

    def __init__(self) -> None:
        self.s, self.z = stream("s", "k v"), stream("z", "k v")
        self.t, self.u = table("t", "k v"), table("u", "k v")

    def grouped(self, leaf: Leaf) -> Relation:
        return group(leaf, {"k": leaf.k}, n=agg("count"))


Make = Callable[[Inputs], Relation]


def _two_groupings(i: Inputs) -> Relation:
    left, right = i.grouped(i.s), i.grouped(i.z)
    return join("full", left, right, eq(ref(left, "k"), ref(right, "k")))


def _grouped_with_table(i: Inputs) -> Relation:
    left = i.grouped(i.s)
    return join("right", left, i.t, eq(ref(left, "k"), i.t.k))


def _limited_grouping(i: Inputs) -> Relation:
    below = i.grouped(i.s)
    return limit(order(below, ref(below, "n")), 3)


def _outer(kind: str, left: Leaf, right: Leaf) -> Relation:
    pair = join(kind, left, right, eq(left.k, right.k))  # type: ignore[arg-type]
    return group(pair, {"k": left.k}, n=agg("count"))


def _by_average(i: Inputs) -> Relation:
    again = stream("s", "k v")
    average = group(again, x=agg("avg", again.v))
    return group(where(i.s, call("gt", i.s.v, scalar(average))), {"k": i.s.k}, n=agg("count"))


ALLOWED: dict[str, Make] = {
    "a grouping": lambda i: i.grouped(i.s),
    "one group": lambda i: group(i.s, n=agg("count")),
    "distinct": lambda i: group(i.s, {"k": i.s.k, "v": i.s.v}),
    "a union of streams as distinct rows": lambda i: union("union", False, i.s, i.z),
    "a union of streams below a grouping": lambda i: group(union("union", True, i.s, i.z), n=agg("count")),
    "a join with a table below": lambda i: _outer("inner", i.t, i.s),
    "a left join that keeps the stream": lambda i: _outer("left", i.s, i.t),
    "a right join that keeps the stream": lambda i: _outer("right", i.t, i.s),
    "a semi join of the stream": lambda i: group(join("semi", i.s, i.t, eq(i.s.k, i.t.k)), n=agg("count")),
    "an anti join of the stream": lambda i: group(join("anti", i.s, i.t, eq(i.s.k, i.t.k)), n=agg("count")),
    "a left join that keeps the table": lambda i: _outer("left", i.t, i.s),
    "a right join that keeps the table": lambda i: _outer("right", i.s, i.t),
    "a full join with a table": lambda i: _outer("full", i.s, i.t),
    "the distinct rows of a stream that a table has": lambda i: union("intersect", False, i.s, i.t),
    "the distinct rows of a table that a stream has not": lambda i: union("except", False, i.t, i.s),
    "a full join of groupings": _two_groupings,
    "a table kept above the grouping": _grouped_with_table,
    "a limit on top": _limited_grouping,
    "a limit between groupings": lambda i: group(_limited_grouping(i), n=agg("count")),
    "a limit between groupings, in no order": lambda i: group(limit(i.grouped(i.s), 3), n=agg("count")),
    "a static limit below": lambda i: group(cross(i.s, limit(order(i.t, i.t.v), 1)), {"k": i.s.k}, n=agg("count")),
    "a static outer join below": lambda i: group(
        join("inner", i.s, join("full", i.t, i.u, eq(i.t.k, i.u.k)), eq(i.s.k, i.t.k)), {"k": i.s.k}, n=agg("count")
    ),
    "a table's rows that are in a stream": lambda i: where(i.t, member(i.t.k, project(i.s, k=i.s.k))),
    "a table's rows that are not in a stream": lambda i: where(i.t, negate(exists(where(i.s, eq(i.s.k, i.t.k))))),
    "a table if a stream has rows": lambda i: where(i.t, exists(i.s)),
    "except all": lambda i: union("except", True, i.s, i.t),
    "a grouping of a grouping": lambda i: group(b := i.grouped(i.s), {"n": ref(b, "n")}, m=agg("count")),
}


@pytest.mark.parametrize("name", ALLOWED)
def test_allowed(name: str) -> None:
    relation = ALLOWED[name](Inputs())
    prepared = normalise(relation)
    validate(prepared)
    assert prepared.columns == relation.columns
    assert plan(query(relation)).collected == ()


COLLECTED: dict[str, tuple[Make, str]] = {
    "ungrouped": (lambda i: where(i.s, eq(i.s.k, 1)), "no grouping takes in"),
    "joined ungrouped": (lambda i: join("inner", i.s, i.t, eq(i.s.k, i.t.k)), "no grouping takes in"),
    "streams": (lambda i: _outer("inner", i.s, i.z), "streams are joined before"),
    "a grouped and an ungrouped stream": (
        lambda i: group(join("inner", g := i.grouped(i.z), i.s, eq(ref(g, "k"), i.s.k)), n=agg("count")),
        "streams are joined before",
    ),
    "a table kept ungrouped": (lambda i: join("left", i.t, i.s, eq(i.t.k, i.s.k)), "no grouping takes in"),
    "union all ungrouped": (lambda i: union("union", True, i.s, i.t), "no grouping takes in"),
    "limit below": (lambda i: group(limit(i.s, 3), n=agg("count")), "LIMIT is applied before"),
    "compared with a stream": (_by_average, "streams are joined before"),
    "now": (lambda i: group(i.s, {"t": Call("now", (), TIMESTAMPTZ)}, n=agg("count")), "whose value may change"),
    "now in a filter": (
        lambda i: group(where(i.s, call("is_not_null", Call("now", (), TIMESTAMPTZ))), n=agg("count")),
        "whose value may change",
    ),
}


@pytest.mark.parametrize("name", COLLECTED)
def test_rows_are_collected_with_the_reason(name: str) -> None:
    make, reason = COLLECTED[name]
    relation = make(Inputs())
    planned = plan(query(relation))
    assert any(reason in item.reason for item in planned.collected)
    assert planned.program.final.columns == relation.columns


def test_now_above_the_grouping_is_allowed() -> None:
    i = Inputs()
    below = i.grouped(i.s)
    assert plan(query(project(below, k=ref(below, "k"), at=Call("now", (), TIMESTAMPTZ)))).collected == ()


def test_orders_without_limit_vanish_and_others_stay() -> None:
    i = Inputs()
    below = group(order(i.s, i.s.v), {"k": i.s.k}, n=agg("count"))
    top = prepare(order(limit(project(order(below, ref(below, "n")), n=ref(below, "n")), 3), lit(1)))
    assert isinstance(top, Limit)
    assert sum(isinstance(node, Sort) for node in walk(top)) == 1


def test_the_stream_goes_to_the_probe_side() -> None:
    i = Inputs()
    prepared = prepare(_outer("right", i.t, i.s))
    kinds = Kinds()
    found = next(node for node in walk(prepared) if isinstance(node, Join))
    assert found.kind == "left"
    assert (kinds.of(found.left), kinds.of(found.right)) == ("stream", "static")


def test_a_grouped_stream_goes_to_the_probe_side_too() -> None:
    i = Inputs()
    below = i.grouped(i.s)
    prepared = prepare(join("left", i.t, below, both(eq(ref(below, "k"), i.t.k))))
    kinds = Kinds()
    found = next(node for node in walk(prepared) if isinstance(node, Join))
    assert found.kind == "right"
    assert (kinds.of(found.left), kinds.of(found.right)) == ("upper", "static")


def test_kinds() -> None:
    i = Inputs()
    below = where(cross(i.s, i.t), call("gt", i.s.v, 0))
    top = group(below, {"k": i.s.k}, n=agg("count"))
    kinds = Kinds()
    assert [kinds.of(item) for item in (rel(i.t), below, top)] == ["static", "stream", "upper"]
    assert is_grouping(top, kinds)
    assert not is_grouping(Aggregate(top, (), ()), kinds)
