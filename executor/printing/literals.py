"""Arrow values in the form in which literals and parameters hold them (``planner.algebra.nodes.Value``).

Owns: the conversion. Knows nothing of SQL types: the protocol knows what an Arrow type is to a client.
"""

from __future__ import annotations

import math
from typing import Any

import pyarrow as pa

from catalog.values.times.timestamps import INFINITE_DAYS, INFINITE_MICROSECONDS
from planner.algebra.nodes import Value


def literal_value(scalar: pa.Scalar) -> Value:
    """The value of one Arrow scalar; tuples for arrays, rows and intervals."""
    found = infinite(scalar)
    return _converted(scalar.as_py()) if found is None else found


def infinite(scalar: pa.Scalar) -> float | None:
    """An infinite date or timestamp as a float; None for other values."""
    if not isinstance(scalar, pa.Date32Scalar | pa.TimestampScalar):
        return None
    count, most = scalar.value, INFINITE_DAYS if isinstance(scalar, pa.Date32Scalar) else INFINITE_MICROSECONDS
    return None if count is None or abs(count) != most else math.inf if count > 0 else -math.inf


def _converted(value: Any) -> Value:
    match value:
        case pa.MonthDayNano():
            return value.months, value.days, value.nanoseconds // 1000
        case list():
            return tuple(map(_converted, value))
        case dict():
            return tuple(map(_converted, value.values()))
        case _:
            return value
