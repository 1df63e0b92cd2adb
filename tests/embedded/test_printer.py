"""The shape of the printed SQL: one SELECT where the order of clauses allows, subqueries elsewhere."""

from __future__ import annotations

import pytest

from catalog.values.errors import SqlError
from catalog.values.types import BOOL, INT4, TEXT
from executor.embedded.printing.dialect import DuckPrinter
from planner.algebra.nodes import (
    Aggregate,
    AggregateCall,
    Call,
    Column,
    ColumnRef,
    Filter,
    Join,
    Limit,
    Literal,
    Project,
    Relation,
    Scalar,
    Scan,
    SetOperation,
    Sort,
    SortKey,
)

A, B = Column(1, "a", INT4), Column(2, "b", INT4)
C = Column(3, "c", INT4)
LEFT = Scan(5, "t", "view", (A, B), ("a", 'b"'))
RIGHT = Scan(6, "u", "view", (C,), ("c",))
LEAF = '(SELECT "v5"."a" AS "c1", "v5"."b""" AS "c2" FROM "v5") AS "q1"'


def printed(relation: Relation) -> str:
    return DuckPrinter().print_relation(relation)


def less(column: Column, value: int) -> Scalar:
    return Call("lt", (ColumnRef(column), Literal(value, INT4)), BOOL)


def test_filters_and_a_projection_are_one_select() -> None:
    relation = Project(Filter(Filter(LEFT, less(A, 3)), less(B, 4)), ((Column(9, "x", INT4), ColumnRef(A)),))
    assert printed(relation) == f'SELECT "c1" AS "c9" FROM {LEAF} WHERE "c1" < 3 AND "c2" < 4'


def test_order_is_explicit_and_stays_above_a_limit() -> None:
    first = Limit(Sort(LEFT, (SortKey(ColumnRef(A), True, False),)), Literal(2, INT4), None)
    assert printed(Project(first, ((Column(9, "x", INT4), ColumnRef(B)),))) == (
        f'SELECT "c2" AS "c9" FROM (SELECT "c1", "c2" FROM {LEAF} ORDER BY "c1" DESC NULLS LAST LIMIT 2) AS "q2" '
        'ORDER BY "c1" DESC NULLS LAST'
    )


def test_joins_lean_left_in_one_from() -> None:
    on = Call("is_not_distinct", (ColumnRef(A), ColumnRef(C)), BOOL)
    assert printed(Join("anti", LEFT, RIGHT, on)) == (
        f'SELECT "c1", "c2" FROM {LEAF} ANTI JOIN (SELECT "v6"."c" AS "c3" FROM "v6") AS "q2" '
        'ON "c1" IS NOT DISTINCT FROM "c3"'
    )


def test_having_is_a_filter_over_the_groups() -> None:
    key, count = Column(8, "k", INT4), Column(9, "n", INT4)
    grouped = Aggregate(LEFT, ((key, ColumnRef(A)),), ((count, AggregateCall("count", (), INT4)),))
    assert printed(Filter(grouped, less(count, 5))) == (
        f'SELECT "c8", "c9" FROM (SELECT "c1" AS "c8", COUNT(*) AS "c9" FROM {LEAF} GROUP BY 1) AS "q2" WHERE "c9" < 5'
    )


def test_unions_of_one_kind_are_one_union() -> None:
    one = Project(LEFT, ((Column(7, "x", INT4), ColumnRef(A)),))
    both = SetOperation("union", True, one, RIGHT, (Column(8, "x", INT4),))
    three = SetOperation("union", True, both, RIGHT, (Column(9, "x", INT4),))
    assert printed(three).count(" UNION ALL ") == 2
    assert printed(three).count('AS "c9"') == 3


def test_operands_keep_their_grouping() -> None:
    inner = Call("sub", (ColumnRef(A), ColumnRef(B)), INT4)
    outer = Call("sub", (ColumnRef(A), inner), INT4)
    assert '"c1" - ("c1" - "c2") AS "c9"' in printed(Project(LEFT, ((Column(9, "x", INT4), outer),)))


@pytest.mark.parametrize("value", ["'; DROP TABLE t --", "\\' OR 1=1", 'a"b', "$1 ? :x", "line\nbreak", "--"])
def test_text_stays_a_literal(value: str) -> None:
    relation = Filter(LEFT, Call("eq", (Literal("x", TEXT), Literal(value, TEXT)), BOOL))
    assert "'" + value.replace("'", "''") + "'" in printed(relation)


def test_a_function_outside_the_list_is_refused() -> None:
    with pytest.raises(SqlError, match="0A000: function read_csv is not supported"):
        printed(Filter(LEFT, Call("read_csv", (Literal("/etc/passwd", TEXT),), BOOL)))


def test_joins_apart_are_kept_before_anything_reads_them() -> None:
    on = Call("is_not_distinct", (ColumnRef(A), ColumnRef(C)), BOOL)
    assert DuckPrinter(apart=True).print_relation(Join("inner", LEFT, RIGHT, on)) == (
        f'SELECT "c1", "c2", "c3" FROM (WITH "q3" AS MATERIALIZED (SELECT "c1", "c2", "c3" FROM {LEAF} '
        'INNER JOIN (SELECT "v6"."c" AS "c3" FROM "v6") AS "q2" ON "c1" IS NOT DISTINCT FROM "c3") '
        'SELECT "c1", "c2", "c3" FROM "q3") AS "q4"'
    )
