"""The moments that PostgreSQL's date and time texts mean.

Owns: the combination of a text's fields (DecodeDateTime, DecodeTimeOnly), in the steps of PostgreSQL 15's datetime.c,
since its cases decide what a text means and which error it raises. ``time_fields`` splits a text, and ``timestamps``
makes values of moments. Words that depend on the current time raise 0A000.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import date, datetime, timedelta, tzinfo
from typing import Final

from msgspec import Struct

from catalog.values.errors import SqlError, unsupported
from catalog.values.times.time_fields import (
    DMY,
    ENDLESS,
    LABELS,
    MONTHS,
    RELATIVE,
    WEEK_DAYS,
    YMD,
    DateOverflow,
    Field,
    Malformed,
    Overflow,
    fields_of,
)
from catalog.values.times.zone_texts import Zone, east_of, zone_named
from catalog.values.times.zones import abbreviations, find_zone

_INT: Final = 2**31 - 1
_DAY: Final = 86_400_000_000
_SECOND: Final = 1_000_000
_JULIAN_EPOCH: Final = 1_721_425  # the Julian day of ordinal 0
_LENGTHS: Final = (31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)
_DATE: Final = frozenset(("year", "month", "day"))
_SECONDS: Final = frozenset(("second", "fraction"))
_TIME: Final = frozenset(("hour", "minute")) | _SECONDS
_ZONE: Final = frozenset(("zone",))
_NOTHING: Final[frozenset[str]] = frozenset()
_ISO: Final = re.compile(r"\d{4}-\d\d-\d\d(?: \d\d:\d\d:\d\d(?:\.\d{3}|\.\d{6})?)?", re.ASCII)
_DAY_LENGTH: Final = len("2000-01-01")


class Moment(Struct):
    """The content of a text. A year BC is 0 or less; ``word`` is the whole text if it is one of ENDLESS."""

    year: int = 0
    month: int = 0
    day: int = 0
    microseconds: int = 0
    has_date: bool = False
    has_time: bool = False
    zone: Zone | None = None
    word: str | None = None


def decode(text: str, order: str, is_time: bool) -> Moment:
    """The moment in a text; with ``is_time`` only the time of day is required. Raises the errors above, 22023 for an
    unknown zone, and 0A000."""
    plain = None if is_time else _plain(text)
    if plain is not None:
        return plain
    reader = _Reader(fields_of(text.lower()), order, is_time)
    reader.read()
    return reader.result()


def _plain(text: str) -> Moment | None:
    """The moment in a text in DateStyle's ISO form, which means the same in every order; None for other texts."""
    if _ISO.fullmatch(text) is None:
        return None
    try:
        found = datetime.fromisoformat(text)
    except ValueError:  # a day that the month lacks, or 24:00:00
        return None
    since = found - datetime(found.year, found.month, found.day)
    microseconds = since.seconds * 1_000_000 + since.microseconds
    return Moment(found.year, found.month, found.day, microseconds, has_date=True, has_time=len(text) > _DAY_LENGTH)


def _integer(digits: str) -> int:
    value = int(digits)
    if value > _INT:
        raise Overflow
    return value


def _fraction(text: str) -> int:
    """The microseconds of a second's fraction, which begins with a point."""
    return round(float(f"0{text}0") * _SECOND)


class _Reader:
    """Combines a text's fields to a moment; ``seen`` are the parts that are known (fmask)."""

    def __init__(self, fields: list[Field], order: str, is_time: bool) -> None:
        self.fields, self.order, self.is_time = fields, order, is_time
        self.seen: frozenset[str] = frozenset()
        self.parts: dict[str, int] = dict.fromkeys((*_DATE, *_TIME, "day_of_year"), 0)
        self.label = ""  # the meaning of the next field according to the one before it (ptype)
        self.is_short_year = self.is_julian = self.is_before_christ = self.has_month_name = False
        self.half: str | None = None
        self.zone: timedelta | None = None
        self.named: tzinfo | None = None
        self.word: str | None = None

    def read(self) -> None:
        """Reads all fields. Raises ``Malformed`` if a part occurs twice."""
        for place, field in enumerate(self.fields):
            added = _READ[field.kind](self, place, field.text)
            if added & self.seen:
                raise Malformed
            self.seen |= added

    # Kinds of fields: each method returns the parts that it adds (tmask).

    def date(self, place: int, text: str) -> frozenset[str]:
        if self.is_time:
            return self._date_of_time(place, text)
        if self.label == "julian":
            digits = re.match(r"\d*", text)
            assert digits is not None
            self._julian(_integer(digits[0] or "0"))
            self.zone, self.label = east_of(text[digits.end() :]), ""
            return _DATE | _TIME | _ZONE
        if not self.label and not {"month", "day"} <= self.seen:
            return self._date(text)
        if not self.label and not text[0].isdigit():
            return self._named_zone(text)
        if self.label not in ("", "time"):
            raise Malformed
        self.label = ""
        return self._time_and_zone(text, self.seen)

    def _date_of_time(self, place: int, text: str) -> frozenset[str]:
        fields = self.fields
        if place == 0 and len(fields) > 1 and (fields[-1].kind == "date" or fields[1].kind == "time"):
            return self._date(text)
        return self._time_and_zone(text, self.seen | _DATE) if text[0].isdigit() else self._named_zone(text)

    def _time_and_zone(self, text: str, seen: frozenset[str]) -> frozenset[str]:
        """Reads hhmmss-zz."""
        time, minus, rest = text.partition("-")
        if self.seen >= _TIME or not minus:
            raise Malformed
        self.zone = east_of(minus + rest)
        return self._run_together(time, seen) | _ZONE

    def _named_zone(self, text: str) -> frozenset[str]:
        found = zone_named(text)
        if found is None:
            raise SqlError("22023", f'time zone "{text}" not recognized')
        self._take(found)
        return _ZONE

    def _take(self, zone: Zone) -> None:
        if isinstance(zone, timedelta):
            self.zone = zone
        else:
            self.named = zone

    def time(self, place: int, text: str) -> frozenset[str]:
        if self.label not in ("", "time"):
            if not self.is_time:
                raise Malformed
        elif self.label:
            self.label = ""
        match = re.fullmatch(r"(\d+):(\d*)(?::(\d*))?([.]\d*)?", text, re.ASCII)
        if match is None:
            raise Malformed
        hour, minute, second = (_integer(digits or "0") for digits in match.group(1, 2, 3))
        below = _fraction(match[4]) if match[4] else 0
        if match[3] is None and match[4] is not None:  # minutes and seconds
            hour, minute, second = 0, hour, minute
        if minute > 59 or second > 60:
            raise Overflow
        self.parts |= {"hour": hour, "minute": minute, "second": second, "fraction": below}
        if not self.is_time:
            self._check_clock()
        return _TIME

    def offset(self, place: int, text: str) -> frozenset[str]:
        self.zone = east_of(text)
        return _ZONE

    def number(self, place: int, text: str) -> frozenset[str]:
        if self.label:
            return self._labelled(text)
        whole, point, _ = text.partition(".")
        if self.is_time:
            return self._number_of_time(place, text)
        if point and not self.seen & _DATE:
            return self._date(text)
        if point and len(whole) > 2:
            return self._run_together(text, self.seen)
        if not point and len(text) >= 6 and not (self.seen & _DATE and self.seen & _TIME):
            return self._run_together(text, self.seen)
        return self._number(text, self.has_month_name, self.seen)

    def _number_of_time(self, place: int, text: str) -> frozenset[str]:
        whole, point, _ = text.partition(".")
        if point:
            if place == 0 and len(self.fields) > 1 and self.fields[-1].kind == "date":
                return self._date(text)
            if len(whole) <= 2:
                raise Malformed
            return self._run_together(text, self.seen | _DATE)
        if len(text) > 4:
            return self._run_together(text, self.seen | _DATE)
        return self._number(text, False, self.seen | _DATE)

    def _labelled(self, text: str) -> frozenset[str]:
        """Reads a number after its label."""
        label, self.label = self.label, ""
        whole, point, rest = text.partition(".")
        value = _integer(whole or "0")
        if point and label not in ("julian", "time", "second"):
            raise Malformed
        match label:
            case "month" if {"month", "hour"} <= self.seen:  # if a month and an hour are known
                self.parts["minute"] = value
                return frozenset(("minute",))
            case "year" | "month" | "day" | "hour" | "minute":
                self.parts[label] = value
                return frozenset((label,))
            case "second":
                self.parts |= {"second": value, "fraction": _fraction(point + rest) if point else 0}
                return _SECONDS if point else frozenset(("second",))
            case "julian":
                self._julian(value)
                if not point:
                    return _DATE
                self._put_clock(int(float(f"0.{rest}0") * _DAY))
                return _DATE | _TIME
            case "time":
                added = self._run_together(text, self.seen | _DATE)
                if added != _TIME:
                    raise Malformed
                return added
            case _:
                raise Malformed

    def spoken(self, place: int, text: str) -> frozenset[str]:
        """Reads a word, with or without a sign."""
        known = abbreviations().get(text)
        if known is not None:
            if known.east is not None:
                self.zone = known.east
                return _ZONE | {"summer"} if known.is_summer else _ZONE
            self.named = find_zone(text)
            return _ZONE | {"abbreviation"}
        if text in ("at", "on"):
            return _NOTHING
        if text in MONTHS:
            return self._month_name(text)
        if text in WEEK_DAYS and not self.is_time:
            return frozenset(("week_day",))
        if text in LABELS or text == "t":
            return self._next_is(place, "time" if text == "t" else LABELS[text])
        return self._other_word(text)

    def _other_word(self, text: str) -> frozenset[str]:
        match text:
            case "am" | "pm":
                self.half = text
                return frozenset(("half",))
            case "ad" | "bc":
                self.is_before_christ = text == "bc"
                return frozenset(("era",))
            case "allballs":
                self.zone = timedelta()
                return _TIME | _ZONE
            case "dst":
                self.zone = (self.zone or timedelta()) + timedelta(hours=1)
                return frozenset(("summer", "modifier"))
            case _ if text in RELATIVE:
                raise unsupported(f"'{text}' as a part of a date", "Use now() or current_date.")
            case _ if text in ENDLESS and not self.is_time:
                self.word = text
                return frozenset(("word",))
        found = zone_named(text)
        if found is None or text in WEEK_DAYS or text in ENDLESS:
            raise Malformed
        self._take(found)
        return _ZONE

    def _month_name(self, text: str) -> frozenset[str]:
        if self.is_time:
            raise Malformed
        added = frozenset(("month",))
        is_first = not self.has_month_name and self.seen & {"month", "day"} == {"month"}
        if is_first and 1 <= self.parts["month"] <= 31:  # the number was the day
            self.parts["day"] = self.parts["month"]
            added = frozenset(("day",))
        self.has_month_name = True
        self.parts["month"] = MONTHS[text]
        return added

    def _next_is(self, place: int, label: str) -> frozenset[str]:
        """The next field is the number of a label, or the time after T."""
        if label == "time":
            after = self.fields[place + 1].kind if place + 1 < len(self.fields) else ""
            if (not self.is_time and not self.seen >= _DATE) or after not in ("number", "time", "date"):
                raise Malformed
        self.label = label
        return _NOTHING

    # Parts of fields

    def _date(self, text: str) -> frozenset[str]:
        """Reads a date with separators (DecodeDate). Any character after a part is its separator."""
        parts: list[str] = []
        while text:
            text = text.lstrip("+-/_.:")
            match = re.match(r"\d+|[a-z]+", text)
            if match is None:
                raise Malformed
            parts.append(match[0])
            text = text[match.end() + 1 :]
        seen, added, is_named = self.seen, set[str](), False
        for name in filter(str.isalpha, parts):
            if name not in MONTHS or "month" in seen:
                raise Malformed
            self.parts["month"], is_named = MONTHS[name], True
            seen |= {"month"}
            added.add("month")
        for digits in filter(str.isdigit, parts):
            found = self._number(digits, is_named, seen)
            if found & seen:
                raise Malformed
            seen |= found
            added |= found
        if seen - {"day_of_year", "zone"} != _DATE:
            raise Malformed
        return frozenset(added)

    def _number(self, text: str, is_named: bool, seen: frozenset[str]) -> frozenset[str]:
        """Reads the next number of a date; the known parts and the order decide which part it is (DecodeNumber)."""
        whole, point, rest = text.partition(".")
        value = _integer(whole or "0")
        if point and len(whole) > 2:
            return self._run_together(text, seen | _DATE)
        if point:
            self.parts["fraction"] = _fraction(point + rest)
        known = seen & _DATE
        if len(text) == 3 and known == {"year"} and 1 <= value <= 366:
            self.parts["day_of_year"] = value
            return frozenset(("day_of_year", "month", "day"))
        if known == _DATE:
            return self._run_together(text, seen)
        part = self._next_part(known, len(text), is_named)
        if part == "wrong day":  # the first number was not the year
            self.parts |= {"day": self.parts["year"], "year": value}
            self.is_short_year = False
            return frozenset(("day",))
        self.parts[part] = value
        if part == "year":
            self.is_short_year = len(text) <= 2
        return frozenset((part,))

    def _next_part(self, known: frozenset[str], length: int, is_named: bool) -> str:
        by_order = {YMD: "year", DMY: "day"}.get(self.order, "month")
        match sorted(known):
            case []:
                return "year" if length >= 3 else by_order
            case ["year"] | ["day"]:
                return "month"
            case ["month"] if is_named and (length >= 3 or self.order == YMD):
                return "year"
            case ["month", "year"] if is_named and length >= 3 and self.is_short_year:
                return "wrong day"
            case ["month"] | ["month", "year"]:
                return "day"
            case ["day", "month"]:
                return "year"
            case _:
                raise Malformed

    def _run_together(self, text: str, seen: frozenset[str]) -> frozenset[str]:
        """Reads yyyymmdd, hhmmss or hhmm (DecodeNumberField)."""
        whole, point, rest = text.partition(".")
        if point:
            self.parts["fraction"] = _fraction(point + rest)
        elif not seen >= _DATE and len(whole) >= 6:
            year = whole[:-4]
            self.parts |= {"year": min(int(year), _INT), "month": int(whole[-4:-2]), "day": int(whole[-2:])}
            self.is_short_year = self.is_short_year or len(year) == 2
            return _DATE
        if not seen >= _TIME and len(whole) in (4, 6):
            padded = whole.ljust(6, "0")
            hour, minute, second = (int(padded[at : at + 2]) for at in (0, 2, 4))
            self.parts |= {"hour": hour, "minute": minute, "second": second}
            return _TIME
        raise Malformed

    def _julian(self, number: int) -> None:
        self.is_julian = True
        self._put_ordinal(number - _JULIAN_EPOCH)

    def _put_ordinal(self, ordinal: int) -> None:
        if not 1 <= ordinal <= date.max.toordinal():
            raise unsupported("a date before Christ or beyond the year 9999")
        found = date.fromordinal(ordinal)
        self.parts |= {"year": found.year, "month": found.month, "day": found.day}

    def _put_clock(self, microseconds: int) -> None:
        seconds, below = divmod(microseconds, _SECOND)
        minutes, second = divmod(seconds, 60)
        hour, minute = divmod(minutes, 60)
        self.parts |= {"hour": hour, "minute": minute, "second": second, "fraction": below}

    # The end

    def result(self) -> Moment:
        """The moment, checked except for its type's range."""
        if self.word is not None:
            return Moment(word=self.word)
        self._check_date()
        self._apply_half()
        if self.is_time:
            self._check_clock()
        has_date, has_time = self.seen >= _DATE, self.seen >= _TIME
        if not (has_time if self.is_time else has_date):
            raise Malformed
        if "modifier" in self.seen and ("zone" not in self.seen or self.named is not None):
            raise Malformed
        needs_date = self.named is not None and self.named.utcoffset(None) is None and "abbreviation" not in self.seen
        if needs_date and self.is_time and not has_date:
            raise Malformed
        parts = self.parts
        return Moment(
            parts["year"], parts["month"], parts["day"], self._clock(), has_date, has_time, self.named or self.zone
        )

    def _clock(self) -> int:
        parts = self.parts
        return ((parts["hour"] * 60 + parts["minute"]) * 60 + parts["second"]) * _SECOND + parts["fraction"]

    def _check_clock(self) -> None:
        """Raises ``Overflow`` for a time after the end of the day (time_overflows)."""
        parts = self.parts
        if parts["hour"] > 24 or parts["minute"] > 59 or parts["second"] > 60 or self._clock() > _DAY:
            raise Overflow

    def _check_date(self) -> None:
        """ValidateDate."""
        parts, seen = self.parts, self.seen
        if "year" in seen and not self.is_julian:
            if self.is_before_christ:
                if parts["year"] <= 0:
                    raise Overflow
                parts["year"] = 1 - parts["year"]
            elif self.is_short_year:
                parts["year"] += 2000 if parts["year"] < 70 else 1900 if parts["year"] < 100 else 0
            elif parts["year"] <= 0:
                raise Overflow
        if "day_of_year" in seen:
            if not 1 <= parts["year"] <= date.max.year:
                raise unsupported("the day of a year before Christ or beyond 9999")
            self._put_ordinal(date(parts["year"], 1, 1).toordinal() + parts["day_of_year"] - 1)
        if "month" in seen and not 1 <= parts["month"] <= 12:
            raise DateOverflow
        if "day" in seen and not 1 <= parts["day"] <= 31:
            raise DateOverflow
        if seen >= _DATE and parts["day"] > _length(parts["year"], parts["month"]):
            raise Overflow

    def _apply_half(self) -> None:
        """Applies AM or PM."""
        if self.half is None:
            return
        if self.parts["hour"] > 12:
            raise Overflow
        self.parts["hour"] = self.parts["hour"] % 12 + (12 if self.half == "pm" else 0)


def _length(year: int, month: int) -> int:
    """The number of days of a month."""
    is_leap = year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
    return _LENGTHS[month - 1] + (month == 2 and is_leap)


_READ: Final[dict[str, Callable[[_Reader, int, str], frozenset[str]]]] = {
    "time": _Reader.time,
    "date": _Reader.date,
    "number": _Reader.number,
    "word": _Reader.spoken,
    "signed": _Reader.spoken,
    "offset": _Reader.offset,
}
