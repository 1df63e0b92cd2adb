"""Files of which lines do not fit their stream: what the stream's option ``on_error`` makes of them.

Owns: ``lenient``, which parses a portion of whole lines that a reader cannot parse as a whole: the portion is halved
until single lines are left. What becomes of a line depends on the line alone, so that a file has equal rows whenever
it is read.

    skip    a line that does not fit is no row
    null    a value that its type does not accept is NULL; a line without such a value for each column is no row
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final, Generic, TypeVar

import pyarrow as pa
from msgspec import Struct

from catalog.objects import ColumnDefinition, Stream
from catalog.values.errors import SqlError
from executor.files.followed_folders import Owner

_Portion = TypeVar("_Portion")
#: What the place of an error in one value has in its text.
_OF_VALUE: Final = ", column "
_UNCLOSED: Final = "unterminated CSV quoted field"


class RejectedLine(Struct, frozen=True):
    """A line of a file that is no row, by its number, and why."""

    number: int
    text: str
    error: SqlError


#: What hears of them.
Rejecting = Callable[[RejectedLine], None]


class Lines(Struct, Generic[_Portion]):
    """How a format's portions are parsed, whole or by a column, taken apart into lines, put together again, and what
    the number and the text of a line are."""

    parse: Callable[[_Portion], pa.Table]
    of_column: Callable[[_Portion, ColumnDefinition], pa.Table]
    split: Callable[[_Portion], list[_Portion]]
    join: Callable[[Sequence[_Portion]], _Portion]
    shown: Callable[[_Portion], tuple[int, bytes]]


def is_lenient(owner: Owner) -> bool:
    """Whether a relation's files may have lines that do not fit."""
    return isinstance(owner, Stream) and owner.option("on_error", "fail") != "fail"


def lenient(
    portion: _Portion, lines: Lines[_Portion], owner: Owner, wanted: Sequence[ColumnDefinition]
) -> tuple[list[pa.Table], list[RejectedLine]]:
    """The rows of a portion, and the lines that are none. Raises 22P04 for a quote that is not closed: which lines
    there are is not known then."""
    try:
        return [lines.parse(portion)], []
    except SqlError:
        single = lines.split(portion)
    found: list[pa.Table] = []
    rejected: list[RejectedLine] = []
    parts = [single]
    while parts:
        part = parts.pop()
        try:
            found.append(lines.parse(lines.join(part)))
        except SqlError as error:
            if error.message == _UNCLOSED:
                raise
            if len(part) > 1:
                middle = len(part) // 2
                parts += [part[middle:], part[:middle]]
                continue
            try:
                if owner.option("on_error") != "null":
                    raise
                found.append(_with_nulls(part[0], lines, wanted))
            except SqlError as failed:
                number, data = lines.shown(part[0])
                rejected.append(RejectedLine(number, data.decode("utf-8", "replace"), failed))
    return found, rejected


def _with_nulls(line: _Portion, lines: Lines[_Portion], wanted: Sequence[ColumnDefinition]) -> pa.Table:
    """A line with NULL for each value that its type does not accept. Raises the error of a line that does not fit
    otherwise, and of a value that must not be NULL."""
    arrays = []
    for column in wanted:
        try:
            arrays.append(lines.of_column(line, column).column(0))
        except SqlError as error:
            if column.not_null or _OF_VALUE not in (error.where or ""):
                raise
            arrays.append(pa.nulls(1, column.type.arrow))
    return pa.Table.from_arrays(arrays, [column.name for column in wanted])


def told(
    parsed: Iterable[tuple[list[pa.Table], list[RejectedLine]]], rejecting: Rejecting | None
) -> Iterator[pa.RecordBatch]:
    """The batches of portions in their order; ``rejecting`` hears of the lines that are no rows."""
    for tables, rejected in parsed:
        for item in rejected:
            if rejecting is not None:
                rejecting(item)
        for table in tables:
            yield from table.to_batches()
