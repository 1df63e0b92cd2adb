"""Foreign tables of files: which files they have at the moment, and their rows.

Owns: what an option ``path`` means (a file, a folder, a pattern) and how much there is to read. The readers are those
of streams' files (``executor/sources``); nothing is kept between queries, since files may change at any time.
"""

from __future__ import annotations

import glob
import os
from collections.abc import Callable, Sequence
from typing import Final

import pyarrow as pa
import pyarrow.parquet as pq

from catalog.errors import SqlError
from catalog.objects import FileTable
from executor.sources import SourceFile, names_of_format, read_file

#: Bytes of a row of CSV or JSON, about.
_ROW_BYTES: Final = 100


def find(table: FileTable) -> list[SourceFile]:
    """The table's files in order of their names. Raises 58P01 where there is none."""
    path = table.option("path")
    try:
        names = _names(path, names_of_format(table.option("format", "parquet")))
        found = [(name, (stat := os.stat(name)).st_size, stat.st_mtime_ns) for name in names]
    except FileNotFoundError:
        found = []
    except OSError as error:
        raise SqlError("58030", f'could not read "{path}" of foreign table "{table.name}": {error.strerror}') from None
    if not found and not os.path.isdir(path):
        raise SqlError("58P01", f'could not open file "{path}" of foreign table "{table.name}": No such file')
    return found


def _names(path: str, endings: tuple[str, ...]) -> list[str]:
    """A folder's files of the format (but for work in progress of others), a pattern's files, or the one file."""
    if os.path.isdir(path):
        with os.scandir(path) as entries:
            return sorted(
                os.path.abspath(entry.path)
                for entry in entries
                if not entry.name.startswith(("_", ".")) and entry.name.lower().endswith(endings) and entry.is_file()
            )
    if glob.has_magic(path) and not os.path.exists(path):
        return sorted(os.path.abspath(name) for name in glob.glob(path, recursive=True) if os.path.isfile(name))
    return [os.path.abspath(path)]


def read(table: FileTable, names: Sequence[str], is_cancelled: Callable[[], bool]) -> pa.Table:
    """The rows of all files with some columns (one, where none is asked for). Raises 58P01, 22P04, 57014."""
    wanted = [column for column in table.columns if column.name in names] or [table.columns[0]]
    tables = [pa.schema([pa.field(column.name, column.type.arrow) for column in wanted]).empty_table()]
    for path, _, _ in find(table):
        if is_cancelled():
            raise SqlError("57014", "canceling statement due to user request")
        try:
            tables.append(read_file(path, table, wanted))
        except FileNotFoundError:
            raise SqlError("58P01", f'file "{path}" of foreign table "{table.name}" has vanished') from None
        except OSError as error:
            message = f'could not read file "{path}" of foreign table "{table.name}": {error.strerror or error}'
            raise SqlError("58030", message) from None
    return pa.concat_tables(tables)


def count(table: FileTable) -> int:
    """How many rows the files have, about: by the footers of Parquet, by size of the rest; 0 where that fails."""
    try:
        if table.option("format", "parquet") == "parquet":
            return sum(int(pq.read_metadata(path).num_rows) for path, _, _ in find(table))
        return -(-sum(size for _, size, _ in find(table)) // _ROW_BYTES)
    except (SqlError, OSError, pa.ArrowException):
        return 0
