"""Decimals of few digits read as doubles, which pyarrow's CSV parser makes in a quarter of the time of decimals.

Both the parser and a division round correctly. If a number's text is k units of its last decimal, with k below 2^53,
the parsed double is exactly k / 10^scale. If the double has that value, the text is so near that it rounds to k units.
Any other double, such as that of a text with more decimals, is left to the decimal parser.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import pyarrow as pa

from catalog.values.types import SqlType
from protocol.values.codec import from_vector, vector

#: The most digits with which every integer is exact as a double.
_DIGITS: Final = 15


def is_double(type_: SqlType) -> bool:
    """Whether a type's decimals can be read exactly as doubles."""
    return type_.name == "numeric" and 0 <= type_.scale <= type_.precision <= _DIGITS


def decimals_of(doubles: pa.Array, type_: SqlType) -> pa.Array | None:
    """The decimals of values that were read as doubles; None if a value is uncertain or has more digits than the
    type."""
    if not len(doubles):
        return doubles.cast(type_.arrow)
    values, unit = vector(doubles, "<f8"), 10.0**type_.scale
    with np.errstate(all="ignore"):
        units = np.rint(values * unit)
        if not ((units / unit == values) & (np.abs(units) < 10.0**type_.precision)).all():  # also false for NaN
            return None
    words = np.empty((len(units), 2), "<i8")
    words[:, 0] = units
    np.right_shift(words[:, 0], 63, out=words[:, 1])
    return from_vector(words, type_.arrow, doubles)
