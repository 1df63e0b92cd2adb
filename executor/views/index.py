"""The key index of one continuous view's result, with a patch for what arrived since.

Owns: the index of one result of the view and the patch: the rows of just the groups that changed, which replace those
of the indexed result. When the changed groups are more than a share of the result, the whole result is indexed again.
When that is done, and for which version of the view, is ``executor.key_access.view_indexes``'s.
"""

from __future__ import annotations

import itertools
from bisect import bisect_right
from collections.abc import Callable, Mapping

import pyarrow as pa
from msgspec import Struct

from executor.trace.index import KeyIndex, Row
from executor.views.runtime import ViewRuntime
from planner.incremental.names import stored_name

#: More changed groups than this, and more than the share, make a new index.
PATCH_ROWS = 1024
PATCH_SHARE = 0.1
#: Patches after which their tables become one.
PATCHES = 256

Key = tuple[object, ...]


class Indexed(Struct, frozen=True):
    """A result by key, and where the rows are now of the groups that changed since. Grows while others read it."""

    table: pa.Table
    rows: KeyIndex
    changed: dict[Key, Row]

    def get(self, key: Key) -> Row:
        """The row of a key."""
        row = self.changed.get(key)
        return Row(self.table, self.rows.get(key)) if row is None else row


class Parts(Struct, frozen=True):
    """A table's batches and the first row of each. Arrow's own ``take`` copies a table of many chunks into one before
    it takes the first row."""

    batches: tuple[pa.RecordBatch, ...]
    starts: tuple[int, ...]

    @classmethod
    def of(cls, table: pa.Table) -> Parts:
        """Looks at the chunks, not at the rows."""
        batches = tuple(table.to_batches())
        sizes = (batch.num_rows for batch in batches[:-1])
        return cls(batches, tuple(itertools.accumulate(sizes, initial=0)))

    def take(self, places: list[int]) -> pa.Table:
        """The rows at these places, in any order."""
        found: dict[int, list[int]] = {}
        for place in places:
            part = bisect_right(self.starts, place) - 1
            found.setdefault(part, []).append(place - self.starts[part])
        return pa.Table.from_batches(self.batches[part].take(pa.array(own, pa.int64())) for part, own in found.items())


Final = Callable[[Mapping[str, pa.Table]], pa.Table]


class ViewIndex:
    """Keeps one view's ``Indexed`` up to date. Called with the view's lock held."""

    def __init__(self, runtime: ViewRuntime, key: tuple[str, ...]) -> None:
        """``key``: names of the view's columns that are its program's point key."""
        self._runtime = runtime
        self._follower = runtime.follow()
        self._key = key
        self._program = runtime.program  # whose final relation was indexed
        self._state = runtime.program.states[0]
        self._state_key = [stored_name(column) for column in self._state.key]
        #: The state's rows that the indexed result was made of, and where those are that replace some of them.
        self._base = pa.table({})
        self._base_parts = Parts.of(self._base)
        self._base_rows: KeyIndex | None = None
        self._changed: dict[Key, Row] = {}
        self._patches = 0
        self._current: Indexed | None = None

    def refresh(self, final: Final) -> Indexed:
        """The index at the runtime's version; ``final`` evaluates the final relation over states."""
        changes = self._follower.take()
        current, self._current = self._current, None  # what fails below leaves no index behind
        if current is None or changes is None or self._program is not self._runtime.program:
            current = self._index(final)
        elif changes:
            rows = len(self._changed) + sum(run.num_rows for run in changes)
            if rows > max(PATCH_ROWS, PATCH_SHARE * self._base.num_rows):
                current = self._index(final)
            else:
                self._patch(current, changes, final)
        self._current = current
        return current

    def _index(self, final: Final) -> Indexed:
        self._program = self._runtime.program
        result = final(self._runtime.snapshots())
        self._base = self._runtime.contents[self._state.name].snapshot(self._runtime.engine)
        self._base_parts = Parts.of(self._base)
        self._base_rows = None
        self._changed = {}
        self._patches = 0
        return Indexed(result, KeyIndex(result, self._key), {})

    def _patch(self, current: Indexed, changes: list[pa.Table], final: Final) -> None:
        """Puts the groups of some runs as they are now before what was indexed of them."""
        run = changes[0] if len(changes) == 1 else self._runtime.engine.merge(self._state, changes)
        keys: list[Key] = list(zip(*(run.column(name).to_pylist() for name in self._state_key), strict=True))
        rows = self._runtime.engine.merge(self._state, [*self._before(keys), run])
        patch = final({**self._runtime.snapshots_of_statics(), f"s_{self._state.name}": rows})
        places, result = KeyIndex(rows, self._state_key), KeyIndex(patch, self._key)
        for key in keys:
            self._changed[key] = Row(rows, places.get(key))
            current.changed[key] = Row(patch, result.get(key))
        self._patches += 1
        if self._patches >= PATCHES:
            self._patches = 0
            _gather(self._changed)
            _gather(current.changed)

    def _before(self, keys: list[Key]) -> list[pa.Table]:
        """The state's rows of these groups, where there are any, before a run that changes them."""
        if self._base_rows is None:
            self._base_rows = KeyIndex(self._base, self._state_key)
        found: dict[int, tuple[pa.Table, list[int]]] = {}
        for key in keys:
            row = self._changed.get(key) or Row(self._base, self._base_rows.get(key))
            if row.place is not None:
                found.setdefault(id(row.table), (row.table, []))[1].append(row.place)
        return [
            (self._base_parts if table is self._base else Parts.of(table)).take(places)
            for table, places in found.values()
        ]


def _gather(changed: dict[Key, Row]) -> None:
    """Makes one table of many small ones, without the rows that were replaced since."""
    tables = list({id(row.table): row.table for row in changed.values()}.values())
    sizes = itertools.accumulate((table.num_rows for table in tables), initial=0)
    starts = {id(table): start for table, start in zip(tables, sizes, strict=False)}
    present = [(key, starts[id(row.table)] + row.place) for key, row in changed.items() if row.place is not None]
    places = pa.array([place for _, place in present], pa.int64())
    together = pa.concat_tables(tables).combine_chunks().take(places)
    absent = dict.fromkeys(changed, Row(together, None))
    changed.update(absent | {key: Row(together, index) for index, (key, _) in enumerate(present)})
