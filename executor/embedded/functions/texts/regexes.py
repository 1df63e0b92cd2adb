"""Regular expression functions for patterns for which RE2 would find another match than PostgreSQL.

Owns: ``FUNCTIONS``, ``re_*``: their results for the matches that ``catalog.values.regex.matching`` finds (regexp.c).
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Final

from catalog.values.errors import SqlError
from catalog.values.regex.backtracking import BY_FLAG, similar
from catalog.values.regex.matching import Match, Span, find, find_all
from catalog.values.regex.syntax import options, parse
from catalog.values.regex.tree import Pattern
from executor.embedded.functions.batches import Functions


def _start(value: int) -> int:
    if value <= 0:
        raise SqlError("22023", f'invalid value for parameter "start": {value}')
    return value - 1


def _check(name: str, value: int, least: int, most: int = 2**31) -> None:
    if not least <= value <= most:
        raise SqlError("22023", f'invalid value for parameter "{name}": {value}')


def _pattern(name: str, pattern: str, flags: str) -> Pattern:
    if options(flags).every:
        raise SqlError("22023", f'{name}() does not support the "global" option')
    return parse(pattern, flags)


def _held(value: str, span: Span) -> str | None:
    return None if span is None else value[span[0] : span[1]]


def _nth(found: Iterator[Match], number: int) -> Match | None:
    return next(islice(found, number - 1, None), None)


def _like(value: str, pattern: str, flags: str) -> bool:
    return find(_pattern("regexp_like", pattern, flags), value) is not None


def _count(value: str, pattern: str, start: int, flags: str) -> int:
    first = _start(start)
    return sum(1 for _ in find_all(_pattern("regexp_count", pattern, flags), value, first))


def _instr(value: str, pattern: str, start: int, number: int, after: int, flags: str, group: int) -> int:
    first = _start(start)
    _check("n", number, 1)
    _check("endoption", after, 0, 1)
    _check("subexpr", group, 0)
    span = _group(_pattern("regexp_instr", pattern, flags), value, first, number, group)
    return 0 if span is None else span[after] + 1


def _substr(value: str, pattern: str, start: int, number: int, flags: str, group: int) -> str | None:
    first = _start(start)
    _check("n", number, 1)
    _check("subexpr", group, 0)
    return _held(value, _group(_pattern("regexp_substr", pattern, flags), value, first, number, group))


def _group(pattern: Pattern, value: str, first: int, number: int, group: int) -> Span:
    """A group of the n-th match; a pattern without groups has the whole match as its only group."""
    if group > max(pattern.groups, 1):
        return None
    found = _nth(find_all(pattern, value, first), number)
    return None if found is None else found[min(group, pattern.groups)]


def _match(value: str, pattern: str, flags: str) -> list[str | None] | None:
    found = find(_pattern("regexp_match", pattern, flags), value)
    return None if found is None else [_held(value, span) for span in (found[1:] or found)]


def _matches(value: str, pattern: str, flags: str) -> list[list[str | None]]:
    """The groups of the first match or, with the flag g, of all matches."""
    found = find_all(parse(pattern, flags), value)
    wanted = found if options(flags).every else islice(found, 1)
    return [[_held(value, span) for span in (match[1:] or match)] for match in wanted]


def _substring(value: str, pattern: str) -> str | None:
    found = find(parse(pattern), value)
    return None if found is None else _held(value, found[1] if len(found) > 1 else found[0])


def _split(value: str, pattern: str, flags: str) -> list[str]:
    """Splits a text; an empty match at either end, or directly after another match, does not split."""
    pieces, done = [], 0
    for found in find_all(_pattern("regexp_split_to_array", pattern, flags), value):
        begin, end = found[0]
        if begin < len(value) and end > done:
            pieces.append(value[done:begin])
            done = end
    return [*pieces, value[done:]]


def _replace(value: str, pattern: str, new: str, start: int, number: int, flags: str) -> str:
    first = _start(start)
    if number != BY_FLAG:
        _check("n", number, 0)
    tree = parse(pattern, flags)
    wanted = number if number != BY_FLAG else 0 if options(flags).every else 1
    pieces, done = [], 0
    for count, found in enumerate(find_all(tree, value, first), 1):
        if wanted and count != wanted:
            continue
        pieces += [value[done : found[0][0]], _filled(new, value, found)]
        done = found[0][1]
        if wanted:
            break
    return "".join([*pieces, value[done:]])


def _filled(new: str, value: str, found: Match) -> str:
    """A replacement text with the groups that it names filled in."""
    pieces, place = [], 0
    while place < len(new):
        char, following = new[place], new[place + 1 : place + 2]
        place += 1
        if char != "\\" or following not in tuple("123456789&\\"):
            pieces.append(char)
            continue
        place += 1
        number = 0 if following == "&" else int(following) if following != "\\" else -1
        held = _held(value, found[number]) if 0 <= number < len(found) else None
        pieces.append("\\" if number < 0 else held or "")
    return "".join(pieces)


FUNCTIONS: Final[Functions] = {
    "re_like": (_like, "BOOLEAN"),
    "re_count": (_count, "INTEGER"),
    "re_instr": (_instr, "INTEGER"),
    "re_substr": (_substr, "VARCHAR"),
    "re_match": (_match, "VARCHAR[]"),
    "re_matches": (_matches, "VARCHAR[][]"),
    "re_substring": (_substring, "VARCHAR"),
    "re_split": (_split, "VARCHAR[]"),
    "re_replace": (_replace, "VARCHAR"),
    "re_similar": (similar, "VARCHAR"),
}
