"""IN (subquery) on Spark: it stays where a filter treats false like NULL, and becomes EXISTS everywhere else."""

from __future__ import annotations

import pytest

from catalog.values.types import BOOL, INT4
from executor.spark.printing.in_subqueries import three_valued
from planner.algebra.nodes import Exists, InSubquery, Project, Relation, Scalar
from planner.algebra.walk import walk
from tests.spark.build import call, column, delta, lit, snapshot, where


def member() -> tuple[Relation, Scalar, Scalar]:
    """A relation, x IN (SELECT ...) over its rows, and another condition on them."""
    rows, of = delta("k", "i")
    static, _ = snapshot("names", {"k": INT4})
    return rows, InSubquery(of["k"], static), call("gt", BOOL, of["i"], lit(1, INT4))


def kinds(relation: Relation) -> list[str]:
    return [type(node).__name__ for node in walk(relation) if isinstance(node, InSubquery | Exists)]


@pytest.mark.parametrize("shape", ["in", "not in", "and", "or", "not in and"])
def test_it_stays_in_a_filter(shape: str) -> None:
    rows, test, other = member()
    negated = call("not", BOOL, test)
    predicate = {
        "in": test,
        "not in": negated,
        "and": call("and", BOOL, other, test),
        "or": call("or", BOOL, other, call("and", BOOL, test, other)),
        "not in and": call("and", BOOL, other, negated),
    }[shape]
    assert kinds(three_valued(where(rows, predicate))) == ["InSubquery"]


@pytest.mark.parametrize("shape", ["or not in", "is null", "is false"])
def test_it_becomes_exists_where_null_is_not_false(shape: str) -> None:
    rows, test, other = member()
    predicate = {
        "or not in": call("or", BOOL, other, call("not", BOOL, test)),
        "is null": call("is_null", BOOL, test),
        "is false": call("is_false", BOOL, test),
    }[shape]
    assert kinds(three_valued(where(rows, predicate))) == ["Exists", "Exists"]


def test_it_becomes_exists_as_a_value() -> None:
    rows, test, _ = member()
    assert kinds(three_valued(Project(rows, ((column("found", BOOL), test),)))) == ["Exists", "Exists"]
