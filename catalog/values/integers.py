"""The integer types: their ranges, and arithmetic whose results may exceed them.

Owns: ``ARITHMETIC`` and ``fits``, for constants that the planner folds and rows that are computed without an engine.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any, Final

#: The least positive number that a type cannot hold; its negative is the type's least number.
LIMITS: Final = {"int2": 1 << 15, "int4": 1 << 31, "int8": 1 << 63}
#: Operators, by canonical name, that are exact for integers, decimals, and numpy's arrays without overflow.
ARITHMETIC: Final[dict[str, Callable[[Any, Any], Any]]] = {
    "add": operator.add,
    "sub": operator.sub,
    "mul": operator.mul,
}


def fits(value: int, name: str) -> bool:
    """Whether the type of this name can hold a number."""
    limit = LIMITS[name]
    return -limit <= value < limit
