"""Parses the patterns of to_number() and of to_char() for numbers (formatting.c, parse_format and NUMDesc_prepare).

Owns: ``number_shape``: the pattern's words and texts, and the format that they describe together. Raises 42601 for
contradictory words.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Final

from msgspec import Struct

from catalog.values.errors import SqlError

_NAMES: Final = ("EEEE", "FM", "MI", "PL", "PR", "RN", "SG", "SP", "TH", *",.09BCDGLSV")
_KEYWORDS: Final = (*_NAMES, *(name.lower() for name in _NAMES if name.isalpha()))


class Item(Struct, frozen=True):
    """A word of a pattern, or another character."""

    text: str
    is_word: bool

    @property
    def name(self) -> str:
        return self.text.upper() if self.is_word else ""


class Shape(Struct):
    """The format of a pattern: digits ``before`` and ``behind`` the point, of which the zeros from ``zero_start`` to
    ``zero_end`` are always written; ``shift`` digits after V. ``lead`` is the number of digits before S."""

    items: list[Item]
    before: int = 0
    behind: int = 0
    shift: int = 0
    zero_start: int = 0
    zero_end: int = 0
    lead: int = 0
    sign_side: int = 0
    has_point: bool = False
    has_zero: bool = False
    fills: bool = True
    signed: bool = False
    brackets: bool = False
    minus: bool = False
    plus: bool = False
    roman: bool = False
    shifted: bool = False
    scientific: bool = False
    blank: bool = False


@lru_cache(256)
def number_shape(pattern: str) -> Shape:
    """A pattern's format, which callers must not change. Raises 42601."""
    shape = Shape(_items(pattern))
    for item in shape.items:
        if item.is_word:
            _prepare(shape, item.name)
    return shape


def _items(pattern: str) -> list[Item]:
    items, place = [], 0
    while place < len(pattern):
        word = next((name for name in _KEYWORDS if pattern.startswith(name, place)), None)
        if word is not None:
            items.append(Item(word, is_word=True))
            place += len(word)
        elif pattern[place] == '"':
            place += 1
            while place < len(pattern) and pattern[place] != '"':
                place += pattern[place] == "\\" and place + 1 < len(pattern)
                items.append(Item(pattern[place], is_word=False))
                place += 1
            place += 1
        else:
            place += pattern.startswith('\\"', place)
            items.append(Item(pattern[place], is_word=False))
            place += 1
    return items


def _prepare(shape: Shape, word: str) -> None:
    """Adds a word to the format. Raises 42601."""
    if shape.scientific and word != "EEEE":
        raise SqlError("42601", '"EEEE" must be the last pattern used')
    match word:
        case "9" | "0":
            _digit(shape, word)
        case "B":
            shape.blank |= not shape.before and not shape.behind and not shape.has_zero
        case "D" | ".":
            if shape.has_point:
                raise SqlError("42601", "multiple decimal points")
            _require(not shape.shifted, 'cannot use "V" and decimal point together')
            shape.has_point = True
        case "FM":
            shape.fills = False
        case "S":
            _require(not shape.signed, 'cannot use "S" twice')
            others = shape.plus or shape.minus or shape.brackets
            _require(not others, 'cannot use "S" and "PL"/"MI"/"SG"/"PR" together')
            shape.sign_side, shape.signed = (1 if shape.has_point else -1), True
            shape.lead = shape.lead if shape.has_point else shape.before
        case "MI" | "PL" | "SG":
            _require(not shape.signed, f'cannot use "S" and "{word}" together')
            shape.minus |= word != "PL"
            shape.plus |= word != "MI"
        case "PR":
            others = shape.signed or shape.plus or shape.minus
            _require(not others, 'cannot use "PR" and "S"/"PL"/"MI"/"SG" together')
            shape.brackets = True
        case "RN":
            shape.roman = True
        case "V":
            _require(not shape.has_point, 'cannot use "V" and decimal point together')
            shape.shifted = True
        case "EEEE":
            _exponent(shape)


def _digit(shape: Shape, word: str) -> None:
    _require(not shape.brackets, f'"{word}" must be ahead of "PR"')
    if word == "9" and shape.shifted:
        shape.shift += 1
        return
    if word == "0" and not shape.has_zero and not shape.has_point:
        shape.has_zero, shape.zero_start = True, shape.before + 1
    if shape.has_point:
        shape.behind += 1
    else:
        shape.before += 1
    if word == "0":
        shape.zero_end = shape.before + shape.behind


def _exponent(shape: Shape) -> None:
    _require(not shape.scientific, 'cannot use "EEEE" twice')
    others = (shape.blank, not shape.fills, shape.signed, shape.brackets, shape.minus, shape.plus, shape.roman)
    if any(others) or shape.shifted:
        detail = '"EEEE" may only be used together with digit and decimal point patterns.'
        raise SqlError("42601", '"EEEE" is incompatible with other formats', detail)
    shape.scientific = True


def _require(holds: bool, message: str) -> None:
    if not holds:
        raise SqlError("42601", message)
