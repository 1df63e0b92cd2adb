"""Joins that ask for counted keys: where they are split, what they become, and that they keep their rows."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planner.algebra.nodes import Relation
from planner.algebra.validate import validate
from planner.explain.dataflows import explain_dataflow
from planner.explain.plans import explain_relation
from planner.incremental.dataflow.planning import dataflow_of, joined
from planner.incremental.dataflow.rewrites.counted_keys import counted_joins, with_counted_keys
from planner.incremental.dataflow.rewrites.rewriting import FORCED, UNSIZED, Sized
from planner.statistics import ColumnStatistics, Statistics, TableStatistics
from tests.planner import golden
from tests.planner.bound import catalog_of, query_of
from tests.planner.evaluate import bag, evaluate
from tests.rig.sampling import examples

CATALOG = catalog_of(
    (
        "CREATE TABLE products (id int PRIMARY KEY, maker int, name text)",
        "CREATE TABLE sales (id int PRIMARY KEY, product int, buyer int, v int)",
        "CREATE TABLE makers (id int PRIMARY KEY, name text)",
    )
)
DISTINCT = {"product": ColumnStatistics(20.0), "buyer": ColumnStatistics(500.0)}
STATISTICS: Statistics = {
    item.oid: TableStatistics(1000.0, DISTINCT, (frozenset(("id",)),))
    for item in CATALOG.objects.values()
    if item.name in ("products", "sales", "makers")
}
SIZED = Sized(STATISTICS)
GOLDEN = {
    "semi": "SELECT name FROM products p WHERE EXISTS (SELECT FROM sales WHERE product = p.id AND v > 1)",
    "anti": "SELECT name FROM products p WHERE NOT EXISTS (SELECT FROM sales WHERE product = p.id)",
    "not_distinct": "SELECT name FROM products p WHERE EXISTS"
    " (SELECT FROM sales WHERE p.id IS NOT DISTINCT FROM product)",
    "in_a_join": "SELECT name FROM products WHERE id IN (SELECT product FROM sales JOIN makers m ON buyer = m.id)",
    "compared": "SELECT name FROM products p WHERE EXISTS (SELECT FROM sales WHERE product = p.id AND v > maker)",
    "not_compared": "SELECT p.name FROM products p JOIN makers m ON m.id = maker WHERE NOT EXISTS"
    " (SELECT FROM sales WHERE product = p.id AND buyer <> m.id AND v > 1 AND p.name <> 'x')",
    "left": "SELECT name, v FROM products p LEFT JOIN sales s ON product = p.id AND v > 1",
    "grouped": "SELECT maker, count(s.id), sum(v) FROM products p LEFT JOIN sales s ON product = p.id GROUP BY maker",
    "computed": "SELECT name, v FROM products p LEFT JOIN sales s ON product = p.id * 2",
    "joined": "SELECT p.name, v, m.name AS maker FROM products p LEFT JOIN sales s ON product = p.id AND p.maker > 1"
    " JOIN makers m ON m.id = maker LEFT JOIN makers b ON b.id = buyer",
    "coalesced": "SELECT p.name, v, m.name AS maker FROM products p LEFT JOIN sales s ON product = p.id"
    " JOIN makers m ON m.id = coalesce(buyer, 0)",
}
#: Joins that stay as they are, with why.
WHOLE = {
    "a unique key": "SELECT v, name FROM sales s LEFT JOIN products p ON p.id = product",
    "a unique key of a subquery": "SELECT v FROM sales WHERE product IN (SELECT id FROM products WHERE maker > 1)",
    "groups": "SELECT name, n FROM products p LEFT JOIN (SELECT product, count(*) n FROM sales GROUP BY 1) s"
    " ON product = p.id",
    "a condition of both": "SELECT name FROM products p WHERE EXISTS (SELECT FROM sales WHERE product = p.id"
    " AND v + maker = 3)",
    "a comparison that may fail": "SELECT name FROM products p WHERE EXISTS (SELECT FROM sales WHERE product = p.id"
    " AND v > 6 / maker)",
    "a comparison of few partners": "SELECT name FROM products p WHERE EXISTS (SELECT FROM sales WHERE buyer = p.id"
    " AND v > maker)",
    "a left join by a comparison": "SELECT name, v FROM products p LEFT JOIN sales s ON product = p.id AND v > maker",
    "no equality": "SELECT name FROM products p WHERE EXISTS (SELECT FROM sales WHERE product > p.id)",
    "few partners": "SELECT name, v FROM products p LEFT JOIN sales s ON buyer = p.id",
    "nothing is known of the partners": "SELECT name, v FROM products p LEFT JOIN sales s ON v + 1 = p.id",
    "first rows": "SELECT name, v FROM products p LEFT JOIN (SELECT *, row_number() OVER (PARTITION BY product"
    " ORDER BY v) AS n FROM sales) s ON product = p.id AND n = 1",
}


def relation_of(query: str) -> Relation:
    return joined(query_of(query, CATALOG).relation)


@pytest.mark.parametrize("name", GOLDEN)
def test_joins_ask_for_counted_keys(name: str, rewrite: bool) -> None:
    relation = relation_of(GOLDEN[name])
    found = with_counted_keys(relation, SIZED)
    assert found is not relation or counted_joins(relation, SIZED)
    assert found.columns == relation.columns
    validate(found)
    planned = dataflow_of(relation, "v", sized=SIZED)
    assert planned.dataflow is not None and planned.reasons == ()
    lines = [GOLDEN[name], "", *explain_relation(found), "", *explain_dataflow(planned)]
    golden.check(f"counted_keys/{name}", lines, rewrite)


@pytest.mark.parametrize("why", WHOLE)
def test_joins_stay_as_they_are(why: str) -> None:
    relation = relation_of(WHOLE[why])
    assert with_counted_keys(relation, SIZED) is relation and not counted_joins(relation, SIZED)


def test_nothing_is_split_of_which_the_keys_are_not_known() -> None:
    for name in ("semi", "compared", "left"):
        relation = relation_of(GOLDEN[name])
        assert with_counted_keys(relation, UNSIZED) is relation and not counted_joins(relation, UNSIZED)


def test_more_than_keys_is_counted_where_that_is_asked_for() -> None:
    for why in ("few partners", "nothing is known of the partners"):
        assert counted_joins(relation_of(WHOLE[why]), Sized(STATISTICS, FORCED))
    relation = relation_of(WHOLE["a comparison of few partners"])
    assert with_counted_keys(relation, Sized(STATISTICS, FORCED)) is not relation


# -- the equations -----------------------------------------------------------------------------------------------------

_small = st.one_of(st.none(), st.integers(0, 2))
_rows = {
    "products": st.lists(st.fixed_dictionaries(dict.fromkeys(("id", "maker", "name"), _small)), max_size=4),
    "sales": st.lists(st.fixed_dictionaries(dict.fromkeys(("id", "product", "buyer", "v"), _small)), max_size=6),
    "makers": st.lists(st.fixed_dictionaries(dict.fromkeys(("id", "name"), _small)), max_size=3),
}
_QUERIES = (
    *GOLDEN.values(),
    "SELECT p.id, v, m.name AS m FROM products p LEFT JOIN makers m ON m.id = maker"
    " LEFT JOIN sales s ON product = p.id AND s.buyer = m.id WHERE v IS NULL OR v > 0",
    "SELECT id FROM products WHERE id NOT IN (SELECT product FROM sales WHERE v > 0)",
    "SELECT p.id FROM products p WHERE EXISTS (SELECT FROM sales s WHERE product = p.id AND NOT EXISTS"
    " (SELECT FROM products q WHERE q.maker = s.buyer))",
    "SELECT id FROM products WHERE maker IN (SELECT buyer FROM sales UNION ALL SELECT v FROM sales)",
)


@given(data=st.fixed_dictionaries(_rows), query=st.sampled_from(_QUERIES))
@settings(max_examples=examples(300), deadline=None)
def test_split_joins_have_the_same_rows(data: dict[str, Any], query: str) -> None:
    relation = relation_of(query)
    found = with_counted_keys(relation, Sized(STATISTICS, FORCED))
    validate(found)
    assert bag(evaluate(found, data)) == bag(evaluate(relation, data))
