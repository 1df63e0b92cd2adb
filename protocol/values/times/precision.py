"""Applies type modifiers to columns of times and intervals: timestamp(3), interval hour to minute.

Owns: ``fit_column``, and ``fitted``, which makes a codec's decoders apply the modifier.
``catalog.values.times.precision`` defines the rules.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np
import pyarrow as pa
from msgspec.structs import replace

from catalog.values.times.precision import (
    EPOCH,
    end_of_day,
    fit_interval,
    fit_moment,
    fit_zoned,
    is_fitted,
    rounded,
    unit_of,
)
from catalog.values.times.timestamps import INFINITE_MICROSECONDS
from catalog.values.times.timetz import DAY
from catalog.values.types import SqlType
from protocol.values.codec import Codec, ColumnError, Value, Vector, from_vector, vector

#: The memory layout of Arrow's intervals.
INTERVALS: Final = np.dtype([("months", "<i4"), ("days", "<i4"), ("nanoseconds", "<i8")])


def fit_column(array: pa.Array, type_: SqlType) -> pa.Array:
    """A column of ``type_.arrow`` with the type's modifier applied. Raises ``ColumnError``."""
    return _FITS[type_.name](array, type_) if type_.modifiers and type_.name in _FITS and is_fitted(type_) else array


def _timestamps(array: pa.Array, type_: SqlType) -> pa.Array:
    moments = vector(array, "<i8")
    found = rounded(moments - EPOCH, unit_of(type_)) + EPOCH
    return from_vector(np.where(np.abs(moments) == INFINITE_MICROSECONDS, moments, found), type_.arrow, array)


def _times(array: pa.Array, type_: SqlType) -> pa.Array:
    found = rounded(vector(array, "<i8"), unit_of(type_))
    wrong = np.flatnonzero((found == DAY) & _valid(array))
    if len(wrong):
        raise ColumnError(int(wrong[0]), end_of_day())
    return from_vector(found, type_.arrow, array)


def _zoned(array: pa.Array, type_: SqlType) -> pa.Array:
    return from_vector(fit_zoned(type_, vector(array, "<i8")), type_.arrow, array)


def _intervals(array: pa.Array, type_: SqlType) -> pa.Array:
    values = np.frombuffer(array.buffers()[1], INTERVALS)[array.offset : array.offset + len(array)]
    months, days, nanoseconds = (values[name].astype(np.int64) for name in INTERVALS.names or ())
    result = np.empty(len(array), INTERVALS)
    result["months"], result["days"], microseconds = fit_interval(type_, months, days, nanoseconds // 1000)
    result["nanoseconds"] = microseconds * 1000
    return from_vector(result, type_.arrow, array)


def _valid(array: pa.Array) -> Vector:
    return np.asarray(array.is_valid())


_FITS: Final[dict[str, Callable[[pa.Array, SqlType], pa.Array]]] = {
    "timestamp": _timestamps,
    "timestamptz": _timestamps,
    "time": _times,
    "timetz": _zoned,
    "interval": _intervals,
}


def fitted(codec: Codec) -> Codec:
    """A codec whose decoders apply the type's modifier to the values that they read."""

    def value(read: Callable[..., Value]) -> Callable[..., Value]:
        def fitting(data: Any, type_: SqlType, *others: str) -> Value:
            found = read(data, type_, *others)
            return fit_moment(found, type_) if type_.modifiers else found

        return fitting

    def column(read: Callable[..., pa.Array]) -> Callable[..., pa.Array]:
        return lambda array, type_, *others: fit_column(read(array, type_, *others), type_)

    return replace(
        codec,
        from_text=value(codec.from_text),
        from_binary=value(codec.from_binary),
        column_from_text=column(codec.column_from_text),
        column_from_binary=column(codec.column_from_binary),
    )
