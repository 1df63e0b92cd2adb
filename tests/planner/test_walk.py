"""The walker: the children of the most frequent nodes agree with their fields, and trees know what they contain."""

from __future__ import annotations

import pytest

from catalog.values.types import BOOL, INT4, INT8
from planner.algebra import walk
from planner.algebra.nodes import (
    Aggregate,
    AggregateCall,
    Call,
    Case,
    Cast,
    Column,
    ColumnRef,
    Exists,
    Filter,
    Join,
    Literal,
    Parameter,
    Project,
    Relation,
    Scalar,
    ScalarSubquery,
    Scan,
    SetOperation,
    Sort,
    SortKey,
)
from planner.algebra.walk import Node, calls_of, contains, descend_relations, kinds_of, transform, transform_relations

A, B = Column(1, "a", INT4), Column(2, "b", INT4)
TABLE = Scan(16384, "t", "table", (A, B), ("a", "b"))
ONE = Literal(1, INT4)
SUM = Call("add", (ColumnRef(A), ONE), INT4)
KEPT = Filter(TABLE, Call("gt", (SUM, Parameter(0, INT4)), BOOL))
C, D = Column(3, "c", INT4), Column(4, "d", INT8)
OTHER = Scan(16386, "o", "table", (C, D), ("c", "d"))
ISNT = Call("is_null", (ColumnRef(B),), BOOL)
TOTAL = AggregateCall("sum", (SUM,), INT8, filter=ISNT, order_by=(SortKey(ColumnRef(A)),))
NODES: tuple[Node, ...] = (
    ONE,
    ColumnRef(A),
    Parameter(0, INT4),
    SUM,
    Cast(SUM, INT4),
    KEPT,
    Project(KEPT, ((B, SUM),)),
    TABLE,
    Scan(16385, "v", "changes", (A,), ("a",), since=ONE),
    Case(((ISNT, SUM), (ISNT, ONE)), ColumnRef(A), INT4),
    ScalarSubquery(KEPT),
    Exists(KEPT),
    SortKey(SUM),
    TOTAL,
    AggregateCall("count", (), INT8),
    Join("inner", TABLE, OTHER, ISNT),
    Join("left", TABLE, OTHER, None),
    Aggregate(TABLE, ((C, SUM),), ((D, TOTAL),)),
    Sort(KEPT, (SortKey(SUM), SortKey(ColumnRef(B)))),
    SetOperation("union", True, TABLE, OTHER, (C, D)),
)


@pytest.mark.parametrize("node", NODES, ids=lambda node: type(node).__name__)
def test_children_are_what_the_fields_hold(node: Node) -> None:
    assert walk.children(node) == walk._found(node)


def test_every_class_with_a_way_of_its_own_is_tried() -> None:
    assert {type(node) for node in NODES} >= set(walk._CHILDREN)


def test_a_tree_knows_what_it_contains() -> None:
    asked = Filter(TABLE, Exists(KEPT))
    assert (
        contains(asked, kinds_of(Exists)) and contains(asked, kinds_of(Parameter)) and contains(asked, calls_of("gt"))
    )
    assert not contains(KEPT, kinds_of(Exists)) and not contains(SUM, calls_of("gt"))
    assert not contains(asked, kinds_of(Project, Cast))


def test_a_change_is_asked_where_its_kinds_are() -> None:
    seen: list[object] = []

    def change(node: Scalar | Relation) -> Scalar | Relation:
        seen.append(node)
        return ONE if isinstance(node, Parameter) else node

    changed = transform_relations(Project(KEPT, ((B, SUM),)), change, kinds_of(Parameter))
    assert TABLE not in seen and SUM not in seen
    assert changed == Project(Filter(TABLE, Call("gt", (SUM, ONE), BOOL)), ((B, SUM),))
    assert not contains(changed, kinds_of(Parameter))


def test_parents_first_reaches_what_a_change_brings() -> None:
    def change(node: Relation) -> Relation:
        return KEPT.input if node is KEPT else node

    whole = Project(KEPT, ((B, SUM),))
    assert descend_relations(whole, change, kinds_of(Filter)) == Project(TABLE, ((B, SUM),))
    assert transform(whole, lambda node: node) is whole
