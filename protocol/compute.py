"""pyarrow's compute functions, as type checkers can take them, and constants to call them with.

pyarrow makes most of its functions when it is imported, where no type checker sees them. A Python value as an argument
is made an Arrow scalar at each call, which takes pyarrow ten times as long as the call (it looks for pandas), so
constants are made once.
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
