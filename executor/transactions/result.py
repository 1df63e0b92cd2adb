"""What a statement answers: a tag, and rows if it has any."""

from __future__ import annotations

from collections.abc import Iterable

import pyarrow as pa
from msgspec import Struct, field

from catalog.values.errors import SqlError
from planner.statements.statement import Output, Returning


class Result(Struct, frozen=True):
    """What a statement answers: its tag (without the row count of a query), and rows as Arrow batches.

    ``live``: the batches come as time goes on, and each is to go out at once."""

    tag: str
    outputs: tuple[Output, ...] = ()
    batches: Iterable[pa.RecordBatch] | None = None
    notices: tuple[SqlError, ...] = field(default=())
    live: bool = False


def changed(tag: str, returning: Returning | None, table: pa.Table | None) -> Result:
    """The answer of a statement that changed rows."""
    if returning is None or table is None:
        return Result(tag)
    return Result(tag, returning.outputs, table.to_batches())
