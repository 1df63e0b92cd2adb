"""Sizes with a unit, as pg_size_bytes() reads them (dbsize.c)."""

from __future__ import annotations

import re
from decimal import ROUND_HALF_UP, Decimal
from typing import Final

from catalog.values.errors import SqlError, out_of_range

_SIZE: Final = re.compile(
    r"[ \t\n\v\f\r]*([+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?)[ \t\n\v\f\r]*(.*?)[ \t\n\v\f\r]*\Z",
    re.ASCII | re.DOTALL,
)
_UNITS: Final = ("bytes", "kb", "mb", "gb", "tb", "pb")
_HINT: Final = 'Valid units are "bytes", "kB", "MB", "GB", "TB", and "PB".'


def read_size(text: str) -> int:
    """A size in bytes. Raises 22023, and 22003 if it exceeds a bigint."""
    found = _SIZE.match(text)
    if found is None:
        raise SqlError("22023", f'invalid size: "{text}"')
    unit = found[2].lower()
    if unit and unit not in _UNITS:
        detail = f'Invalid size unit: "{found[2]}".'
        raise SqlError("22023", f'invalid size: "{text}"', detail=detail, hint=_HINT)
    power = _UNITS.index(unit) if unit in _UNITS else 0
    size = int((Decimal(found[1]) * 1024**power).to_integral_value(ROUND_HALF_UP))
    if not -(1 << 63) <= size < 1 << 63:
        raise out_of_range("bigint out of range")
    return size
