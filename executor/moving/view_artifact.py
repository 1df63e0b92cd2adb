"""The artifact of a continuous view: a manifest, and a Parquet file for each state.

Owns: the layout below the storage's ``views``, and the checks of a manifest before any of it counts: its checksum and
the files', and that the program reads only the view's streams, its own states, and the tables of its home that
the manifest names.

    <storage>/views/<name>/<handover>/manifest.json     executor/traces/artifact_manifest, of kind "view"
    <storage>/views/<name>/<handover>/t<n>.parquet      the rows of the n-th trace: of a static pipeline, or of a state
    <storage>/views/<name>/<handover>/f<n>.parquet      names, sizes, times and rows of the files that have arrived in
                                                        the n-th stream that follows a folder
"""

from __future__ import annotations

import contextlib
import re
import secrets
import shutil
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final, TypeVar

import pyarrow as pa
from msgspec import Struct, field
from msgspec.structs import replace

from catalog.codec import CATALOG_CLASSES, decode, encode
from catalog.objects import ColumnDefinition, Stream, View
from catalog.privileges import Grant
from catalog.struct_types import Typed
from catalog.values.errors import SqlError
from catalog.values.types import INT8, Composite, Enumeration, SqlType
from executor.cluster.storage import Storage
from executor.cluster.view_ownership import FOLDER, Owned
from executor.commit.files import disk_error, replace_file, sync_folder
from executor.embedded.printing.dialect import DuckPrinter
from executor.failpoints import failpoint
from executor.files.arrived_files import ArrivedFiles
from executor.files.followed_folders import FORMATS
from executor.streams.runtime import file_format, is_followed
from executor.traces.artifact_manifest import MANIFEST, decode_file, encode_file, encode_manifest, read_manifest
from executor.traces.checked import WRONG
from executor.traces.manifest import schema_of
from executor.traces.parquet import describe_file, read_table, verify_file, write_table
from executor.views.storage import Handover
from planner.algebra.allow_list import check_call, require_zone
from planner.algebra.nodes import Column, Delta, Snapshot
from planner.algebra.signature import entries
from planner.algebra.validate import validate
from planner.algebra.walk import Node, walk
from planner.incremental.names import LSN, ORDINAL, stored_name
from planner.incremental.programs.documents import decode_program, encode_program
from planner.incremental.programs.program import Program
from planner.incremental.programs.retargeting import names_of_view, relations_of, renamed, retargeted, traces_of

_ARRIVED: Final = pa.schema([("path", pa.string()), *((name, pa.int64()) for name in ("size", "mtime", "rows"))])
#: Names of traces, and of their files. In artifacts of format 1 they begin with the view's (``names_of_view``).
_TRACE: Final = re.compile(r"[a-z][a-z0-9_]+", re.ASCII)
_TYPED: Final = Typed((View, Stream), within=(ColumnDefinition, SqlType, Enumeration, Composite, Grant))
_Decoded = TypeVar("_Decoded")


class ExportedView(Struct, frozen=True):
    """A view with its states at the LSN ``at`` of its home, and the results of its static pipelines. ``streams`` are as
    the home defines them, and ``program`` reads them in this order. ``role`` and ``owners`` name the owners of the view
    and of the streams. ``arrived`` has the files that had arrived by ``at``, by the oids of the streams that follow a
    folder."""

    view: View
    streams: tuple[Stream, ...]
    role: str
    owners: tuple[str, ...]
    at: int
    program: Program
    states: Mapping[str, pa.Table]
    statics: Mapping[str, pa.Table]
    arrived: Mapping[int, ArrivedFiles] = field(default_factory=dict)


def write(storage: Storage, name: str, leaving: ExportedView) -> str:
    """Writes an artifact; the handover's name. Raises 53100, 58030."""
    storage.require()  # nothing is written to an empty mount point
    handover = secrets.token_hex(8)
    folder = storage.folder / FOLDER / name / handover
    try:
        folder.mkdir(mode=0o700, parents=True)
        traces = enumerate({**leaving.statics, **leaving.states}.items())
        files = {name_of: _write(folder / f"t{place}.parquet", table) for place, (name_of, table) in traces}
        named = enumerate(leaving.arrived.items())
        arrived = {str(oid): _write(folder / f"f{place}.parquet", _table_of(item)) for place, (oid, item) in named}
        failpoint("view-files")
        content = {
            "handover": handover,
            "view": encode(leaving.view),
            "streams": encode(leaving.streams),
            "role": leaving.role,
            "owners": leaving.owners,
            "at": leaving.at,
            "program": encode_program(leaving.program),
            "files": files,
            "arrived": arrived,
        }
        replace_file(folder / MANIFEST, encode_manifest("view", content))
        for above in (folder.parent, folder.parent.parent):
            sync_folder(above)
    except OSError as error:
        raise disk_error(error, f'write the state of view "{leaving.view.name}"') from error
    return handover


def _write(path: Path, table: pa.Table) -> dict[str, object]:
    """Writes a file; its entry in the manifest."""
    write_table(path, table)
    return encode_file(describe_file(path, path.parent))


def _table_of(arrived: ArrivedFiles) -> pa.Table:
    columns = zip(*arrived.files, strict=True) if arrived.files else ((), (), ())
    arrays = [pa.array(values, field.type) for values, field in zip((*columns, arrived.rows), _ARRIVED, strict=True)]
    return pa.Table.from_arrays(arrays, schema=_ARRIVED)


def _arrived_of(table: pa.Table) -> ArrivedFiles:
    paths, sizes, times, rows = (column.to_pylist() for column in table.columns)
    if None in (*paths, *sizes, *times):
        raise ValueError("a file has no name, size or time")
    return ArrivedFiles(0, tuple(zip(paths, sizes, times, strict=True)), tuple(rows))


def read(storage: Path, owned: Owned, is_older: bool = False) -> ExportedView:
    """An artifact, checked. It is as of the entry's LSN, up to which its streams have no further rows, or as of its own
    LSN where it ``is_older``. Raises XX001, and 0A000 for a format of a later version."""
    found = _read(storage, owned, partial(_decoded, owned=owned))
    return found if is_older else replace(found, at=owned.at)


class About(Struct, frozen=True):
    """The schema and name of a view, and its owner's role."""

    schema: str
    name: str
    role: str


def read_about(storage: Path, owned: Owned) -> About:
    """The schema, name and owner of an artifact's view. Raises what ``read`` raises."""
    return _read(storage, owned, _about)


def _about(content: Any, folder: Path) -> About:
    view = decode(content["view"], CATALOG_CLASSES)
    if not isinstance(view, View):
        raise ValueError("it describes no view")
    return About(view.schema, view.name, str(content["role"]))


def _read(storage: Path, owned: Owned, decoded: Callable[[Any, Path], _Decoded]) -> _Decoded:
    folder = storage / FOLDER / owned.name / owned.handover
    try:
        return decoded(read_manifest(folder / MANIFEST, "view", f'the state of view "{owned.view}"'), folder)
    except FileNotFoundError as error:
        raise SqlError("XX001", f'the state of view "{owned.view}" is incomplete: {error}') from error
    except (OSError, pa.ArrowException, *WRONG) as error:
        if isinstance(error, OSError) and error.errno is not None:  # else it is a file that is wrong
            raise disk_error(error, f'read the state of view "{owned.view}"') from error
        raise SqlError("XX001", f'the state of view "{owned.view}" is damaged: {error}') from error


def _decoded(content: Any, folder: Path, owned: Owned) -> ExportedView:
    view, streams = (decode(content[name], CATALOG_CLASSES) for name in ("view", "streams"))
    if not isinstance(view, View) or not streams or not all(isinstance(stream, Stream) for stream in streams):
        raise ValueError("it describes no view")
    for item in (view, *streams):
        _TYPED.require(item)
    at = content["at"]
    if (streams[0].oid, content["handover"]) != (owned.stream, owned.handover) or type(at) is not int:
        raise ValueError("it belongs to another stream or move")
    if not 0 <= at <= owned.at:
        raise ValueError("it is at another LSN")
    program = decode_program(content["program"])
    _check(program, view, streams)
    owners = tuple(map(str, content.get("owners", ("",) * len(streams))))  # an earlier version has not written them
    if len(owners) != len(streams):
        raise ValueError("its streams have other owners")

    def rows(file: Any, schema: pa.Schema) -> pa.Table:
        stored = decode_file(file)
        path = verify_file(replace(stored, name=Path(stored.name).name), folder)
        return read_table((path,), schema)

    states = {item.name: rows(content["files"][item.name], schema_of(item)) for item in program.states}
    statics = {item.name: rows(content["files"][item.name], schema_of(item)) for item in program.statics}
    followed = [stream.oid for stream in streams if is_followed(stream)]  # in none of an earlier version's
    arrived = {oid: _arrived_of(rows(content["arrived"][str(oid)], _ARRIVED)) for oid in followed}
    return ExportedView(view, streams, str(content["role"]), owners, at, program, states, statics, arrived)


def _check(program: Program, view: View, streams: tuple[Stream, ...]) -> None:
    """Raises ValueError, among others, for a program that no server would make."""
    if program.inputs != tuple(stream.oid for stream in streams):
        raise ValueError("its program reads other streams")
    require_zone(view.time_zone)
    retargeted(program, {stream.oid: stream.oid for stream in streams})
    traces = traces_of(program)
    known: dict[object, dict[str, SqlType]] = {
        item.name: {stored_name(column): column.type for column in item.columns} for item in traces
    }
    if len(known) < len(traces) or not all(_TRACE.fullmatch(item.name) for item in traces):
        raise ValueError("its states have other names")
    for stream in streams:
        if is_followed(stream) and (not stream.option("path") or file_format(stream) not in FORMATS):
            raise ValueError("it follows no folder")
        known[stream.oid] = {**{item.name: item.type for item in stream.stored}, LSN: INT8, ORDINAL: INT8}
    shown = [item.type.arrow for item in view.stored]
    if not _are_alike(program.final.columns, program.columns) or shown != [item.type.arrow for item in program.columns]:
        raise ValueError("its columns are not those of its program")
    for state in program.states:
        if not {*state.key, *(column for column, _ in state.merge)} <= {*state.columns}:
            raise ValueError(f"{state.name} has other columns")
        for _, call in state.merge:
            check_call(call)
    for path in program.paths:
        for statement in path.statements:
            (target,) = (state for state in program.states if state.name == statement.target)
            if not _are_alike(statement.relation.columns, target.columns):
                raise ValueError(f"{target.name} has other columns")
    if not all(item.columns for item in program.borrowed):  # rows without columns have no number
        raise ValueError("the tables that it reads have no columns")
    borrowed = {item.name for item in program.borrowed}
    for relation in relations_of(program):
        validate(relation)
        for node in walk(relation):
            _check_node(node, known)
            if isinstance(node, Snapshot) and node.trace in borrowed and relation is not program.final:
                raise ValueError("its states read tables")
        with contextlib.suppress(SqlError):  # Spark may compute what the embedded engine does not
            DuckPrinter(wide=True).print_relation(relation)


def _check_node(node: Node, known: Mapping[object, Mapping[str, SqlType]]) -> None:
    match node:
        case Snapshot(trace=name) | Delta(oid=name):
            if [known[name][source].arrow for source in node.sources] != [item.type.arrow for item in node.columns]:
                raise ValueError(f"the columns of {name} are of other types")
        case _:
            check_call(node)


def _are_alike(columns: Sequence[Column], others: Sequence[Column]) -> bool:
    return [column.type.arrow for column in columns] == [column.type.arrow for column in others]


def as_handover(owned: Owned, leaving: ExportedView, view: int, program: Program) -> Handover:
    """An artifact's states by the names of its home's program; states of the views that it reads are left out. Raises
    XX001."""
    names = names_of_view(leaving.program, view)
    found = renamed(leaving.program, names)
    states = {names[name]: rows for name, rows in leaving.states.items()}
    parts = _parts(found)
    if not all(part in parts for part in _parts(program)):
        raise SqlError("XX001", f'the state of view "{owned.view}" belongs to another query')
    return Handover(owned.name, owned.handover, {item.name: states[item.name] for item in program.states})


def _parts(program: Program) -> list[object]:
    """A program's states, and the statements that fill them, in a form in which NaN equals NaN."""
    statements = [(path.inputs, item) for path in program.paths for item in path.statements]
    filled = [(inputs, item.target, entries(item.relation, {}), item.method) for inputs, item in statements]
    return [*program.states, *filled]


def names(storage: Path) -> list[str]:
    """The names of the views that have artifacts, or had."""
    return [path.name for path in (storage / FOLDER).glob("*") if path.is_dir()]


def handovers(storage: Path, name: str) -> set[str]:
    """The handovers of a view that are on the storage."""
    return {path.name for path in (storage / FOLDER / name).glob("*")}


def delete_one(storage: Path, name: str, handover: str) -> None:
    """Deletes the artifact of one handover, if it is named, and the view's folder with the last one."""
    if handover:
        shutil.rmtree(storage / FOLDER / name / handover, ignore_errors=True)
        _delete_empty(storage / FOLDER / name)


def delete(storage: Path, name: str) -> None:
    """Deletes all artifacts of a view."""
    for handover in handovers(storage, name):
        delete_one(storage, name, handover)
    _delete_empty(storage / FOLDER / name)


def _delete_empty(folder: Path) -> None:
    with contextlib.suppress(OSError):  # something is there, or comes
        folder.rmdir()
