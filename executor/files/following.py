"""Files that feed a stream: finding them in a growing folder, and reading them without Spark.

Owns: which files count as arrived (``FileSource``), and ``read_files``, by which the embedded engine alone reads
them. Spark reads the same files itself (executor/spark/raw); both give a row the same ``__ordinal``: its file's place
in the log record times 2^40, plus its place in the file. CSV is PostgreSQL's: fields by position, quotes doubled,
NULL an unquoted empty field.

A file has arrived when it is whole: its size and mtime were the same at two looks, or its mtime is over a second old.
Names that begin with ``_`` or ``.`` are other programs' work in progress. What has arrived must stay as it is.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final, Literal

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.json
import pyarrow.parquet as pq
from msgspec import Struct, field

from catalog.errors import SqlError
from catalog.objects import ColumnDefinition, FileTable, Stream
from catalog.system_errors import state_of
from catalog.types import SqlType
from executor.files.lines import count_lines

#: Path, size in bytes, mtime in nanoseconds.
SourceFile = tuple[str, int, int]
Format = Literal["parquet", "csv", "json"]
#: What files belong to.
Owner = Stream | FileTable


class OwnFiles(Struct, frozen=True):
    """Files as they are, and whose. ``partitions``: columns that are in no file, with their value for each file as the
    column's type writes it.
    """

    owner: Owner
    files: tuple[SourceFile, ...]
    partitions: Mapping[str, tuple[str | None, ...]] = field(default_factory=dict)


#: Bits of __ordinal that number the rows of one file.
ROW_BITS: Final = 40
#: A file that has not changed for so long is whole, in nanoseconds.
SETTLED: Final = 1_000_000_000
_SUFFIXES: Final[Mapping[str, tuple[str, ...]]] = {
    "parquet": (".parquet", ".pq"),
    "csv": (".csv", ".tsv", ".txt"),
    "json": (".json", ".jsonl", ".ndjson"),
}
FORMATS: Final = tuple(_SUFFIXES)
_TRUE: Final = ("true", "on", "yes", "1")
_MOST_DECIMALS: Final = 38
#: What PostgreSQL's COPY writes, and what Spark's CAST takes too.
_TRUTHS: Final = [spelt for word in ("t", "true", "y", "yes", "1") for spelt in {word, word.title(), word.upper()}]
_FALSEHOODS: Final = [spelt for word in ("f", "false", "n", "no", "0") for spelt in {word, word.title(), word.upper()}]
_AS_IT_WAS: Final = "Put it back as it was."


class FileSource:
    """Follows one folder (not those below it). Holds only what the last look saw of files still growing."""

    def __init__(self, path: Path, format: str, stream: str, now: Callable[[], int] = time.time_ns) -> None:
        """``format`` decides which suffixes count, ``stream`` is for errors; ``now`` is the clock of mtimes."""
        self._path = path
        self._stream = stream
        self._suffixes = _SUFFIXES[format]
        self._now = now
        self._growing: dict[str, tuple[int, int]] = {}

    def poll(self, known: Mapping[str, tuple[int, int]]) -> list[SourceFile]:
        """Files that have arrived and are not among ``known`` (size and mtime by path), oldest first.

        Raises 58P01 when the folder or a known file is gone, or a known file is no longer what arrived.
        """
        found = self._look()
        for path, recorded in known.items():
            if path not in found:
                raise _vanished(path, self._stream)
            if found[path] != recorded:
                raise _changed(path, self._stream)
        fresh = {path: stat for path, stat in found.items() if path not in known}
        arrived = [(path, *stat) for path, stat in fresh.items() if self._is_whole(path, stat)]
        self._growing = {path: stat for path, stat in fresh.items() if (path, *stat) not in arrived}
        return sorted(arrived, key=lambda item: (item[2], item[0]))

    def require(self) -> None:
        """Raises 58P01 where the folder does not exist, 58030 where it cannot be read."""
        self._look()

    def _look(self) -> dict[str, tuple[int, int]]:
        """Size and mtime of every file that counts."""
        try:
            with os.scandir(self._path) as entries:
                return dict(self._entries(entries))
        except FileNotFoundError:
            raise SqlError("58P01", f'folder "{self._path}" of stream "{self._stream}" does not exist') from None
        except OSError as error:
            message = f'could not read folder "{self._path}" of stream "{self._stream}": {error.strerror}'
            raise SqlError(state_of(error), message) from None

    def _entries(self, entries: Iterator[os.DirEntry[str]]) -> Iterator[tuple[str, tuple[int, int]]]:
        for entry in entries:
            if entry.name.startswith(("_", ".")) or not entry.name.lower().endswith(self._suffixes):
                continue
            try:
                stat = entry.stat()
            except FileNotFoundError:  # gone since it was listed
                continue
            if entry.is_file():
                yield os.path.abspath(entry.path), (stat.st_size, stat.st_mtime_ns)

    def _is_whole(self, path: str, stat: tuple[int, int]) -> bool:
        return self._growing.get(path) == stat or self._now() - stat[1] > SETTLED


def reader_options(owner: Owner) -> dict[str, str]:
    """A relation's options for reading CSV: ``header`` ('true' or 'false'), ``delimiter`` and ``null``."""
    header = owner.option("header", "false").lower() in _TRUE
    return {
        "header": "true" if header else "false",
        "delimiter": owner.option("delimiter", ","),
        "null": owner.option("null", ""),
    }


def stored_columns(owner: Owner) -> tuple[ColumnDefinition, ...]:
    """The columns that the files themselves have."""
    if isinstance(owner, Stream) or not owner.partition:
        return owner.columns
    return tuple(column for column in owner.columns if column.name not in owner.partition)


def read_files(files: Sequence[SourceFile], stream: Stream, lsn: int) -> pa.Table:
    """The rows of one log record's files in the stream's types, with ``__lsn`` and ``__ordinal``.

    Raises 58P01 as ``FileSource.poll`` does, and 22P04 for a file that is not what the stream's columns
    say.
    """
    tables = [_numbered(_read(item, stream), lsn, place) for place, item in enumerate(files)]
    if not tables:
        raise ValueError("a record names at least one file")
    return pa.concat_tables(tables)


def verify(file: SourceFile, stream: str) -> None:
    """Raises 58P01 when a file is not what arrived in a stream."""
    path, size, mtime = file
    try:
        stat = os.stat(path)
    except FileNotFoundError:
        raise _vanished(path, stream) from None
    if (stat.st_size, stat.st_mtime_ns) != (size, mtime):
        raise _changed(path, stream)


def _vanished(path: str, stream: str) -> SqlError:
    return SqlError("58P01", f'file "{path}" of stream "{stream}" has vanished', hint=_AS_IT_WAS)


def _changed(path: str, stream: str) -> SqlError:
    return SqlError("58P01", f'file "{path}" of stream "{stream}" was changed after it arrived', hint=_AS_IT_WAS)


def count_rows(path: str, stream: Owner) -> int | None:
    """How many rows a file has: from its footer (Parquet), else its lines that are not blank. None: not readable."""
    is_csv = stream.option("format") == "csv"
    try:
        if stream.option("format", "parquet") == "parquet":
            return int(pq.read_metadata(path).num_rows)
        lines = count_lines(path, is_csv)
    except (OSError, pa.ArrowException):
        return None
    has_header = is_csv and reader_options(stream)["header"] == "true"
    return max(0, lines - has_header)


def _read(file: SourceFile, stream: Stream) -> pa.Table:
    verify(file, stream.name)
    return read_file(file[0], stream, stream.columns)


def names_of_format(format: str) -> tuple[str, ...]:
    """How the names of files in a format end."""
    return _SUFFIXES[format]


def read_file(path: str, owner: Owner, wanted: Sequence[ColumnDefinition]) -> pa.Table:
    """The rows of a file with some of its owner's columns, in their types. Raises 22P04 where it does not fit."""
    try:
        match owner.option("format", "parquet"):
            case "csv":
                table = _read_csv(path, owner, wanted)
            case "json":
                table = _read_json(path, wanted)
            case form:
                table = _read_parquet(path, wanted, lenient=form == "delta")
        columns = [_cast(table.column(item.name), item.type) for item in wanted]
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, OverflowError) as error:
        reason = str(error).splitlines()[0]
        kind = "stream" if isinstance(owner, Stream) else "foreign table"
        raise SqlError("22P04", f'file "{path}" does not fit {kind} "{owner.name}"', detail=reason) from None
    schema = pa.schema([pa.field(item.name, item.type.arrow) for item in wanted])
    return pa.Table.from_arrays(columns, schema=schema)


def _numbered(table: pa.Table, lsn: int, place: int) -> pa.Table:
    count = table.num_rows
    first = place << ROW_BITS
    table = table.append_column("__lsn", pa.repeat(pa.scalar(lsn, pa.int64()), count))
    return table.append_column("__ordinal", pa.arange(first, first + count))


def _read_parquet(path: str, wanted: Sequence[ColumnDefinition], lenient: bool) -> pa.Table:
    """Some columns; with ``lenient`` one that was added to the table after the file was written is NULL."""
    with pq.ParquetFile(path) as file:
        missing = [item for item in wanted if item.name not in file.schema_arrow.names]
        if missing and not lenient:
            raise SqlError("22P04", f'file "{path}" has no column "{missing[0].name}"')
        table = file.read(columns=[item.name for item in wanted if item not in missing])
        for item in missing:
            table = table.append_column(item.name, pa.nulls(file.metadata.num_rows, item.type.arrow))
        return table


def _read_csv(path: str, owner: Owner, wanted: Sequence[ColumnDefinition]) -> pa.Table:
    options = reader_options(owner)
    names = [item.name for item in stored_columns(owner)]
    if os.path.getsize(path) == 0:
        return pa.table({item.name: pa.array([], _parsed(item.type)) for item in wanted})
    return pyarrow.csv.read_csv(
        path,
        read_options=pyarrow.csv.ReadOptions(
            column_names=names, skip_rows_after_names=1 if options["header"] == "true" else 0
        ),
        parse_options=pyarrow.csv.ParseOptions(delimiter=options["delimiter"], newlines_in_values=True),
        convert_options=pyarrow.csv.ConvertOptions(
            column_types={item.name: _parsed(item.type) for item in stored_columns(owner)},
            include_columns=[item.name for item in wanted],
            null_values=[options["null"]],
            strings_can_be_null=True,
            quoted_strings_can_be_null=False,
            true_values=_TRUTHS,
            false_values=_FALSEHOODS,
        ),
    )


def _read_json(path: str, wanted: Sequence[ColumnDefinition]) -> pa.Table:
    if os.path.getsize(path) == 0:
        return pa.table({item.name: pa.array([], _parsed(item.type)) for item in wanted})
    # pyarrow's JSON reader takes dates for numbers, so they are read as text and cast.
    kinds = {item.name: pa.string() if item.type.name == "date" else _parsed(item.type) for item in wanted}
    schema = pa.schema(list(kinds.items()))
    options = pyarrow.json.ParseOptions(explicit_schema=schema, unexpected_field_behavior="ignore")
    return pyarrow.json.read_json(path, parse_options=options)


def _parsed(kind: SqlType) -> pa.DataType:
    """The type in which text is parsed; a numeric is rounded to its scale afterwards."""
    if kind.name == "numeric":
        return pa.decimal128(38, max(kind.scale, min(kind.scale + 10, _MOST_DECIMALS - (kind.precision - kind.scale))))
    return kind.arrow


def _cast(column: pa.ChunkedArray, kind: SqlType) -> pa.ChunkedArray:
    """A column in a stream's type; numerics round half away from zero, all else must fit."""
    if column.type == kind.arrow:
        return column
    if kind.name == "numeric" and pa.types.is_decimal(column.type) and column.type.scale > kind.scale:
        column = pc.call_function("round", [column], pc.RoundOptions(kind.scale, "half_towards_infinity"))
    return column.cast(kind.arrow)
