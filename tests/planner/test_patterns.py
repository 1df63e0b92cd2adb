"""The regular expressions that are left to RE2, and that PostgreSQL and RE2 find the same matches for them in any
text."""

from __future__ import annotations

import random

import duckdb
import pytest

from catalog.values.regex.backtracking import read, rewrite
from tests.rig.postgres import Postgres

TAKEN = ["[0-9]+", r"\d+-\d+", "^a*b$", "a.*?b", "(a+)(b*)c", r"^https?://([^/]+)/.*$", "(?:ab)c+", "x{2,3}y", ""]
REFUSED = [
    "a|b",
    "(ab)+",
    r"(a)\1",
    "(?=a)",
    "a*?b*?",
    "a?ab?",
    r"\mfoo",
    "[[:alpha:]]+",
    "a{300}",
    "(a",
    "a)",
    "[a",
    "a**",
]


@pytest.mark.parametrize("pattern", TAKEN)
def test_taken(pattern: str) -> None:
    assert read(pattern) is not None


@pytest.mark.parametrize("pattern", REFUSED)
def test_refused(pattern: str) -> None:
    assert read(pattern) is None


def test_case_counts() -> None:
    assert read("a+A+b") is not None
    assert read("a+A+b", True) is None


def test_replacements() -> None:
    assert rewrite(r"\1-\&-\\-\x-\3\\", 2) == r"\1-\0-\\-\\x-\\"


def patterns(source: random.Random, count: int) -> list[str]:
    """Random expressions that are left to RE2."""
    found: list[str] = []
    atoms = ["a", "b", ".", "[ab]", "[^a]", r"\w", r"\s", "-", r"\d", r"\W", "c", "ü"]
    while len(found) < count:
        pieces = []
        for _ in range(source.randint(1, 4)):
            piece = "".join(
                source.choice(atoms) + source.choice(["", "", "", "*", "+", "?", "{2}", "{1,2}", "*?", "+?"])
                for _ in range(source.randint(1, 2))
            )
            pieces.append(f"({piece})" if source.random() < 0.3 else piece)
        pattern = source.choice(["", "", "^"]) + "".join(pieces) + source.choice(["", "", "$"])
        if read(pattern) is not None:
            found.append(pattern)
    return found


@pytest.mark.slow
@pytest.mark.postgres
def test_matches_are_postgresqls(postgres: Postgres) -> None:
    source = random.Random(15)
    cases = [
        (pattern, "".join(source.choices("ab c-ü1\n", k=source.randint(0, 9))))
        for pattern in patterns(source, 300)
        for _ in range(3)
    ]
    with postgres.connect() as judge:
        query = "SELECT regexp_match(t, '(' || p || ')') FROM unnest(%s::text[], %s::text[]) WITH ORDINALITY u(p, t, n)"
        wanted = judge.execute(
            (query + " ORDER BY n").encode(), ([case[0] for case in cases], [case[1] for case in cases])
        ).fetchall()
    with duckdb.connect() as engine:
        for (pattern, text), (expected,) in zip(cases, wanted, strict=True):
            regex = read(pattern)
            assert regex is not None
            groups = ", ".join(f"regexp_extract($1, $2, {place}, 's')" for place in range(regex.groups + 1))
            query = f"SELECT CASE WHEN regexp_matches($1, $2, 's') THEN [{groups}] END"
            found = engine.execute(query, [text, regex.text]).fetchall()[0][0]
            assert found == expected, (pattern, text)
