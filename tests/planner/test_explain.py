"""EXPLAIN of the thesis' queries, from SQL text through the binder, as golden files; and the names of single
operators."""

from __future__ import annotations

import datetime as dt
import json
from decimal import Decimal

import pytest

from catalog.catalog import Catalog
from catalog.values.types import (
    BOOL,
    BYTEA,
    DATE,
    FLOAT8,
    INT4,
    INT8,
    INTERVAL,
    TEXT,
    TIMESTAMP,
    SqlType,
    numeric,
)
from planner.algebra.nodes import AggregateCall, Call, Case, Cast, Literal, Parameter, Relation, Scalar, SortKey
from planner.explain.plans import explain_relation, relation_json
from planner.explain.programs import Facts, Known, explain_program, program_json
from planner.explain.scalars import deparse
from planner.incremental.plan import Planned, plan
from planner.incremental.programs.documents import decode_program, encode_program
from tests.planner import golden
from tests.planner.bound import catalog_of, query_of
from tests.planner.builders import (
    agg,
    both,
    call,
    eq,
    exists,
    group,
    join,
    lit,
    member,
    negate,
    order,
    project,
    ref,
    scalar,
    table,
    union,
    values,
    where,
)
from tests.rig.thesis import EXAMPLES
from tests.rig.tpch import QUERIES, WIDE, create


def _catalog(name: str) -> Catalog:
    if name not in EXAMPLES:
        return catalog_of(create())
    example = EXAMPLES[name]
    tables = (f"CREATE TABLE {key} ({columns})" for key, (columns, _) in example.tables.items())
    streams = (f"CREATE FOREIGN TABLE {key} ({columns}) SERVER stream" for key, columns in example.streams.items())
    return catalog_of((*tables, *streams))


def _planned(name: str) -> Planned:
    frozen = name.endswith("_frozen")
    name = name.removesuffix("_frozen")
    text = EXAMPLES[name].query if name in EXAMPLES else {**QUERIES, **WIDE}[name]
    return plan(query_of(text, _catalog(name)), tables="frozen" if frozen else None)


@pytest.mark.parametrize("name", [*QUERIES, "q3_wide", "q3_frozen", *EXAMPLES])
def test_programs_of_the_thesis(name: str, rewrite: bool) -> None:
    planned = _planned(name)
    golden.check(f"explain/{name}", [*explain_program(planned.program), "", *planned.notices], rewrite)
    assert decode_program(json.loads(json.dumps(encode_program(planned.program)))) == planned.program


def test_query_15_keeps_one_state() -> None:
    """Its WITH query is read twice."""
    assert len(_planned("q15").program.states) == 1


def test_point_key_of_a_grouping() -> None:
    assert [column.name for column in _planned("by_order").program.point_key] == ["l_orderkey"]


def test_facts_of_the_executor_are_shown() -> None:
    program = _planned("q6").program
    facts = Known({program.paths[0].id: Facts("every 100,000 rows", "spark")})
    lines = explain_program(program, facts)
    assert "  When: every 100,000 rows" in lines
    assert "  Where: spark" in lines
    assert program_json(program, facts)["Stream Pipelines"][0]["Where"] == "spark"


def test_programs_as_json() -> None:
    data = json.loads(json.dumps(program_json(_planned("q3_frozen").program)))
    assert [item["Name"] for item in data["Static Pipelines"]] == ["static_1"]
    (path,) = data["Stream Pipelines"]
    (statement,) = path["Statements"]
    assert statement["Plan"]["Node Type"] == "Group"
    assert statement["Plan"]["Plans"][0]["Node Type"] == "Join"
    assert data["Upper Pipeline"]["Point Key"] == ["l_orderkey", "o_orderdate", "o_shippriority"]


R, S = table("r", "a b"), table("s", "a c")

RELATIONS: dict[str, tuple[Relation, list[str]]] = {
    "join": (
        join("left", R, where(S, eq(S.c, 1)), eq(R.a, S.a)),
        [
            "Left Join",
            "  Join Cond: (r.a = s.a)",
            "  ->  Scan on r (a, b)",
            "  ->  Scan on s (a, c)",
            "        Filter: (c = 1)",
        ],
    ),
    "group": (
        where(g := group(R, {"k": R.a}, n=agg("count")), call("gt", ref(g, "n"), lit(2, INT8))),
        [
            "Group",
            "  Group Key: a AS k",
            "  Aggregates: count(*) AS n",
            "  Filter: (n > 2)",
            "  ->  Scan on r (a, b)",
        ],
    ),
    "subquery": (
        where(R, exists(S)),
        ["Scan on r (a, b)", "  Filter: EXISTS(SubPlan)", "  ->  Scan on s (a, c)"],
    ),
    "union": (
        union("union", True, project(R, x=R.b), values("y", (1,), (2,))),
        [
            "Union All",
            "  ->  Project",
            "        Output: b AS x",
            "        ->  Scan on r (a, b)",
            "  ->  Values (2 rows)",
        ],
    ),
    "sort": (order(S, S.c), ["Sort", "  Sort Key: c", "  ->  Scan on s (a, c)"]),
}


@pytest.mark.parametrize("name", RELATIONS)
def test_relations(name: str) -> None:
    relation, expected = RELATIONS[name]
    assert explain_relation(relation) == expected


def test_relations_as_json() -> None:
    relation, _ = RELATIONS["join"]
    assert relation_json(relation) == {
        "Node Type": "Left Join",
        "Join Cond": "(r.a = s.a)",
        "Plans": [{"Node Type": "Scan on r (a, b)"}, {"Node Type": "Scan on s (a, c)", "Filter": "(c = 1)"}],
    }


SCALARS: dict[str, Scalar | AggregateCall | SortKey] = {
    "((a + 1) * b)": call("mul", call("add", R.a, 1), R.b),
    "((a = 1) AND (NOT (b IS NULL)))": both(eq(R.a, 1), negate(call("is_null", R.b))),
    "(a = ANY (1, 2))": Call("in", (R.a, lit(1), lit(2)), BOOL),
    "(a = ANY (SubPlan))": member(R.a, project(S, x=S.a)),
    "((SubPlan) + 1)": call("add", scalar(group(S, m=agg("max", S.c))), 1),
    "CASE WHEN (a = 1) THEN b ELSE NULL END": Case(((eq(R.a, 1), R.b),), Literal(None, INT4), INT4),
    "a::numeric(10,2)": Cast(R.a, numeric(10, 2)),
    "$1": Parameter(0, INT4),
    "'it''s'": lit("it's", TEXT),
    "'2024-02-29'::date": lit(dt.date(2024, 2, 29), DATE),
    "'2024-02-29 12:00:00'::timestamp without time zone": lit(dt.datetime(2024, 2, 29, 12), TIMESTAMP),
    "'1 mons 2 days 1.5 secs'::interval": lit((1, 2, 1_500_000), INTERVAL),
    "'\\x00ff'::bytea": lit(b"\x00\xff", BYTEA),
    "1.50": lit(Decimal("1.50")),
    "0.1": lit(0.1, FLOAT8),
    "(a ~~ 'x%')": Call("like", (R.a, lit("x%", TEXT)), BOOL),
    "coalesce(a, 0)": call("coalesce", R.a, 0),
    "count(*)": agg("count"),
    "sum(DISTINCT a)": agg("sum", R.a, distinct=True),
    "array_agg(a ORDER BY b DESC, a NULLS FIRST) FILTER (WHERE (a = 1))": agg(
        "array_agg",
        R.a,
        type_=SqlType("array", element=INT4),
        filter=eq(R.a, 1),
        order_by=(SortKey(R.b, True, True), SortKey(R.a, False, True)),
    ),
}


@pytest.mark.parametrize("expected", SCALARS)
def test_expressions(expected: str) -> None:
    assert deparse(SCALARS[expected]) == expected


def test_deep_expressions_do_not_overflow_the_stack() -> None:
    value: Scalar = R.a
    for _ in range(3000):
        value = call("add", value, 1)
    assert deparse(value).count("+") == 3000
