"""Files that all servers of a storage read in place: queries that leave name them instead of taking their rows along,
as in systems with separate compute and storage (thesis, figure 6.7).

Owns: which files these are (Parquet files below the setting ``shared_files``), that a plan reads them under a name in
its manifest, and the check that a file named in a manifest is below that folder and unchanged. So a forged manifest can
read only the files beside it and those that the operator has shared.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct

from catalog.catalog import Catalog
from catalog.objects import FileTable
from catalog.values.errors import SqlError
from catalog.values.types import SqlType
from executor.commit.files import disk_error
from executor.embedded.connection import Bindings
from executor.files.file_tables import FileColumn, FileRows
from executor.printing.nodes import leaf_name
from planner.algebra.nodes import Relation, Scan, Snapshot
from planner.algebra.walk import descend, walk
from planner.incremental.names import Names
from planner.separation.cuts import taken_names

if TYPE_CHECKING:
    from executor.options import Options

_FORMATS: Final = ("parquet", "delta")


class SharedFile(Struct, frozen=True):
    """A file's path below the shared folder, and its size and time of modification, by which changes are detected."""

    path: str
    size: int
    changed: int


class SharedFiles(Struct, frozen=True):
    """Some columns of files, with the approximate number of their rows."""

    files: tuple[SharedFile, ...]
    columns: tuple[FileColumn, ...]
    rows: int

    @property
    def types(self) -> dict[str, SqlType]:
        """The columns' types by their names."""
        return {column.name: column.type for column in self.columns}

    def read(self, options: Options, query_id: str) -> FileRows:
        """The files, for an engine to read. Raises 55000 if this server has no shared folder, XX001 if a file has
        changed or is outside of the folder."""
        if not options.shared_files:
            hint = "shared_files names the folder in which every server of the storage finds them."
            raise SqlError("55000", f'separated query "{query_id}" reads files that are not shared here', hint=hint)
        folder = os.path.realpath(options.shared_files)
        paths = tuple(_verified(folder, file, query_id) for file in self.files)
        return FileRows(folder, paths, self.columns, self.rows)


def _verified(folder: str, file: SharedFile, query_id: str) -> str:
    path = os.path.realpath(os.path.join(folder, file.path))
    try:
        if not Path(path).is_relative_to(folder):
            raise SqlError("XX001", f'separated query "{query_id}" names a file that is not shared')
        stat = os.stat(path)
        if (stat.st_size, stat.st_mtime_ns) == (file.size, file.changed):
            return path
    except OSError:
        pass
    raise SqlError(
        "XX001", f'shared file "{file.path}" of separated query "{query_id}" has changed since the query left'
    )


def shared_of(options: Options, bindings: Bindings) -> dict[str, SharedFiles]:
    """The shared files that a query reads, by the names of its leaves. Raises 58030."""
    if not options.shared_files:
        return {}
    folder = Path(os.path.realpath(options.shared_files))
    try:
        return {
            name: _described(folder, rows)
            for name, rows in bindings.items()
            if isinstance(rows, FileRows) and all(Path(path).is_relative_to(folder) for path in rows.paths)
        }
    except OSError as error:
        raise disk_error(error, "describe the shared files that a query reads") from error


def _described(folder: Path, rows: FileRows) -> SharedFiles:
    found = [(os.path.relpath(path, folder), os.stat(path)) for path in rows.paths]
    files = tuple(SharedFile(path, stat.st_size, stat.st_mtime_ns) for path, stat in found)
    return SharedFiles(files, rows.columns, rows.rows)


def is_shared(options: Options, catalog: Catalog, scan: Scan) -> bool:
    """Whether a scan reads only shared files, as far as its table tells."""
    table = catalog.objects.get(scan.oid) if options.shared_files and scan.kind == "files" else None
    if not isinstance(table, FileTable) or table.option("format", "parquet") not in _FORMATS:
        return False
    return Path(os.path.realpath(table.option("path"))).is_relative_to(os.path.realpath(options.shared_files))


def shared_apart(relation: Relation, shared: Mapping[str, Any]) -> tuple[Relation, dict[str, Any]]:
    """A plan that reads the ``shared`` leaves, given by their engine names, as snapshots, and the snapshots' files by
    name."""
    names = Names()
    for taken in taken_names(relation):
        names.unique(taken)
    known: dict[str, str] = {}
    for node in walk(relation):
        if isinstance(node, Scan | Snapshot) and leaf_name(node) in shared:
            known.setdefault(
                leaf_name(node), node.trace if isinstance(node, Snapshot) else names.unique(f"f{len(known) + 1}")
            )

    def change(node: Any) -> Any:
        if isinstance(node, Scan) and leaf_name(node) in known:
            return Snapshot(known[leaf_name(node)], node.columns, node.sources)
        return node

    apart: Relation = descend(relation, change) if known else relation
    return apart, {name: shared[leaf] for leaf, name in known.items()}
