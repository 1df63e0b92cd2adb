"""Oids of objects that the catalog does not number, such as indexes, constraints, and the types of tables' rows.

Owns: numbers that are the same after each start because they are computed from the names of a relation's parts. They
are above the oids that objects are given in sequence.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Final
from zlib import crc32

FIRST_PART: Final = 1 << 31
FIRST_ROW: Final = 1 << 30


@lru_cache(1 << 14)
def part_oid(owner: int, kind: str, name: str = "") -> int:
    """The oid of a part of a relation: an index, a constraint, a default, or the type of its rows."""
    return FIRST_PART | (crc32(f"{owner} {kind} {name}".encode()) & (FIRST_PART - 1))


def row_oid(owner: int) -> int:
    """The oid of the type of a relation's rows. It is odd; the one before it belongs to the array type.

    (Some clients write the oids of types as signed numbers, so these are below the other computed oids.)
    """
    return FIRST_ROW + 2 * owner + 1
