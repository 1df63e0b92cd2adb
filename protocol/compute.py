"""pyarrow's compute functions in a form that type checkers accept, and constants to call them with.

pyarrow creates most of these functions when it is imported, so type checkers do not see them. It converts a Python
argument to an Arrow scalar at each call, which takes ten times as long as the call itself (pyarrow looks for pandas),
so constants are converted once.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import pyarrow as pa
import pyarrow.compute

pc: Any = pyarrow.compute


@lru_cache(maxsize=256, typed=True)
def constant(value: str | bytes | bool | int | None) -> pa.Scalar:
    """The Arrow scalar of a Python value."""
    return pa.scalar(value)
