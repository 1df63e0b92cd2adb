"""The fields that a text has by the pattern of to_date() and to_timestamp() (formatting.c, DCH_from_char).

Owns: ``fields``, and ``shape_of`` a pattern. A separator or blank in the pattern matches any one separator or blank in
the text, or none if there is none. Any other character matches any one character, unless blanks were skipped already.
FX requires an exact match. A number before a field of digits has the field's length; other numbers end with their
digits. A strict text, for jsonpath's .datetime(), must match its pattern exactly, and its pattern may have few
separators. ``pattern_reading`` combines the fields.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Final, NoReturn

from msgspec import Struct

from catalog.values.errors import SqlError
from catalog.values.times.patterns import Between, Word, moment_pattern

#: The characters that C's isspace() treats as blank, and those that end a text quoted in an error.
_BLANKS, _ENDS = " \t\n\v\f\r", " \t\n\r\f"
_INTEGERS: Final = range(-(2**31), 2**31)
_WEEK: Final = ("sunday", "monday", "tuesday", "wednesday", "thursday", "friday", "saturday")
_YEAR: Final = (
    *("january", "february", "march", "april", "may", "june", "july", "august", "september", "october"),
    *("november", "december"),
)
_ROMAN: Final = ("xii", "xi", "x", "ix", "viii", "vii", "vi", "v", "iv", "iii", "ii", "i")
_SHORT_YEAR, _SHORT_WEEK = tuple(name[:3] for name in _YEAR), tuple(name[:3] for name in _WEEK)


class Fields(Struct):
    """The fields of a text; 0 is a missing field. ``day_of_week`` counts from Sunday as 1, ``east`` is the sign of the
    zone's offset, ``digits`` is how many digits of a second FF1 to FF6 keep."""

    convention: str = ""
    hour: int = 0
    minute: int = 0
    second: int = 0
    second_of_day: int = 0
    millisecond: int = 0
    microsecond: int = 0
    digits: int = 0
    on_12_hours: bool = False
    afternoon: int = 0
    year: int = 0
    year_digits: int = 0
    century: int = 0
    before_christ: int = 0
    month: int = 0
    day: int = 0
    day_of_year: int = 0
    day_of_week: int = 0
    week: int = 0
    week_of_month: int = 0
    julian: int = 0
    east: int = 0
    zone_hours: int = 0
    zone_minutes: int = 0


class Shape(Struct, frozen=True):
    """Which fields a pattern has: of a date, of a time, of a zone."""

    is_dated: bool
    is_timed: bool
    is_zoned: bool


@lru_cache(256)
def shape_of(pattern: str) -> Shape:
    """A pattern's shape. Raises 22007 for a character that cannot separate fields in a strict pattern."""
    items = [item for item, _ in _items(pattern)]
    for item in items:
        if isinstance(item, Between) and not item.quoted and item.text not in _STRICT_SEPARATORS:
            raise SqlError("22007", f'invalid datetime format separator: "{item.text}"')
    names = {item.name for item in items if isinstance(item, Word)} - {"FX"}
    zoned = names & _OF_ZONES
    timed = names & _OF_CLOCKS
    return Shape(bool(names - zoned - timed), bool(timed), bool(zoned))


def fields(text: str, pattern: str, strict: bool = False) -> Fields:
    """The fields of a text. Raises 22007, 22008 and 0A000."""
    reader = _Reader(text, strict)
    items = _items(pattern)
    for place, (item, ends) in enumerate(items):
        if reader.is_done():
            if strict:
                raise SqlError("22007", "input string is too short for datetime format")
            break
        if isinstance(item, Word):
            reader.word(item, ends)
        else:
            reader.between(item, is_first=place == 0)
    if strict and text[reader.place :].strip(_BLANKS):
        raise SqlError("22007", "trailing characters remain in input string after datetime format")
    return reader.found


@lru_cache(256)
def _items(pattern: str) -> list[tuple[Word | Between, bool]]:
    """A pattern's fields and single characters, each with whether a non-digit must follow it (is_next_separator)."""
    items: list[Word | Between] = []
    for item in moment_pattern(pattern):
        items += [item] if isinstance(item, Word) else [Between(char, item.quoted) for char in item.text]
    return [
        (item, (isinstance(item, Word) and item.ordinal != "") or not any(map(_is_digit, items[place : place + 1])))
        for place, item in enumerate(items, 1)
    ]


def _is_digit(item: Word | Between) -> bool:
    """Whether a field is written in digits."""
    if isinstance(item, Word):
        return item.name in _NUMBERS or item.name == "Y,YYY"
    return item.text in "0123456789"


def _is_separator(char: str) -> bool:
    """Whether a character is printable and neither letter nor digit nor blank."""
    return "!" <= char <= "~" and not char.isalnum()


class _Reader:
    """Reads a text with a pattern; ``skipped`` is how many more characters were skipped in the text than in the
    pattern."""

    def __init__(self, text: str, strict: bool) -> None:
        self.text = text
        self.place = self.skipped = 0
        self.fixed = self.strict = strict
        self.found = Fields()

    def is_done(self) -> bool:
        return self.place >= len(self.text)

    def at(self) -> str:
        return self.text[self.place : self.place + 1]

    def blanks(self) -> None:
        """Skips blanks."""
        start = self.place
        while self.at() and self.at() in _BLANKS:
            self.place += 1
        self.skipped += self.place - start

    def between(self, item: Between, is_first: bool) -> None:
        """Matches one character of the pattern. Raises 22007 if a strict text has another one."""
        if self.strict and self.at() != item.text:
            what = "character" if item.quoted else "separator"
            raise SqlError("22007", f'unmatched format {what} "{item.text}"')
        if self.fixed:
            self.place += 1
            return
        if is_first:
            self.blanks()
        if not item.quoted and (item.text in _BLANKS or _is_separator(item.text)):
            self.skipped -= 1
            if self.at() and (self.at() in _BLANKS or _is_separator(self.at())):
                self.place += 1
                self.skipped += 1
        elif self.skipped > 0:
            self.skipped -= 1
        else:
            self.place += 1

    def word(self, word: Word, ends: bool) -> None:
        """Reads one field, with the blanks on both sides."""
        name = word.name
        if not self.fixed and name != "FX":
            self.blanks()
        self.convene(name)
        if name in _NUMBERS:
            number = _NUMBERS[name]
            start = self.place
            value = self.number(word, number.width, ends)
            number.keep(self, word, value, self.place - start)
            if word.ordinal and name not in ("TZH", "TZM"):
                self.place = min(self.place + 2, len(self.text))
        else:
            _OTHERS[name](self, word, ends)
        if not self.fixed:
            self.skipped = 0
            self.blanks()

    def convene(self, name: str) -> None:
        """Raises 22007 for a mixture of Gregorian and ISO week date fields."""
        convention = "week" if name in _OF_WEEKS else "" if name in _OF_ANY else "gregorian"
        if convention and self.found.convention not in ("", convention):
            hint = "Do not mix Gregorian and ISO week date conventions in a formatting template."
            raise SqlError("22007", "invalid combination of date conventions", hint=hint)
        self.found.convention = convention or self.found.convention

    def number(self, word: Word, width: int, ends: bool) -> int:
        """Reads an integer: of a number of bytes, or to the end of its digits (from_char_parse_int_len)."""
        start = self.place
        self.blanks()
        octets = self.text[self.place : self.place + width].encode()[:width]
        shown = octets.decode(errors="ignore")
        if ends or not word.fill:
            value, length = _integer(self.text[self.place :])
            self.place = self.place + length if length else start
        else:
            if len(octets) < width:
                detail = f"Field requires {width} characters, but only {len(octets)} remain."
                self.wrong(f'source string too short for "{word.text}" formatting field', detail, fixed=True)
            value, length = _integer(shown)
            if 0 < length < width:
                detail = f"Field requires {width} characters, but only {length} could be parsed."
                self.wrong(f'invalid value "{shown}" for "{word.text}"', detail, fixed=True)
            self.place += length
        if self.place == start:
            self.wrong(f'invalid value "{shown}" for "{word.text}"', "Value must be an integer.")
        if value not in _INTEGERS:
            detail = f"Value must be in the range {_INTEGERS[0]} to {_INTEGERS[-1]}."
            raise SqlError("22008", f'value for "{word.text}" in source string is out of range', detail)
        return value

    def wrong(self, message: str, detail: str, fixed: bool = False) -> NoReturn:
        """The error 22007."""
        hint = 'If your source string is not fixed-width, try using the "FM" modifier.' if fixed else None
        raise SqlError("22007", message, detail, hint)

    def name(self, word: Word, names: tuple[str, ...]) -> int:
        """The index of the first name with which the text continues (from_char_seq_search)."""
        rest = self.text[self.place :]
        for place, name in enumerate(names):
            if rest[: len(name)].lower() == name:
                self.place += len(name)
                return place
        end = min((at for at in map(rest.find, _ENDS) if at >= 0), default=len(rest))
        detail = "The given value did not match any of the allowed values for this field."
        self.wrong(f'invalid value "{rest[:end]}" for "{word.text}"', detail)

    def keep(self, field: str, value: int, word: Word) -> None:
        """Stores a field's value. Raises 22007 if the field has another value already."""
        if getattr(self.found, field) not in (0, value):
            detail = "This value contradicts a previous setting for the same field type."
            self.wrong(f'conflicting values for "{word.text}" field in formatting string', detail)
        setattr(self.found, field, value)


def _integer(text: str) -> tuple[int, int]:
    """The integer at the beginning of a text, and its length; 0 if there is none (strtol without blanks)."""
    end = 1 if text[:1] in ("+", "-") else 0
    signed = end
    while end < len(text) and text[end] in "0123456789":
        end += 1
    return (int(text[:end]), end) if end > signed else (0, 0)


# --- numbers ----------------------------------------------------------------------------------------------------------

#: Arguments: the reader, the word, the value, and the number of characters read.
Keep = Callable[[_Reader, Word, int, int], None]


class _Number(Struct, frozen=True):
    """A field of digits: its length if other digits follow, and what is done with its value."""

    width: int
    keep: Keep


def _plain(field: str) -> Keep:
    return lambda reader, word, value, length: reader.keep(field, value, word)


def _half(reader: _Reader, word: Word, value: int, length: int) -> None:
    reader.keep("hour", value, word)
    reader.found.on_12_hours = True


def _fraction(field: str, places: int, digits: int = 0) -> Keep:
    """The fraction of a second: 25 is 250 thousandths, 025 is 25."""

    def keep(reader: _Reader, word: Word, value: int, length: int) -> None:
        reader.found.digits = digits or reader.found.digits
        reader.keep(field, value, word)
        setattr(reader.found, field, value * 10 ** max(places - length, 0))

    return keep


def _short_year(digits: int) -> Keep:
    def keep(reader: _Reader, word: Word, value: int, length: int) -> None:
        reader.keep("year", value, word)
        reader.found.year = _of_this_time(value) if length < 4 else value
        reader.found.year_digits = digits

    return keep


def _of_this_time(year: int) -> int:
    """The year nearest to 2020 that ends with these digits (adjust_partial_year_to_2020)."""
    if year < 70:
        return year + 2000
    if year < 100:
        return year + 1900
    return year + (2000 if year < 520 else 1000 if year < 1000 else 0)


def _year(reader: _Reader, word: Word, value: int, length: int) -> None:
    reader.keep("year", value, word)
    reader.found.year_digits = 4


def _iso_day(reader: _Reader, word: Word, value: int, length: int) -> None:
    reader.keep("day_of_week", value, word)
    reader.found.day_of_week = 1 if value + 1 > 7 else value + 1


def _nothing(reader: _Reader, word: Word, value: int, length: int) -> None:
    """Ignores the value of a quarter."""


def _zone_minutes(reader: _Reader, word: Word, value: int, length: int) -> None:
    reader.found.east = reader.found.east or 1
    reader.keep("zone_minutes", value, word)


_NUMBERS: Final[Mapping[str, _Number]] = {
    **dict.fromkeys(("HH", "HH12"), _Number(2, _half)),
    "HH24": _Number(2, _plain("hour")),
    "MI": _Number(2, _plain("minute")),
    "SS": _Number(2, _plain("second")),
    "SSSS": _Number(4, _plain("second_of_day")),
    "SSSSS": _Number(5, _plain("second_of_day")),
    "MS": _Number(3, _fraction("millisecond", 3)),
    "US": _Number(6, _fraction("microsecond", 6)),
    **{f"FF{digits}": _Number(digits, _fraction("microsecond", 6, digits)) for digits in range(1, 7)},
    "TZM": _Number(2, _zone_minutes),
    "MM": _Number(2, _plain("month")),
    "DD": _Number(2, _plain("day")),
    "DDD": _Number(3, _plain("day_of_year")),
    "IDDD": _Number(3, _plain("day_of_year")),
    "D": _Number(1, _plain("day_of_week")),
    "ID": _Number(1, _iso_day),
    "WW": _Number(2, _plain("week")),
    "IW": _Number(2, _plain("week")),
    "W": _Number(1, _plain("week_of_month")),
    "Q": _Number(1, _nothing),
    "CC": _Number(2, _plain("century")),
    "J": _Number(1, _plain("julian")),
    **dict.fromkeys(("YYYY", "IYYY"), _Number(4, _year)),
    **dict.fromkeys(("YYY", "IYY"), _Number(3, _short_year(3))),
    **dict.fromkeys(("YY", "IY"), _Number(2, _short_year(2))),
    **dict.fromkeys(("Y", "I"), _Number(1, _short_year(1))),
}


# --- others -----------------------------------------------------------------------------------------------------------

#: Arguments: the reader, the word, and whether a non-digit must follow.
Other = Callable[[_Reader, Word, bool], None]


def _exactly(reader: _Reader, word: Word, ends: bool) -> None:
    reader.fixed = True


def _noon(names: tuple[str, str]) -> Other:
    def read(reader: _Reader, word: Word, ends: bool) -> None:
        reader.keep("afternoon", reader.name(word, names), word)
        reader.found.on_12_hours = True

    return read


def _era(names: tuple[str, str]) -> Other:
    return lambda reader, word, ends: reader.keep("before_christ", reader.name(word, names), word)


def _month(names: tuple[str, ...]) -> Other:
    return lambda reader, word, ends: reader.keep("month", reader.name(word, names) + 1, word)


def _roman_month(reader: _Reader, word: Word, ends: bool) -> None:
    reader.keep("month", 12 - reader.name(word, _ROMAN), word)


def _week_day(names: tuple[str, ...]) -> Other:
    def read(reader: _Reader, word: Word, ends: bool) -> None:
        reader.keep("day_of_week", reader.name(word, names), word)
        reader.found.day_of_week += 1

    return read


def _zone_hours(reader: _Reader, word: Word, ends: bool) -> None:
    """A minus may have been read as a separator."""
    if reader.at() in ("+", "-", " "):
        reader.found.east = -1 if reader.at() == "-" else 1
        reader.place += 1
    else:
        is_minus = reader.skipped > 0 and reader.text[reader.place - 1] == "-"
        reader.found.east = -1 if is_minus else 1
    reader.keep("zone_hours", reader.number(word, 2, ends), word)


def _grouped_year(reader: _Reader, word: Word, ends: bool) -> None:
    """A year with a comma, 2,024: thousands, and up to three digits after the comma."""
    reader.blanks()
    millennia, length = _integer(reader.text[reader.place :])
    comma = reader.place + length
    rest = reader.text[comma + 1 :]
    gap = len(rest) - len(rest.lstrip(_BLANKS))
    years, more = _integer(rest[gap : gap + 3])
    if not length or reader.text[comma : comma + 1] != "," or not more:
        raise SqlError("22007", 'invalid input string for "Y,YYY"')
    reader.keep("year", years + millennia * 1000, word)
    reader.found.year_digits = 4
    reader.place = comma + 1 + gap + more
    if word.ordinal:
        reader.place = min(reader.place + 2, len(reader.text))


def _unread(reader: _Reader, word: Word, ends: bool) -> None:
    raise SqlError("0A000", f'formatting field "{word.text}" is only supported in to_char')


_OTHERS: Final[Mapping[str, Other]] = {
    "FX": _exactly,
    **dict.fromkeys(("A.M.", "P.M."), _noon(("a.m.", "p.m."))),
    **dict.fromkeys(("AM", "PM"), _noon(("am", "pm"))),
    **dict.fromkeys(("A.D.", "B.C."), _era(("a.d.", "b.c."))),
    **dict.fromkeys(("AD", "BC"), _era(("ad", "bc"))),
    "MONTH": _month(_YEAR),
    "MON": _month(_SHORT_YEAR),
    "RM": _roman_month,
    "DAY": _week_day(_WEEK),
    "DY": _week_day(_SHORT_WEEK),
    "TZH": _zone_hours,
    "Y,YYY": _grouped_year,
    **dict.fromkeys(("TZ", "OF"), _unread),
}
_OF_WEEKS: Final = frozenset(("IDDD", "ID", "IW", "IYYY", "IYY", "IY", "I"))
_OF_ZONES: Final = frozenset(("TZH", "TZM", "TZ", "OF"))
_OF_CLOCKS: Final = frozenset(
    (
        *("A.M.", "P.M.", "AM", "PM", "HH", "HH12", "HH24", "MI", "SS", "SSSS", "SSSSS", "MS", "US"),
        *("FF1", "FF2", "FF3", "FF4", "FF5", "FF6"),
    )
)
#: Separators in strict patterns.
_STRICT_SEPARATORS: Final = "-./,':; "
#: Fields that belong to no kind of date.
_OF_ANY: Final = frozenset(
    (
        *("FX", "A.M.", "P.M.", "AM", "PM", "A.D.", "B.C.", "AD", "BC", "HH", "HH12", "HH24", "MI", "SS", "SSSS"),
        *("SSSSS", "MS", "US", "FF1", "FF2", "FF3", "FF4", "FF5", "FF6", "TZ", "OF", "TZH", "TZM", "DAY", "DY"),
        *("Q", "CC", "J"),
    )
)
