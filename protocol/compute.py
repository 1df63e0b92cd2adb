"""pyarrow's compute functions, as type checkers can take them: pyarrow makes most of them when it is imported."""

from __future__ import annotations

from typing import Any

import pyarrow.compute

pc: Any = pyarrow.compute
