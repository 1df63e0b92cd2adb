"""What facts make needless: which joins and groupings are left out and why, which stay, and that no row differs."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from catalog.objects import Table
from planner.algebra.nodes import Relation
from planner.algebra.validate import validate
from planner.explain.dataflows import explain_dataflow
from planner.explain.plans import explain_relation
from planner.incremental.dataflow.facts import Tables
from planner.incremental.dataflow.planning import dataflow_of, joined
from planner.incremental.dataflow.rewrites.by_facts import by_facts
from tests.planner import golden
from tests.planner.bound import catalog_of, query_of
from tests.planner.evaluate import bag, evaluate
from tests.rig.sampling import examples

CATALOG = catalog_of(
    (
        "CREATE TABLE buyers (id int PRIMARY KEY, name text, boss int REFERENCES buyers)",
        "CREATE TABLE orders (id int PRIMARY KEY, buyer int NOT NULL REFERENCES buyers, day int, UNIQUE (id, buyer))",
        "CREATE TABLE lines (oid int, obuyer int, helper int REFERENCES buyers, v int,"
        " FOREIGN KEY (oid, obuyer) REFERENCES orders (id, buyer))",
        "CREATE TABLE prices (buyer numeric(8, 2) PRIMARY KEY, rate float8 UNIQUE, tag varchar(5) UNIQUE)",
        "CREATE TABLE offers (rate float8 REFERENCES prices (rate), tag varchar(5) REFERENCES prices (tag), v int)",
    )
)
TABLES: Tables = {oid: item for oid, item in CATALOG.objects.items() if isinstance(item, Table)}
GOLDEN = {
    "inner": "SELECT o.id, b.id AS buyer FROM orders o JOIN buyers b ON b.id = o.buyer",
    "inner_nullable": "SELECT v FROM lines JOIN buyers b ON b.id = helper AND b.id > v",
    "inner_of_two_columns": "SELECT v, o.id, o.buyer FROM lines JOIN orders o ON oid = o.id AND obuyer = o.buyer",
    "chain": "SELECT v FROM buyers b, orders o, lines l WHERE l.oid = o.id AND l.obuyer = o.buyer AND o.buyer = b.id"
    " AND b.id < 3",
    "below_others": "SELECT name, sum(v) FROM lines JOIN orders o ON oid = o.id AND obuyer = o.buyer"
    " JOIN buyers b ON b.id = obuyer GROUP BY name",
    "filtered_key": "SELECT o.day FROM orders o JOIN (SELECT id + 1 AS next, id FROM buyers WHERE id > 1) b"
    " ON b.id = o.buyer",
    "left": "SELECT v, b.id FROM lines LEFT JOIN buyers b ON b.id = helper",
    "left_constant": "SELECT v, b.has FROM lines LEFT JOIN (SELECT id, 1 AS has FROM buyers) b ON b.id = helper",
    "left_unused": "SELECT v FROM lines LEFT JOIN buyers b ON b.id = v AND b.name > 'x'",
    "left_unused_groups": "SELECT v FROM (SELECT v, (SELECT max(day) FROM orders WHERE buyer = helper) FROM lines) x",
    "left_where_rows_count_once": "SELECT DISTINCT o.day FROM orders o LEFT JOIN lines ON oid = o.id",
    "left_where_rows_are_asked_for": "SELECT name FROM buyers b WHERE EXISTS (SELECT FROM orders o LEFT JOIN lines"
    " ON oid = o.id WHERE o.buyer = b.id)",
    "right": "SELECT count(*) FROM buyers b RIGHT JOIN orders o ON o.buyer = b.id",
    "semi": "SELECT v FROM lines WHERE EXISTS (SELECT FROM buyers b WHERE b.id = helper AND b.id < v)",
    "semi_of_part_of_a_key": "SELECT v FROM lines WHERE oid IN (SELECT oid FROM lines l)",
    "anti": "SELECT v FROM lines WHERE NOT EXISTS (SELECT FROM buyers b WHERE b.id = helper AND b.id < v)",
    "anti_of_nothing": "SELECT day FROM orders WHERE buyer NOT IN (SELECT id FROM buyers)",
    "itself": "SELECT a.name FROM buyers a JOIN buyers b USING (id)",
    "behind_groups": "SELECT buyer, n FROM (SELECT buyer, count(*) AS n FROM orders GROUP BY 1) o"
    " JOIN buyers b ON b.id = buyer",
    "subquery_by_key": "SELECT v, (SELECT name FROM buyers b WHERE b.id = helper) FROM lines",
    "distinct": "SELECT DISTINCT id, day FROM orders",
    "joins_within": "SELECT l.v, max(o.day) FROM lines l JOIN buyers b ON b.id = helper LEFT JOIN"
    " (orders o LEFT JOIN lines m ON m.v = o.buyer) ON o.day = l.v GROUP BY l.v",
    "grouped_by_key": "SELECT id, count(*) AS n, count(day) AS c, min(day) AS m, sum(day) FILTER (WHERE day > 1) AS s,"
    " count(*) FILTER (WHERE day > 1) AS f FROM orders GROUP BY id",
    "grouped_twice": "SELECT DISTINCT buyer, n FROM (SELECT buyer, count(*) AS n FROM orders GROUP BY buyer) o",
    "texts": "SELECT v, p.tag FROM offers o JOIN prices p USING (tag)",
}
#: Joins and groupings that stay, with why.
WHOLE = {
    "another column is used": "SELECT name FROM orders JOIN buyers b ON b.id = buyer",
    "another column is filtered": "SELECT day FROM orders JOIN buyers b ON b.id = buyer AND name > 'x'",
    "another column is compared": "SELECT v FROM lines JOIN buyers b ON b.id = helper AND boss = v",
    "the rows are not the referencing ones": "SELECT v FROM lines JOIN buyers b ON b.id = v",
    "the values are computed": "SELECT v FROM lines JOIN buyers b ON b.id = helper + 0",
    "the key is half compared": "SELECT v FROM lines JOIN orders o ON oid = o.id",
    "the values are of two rows": "SELECT l.v FROM lines l, lines m, orders o WHERE l.oid = o.id"
    " AND m.obuyer = o.buyer",
    "a key that may be NULL": "SELECT DISTINCT tag FROM prices",
    "an average": "SELECT id, avg(day) FROM orders GROUP BY id",
    "a list": "SELECT id, array_agg(day) FROM orders GROUP BY id",
    "no key": "SELECT buyer, max(day) FROM orders GROUP BY buyer",
    "zeros of floats": "SELECT v FROM offers JOIN prices p USING (rate)",
    "many rows": "SELECT day FROM orders o LEFT JOIN lines ON oid = o.id",
    "many rows of a kind": "SELECT l.v FROM lines l JOIN lines m USING (oid)",
    "a list of values": "SELECT day, array_agg(day) FROM orders o LEFT JOIN lines ON oid = o.id GROUP BY day",
    "a predicate may raise": "SELECT v FROM lines JOIN buyers b ON b.id = helper AND 6 / v > b.id",
    "an older predicate may raise": "SELECT v FROM lines JOIN buyers b ON b.id = helper AND 6 / b.id > 1",
    "first rows": "SELECT v FROM lines LEFT JOIN (SELECT * FROM orders LIMIT 5) o ON o.day = v",
    "a row that may be missing": "SELECT b.id, v FROM buyers a LEFT JOIN buyers b ON b.id = a.boss AND b.id > 1"
    " JOIN lines ON v = b.id",
}


def relation_of(query: str) -> Relation:
    return joined(query_of(query, CATALOG).relation)


@pytest.mark.parametrize("name", GOLDEN)
def test_what_is_left_out(name: str, rewrite: bool) -> None:
    relation = relation_of(GOLDEN[name])
    found = by_facts(relation, TABLES)
    assert found.left_out and found.relation.columns == relation.columns
    validate(found.relation)
    planned = dataflow_of(found.relation, "v", left_out=found.left_out)
    assert planned.dataflow is not None and planned.reasons == ()
    lines = [GOLDEN[name], "", *explain_relation(found.relation), "", *explain_dataflow(planned)]
    golden.check(f"by_facts/{name}", lines, rewrite)


@pytest.mark.parametrize("why", WHOLE)
def test_what_stays(why: str) -> None:
    relation = relation_of(WHOLE[why])
    found = by_facts(relation, TABLES)
    assert found.left_out == () and found.relation is relation


@pytest.mark.parametrize("name", GOLDEN)
def test_nothing_is_left_out_without_facts(name: str) -> None:
    left_out = by_facts(relation_of(GOLDEN[name]), {}).left_out
    assert bool(left_out) == (
        name in ("left_unused_groups", "grouped_twice", "joins_within") or name.startswith("left_where")
    )


def test_a_key_that_is_not_validated_says_nothing() -> None:
    tables = {
        oid: replace(table, foreign_keys=tuple(replace(key, validated=False) for key in table.foreign_keys))
        for oid, table in TABLES.items()
    }
    for name in ("inner", "left", "semi", "anti"):
        relation = relation_of(GOLDEN[name])
        assert by_facts(relation, tables).relation is relation


# -- the equations -----------------------------------------------------------------------------------------------------

_QUERIES = (
    *(query for name, query in GOLDEN.items() if name != "texts"),
    *(query for why, query in WHOLE.items() if why.startswith(("another", "the", "many", "no"))),
    "SELECT a.name, l.v, c.id AS c FROM lines l LEFT JOIN buyers a ON a.id = l.helper"
    " LEFT JOIN buyers c ON c.id = a.boss",
    "SELECT v, x.id AS x FROM lines LEFT JOIN (SELECT o.id FROM orders o JOIN buyers b ON b.id = o.buyer) x"
    " ON x.id = oid",
    "SELECT v FROM lines l WHERE NOT EXISTS (SELECT FROM orders o JOIN buyers b ON b.id = o.buyer"
    " WHERE o.id = l.oid AND o.buyer = l.obuyer)",
    "SELECT b.boss, c.id FROM buyers b JOIN buyers c ON c.id = b.boss WHERE b.boss IN (SELECT id FROM buyers)",
    "SELECT day FROM orders UNION SELECT v FROM lines LEFT JOIN orders o ON o.day = v",
    "SELECT day FROM orders o LEFT JOIN lines ON oid = o.id UNION ALL SELECT v FROM lines JOIN buyers b"
    " ON b.id = helper",
    "SELECT o.id, b.id AS b, l.v FROM orders o FULL JOIN lines l ON l.oid = o.id JOIN buyers b ON b.id = o.buyer",
    "SELECT v, (SELECT count(*) FROM buyers b WHERE b.id = helper) FROM lines",
    "SELECT (SELECT count(*) FROM orders o WHERE o.id = l.oid AND o.buyer = l.obuyer) FROM lines l",
    "SELECT l.oid, (SELECT count(*) FROM buyers b WHERE b.id = o.buyer) FROM orders o RIGHT JOIN lines l ON o.id = v",
    "SELECT v, has FROM lines LEFT JOIN (SELECT id, coalesce(id, 7) AS has FROM buyers) b ON b.id = helper",
    "SELECT max(v), day FROM orders o LEFT JOIN lines l ON l.oid = o.id LEFT JOIN buyers b ON b.boss = o.day"
    " GROUP BY day",
)


@st.composite
def _data(draw: st.DrawFn) -> dict[str, Any]:
    """Rows for which the keys and foreign keys hold."""
    small = st.one_of(st.none(), st.integers(0, 3))
    ids = draw(st.lists(st.integers(0, 3), unique=True, max_size=4))
    some = st.sampled_from([None, *ids])
    buyers = [{"id": one, "name": draw(st.sampled_from("ax")), "boss": draw(some)} for one in ids]
    orders = [
        {"id": one, "buyer": draw(st.sampled_from(ids)), "day": draw(small)}
        for one in (draw(st.lists(st.integers(0, 3), unique=True, max_size=4)) if ids else ())
    ]
    pairs = [(one["id"], one["buyer"]) for one in orders]
    partly = st.one_of(st.tuples(st.none(), small), st.tuples(small, st.none()))
    lines = []
    for _ in range(draw(st.integers(0, 4))):
        order, buyer = draw(st.one_of(st.sampled_from(pairs), partly) if pairs else partly)
        lines.append({"oid": order, "obuyer": buyer, "helper": draw(some), "v": draw(small)})
    return {"buyers": buyers, "orders": orders, "lines": lines}


@given(data=_data(), query=st.sampled_from(_QUERIES))
@settings(max_examples=examples(600), deadline=None)
def test_the_rows_are_the_same(data: dict[str, Any], query: str) -> None:
    relation = relation_of(query)
    found = by_facts(relation, TABLES)
    validate(found.relation)
    assert bag(evaluate(found.relation, data)) == bag(evaluate(relation, data))
