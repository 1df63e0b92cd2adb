"""How values are shown as text: the session's time zone and IntervalStyle in one word, which every codec is handed.

Owns: that word: the zone's name, and behind a blank the style of intervals where it is not ``postgres``.
"""

from __future__ import annotations

from typing import Final

ISO_8601: Final = "iso_8601"
VERBOSE: Final = "postgres_verbose"
_USUAL: Final = "postgres"


def style(time_zone: str, intervals: str) -> str:
    """The word of a session's settings."""
    return time_zone if intervals == _USUAL else f"{time_zone} {intervals}"


def zone_of(word: str) -> str:
    """The time zone."""
    return word.partition(" ")[0]


def intervals_of(word: str) -> str:
    """The style of intervals."""
    return word.partition(" ")[2] or _USUAL
