"""Aggregations in two phases, rows that are only sorted, and the rest of a plan between two slices of a leaf."""

from __future__ import annotations

from typing import Any

import pytest

from catalog.values.types import FLOAT8, INT8
from planner.algebra.nodes import ROW_ID, Aggregate, ColumnRef, Limit, Relation, Scan, Snapshot
from planner.algebra.validate import validate
from planner.algebra.walk import walk
from planner.incremental.names import stored_name
from planner.rules import optimise
from planner.separation.slicing import driver, gathered, in_slice, in_two_phases, merged, partials, rest
from planner.statements.statement import Query
from tests.planner import golden
from tests.planner.bound import bound, catalog_of
from tests.planner.builders import (
    agg,
    call,
    eq,
    fresh,
    group,
    join,
    limit,
    lit,
    order,
    project,
    scalar,
    table,
    union,
    where,
)
from tests.planner.evaluate import bag, evaluate
from tests.planner.test_separation import QUERIES, _explained
from tests.rig.tpch import create


def rows_of(leaf: Scan | Snapshot) -> float:
    return 1.0


def parts_of(whole: Relation) -> list[Aggregate]:
    known = partials(whole)
    return [node for node in walk(whole) if isinstance(node, Aggregate) and node in known]


def test_every_query_of_tpch_in_two_phases() -> None:
    catalog = catalog_of(create(streams=()))
    divided = set()
    for path in QUERIES:
        statement = bound(path.read_text(), catalog)
        assert isinstance(statement, Query)
        plan = optimise(statement.relation)
        apart = in_two_phases(plan, lambda node: True)
        validate(apart)
        assert apart.columns == plan.columns
        assert in_two_phases(apart, lambda node: True) == apart, "once is enough"
        if parts_of(apart):
            divided.add(path.stem)
    assert divided >= {f"q{number}" for number in (1, 3, 4, 5, 6, 7, 8, 9, 10, 12, 14, 19)}


def test_between_two_slices(rewrite: bool) -> None:
    """The slices so far and the rest of the rows together give the whole result (figure in
    ``planner/separation/slicing``)."""
    t = table("t", "k v", not_null="k")
    whole = group(where(t, call("gt", t.v, 1)), {"k": t.k}, n=agg("count", type_=INT8), total=agg("sum", t.v))
    apart = in_two_phases(whole, lambda node: True)
    (part,) = parts_of(apart)
    found = driver(part, rows_of)
    assert found is not None
    so_far = Snapshot("p1", part.columns, tuple(map(stored_name, part.columns)))
    left = rest(apart, part, (found.leaf, found.leaf, 5), so_far)
    validate(left)
    validate(merged(part, so_far))
    golden.check("separation/between_two_slices", _explained(left), rewrite)
    data = {"t": [{"k": row % 3, "v": row, ROW_ID: row} for row in range(12)]}
    first = evaluate(in_slice(part, found.leaf, 0, 5), data)
    data["p1"] = [dict(zip(so_far.sources, row, strict=True)) for row in first]
    assert bag(evaluate(left, data)) == bag(evaluate(whole, data))
    again = in_two_phases(left, lambda node: True)
    assert again == left, "who goes on with it reads slices of the same aggregation"
    assert [type(driver(item, rows_of)) for item in parts_of(left)] == [type(found)]


def _of_t(shape: str) -> Relation:
    """A query without grouping, over all rows of ``t``."""
    t, u = table("t", "k v"), table("u", "k v")
    chosen = project(where(t, call("gt", t.v, 1)), k=t.k, v=t.v)
    key, value = (ColumnRef(column) for column in chosen.columns)
    match shape:
        case "rows":
            return chosen
        case "in order":
            return project(order(chosen, value, key), k=key)
        case "the first":
            return limit(order(chosen, key, value), 4)
        case "behind others":
            return Limit(order(chosen, key, value), lit(3, INT8), lit(2, INT8))
        case "but the first":
            return Limit(order(chosen, key, value), None, lit(2, INT8))
        case "beside others":
            return order(united := union("union", True, u, chosen), *(ColumnRef(column) for column in united.columns))
        case _:
            raise AssertionError(shape)


@pytest.mark.parametrize("shape", ["rows", "in order", "the first", "behind others", "but the first", "beside others"])
def test_rows_that_are_only_ordered(shape: str) -> None:
    """Gathered slice by slice, and between two slices, they are the rows of the whole query."""
    whole = _of_t(shape)
    data: dict[str, list[dict[str, Any]]] = {
        "t": [{"k": row % 3, "v": row, ROW_ID: row} for row in range(12)],
        "u": [{"k": 7, "v": row} for row in range(2)],
    }
    found = gathered(whole, lambda leaf: 2.0 if isinstance(leaf, Scan) and leaf.name == "t" else 1.0)
    assert found is not None
    plan, part = found
    assert evaluate(plan, data) == evaluate(whole, data)
    chosen = driver(part, rows_of)
    assert chosen is not None
    so_far = Snapshot("p1", part.columns, tuple(map(stored_name, part.columns)))
    left = rest(plan, part, (chosen.leaf, chosen.leaf, 5), so_far)
    for relation in (plan, left, merged(part, so_far)):
        validate(relation)
    first = evaluate(in_slice(part, chosen.leaf, 0, 5), data)
    data["p1"] = [dict(zip(so_far.sources, row, strict=True)) for row in first]
    data["p1"] = [dict(zip(so_far.sources, row, strict=True)) for row in evaluate(merged(part, so_far), data)]
    assert bag(evaluate(left, data)) == bag(evaluate(whole, data))


def test_rows_that_are_not_only_ordered() -> None:
    t = table("t", "k v")
    assert gathered(limit(t, 3), rows_of) is None, "it ends with the third row"
    assert gathered(group(t, {"k": t.k}), rows_of) is None
    assert gathered(project(t, x=call("random", type_=FLOAT8)), rows_of) is None
    assert gathered(Limit(order(t, t.k), scalar(u := table("u", "n")), None), rows_of) is None, u


@pytest.mark.parametrize("function", ["array_agg", "json_agg"])
def test_what_has_no_parts(function: str) -> None:
    t = table("t", "k v")
    whole = group(t, {"k": t.k}, x=agg(function, t.v))
    assert in_two_phases(whole, lambda node: True) is whole


def test_what_is_merged_already() -> None:
    t = table("t", "k v")
    inner = group(t, {"k": t.k, "v": t.v}, n=agg("count", type_=INT8))
    key, _, count = inner.columns
    by = {"k": ColumnRef(key)}
    assert parts_of(group(inner, by, n=agg("sum", ColumnRef(count)))) == [inner]
    assert parts_of(group(inner, by, n=agg("max", ColumnRef(count)))) == [], "the most of parts is not the whole's"
    assert parts_of(group(inner, {"n": ColumnRef(count)}, k=agg("max", ColumnRef(key)))) == []


def test_which_leaves_drive() -> None:
    t, u = table("t", "k v"), table("u", "k w")

    def drivers(relation: Relation, most: str) -> str | None:
        aggregate = Aggregate(relation, (), ((fresh("n"), agg("count", type_=INT8)),))
        found = driver(aggregate, lambda leaf: 2.0 if isinstance(leaf, Scan) and leaf.name == most else 1.0)
        return None if found is None else getattr(found.leaf, "name", None)

    on = eq(t.k, u.k)
    assert drivers(join("inner", t, u, on), "u") == "u"
    for kind in ("left", "semi", "anti"):
        assert drivers(join(kind, t, u, on), "u") == "t"  # type: ignore[arg-type]
    assert drivers(join("right", t, u, on), "t") == "u"
    assert drivers(join("full", t, u, on), "t") is None
    assert drivers(union("union", True, table("a", "k"), table("b", "k")), "a") is None
    assert drivers(group(t, {"k": t.k}), "t") is None, "a group needs all of its rows"
