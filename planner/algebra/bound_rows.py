"""The leaf of a relation for rows that come with a statement, such as those of INSERT ... VALUES.

Owns the names of such leaves; the executor binds rows to a name.
"""

from __future__ import annotations

from planner.algebra.nodes import Column, Snapshot


def bound(row: tuple[Column, ...], prefix: str = "__rows") -> Snapshot:
    """Rows bound as a leaf, named by its types: an input of another shape under one name would cost all prepared
    statements."""
    shape = hash(tuple(column.type.arrow for column in row)) & 0xFFFF_FFFF
    return Snapshot(f"{prefix}{shape:x}", row, tuple(map(str, range(len(row)))))
