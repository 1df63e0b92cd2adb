"""Plan sharing: which literals are taken out of a text, and that a remembered skeleton agrees with PostgreSQL's
scanner."""

from __future__ import annotations

import random
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from catalog.values.types import INT4, INT8, NUMERIC, UNKNOWN, numeric
from planner.algebra.nodes import Literal
from planner.parse.literals import Parameteriser, parameterise


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


_INSERT = "insert into t values (1, -2, 'a'), (30, -4.5, null)"


def learned(text: str) -> Parameteriser:
    """A parameteriser that has seen a text; asserts that it still gives the same result."""
    remembering = Parameteriser()
    assert remembering(text) == parameterise(text)
    assert remembering(text) == parameterise(text)
    return remembering


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (_INSERT, "insert into t values (77, -3000000000, 'it''s; -- \\ \"x\" /* $1'), (0, -0.001, null)"),
        (_INSERT, "insert into t values (12345678901234567890, -2, 'a'), (1, -1.0, null)"),
        ("select a from t limit 5", "select a from t limit 99999999999"),
        ("select a from t limit 0000000005", "select a from t limit 9999999999"),
        ("select a from t limit 5", "select a from t limit 2147483648"),
        ("select a from t where x = 5", "select a from t where x = 2147483647"),
        ("select a from t where x = 5", "select a from t where x = 5.0"),
        ("select a from t where x = 5", "select a from t where x = '5'"),
        ("select a from t order by 1 limit 5", "select a from t order by 2 limit 5"),
        ("insert into t values ('a'\n'b')", "insert into t values ('c'\n'd')"),
        ("insert into t values ('a' 'b')", "insert into t values ('c' 'd')"),
        ("insert into t values (E'a\\'b', 'c')", "insert into t values (E'a', 'c')"),
        ("insert into t values (U&'a', 'c')", "insert into t values (U&'b', 'd')"),
        ("insert into \"t'\" values ('a')", "insert into \"t'\" values ('b')"),
        ("insert into t values ($$'$$, 'a', $$'$$)", "insert into t values ($$'$$, 'b', $$'$$)"),
        ("insert into t values ('a') -- it's", "insert into t values ('b') -- it's"),
        ("insert into t /* ' */ values ('a') /* ' */", "insert into t /* ' */ values ('b') /* ' */"),
        ("insert into é5 values (5)", "insert into é6 values (5)"),
        ("insert into t values (é5)", "insert into t values (é6)"),
        ("insert into t values (.5, 1., 1e5, 1.5)", "insert into t values (.5, 1., 1e5, 2.5)"),
        ("update t set a = a + -5, b = 'x' where c = 7", "update t set a = a + -6, b = 'y''' where c = 8"),
        ("select date '2020-01-01' from t where a = 1", "select date '2020-01-02' from t where a = 1"),
    ],
)
def test_a_text_of_a_known_skeleton_gets_its_own_key(first: str, second: str) -> None:
    remembering = learned(first)
    assert remembering(second) == parameterise(second)


_WORDS = (
    r"""'a' 'b''c' '' '\' 5 77 1.5 3000000000 99999999999999999999 .5 1e3 - -- /* */ " $1 $$ ' E'x' x é , ( ) = ;"""
)
_TOKENS = st.sampled_from([*_WORDS.split(), " ", "- ", "\n", "\0", "limit", "values"])
_HEADS = st.sampled_from(["insert into t values (", "select a from t where b =", "update t set a = a +", ""])


@given(_HEADS, st.lists(_TOKENS, max_size=12), st.integers(0, 1 << 30))
def test_no_text_leads_another_astray(head: str, tokens: list[str], seed: int) -> None:
    """Texts with the same words and different literals, one after the other."""
    source, remembering = random.Random(seed), Parameteriser()
    literals = ["'a'", "'b''c'", "''", "5", "-7", "1.5", "3000000000", "99999999999999999999"]
    for _ in range(4):
        text = head + " ".join(source.choice(literals) if token in literals else token for token in tokens)
        assert remembering(text) == parameterise(text)
        text = head + "".join(source.choice(literals) if token in literals else token for token in tokens)
        assert remembering(text) == parameterise(text)


def test_memory_is_bounded() -> None:
    remembering = Parameteriser()
    for number in range(5000):
        remembering(f"select a from t{number} where b = 5")
    assert len(remembering._known) <= 4096
