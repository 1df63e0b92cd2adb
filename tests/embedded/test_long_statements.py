"""The planning of long statements takes linear time: function calls are counted for a length and for twice that
length."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import pytest

from catalog.values.errors import SqlError
from executor.embedded.engine import EmbeddedEngine
from executor.embedded.printing.dialect import DuckPrinter
from planner.algebra.nodes import Call, Filter, Scan
from planner.algebra.walk import RELATION_KINDS, contains, transform_relations
from planner.algebra.walk import calls_of as calls_of_functions
from planner.bind.state import collected_calls
from planner.rules import optimise
from tests.planner.binding import Database, standard

LENGTH = 60
#: The limit of the ratio of calls at twice the length; a quadratic part would have a ratio of four.
MOST = 2.2


def listed(item: str, joint: str = ", ", before: str = "select ", after: str = " from a") -> Callable[[int], str]:
    """Statements with a number of items; {} is the item's number."""
    return lambda count: before + joint.join(item.replace("{}", str(number)) for number in range(count)) + after


FROM_A = "select 1 from a where "
SHAPES = {
    "and": listed("i <> {}", " and ", FROM_A, ""),
    "and of equal parts": listed("i = 1", " and ", FROM_A, ""),
    "or": listed("i = {}", " or ", FROM_A, ""),
    "or of and": listed("(i = {} and t = 'a{}')", " or ", FROM_A, ""),
    "in": listed("{}", before=FROM_A + "i in (", after=")"),
    "in, of rows": listed("({}, 'a{}')", before=FROM_A + "(i, t) in (", after=")"),
    "subqueries": listed("exists (select from b where b.i = a.i + {})", " and ", FROM_A, ""),
    "union all": listed("select i + {} from a", " union all ", "", ""),
    "values": listed("({}, 'a{}')", before="values ", after=""),
    "values that are computed": listed("({} + 1, upper('a{}'))", before="values ", after=""),
    "operators": listed("i", " + "),
    "case": listed("when {} then {}", " ", "select case i ", " end from a"),
    "coalesce": listed("i + {}", before="select coalesce(", after=") from a"),
    "array": listed("i + {}", before="select array[", after="] from a"),
    "select list": listed("i + {}"),
    "group by": listed("i + {}", before="select count(*) from a group by ", after=""),
    "order by": listed("i + {}", before="select from a order by ", after=""),
}


def calls_of(action: Callable[[], Any]) -> int:
    """The number of function calls of an action, including Python's own."""
    count = 0

    def see(_: object, event: str, __: object) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(see)
    try:
        action()
    finally:
        sys.setprofile(before)
    return count


@pytest.fixture(scope="module")
def database() -> Database:
    return standard()


@pytest.mark.parametrize("shape", SHAPES)
def test_the_work_grows_as_the_statement_does(database: Database, shape: str) -> None:
    def plan(count: int) -> None:
        DuckPrinter().print_relation(optimise(database.query(SHAPES[shape](count)).relation))

    plan(LENGTH)  # computed once
    once, twice = (calls_of(lambda count=count: plan(count)) for count in (LENGTH, 2 * LENGTH))
    assert twice < MOST * once


def test_a_change_of_relations_is_not_asked_about_plain_scalars(database: Database) -> None:
    relation = optimise(database.query(SHAPES["and"](LENGTH)).relation)
    seen: list[Any] = []
    assert transform_relations(relation, lambda node: seen.append(node) or node) is relation
    assert {type(node) for node in seen}.isdisjoint((Call,))
    predicate = next(node.predicate for node in seen if isinstance(node, Filter))
    assert not contains(predicate, RELATION_KINDS)
    assert contains(predicate, calls_of_functions("and"))
    assert any(isinstance(node, Scan) for node in seen)


def test_relations_within_scalars_are_reached(database: Database) -> None:
    relation = database.query("select 1 from a where i > 1 and i in (select x from b where y is null)").relation
    seen: list[Any] = []
    transform_relations(relation, lambda node: seen.append(node) or node)
    assert [node.name for node in seen if isinstance(node, Scan)] == ["a", "b"]


@pytest.mark.parametrize(
    ("query", "state"),
    [
        ("select " + ", ".join(["1"] * 1665), "54011"),
        ("select 1 from a order by " + ", ".join(f"i + {n}" for n in range(1664)), "54011"),
        ("select coalesce(" + ", ".join(f"sum(i + {n})" for n in range(21)) + ") from a", "54001"),
        ("select coalesce(" + ", ".join(f"sum(i + {n}) over ()" for n in range(21)) + ") from a", "54001"),
    ],
)
def test_what_would_take_long_is_refused(
    database: Database, monkeypatch: pytest.MonkeyPatch, query: str, state: str
) -> None:
    monkeypatch.setattr(collected_calls, "_CALLS", 20)
    with pytest.raises(SqlError) as caught:
        database.query(query)
    assert caught.value.sqlstate == state


LONG_CONDITIONS = (
    listed("i <> {}", " and ", FROM_A, ""),
    listed("(i = {} and t = '{}')", " or ", FROM_A, ""),
    listed("i <> {}", " and ", FROM_A + "exists (select from b where b.x = a.i) and ", ""),
)


@pytest.mark.parametrize("shape", LONG_CONDITIONS)
def test_very_many_conditions_are_hidden_from_the_engine(database: Database, shape: Callable[[int], str]) -> None:
    few, many = (DuckPrinter().print_relation(optimise(database.query(shape(count)).relation)) for count in (199, 201))
    assert "CASE" not in few
    assert "CASE" in many
    assert many.count("EXISTS") == few.count("EXISTS")


def test_hidden_conditions_choose_the_same_rows(database: Database) -> None:
    source = "select x from (values (1), (2), (null), (225)) v (x) where "
    engine = EmbeddedEngine(threads=1)
    try:
        for condition, rows in (
            (" and ".join(f"x <> {n}" for n in range(2, 220)), [1, 225]),
            (" or ".join(f"(x = {n} and x < {n + 1})" for n in range(2, 227)), [2, 225]),
            ("(" + " or ".join(f"(x = {n} and x < {n + 1})" for n in range(2, 227)) + ") is null", [None]),
        ):
            found = engine.query(optimise(database.query(source + condition + " order by x").relation), {})
            assert found.column(0).to_pylist() == rows
    finally:
        engine.close()
