"""How values are shown and read as text: one string, passed to every codec, of the session's time zone, IntervalStyle,
DateStyle, bytea_output, client_encoding and extra_float_digits.

Owns: the form of that string: the zone's name; then, if one of the others is not the default, the interval style, the
date style, the order in which dates are read, the form of bytea, the client's encoding and the extra float digits,
separated by blanks.
"""

from __future__ import annotations

from typing import Final

from catalog.values.encodings import UTF8
from catalog.values.times.time_fields import MDY

ISO_8601: Final = "iso_8601"
SQL_STANDARD: Final = "sql_standard"
VERBOSE: Final = "postgres_verbose"
#: DateStyle's output styles, as SHOW writes them.
ISO, SQL, POSTGRES, GERMAN = "ISO", "SQL", "Postgres", "German"
#: The forms that bytea_output may name.
HEX, ESCAPE = "hex", "escape"
#: The least extra_float_digits with which floats are shown in the fewest digits that identify them.
SHORTEST: Final = 1
_USUAL: Final = ("postgres", ISO, MDY, HEX, UTF8, str(SHORTEST))


def style(
    time_zone: str,
    intervals: str,
    dates: str = f"{ISO}, {MDY}",
    octets: str = HEX,
    encoding: str = UTF8,
    digits: int = SHORTEST,
) -> str:
    """The string for a session's settings."""
    others = (intervals, *dates.split(", "), octets, encoding, str(min(digits, SHORTEST)))
    return time_zone if others == _USUAL else " ".join((time_zone, *others))


def zone_of(word: str) -> str:
    """The time zone."""
    return word.partition(" ")[0]


def intervals_of(word: str) -> str:
    """The style of intervals."""
    return _other(word, 0)


def dates_of(word: str) -> str:
    """The style of dates and timestamps."""
    return _other(word, 1)


def order_of(word: str) -> str:
    """The order in which a date's numbers are read; some styles also show them in this order."""
    return _other(word, 2)


def octets_of(word: str) -> str:
    """The output form of bytea."""
    return _other(word, 3)


def encoding_of(word: str) -> str:
    """The client's encoding."""
    return _other(word, 4) if " " in word else UTF8


def digits_of(word: str) -> int:
    """How many digits a float shows beyond those that are always exact; ``SHORTEST`` for the fewest that identify the
    float."""
    return int(_other(word, 5))


def _other(word: str, place: int) -> str:
    _, *others = word.split(" ")
    return (others or _USUAL)[place]
