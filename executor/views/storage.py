"""Where continuous views live on storage: one folder a view with its manifest and runs, one with its static runs.

Owns: the layout below shared/ (architecture, section 8) and the order in which a view's files come to exist, so that a
crash at any moment leaves a view that recovery can open: static runs and the program are written before the log record
that creates the view; the manifest after it, or by recovery. Knows nothing of when to commit or of computing runs.

    shared/state/v<oid>/           manifest.json and runs (executor/traces/manifest)
    shared/state/v<oid>-static/    program.json, other programs that changes of the view's options have given it, and
                                   one Parquet file for each static pipeline; of a view that has come
                                   from another server handover.json and a file for each state,
                                   until the view exists
    shared/streams/<oid>/          sealed intervals, the names of files that arrived and their lines that are no rows,
                                   and rows that are kept (executor/traces/history)
    shared/scratch/<job>/          what engines write before a commit
"""

from __future__ import annotations

import os
import shutil
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
from msgspec import Struct, field
from msgspec.structs import asdict

from catalog.objects import Stream, View
from catalog.values.errors import SqlError, undefined_table
from executor.commit.checked_lines import End
from executor.commit.files import disk_error, replace_file, sync_folder
from executor.engine import MemoryEngine
from executor.failpoints import failpoint
from executor.files.arrived_files import ArrivedFiles, begin_store
from executor.traces.checked import as_written, pack, unpack
from executor.traces.history import History
from executor.traces.manifest import Arrived, Manifest, NewRun, describe_state, schema_of
from executor.traces.parquet import StoredFile, describe_file, read_table, verify_file, write_table
from executor.traces.sealed import delete_sealed
from executor.views.expiry import unexpired
from executor.views.failing_rows import last_rejected
from executor.views.failure import ViewError
from planner.incremental.programs.documents import decode_program, encode_program
from planner.incremental.programs.program import Expiry, Program, State
from planner.incremental.programs.rejected import REJECTED

#: A state's runs are compacted into one when there are more.
RUNS = 8

Runs = Mapping[str, pa.Table] | Mapping[str, tuple[Path, ...]]


def _no_runs(state: State) -> list[pa.Table]:
    return []


class StoredView(Struct, frozen=True):
    """What storage knows of a view; ``frontiers`` by path id, ``read`` gives a state's committed runs."""

    program: Program
    frontiers: dict[int, int]
    statics: Mapping[str, pa.Table] = field(default_factory=dict)
    error: ViewError | None = None
    shared: str = ""
    handover: str = ""
    read: Callable[[State], list[pa.Table]] = _no_runs

    @property
    def inputs(self) -> dict[int, int]:
        """By oid of each input, the LSN up to which every path that reads it is committed."""
        found: dict[int, int] = {}
        for path in self.program.paths:
            for oid in path.inputs:
                found[oid] = min(found.get(oid, self.frontiers[path.id]), self.frontiers[path.id])
        return found


class Handover(Struct, frozen=True):
    """A view's states as they come from another server: rows by state name, the view's name among the servers that
    share a storage, and that of the handover."""

    shared: str
    name: str
    states: Mapping[str, pa.Table]


_HANDOVER = "handover.json"
_PROGRAM = "program.json"


class ViewStore:
    """All views' folders of one server."""

    def __init__(self, shared: Path, owner: str) -> None:
        self._states = shared / "state"
        self._streams = shared / "streams"
        self._scratch = shared / "scratch"
        self._owner = owner
        self._open: dict[int, tuple[Manifest, Program]] = {}
        self._names = 0
        self._lock = threading.Lock()
        self._locks: dict[int, threading.Lock] = {}
        shutil.rmtree(self._scratch, ignore_errors=True)
        for folder in (self._states, self._streams, self._scratch):
            folder.mkdir(parents=True, exist_ok=True)

    def _folder(self, oid: int) -> Path:
        return self._states / f"v{oid}"

    def _statics(self, oid: int) -> Path:
        return self._states / f"v{oid}-static"

    def stream_folder(self, oid: int) -> Path:
        """Where a stream's sealed intervals are."""
        return self._streams / str(oid)

    def scratch(self, job: int) -> Path:
        """A folder for what a job writes."""
        folder = self._scratch / str(job)
        folder.mkdir(parents=True, exist_ok=True)
        return folder

    def discard_scratch(self, job: int) -> None:
        """Deletes the uncommitted files of a finished job."""
        shutil.rmtree(self._scratch / str(job), ignore_errors=True)

    # Life of a view ---------------------------------------------------------------------------------------------

    def prepare(
        self, oid: int, program: Program, statics: Mapping[str, pa.Table], handover: Handover | None = None
    ) -> None:
        """Writes what must be there before the view's creation is logged. Raises 53100, 58030."""
        folder = self._statics(oid)
        shutil.rmtree(folder, ignore_errors=True)
        try:
            folder.mkdir(parents=True)
            files = self._write_statics(oid, statics)
            if handover is not None:
                rows = {name: table.num_rows for name, table in handover.states.items()}
                about = {"shared": handover.shared, "handover": handover.name, "rows": rows}
                about["files"] = self._write_statics(oid, handover.states)
                replace_file(folder / _HANDOVER, pack(about))
            written = {"program": encode_program(program), "statics": files, "arrived": handover is not None}
            replace_file(folder / _PROGRAM, pack(written))
            sync_folder(folder)
            sync_folder(self._states)
            failpoint("view-prepared")
        except OSError as error:
            raise disk_error(error, "write the view's program") from error

    def _write_statics(self, oid: int, tables: Mapping[str, pa.Table]) -> dict[str, Any]:
        """Files beside the view's program, and what is to be checked of them."""
        for name, table in tables.items():
            write_table(self._static(oid, name), table)
        return {name: asdict(describe_file(self._static(oid, name), self._statics(oid))) for name in tables}

    def _read_static(self, oid: int, name: str, files: Mapping[str, Any]) -> Path:
        """Such a file, which is what was written. Raises XX001."""
        if name in files:
            verify_file(StoredFile(**files[name]), self._statics(oid))
        return self._static(oid, name)

    def prepare_program(self, oid: int, name: str, program: Program) -> None:
        """Writes another program of a view before the change that names it is logged. Raises 53100, 58030."""
        folder = self._statics(oid)
        try:
            replace_file(folder / f"{name}.json", pack({"program": encode_program(program)}))
            sync_folder(folder)
            failpoint("program-prepared")
        except OSError as error:
            raise disk_error(error, "write the view's program") from error

    def change_program(self, view: View) -> Program:
        """A view has the program that it names from now on. Raises XX001."""
        failpoint("program-logged")
        with self._held(view.oid) as entry:
            program = self.program(view)
            if entry is not None:
                self._open[view.oid] = entry[0], program
        return program

    def program(self, view: View) -> Program:
        """The program that a view names, else that of its creation. Raises XX001."""
        return self._decoded(view, self._document(view))

    def _decoded(self, view: View, document: Mapping[str, Any]) -> Program:
        with as_written(f"{view.program}.json" if view.program else _PROGRAM):
            return decode_program(document)

    def _document(self, view: View) -> Mapping[str, Any]:
        if not view.program:
            return self._prepared(view.oid)[0]
        path = self._statics(view.oid) / f"{view.program}.json"
        with as_written(path.name):
            document: Mapping[str, Any] = unpack(path.read_bytes(), f"{path.parent.name}/{path.name}")[1]["program"]
            return document

    def _prepared(self, oid: int) -> tuple[Mapping[str, Any], dict[str, Any], bool]:
        """The program as it is written, the files of its static runs, and whether the view came with states."""
        path = self._statics(oid) / _PROGRAM
        with as_written(path.name):
            found, document = unpack(path.read_bytes(), f"{path.parent.name}/{_PROGRAM}")
            written = {"program": document, "statics": {}} if found == 1 else document
            return written["program"], written["statics"], written.get("arrived", False)

    def create(self, view: View) -> None:
        """The view exists from its LSN on. Raises XX001 where what was prepared is not there."""
        oid = view.oid
        document, files = self._document(view), self._prepared(oid)[1]
        program = self._decoded(view, document)
        states = {state.name: describe_state(state) for state in program.states}
        frontiers = _frontiers(view, program)
        failpoint("view-logged")
        shutil.rmtree(self._folder(oid), ignore_errors=True)
        about = (f"v{oid}", self._owner, document, states, frontiers)
        self._open[oid] = (Manifest.create(self._folder(oid), *about, self._arrived(oid), files), program)
        self._delete_arrived(oid)

    def _arrived(self, oid: int) -> Arrived | None:
        """The runs with which a view has come from another server, in its folder."""
        path = self._statics(oid) / _HANDOVER
        if not path.exists():
            return None
        with as_written(path.name):
            _, about = unpack(path.read_bytes(), f"{path.parent.name}/{_HANDOVER}")
            self._folder(oid).mkdir()
            runs = {}
            for name, rows in about["rows"].items():
                file = self._new_file(oid, name)
                shutil.copyfile(self._read_static(oid, name, about.get("files", {})), file)
                runs[name] = NewRun((file,), rows)
            return Arrived(runs, about["shared"], about["handover"])

    def _delete_arrived(self, oid: int) -> None:
        """What a view has come with is among its runs now; the list of it goes last, so that a crash leaves no rest."""
        path = self._statics(oid) / _HANDOVER
        if path.exists():
            with as_written(path.name):
                for name in unpack(path.read_bytes(), _HANDOVER)[1]["rows"]:
                    self._static(oid, name).unlink(missing_ok=True)
            path.unlink()

    def share(self, oid: int, name: str) -> None:
        """A view gets a name among the servers that share a storage."""
        with self._held(oid) as entry:
            if entry is None:
                raise undefined_table(str(oid))
            entry[0].share(name)

    def come_back(self, oid: int, handover: Handover, frontier: int) -> None:
        """The view's paths go on from a frontier with these states, and what they had is gone."""
        with self._held(oid) as entry:
            if entry is None:
                raise undefined_table(str(oid))
            manifest = entry[0]
            before = tuple(run for runs in manifest.content.runs.values() for run in runs)
            runs = {name: NewRun(self._place(oid, name, run), run.num_rows) for name, run in handover.states.items()}
            manifest.replace_all(Arrived(runs, handover.shared, handover.name), frontier)
            manifest.delete(before)

    def open(self, view: View) -> None:
        """Opens a view at recovery. Raises XX001, also where a crash came between the log and its manifest."""
        oid = view.oid
        manifest = Manifest.open(self._folder(oid))
        with as_written(f"v{oid}"):
            program = self.program(view) if view.program else decode_program(manifest.content.program)
            self._open[oid] = (manifest, program)
        self._delete_arrived(oid)

    def drop(self, oid: int) -> None:
        """The view is gone; its state's space is free. Waits for a commit that is being written."""
        with self._held(oid) as entry:
            if entry is not None:
                del self._open[oid]
                entry[0].drop()
        shutil.rmtree(self._folder(oid), ignore_errors=True)  # also of one that could not be opened
        shutil.rmtree(self._statics(oid), ignore_errors=True)
        self._locks.pop(oid, None)

    @contextmanager
    def _held(self, oid: int) -> Iterator[tuple[Manifest, Program] | None]:
        """A context with an open view (None if it was dropped), in which no other thread changes its files."""
        with self._lock:
            lock = self._locks.setdefault(oid, threading.Lock())
        with lock:
            yield self._open.get(oid)

    def names_of_files(self, oid: int) -> Path:
        """Where a stream's names of files are that arrived."""
        return self.stream_folder(oid) / "files.jsonl"

    def converted_files(self, oid: int) -> Path:
        """A folder for what engines read in the place of a stream's files, gone when the server starts again."""
        return self._scratch / f"stream{oid}"

    def begin_history(self, stream: Stream) -> History:
        """A stream's rows are kept from now on. Raises 53100, 58030."""
        return History.create(self._history(stream.oid), stream, self._owner)

    def open_history(self, stream: Stream, forgotten: int) -> History:
        """The rows of a stream that are kept, at a start; ``forgotten`` is the LSN up to which the log may have lost
        some."""
        return History.open(self._history(stream.oid), stream, self._owner, forgotten)

    def drop_history(self, oid: int) -> None:
        """What a crash left of rows that are not kept any more is gone."""
        shutil.rmtree(self._history(oid), ignore_errors=True)

    def _history(self, oid: int) -> Path:
        return self.stream_folder(oid) / "history"

    def prepare_stream(self, oid: int, arrived: ArrivedFiles | None) -> End | None:
        """Writes which files have arrived in a stream before its creation is logged, and nowhere else: how long that
        is. Raises 53100, 58030."""
        try:
            self.drop_stream(oid)  # of one that never came to exist
            if arrived is not None:
                end = begin_store(self.names_of_files(oid), arrived)
                sync_folder(self._streams)
                return end
        except OSError as error:
            raise disk_error(error, "write the names of a stream's files") from error
        return None

    def drop_stream(self, oid: int) -> None:
        """The stream is gone."""
        shutil.rmtree(self.stream_folder(oid), ignore_errors=True)
        shutil.rmtree(self.converted_files(oid), ignore_errors=True)

    def drop_orphans(self, views: set[int], streams: set[int]) -> None:
        """Deletes what a crash left: folders of views and streams that never came to exist or were dropped, and
        intervals that were sealed for a job."""
        for folder in self._streams.iterdir():
            if folder.name in map(str, streams):
                delete_sealed(folder)
            else:
                shutil.rmtree(folder)
        kept = {folder.name for oid in views for folder in (self._folder(oid), self._statics(oid))}
        for folder in self._states.iterdir():
            if folder.name not in kept:
                shutil.rmtree(folder)

    def load(self, oid: int) -> StoredView:
        """What is stored of a view. Raises XX001."""
        with as_written(f"v{oid}"):
            manifest, program = self._open[oid]
            content = manifest.content
            error = _decode_error(content.error)
            statics = self._load_statics(oid, program, content.statics)
            frontiers, read = dict(content.frontiers), partial(self.read, oid)
            return StoredView(program, frontiers, statics, error, content.shared, content.handover, read)

    def taken(self, oid: int, engine: MemoryEngine) -> tuple[StoredView, dict[str, pa.Table]]:
        """What is stored of a view, and its states' rows, all of one commit. Raises XX001, 42P01."""
        with self._held(oid) as entry:
            if entry is None:
                raise undefined_table(str(oid))
            stored = self.load(oid)
            runs = [(state, stored.read(state)) for state in stored.program.states]
        return stored, {state.name: engine.merge(state, tables) for state, tables in runs}

    def content(self, oid: int) -> tuple[dict[int, int], dict[str, list[pa.Table]]]:
        """A view's frontiers by path id, and its states' runs by name, all of one commit. Raises XX001, 42P01."""
        with self._held(oid) as entry:
            if entry is None:
                raise undefined_table(str(oid))
            manifest, program = entry
            runs = {state.name: self.read(oid, state) for state in (*program.states, REJECTED)}
            return dict(manifest.content.frontiers), runs

    def _load_statics(self, oid: int, program: Program, files: Mapping[str, Any]) -> dict[str, pa.Table]:
        return {
            static.name: read_table((self._read_static(oid, static.name, files),), schema_of(static))
            for static in program.kept_statics
        }

    def has_come(self, oid: int) -> bool:
        """Whether a view began with states from another server, so that its stream's rows since then are not all of
        it. Raises XX001."""
        return self._prepared(oid)[2]

    def has_arrived(self, oid: int) -> bool:
        """Whether the states with which a view has come from another server are still beside its program."""
        return (self._statics(oid) / _HANDOVER).exists()

    def known(self, oid: int) -> StoredView | None:
        """What can be read of the manifest of a view that is damaged."""
        opened = self._open.get(oid)
        if opened is None:
            return None
        content, program = opened[0].content, opened[1]
        return StoredView(program, dict(content.frontiers), shared=content.shared, handover=content.handover)

    def begun(self, view: View) -> StoredView:
        """A view as it was created, without a row. Raises XX001, also for one that came with states."""
        _, files, has_come = self._prepared(view.oid)
        program = self.program(view)
        if has_come:
            raise SqlError("XX001", "it has come from another server")
        return StoredView(program, _frontiers(view, program), self._load_statics(view.oid, program, files))

    def close(self, oid: int) -> None:
        """A view's files stay as they are, and nothing is added."""
        self._open.pop(oid, None)

    def _static(self, oid: int, name: str) -> Path:
        return self._statics(oid) / f"{name}.parquet"

    def static_files(self, oid: int) -> dict[str, tuple[Path, ...]]:
        """The static runs' files, by trace name. Raises 42P01 when the view was dropped."""
        _, program = self._opened(oid)
        return {static.name: (self._static(oid, static.name),) for static in program.kept_statics}

    def _opened(self, oid: int) -> tuple[Manifest, Program]:
        opened = self._open.get(oid)
        if opened is None:
            raise undefined_table(str(oid))
        return opened

    def read(self, oid: int, state: State) -> list[pa.Table]:
        """A state's committed runs. Raises 42P01 when the view was dropped, XX001 where storage lost something."""
        manifest, _ = self._opened(oid)
        with as_written(f"v{oid}"):
            runs = manifest.content.runs[state.name]
            return [read_table(manifest.verify(run), schema_of(state)) for run in runs if run.rows]

    def _state(self, oid: int, name: str) -> State:
        return next(state for state in self._opened(oid)[1].states if state.name == name)

    def run_count(self, oid: int, state: str) -> int:
        """How many runs of a state are stored."""
        opened = self._open.get(oid)
        return 0 if opened is None else len(opened[0].content.runs[state])

    def highest_lsn(self) -> int:
        """The greatest LSN that any open manifest names."""
        manifests = (manifest.content for manifest, _ in self._open.values())
        return max((lsn for content in manifests for lsn in content.frontiers.values()), default=0)

    # Commits ----------------------------------------------------------------------------------------------------

    def commit(self, oid: int, path: int, after: int, upto: int, runs: Runs) -> dict[str, pa.Table] | None:
        """Moves a path's durable frontier with its runs. The runs' rows, or None when another job committed first."""
        with self._held(oid) as entry:
            return None if entry is None else self._commit(oid, *entry, path, after, upto, runs)

    def _commit(
        self, oid: int, manifest: Manifest, program: Program, path: int, after: int, upto: int, runs: Runs
    ) -> dict[str, pa.Table] | None:
        states = {state.name: state for state in (*program.states, REJECTED)}
        tables: dict[str, pa.Table] = {}
        new: dict[str, NewRun] = {}
        for name, run in runs.items():
            files = self._place(oid, name, run)
            tables[name] = read_table(files, schema_of(states[name])) if isinstance(run, tuple) else run
            new[name] = NewRun(files, tables[name].num_rows)
        return tables if manifest.commit(path, after, new, upto) else None

    def _place(self, oid: int, state: str, run: pa.Table | tuple[Path, ...]) -> tuple[Path, ...]:
        """Files of a run, in the view's folder."""
        if not isinstance(run, tuple):
            if run.num_rows == 0:
                return ()
            path = self._new_file(oid, state)
            write_table(path, run)
            return (path,)
        placed = []
        for file in run:
            path = self._new_file(oid, state)
            os.replace(file, path)
            placed.append(path)
        return tuple(placed)

    def _new_file(self, oid: int, state: str) -> Path:
        with self._lock:
            self._names += 1
            name = f"{state}-{os.getpid():x}-{self._names:x}.parquet"
        while (self._folder(oid) / name).exists():
            name = "x" + name
        return self._folder(oid) / name

    def compact(self, oid: int, states: Iterable[State], engine: MemoryEngine) -> None:
        """Makes one run of the runs of each path of a state that has gathered many, and leaves out what expired."""
        with self._held(oid) as entry:
            if entry is not None:
                manifest, program = entry
                expiries = {expiry.state: expiry for expiry in program.expiries}
                for state in (*states, REJECTED):
                    self._compact(oid, manifest, state, expiries.get(state.name), engine)

    def _compact(self, oid: int, manifest: Manifest, state: State, expiry: Expiry | None, engine: MemoryEngine) -> None:
        runs = manifest.content.runs[state.name]
        for path in {run.path for run in runs}:
            own = tuple(run for run in runs if run.path == path)
            if len(own) > RUNS:
                merged = engine.merge(state, [read_table(manifest.verify(run), schema_of(state)) for run in own])
                table = last_rejected(merged) if state is REJECTED else self._unexpired(oid, merged, expiry, engine)
                file = self._new_file(oid, state.name)
                write_table(file, table)
                if manifest.replace_runs(state.name, own, (file,), table.num_rows):
                    manifest.delete(own)

    def _unexpired(self, oid: int, table: pa.Table, expiry: Expiry | None, engine: MemoryEngine) -> pa.Table:
        if expiry is None:
            return table
        # By the durable watermark: what readers saw may be lost with its rows.
        return unexpired(table, expiry, lambda name: self.read(oid, self._state(oid, name)), engine.query_few)

    def fail(self, oid: int, failed: ViewError | None) -> None:
        """An error becomes the view's value, or is taken back."""
        with self._held(oid) as entry:
            if entry is not None:
                entry[0].set_error(None if failed is None else _encode_error(failed))


def _encode_error(failed: ViewError) -> dict[str, Any]:
    error = failed.error
    return {"sqlstate": error.sqlstate, "message": error.message, "lsn": failed.lsn, "policy": failed.policy}


def _decode_error(document: Any) -> ViewError | None:
    if not isinstance(document, dict):
        return None
    error = SqlError(document["sqlstate"], document["message"])
    return ViewError(error, document["lsn"], document.get("policy", "fail"))


def _frontiers(view: View, program: Program) -> dict[int, int]:
    """Where the paths of a new view begin."""
    return {path.id: min(map(view.since, path.inputs)) for path in program.paths}
