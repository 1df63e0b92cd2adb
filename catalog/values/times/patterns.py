"""Parses the patterns of to_char(), to_date() and to_timestamp() (formatting.c).

Owns: the words of date and time patterns, the ordinary texts that such a pattern reads, and the shape of common number
patterns. Knows no engine.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

from msgspec import Struct

_WORDS: Final = (
    *("A.D.", "A.M.", "AD", "AM", "B.C.", "BC", "CC", "DAY", "DDD", "DD", "DY", "D"),
    *("FF1", "FF2", "FF3", "FF4", "FF5", "FF6", "FX", "HH24", "HH12", "HH", "IDDD", "ID", "IW", "IYYY", "IYY", "IY"),
    *("I", "J", "MI", "MM", "MONTH", "MON", "MS", "OF", "P.M.", "PM", "Q", "RM", "SSSSS", "SSSS", "SS", "TZH"),
    *("TZM", "TZ", "US", "WW", "W", "Y,YYY", "YYYY", "YYY", "YY", "Y"),
)
_KEYWORDS: Final = sorted(
    {*_WORDS, *(word.lower() for word in _WORDS), "Day", "Dy", "Month", "Mon"}, key=len, reverse=True
)


class Word(Struct, frozen=True):
    """A field as written: ``text`` in its case; ``fill`` unless preceded by FM; ``ordinal`` is '', 'th' or 'TH';
    ``local`` if preceded by TM, for names in the locale's language."""

    text: str
    fill: bool = True
    ordinal: str = ""
    local: bool = False

    @property
    def name(self) -> str:
        return self.text.upper()


class Between(Struct, frozen=True):
    """The text between fields: a quoted text, or one character."""

    text: str
    quoted: bool = False


@lru_cache(256)
def moment_pattern(pattern: str) -> tuple[Word | Between, ...]:
    """Fields and the texts between them (parse_format)."""
    found: list[Word | Between] = []
    place = 0
    while place < len(pattern):
        prefix = pattern[place : place + 2]
        prefix = prefix if prefix in ("FM", "fm", "TM", "tm") else ""
        place += len(prefix)
        word = next((item for item in _KEYWORDS if pattern.startswith(item, place)), None)
        if word is None:
            text, place = _text(pattern, place)
            if text.text:
                found.append(text)
            continue
        place += len(word)
        suffix = pattern[place : place + 2] if pattern[place : place + 2] in ("th", "TH", "SP") else ""
        place += len(suffix)
        found.append(Word(word, prefix.upper() != "FM", "" if suffix == "SP" else suffix, prefix.upper() == "TM"))
    return tuple(found)


def _text(pattern: str, place: int) -> tuple[Between, int]:
    """The text at a place, and the place after it."""
    char = pattern[place : place + 1]
    if char == '"':
        pieces = []
        place += 1
        while place < len(pattern) and pattern[place] != '"':
            place += pattern[place] == "\\" and place + 1 < len(pattern)
            pieces.append(pattern[place])
            place += 1
        return Between("".join(pieces), quoted=True), place + 1
    if char == "\\" and pattern[place + 1 : place + 2] == '"':
        return Between('"'), place + 2
    return Between(char), place + 1


class NumberPattern(Struct, frozen=True):
    """A pattern of 9 and 0.

    ``digits`` before the point, of which the last ``forced`` are always written; ``groups``, the numbers of digits to
    the right of each comma; ``decimals``, of which ``kept`` stay in fill mode (FM); and the sign's place: '' (before
    the first digit), 'S' (likewise, always written), 'MI-', 'SG-' (before the blanks), '-S', '-SG', '-MI' (after the
    number), 'PR' (angle brackets around a negative number). ``suffix`` is a text at the end. The last ``shift`` digits
    are decimals without a point (V), and ``ordinal`` is TH or th after a number without decimals.
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


#: The texts for the locale's currency, which C lacks, and in place of an ordinal.
_BLANK: Final = {"L": " ", "TH": ""}


@lru_cache(256)
def number_pattern(pattern: str) -> NumberPattern | None:
    """The shape of a common pattern; None for others."""
    match = _NUMBER.fullmatch(pattern)
    if match is None or (match["lead"] and match["trail"]) or not (match["whole"] or match["decimals"]):
        return None
    decimals = match["decimals"] or ""
    whole = match["whole"].upper().replace("G", ",")
    shift, suffix = match["shift"] or "", match["suffix"] or ""
    has_currency = match["prefix"] or suffix.upper() == "L"
    if whole.startswith(",") or (has_currency and (match["fm"] or match["lead"] or match["trail"])):
        return None
    if (shift and ("," in whole or suffix)) or (suffix.upper() == "TH" and match["trail"]):
        return None
    digits = whole.replace(",", "") + shift
    groups = tuple(len(whole[place:].replace(",", "")) for place, char in enumerate(whole) if char == ",")
    if 0 in groups or len(digits) + len(decimals) > 30:
        return None
    forced = len(digits) - digits.index("0") if "0" in digits else 0
    kept = decimals.rfind("0") + 1
    lead, trail = (match["lead"] or "").upper(), (match["trail"] or "").upper()
    if not digits and (lead or trail == "PR"):
        return None
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


_MONTH, _DAY, _HOUR, _HALF, _SIXTIETH = (
    *("(?:0[1-9]|1[0-2])", "(?:0[1-9]|[12][0-9]|3[01])", "(?:[01][0-9]|2[0-3])", "(?:0[1-9]|1[0-2])", "[0-5][0-9]"),
)
#: Fields whose ordinary texts an engine reads, by their meaning, with the form of these directly before another field's
#: digits. Other texts do not mean the plain number: a year is not 0, a month is not January.
_READ: Final = {
    "YYYY": ("year", "[1-9][0-9]{3}"),
    "MM": ("month", _MONTH),
    "MON": ("name", "(?i:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)"),
    "DD": ("day", _DAY),
    "HH24": ("hour", _HOUR),
    "HH12": ("half", _HALF),
    "HH": ("half", _HALF),
    "MI": ("minute", _SIXTIETH),
    "SS": ("second", _SIXTIETH),
    "MS": ("millis", "[0-9]{3}"),
    "US": ("micros", "[0-9]{6}"),
    "AM": ("noon", "(?i:am|pm)"),
    "PM": ("noon", "(?i:am|pm)"),
}
#: The forms if no digits of another field follow, for the fields that may have one digit.
_APART: Final = {
    **dict.fromkeys(("MM", "HH12", "HH"), "(?:0?[1-9]|1[0-2])"),
    "DD": "(?:0?[1-9]|[12][0-9]|3[01])",
    "HH24": "(?:[01]?[0-9]|2[0-3])",
    **dict.fromkeys(("MI", "SS"), "[0-5]?[0-9]"),
}


@lru_cache(256)
def moment_reader(pattern: str) -> tuple[str, tuple[str, ...]] | None:
    """A regular expression for ordinary texts that match a common pattern exactly, and the meanings of its groups.

    Each of these texts means exactly what its groups say, provided that the month has the day. None for other patterns.
    """
    items = moment_pattern(pattern)
    shape, groups = "", []
    for place, item in enumerate(items):
        if isinstance(item, Between):
            if not item.text.isascii() or any(char.isdigit() for char in item.text):
                return None
            shape += re.escape(item.text)
            continue
        if item.name not in _READ or not item.fill or item.ordinal:
            return None
        meaning, joined = _READ[item.name]
        before_field = place + 1 < len(items) and isinstance(items[place + 1], Word)
        shape += f"({joined if before_field else _APART.get(item.name, joined)})"
        groups.append(meaning)
    known = set(groups)
    is_plain = len(known) == len(groups) and "year" in known and ("half" in known or "noon" not in known)
    return (
        (shape, tuple(groups)) if is_plain and not ({"name", "month"} <= known or {"hour", "half"} <= known) else None
    )
