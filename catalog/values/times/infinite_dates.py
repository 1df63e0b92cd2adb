"""Infinite dates and timestamps, which only tables can hold.

Owns: their refusal elsewhere. Spark has no infinite dates, and an infinite event time would end every window: so
streams refuse them, and so do continuous views that read tables.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import numpy as np
import pyarrow as pa

from catalog.values.errors import unsupported
from catalog.values.times.timestamps import INFINITE_DAYS, INFINITE_MICROSECONDS
from catalog.values.types import SqlType

_HINT = "Use NULL or a far date."
#: For each of Arrow's type ids: the memory layout of the values, and the value that is infinity.
_MOST: Final = {pa.date32().id: ("<i4", INFINITE_DAYS), pa.timestamp("us").id: ("<i8", INFINITE_MICROSECONDS)}
_NESTED: Final = frozenset((pa.list_(pa.null()).id, pa.struct([]).id))


def require_finite(batches: Iterable[pa.RecordBatch], where: str) -> None:
    """Raises 0A000 for an infinite date or timestamp anywhere in the rows; ``where`` names the place for the error."""
    for batch in batches:
        if any(map(_has_infinite, batch.columns)):
            raise unsupported(f"an infinite date or timestamp in {where}", _HINT)


def _has_infinite(column: pa.Array) -> bool:
    kind: int = column.type.id
    if kind in _NESTED:
        parts = [column.flatten()] if pa.types.is_list(column.type) else column.flatten()
        return any(map(_has_infinite, parts))
    if kind not in _MOST or not len(column):
        return False
    item, most = _MOST[kind]
    counts = np.frombuffer(column.buffers()[1], item)[column.offset : column.offset + len(column)]
    if counts.max() < most and counts.min() > -most:
        return False
    valid = np.asarray(column.is_valid())  # the values at NULLs are arbitrary
    return bool((np.abs(counts[valid]) == most).any())


def require_finite_values(values: Iterable[object], where: str) -> None:
    """Checks dates and timestamps among parameter values."""
    if any(map(_is_infinite, values)):
        raise unsupported(f"an infinite date or timestamp in {where}", _HINT)


def _is_infinite(value: object) -> bool:
    return any(map(_is_infinite, value)) if isinstance(value, tuple) else isinstance(value, float)


def is_moment(kind: SqlType) -> bool:
    """Whether values of a type may be infinite dates or timestamps."""
    return kind.name in ("date", "timestamp", "timestamptz")
