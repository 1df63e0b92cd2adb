"""The fields that a modifier of type interval names, such as YEAR TO MONTH, as a set of bits.

Owns: the bits (INTERVAL_MASK of PostgreSQL's utils/timestamp.h), the smallest field of a set, and its text.
"""

from __future__ import annotations

from typing import Final

#: The fields in the typmod's range (utils/timestamp.h, INTERVAL_MASK), smallest last, each with its unit.
_MASKS: Final = (
    (1 << 2, "year"),
    (1 << 1, "month"),
    (1 << 3, "day"),
    (1 << 10, "hour"),
    (1 << 11, "minute"),
    (1 << 12, "second"),
)
FULL_RANGE: Final = 0x7FFF
#: The fields that a type's modifier may name, other than all: one field, or the fields from one to a smaller one.
FIELD_RANGES: Final = tuple(
    sum(mask for mask, _ in _MASKS[first : last + 1])
    for block in (range(2), range(2, 6))
    for first in block
    for last in range(first, block.stop)
)


def smallest_of(fields: int) -> str:
    """The smallest field that a type's modifier names."""
    return "second" if fields == FULL_RANGE else [unit for mask, unit in _MASKS if fields & mask][-1]


def fields_text(fields: int) -> str:
    """The fields of a type's modifier as written after the type's name: ``year to month``."""
    units = [] if fields == FULL_RANGE else [unit for mask, unit in _MASKS if fields & mask]
    return " to ".join(dict.fromkeys((units[0], units[-1]))) if units else ""
