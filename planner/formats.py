"""The patterns of to_char(), to_date() and to_timestamp(), taken apart (formatting.c).

Owns: the words of a pattern of dates and times, and the shape of a pattern of numbers. Raises 0A000 by name for what
no engine of ours writes. Knows no engine.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

from msgspec import Struct

from catalog.errors import unsupported

_WORDS: Final = (
    *("A.D.", "A.M.", "AD", "AM", "B.C.", "BC", "CC", "DAY", "DDD", "DD", "DY", "D"),
    *("FF1", "FF2", "FF3", "FF4", "FF5", "FF6", "FX", "HH24", "HH12", "HH", "IDDD", "ID", "IW", "IYYY", "IYY", "IY"),
    *("I", "J", "MI", "MM", "MONTH", "MON", "MS", "OF", "P.M.", "PM", "Q", "RM", "SSSSS", "SSSS", "SS", "TZH"),
    *("TZM", "TZ", "US", "WW", "W", "Y,YYY", "YYYY", "YYY", "YY", "Y"),
)
_KEYWORDS: Final = sorted(
    {*_WORDS, *(word.lower() for word in _WORDS), "Day", "Dy", "Month", "Mon"}, key=len, reverse=True
)
_UNWRITTEN: Final = frozenset(("FX", "IDDD", "RM", "TZ", "B.C.", "BC", "A.D.", "AD"))


class Word(Struct, frozen=True):
    """A field as it is written: ``text`` in its case; ``fill`` unless FM; ``ordinal`` is '', 'th' or 'TH'."""

    text: str
    fill: bool = True
    ordinal: str = ""

    @property
    def name(self) -> str:
        return self.text.upper()


@lru_cache(256)
def moment_pattern(pattern: str) -> tuple[Word | str, ...]:
    """Fields and the texts between them."""
    found: list[Word | str] = []
    place = 0
    while place < len(pattern):
        fill = pattern[place : place + 2].upper() != "FM"
        start = place if fill else place + 2
        if pattern[place : place + 2].upper() == "TM":
            raise unsupported("the modifier TM of to_char()")
        word = next((item for item in _KEYWORDS if pattern.startswith(item, start)), None)
        if word is None:
            text, place = _text(pattern, start)
            found.append(text)
            continue
        place = start + len(word)
        ordinal = pattern[place : place + 2] if pattern[place : place + 2] in ("th", "TH") else ""
        if word.upper() in _UNWRITTEN or pattern[place : place + 2].upper() == "SP":
            raise unsupported(f"the pattern {word} of to_char() and to_timestamp()")
        found.append(Word(word, fill, ordinal))
        place += len(ordinal)
    return tuple(found)


def _text(pattern: str, place: int) -> tuple[str, int]:
    """The text at a place, quoted or one character, and the place after it."""
    char = pattern[place : place + 1]
    if char == '"':
        pieces = []
        place += 1
        while place < len(pattern) and pattern[place] != '"':
            place += pattern[place] == "\\" and place + 1 < len(pattern)
            pieces.append(pattern[place])
            place += 1
        return "".join(pieces), place + 1
    if char == "\\" and pattern[place + 1 : place + 2] == '"':
        return '"', place + 2
    return char, place + 1


class NumberPattern(Struct, frozen=True):
    """A pattern of 9 and 0: ``digits`` before the point, of which the last ``forced`` are always written, ``groups``
    (numbers of digits right of each comma), ``decimals``, of which ``kept`` stay in fill mode (FM), and the sign's
    place: '' (before the first digit), 'S' (the same, always written), 'MI-', 'SG-' (before the blanks), '-S', '-SG',
    '-MI' (after the number), 'PR' (angle brackets around a negative one). ``suffix`` is a text behind all. The last
    ``shift`` digits are decimals without a point (V), and ``ordinal`` is TH or th behind a number that has no decimals.
    """

    prefix: str
    digits: int
    forced: int
    groups: tuple[int, ...]
    decimals: int
    kept: int
    fill: bool
    sign: str
    suffix: str
    shift: int
    ordinal: str


_NUMBER: Final = re.compile(
    r"(?P<fm>FM)?(?P<prefix>[$L]?)(?P<lead>SG|S|MI)?(?P<whole>[09,G]*)(?:[.D](?P<decimals>[09]+)|V(?P<shift>9+))?"
    r"(?P<trail>SG|S|MI|PR)?(?P<suffix>%|L|TH|\"[^\"\\]*\")?",
    re.IGNORECASE,
)


#: What is written for the locale's currency, of which C has none, and at an ordinal's place.
_BLANK: Final = {"L": " ", "TH": ""}


@lru_cache(256)
def number_pattern(pattern: str) -> NumberPattern:
    """The shape of an everyday pattern. Raises 0A000 for every other."""
    match = _NUMBER.fullmatch(pattern)
    if match is None or (match["lead"] and match["trail"]) or not (match["whole"] or match["decimals"]):
        raise unsupported(
            f'to_char() of a number with the pattern "{pattern}"',
            "Use 9, 0, comma, point, V, FM, S, SG, MI, PR, L, TH and %.",
        )
    decimals = match["decimals"] or ""
    whole = match["whole"].upper().replace("G", ",")
    shift, suffix = match["shift"] or "", match["suffix"] or ""
    has_currency = match["prefix"] or suffix.upper() == "L"
    if whole.startswith(",") or (has_currency and (match["fm"] or match["lead"] or match["trail"])):
        raise unsupported(f'to_char() of a number with the pattern "{pattern}"')
    if (shift and ("," in whole or suffix)) or (suffix.upper() == "TH" and match["trail"]):
        raise unsupported(f'to_char() of a number with the pattern "{pattern}"')
    digits = whole.replace(",", "") + shift
    groups = tuple(len(whole[place:].replace(",", "")) for place, char in enumerate(whole) if char == ",")
    if 0 in groups or len(digits) + len(decimals) > 30:
        raise unsupported(f'to_char() of a number with the pattern "{pattern}"')
    forced = len(digits) - digits.index("0") if "0" in digits else 0
    kept = decimals.rfind("0") + 1
    lead, trail = (match["lead"] or "").upper(), (match["trail"] or "").upper()
    if not digits and (lead or trail == "PR"):
        raise unsupported(f'to_char() of a number with the pattern "{pattern}"')
    sign = trail if trail == "PR" else f"-{trail}" if trail else f"{lead}-" if lead in ("SG", "MI") else lead
    return NumberPattern(
        _BLANK.get(match["prefix"].upper(), match["prefix"]),
        len(digits),
        forced,
        groups,
        len(decimals),
        kept,
        not match["fm"],
        sign,
        _BLANK.get(suffix.upper(), suffix.strip('"')),
        len(shift),
        suffix if suffix.upper() == "TH" and not decimals else "",
    )


#: Fields that are read, by what they say, and how they look: between others, or right before another field's digits.
_READ: Final = {
    "YYYY": ("year", "[0-9]{4}", "[0-9]{4}"),
    "MM": ("month", "[0-9]{1,2}", "[0-9]{2}"),
    "MON": ("name", "(?i:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)", ""),
    "DD": ("day", "[0-9]{1,2}", "[0-9]{2}"),
    "HH24": ("hour", "[0-9]{1,2}", "[0-9]{2}"),
    "HH12": ("half", "[0-9]{1,2}", "[0-9]{2}"),
    "HH": ("half", "[0-9]{1,2}", "[0-9]{2}"),
    "MI": ("minute", "[0-9]{1,2}", "[0-9]{2}"),
    "SS": ("second", "[0-9]{1,2}", "[0-9]{2}"),
    "MS": ("millis", "[0-9]{3}", "[0-9]{3}"),
    "US": ("micros", "[0-9]{6}", "[0-9]{6}"),
    "AM": ("noon", "(?i:am|pm)", ""),
    "PM": ("noon", "(?i:am|pm)", ""),
}


@lru_cache(256)
def moment_reader(pattern: str) -> tuple[str, tuple[str, ...]]:
    """A regular expression of the texts that a pattern reads to the letter, and what its groups say.

    PostgreSQL reads more (missing and other separators, blanks, rests): such texts are refused when they come.
    """
    items = moment_pattern(pattern)
    shape, groups = "", []
    for place, item in enumerate(items):
        if isinstance(item, str):
            if item.isalnum():
                raise unsupported("letters in the pattern of to_date() and to_timestamp()")
            shape += "".join(f"[{char}]" if char not in "^\\[]" else f"\\{char}" for char in item)
            continue
        if item.name not in _READ or not item.fill or item.ordinal:
            raise unsupported(f"the pattern {item.text} of to_date() and to_timestamp()")
        meaning, apart, joined = _READ[item.name]
        before_field = place + 1 < len(items) and isinstance(items[place + 1], Word)
        shape += f"({joined if before_field and joined else apart})"
        groups.append(meaning)
    known = set(groups)
    if len(known) != len(groups) or "year" not in known or {"name", "month"} <= known or {"hour", "half"} <= known:
        raise unsupported(f'to_date() and to_timestamp() with the pattern "{pattern}"', "Begin with YYYY-MM-DD.")
    if ("half" in known) != ("noon" in known):
        raise unsupported("a 12-hour clock without AM or PM in to_timestamp()")
    return shape, tuple(groups)
