"""A view's states as traces: durable runs from the manifest, and above them runs in memory that readers computed.

Owns which runs make a snapshot, and that a row is counted once whoever commits what (architecture section 3):

    path:   durable runs  ...  | frontier |  memory run  |  memory run  |  reach

The memory runs of a path are a chain that begins at its durable frontier. A commit moves the frontier and drops the
memory runs below it; should one straddle the new frontier, it and those behind it are dropped and computed again.
Readers cut their runs where a live claim ends, so that this is rare. A ``Version`` is immutable: who took one (under
the sequencer's lock, together with his LSN) reads on undisturbed, and files that compaction replaced stay until the
last such version is gone. How rows merge is an engine's business, passed in.
"""

from __future__ import annotations

import itertools
import threading
import time
import uuid
import weakref
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa

from executor.trace.claim import Claim, Claims
from executor.trace.manifest import Content, Manifest, NewRun, StoredRun
from executor.trace.parquet import read_table, write_table
from executor.trace.run import Run

#: ``merge(state name, tables)``: the tables' rows merged by the state's key, in the order of the tables.
Merge = Callable[[str, Sequence[pa.Table]], pa.Table]


@dataclass(frozen=True, slots=True)
class MemoryRun:
    """Runs of all states of a path over (``after``, ``upto``] that no commit holds."""

    after: int
    upto: int
    tables: Mapping[str, pa.Table]

    @property
    def rows(self) -> int:
        """Rows of all states."""
        return sum(table.num_rows for table in self.tables.values())


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class Version:
    """What is known of a view at one moment. ``memory[i]`` is the chain of path i."""

    content: Content
    memory: tuple[tuple[MemoryRun, ...], ...]

    def reach(self, path: int) -> int:
        """The LSN up to which a path's runs are known."""
        chain = self.memory[path]
        return chain[-1].upto if chain else self.content.frontiers[path]

    def covers(self, path: int, lsn: int) -> bool:
        """Whether the runs up to ``lsn``, and exactly these, are known."""
        return lsn == self.content.frontiers[path] or any(run.upto == lsn for run in self.memory[path])


class ViewStates:
    """The states of one view. Safe for many threads."""

    def __init__(
        self,
        manifest: Manifest,
        schemas: Mapping[str, pa.Schema],
        merge: Merge,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """``schemas`` are those of the states' runs, by state name."""
        assert schemas.keys() == manifest.content.states.keys()
        self.manifest = manifest
        self._schemas = schemas
        self._merge = merge
        self._lock = threading.Lock()
        self._claims = Claims(clock)
        self._loaded: dict[StoredRun, pa.Table] = {}
        self._retired: list[tuple[StoredRun, ...]] = []
        content = manifest.content
        self._version = Version(content, tuple(() for _ in content.frontiers))
        self._versions: weakref.WeakSet[Version] = weakref.WeakSet((self._version,))

    @property
    def version(self) -> Version:
        """The newest version."""
        return self._version

    def missing(self, path: int, lsn: int) -> tuple[tuple[int, int], ...]:
        """The intervals that must be computed to bring a path to ``lsn``, cut where a live claim ends."""
        with self._lock:
            start, claim = self._version.reach(path), self._claims.live(path)
        cuts = [claim.upto] if claim is not None and start < claim.upto < lsn else []
        points = [start, *cuts, lsn]
        return tuple(itertools.pairwise(points)) if start < lsn else ()

    def add(self, path: int, after: int, upto: int, tables: Mapping[str, pa.Table]) -> bool:
        """Keeps runs that a reader computed. False when they do not continue the chain, or straddle a claim's end."""
        assert after < upto
        with self._lock:
            claim = self._claims.live(path)
            straddles = claim is not None and after < claim.upto < upto
            if straddles or self._version.reach(path) != after:
                return False
            self._set_chain(path, (*self._version.memory[path], MemoryRun(after, upto, dict(tables))))
            return True

    def claim(self, path: int, upto: int, holder: str, lease: float) -> Claim | None:
        """Claims a path's work from its frontier to about ``upto``; None while a claim lives or nothing is to do.

        The claim ends at ``upto``, or where a memory run ends: at the last that ends before it, else at the first.
        """
        with self._lock:
            after = self._version.content.frontiers[path]
            chosen = upto
            if upto < self._version.reach(path):
                ends = [run.upto for run in self._version.memory[path]]
                chosen = max((end for end in ends if end <= upto), default=ends[0])
            return self._claims.take(path, after, chosen, holder, lease) if chosen > after else None

    def renew(self, claim: Claim, lease: float) -> Claim | None:
        """A new lease, or None when the claim was taken over."""
        with self._lock:
            return self._claims.renew(claim, lease)

    def release(self, claim: Claim) -> None:
        """The claim's work is done or given up."""
        with self._lock:
            self._claims.end(claim)

    def commit(self, path: int, after: int, upto: int, runs: Mapping[str, NewRun | pa.Table]) -> bool:
        """Makes a path's runs durable and drops the memory runs that they replace. False when the frontier moved.

        Tables are written to the view's folder; files must lie in it. The caller sees to it that the log has ``upto``
        durably. Raises 53100, 58030.
        """
        new, kept = {}, {}
        for name, run in runs.items():
            if isinstance(run, NewRun):
                new[name] = run
            elif run.num_rows:
                new[name], kept[name] = self._write(name, run), run
        done = self.manifest.commit(path, after, new, upto)
        if not done:
            _unlink([new[name] for name in kept])
        with self._lock:
            self._renew_version()
            if done:
                self._keep_loaded(new, kept)
        return done

    def _keep_loaded(self, new: Mapping[str, NewRun], kept: Mapping[str, pa.Table]) -> None:
        """Remembers the tables of runs that were just written, if they are still the manifest's."""
        for name, table in kept.items():
            own = [path.relative_to(self.manifest.folder).as_posix() for path in new[name].files]
            for run in self.manifest.content.runs[name]:
                if [file.name for file in run.files] == own:
                    self._loaded[run] = table

    def commit_memory(self, path: int, upto: int) -> bool:
        """Commits what readers computed: the memory runs that end at or below ``upto``. False when there is nothing."""
        version = self._version
        chain = [run for run in version.memory[path] if run.upto <= upto]
        if not chain:
            return False
        return self.commit(path, chain[0].after, chain[-1].upto, self._merged(chain))

    def coalesce(self, path: int) -> None:
        """Merges the newest memory runs while that copies little: the chain stays short, each row is merged rarely."""
        with self._lock:
            version, claim = self._version, self._claims.live(path)
        chain = version.memory[path]
        first, rows = len(chain) - 1, chain[-1].rows if chain else 0
        while first > 0 and chain[first - 1].rows <= 2 * rows:
            if claim is not None and chain[first - 1].upto == claim.upto:
                break
            first -= 1
            rows += chain[first].rows
        if first >= len(chain) - 1:
            return
        merged = MemoryRun(chain[first].after, chain[-1].upto, self._merged(chain[first:]))
        with self._lock:
            boundary = self._claims.live(path)
            straddles = boundary is not None and merged.after < boundary.upto < merged.upto
            if not straddles and self._version.memory[path] is chain:
                self._set_chain(path, (*chain[:first], merged))

    def snapshot_runs(self, lsn: int, version: Version | None = None) -> dict[str, list[Run]]:
        """By state name, the runs whose merge is the state at exactly ``lsn``, oldest first for each path.

        Every path of the version must cover ``lsn``: see ``missing`` and ``add``. Raises XX001 for a damaged file.
        """
        chosen = version or self._version
        assert all(chosen.covers(path, lsn) for path in range(len(chosen.memory))), "the view was brought to the LSN"
        result = {name: [self.load(name, run) for run in runs] for name, runs in chosen.content.runs.items()}
        for path, chain in enumerate(chosen.memory):
            for run in chain:
                if run.upto <= lsn:
                    for name, table in run.tables.items():
                        result[name].append(Run(run.after, run.upto, table, (), path, table.num_rows))
        return result

    def load(self, state: str, stored: StoredRun) -> Run:
        """A durable run with its table; the files are checked when they are read for the first time."""
        with self._lock:
            table = self._loaded.get(stored)
        if table is None:
            table = read_table(self.manifest.verify(stored), self._schemas[state])
            with self._lock:
                table = self._loaded.setdefault(stored, table)
        files = tuple(self.manifest.folder / file.name for file in stored.files)
        return Run(stored.after, stored.upto, table, files, stored.path, stored.rows)

    def compact(self, state: str, path: int) -> bool:
        """Merges a state's durable runs of a path into one. False when there are fewer than two, or others changed."""
        old = tuple(run for run in self._version.content.runs[state] if run.path == path)
        if len(old) < 2:
            return False
        merged = self._merge(state, [_table(self.load(state, run)) for run in old])
        new = self._write(state, merged)
        done = self.manifest.replace_runs(state, old, new.files, new.rows)
        if not done:
            _unlink((new,))
        with self._lock:
            if done:
                self._retired.append(old)
            self._renew_version()
        return done

    def _set_chain(self, path: int, chain: tuple[MemoryRun, ...]) -> None:
        memory = (*self._version.memory[:path], chain, *self._version.memory[path + 1 :])
        self._install(Version(self._version.content, memory))

    def _renew_version(self) -> None:
        """Takes the manifest's content over and keeps of each chain what continues the durable frontier."""
        content = self.manifest.content
        chains = zip(content.frontiers, self._version.memory, strict=True)
        self._install(Version(content, tuple(_continuing(chain, frontier) for frontier, chain in chains)))

    def _install(self, version: Version) -> None:
        self._version = version
        self._versions.add(version)
        self._delete_retired()

    def _delete_retired(self) -> None:
        """Deletes the files, and forgets the tables, of replaced runs that no living version names."""
        if not self._retired:
            return
        named = {run for version in self._versions for runs in version.content.runs.values() for run in runs}
        waiting = [runs for runs in self._retired if not named.isdisjoint(runs)]
        for runs in self._retired:
            if named.isdisjoint(runs):
                self.manifest.delete(runs)
                for run in runs:
                    self._loaded.pop(run, None)
        self._retired = waiting

    def _merged(self, chain: Sequence[MemoryRun]) -> dict[str, pa.Table]:
        names = {name for run in chain for name in run.tables}
        parts = {name: [run.tables[name] for run in chain if name in run.tables] for name in names}
        return {name: own[0] if len(own) == 1 else self._merge(name, own) for name, own in parts.items()}

    def _write(self, state: str, table: pa.Table) -> NewRun:
        path = self.manifest.folder / f"{state}-{uuid.uuid4().hex}.parquet"
        write_table(path, table)
        return NewRun((path,), table.num_rows)


def _continuing(chain: Sequence[MemoryRun], frontier: int) -> tuple[MemoryRun, ...]:
    """The part of a chain that begins exactly at the frontier."""
    kept = tuple(run for run in chain if run.after >= frontier)
    return kept if kept and kept[0].after == frontier else ()


def _unlink(runs: Sequence[NewRun]) -> None:
    for run in runs:
        for path in run.files:
            path.unlink(missing_ok=True)


def _table(run: Run) -> pa.Table:
    assert run.table is not None
    return run.table
