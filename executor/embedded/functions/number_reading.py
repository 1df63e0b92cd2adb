"""to_number(): a text read by a pattern, as a function of the engine (formatting.c, NUM_processor).

Owns: ``FUNCTIONS``. A character of the pattern takes one of the text or leaves it; what is neither digit nor sign nor
point where one is wanted is passed over. Roman numerals, V and EEEE are 0A000.
"""

from __future__ import annotations

import re
from decimal import ROUND_HALF_UP, Context, Decimal
from functools import lru_cache
from typing import Final

from msgspec import Struct

from catalog.errors import SqlError, unsupported
from executor.embedded.functions.batches import Functions

_WORDS: Final = re.compile(r"FM|MI|PL|PR|RN|SG|TH|EEEE|[09.,DGLSVBC]", re.IGNORECASE)
_DATA: Final = "0123456789.,+-"
_EXACT: Final = Context(prec=80, rounding=ROUND_HALF_UP)


class _Pattern(Struct, frozen=True):
    """Words and texts of a pattern, digits before and behind its point, and where its sign may be."""

    words: tuple[tuple[str, bool], ...]  # (text, whether it is a word)
    before: int
    behind: int
    has_point: bool
    signed: bool
    marks: bool
    brackets: bool


@lru_cache(256)
def _pattern(text: str) -> _Pattern:
    words, place = [], 0
    while place < len(text):
        if text[place] == '"':
            end = text.find('"', place + 1)
            end = len(text) if end < 0 else end
            words += [(char, False) for char in text[place + 1 : end]]
            place = end + 1
            continue
        found = _WORDS.match(text, place)
        words.append((found[0].upper(), True) if found else (text[place], False))
        place += len(words[-1][0])
    names = [word for word, known in words if known]
    if {"RN", "V", "EEEE", "B", "C", "TH"} & set(names):
        raise unsupported(f'to_number() with the pattern "{text}"')
    point = next((at for at, word in enumerate(names) if word in (".", "D")), len(names))
    digits = [at for at, word in enumerate(names) if word in ("0", "9")]
    _check(names)
    return _Pattern(
        tuple(words),
        sum(at < point for at in digits),
        sum(at > point for at in digits),
        point < len(names),
        "S" in names,
        bool({"MI", "PL", "SG"} & set(names)),
        "PR" in names,
    )


def _check(names: list[str]) -> None:
    """Raises 42601 for words that contradict each other."""
    for word in ("S", "PR"):
        others = [f'"{other}"' for other in ("S", "PL", "MI", "SG", "PR") if other != word]
        if word in names and any(other.strip('"') in names for other in others):
            raise SqlError("42601", f'cannot use "{word}" and {"/".join(others)} together')
    late = next((word for word in names[names.index("PR") :] if word in ("0", "9")), None) if "PR" in names else None
    if late is not None:
        raise SqlError("42601", f'"{late}" must be ahead of "PR"')


class _Reader:
    """A text on its way through a pattern."""

    def __init__(self, text: str, pattern: _Pattern) -> None:
        self.text, self.pattern = text, pattern
        self.place = self.behind = 0
        self.sign, self.digits, self.point = "", "", False

    def at(self) -> str:
        return self.text[self.place : self.place + 1]

    def skip(self, count: int) -> None:
        """Passes over characters that belong to no number."""
        while count and self.at() and self.at() not in _DATA:
            self.place, count = self.place + 1, count - 1

    def word(self, word: str) -> None:
        """One word of the pattern."""
        match word:
            case "0" | "9" | "." | "D":
                self.digit(word in "09")
                self.place += 1
            case "," | "G":
                self.place += self.at() == ","
            case "L":
                self.skip(1)
            case "MI" | "PL" | "SG":
                wanted = {"MI": "-", "PL": "+", "SG": "+-"}[word]
                if self.at() and self.at() in wanted:
                    self.sign = self.at()
                    self.place += 1
                else:
                    self.skip(1)

    def digit(self, is_digit: bool) -> None:
        """A digit, the point, and a sign on either side."""
        self.place += self.at() == " "
        signs = "+-<" if self.pattern.brackets else "+-"
        if is_digit and not self.sign and not self.digits and self.at() and self.at() in signs:
            self.sign = "-" if self.at() == "<" else self.at()
            self.place += 1
        is_read = False
        if self.at().isdigit():
            if self.point and self.behind == self.pattern.behind:
                return
            self.digits, is_read = self.digits + self.at(), True
            self.behind += self.point
        elif self.pattern.has_point and not self.point and self.at() == ".":
            self.digits, self.point, is_read = f"{self.digits}.", True, True
        if self.sign or not self.digits.strip("."):
            return
        following = self.text[self.place + 1 : self.place + 2]
        if self.pattern.signed:
            if is_read and following and following in "+-":
                self.sign, self.place = following, self.place + 1
        elif not is_read and self.pattern.marks and self.at() and self.at() in "+-":
            self.sign = self.at()


def _read(text: str, written: str) -> Decimal | None:
    if not written:
        return None
    pattern = _pattern(written)
    reader = _Reader(text, pattern)
    for word, known in pattern.words:
        if not reader.at():
            break
        if known:
            reader.word(word)
        else:
            reader.place += 1
    digits = reader.digits.removesuffix(".")
    if not digits:
        raise SqlError("22P02", f'invalid input syntax for type numeric: "{reader.sign or " "}"')
    value = Decimal(f"{reader.sign}{digits}").quantize(Decimal(1).scaleb(-pattern.behind), context=_EXACT)
    if value and value.adjusted() >= pattern.before:
        raise SqlError("22003", "numeric field overflow")
    return value


FUNCTIONS: Final[Functions] = {"num_read": (_read, "DECIMAL(38, 18)")}
