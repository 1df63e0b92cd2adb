"""The integer types: the range of each, and the arithmetic whose results may leave it.

Owns: ``ARITHMETIC`` and ``fits``, for constants that the planner folds and rows that no engine computes.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any, Final

#: The first positive number that a type does not hold; its least number is the negative of this.
LIMITS: Final = {"int2": 1 << 15, "int4": 1 << 31, "int8": 1 << 63}
#: By canonical name, operators that are exact over integers, decimals, and numpy's arrays where nothing overflows.
ARITHMETIC: Final[dict[str, Callable[[Any, Any], Any]]] = {
    "add": operator.add,
    "sub": operator.sub,
    "mul": operator.mul,
}


def fits(value: int, name: str) -> bool:
    """Whether the type of this name holds a number."""
    limit = LIMITS[name]
    return -limit <= value < limit
