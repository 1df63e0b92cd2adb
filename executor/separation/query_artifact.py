"""Separated queries on storage: a manifest, and Parquet files with all rows that the rest of the query reads.

Owns: the layout below shared/queries (architecture, section 8), in which a folder copied to another server is that
query there; and that a manifest is used only after all of it has been checked. The plan in it is our algebra, read
through an allow-list, and may have no leaves but the files that the manifest names: so a forged manifest can read the
files beside it, and nothing else.

    shared/queries/<id>/manifest.json       {"format": 1, "sha256": of the rest, "query": {...}}
    shared/queries/<id>/r1-<x>.parquet      a result or an input; each manifest has files of its own
"""

from __future__ import annotations

import contextlib
import datetime as dt
import json
import re
import secrets
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Final, Literal

import pyarrow as pa
from msgspec import Struct
from msgspec.structs import asdict

from catalog.codec import classes, decode, encode
from catalog.struct_types import Typed
from catalog.values.errors import SqlError
from catalog.values.types import INT8, Composite, Enumeration, SqlType
from executor.carriers import packed_schema, packed_table, unpacked_table
from executor.cluster.claims import Claims
from executor.commit.files import disk_error, read_document, sync_file
from executor.embedded.printing.dialect import DuckPrinter
from executor.failpoints import failpoint
from executor.files.file_tables import FileColumn
from executor.separation.results import EngineName
from executor.separation.shared_files import SharedFile, SharedFiles
from executor.traces.artifact_manifest import MANIFEST, decode_file, encode_file, encode_manifest, read_manifest
from executor.traces.checked import WRONG
from executor.traces.parquet import StoredFile, describe_file, read_count, read_table, verify_file, write_batches
from planner.algebra.allow_list import check_call, require_zone
from planner.algebra.identity import NodeSet
from planner.algebra.nodes import ROW_ID, Delta, Fixpoint, Relation, Scan, Snapshot, With, Working
from planner.algebra.serialize import decode_relation, encode_relation
from planner.algebra.validate import validate
from planner.algebra.walk import Node, walk
from planner.statements.statement import Output

#: Row and byte counts are shown as 64-bit numbers.
_MOST: Final = (1 << 63) - 1
#: The most files that are synced concurrently.
_SYNCS: Final = 8
_ID: Final = re.compile(r"[0-7][0-9a-f]{15}")
_FILE: Final = re.compile(r"r\d+-[0-9a-f]+\.parquet")
_PARTS: Final = ("relation", "runs")
_CLASSES: Final = classes(SqlType, Enumeration, Composite, Output, FileColumn, SharedFile, SharedFiles)


class Run(Struct, frozen=True):
    """A result or an input to write: its columns, and its rows, which are computed when they are written."""

    columns: tuple[tuple[str, SqlType], ...]
    batches: Callable[[], Iterable[pa.RecordBatch]]

    @property
    def schema(self) -> pa.Schema:
        """The Arrow schema of its rows."""
        return pa.schema([pa.field(name, kind.arrow) for name, kind in self.columns])


class StoredRun(Struct, frozen=True):
    """A stored result or input: the columns of its file, and the file."""

    columns: tuple[tuple[str, SqlType], ...]
    rows: int
    file: StoredFile

    @property
    def schema(self) -> pa.Schema:
        """The Arrow schema of its rows."""
        return pa.schema([pa.field(name, kind.arrow) for name, kind in self.columns])


class SeparatedQuery(Struct, frozen=True):
    """The rest of a query: ``relation`` over ``runs``; ``outputs`` describe the relation's columns in their order."""

    id: str
    number: int  # how often its manifest has been written
    #: A checkpoint's query goes on running; of a finished query, only its rows are left.
    state: Literal["suspended", "checkpoint", "finished"]
    role: str
    text: str
    created: dt.datetime
    server: str
    time_zone: str
    pipelines: int
    finished: int
    outputs: tuple[Output, ...]
    relation: Relation
    runs: Mapping[str, StoredRun]
    way: str = ""  # how it left: "move" or "redo", at once or "wait, then ..."
    #: The identity of the server that the client asked, and the oid of the client's role there (the role's name may
    #: belong to another role by now).
    asked: tuple[str, int] = ("", 0)
    #: The files shared by all servers that the query reads, by name.
    files: tuple[tuple[str, SharedFiles], ...] = ()
    #: The engine on which it ran when it left.
    engine: EngineName = "embedded"

    @property
    def rows(self) -> int:
        """The rows of all runs."""
        return sum(run.rows for run in self.runs.values())

    @property
    def stored(self) -> set[str]:
        """The names of the files that it is on the storage."""
        return {MANIFEST, *(run.file.name for run in self.runs.values())}

    @property
    def size(self) -> int:
        """Bytes of all files."""
        return sum(run.file.size for run in self.runs.values())


_TYPED: Final = Typed((SeparatedQuery,), within=(StoredRun, StoredFile, *_CLASSES.values()))


class SeparatedQueries:
    """The separated queries in one folder. Safe for many threads."""

    def __init__(self, folder: Path, claims: Claims) -> None:
        """Only queries that ``claims`` holds for this server are written."""
        self._folder = folder
        self._claims = claims

    def ids(self) -> list[str]:
        """The ids of all folders that may hold a query. Raises 58030 if the storage does not answer."""
        self._claims.require_answer()
        if not self._folder.is_dir():
            return []
        return sorted(
            path.parent.name for path in self._folder.glob(f"*/{MANIFEST}") if _ID.fullmatch(path.parent.name)
        )

    def all(self) -> Iterator[SeparatedQuery]:
        """The queries whose manifests can be read."""
        for query_id in self.ids():
            try:
                yield self.get(query_id)
            except SqlError:
                continue  # a request for its id gets the reason

    def get(self, query_id: str) -> SeparatedQuery:
        """A query's manifest, checked. Raises 42704, 58030, XX001, and 0A000 for a later format version."""
        self._claims.require_answer()
        path = self._folder / query_id / MANIFEST
        if not _ID.fullmatch(query_id) or not path.is_file():
            self._claims.require_storage()
            raise SqlError("42704", f'separated query "{query_id}" does not exist')
        try:
            found = _decoded(read_manifest(path, "query", f'separated query "{query_id}"'))
            if found.id != query_id:
                raise ValueError("it belongs to another query")
            _check(found)
        except OSError as error:
            raise disk_error(error, f'read the manifest of separated query "{query_id}"') from error
        except WRONG as error:
            raise SqlError("XX001", f'separated query "{query_id}" has no valid manifest: {error}') from error
        return found

    def paths(self, query: SeparatedQuery) -> dict[str, Path]:
        """The paths of a query's run files, by the runs' names, after a check of all. Raises 58030, XX001."""
        folder = self._folder / query.id
        with _as_written(query):
            paths = {name: verify_file(run.file, folder) for name, run in query.runs.items()}
            for name, run in query.runs.items():
                if read_count(paths[name]) != run.rows:
                    raise ValueError(f'"{run.file.name}" has other rows')
        return paths

    def tables(self, query: SeparatedQuery) -> dict[str, pa.Table]:
        """The rows of a query's runs, by the runs' names; all files are checked before one is read. Raises 58030,
        XX001."""
        paths = self.paths(query)
        with _as_written(query):
            return {name: _read(paths[name], run.schema) for name, run in query.runs.items()}

    def write(self, query_id: str, runs: Mapping[str, Run], used: Collection[Path] = (), **about: Any) -> None:
        """Writes a query's artifact, or replaces it: first all files, then the manifest, if the query still belongs to
        this server. Files of the previous manifest that are ``used`` stay. Raises 53100, 55000, 58030."""
        folder = self._folder / query_id
        self._claims.require_storage()  # nothing is written to an empty mount point
        unique = secrets.token_hex(8)  # a former owner must not overwrite the present owner's files
        try:
            self._folder.mkdir(exist_ok=True)
            folder.mkdir(exist_ok=True)
            paths = [folder / f"r{place}-{unique}.parquet" for place in range(1, len(runs) + 1)]
            stored = _stored(folder, dict(zip(paths, runs.items(), strict=True)))
            failpoint("files")
            # Only the server with the claim writes the query, so the lock is needed only for the check of the claim.
            number = self._number(query_id) + 1
            query = SeparatedQuery(query_id, number, runs=stored, **about)
            with self._claims.owned(query_id) as storage:
                storage.replace(folder / MANIFEST, encode_manifest("query", _encoded(query)))
                for path in set(folder.iterdir()) - {folder / name for name in query.stored} - set(used):
                    storage.delete(path, lasting=False)  # no manifest names the file: the next write also deletes it
        except OSError as error:
            raise disk_error(error, f'write separated query "{query_id}"') from error
        failpoint("manifest")

    def _number(self, query_id: str) -> int:
        """How often a query's manifest has been written; the rest of the manifest is not read. Raises XX001."""
        try:
            return int(json.loads(read_document(self._folder / query_id / MANIFEST))["query"]["number"])
        except FileNotFoundError:
            return 0
        except WRONG as error:
            raise SqlError("XX001", f'separated query "{query_id}" has no valid manifest: {error}') from error

    def delete(self, query_id: str) -> bool:
        """Deletes a query of any owner; returns whether there was one."""
        folder = self._folder / query_id
        if not _ID.fullmatch(query_id):
            return False
        with self._claims.freed(query_id) as storage:
            is_there = folder.is_dir()
            storage.delete(folder)
        return is_there

    def drop_orphans(self) -> None:
        """Deletes files of queries that never got a manifest."""
        for path in list(self._folder.glob("*")):
            with contextlib.suppress(SqlError):  # an unreadable claim stays, and so do its query's files
                # A query is claimed before its files are written, until it has a manifest: so look at the claim first.
                is_free = _ID.fullmatch(path.name) and self._claims.get(path.name) is None
                if is_free and not (path / MANIFEST).exists():
                    self.delete(path.name)


@contextlib.contextmanager
def _as_written(query: SeparatedQuery) -> Iterator[None]:
    """Checks a file. Raises XX001 if it is damaged, and 58030 if it cannot be read."""
    try:
        yield
    except (OSError, pa.ArrowException, *WRONG) as error:
        if isinstance(error, OSError) and error.errno is not None:  # otherwise the file itself is wrong
            raise disk_error(error, f'read separated query "{query.id}"') from error
        raise SqlError("XX001", f'a file of separated query "{query.id}" cannot be read: {error}') from error


# -- files -------------------------------------------------------------------------------------------------------------


def _stored(folder: Path, runs: Mapping[Path, tuple[str, Run]]) -> dict[str, StoredRun]:
    """Writes runs to files in a folder, which is created if needed; returns all by name, or leaves no file."""
    try:
        found = {name: _store(path, run) for path, (name, run) in runs.items()}
        _sync([*runs, folder.parent])
    except BaseException:
        for path in runs:
            path.unlink(missing_ok=True)
        raise
    return found


def _sync(paths: Sequence[Path]) -> None:
    """Syncs files and folders concurrently, which costs the file system little more than syncing one of them."""
    with ThreadPoolExecutor(min(len(paths), _SYNCS), "sync") as workers:
        list(workers.map(sync_file, paths))


def _store(path: Path, run: Run) -> StoredRun:
    batches = (
        batch
        for part in run.batches()
        for batch in packed_table(pa.Table.from_batches([part], run.schema)).to_batches()
    )
    try:
        rows = write_batches(path, packed_schema(run.schema), batches, synced=False)
    except pa.ArrowNotImplementedError as error:
        raise SqlError("0A000", f"a separated query with rows that Parquet does not hold: {error}") from error
    return StoredRun(run.columns, rows, describe_file(path, path.parent))


def _read(path: Path, schema: pa.Schema) -> pa.Table:
    return unpacked_table(read_table((path,), packed_schema(schema)), schema)


# -- manifest ----------------------------------------------------------------------------------------------------------


def is_query_id(text: str) -> bool:
    """Whether a text is a possible query id."""
    return _ID.fullmatch(text) is not None


def _encoded(query: SeparatedQuery) -> dict[str, Any]:
    own = asdict(query)
    plain = {name: encode(value) for name, value in own.items() if name not in _PARTS}
    runs = {
        name: {
            "columns": encode(run.columns),
            "rows": run.rows,
            "file": encode_file(run.file),
        }
        for name, run in query.runs.items()
    }
    return {**plain, "plan": encode_relation(query.relation), "runs": runs}


def _decoded(content: Any) -> SeparatedQuery:
    runs = {name: _decoded_run(run) for name, run in content["runs"].items()}
    names = [name for name in SeparatedQuery.__struct_fields__ if name not in _PARTS]
    plain = {name: decode(content[name], _CLASSES) for name in names if name in content}
    return SeparatedQuery(**{**plain, "relation": decode_relation(content["plan"]), "runs": runs})


def _decoded_run(run: Any) -> StoredRun:
    file = decode_file(run["file"])
    if not _FILE.fullmatch(file.name):
        raise ValueError(f"{file.name} is not a valid file name")
    columns = tuple((name, kind) for name, kind in decode(run["columns"], _CLASSES))
    return StoredRun(columns, run["rows"], file)


def _check(query: SeparatedQuery) -> None:
    """Checks that a plan is one that this server could have made. Raises ValueError, among others."""
    _TYPED.require(query)
    if query.created.tzinfo is None:
        raise ValueError("it has no time of writing")
    _ = query.created.astimezone(dt.UTC)
    if min((run.rows for run in query.runs.values()), default=0) < 0 or max(query.rows, query.size) > _MOST:
        raise ValueError("its counts of rows are out of range")
    require_zone(query.time_zone)
    if len(query.outputs) != len(query.relation.columns):
        raise ValueError("its columns are not those of its plan")
    shared = dict(query.relation.definitions) if isinstance(query.relation, With) else {}
    known = {name: dict(run.columns) for name, run in query.runs.items()}
    known |= {name: {**item.types, ROW_ID: INT8} for name, item in query.files}
    for node in walk(query.relation):
        _check_node(node, known, shared)
    loops = [item for item in walk(query.relation) if isinstance(item, Fixpoint)]
    inside = NodeSet(
        item for loop in loops for item in walk(loop.step) if isinstance(item, Working) and item.name == loop.name
    )
    if any(isinstance(item, Working) and item not in inside for item in walk(query.relation)):
        raise ValueError("it reads the working table of another recursion")
    validate(query.relation)
    _ = [run.schema for run in query.runs.values()]
    DuckPrinter(wide=True).print_relation(query.relation)  # a value that no server can serialize


def _check_node(node: Node, runs: Mapping[str, dict[str, SqlType]], shared: Mapping[str, Relation]) -> None:
    match node:
        case Scan() | Delta():
            raise ValueError(f"it reads {node.name}")
        case Snapshot(trace=name) if name in shared:
            known = {f"c{column.id}": column.type for column in shared[name].columns}
            _check_columns(node, known)
        case Snapshot(trace=name):
            _check_columns(node, runs[name])
        case _:
            check_call(node)


def _check_columns(node: Snapshot, known: Mapping[str, SqlType]) -> None:
    for column, source in zip(node.columns, node.sources, strict=True):
        if known[source] != column.type:
            raise ValueError(f"column {source} of {node.trace} has the wrong type")
