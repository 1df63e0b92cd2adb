"""The oids of what has none of its own in our catalog, such as an index, a constraint, or the type of a table's rows.

Owns: numbers that stay the same over restarts because they follow from the names of a relation's parts. They lie above
those that objects are given in order.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Final
from zlib import crc32

FIRST_PART: Final = 1 << 31
FIRST_ROW: Final = 1 << 30


@lru_cache(1 << 14)
def part_oid(owner: int, kind: str, name: str = "") -> int:
    """The oid of a part of a relation: an index, a constraint, a default, its rows' type."""
    return FIRST_PART | (crc32(f"{owner} {kind} {name}".encode()) & (FIRST_PART - 1))


def row_oid(owner: int) -> int:
    """The oid of the type of a relation's rows: odd, and the one before it is that of their arrays. (Clients that write
    oids as signed numbers do so of types only, so that these are below the others.)
    """
    return FIRST_ROW + 2 * owner + 1
