"""The comparison with PostgreSQL's regression tests: which results it treats as equal, and which differences as
consequences of others."""

from __future__ import annotations

import pytest

from tests.sql.test_scripts import Outcome
from tools.regression_objects import Followed, objects
from tools.regression_order import Queries

IDLE = (0, 0)
BUILT_IN = frozenset(("int4", "count"))


def note(followed: Followed, statement: str, is_equal: bool, states: tuple[int, int] = IDLE) -> None:
    followed.note(objects(statement, BUILT_IN), is_equal=is_equal, is_done=is_equal, states=states)


def explains(followed: Followed, statement: str) -> bool:
    return followed.explains(objects(statement, BUILT_IN))


def test_what_names_a_refused_table_follows_until_it_is_made_again() -> None:
    followed = Followed()
    note(followed, "CREATE TABLE t (a int4)", is_equal=False)
    assert explains(followed, "SELECT count(*) FROM t")
    assert not explains(followed, "SELECT count(*) FROM u")
    note(followed, "CREATE VIEW v AS SELECT a FROM t", is_equal=False)
    assert explains(followed, "SELECT * FROM v")
    note(followed, "DROP TABLE t", is_equal=True)
    assert not explains(followed, "SELECT count(*) FROM t")


def test_a_setting_that_differs_counts_until_it_is_set_alike() -> None:
    followed = Followed()
    note(followed, "SET datestyle TO german", is_equal=False)
    assert explains(followed, "SELECT 1")
    note(followed, "RESET datestyle", is_equal=True)
    assert not explains(followed, "SELECT 1")


def test_a_transaction_that_one_server_gave_up_takes_its_changes_along() -> None:
    followed = Followed()
    note(followed, "BEGIN", is_equal=True, states=(2, 2))
    note(followed, "INSERT INTO t VALUES (1)", is_equal=True, states=(2, 2))
    note(followed, "SELECT 1 / 0", is_equal=False, states=(3, 2))
    assert explains(followed, "SELECT 1")
    note(followed, "COMMIT", is_equal=False)
    assert explains(followed, "SELECT * FROM t")
    assert not explains(followed, "SELECT 1")


@pytest.mark.parametrize(
    ("statement", "is_same"),
    [
        ("SELECT a FROM t", True),
        ("SELECT a FROM t ORDER BY a", False),
        ("SELECT a FROM t ORDER BY 1", False),
        ("SELECT a FROM t ORDER BY b", False),  # the key is not shown, so the order is unknown
        ("VALUES (1), (2)", True),
        ("FETCH ALL IN unknown", True),
    ],
)
def test_order_counts_where_it_is_asked_for(statement: str, is_same: bool) -> None:
    here, there = (Outcome("SELECT 2", (("a", "int4"),), rows) for rows in (((1,), (2,)), ((2,), (1,))))
    assert Queries().rows(statement).are_same(here, there) == is_same


def test_of_some_rows_without_an_order_only_the_number_counts() -> None:
    few, others, more = (Outcome("SELECT 1", (("a", "int4"),), rows) for rows in (((1,),), ((2,),), ((1,), (2,))))
    limited = Queries().rows("SELECT a FROM t LIMIT 1")
    assert limited.are_same(few, others)
    assert not limited.are_same(few, more)
    assert not Queries().rows("SELECT a FROM t").are_same(few, others)
