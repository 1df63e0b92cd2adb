"""Times of day with a zone (timetz), each carried as one number that sorts as PostgreSQL's timetz_cmp() does.

Owns: the number and its parts, as plain arithmetic that takes integers and numpy's vectors alike. Two times are
compared by the instant that they mean, then by their zones:

    number  =  (microseconds + west * 1,000,000 + one day) * 2^18  +  west + 2^17

where ``west`` are the zone's seconds west of Greenwich, less than 16 hours either way; so a number is never negative.
"""

from __future__ import annotations

from typing import Any, Final

DAY: Final = 86_400_000_000
_SECOND: Final = 1_000_000
_WIDTH: Final = 18
_MIDDLE: Final = 1 << _WIDTH - 1
#: The limit, in seconds, of a zone's distance from Greenwich (TZDISP_LIMIT); it must be less.
LIMIT: Final = 16 * 3600


def packed(microseconds: Any, west: Any) -> Any:
    """The number of a time of day and its zone."""
    return (microseconds + west * _SECOND + DAY << _WIDTH) + west + _MIDDLE


def unpacked(number: Any) -> tuple[Any, Any]:
    """The microseconds since midnight, at most a day, and the zone's seconds west."""
    west = (number & (1 << _WIDTH) - 1) - _MIDDLE
    return (number >> _WIDTH) - DAY - west * _SECOND, west


def offset_text(east: int) -> str:
    """An offset in seconds east of Greenwich as PostgreSQL writes it: ``+02``, ``-03:30``."""
    sign, rest = "-" if east < 0 else "+", abs(east)
    text = f"{sign}{rest // 3600:02}"
    if rest % 3600:
        text += f":{rest // 60 % 60:02}"
    return f"{text}:{rest % 60:02}" if rest % 60 else text


def written(number: int) -> str:
    """The output of timetz_out."""
    microseconds, west = unpacked(number)
    seconds, fraction = divmod(microseconds, _SECOND)
    clock = f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}"
    return clock + (f".{fraction:06}".rstrip("0") if fraction else "") + offset_text(-west)
