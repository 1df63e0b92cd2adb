"""Runs and sealed intervals as Parquet files that Spark and DuckDB read too.

Owns what a file looks like: Snappy, no types that one of the engines lacks. An interval (month_day_nano, which Parquet
cannot say) becomes a struct of months, days and microseconds, and comes back as what it was. Does not know which files
count: manifests do.
"""

from __future__ import annotations

import os
import zlib
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.parquet as pq
from msgspec import Struct

from catalog.values.errors import SqlError
from executor.carriers import packed_table, unpacked_table
from executor.commit.files import disk_error, open_plain

_ROW_GROUP: Final = 512 * 1024
#: Bytes of a column's different texts up to which they get a dictionary; to find out that more are there costs a fifth
#: of writing them.
_DICTIONARY: Final = 64 * 1024
_CHECK_BYTES: Final = 8 * 1024 * 1024


class StoredFile(Struct, frozen=True):
    """A file as a manifest names it: its path below the manifest's folder, its size, and the CRC-32 of its content."""

    name: str
    size: int
    crc: int


def write_table(path: Path, table: pa.Table) -> None:
    """Writes and syncs a file; nothing stays of one that failed. Raises 53100, 58030."""
    write_batches(path, table.schema, table.to_batches())


def write_batches(path: Path, schema: pa.Schema, batches: Iterable[pa.RecordBatch], synced: bool = True) -> int:
    """Writes rows that are computed meanwhile, with one row group in memory; returns their number. A file that is not
    ``synced`` is the caller's to sync."""
    stored = to_stored(schema.empty_table()).schema
    texts = [field.name for field in stored if pa.types.is_string(field.type)]  # of numbers it takes half the time
    count = 0
    try:
        with open(path, "wb") as file:
            with pq.ParquetWriter(
                file,
                stored,
                compression="snappy",
                store_decimal_as_integer=True,
                dictionary_pagesize_limit=_DICTIONARY,
                use_dictionary=texts,  # pyright: ignore[reportArgumentType] - the stubs know no names of columns
            ) as writer:
                for group in _groups(batches):
                    writer.write_table(to_stored(pa.Table.from_batches(group, schema)), _ROW_GROUP)
                    count += sum(batch.num_rows for batch in group)
            file.flush()
            if synced:
                os.fsync(file.fileno())
    except BaseException as error:
        path.unlink(missing_ok=True)
        if isinstance(error, OSError):
            raise disk_error(error, f'write file "{path.name}"') from error
        raise
    return count


def _groups(batches: Iterable[pa.RecordBatch]) -> Iterator[list[pa.RecordBatch]]:
    """Batches that together are a row group, about."""
    group: list[pa.RecordBatch] = []
    rows = 0
    for batch in batches:
        group.append(batch)
        rows += batch.num_rows
        if rows >= _ROW_GROUP:
            yield group
            group, rows = [], 0
    if group:
        yield group


def read_table(paths: Sequence[Path], schema: pa.Schema, whole: bool = True) -> pa.Table:
    """The rows of files, in order, with exactly the columns and types of ``schema``, each of them a value of its type:
    a file may have other bytes in a text's place, or more digits in a numeric's, which engines take for granted.
    Unless a file is read ``whole``, its other columns are not looked at."""
    tables = []
    for path in paths:
        with pq.ParquetFile(path) as file:
            found = file.read(None if whole else schema.names)
            found.validate(full=True)
            tables.append(to_schema(found, schema))
    return pa.concat_tables(tables) if tables else schema.empty_table()


def read_count(path: Path) -> int:
    """How many rows a file has, by its footer."""
    with pq.ParquetFile(path) as file:
        return int(file.metadata.num_rows)


def describe_file(path: Path, folder: Path) -> StoredFile:
    """Size and checksum of a file below a folder."""
    crc = size = 0
    with open_plain(path) as file:
        while block := file.read(_CHECK_BYTES):
            crc = zlib.crc32(block, crc)
            size += len(block)
    return StoredFile(path.relative_to(folder).as_posix(), size, crc)


def verify_file(stored: StoredFile, folder: Path) -> Path:
    """The path of a file that is what the manifest says. Raises XX001."""
    path = folder / stored.name
    try:
        is_intact = path.stat().st_size == stored.size and describe_file(path, folder) == stored
    except FileNotFoundError:
        raise SqlError("XX001", f'file "{stored.name}" of a trace is missing') from None
    except ValueError:
        is_intact = False
    if not is_intact:
        raise SqlError("XX001", f'file "{stored.name}" of a trace is damaged')
    return path


def to_stored(table: pa.Table) -> pa.Table:
    """A table with intervals as structs."""
    return packed_table(table, with_times=False)


def to_schema(table: pa.Table, schema: pa.Schema) -> pa.Table:
    """Columns by name in the types of ``schema``; structs become intervals again."""
    return unpacked_table(table.select(schema.names), schema)
