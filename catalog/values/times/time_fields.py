"""The fields of PostgreSQL's date and time texts.

Owns: the fields of a text, split as PostgreSQL 15's datetime.c does (ParseDateTime), the words that have a meaning by
themselves, and the errors of a text. ``moment_texts`` combines the fields.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

#: The order of a date's numbers if none of them shows what it is (DateStyle).
MDY, DMY, YMD = "MDY", "DMY", "YMD"
_FIELD: Final = re.compile(
    r"(?P<time>\d+:[\d:.]*)"
    r"|(?P<date>\d+(?:-\d+(?:-[\d-]*)?|/\d+(?:/[\d/]*)?|[.]\d+[.][\d.]*)"
    r"|\d+(?:-(?!\d)[a-z\d-]*|/(?!\d)[a-z\d/]*|[.](?!\d)[a-z\d.]*))"
    r"|(?P<number>\d+(?:[.]\d+)?|[.]\d*)"
    r"|(?P<word>[a-z]+)"
    r"|(?P<offset>[+-]\s*\d[\d:.-]*)"
    r"|(?P<signed>[+-]\s*[a-z]+)"
    r"|(?P<ignored>[\s!-/:-@\[-`{-~]+?)",
    re.ASCII,
)
#: Characters that continue a word that is a date or a zone's name.
_TAIL: Final = re.compile(r"[a-z\d+/_.:-]+", re.ASCII)
_MOST_FIELDS: Final = 25
_LONGEST: Final = 128
_FULL_MONTHS: Final = (
    *("january", "february", "march", "april", "may", "june", "july", "august", "september", "october"),
    *("november", "december"),
)
MONTHS: Final = {
    **{name[:3]: place for place, name in enumerate(_FULL_MONTHS, 1)},
    **{name: place for place, name in enumerate(_FULL_MONTHS, 1)},
    "sept": 9,
}
WEEK_DAYS: Final = frozenset(
    (
        *("sun", "sunday", "mon", "monday", "tue", "tues", "tuesday", "wed", "weds", "wednesday"),
        *("thu", "thur", "thurs", "thursday", "fri", "friday", "sat", "saturday"),
    )
)
#: Labels before a number, and the number's meaning.
LABELS: Final = {
    "y": "year",
    "m": "month",
    "d": "day",
    "h": "hour",
    "mm": "minute",
    "s": "second",
    **dict.fromkeys(("j", "jd", "julian"), "julian"),
    **dict.fromkeys(("dow", "doy", "isodow", "isoyear"), "other"),
}
RELATIVE: Final = frozenset(("now", "today", "tomorrow", "yesterday"))
ENDLESS: Final = frozenset(("epoch", "infinity", "-infinity"))


class Malformed(Exception):
    """22007 (DTERR_BAD_FORMAT); the caller adds the type and the text."""


class Overflow(Exception):
    """22008 (DTERR_FIELD_OVERFLOW)."""


class DateOverflow(Overflow):
    """22008 for a month or day that no year has; the hint says that their order may be wrong
    (DTERR_MD_FIELD_OVERFLOW)."""


class Displacement(Exception):
    """22009 (DTERR_TZDISP_OVERFLOW)."""


class Field(NamedTuple):
    """A part of a text: a time, date, number, word, offset or signed word."""

    kind: str
    text: str


def fields_of(text: str) -> list[Field]:
    """Splits a text into fields as ParseDateTime does."""
    found: list[Field] = []
    position = length = 0
    while position < len(text):
        match = _FIELD.match(text, position)
        if match is None:
            raise Malformed
        position, kind, part = match.end(), str(match.lastgroup), match[0]
        if kind == "ignored":
            continue
        if kind == "word" and (tail := _TAIL.match(text, position)) and _goes_on(part, text[position]):
            position, kind, part = tail.end(), "date", part + tail[0]
        elif kind in ("offset", "signed"):
            part = part[0] + part[1:].lstrip()
        found.append(Field(kind, part))
        length += len(part)
    if len(found) > _MOST_FIELDS or length > _LONGEST:
        raise Malformed
    return found


def _goes_on(word: str, after: str) -> bool:
    """Whether a word and the text after it form one field: a date or a zone's name."""
    if after in "-/.":
        return True
    return (after == "+" or after.isdigit()) and not _is_known(word)


def _is_known(word: str) -> bool:
    """Whether a word has a meaning by itself (datetktbl)."""
    return (
        word in MONTHS or word in WEEK_DAYS or word in LABELS or word in RELATIVE or word in ENDLESS
        or word in ("ad", "bc", "am", "pm", "at", "on", "t", "dst", "allballs")
    )  # fmt: skip
