"""Which equal values are one value: no expression tells them apart, and their representations are the same.

Others are equal and look different: documents and intervals (``1`` and ``1.0``, a day and 24 hours), numerics without
declared decimals, zeros of doubles, chars with other blanks.
"""

from __future__ import annotations

from typing import Final

from catalog.values.types import SqlType

_ONE: Final = frozenset(
    (
        *("bool", "int2", "int4", "int8", "oid", "text", "varchar", "name", "bytea", "uuid", "enum"),
        *("date", "time", "timestamp", "timestamptz"),
    )
)


def equals_are_one(kind: SqlType) -> bool:
    """Whether equal values of a type are one."""
    return kind.name in _ONE or (kind.name == "numeric" and not kind.is_loose)
