"""Joins that two relations have in common, and that relations over the rows of a part have the rows that they had."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planner.algebra.nodes import Relation, Scan
from planner.algebra.validate import validate
from planner.algebra.walk import walk
from planner.incremental.dataflow.planning import joined
from planner.incremental.sharing.join_parts import FIRST_PART, JoinPart, common, parts_of, reading, source_of
from tests.planner.bound import catalog_of, query_of
from tests.planner.evaluate import bag, evaluate
from tests.rig.sampling import examples

CATALOG = catalog_of(
    (
        "CREATE TABLE a (k int PRIMARY KEY, v int, w int NOT NULL)",
        "CREATE TABLE b (k int, a int, x int)",
        "CREATE TABLE c (b int, y int)",
        "CREATE TABLE d (k int, z int)",
    )
)
QUERIES = (
    "SELECT v, sum(x) FROM a JOIN b ON b.a = a.k GROUP BY v",
    "SELECT x, count(*) FROM b JOIN a ON a.k = b.a AND w > 1 GROUP BY x",
    "SELECT x, y FROM a JOIN b ON a.k = b.a JOIN c ON c.b = b.k WHERE v > x OR y = 1",
    "SELECT count(*) FROM c, b, a WHERE c.b = b.k AND b.a = a.k",
    "SELECT v, z FROM a JOIN b ON a.k = b.a JOIN d ON d.k = v AND z > w",
    "SELECT sum(x) FROM a JOIN b ON a.k = b.a LEFT JOIN d ON d.k = x AND z > 1",
    "SELECT w FROM a JOIN b ON a.k = b.a WHERE NOT EXISTS (SELECT FROM c WHERE c.b = b.k)",
    "SELECT v, max(w) FROM a JOIN b ON a.k IS NOT DISTINCT FROM b.a JOIN c ON c.b = b.k GROUP BY v",
    "SELECT count(*) FROM b JOIN a ON a.k = b.a",
    "SELECT v FROM a JOIN b ON a.k = b.a UNION SELECT y FROM b JOIN c ON c.b = b.k",
)


def relation_of(query: str) -> Relation:
    return joined(query_of(query, CATALOG).relation)


def parts(one: str, other: str) -> list[JoinPart]:
    """What two queries have in common."""
    pairs = ((left, right) for left in parts_of(relation_of(one)) for right in parts_of(relation_of(other)))
    return [part for pair in pairs for part in common(*pair)]


def shown(part: JoinPart) -> list[str]:
    return [f"{part.tables[oid]}.{source}" for oid, source in part.shown]


@pytest.mark.parametrize(
    ("one", "other", "tables", "predicates", "columns"),
    [
        (0, 1, {"a", "b"}, 1, ["a.v", "a.w", "b.x"]),  # a filter of one stays above, with its column
        (1, 1, {"a", "b"}, 2, ["b.x"]),
        (0, 2, {"a", "b"}, 1, ["a.v", "b.k", "b.x"]),  # another table is joined above
        (2, 3, {"a", "b", "c"}, 2, ["a.v", "b.x", "c.y"]),
        (3, 3, {"a", "b", "c"}, 2, ["a.k"]),  # rows are counted
        (4, 6, {"a", "b"}, 1, ["a.k", "a.v", "a.w", "b.a", "b.k"]),  # an anti join has all columns of its left side
    ],
)
def test_what_two_queries_have_in_common(
    one: int, other: int, tables: set[str], predicates: int, columns: list[str]
) -> None:
    (part,) = parts(QUERIES[one], QUERIES[other])
    assert set(part.tables.values()) == tables
    assert len(part.predicates) == predicates
    assert shown(part) == columns
    validate(part.relation())


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (QUERIES[0], QUERIES[7]),  # the joins ask for other things
        (QUERIES[0], "SELECT v FROM a JOIN b ON a.k = b.x"),
        (QUERIES[0], "SELECT a.v FROM a JOIN b ON a.k = b.a JOIN a AS o ON o.k = b.x"),  # a table that occurs twice
        ("SELECT v FROM a, b", "SELECT w FROM a, b"),  # nothing connects them
        (QUERIES[0], "SELECT v FROM a LEFT JOIN b ON a.k = b.a"),
    ],
)
def test_what_is_not_in_common(one: str, other: str) -> None:
    assert parts(one, other) == []


def test_a_predicate_that_may_raise_is_asked_above() -> None:
    """So that it sees no row that it did not see before."""
    query = "SELECT v FROM a JOIN b ON a.k = b.a WHERE v / x > 1"
    (part,) = parts(query, query)
    assert len(part.predicates) == 1 and shown(part) == ["a.v", "b.x"]


_value = st.one_of(st.none(), st.integers(0, 2))
_COLUMNS = {"a": "kvw", "b": "kax", "c": "by", "d": "kz"}
_rows = {
    table: st.lists(st.fixed_dictionaries(dict.fromkeys(columns, _value)), max_size=4)
    for table, columns in _COLUMNS.items()
}


@settings(max_examples=examples(150), deadline=None)
@given(st.sampled_from(QUERIES), st.sampled_from(QUERIES), st.fixed_dictionaries(_rows))
def test_a_relation_over_a_part_has_the_same_rows(one: str, other: str, data: dict[str, list[dict[str, Any]]]) -> None:
    for part in parts(one, other):
        rows = [dict(zip(map(source_of, part.shown), row, strict=True)) for row in evaluate(part.relation(), data)]
        for query in (one, other):
            before = relation_of(query)
            after = reading(before, part, FIRST_PART)
            validate(after)
            assert any(isinstance(node, Scan) and node.oid == FIRST_PART for node in walk(after))
            assert bag(evaluate(after, {**data, part.title: rows})) == bag(evaluate(before, data))
