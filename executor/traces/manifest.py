"""A view's manifest: which runs of its states are durable, and how far each of its paths is (architecture section 8).

**One manifest per view**, ``manifest.json`` in the view's folder below shared/state, holds all states of all paths. Two
paths may add to the same state, and the states of a path must move together, so this is the smallest unit in which a
commit is atomic: one file is replaced (write, fsync, rename, fsync the folder).

``commit`` is a compare-and-swap on one path's frontier; a commit that starts elsewhere changes nothing and says so. The
content in memory is immutable and replaced whole. Another process may hold the same manifest (a server that took the
view over): a file lock and the file's identity make the comparison hold between processes too.

What the manifest does not name does not exist: opening it deletes such files. Knows nothing of rows or merging.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import threading
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
from msgspec import Struct, field
from msgspec.structs import replace

from catalog.values.errors import SqlError
from executor.commit.files import disk_error, replace_file, sync_file, sync_folder
from executor.failpoints import failpoint
from executor.traces.checked import as_written, pack, unpack
from executor.traces.parquet import StoredFile, describe_file, verify_file
from planner.incremental.names import stored_name
from planner.incremental.programs.program import State, Static
from planner.incremental.programs.rejected import REJECTED

MANIFEST: Final = "manifest.json"
_LOCK: Final = "manifest.lock"


class StateSchema(Struct, frozen=True):
    """What the manifest says of a state: columns with Arrow type names, key, kind, and how the others merge."""

    kind: str
    columns: tuple[tuple[str, str], ...]
    key: tuple[str, ...]
    merge: tuple[tuple[str, str], ...] = ()


class StoredRun(Struct, frozen=True):
    """A durable run of one state, made by path ``path`` over (``after``, ``upto``]. ``at`` is when it was committed, in
    microseconds since 1970, where that decides how long it is kept."""

    path: int
    after: int
    upto: int
    files: tuple[StoredFile, ...]
    rows: int
    at: int = 0

    @property
    def bytes(self) -> int:
        """Bytes of its files."""
        return sum(file.size for file in self.files)


class NewRun(Struct, frozen=True):
    """A run to be committed: Parquet files that lie in the view's folder, how many rows they have, and its time."""

    files: tuple[Path, ...]
    rows: int
    at: int = 0


class Arrived(Struct, frozen=True):
    """With what a view has come from another server: a run of each state, its name among servers, and the handover."""

    runs: Mapping[str, NewRun]
    shared: str
    handover: str


class Content(Struct, frozen=True):
    """A manifest at one version. ``frontiers`` are the durable frontiers by path id; ``error`` is the view's value
    where a row made its query fail; ``program`` is the program that owns the states, as JSON. ``shared`` is the view's
    name among the servers that share a storage, if it ever left one, and ``handover`` how its states came here last;
    ``statics`` says what the files of its static runs are, which lie elsewhere."""

    view: str
    owner: str
    program: Any
    states: Mapping[str, StateSchema]
    runs: Mapping[str, tuple[StoredRun, ...]]
    frontiers: Mapping[int, int]
    error: Any = None
    version: int = 0
    shared: str = ""
    handover: str = ""
    statics: Any = field(default_factory=dict)

    def files(self) -> Iterator[str]:
        """All files that exist, relative to the view's folder."""
        return (file.name for runs in self.runs.values() for run in runs for file in run.files)


class _Held(Struct):
    """The content and the file that it was read from."""

    content: Content
    identity: tuple[int, int, int] = field(default=(0, 0, 0))


class Manifest:
    """An open manifest. Safe for many threads."""

    def __init__(self, folder: Path, content: Content) -> None:
        """For ``create`` and ``open``."""
        self.folder = folder
        self._lock = threading.Lock()
        self._held = _Held(content)

    @classmethod
    def create(
        cls,
        folder: Path,
        view: str,
        owner: str,
        program: Any,
        states: Mapping[str, StateSchema],
        frontiers: Mapping[int, int],
        arrived: Arrived | None = None,
        statics: Any = None,
    ) -> Manifest:
        """A new view's manifest: each path's frontier where the view begins, and no runs but those with which it has
        arrived. Raises 53100, 58030."""
        folder.mkdir(parents=True, exist_ok=True)
        own = {**states, **_BESIDE}
        no_runs: dict[str, tuple[StoredRun, ...]] = dict.fromkeys(own, ())
        content = Content(view, owner, program, own, no_runs, dict(frontiers), statics=statics or {})
        manifest = cls(folder, content)
        content = content if arrived is None else manifest._with(arrived, frontiers)
        with manifest._exclusive():
            manifest._save(content)
        sync_folder(folder.parent)
        return manifest

    @classmethod
    def open(cls, folder: Path) -> Manifest:
        """Reads a manifest and deletes what it does not name. Raises XX001 when it is none."""
        manifest = cls(folder, _read(folder))
        with manifest._exclusive():
            manifest._refresh()
            manifest._delete_orphans()
        return manifest

    @property
    def content(self) -> Content:
        """The newest version that this object knows."""
        return self._held.content

    def commit(self, path: int, after: int, runs: Mapping[str, NewRun], upto: int) -> bool:
        """Moves a path's frontier from ``after`` to ``upto`` together with the path's runs, by state name.

        False, and nothing changed, when the frontier is not ``after`` (another job has committed). The runs' files are
        made durable first. Raises 53100, 58030, and XX001 for a file outside of the view's folder.
        """
        assert after < upto, "a commit moves the frontier forward"
        if self.content.frontiers[path] > after:  # it only moves forward, so no need to look at the file
            return False
        stored = {
            name: StoredRun(path, after, upto, self._store(run.files), run.rows, run.at)
            for name, run in runs.items()
            if run.files
        }
        with self._exclusive():
            self._refresh()
            content = self.content
            if content.frontiers[path] != after:
                return False
            frontiers = {**content.frontiers, path: upto}
            added = {name: (*own, stored[name]) if name in stored else own for name, own in content.runs.items()}
            assert stored.keys() <= content.runs.keys(), "runs are of the view's states"
            failpoint("run-stored")
            self._save(replace(content, runs=added, frontiers=frontiers, version=content.version + 1))
            failpoint("run-committed")
        return True

    def replace_runs(self, state: str, old: tuple[StoredRun, ...], files: tuple[Path, ...], rows: int) -> bool:
        """Compaction: one run takes the place of consecutive runs of one path. False when these are not all there.

        The old files stay until ``delete`` or the next ``open``, since readers may use them.
        """
        assert len({run.path for run in old}) == 1, "runs of one path"
        assert all(left.upto <= right.after for left, right in pairwise(old)), "in order"
        merged = StoredRun(old[0].path, old[0].after, old[-1].upto, self._store(files), rows, old[-1].at)
        with self._exclusive():
            self._refresh()
            content = self.content
            present = content.runs[state]
            if any(run not in present for run in old):
                return False
            kept = [merged if run == old[0] else run for run in present if run == old[0] or run not in old]
            runs = {**content.runs, state: tuple(kept)}
            failpoint("merge-stored")
            self._save(replace(content, runs=runs, version=content.version + 1))
            failpoint("merge-committed")
        return True

    def remove_runs(self, state: str, gone: Collection[StoredRun]) -> None:
        """Runs of a state that nothing needs any more are no longer named. Their files stay until ``delete``."""
        with self._exclusive():
            self._refresh()
            content = self.content
            runs = {**content.runs, state: tuple(run for run in content.runs[state] if run not in gone)}
            self._save(replace(content, runs=runs, version=content.version + 1))

    def share(self, name: str) -> None:
        """The view gets a name among servers."""
        with self._exclusive():
            self._refresh()
            self._save(replace(self.content, shared=name, version=self.content.version + 1))

    def replace_all(self, arrived: Arrived, frontier: int) -> None:
        """The view has come back: all its paths go on from a frontier, with these runs and no others."""
        with self._exclusive():
            self._refresh()
            self._save(self._with(arrived, dict.fromkeys(self.content.frontiers, frontier)))

    def _with(self, arrived: Arrived, frontiers: Mapping[int, int]) -> Content:
        content = self.content
        path, upto = next(iter(frontiers.items()))  # they are all equal
        runs: dict[str, tuple[StoredRun, ...]] = dict.fromkeys(content.states, ())
        for name, run in arrived.runs.items():
            if run.files:
                runs[name] = (StoredRun(path, 0, upto, self._store(run.files), run.rows),)
        new = replace(content, runs=runs, frontiers=frontiers, version=content.version + 1)
        return replace(new, shared=arrived.shared, handover=arrived.handover)

    def set_error(self, error: Any) -> None:
        """The view's query failed on an acknowledged row: a JSON document becomes its value (None takes it back)."""
        with self._exclusive():
            self._refresh()
            self._save(replace(self.content, error=error, version=self.content.version + 1))

    def verify(self, run: StoredRun) -> tuple[Path, ...]:
        """The paths of a run's files, which are what was committed. Raises XX001."""
        return tuple(verify_file(file, self.folder) for file in run.files)

    def delete(self, runs: tuple[StoredRun, ...]) -> None:
        """Deletes the files of replaced runs that no reader uses any more."""
        named = set(self.content.files())
        for name in (file.name for run in runs for file in run.files):
            if name not in named:
                (self.folder / name).unlink(missing_ok=True)

    def drop(self) -> None:
        """The view is gone: first its manifest, then everything else."""
        with self._lock:
            (self.folder / MANIFEST).unlink(missing_ok=True)
            sync_folder(self.folder)
            shutil.rmtree(self.folder, ignore_errors=True)  # the next start removes what is left

    def _store(self, files: tuple[Path, ...]) -> tuple[StoredFile, ...]:
        for folder in {path.parent for path in files}:
            if not folder.resolve().is_relative_to(self.folder.resolve()):
                raise SqlError("XX001", f'run "{folder}" is not in the folder of its view')
        for path in files:
            sync_file(path)
        for folder in {above for path in files for above in path.parents if above.is_relative_to(self.folder)}:
            sync_folder(folder)
        return tuple(describe_file(path, self.folder) for path in files)

    @contextmanager
    def _exclusive(self) -> Iterator[None]:
        """Keeps this process' threads and all other processes out."""
        with self._lock, open(self.folder / _LOCK, "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield

    def _refresh(self) -> None:
        """Reads the file again if another process replaced it."""
        identity = _identity(self.folder)
        if identity != self._held.identity:
            self._held = _Held(_read(self.folder), identity)

    def _save(self, content: Content) -> None:
        try:
            replace_file(self.folder / MANIFEST, _encode(content))
        except OSError as error:
            raise disk_error(error, f'write the manifest of "{content.view}"') from error
        self._held = _Held(content, _identity(self.folder))

    def _delete_orphans(self) -> None:
        named = {*self.content.files(), MANIFEST, _LOCK}
        for path in sorted(self.folder.rglob("*"), reverse=True):
            if path.is_dir():
                if not any(path.iterdir()):
                    path.rmdir()
            elif path.relative_to(self.folder).as_posix() not in named:
                path.unlink()


def describe_state(state: State) -> StateSchema:
    """A program's state as its manifest says it."""
    columns = tuple((stored_name(column), str(column.type.arrow)) for column in state.columns)
    merge = tuple((stored_name(column), call.function) for column, call in state.merge)
    return StateSchema(state.kind, columns, tuple(map(stored_name, state.key)), merge)


#: States that a view has beside those of its program; manifests of earlier versions lack them.
_BESIDE: Final[Mapping[str, StateSchema]] = {REJECTED.name: describe_state(REJECTED)}


def schema_of(state: State | Static) -> pa.Schema:
    """The Arrow schema of a state's runs, or of a static pipeline's, in which columns have the names c<id>."""
    return pa.schema([pa.field(stored_name(column), column.type.arrow) for column in state.columns])


def _identity(folder: Path) -> tuple[int, int, int]:
    status = os.stat(folder / MANIFEST)
    return status.st_ino, status.st_mtime_ns, status.st_size


def _encode(content: Content) -> bytes:
    states = {
        name: {
            "kind": schema.kind,
            "columns": schema.columns,
            "key": schema.key,
            "merge": schema.merge,
            "runs": [_encode_run(run) for run in content.runs[name]],
        }
        for name, schema in content.states.items()
    }
    document = {
        "version": content.version,
        "view": content.view,
        "owner": content.owner,
        "frontiers": {str(path): lsn for path, lsn in content.frontiers.items()},
        "error": content.error,
        "shared": content.shared,
        "handover": content.handover,
        "statics": content.statics,
        "states": states,
        "program": content.program,
    }
    return pack(document)


def _encode_run(run: StoredRun) -> dict[str, Any]:
    files = [{"name": file.name, "size": file.size, "crc32": file.crc} for file in run.files]
    document = {"path": run.path, "after": run.after, "upto": run.upto, "rows": run.rows, "files": files}
    return document | {"at": run.at} if run.at else document


def _read(folder: Path) -> Content:
    with as_written(folder.name):
        _, document = unpack((folder / MANIFEST).read_bytes(), f"{folder.name}/{MANIFEST}")
        states = document["states"]
        names = {**_BESIDE, **states}
        return Content(
            document["view"],
            document["owner"],
            document["program"],
            {**_BESIDE, **{name: _decode_schema(state) for name, state in states.items()}},
            {name: tuple(map(_decode_run, states[name]["runs"] if name in states else ())) for name in names},
            _decode_frontiers(document["frontiers"]),
            document["error"],
            document["version"],
            document.get("shared", ""),
            document.get("handover", ""),
            document.get("statics", {}),
        )


def _decode_frontiers(frontiers: Any) -> dict[int, int]:
    """Frontiers by path id; earlier versions listed them by the paths' places, which are their ids."""
    pairs = frontiers.items() if isinstance(frontiers, dict) else enumerate(frontiers)
    return {int(path): lsn for path, lsn in pairs}


def _decode_schema(state: Any) -> StateSchema:
    columns, merge = (tuple((name, of) for name, of in state[part]) for part in ("columns", "merge"))
    return StateSchema(state["kind"], columns, tuple(state["key"]), merge)


def _decode_run(run: Any) -> StoredRun:
    files = tuple(StoredFile(file["name"], file["size"], file["crc32"]) for file in run["files"])
    return StoredRun(run["path"], run["after"], run["upto"], files, run["rows"], run.get("at", 0))
