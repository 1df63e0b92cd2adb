"""Higher-order views: where groupings are split, what they become, and that they keep their rows."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from planner.algebra.nodes import Relation
from planner.algebra.validate import validate
from planner.explain.dataflows import explain_dataflow
from planner.explain.plans import explain_relation
from planner.incremental.dataflow.graph import Retracted
from planner.incremental.dataflow.planning import dataflow_of, joined
from planner.incremental.dataflow.rewrites.higher_order import with_views
from planner.incremental.dataflow.rewrites.rewriting import FORCED, Sized
from planner.statistics import ColumnStatistics, Statistics, TableStatistics, are_alike
from tests.planner import golden
from tests.planner.bound import catalog_of, query_of
from tests.planner.evaluate import bag, evaluate
from tests.rig.benchmarks import queries
from tests.rig.sampling import examples
from tests.rig.tpch import create

TABLES = (
    "CREATE TABLE sales (id int PRIMARY KEY, shop int, buyer int, item int, v int, n numeric(8, 2), w text, d date,"
    " f float8)",
    "CREATE TABLE shops (id int PRIMARY KEY, name text, region int, rate int NOT NULL, m numeric(5, 3), ok boolean)",
    "CREATE TABLE regions (id int PRIMARY KEY, title text)",
    "CREATE TABLE items (id int PRIMARY KEY, kind text, price numeric(6, 2))",
    "CREATE TABLE orders (id int PRIMARY KEY, shop int)",
)
CATALOG = catalog_of(TABLES)
#: Rows of the tables, and distinct values of columns.
ROWS = {"sales": 1_000_000, "shops": 10, "regions": 3, "items": 1_000, "orders": 200_000}
DISTINCT = {
    "sales": {"id": 1_000_000, "shop": 10, "buyer": 10, "item": 1_000, "v": 900_000, "w": 5},
    "shops": {"region": 3},
    "items": {"kind": 20},
}

GOLDEN = {
    "star": "SELECT name, kind, sum(n), count(*) FROM sales JOIN shops s ON shop = s.id JOIN items i ON item = i.id"
    " GROUP BY name, kind",
    "chain": "SELECT title, w, avg(n), count(v) FROM regions r, shops s, sales WHERE r.id = region AND s.id = shop"
    " GROUP BY title, w",
    "twice": "SELECT a.name, b.name AS other, sum(v) FROM sales JOIN shops a ON shop = a.id"
    " JOIN shops b ON buyer = b.id WHERE a.ok OR b.ok GROUP BY 1, 2",
    "between": "SELECT name, count(*), sum(v) FROM orders o JOIN sales ON o.id = sales.id JOIN shops s ON s.id = o.shop"
    " GROUP BY name",
    "left_join": "SELECT coalesce(name, '-') AS name, sum(v) FROM sales LEFT JOIN shops s ON shop = s.id AND rate > 1"
    " GROUP BY 1",
    "existence": "SELECT name, sum(v) FROM sales JOIN shops s ON shop = s.id WHERE EXISTS"
    " (SELECT FROM orders o WHERE o.id = sales.id) GROUP BY name",
    "products": "SELECT name, sum(n * m) AS a, sum(n * rate) AS b, avg(n * m) AS c, sum(rate) AS d,"
    " sum(CASE WHEN ok THEN n ELSE 0 END) AS e, sum(CASE WHEN ok THEN v WHEN w = 'x' THEN rate END) AS f FROM sales"
    " JOIN shops s ON shop = s.id GROUP BY name",
    "filters": "SELECT name, sum(v) FILTER (WHERE ok AND w = 'x'), count(*) FILTER (WHERE v > 1)"
    " FROM sales JOIN shops s ON shop = s.id AND rate > length(w) WHERE v > 0 GROUP BY name",
    "values": "SELECT name, max(rate), min(w), count(DISTINCT w), sum(n) FROM sales JOIN shops s ON shop = s.id"
    " GROUP BY name",
    "without_keys": "SELECT count(*), sum(n * rate) FROM sales CROSS JOIN shops",
    "distinct": "SELECT DISTINCT name, w FROM sales JOIN shops s ON shop = s.id",
    "times": "SELECT name, extract(year FROM d) AS year, date_trunc('month', d) AS month, sum(v) FROM sales"
    " JOIN shops s ON shop = s.id GROUP BY 1, 2, 3",
}
#: Groupings that stay whole, with why.
WHOLE = {
    "the relation is not small": "SELECT o.shop, sum(v) FROM sales JOIN orders o USING (id) GROUP BY o.shop",
    "the large relation is not large": "SELECT title, sum(rate) FROM shops JOIN regions r ON region = r.id GROUP BY 1",
    "the view has too many groups": "SELECT name, sales.id, sum(v) FROM sales JOIN shops s ON shop = s.id"
    " GROUP BY name, sales.id",
    "values are keys": "SELECT name, max(v) FROM sales JOIN shops s ON shop = s.id GROUP BY name",
    "a product may be out of range": "SELECT name, sum(v * rate) FROM sales JOIN shops s ON shop = s.id GROUP BY name",
    "a sum adds both sides": "SELECT name, sum(v + rate) FROM sales JOIN shops s ON shop = s.id GROUP BY name",
    "sums are of doubles": "SELECT name, sum(f) FROM sales JOIN shops s ON shop = s.id GROUP BY name",
    "lists are of rows": "SELECT name, array_agg(w ORDER BY w) FROM sales JOIN shops s ON shop = s.id GROUP BY name",
    "a relation holds others together": "SELECT o.shop, sum(v) FROM sales JOIN shops s ON sales.shop = s.id"
    " JOIN orders o ON o.shop = s.region GROUP BY 1",
    "the rows that are kept need it": "SELECT w, sum(v) FROM sales JOIN shops s ON shop = s.id WHERE EXISTS"
    " (SELECT FROM orders o WHERE o.shop = s.region) GROUP BY w",
    "nothing is known of a key": "SELECT name, n, count(*) FROM sales JOIN shops s ON shop = s.id GROUP BY name, n",
}


def statistics(**of_sales: int) -> Statistics:
    """With other numbers of distinct values of the large table's columns."""
    distinct = {**DISTINCT, "sales": DISTINCT["sales"] | of_sales}
    found: dict[int | str, TableStatistics] = {}
    for item in CATALOG.objects.values():
        if item.name in ROWS:
            columns = {name: ColumnStatistics(float(count)) for name, count in distinct.get(item.name, {}).items()}
            if item.name == "sales":
                columns["d"] = ColumnStatistics(2_000.0, dt.date(2020, 1, 1), dt.date(2025, 12, 31))
            found[item.oid] = TableStatistics(float(ROWS[item.name]), columns, (frozenset(("id",)),))
    return found


def relation_of(query: str) -> Relation:
    return joined(query_of(query, CATALOG).relation)


@pytest.mark.parametrize("name", GOLDEN)
def test_groupings_are_split(name: str, rewrite: bool) -> None:
    relation, sized = relation_of(GOLDEN[name]), Sized(statistics())
    found = with_views(relation, sized, frozenset())
    assert found.views
    validate(found.relation)
    planned = dataflow_of(relation, "v", sized=sized)
    assert planned.dataflow is not None and planned.reasons == ()
    views = [node for node in planned.dataflow.nodes if isinstance(node, Retracted) and node.is_auxiliary]
    assert len(views) == len(found.views)
    lines = [GOLDEN[name], "", *explain_relation(found.relation), "", *explain_dataflow(planned)]
    golden.check(f"higher_order/{name}", lines, rewrite)


@pytest.mark.parametrize("why", WHOLE)
def test_groupings_stay_whole(why: str) -> None:
    relation = relation_of(WHOLE[why])
    assert with_views(relation, Sized(statistics()), frozenset()).relation is relation


def test_nothing_is_split_of_which_nothing_is_known() -> None:
    relation = relation_of(GOLDEN["star"])
    known = {name: table for name, table in statistics().items() if table.rows != ROWS["items"]}
    for sized in (Sized(), Sized(known)):
        assert with_views(relation, sized, frozenset()).relation is relation


def test_nothing_is_split_over_empty_tables() -> None:
    relation = relation_of(GOLDEN["star"])
    tables = {name: TableStatistics(0.0) for name in statistics()}
    assert with_views(relation, Sized(tables), frozenset()).relation is relation


def test_views_end_where_little_is_known() -> None:
    """A view whose groups are only guessed is not split again and again."""
    relation = relation_of(GOLDEN["twice"])
    tables = {name: TableStatistics(1e9 if table.rows > 1_000 else 1.0) for name, table in statistics().items()}
    assert len(with_views(relation, Sized(tables), frozenset()).views) == 1


def test_views_stand_on_views(rewrite: bool) -> None:
    """Each is small beside what is below it."""
    keys = "name, kind, w"
    relation = relation_of(
        f"SELECT {keys}, sum(n) FROM sales JOIN shops s ON shop = s.id JOIN items i ON item = i.id GROUP BY {keys}"
    )
    tables = {
        name: replace(table, rows=table.rows * (100 if table.rows > 1_000 else 1))
        for name, table in statistics(w=100).items()
    }
    found = with_views(relation, Sized(tables), frozenset())
    assert len(found.views) == 2
    golden.check("higher_order/on_views", explain_relation(found.relation), rewrite)


@pytest.mark.parametrize("path", [path for path in queries("tpch") if path.stem in ("q5", "q7", "q8", "q9")], ids=str)
def test_nations_of_tpch_meet_groups(path: Any, rewrite: bool) -> None:
    catalog = catalog_of(tuple(create(streams=())))
    rows = {"lineitem": 6e6, "orders": 1.5e6, "customer": 1.5e5, "part": 2e5, "partsupp": 8e5, "supplier": 1e4}
    rows |= {"nation": 25.0, "region": 5.0}
    distinct = {"c_nationkey": 25, "s_nationkey": 25, "n_regionkey": 5, "o_orderdate": 2_406, "l_shipdate": 2_526}
    known = {
        item.oid: TableStatistics(
            rows[item.name], {name: ColumnStatistics(float(count)) for name, count in distinct.items()}
        )
        for item in catalog.objects.values()
        if item.name in rows
    }
    relation = joined(query_of(path.read_text().strip().rstrip(";"), catalog).relation)
    planned = dataflow_of(relation, "v", sized=Sized(known))
    golden.check(f"higher_order/{path.stem}", explain_dataflow(planned), rewrite)


def test_statistics_are_alike_up_to_twice_the_rows() -> None:
    old = {1: TableStatistics(100.0)}
    assert are_alike(old, {1: TableStatistics(200.0)}) and are_alike(old, {1: TableStatistics(50.0)})
    assert not are_alike(old, {1: TableStatistics(201.0)}) and not are_alike(old, {})
    assert not are_alike(old, {1: TableStatistics(49.0)})


# -- the equation ------------------------------------------------------------------------------------------------------

_small = st.one_of(st.none(), st.integers(0, 2))
_rows = {
    "sales": st.lists(
        st.fixed_dictionaries(dict.fromkeys(("id", "shop", "buyer", "item", "v", "n", "w", "d", "f"), _small)),
        max_size=5,
    ),
    "shops": st.lists(
        st.fixed_dictionaries(
            dict.fromkeys(("id", "name", "region", "m"), _small) | {"rate": st.integers(0, 2), "ok": st.booleans()}
        ),
        max_size=3,
    ),
    "regions": st.lists(st.fixed_dictionaries({"id": _small, "title": _small}), max_size=3),
    "items": st.lists(st.fixed_dictionaries({"id": _small, "kind": _small, "price": _small}), max_size=2),
    "orders": st.lists(st.fixed_dictionaries({"id": _small, "shop": _small}), max_size=3),
}
_JOINS = (
    "sales JOIN shops s ON shop = s.id",
    "regions r JOIN shops s ON r.id = region JOIN sales ON s.id = shop AND v < s.rate",
    "sales LEFT JOIN shops s ON shop = s.id AND s.rate > v",
    "sales JOIN (SELECT * FROM shops WHERE ok) s ON shop = s.id LEFT JOIN items i ON i.id = item AND i.kind = s.name",
    "sales JOIN shops s ON shop = s.id JOIN shops o ON buyer = o.id",
    "(SELECT v + 1 AS v, n, shop, w, item FROM sales WHERE v IS NOT NULL) sales JOIN shops s ON shop = s.id",
    "sales JOIN shops s ON shop = s.id AND EXISTS (SELECT FROM orders o WHERE o.id = item)",
    "sales JOIN shops s ON shop = s.id AND NOT EXISTS (SELECT FROM orders o WHERE o.id = item AND o.shop = s.region)",
    "sales CROSS JOIN shops s",
)
_KEYS = ("s.name", "s.name, w", "s.ok, v", "")
_CALLS = (
    *(
        "count(*)",
        "count(v)",
        "count(s.m)",
        "sum(v)",
        "sum(s.rate)",
        "sum(v * s.rate)",
        "sum(n * s.m)",
        "count(n * s.m)",
        "count(v * s.rate)",
        "max(v)",
    ),
    *(
        "sum(CASE WHEN s.ok THEN v END)",
        "sum(CASE WHEN s.ok THEN v WHEN v > 1 THEN s.rate ELSE 0 END)",
        "sum(v + s.rate)",
    ),
    *("sum(v) FILTER (WHERE s.ok)", "count(*) FILTER (WHERE v > s.rate)", "sum(s.rate) FILTER (WHERE v > 0)"),
    *("count(DISTINCT v)", "min(s.rate)"),
)


@given(
    data=st.fixed_dictionaries(_rows),
    joins=st.sampled_from(_JOINS),
    keys=st.sampled_from(_KEYS),
    calls=st.lists(st.sampled_from(_CALLS), min_size=1, max_size=3, unique=True),
    condition=st.sampled_from(("", "", "WHERE s.rate > 0 OR v = 1", "WHERE s.ok")),
)
@settings(max_examples=examples(300), deadline=None)
def test_split_groupings_have_the_same_rows(
    data: dict[str, Any], joins: str, keys: str, calls: list[str], condition: str
) -> None:
    shown = [f"{call} AS a{place}" for place, call in enumerate(calls)]
    query = f"SELECT {', '.join([*([keys] if keys else []), *shown])} FROM {joins} {condition}"
    relation = relation_of(query + (f" GROUP BY {keys}" if keys else ""))
    found = with_views(relation, Sized(rewriting=FORCED), frozenset())
    assert bool(found.views) == ("o.shop = s.region" not in joins)
    validate(found.relation)
    assert bag(evaluate(found.relation, data)) == bag(evaluate(relation, data))
