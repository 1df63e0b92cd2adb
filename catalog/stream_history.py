"""The option ``history`` of a stream: how long its rows are kept.

    all          for ever
    7 days       for so long after they have arrived, at least
    10 GB        the newest rows, in at least so many bytes of files

Owns: the option's text and what it means. The files are ``executor.traces.history``'s.
"""

from __future__ import annotations

import re
from typing import Final

from msgspec import Struct

from catalog.values.errors import SqlError, unsupported
from catalog.values.identifiers import quote_name
from catalog.values.times.intervals import parse_interval

_UNITS: Final = {"b": 0, "kb": 10, "mb": 20, "gb": 30, "tb": 40}
_SIZE: Final = re.compile(r"(\d{1,18})\s*(b|kb|mb|gb|tb)", re.IGNORECASE)
_DAY: Final = 86_400_000_000
_HINT: Final = "Write 'all', an interval ('7 days') or a size ('10 GB')."


class HistoryBound(Struct, frozen=True):
    """What is kept at least: rows that arrived within ``age`` microseconds, and the newest ``size`` bytes of files. All
    rows are kept where both are None."""

    age: int | None = None
    size: int | None = None


def history_bound(text: str) -> HistoryBound:
    """The meaning of the option's value. Raises 22023, and 0A000 for months, which have no fixed length."""
    if text.strip().lower() == "all":
        return HistoryBound()
    size = _SIZE.fullmatch(text.strip())
    if size is not None:
        return HistoryBound(size=int(size[1]) << _UNITS[size[2].lower()])
    try:
        months, days, microseconds = parse_interval(text)
    except SqlError:
        raise _invalid(text) from None
    if months:
        raise unsupported("a stream's history of months or years", "Use days and shorter units.")
    age = days * _DAY + microseconds
    if age < 0:
        raise _invalid(text)
    return HistoryBound(age=age)


def _invalid(text: str) -> SqlError:
    return SqlError("22023", f'invalid value for option "history": "{text}"', hint=_HINT)


def no_history(stream: str, position: int | None) -> SqlError:
    """The error 55000 for the history of a stream that has none."""
    hint = f"Keep its rows from now on: ALTER FOREIGN TABLE {quote_name(stream)} OPTIONS (ADD history 'all')."
    return SqlError("55000", f'stream "{stream}" has no history', hint=hint, position=position)
