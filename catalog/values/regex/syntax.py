"""PostgreSQL's advanced regular expressions as trees.

Owns: ``parse`` (from text and flags to a ``Pattern`` of the classes of ``tree``; 2201B for an invalid pattern).
``matching`` finds the matches of a tree. The older syntaxes are 0A000.
https://www.postgresql.org/docs/15/functions-matching.html#POSIX-SYNTAX-DETAILS
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from typing import Final

from msgspec import Struct

from catalog.values.errors import SqlError, unsupported
from catalog.values.regex.tree import (
    Back,
    Char,
    Choice,
    Group,
    Look,
    Node,
    Pattern,
    Point,
    Repeat,
    Sequence,
    anywhere,
    weight,
)

_MOST: Final = 255
_DEPTH: Final = 200
_CLASSES: Final[dict[str, Callable[[str], bool]]] = {
    "alpha": str.isalpha,
    "alnum": str.isalnum,
    "digit": lambda char: char in "0123456789",
    "upper": str.isupper,
    "lower": str.islower,
    "space": lambda char: char.isspace() and char not in "\x1c\x1d\x1e\x1f\x85\xa0\u2007\u202f",
    "blank": lambda char: char in " \t",
    "punct": lambda char: char.isprintable() and not char.isalnum() and not char.isspace(),
    "print": str.isprintable,
    "graph": lambda char: char.isprintable() and not char.isspace(),
    "cntrl": lambda char: char < " " or "\x7f" <= char < "\xa0",
    "xdigit": lambda char: char in "0123456789abcdefABCDEF",
    "word": lambda char: char.isalnum() or char == "_",
}
_ESCAPES: Final = {"a": "\a", "b": "\b", "B": "\\", "e": "\x1b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}
_SHORTHANDS: Final = {"d": "digit", "s": "space", "w": "word"}
_POINTS: Final = {"A": "start", "Z": "end", "m": "word_start", "M": "word_end", "y": "edge", "Y": "inside"}
#: The most nodes for which a reference is searched; groups that refer to groups with references double the number each
#: time.
_HEAVIEST: Final = 500
_ANYTHING: Final = Repeat(Char(lambda char: True), 0, None, True)
_COUNT: Final = re.compile(r"\{(\d+)(?:(,)(\d*))?\}")
_BLANKS: Final = re.compile(r"(?:\s|#[^\n]*)+")
_COMMENT: Final = re.compile(r"\(\?#[^)]*\)")


class Options(Struct, frozen=True):
    """Flags: case-insensitive, ``.`` and ``[^`` exclude newlines, anchors match at lines, blanks are ignored, the
    pattern is plain text; ``every`` is g."""

    ignore_case: bool = False
    by_line: bool = False
    line_anchors: bool = False
    expanded: bool = False
    literal: bool = False
    every: bool = False


def options(flags: str) -> Options:
    """The flags in a function's last argument. Raises 22023."""
    found: dict[str, bool] = {}
    for letter in flags:
        match letter:
            case "g":
                found["every"] = True
            case "i" | "c":
                found["ignore_case"] = letter == "i"
            case "n" | "m":
                found |= {"by_line": True, "line_anchors": True}
            case "s":
                found |= {"by_line": False, "line_anchors": False}
            case "p":
                found |= {"by_line": True, "line_anchors": False}
            case "w":
                found |= {"by_line": False, "line_anchors": True}
            case "x" | "t":
                found["expanded"] = letter == "x"
            case "q":
                found["literal"] = True
            case "b" | "e":
                raise unsupported(f"the regular expression option {letter}")
            case _:
                raise SqlError("22023", f'invalid regular expression option: "{letter}"')
    return Options(**found)


@lru_cache(512)
def parse(text: str, flags: str = "") -> Pattern:
    """The tree of a pattern. Raises 2201B, 22023, and 0A000."""
    chosen = options(flags)
    if text.startswith("***="):
        text, chosen = text[4:], Options(chosen.ignore_case, literal=True)
    elif text.startswith("***:"):
        text = text[4:]
    elif text.startswith("***"):
        raise _bad("quantifier operand invalid")
    embedded = re.match(r"\(\?([a-z]+)\)", text)
    if embedded is not None and not chosen.literal:
        text, chosen = text[embedded.end() :], options(flags.replace("g", "") + embedded[1])
    if chosen.literal:
        return Pattern(Sequence(tuple(_one(char, chosen) for char in text)), 0)
    reader = _Reader(text, chosen)
    root = reader.choice(0)
    if reader.place < len(text):
        raise _bad("parentheses () not balanced")
    return Pattern(root, reader.groups)


def _bad(words: str) -> SqlError:
    return SqlError("2201B", f"invalid regular expression: {words}")


def _one(char: str, chosen: Options) -> Char:
    """A single character, in both cases if matching is case-insensitive."""
    if not chosen.ignore_case:
        return Char(char.__eq__)
    cases = (char, char.lower(), char.upper())
    return Char(lambda found: found in cases)


class _Reader:
    """A recursive descent parser for a pattern."""

    def __init__(self, text: str, chosen: Options) -> None:
        self.text, self.options = text, chosen
        self.place = self.groups = self.looks = 0
        self.closed: dict[int, Node] = {}

    def _skip(self) -> None:
        """Skips comments and, in expanded syntax, blanks."""
        while True:
            found = _COMMENT.match(self.text, self.place)
            if found is None and self.options.expanded:
                found = _BLANKS.match(self.text, self.place)
            if found is None:
                return
            self.place = found.end()

    def _at(self, word: str) -> bool:
        return self.text.startswith(word, self.place)

    def _take(self, word: str) -> bool:
        if not self._at(word):
            return False
        self.place += len(word)
        return True

    def choice(self, depth: int) -> Node:
        """Alternatives up to the end or a closing parenthesis."""
        if depth > _DEPTH:
            raise _bad("regular expression is too complex")
        branches = [self._branch(depth)]
        while self._take("|"):
            branches.append(self._branch(depth))
        return branches[0] if len(branches) == 1 else Choice(tuple(branches))

    def _branch(self, depth: int) -> Node:
        items: list[Node] = []
        self._skip()
        while self.place < len(self.text) and not self._at("|") and not (depth and self._at(")")):
            atom = self._atom(depth)
            self._skip()
            items.append(self._quantified(atom))
            self._skip()
        return items[0] if len(items) == 1 else Sequence(tuple(items))

    def _quantified(self, atom: Node) -> Node:
        found = self._quantifier()
        if found is None:
            return atom
        if isinstance(atom, Point | Look):
            raise _bad("quantifier operand invalid")
        least, most, chooses = found
        lazy = self._take("?")
        self._skip()
        if self.place < len(self.text) and (self.text[self.place] in "*+?" or self._is_count()):
            raise _bad("quantifier operand invalid")
        return Repeat(atom, least, most, not lazy if chooses else None) if most != 0 else Sequence(())

    def _is_count(self) -> bool:
        return self._at("{") and self.text[self.place + 1 : self.place + 2].isdigit()

    def _quantifier(self) -> tuple[int, int | None, bool] | None:
        """The least and the greatest number, and whether it expresses a choice between them (even if both are 1)."""
        for word, least, most in (("*", 0, None), ("+", 1, None), ("?", 0, 1)):
            if self._take(word):
                return least, most, True
        if not self._is_count():
            return None
        count = _COUNT.match(self.text, self.place)
        if count is None:
            rest = self.text[self.place + 1 :].lstrip("0123456789,")
            raise _bad("invalid repetition count(s)" if rest else "braces {} not balanced")
        self.place = count.end()
        least = int(count[1])
        most = least if not count[2] else int(count[3]) if count[3] else None
        if max(least, most or 0) > _MOST or (most is not None and most < least):
            raise _bad("invalid repetition count(s)")
        return least, most, bool(count[2])

    def _atom(self, depth: int) -> Node:
        char = self.text[self.place]
        self.place += 1
        match char:
            case "(":
                return self._group(depth)
            case "[":
                return self._bracket()
            case ".":
                by_line = self.options.by_line
                return Char(lambda found: not by_line or found != "\n")
            case "^":
                return Point("line_start" if self.options.line_anchors else "start")
            case "$":
                return Point("line_end" if self.options.line_anchors else "end")
            case "\\":
                return self._escape()
            case "*" | "+" | "?":
                raise _bad("quantifier operand invalid")
            case "{" if self.text[self.place : self.place + 1].isdigit():
                raise _bad("quantifier operand invalid")
            case ")":
                raise _bad("parentheses () not balanced")
            case _:
                return _one(char, self.options)

    def _group(self, depth: int) -> Node:
        kind = next((word for word in ("?:", "?=", "?!", "?<=", "?<!") if self._take(word)), "")
        if not kind and self._at("?"):
            raise _bad("quantifier operand invalid")
        kind = "?:" if not kind and self.looks else kind  # groups within look-around do not capture
        number = 0
        if not kind:
            self.groups += 1
            number = self.groups
        looks = kind in ("?=", "?!", "?<=", "?<!")
        self.looks += looks
        inner = self.choice(depth + 1)
        self.looks -= looks
        if not self._take(")"):
            raise _bad("parentheses () not balanced")
        if not kind:
            self.closed[number] = inner
            return Group(inner, number)
        return Sequence((inner,)) if kind == "?:" else Look(inner, "<" in kind, "!" in kind)

    def _escape(self) -> Node:
        letter = self.text[self.place : self.place + 1]
        if not letter:
            raise _bad("invalid escape \\ sequence")
        if letter.lower() in _SHORTHANDS:
            self.place += 1
            return self._shorthand(letter)
        if letter in _POINTS:
            self.place += 1
            return Point(_POINTS[letter])
        if letter in "123456789":
            return self._reference()
        return _one(self._escaped(), self.options)

    def _reference(self) -> Node:
        r"""\\1 to \\9, and greater numbers if there are that many groups before; others are octal character codes."""
        digits = re.compile(r"\d{1,3}", re.ASCII).match(self.text, self.place)
        assert digits is not None
        number = int(digits[0])
        if len(digits[0]) > 1 and number > self.groups:
            octal = re.compile("[0-7]{1,3}").match(self.text, self.place)
            if octal is None:
                raise _bad("invalid escape \\ sequence")
            self.place = octal.end()
            return _one(chr(int(octal[0], 8)), self.options)
        self.place = digits.end()
        if self.looks or number not in self.closed:
            raise _bad("invalid backreference number")
        like = anywhere(self.closed[number])
        return Back(number, like if weight(like) <= _HEAVIEST else _ANYTHING, self.options.ignore_case)

    def _shorthand(self, letter: str) -> Char:
        inside, by_line = _CLASSES[_SHORTHANDS[letter.lower()]], self.options.by_line
        if letter.islower():
            return Char(inside)
        return Char(lambda found: not inside(found) and not (by_line and found == "\n"))

    def _escaped(self) -> str:
        """The character of an escape."""
        letter = self.text[self.place : self.place + 1]
        self.place += 1
        if not letter:
            raise _bad("invalid escape \\ sequence")
        if not (letter.isascii() and letter.isalnum()):
            return letter
        if letter in _ESCAPES:
            return _ESCAPES[letter]
        if letter == "c" and self.place < len(self.text):
            self.place += 1
            return chr(ord(self.text[self.place - 1]) & 31)
        for shape, base in ((r"u([0-9A-Fa-f]{4})|U([0-9A-Fa-f]{8})|x([0-9A-Fa-f]+)", 16), (r"(0[0-7]{0,2})", 8)):
            found = re.compile(shape).match(self.text, self.place - 1)
            if found is not None:
                self.place = found.end()
                code = int(found[found.lastindex or 0], base)
                if code > 0x10FFFF:
                    break
                return chr(code)
        raise _bad("invalid escape \\ sequence")

    # --- brackets -----------------------------------------------------------------------------------------------------

    def _bracket(self) -> Node:
        for word, kind in (("[:<:]]", "word_start"), ("[:>:]]", "word_end")):
            if self._take(word):
                return Point(kind)
        negated = self._take("^")
        parts: list[Callable[[str], bool]] = []
        first = True
        while first or not self._at("]"):
            if self.place >= len(self.text):
                raise _bad("brackets [] not balanced")
            parts.append(self._part())
            first = False
        self.place += 1
        return Char(self._of_parts(parts, negated))

    def _of_parts(self, parts: list[Callable[[str], bool]], negated: bool) -> Callable[[str], bool]:
        ignore_case, by_line = self.options.ignore_case, self.options.by_line

        def accepts(char: str) -> bool:
            cases = (char, char.lower(), char.upper()) if ignore_case else (char,)
            found = any(part(each) for part in parts for each in cases)
            return found != negated and not (negated and by_line and char == "\n")

        return accepts

    def _part(self) -> Callable[[str], bool]:
        """A class, a character, or a range of characters."""
        if self._take("[:"):
            name, _, _ = self.text[self.place :].partition(":]")
            if f"{name}:]" not in self.text[self.place :] or name not in _CLASSES:
                raise _bad("invalid character class")
            self.place += len(name) + 2
            return _CLASSES[name]
        if self._at("\\") and self.text[self.place + 1 : self.place + 2] in set("dswDSW"):
            self.place += 2
            return self._shorthand(self.text[self.place - 1]).accepts
        low = self._element()
        if not (self._at("-") and not self._at("-]")):
            return low.__eq__
        self.place += 1
        high = self._element()
        if high < low:
            raise _bad("invalid character range")
        return lambda char: low <= char <= high

    def _element(self) -> str:
        for mark in (".", "="):
            if self._take(f"[{mark}"):
                name, closed, _ = self.text[self.place :].partition(f"{mark}]")
                if not closed or len(name) != 1:
                    raise _bad("invalid collating element")
                self.place += len(name) + 2
                return name
        if self.place >= len(self.text):
            raise _bad("brackets [] not balanced")
        if self._take("\\"):
            return self._escaped()
        self.place += 1
        return self.text[self.place - 1]
