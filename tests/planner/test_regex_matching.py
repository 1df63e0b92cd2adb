"""Matches and groups of regular expressions, beside PostgreSQL's own."""

from __future__ import annotations

import random
from typing import Final

import psycopg
import pytest

from catalog.values.errors import SqlError
from catalog.values.regex.matching import find_all
from catalog.values.regex.syntax import parse
from tests.rig.postgres import Postgres

SEED = 7
CASES = 1500
_POINTS = ("^", "$", r"\y", r"\m", r"\M", r"\A", r"\Z", "(?=a)", "(?!b)", "(?<=a)", "(?<!a)")
_ATOMS = ("a", "b", "c", " ", ".", "[ab]", "[^a]", r"\w", r"\d", r"\s", r"\W", *_POINTS)
_COUNTS = ("*", "+", "?", "*?", "+?", "??", "{2}", "{1,2}", "{0,2}", "{1,2}?", "{1,}", "{1,1}?", "{2,2}", "{0}")


_BACK: Final = (r"\1", r"\1", r"\2", r"\1+", r"\2*", r"\1{2}", r"\1?", r"\3")


def _pattern(source: random.Random, depth: int, atoms: tuple[str, ...] = _ATOMS) -> str:
    branches = []
    for _ in range(1 if source.random() < 0.7 else 2):
        items = []
        for _ in range(source.randint(1, 4)):
            nested = depth > 0 and source.random() < 0.3
            opening = source.choice(("(", "(?:"))
            atom = f"{opening}{_pattern(source, depth - 1, atoms)})" if nested else source.choice(atoms)
            counted = atom not in (*_POINTS, *_BACK) and source.random() < 0.5
            items.append(atom + (source.choice(_COUNTS) if counted else ""))
        branches.append("".join(items))
    return "|".join(branches)


def _found(pattern: str, text: str, flags: str) -> list[list[str | None]] | str | None:
    try:
        tree = parse(pattern, flags)
    except SqlError as error:
        return error.sqlstate
    matches = [found[1:] if tree.groups else found for found in find_all(tree, text)]
    return [[None if span is None else text[span[0] : span[1]] for span in match] for match in matches]


@pytest.mark.slow
@pytest.mark.postgres
@pytest.mark.parametrize("refers", [False, True])
def test_random_patterns_match_what_postgresql_matches(postgres: Postgres, refers: bool) -> None:
    source = random.Random(SEED)
    different = []
    atoms = ("a", "b", ".", "[ab]", r"\w", *_BACK) if refers else _ATOMS
    with postgres.connect() as judge:
        for _ in range(CASES):
            pattern, flags = _pattern(source, 2, atoms), source.choice(("", "", "i", "n"))
            pattern = f"({source.choice(('a', '.', 'ab?', 'a*', '.+', 'a|b'))}){pattern}" if refers else pattern
            text = "".join(source.choice("aabbAB" if refers else "aabbc 1") for _ in range(source.randint(0, 9)))
            wanted: object
            try:
                rows = judge.execute("SELECT regexp_matches(%s, %s, %s)", (text, pattern, f"g{flags}")).fetchall()
                wanted = [row[0] for row in rows]
            except psycopg.Error as error:
                wanted = error.sqlstate
            if _found(pattern, text, flags) != wanted:
                different.append((pattern, text, flags, _found(pattern, text, flags), wanted))
    assert not different


@pytest.mark.parametrize(
    ("pattern", "text", "matches"),
    [
        ("a|ab", "abab", [["ab"], ["ab"]]),
        ("(a|ab)(c|bcd)", "abcd", [["a", "bcd"]]),
        ("(?:(.*?)(\\d+)(.*)){1,1}", "abc01234xyz", [["abc", "01234", "xyz"]]),
        ("***=a.c", "abca.c", [["a.c"]]),
        ("(?x) a b # c", "ab", [["ab"]]),
        ("[[:alpha:]]+", "1äb2", [["äb"]]),
        ("(a", "a", "2201B"),
        ("a**", "a", "2201B"),
        ("a{3,2}", "a", "2201B"),
        ("[b-a]", "a", "2201B"),
        (r"(a)\1", "aab", [["a"]]),
        (r"(a+)b\1", "aaabaa", [["aa"]]),
        (r"(?=(a))\1", "aa", "2201B"),
        (r"(a\1)", "aa", "2201B"),
        (r"(a*)(a*)(a*)(a*)(a*)(a*)(a*)(a*)(a*)(a*)b\1\2\3c", "a" * 60 + "b", []),
    ],
)
def test_matches(pattern: str, text: str, matches: object) -> None:
    assert _found(pattern, text, "") == matches


def test_groups_that_refer_to_each_other_are_found_in_no_time() -> None:
    pattern = "(a*)" + "".join(rf"(\{number}\{number})" for number in range(1, 40))
    assert _found(pattern, "b", "") == [[""] * 40] * 2


def test_all_places_to_begin_at_share_the_steps() -> None:
    text = " ".join(["abcdefghijklmnopqrstuvwx"] * 200)
    with pytest.raises(SqlError, match="back references that takes this long"):
        _found(r"(\w+)(\w+)(\w+)(\w+)\4\3\2\1", text, "")


def test_nothing_backtracks() -> None:
    text = "ab" * 500
    assert len(_found("(a|b|ab)*?$", text, "") or ()) >= 1
    assert _found("(a*)*b$", "a" * 1000, "") == []
