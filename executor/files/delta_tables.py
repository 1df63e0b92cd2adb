"""Delta tables: the Parquet files of a version, and their values of partition columns.

Owns: what is asked of the ``deltalake`` package, which is imported when a table first needs it; it reads the log and no
rows. The files of a version never change, so a query reads the version that was the latest when it began, or that of
option ``version``. Features by which files alone do not tell the rows are refused (0A000).
https://github.com/delta-io/delta/blob/master/PROTOCOL.md
"""

from __future__ import annotations

import importlib
import os
import urllib.parse
from collections.abc import Sequence
from typing import Any, Final

import pyarrow as pa

from catalog.objects import FileTable
from catalog.values.errors import SqlError, unsupported
from executor.files.followed_folders import OwnFiles

#: Features of a table that change nothing of how its files are read.
_HARMLESS: Final = ("timestampNtz", "v2Checkpoint", "vacuumProtocolCheck")
#: Harmless where they are not in use: which the log tells.
_USED: Final = ("deletionVectors", "columnMapping")


def listed(table: FileTable) -> OwnFiles:
    """The files of a version. Raises 58P01, 58030, 22023 for a version that is not there, 42703, 0A000."""
    exceptions = importlib.import_module("deltalake.exceptions")
    try:
        return _listed(table)
    except exceptions.TableNotFoundError:
        message = f'"{table.option("path")}" of foreign table "{table.name}" is not a Delta table'
        raise SqlError("58P01", message) from None
    except exceptions.DeltaError as error:
        reason = str(error).splitlines()[0]
        message = f'could not read the Delta table of foreign table "{table.name}"'
        raise SqlError("58030", message, detail=reason) from None


def _listed(table: FileTable) -> OwnFiles:
    found = _open(table)
    _require_readable(table, found)
    names = [field.name for field in pa.schema(found.schema().to_arrow())]
    missing = next((column.name for column in table.columns if column.name not in names), None)
    if missing is not None:
        raise SqlError("42703", f'the Delta table of foreign table "{table.name}" has no column "{missing}"')
    actions = pa.table(found.get_add_actions(flatten=True)).sort_by("path")
    paths = [_local(table, path) for path in actions.column("path").to_pylist()]
    files = tuple((path, (stat := _stat(table, path)).st_size, stat.st_mtime_ns) for path in paths)
    return OwnFiles(table, files, _partitions(table, found.metadata().partition_columns, actions))


def _open(table: FileTable) -> Any:
    """The table at its version."""
    path, version = os.path.abspath(table.option("path")), table.option("version")
    latest = importlib.import_module("deltalake").DeltaTable(path)
    if not version or int(version) == latest.version():
        return latest
    if int(version) > latest.version():
        raise SqlError("22023", f'the Delta table of foreign table "{table.name}" has no version {version}')
    latest.load_as_version(int(version))
    return latest


def _require_readable(table: FileTable, found: Any) -> None:
    """Raises 0A000 where the files alone do not tell the rows."""
    protocol, settings = found.protocol(), found.metadata().configuration
    features = list(protocol.reader_features or ())
    unknown = [feature for feature in features if feature not in (*_HARMLESS, *_USED)]
    if protocol.min_reader_version > 3 or unknown:
        what = ", ".join(unknown) or f"reader version {protocol.min_reader_version}"
        raise unsupported(f'a Delta table with {what} (foreign table "{table.name}")')
    if settings.get("delta.columnMapping.mode", "none") != "none":
        raise unsupported(f'a Delta table with column mapping (foreign table "{table.name}")')
    if "deletionVectors" in features and pa.table(found.deletion_vectors().read_all()).num_rows:
        hint = "Rewrite it without them: REORG TABLE ... APPLY (PURGE)."
        raise unsupported(f'a Delta table with deletion vectors (foreign table "{table.name}")', hint)


def _local(table: FileTable, path: str) -> str:
    """A file's name; the log has it encoded, and relative to the table."""
    parts = urllib.parse.urlsplit(path)
    if parts.scheme not in ("", "file"):
        raise unsupported(f"files of a Delta table at {parts.scheme}://")
    return os.path.join(os.path.abspath(table.option("path")), urllib.parse.unquote(parts.path))


def _stat(table: FileTable, path: str) -> os.stat_result:
    try:
        return os.stat(path)
    except FileNotFoundError:
        raise SqlError("58P01", f'file "{path}" of foreign table "{table.name}" no longer exists') from None


def _partitions(table: FileTable, columns: Sequence[str], actions: pa.Table) -> dict[str, tuple[str | None, ...]]:
    """Values of partition columns that the foreign table has, as its columns' types write them. Raises 22P04."""
    found: dict[str, tuple[str | None, ...]] = {}
    for column in table.columns:
        if column.name not in columns:
            continue
        if column.type.name in ("timestamptz", "float4", "float8", "bytea"):
            raise unsupported(f"a partition column of type {column.type}")
        values = actions.column(f"partition.{column.name}")
        try:
            found[column.name] = tuple(values.cast(column.type.arrow).cast(pa.string()).to_pylist())
        except pa.ArrowException as error:
            message = f'partition column "{column.name}" of foreign table "{table.name}" has a value that is not '
            raise SqlError("22P04", message + str(column.type), detail=str(error).splitlines()[0]) from None
    return found
