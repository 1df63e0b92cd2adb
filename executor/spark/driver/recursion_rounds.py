"""WITH RECURSIVE ... UNION, computed round after round (child process only).

Owns: ``run_rounds``. A round's rows that no earlier round had become Parquet files. The next round reads them as its
working table (``loop["last"]``), and the relation above the recursion reads the files of all rounds (``loop["view"]``).
Spark's EXCEPT, for which NULLs are equal, finds the new rows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

import pyarrow.parquet as pq

from catalog.values.errors import SqlError
from executor.spark.driver.kept_plans import Leaf
from executor.spark.driver.parquet_inputs import FLOATING, quoted, values
from executor.spark.frames import Frame

#: Rounds after which a recursion is the embedded engine's: each takes Spark a job or two.
_MOST: Final = 1000


def run_rounds(spark: Any, loop: Frame, prefix: str, write: Callable[[Any, Path], list[str]], folder: Path) -> None:
    """Makes the recursion's view. ``prefix`` is what its statements read; files go to ``folder``."""
    every: list[str] = []
    view, columns = loop["view"], ", ".join(quoted(name) for name, _ in loop["columns"])
    statement = f"{prefix}SELECT DISTINCT {columns} FROM ({loop['base']})"
    following = (
        f"{prefix}SELECT DISTINCT {columns} FROM ({loop['step']}) EXCEPT DISTINCT SELECT {columns} FROM {quoted(view)}"
    )
    for number in range(_MOST):
        files = write(spark.sql(statement), folder / f"{view}-{number:04d}")
        every += files
        _show(spark, loop, view, every)
        if not sum(pq.read_metadata(path).num_rows for path in files):
            return
        _show(spark, loop, loop["last"], files)
        statement = following
    raise SqlError("0A000", f"WITH RECURSIVE of more than {_MOST} rounds is not supported on Spark")


def _show(spark: Any, loop: Frame, view: str, files: Sequence[str]) -> None:
    """Makes files the rows of a view."""
    schema = ", ".join(f"{quoted(name)} {kind}" for name, kind in loop["columns"])
    has_nan = any(kind in FLOATING for _, kind in loop["columns"])
    leaf = Leaf(view, schema, values(loop) if has_nan else (), tuple(files))
    leaf.read(spark, leaf.files).createOrReplaceTempView(view)
