"""Plan sharing: which literals leave a text, and that a remembered skeleton says the same as PostgreSQL's scanner."""

from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from catalog.values.types import INT4, INT8, NUMERIC, UNKNOWN, numeric
from planner.algebra.nodes import Literal
from planner.parse.literals import parameterise


def key(text: str) -> tuple[str, list[tuple[object, object]]]:
    found, literals = parameterise(text)
    return found, [(literal.value, literal.type) for literal in literals]


def test_cells_of_an_insert_share_a_plan() -> None:
    assert key("insert into t values (1,'a''b'),(-2.50, null), (3000000000, default)") == (
        "insert into t values ($1,$2),($3, null), ($4, default)",
        [(1, INT4), ("a'b", UNKNOWN), (Decimal("-2.50"), NUMERIC), (3_000_000_000, INT8)],
    )


def test_compared_literals_and_limits_share_a_plan() -> None:
    assert key("select a from t where x = 5 and y <= 'b' and n > 1.50 order by 1 limit 3 offset 4;") == (
        "select a from t where x = $1 and y <= $2 and n > $3 order by 1 limit $4 offset $5;",
        [(5, INT4), ("b", UNKNOWN), (Decimal("1.50"), numeric(3, 2)), (3, INT4), (4, INT4)],
    )


def test_an_updates_integers_share_a_plan() -> None:
    assert key("update t set a = a + -5, b = 'x' where c = 7") == (
        "update t set a = a + -$1, b = $2 where c = $3",
        [(5, INT4), ("x", UNKNOWN), (7, INT4)],
    )


@pytest.mark.parametrize(
    "text",
    [
        "select a from t order by 1",
        "select a, 'x' from t group by 1, 2",
        "select date '2020-01-01' + interval '1 day'",
        "select x::numeric(10,2), cast('5' as int)",
        "select a from t where x = '5'::int",
        "select a from t where x = $1 and y = 5",
        "select 1; select a from t where x = 5",
        "select a from t where x = E'a' or y = 5 + 1",
        "create table t (a int default 5)",
        "select extract(year from d), round(n, 2), substring(t from 2)",
        "select a from t order by -1",
        "not sql at all 'x",
    ],
)
def test_literals_that_matter_stay(text: str) -> None:
    assert parameterise(text) == (text, ())


@given(
    st.lists(st.tuples(st.integers(-(2**40), 2**40), st.text(st.characters(exclude_characters="\0$", codec="utf-8"))))
)
def test_a_key_with_its_literals_put_back_is_the_text(rows: list[tuple[int, str]]) -> None:
    text = "insert into t values " + ", ".join(
        f"({number}, '{word.replace(chr(39), chr(39) * 2)}')" for number, word in [(0, ""), *rows]
    )
    found, literals = parameterise(text)
    for index in range(len(literals), 0, -1):
        found = found.replace(f"${index}", _written(literals[index - 1]))
    assert found == text


def _written(literal: Literal) -> str:
    return "'" + literal.value.replace("'", "''") + "'" if isinstance(literal.value, str) else str(literal.value)
