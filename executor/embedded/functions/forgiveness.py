"""What makes an instance forgive errors: TRY(e) is NULL where e raises.

DuckDB refuses TRY around a volatile function, and ``error`` is one, so that no optimiser moves it. In a forgiving
instance a macro of this name takes its place, in printed statements and in other macros: it calls a function that
raises the same error, and is not volatile. Within TRY it makes no difference where an expression is computed, as long
as it is computed there: DuckDB would compute what several TRYs have in common below them, where it raises.
"""

from __future__ import annotations

from typing import Any, Final, NoReturn

import pyarrow as pa

from executor.embedded.functions.batches import create

#: Optimizers that a forgiving instance does without, after others.
DISABLED: Final = ",common_subexpressions"


def install(database: Any) -> None:
    """Makes a new instance forgiving; its macros are there."""
    create(database, "ms_raise", _raise, "NULL")
    database.execute("CREATE MACRO error(message) AS ms_raise(message)")


def _raise(*columns: pa.ChunkedArray) -> NoReturn:
    raise ValueError(columns[0][0].as_py())
