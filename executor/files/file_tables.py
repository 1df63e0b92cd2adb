"""Foreign tables of files: which files they have at the moment, and their rows.

Owns: what an option ``path`` means (a file, a folder, a pattern, a tree of partitions), how much there is to read, and
whether the embedded engine reads the files itself. The reader is that of streams' files (``reader``);
nothing is kept between queries, since files may change at any time.

A column of option ``partition`` is in no file: its value is in the names of folders, as Hive writes them
(``year=2024/month=01``), '__HIVE_DEFAULT_PARTITION__' for NULL.
"""

from __future__ import annotations

import glob
import os
import urllib.parse
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final

import pyarrow as pa
from msgspec import Struct

from catalog.catalog import Catalog
from catalog.objects import ColumnDefinition, FileTable
from catalog.os_errors import state_of
from catalog.values.errors import SqlError, undefined_table
from catalog.values.types import SqlType
from executor.files import delta_tables
from executor.files.followed_folders import OwnFiles, SourceFile, names_of_format
from executor.files.parquet_footers import Footer, footer, is_exact
from executor.files.reader import batches
from planner.algebra.nodes import Scan
from planner.placement import Size
from planner.statistics import ColumnStatistics, TableStatistics

#: What a leaf reads: files, and which of their columns.
Asked = tuple[OwnFiles, Sequence[str]]

#: Files of fewer rows are read here: an engine that may read files is another instance, whose first query costs 0.1 s.
_FEW_ROWS: Final = 250_000
#: Bytes of a row of CSV or JSON, about.
_ROW_BYTES: Final = 100
_NULL_FOLDER: Final = "__HIVE_DEFAULT_PARTITION__"


class FileColumn(Struct, frozen=True):
    """A column as an engine finds it in files: ``guarded`` where it must not trust the files' smallest and largest
    values, ``values`` by file where it is in none.
    """

    name: str
    type: SqlType
    is_own: bool = True
    guarded: bool = False
    values: tuple[str | None, ...] | None = None


class FileRows(Struct, frozen=True):
    """Some columns of Parquet files that the embedded engine reads itself as a query runs; ``folder`` has them all, and
    they have so many rows."""

    folder: str
    paths: tuple[str, ...]
    columns: tuple[FileColumn, ...]
    rows: int


# Finding --------------------------------------------------------------------------------------------------------------


def find(table: FileTable) -> OwnFiles:
    """The table's files in order of their names. Raises 58P01 where there is none, 22P04 for what is no partition."""
    path = table.option("path")
    if table.option("format") == "delta":
        return delta_tables.listed(table)
    try:
        names = _names(path, names_of_format(table.option("format", "parquet")), bool(table.partition))
        found = [(name, (stat := os.stat(name)).st_size, stat.st_mtime_ns) for name in names]
    except FileNotFoundError:
        found = []
    except OSError as error:
        message = f'could not read "{path}" of foreign table "{table.name}": {error.strerror}'
        raise SqlError(state_of(error), message) from None
    if not found and not os.path.isdir(path):
        raise SqlError("58P01", f'could not open file "{path}" of foreign table "{table.name}": No such file')
    columns = [column for column in table.columns if column.name in table.partition]
    values = {column.name: _values(table, column, found) for column in columns}
    return OwnFiles(table, tuple(found), values)


def _names(path: str, endings: tuple[str, ...], is_tree: bool) -> list[str]:
    """A folder's files of the format (but for work in progress of others), a pattern's files, or the one file."""
    if os.path.isdir(path):
        return sorted(os.path.abspath(name) for name in _below(path, endings, is_tree))
    if glob.has_magic(path) and not os.path.exists(path):
        return sorted(os.path.abspath(name) for name in glob.glob(path, recursive=True) if os.path.isfile(name))
    return [os.path.abspath(path)]


def _below(root: str, endings: tuple[str, ...], is_tree: bool) -> Iterator[str]:
    """Files in a folder, and with ``is_tree`` in those below it."""
    folders = [root]
    while folders:
        with os.scandir(folders.pop()) as entries:
            for entry in entries:
                if entry.name.startswith(("_", ".")):
                    continue
                if is_tree and entry.is_dir():
                    folders.append(entry.path)
                elif entry.name.lower().endswith(endings) and entry.is_file():
                    yield entry.path


def _values(table: FileTable, column: ColumnDefinition, found: Sequence[SourceFile]) -> tuple[str | None, ...]:
    """A partition column's value in each file, as the column's type writes it."""
    texts = [_folder_value(table, column.name, path) for path, _, _ in found]
    return typed(table, column, texts)


def _folder_value(table: FileTable, name: str, path: str) -> str | None:
    for part in reversed(path.split(os.sep)[:-1]):
        key, separator, value = part.partition("=")
        if separator and urllib.parse.unquote(key) == name:
            return None if value == _NULL_FOLDER else urllib.parse.unquote(value)
    raise SqlError("22P04", f'file "{path}" of foreign table "{table.name}" is in no folder "{name}="')


def typed(table: FileTable, column: ColumnDefinition, texts: Sequence[str | None]) -> tuple[str | None, ...]:
    """Values of a partition column as its type writes them. Raises 22P04."""
    try:
        values = pa.array(texts, pa.string()).cast(column.type.arrow).cast(pa.string())
    except pa.ArrowException as error:
        message = f'partition column "{column.name}" of foreign table "{table.name}" has a value that is not '
        raise SqlError("22P04", message + str(column.type), detail=str(error).splitlines()[0]) from None
    return tuple(values.to_pylist())


# Reading --------------------------------------------------------------------------------------------------------------


def rows(asked: Mapping[str, Asked], is_cancelled: Callable[[], bool]) -> dict[str, FileRows | pa.Table]:
    """Some columns of all files (one, where none is asked for), by leaf: for the engine to read, or where only we can,
    or all have few rows, read.

    A query that reads some of them reads all it can: the engine knows how many rows files have, and orders joins by
    that, while of rows in Arrow it does not. Raises what ``read`` raises.
    """
    own = {leaf: _readable(found, _wanted(found, names)) for leaf, (found, names) in asked.items()}
    reads = any(item is not None and item.rows >= _FEW_ROWS for item in own.values())
    return {
        leaf: (own[leaf] if reads else None) or read(found, names, is_cancelled)
        for leaf, (found, names) in asked.items()
    }


def folders(bindings: Mapping[str, pa.Table | FileRows]) -> list[str]:
    """The folders of the files that the engine reads itself; none where it reads none."""
    return [rows.folder for rows in bindings.values() if isinstance(rows, FileRows)]


def _wanted(found: OwnFiles, names: Sequence[str]) -> list[ColumnDefinition]:
    columns = found.owner.columns
    return [column for column in columns if column.name in names] or [columns[0]]


def _readable(found: OwnFiles, wanted: Sequence[ColumnDefinition]) -> FileRows | None:
    """What the engine reads, where every file is Parquet with these columns, all of one type and exactly theirs."""
    if not found.files or any(glob.has_magic(path) for path, _, _ in found.files):
        return None
    columns = _exact_columns(found, wanted)
    if columns is None:
        return None
    paths = tuple(os.path.realpath(path) for path, _, _ in found.files)  # by which the engine knows what it may read
    count = sum(footer(file).rows for file in found.files)
    return FileRows(os.path.commonpath(map(os.path.dirname, paths)), paths, tuple(columns), count)


def _column(found: OwnFiles, column: ColumnDefinition, footers: Sequence[Footer]) -> FileColumn | None:
    """Floating point numbers are guarded: a file's largest value leaves NaN out, which for SQL is the largest."""
    if column.name in found.partitions:
        return FileColumn(column.name, column.type, values=found.partitions[column.name])
    kinds = {item.columns.get(column.name) for item in footers}
    kind = kinds.pop()
    if kinds or kind is None or not is_exact(kind, column.type):
        return None
    return FileColumn(column.name, column.type, kind == column.type.arrow, column.type.name in ("float4", "float8"))


def are_exact(found: OwnFiles, names: Sequence[str]) -> bool:
    """Whether Spark may read the files as they are: each is Parquet with these columns, in their types."""
    return not found.files or _exact_columns(found, _wanted(found, names)) is not None


def _exact_columns(found: OwnFiles, wanted: Sequence[ColumnDefinition]) -> list[FileColumn] | None:
    """The columns as an engine finds them; None where it would have to convert values."""
    if found.owner.option("format", "parquet") not in ("parquet", "delta"):
        return None
    try:
        footers = [footer(file) for file in found.files]
    except (OSError, pa.ArrowException):
        return None  # and the reader says what is wrong
    columns = [_column(found, column, footers) for column in wanted]
    known = [column for column in columns if column is not None]
    return known if len(known) == len(columns) else None


def read(found: OwnFiles, names: Sequence[str], is_cancelled: Callable[[], bool]) -> pa.Table:
    """The rows of all files with some columns (one, where none is asked for). Raises 58P01, 58030, 57014, and what
    ``reader.batches`` raises."""
    schema = schema_of(found, names)
    parts = [batch for place in range(len(found.files)) for batch in batches_of(found, place, names, is_cancelled)]
    return pa.Table.from_batches(parts, schema)


def schema_of(found: OwnFiles, names: Sequence[str]) -> pa.Schema:
    """The columns that ``read`` gives."""
    return pa.schema([pa.field(column.name, column.type.arrow) for column in _wanted(found, names)])


def batches_of(
    found: OwnFiles, place: int, names: Sequence[str], is_cancelled: Callable[[], bool]
) -> Iterator[pa.RecordBatch]:
    """The same of one file."""
    wanted, schema = _wanted(found, names), schema_of(found, names)
    path, name = found.files[place][0], found.owner.name
    if is_cancelled():
        raise SqlError("57014", "canceling statement due to user request")
    try:
        for batch in batches(path, found.owner, _stored(found, wanted), is_cancelled):
            yield _whole(found, place, batch, schema)
    except FileNotFoundError:
        raise SqlError("58P01", f'file "{path}" of foreign table "{name}" no longer exists') from None
    except OSError as error:
        message = f'could not read file "{path}" of foreign table "{name}": {error.strerror or error}'
        raise SqlError(state_of(error), message) from None


def _stored(found: OwnFiles, wanted: Sequence[ColumnDefinition]) -> list[ColumnDefinition]:
    """Those that are in the files; one more where none is wanted, since it counts the rows."""
    stored = [column for column in wanted if column.name not in found.partitions]
    return stored or [next(column for column in found.owner.columns if column.name not in found.partitions)]


def _whole(found: OwnFiles, place: int, batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """Some of a file's rows with the columns that its place gives."""
    columns = [
        pa.repeat(pa.scalar(found.partitions[field.name][place], pa.string()), batch.num_rows).cast(field.type)
        if field.name in found.partitions
        else batch.column(field.name)
        for field in schema
    ]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def table_of(catalog: Catalog, scan: Scan) -> FileTable:
    """The foreign table that a scan reads. Raises 42P01."""
    found = catalog.objects.get(scan.oid)
    if not isinstance(found, FileTable):
        raise undefined_table(scan.name)
    return found


# Sizes ----------------------------------------------------------------------------------------------------------------


def size(found: OwnFiles, names: Sequence[str]) -> Size:
    """How much a scan of some columns reads, by the footers of Parquet, by size of the rest; nothing where it fails."""
    try:
        if found.owner.option("format", "parquet") == "csv" or found.owner.option("format") == "json":
            total = sum(size for _, size, _ in found.files)
            return Size(-(-total // _ROW_BYTES), total)
        footers = [footer(file) for file in found.files]
        return Size(sum(item.rows for item in footers), sum(item.size(tuple(names)) for item in footers))
    except (OSError, pa.ArrowException):
        return Size(0, 0)


def statistics(found: OwnFiles, names: Sequence[str]) -> TableStatistics:
    """What is known of the rows before any is read: how many, and bounds of columns of numbers and dates."""
    rows = float(size(found, names).rows)
    if found.owner.option("format", "parquet") in ("csv", "json"):
        return TableStatistics(rows)
    try:
        footers = [footer(file) for file in found.files]
    except (OSError, pa.ArrowException):
        return TableStatistics(rows)
    columns = {}
    for name in names:
        bounds = [item.bounds[name] for item in footers if name in item.bounds]
        if bounds and len(bounds) == len(footers):
            low, high = min(item[0] for item in bounds), max(item[1] for item in bounds)
            columns[name] = ColumnStatistics(None, low, high)
    return TableStatistics(rows, columns)
