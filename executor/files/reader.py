"""Rows of files in the types of a relation's columns: the one reader of CSV, JSON and Parquet, for files at rest and
followed folders, whichever engine asks (docs/files.md).

Owns: which module reads a format, and what errors say of where a value stands. A row's ``__ordinal`` is its file's
place in the log record that names it times 2^40, plus its place in the file.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import pyarrow as pa

from catalog.objects import ColumnDefinition, Stream
from catalog.values.errors import SqlError
from executor.files import csv_rows, json_rows, parquet_rows
from executor.files.followed_folders import ROW_BITS, Owner, SourceFile, verify
from executor.files.lenient_lines import Rejecting


def batches(
    path: str,
    owner: Owner,
    wanted: Sequence[ColumnDefinition],
    is_cancelled: Callable[[], bool] | None = None,
    rejecting: Rejecting | None = None,
) -> Iterator[pa.RecordBatch]:
    """The rows of a file in its order, with some of its owner's columns in their types. ``rejecting`` hears of lines
    that the owner's ``on_error`` leaves out.

    Raises what COPY raises of CSV and json_to_record of JSON, with the file, the line and the column; 22P04 for a file
    that is none of the format; 57014, OSError.
    """
    kind = "stream" if isinstance(owner, Stream) else "foreign table"
    try:
        for batch in _read(path, owner, wanted, rejecting):
            yield batch
            if is_cancelled is not None and is_cancelled():
                raise SqlError("57014", "canceling statement due to user request")
    except pa.ArrowException as error:
        reason = str(error).splitlines()[0]
        raise SqlError("22P04", f'file "{path}" does not fit {kind} "{owner.name}"', reason) from None
    except SqlError as error:
        if error.where is not None:
            where = error.where.removeprefix(f"COPY {owner.name}, ")
            error.where = f'{kind} "{owner.name}", file "{path}", {where}'
        raise


def _read(
    path: str, owner: Owner, wanted: Sequence[ColumnDefinition], rejecting: Rejecting | None
) -> Iterator[pa.RecordBatch]:
    match owner.option("format", "parquet"):
        case "csv":
            return csv_rows.batches(path, owner, wanted, rejecting)
        case "json":
            return json_rows.batches(path, owner, wanted, rejecting)
        case form:
            return parquet_rows.batches(path, wanted, lenient=form == "delta")


def read_file(
    path: str, owner: Owner, wanted: Sequence[ColumnDefinition], is_cancelled: Callable[[], bool] | None = None
) -> pa.Table:
    """``batches`` as one table."""
    schema = pa.schema([(item.name, item.type.arrow) for item in wanted])
    return pa.Table.from_batches(batches(path, owner, wanted, is_cancelled), schema)


def read_files(files: Sequence[SourceFile], stream: Stream, lsn: int) -> pa.Table:
    """The rows of one log record's files in the stream's types, with ``__lsn`` and ``__ordinal``.

    Raises 58P01 as ``FileSource.poll`` does, and what ``batches`` raises.
    """
    assert files, "a record names at least one file"
    return pa.concat_tables([numbered(_as_arrived(item, stream), lsn, place) for place, item in enumerate(files)])


def _as_arrived(file: SourceFile, stream: Stream) -> pa.Table:
    verify(file, stream.name)
    return read_file(file[0], stream, stream.columns)


def numbered(table: pa.Table, lsn: int, place: int) -> pa.Table:
    """A file's rows with the places of a log record's file."""
    count = table.num_rows
    first = place << ROW_BITS
    table = table.append_column("__lsn", pa.repeat(pa.scalar(lsn, pa.int64()), count))
    return table.append_column("__ordinal", pa.arange(first, first + count))
