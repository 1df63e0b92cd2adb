"""Infinite dates and timestamps, which tables have and the rest has not.

Owns: what refuses them. Spark has no infinite dates, and an infinite event time would end every window: so streams take
none, nor does a continuous view of the tables that it reads.
"""

from __future__ import annotations

from collections.abc import Iterable

import pyarrow as pa
import pyarrow.compute as pc

from catalog.errors import unsupported
from catalog.moments import INFINITE_DAYS, INFINITE_MICROSECONDS
from catalog.types import SqlType

_HINT = "Use NULL or a far date."


def require_finite(batches: Iterable[pa.RecordBatch], where: str) -> None:
    """Raises 0A000 for an infinite date or timestamp anywhere in the rows; ``where`` they are."""
    for batch in batches:
        if any(map(_has_infinite, batch.columns)):
            raise unsupported(f"an infinite date or timestamp in {where}", _HINT)


def _has_infinite(column: pa.Array) -> bool:
    kind = column.type
    if pa.types.is_list(kind):
        return _has_infinite(column.flatten())
    if pa.types.is_struct(kind):
        return any(map(_has_infinite, column.flatten()))
    if pa.types.is_date32(kind):
        return _reaches(column.view(pa.int32()), INFINITE_DAYS)
    return pa.types.is_timestamp(kind) and _reaches(column.view(pa.int64()), INFINITE_MICROSECONDS)


def _reaches(counts: pa.Array, most: int) -> bool:
    least, greatest = (item.as_py() for item in pc.call_function("min_max", [counts]).values())
    return bool(greatest == most or least == -most)


def require_finite_values(values: Iterable[object], where: str) -> None:
    """The same of dates and timestamps as parameters have them."""
    if any(map(_is_infinite, values)):
        raise unsupported(f"an infinite date or timestamp in {where}", _HINT)


def _is_infinite(value: object) -> bool:
    return any(map(_is_infinite, value)) if isinstance(value, tuple) else isinstance(value, float)


def is_moment(kind: SqlType) -> bool:
    """Whether a type's values may be infinite in time."""
    return kind.name in ("date", "timestamp", "timestamptz")
