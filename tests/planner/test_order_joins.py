"""Join orders by statistics: golden plans, the cheapest of all orders, and always the same rows."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from catalog.values.types import FLOAT8, INT4
from planner.algebra.construction import conjuncts
from planner.algebra.nodes import Call, Filter, Join, Limit, Relation, Scalar
from planner.algebra.validate import validate
from planner.algebra.walk import walk
from planner.rules import RULES, optimise, rewrite, with_ordered_joins
from planner.rules.joins.cardinality import Cardinality
from planner.rules.joins.join_graph import Shape, region_of
from planner.rules.joins.order_joins import _Sizes, order_joins
from planner.statistics import ColumnStatistics, Statistics, TableStatistics
from tests.planner import golden
from tests.planner.builders import (
    Leaf,
    agg,
    both,
    call,
    cross,
    either,
    eq,
    exists,
    group,
    join,
    lit,
    oid_of,
    project,
    ref,
    rel,
    table,
    where,
)
from tests.planner.evaluate import bag, evaluate

#: A fact table with two dimensions, and a table joined with one of these.
FACT, SHOP, CITY, ITEM = (table(name, "k a b v") for name in ("fact", "shop", "city", "item"))


def _statistics(**rows: float) -> Statistics:
    """Statistics of tables with these row counts: k is a key from 1, a and b are references, and v has ten values."""
    return {oid_of(name): _table(count) for name, count in rows.items()}


def _table(rows: float) -> TableStatistics:
    key = ColumnStatistics(rows, 1, int(rows))
    return TableStatistics(rows, {"k": key, "v": ColumnStatistics(10, 0, 9)}, (frozenset("k"),))


STARS = _statistics(fact=1_000_000, shop=1000, city=100, item=50_000)


def _star(*parts: Scalar) -> Relation:
    """FROM fact, item, shop, city WHERE ..."""
    return where(cross(cross(cross(FACT, ITEM), SHOP), CITY), both(eq(FACT.a, ITEM.k), eq(FACT.b, SHOP.k), *parts))


CASES: dict[str, Callable[[], Relation]] = {
    "smallest_first": lambda: _star(eq(SHOP.a, CITY.k), eq(CITY.v, 3)),
    "not_crossed": lambda: _star(eq(SHOP.a, CITY.k), call("lt", FACT.k, 10), call("gt", CITY.k, 20)),
    "crossed_as_written": lambda: _star(eq(FACT.v, 3)),
    "over_three": lambda: _star(eq(SHOP.a, CITY.k), eq(call("coalesce", FACT.v, SHOP.v), CITY.v), eq(ITEM.v, 1)),
    "outer_join_stays": lambda: where(
        join("inner", join("left", cross(FACT, ITEM), SHOP, eq(FACT.b, SHOP.k)), CITY, eq(FACT.v, CITY.k)),
        both(eq(FACT.a, ITEM.k), eq(CITY.v, 1)),
    ),
    "error_stays": lambda: join(
        "inner",
        join("inner", join("inner", FACT, ITEM, eq(FACT.a, ITEM.k)), SHOP, eq(call("div", FACT.v, ITEM.v), SHOP.k)),
        CITY,
        both(eq(FACT.b, CITY.k), eq(CITY.v, 1)),
    ),
    "volatile_stays": lambda: join(
        "inner",
        join("inner", FACT, ITEM, both(eq(FACT.a, ITEM.k), call("gt", Call("random", (), FLOAT8), lit(0.5, FLOAT8)))),
        CITY,
        both(eq(FACT.b, CITY.k), eq(CITY.v, 1)),
    ),
    "within_a_subquery": lambda: where(SHOP, exists(where(_star(eq(CITY.v, 1), eq(FACT.v, CITY.k)), eq(ITEM.a, 5)))),
    "groups_have_keys": lambda: _grouped(),
}


def _grouped() -> Relation:
    sums = group(FACT, {"a": FACT.a}, n=agg("sum", FACT.v))
    joined = cross(cross(ITEM, sums), CITY)
    return where(joined, both(eq(ref(sums, "a"), ITEM.k), eq(ITEM.b, CITY.k), eq(CITY.v, 3)))


@pytest.mark.parametrize("name", CASES)
def test_golden_plan(name: str, rewrite: bool) -> None:
    before = optimise(CASES[name]())
    after = with_ordered_joins(before, STARS)
    validate(after)
    assert after.columns == before.columns
    assert order_joins(after, STARS) == after
    golden.check(f"rules/order_joins_{name}", golden.before_after(before, after), rewrite)


def test_nothing_known_leaves_joins_as_written() -> None:
    relation = optimise(_star(eq(SHOP.a, CITY.k), eq(CITY.v, 3)))
    assert with_ordered_joins(relation, {}) is relation
    assert order_joins(relation, {oid: item for oid, item in STARS.items() if oid != oid_of("city")}) is relation
    even = optimise(join("inner", join("inner", FACT, ITEM, eq(FACT.a, ITEM.a)), SHOP, eq(FACT.a, SHOP.a)))
    assert order_joins(even, _statistics(fact=100, item=100, shop=100)) is even


# -- the cheapest of all -----------------------------------------------------------------------------------------------


def _shapes(neighbours: list[int]) -> Iterator[Shape]:
    """All linear trees without cross joins."""
    for order in itertools.permutations(range(len(neighbours))):
        shape: Shape = order[0]
        leaves = 1 << order[0]
        for place in order[1:]:
            if not neighbours[place] & leaves:
                break
            shape, leaves = (shape, place), leaves | 1 << place
        else:
            yield shape


def _random_region(seed: int, count: int) -> tuple[Relation, Statistics]:
    """Connected tables of random sizes, in an order that needs cross joins."""
    draw = random.Random(seed)
    leaves = [table(f"t{place}", "k a b v") for place in range(count)]
    parts = [
        eq(getattr(leaves[place], draw.choice("ab")), leaves[draw.randrange(place)].k) for place in range(1, count)
    ]
    parts += [eq(*(item.v for item in draw.sample(leaves, 2))) for _ in range(draw.randrange(3))]
    parts += [eq(draw.choice(leaves).v, 1) for _ in range(draw.randrange(3))]
    draw.shuffle(leaves)
    relation: Relation = rel(leaves[0])
    for leaf in leaves[1:]:
        relation = cross(relation, leaf)
    return optimise(where(relation, both(*parts))), {
        oid_of(f"t{place}"): _table(float(10 ** draw.randrange(1, 7))) for place in range(count)
    }


@pytest.mark.parametrize("seed", range(12))
def test_no_order_without_crosses_is_cheaper(seed: int) -> None:
    relation, statistics = _random_region(seed, 5)
    ordered = order_joins(relation, statistics)
    region = region_of(ordered)
    sizes = _Sizes(region, Cardinality(ordered, statistics))
    best = min(map(sizes.cost, _shapes(region.neighbours())))
    assert best <= sizes.cost(region.shape) <= best / 0.7 * 1.01
    assert order_joins(ordered, statistics) == ordered


@pytest.mark.parametrize("count", [9, 14, 40])
def test_many_relations_are_joined_without_crosses(count: int) -> None:
    """A star has more connected sets than the search examines, so it is greedy."""
    hub, *points = (table(f"t{place}", "k a b v") for place in range(count))
    relation: Relation = rel(hub)
    for point in points:
        relation = cross(relation, point)
    keys = [eq(getattr(hub, "ab"[place % 2]), point.k) for place, point in enumerate(points)]
    statistics = {oid_of(f"t{place}"): _table(1000.0 * (place + 1)) for place in range(count)}
    ordered = with_ordered_joins(optimise(where(relation, both(*keys, eq(points[-1].v, 1)))), statistics)
    joins = [node for node in walk(ordered) if isinstance(node, Join)]
    assert len(joins) == count - 1
    assert all(node.predicate is not None for node in joins)
    assert sum(len(list(conjuncts(node.predicate))) for node in joins) == count - 1


# -- the same rows -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(25))
def test_rows_stay_the_same(seed: int) -> None:
    draw = random.Random(seed)
    leaves = [table(f"t{place}", "a b") for place in range(draw.randrange(3, 6))]
    relation = _random_tree(draw, leaves)
    data: dict[str, list[dict[str, Any]]] = {
        leaf.scan.name: [
            {"a": draw.choice((None, 0, 1, 2)), "b": draw.randrange(3)} for _ in range(draw.randrange(1, 6))
        ]
        for leaf in leaves
    }
    values = {name: ColumnStatistics(draw.choice((None, 2.0, 50.0)), 0, draw.randrange(1, 99)) for name in "ab"}
    statistics = {oid_of(name): TableStatistics(10 ** draw.randrange(6), values) for name in data}
    for before in (relation, optimise(relation)):
        after = rewrite(order_joins(before, statistics), RULES)
        validate(after)
        assert after.columns == relation.columns
        assert bag(evaluate(after, data)) == bag(evaluate(relation, data))


def _random_tree(draw: random.Random, leaves: list[Leaf]) -> Relation:
    """Joins of several kinds with filters and projections between them."""
    trees = [rel(leaf) for leaf in leaves]
    while len(trees) > 1:
        left, right = trees.pop(draw.randrange(len(trees))), trees.pop(draw.randrange(len(trees)))
        kind: Any = draw.choice(("inner", "inner", "inner", "inner", "left", "semi"))
        joined: Relation = join(kind, left, right, _random_predicate(draw, cross(left, right)))
        if draw.random() < 0.4:
            joined = where(joined, _random_predicate(draw, joined))
        if draw.random() < 0.3:
            joined = project(joined, **{name: ref_at(joined, draw) for name in "ab"})
        trees.append(joined)
    return trees[0]


def ref_at(relation: Relation, draw: random.Random) -> Scalar:
    return ref(relation, draw.choice([column.name for column in relation.columns]))


def _random_predicate(draw: random.Random, relation: Relation) -> Scalar:
    columns = [call("coalesce", item, 0) if draw.random() < 0.2 else item for item in map(_reference, relation.columns)]
    parts = [eq(*draw.choices(columns, k=2)) for _ in range(draw.randrange(1, 3))]
    parts.append(call(draw.choice(("lt", "eq", "ne")), draw.choice(columns), draw.randrange(3)))
    return both(*parts) if draw.random() < 0.7 else either(*parts)


def _reference(column: Any) -> Scalar:
    from planner.algebra.nodes import ColumnRef

    return ColumnRef(column)


# -- estimates ---------------------------------------------------------------------------------------------------------

ESTIMATES: dict[str, tuple[Callable[[], Relation], float]] = {
    "table": (lambda: rel(FACT), 1_000_000),
    "unknown table": (lambda: rel(table("nobody", "a")), 1000),
    "key": (lambda: where(FACT, eq(FACT.k, 7)), 1),
    "value": (lambda: where(FACT, eq(FACT.v, 7)), 100_000),
    "another value": (lambda: where(FACT, call("ne", FACT.v, 7)), 900_000),
    "values": (lambda: where(FACT, call("in", FACT.v, 1, 2, 3)), 300_000),
    "share": (lambda: where(ITEM, call("le", ITEM.k, 12_500)), 12_500),
    "interval": (lambda: where(ITEM, both(call("ge", ITEM.k, 10_000), call("gt", 20_000, ITEM.k))), 10_000),
    "beyond": (lambda: where(ITEM, call("gt", ITEM.k, 99_999)), 1),
    "either": (lambda: where(FACT, either(eq(FACT.v, 1), eq(FACT.v, 2))), 190_000),
    "foreign key": (lambda: join("inner", FACT, ITEM, eq(FACT.a, ITEM.k)), 1_000_000),
    "filtered key": (lambda: join("inner", FACT, where(ITEM, eq(ITEM.v, 1)), eq(FACT.a, ITEM.k)), 100_000),
    "outer": (lambda: join("left", FACT, where(ITEM, eq(ITEM.v, 1)), eq(FACT.a, ITEM.k)), 1_000_000),
    "counted": (lambda: join("inner", SHOP, CITY, eq(SHOP.v, CITY.v)), 10_000),
    "cross": (lambda: cross(SHOP, CITY), 100_000),
    "groups": (lambda: group(FACT, {"v": FACT.v}, n=agg("count")), 10),
    "one group": (lambda: group(FACT, n=agg("count")), 1),
    "limit": (lambda: Limit(rel(FACT), lit(5), None), 5),
}


@pytest.mark.parametrize("name", ESTIMATES)
def test_estimate(name: str) -> None:
    make, wanted = ESTIMATES[name]
    relation = make()
    assert Cardinality(relation, STARS).rows(relation) == pytest.approx(wanted, rel=0.01)


def test_a_key_of_two_columns_counts_once() -> None:
    pairs, lines = table("pairs", "a b"), table("lines", "a b")
    column = {"a": ColumnStatistics(2000.0), "b": ColumnStatistics(100.0)}
    statistics = {
        oid_of("pairs"): TableStatistics(8000, column, (frozenset("ab"),)),
        oid_of("lines"): TableStatistics(60_000, column),
    }
    joined = join("inner", lines, pairs, both(eq(lines.a, pairs.a), eq(lines.b, pairs.b)))
    assert Cardinality(joined, statistics).rows(joined) == pytest.approx(60_000)
    without = {oid: TableStatistics(item.rows, item.columns) for oid, item in statistics.items()}
    assert Cardinality(joined, without).rows(joined) == pytest.approx(60_000)


@pytest.mark.slow
def test_deep_plans_are_estimated() -> None:
    relation: Relation = rel(FACT)
    for value in range(3000):
        relation = Filter(relation, call("ne", FACT.k, lit(value, INT4)))
    assert Cardinality(relation, STARS).rows(relation) > 900_000
