"""PostgreSQL's regular expressions whose match is the same for a backtracking engine.

PostgreSQL finds the longest match (or, after a lazy quantifier, the shortest), other engines the first one in their
search order. ``read`` accepts sequences of characters and classes, quantified or not, in groups that are not
quantified, and decides whether both agree:

    at most one quantifier                  what it takes decides the length
    greedy ones, up to the end ($ or .*)    every match ends there
    greedy ones, each disjoint from what    there is only one way to go on
    may follow it

Everything else (alternatives, quantified groups, back references, look-around) is refused by the caller.
https://www.postgresql.org/docs/15/functions-matching.html#POSIX-MATCHING-RULES
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

from msgspec import Struct

from catalog.values.errors import SqlError
from catalog.values.regex.syntax import parse

#: Class escapes as RE2 and Java write them: PostgreSQL's include Unicode's letters, and the vertical tab as a blank.
_CLASSES: Final = {"d": "0-9", "w": r"\p{L}\p{N}_", "s": r"\s\x0b"}
_SAMPLES: Final = (*map(chr, range(128)), "ü", "Ü", "€", "٣")
_ATOM: Final = re.compile(
    r"(?P<open>\((?:\?:)?)|(?P<close>\))|(?P<class>\[\^?\]?[^\]\[]*\])|(?P<escape>\\[dwsDWS])|(?P<quoted>\\[^0-9A-Za-z])"
    r"|(?P<plain>[^\\\[\](){}|*+?^$])",
    re.DOTALL,
)
_QUANTIFIER: Final = re.compile(r"(?P<count>[*+?]|\{(?P<least>\d{1,3})(?P<comma>,(?P<most>\d{0,3}))?\})(?P<lazy>\??)")
_MOST: Final = 255
#: The argument N that regexp_replace() gets if the flag g decides.
BY_FLAG: Final = -(2**31)


class Regex(Struct, frozen=True):
    """An expression in the common syntax, the number of its capturing groups, and whether it can match the empty
    text."""

    text: str
    groups: int
    is_empty: bool


class _Item(Struct, frozen=True):
    chars: frozenset[str]
    least: int
    varies: bool
    lazy: bool


@lru_cache(512)
def read(pattern: str, ignore_case: bool = False) -> Regex | None:
    """The expression; None if its match may differ or it is not understood."""
    place, text, groups, depth = 0, "", 0, 0
    items: list[_Item] = []
    if pattern.startswith("^"):
        place, text = 1, "^"
    ends = pattern.endswith("$") and not pattern.endswith("\\$")
    stop = len(pattern) - ends
    while place < stop:
        atom = _ATOM.match(pattern, place, stop)
        if atom is None:
            return None
        place = atom.end()
        if atom["open"] or atom["close"]:
            groups += atom["open"] == "("
            depth += 1 if atom["open"] else -1
            text += atom[0]
            if depth < 0 or (atom["open"] and pattern.startswith(("?", "*", "+", "{"), place)):
                return None
            if atom["close"] and _QUANTIFIER.match(pattern, place, stop):
                return None
            continue
        written = _written(atom)
        chars = None if written is None else _characters(written, ignore_case)
        if written is None or chars is None:
            return None
        quantifier = _QUANTIFIER.match(pattern, place, stop)
        item = _item(chars, quantifier)
        if item is None:
            return None
        place = quantifier.end() if quantifier else place
        text += written + (quantifier[0] if quantifier else "")
        items.append(item)
    if depth or not _agree(items, ends):
        return None
    return Regex(text + "$" * ends, groups, not any(item.least for item in items))


def _written(atom: re.Match[str]) -> str | None:
    """An atom in the common syntax."""
    if atom["escape"]:
        letter = atom[0][1]
        return f"[{'^' if letter.isupper() else ''}{_CLASSES[letter.lower()]}]"
    if atom["class"]:
        inner = atom[0][1:-1]
        if re.search(r"\\[^dwsn\\\]\[.^$*+?(){}|/-]|&&|--|\[", inner) or inner in ("", "^"):
            return None
        return "[" + re.sub(r"\\([dws])", lambda found: _CLASSES[found[1]], inner) + "]"
    if atom["quoted"] or atom[0] == ".":
        return atom[0]
    return re.escape(atom[0]) if atom[0].isascii() and not atom[0].isalnum() else atom[0]


def _characters(written: str, ignore_case: bool) -> frozenset[str] | None:
    """The sample characters that an atom matches."""
    known = written.replace(r"\p{L}\p{N}_", r"\w")
    try:
        one = re.compile(known, re.DOTALL | (re.IGNORECASE if ignore_case else 0))
    except (re.error, FutureWarning):
        return None
    found = frozenset(char for char in _SAMPLES if one.fullmatch(char))
    return found | ({"€", "ü", "Ü"} if not written.isascii() else set())


def _item(chars: frozenset[str], quantifier: re.Match[str] | None) -> _Item | None:
    if quantifier is None:
        return _Item(chars, 1, False, False)
    if quantifier["least"] is None:
        return _Item(chars, int(quantifier["count"] == "+"), True, bool(quantifier["lazy"]))
    least = int(quantifier["least"])
    most = least if not quantifier["comma"] else int(quantifier["most"]) if quantifier["most"] else -1
    if least > _MOST or most > _MOST or -1 < most < least or quantifier["lazy"]:
        return None
    return _Item(chars, least, least != most, False)


def _agree(items: list[_Item], ends: bool) -> bool:
    varying = [item for item in items if item.varies]
    if len(varying) <= 1:
        return True
    if any(item.lazy for item in items):
        return False
    takes_all = bool(items) and items[-1].varies and len(items[-1].chars) == len(_SAMPLES)
    return ends or takes_all or all(_goes_on_one_way(items[place:]) for place, item in enumerate(items) if item.varies)


def _goes_on_one_way(items: list[_Item]) -> bool:
    """Whether the first item shares no character with the items that may follow."""
    first, *rest = items
    for item in rest:
        if first.chars & item.chars:
            return False
        if item.least:
            return True
    return True


def rewrite(replacement: str, groups: int) -> str:
    r"""A replacement text in RE2's syntax: \\0 for \\&, an empty text for a missing group, other backslashes
    doubled."""
    found = []
    place = 0
    while place < len(replacement):
        char, following = replacement[place], replacement[place + 1 : place + 2]
        place += 1
        if char != "\\":
            found.append(char)
            continue
        if following == "&":
            found.append("\\0")
        elif following in "123456789" and following:
            found.append(f"\\{following}" if int(following) <= groups else "")
        else:
            found.append("\\\\")
            place += following == "\\"
            continue
        place += 1
    return "".join(found)


def similar(pattern: str, escape: str = "\\") -> str:
    """A SIMILAR TO pattern as a regular expression (similar_escape, regexp.c). Raises 22025 and 2200C."""
    if len(escape) > 1:
        raise SqlError("22025", "invalid escape string", hint="Escape string must be empty or one character.")
    found, place, in_class = [], 0, False
    parts = ["){1,1}(?:", "){1,1}?("]
    while place < len(pattern):
        char = pattern[place]
        place += 1
        if escape and char == escape:
            following = pattern[place : place + 1]
            place += 1
            if following != '"' or in_class:
                found.append("\\" + following if following else "")
            elif parts:
                found.append(parts.pop())
            else:
                words = "SQL regular expression may not contain more than two escape-double-quote separators"
                raise SqlError("2200C", words)
        elif in_class:
            in_class = char != "]"
            found.append("\\\\" if char == "\\" else char)
        elif char == "[":
            in_class = True
            found.append(char)
        else:
            found.append({"%": ".*", "_": ".", "(": "(?:"}.get(char, f"\\{char}" if char in "\\.^$" else char))
    return f"^(?:{''.join(found)})$"


_TOKEN: Final = re.compile(rf"(?P<atom>{_ATOM.pattern})|(?P<mark>[|^$])", re.DOTALL)


@lru_cache(512)
def common(pattern: str) -> str | None:
    """The expression in the common syntax if it is known to match the same texts; None for others."""
    try:
        parse(pattern)
    except SqlError:
        return None
    if pattern.startswith(("***", "(?")) and not pattern.startswith("(?:"):
        return None
    text, place = "", 0
    while place < len(pattern):
        token = _TOKEN.match(pattern, place)
        if token is None:
            return None
        written = token[0] if token["mark"] or token["open"] or token["close"] else _written(token)
        if written is None:
            return None
        quantifier = None if token["mark"] or token["open"] else _QUANTIFIER.match(pattern, token.end())
        text += written + (quantifier[0] if quantifier else "")
        place = quantifier.end() if quantifier else token.end()
    return text
