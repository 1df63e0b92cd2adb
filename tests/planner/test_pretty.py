"""Unnecessary parentheses are removed, and the text keeps its meaning."""

from __future__ import annotations

import pytest
from pglast import parse_sql, prettify

from catalog.system.pretty_expressions import pretty


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("((a > 0) AND ((b <> 'q'::text) OR (c < (5)::numeric)))", "a > 0 AND (b <> 'q'::text OR c < 5::numeric)"),
        ("(((a + (1 * 2)) > 3) AND (((a + 1) * 2) > 3))", "(a + 1 * 2) > 3 AND ((a + 1) * 2) > 3"),
        ("(((a - (1 - 2)) > 0) OR (((a - 1) - 2) > 0))", "(a - (1 - 2)) > 0 OR (a - 1 - 2) > 0"),
        ("(NOT ((a > 1) AND e))", "NOT (a > 1 AND e)"),
        ("((a IS NULL) OR ((a + 1) IS NOT NULL))", "a IS NULL OR (a + 1) IS NOT NULL"),
        ("((a = ANY (ARRAY[1, 2])) AND (length((b || 'x')) > 3))", "(a = ANY (ARRAY[1, 2])) AND length(b || 'x') > 3"),
        ("(NOT (a IS DISTINCT FROM 3))", "NOT a IS DISTINCT FROM 3"),
        ("(('(a)'::text = \"(b)\") AND e)", "'(a)'::text = \"(b)\" AND e"),
        # Texts as users write them, which are not all simplified.
        ("((p).x > 0 AND ((p).x + 1) * 2 > 3)", "(p).x > 0 AND ((p).x + 1) * 2 > 3"),
        ("((f)[1] > 0)", "(f)[1] > 0"),
        ("(a BETWEEN (b > c) AND d)", "a BETWEEN (b > c) AND d"),
        ("(a OR b) AND c + (a + b) * 2 > 0", "(a OR b) AND c + (a + b) * 2 > 0"),
        ("((a)", "((a)"),
    ],
)
def test_pretty(text: str, shown: str) -> None:
    assert pretty(text) == shown
    if text != shown:
        assert len({prettify(f"SELECT {item}") for item in (text, shown)}) == 1
        assert parse_sql(f"SELECT {shown}")
